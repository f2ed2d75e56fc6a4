//! Energy counters of the processor: Linux's powercap files (RAPL).

use std::fs;
use std::path::{Path, PathBuf};

use super::kinds::MeterAnswer;

/// Path of the counters in Linux.
const ROOT: &str = "/sys/class/powercap";

/// Why there is no energy to read.
#[derive(Debug, thiserror::Error)]
pub enum RaplError {
    /// The machine shows no counter.
    #[error("{} has no energy counter of a package, expected intel-rapl:0/energy_uj or the like", .0.display())]
    None(PathBuf),
    /// A counter cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Counter {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// The counters of all processor packages.
#[derive(Clone, Debug)]
pub struct Rapl {
    packages: Vec<Package>,
}

#[derive(Clone, Debug)]
struct Package {
    counter: PathBuf,
    /// The counter starts again after this many microjoules.
    range: u64,
    last: u64,
    total: u64,
}

impl Rapl {
    /// Opens the counters of this machine.
    pub fn open() -> Result<Self, RaplError> {
        Self::open_at(Path::new(ROOT))
    }

    /// Opens the counters below a folder.
    pub fn open_at(root: &Path) -> Result<Self, RaplError> {
        let entries = fs::read_dir(root).map_err(|_| RaplError::None(root.to_owned()))?;
        let name = |entry: fs::DirEntry| entry.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.ok()?)).collect();
        names.sort();
        // `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it that would count twice.
        let is_package = |name: &&String| name.matches(':').count() == 1;
        let mut packages = Vec::new();
        for name in names.iter().filter(is_package) {
            let folder = root.join(name);
            // Parts of the whole board (`psys`) contain the packages.
            let title = fs::read_to_string(folder.join("name")).unwrap_or_default();
            if !title.trim().starts_with("package") {
                continue;
            }
            let counter = folder.join("energy_uj");
            let (last, range) = (read(&counter)?, read(&folder.join("max_energy_range_uj"))?);
            packages.push(Package { counter, range, last, total: 0 });
        }
        if packages.is_empty() {
            return Err(RaplError::None(root.to_owned()));
        }
        Ok(Self { packages })
    }

    /// Energy since the counters were opened. Must be read before a counter went round twice, which
    /// takes minutes.
    pub fn read(&mut self) -> Result<MeterAnswer, RaplError> {
        for package in &mut self.packages {
            let now = read(&package.counter)?;
            let used = match now.checked_sub(package.last) {
                Some(used) => used,
                None => (package.range.saturating_sub(package.last)).saturating_add(now),
            };
            package.total = package.total.saturating_add(used);
            package.last = now;
        }
        let microjoules: u64 = self.packages.iter().map(|package| package.total).sum();
        let compute_j = microjoules as f64 * 1e-6;
        Ok(MeterAnswer { compute_j, radio_j: None, modelled: false })
    }
}

fn read(path: &Path) -> Result<u64, RaplError> {
    let wrong = |reason: String| RaplError::Counter { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    text.trim().parse().map_err(|_| wrong("it is no number".into()))
}
