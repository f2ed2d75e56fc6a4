//! Demonstrations on disk: made once, read afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sha2::{Digest, Sha256};

use crate::record::unique_name;
use crate::tasks::{Demonstrations, Suite};

/// A folder of demonstrations, one file per key.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    folder: PathBuf,
}

/// Why demonstrations could not be stored. A run continues without a cache.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep demonstrations in {path}: {reason}")]
pub struct CacheError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl Cache {
    /// A cache in this folder, which need not exist yet.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// The demonstrations of a key, one set per terminal; none if they are absent or damaged.
    pub fn read(
        &self,
        key: &str,
        n_terminals: usize,
        suite: &Suite,
    ) -> Option<Vec<Demonstrations>> {
        let [seen, done] = [suite.observation(), suite.action()];
        let bytes = fs::read(self.path(key)).ok()?;
        let tensors = SafeTensors::deserialize(&bytes).ok()?;
        let floats = |name: String| -> Option<Vec<f32>> {
            let view = tensors.tensor(&name).ok()?;
            let chunks = view.data().as_chunks::<4>();
            let whole = view.dtype() == Dtype::F32 && chunks.1.is_empty();
            whole.then(|| chunks.0.iter().map(|word| f32::from_le_bytes(*word)).collect())
        };
        let one = |n: usize| {
            let observations = floats(format!("{n}/observations"))?;
            let actions = floats(format!("{n}/actions"))?;
            let rows = actions.len() / done;
            let sound = rows * done == actions.len() && rows * seen == observations.len();
            sound.then_some(Demonstrations { observations, actions })
        };
        (0..n_terminals).map(one).collect()
    }

    /// Keeps demonstrations under a key; the file is never half written.
    pub fn write(
        &self,
        key: &str,
        sets: &[Demonstrations],
        suite: &Suite,
    ) -> Result<(), CacheError> {
        let path = self.path(key);
        let failed = |reason: String| CacheError { path: path.clone(), reason };
        let mut arrays: Vec<(String, usize, Vec<u8>)> = Vec::new();
        for (n, set) in sets.iter().enumerate() {
            let [seen, done] = [&set.observations, &set.actions].map(|values| bytes_of(values));
            arrays.push((format!("{n}/observations"), suite.observation(), seen));
            arrays.push((format!("{n}/actions"), suite.action(), done));
        }
        let views: Result<Vec<_>, _> = (arrays.iter())
            .map(|(name, width, data)| {
                let shape = vec![data.len() / 4 / width, *width];
                TensorView::new(Dtype::F32, shape, data).map(|view| (name.as_str(), view))
            })
            .collect();
        let views = views.map_err(|error| failed(error.to_string()))?;
        let bytes =
            safetensors::serialize(views, None).map_err(|error| failed(error.to_string()))?;
        let aside = self.folder.join(unique_name("demonstrations"));
        fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&aside, bytes))
            .and_then(|()| fs::rename(&aside, &path))
            .map_err(|error| failed(error.to_string()))
    }

    fn path(&self, key: &str) -> PathBuf {
        let digest = Sha256::digest(key.as_bytes());
        let name: String = digest[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("demonstrations-{name}.safetensors"))
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tabletop::SUITE;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tilp-cache-{name}-{}", std::process::id()))
    }

    fn set(rows: usize) -> Demonstrations {
        Demonstrations {
            observations: (0..rows * SUITE.observation()).map(|i| i as f32).collect(),
            actions: (0..rows * SUITE.action()).map(|i| -(i as f32)).collect(),
        }
    }

    #[test]
    fn demonstrations_come_back_as_they_were() {
        let cache = Cache::new(&folder("back"));
        let sets = vec![set(3), set(0), set(2)];
        cache.write("key", &sets, &SUITE).unwrap();
        assert_eq!(cache.read("key", 3, &SUITE), Some(sets));
        assert_eq!(cache.read("other", 3, &SUITE), None);
        assert_eq!(cache.read("key", 4, &SUITE), None);
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    #[test]
    fn a_damaged_file_is_no_file() {
        let cache = Cache::new(&folder("damaged"));
        cache.write("key", &[set(5)], &SUITE).unwrap();
        let bytes = fs::read(cache.path("key")).unwrap();
        for length in [0, 4, bytes.len() / 2, bytes.len() - 1] {
            fs::write(cache.path("key"), &bytes[..length]).unwrap();
            assert_eq!(cache.read("key", 1, &SUITE), None);
        }
        fs::remove_dir_all(&cache.folder).unwrap();
    }
}
