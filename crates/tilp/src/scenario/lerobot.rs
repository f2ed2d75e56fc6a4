//! LeRobotDatasets as demonstrations of listed terminals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::load::Loaded;
use super::terminals;
use super::{Scenario, ScenarioError};
use crate::record::parquet_guard::{lies_inside, pages_are_known};
use crate::tasks::{Demonstrations, Suite};

/// Names of the columns.
const STATE: &str = "observation.state";
const ACTION: &str = "action";
const EPISODE: &str = "episode_index";
/// Most numbers in a dataset.
const MOST_NUMBERS: u64 = 1 << 30;

/// `meta/info.json`, as far as it is used.
#[derive(Deserialize)]
struct Info {
    codebase_version: String,
    total_frames: u64,
    features: std::collections::BTreeMap<String, Feature>,
}

#[derive(Deserialize)]
struct Feature {
    dtype: String,
    shape: Vec<u64>,
}

/// Puts the digest of every data set that a scenario names into it, so that the hash of the scenario covers
/// the data.
pub(super) fn note_digests(loaded: &mut Loaded) -> Result<(), ScenarioError> {
    let Loaded { raw, place, folder } = loaded;
    for (n, row) in raw.terminals.iter_mut().enumerate() {
        if !row.data.is_empty() && row.data_sha256.is_empty() {
            let found = digest(&folder.join(&row.data));
            row.data_sha256 = found.map_err(|reason| wrong(n, "data", &reason, place))?;
        }
    }
    Ok(())
}

/// The demonstrations of listed terminals that have data of their own: place of the terminal, and its
/// episodes.
pub(super) fn imported(
    scenario: &Scenario,
    suite: &Suite,
) -> Result<Vec<(usize, Vec<Demonstrations>)>, ScenarioError> {
    let mut all = Vec::new();
    for (n, row) in terminals::with_data(&scenario.raw) {
        let path = PathBuf::from(&row.data);
        let refused = |field: &str, reason: String| wrong(n, field, &reason, &scenario.place);
        let found = digest(&path).map_err(|reason| refused("data", reason))?;
        if found != row.data_sha256 {
            let expected = format!("{found} in {}, expected the data as it was", path.display());
            return Err(refused("data_sha256", expected));
        }
        let episodes = read(&path, suite).map_err(|reason| refused("data", reason))?;
        let [first, end] = row.data_episodes.unwrap_or([0, episodes.len() as u64]);
        let Some(own) = episodes.get(first as usize..end as usize) else {
            let reason = format!("{first} to {end} of {} episodes", episodes.len());
            return Err(refused("data_episodes", reason));
        };
        all.push((n, own.to_vec()));
    }
    Ok(all)
}

fn wrong(n: usize, field: &str, reason: &str, place: &str) -> ScenarioError {
    let field = format!("terminals[{n}].{field}");
    ScenarioError::Field { field, reason: reason.to_owned(), place: place.to_owned() }
}

/// Whether a text can be a digest.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Names of the tables of frames, in order.
fn tables(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable =
        |path: &Path, error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let entries = |path: &Path, kind: &str| -> Result<Vec<PathBuf>, String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
            let entry = entry.map_err(|error| unreadable(path, error))?.path();
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(kind) {
                found.push(entry);
            }
        }
        found.sort();
        Ok(found)
    };
    let mut all = Vec::new();
    for chunk in entries(&folder.join("data"), "chunk-")? {
        let files = entries(&chunk, "file-")?;
        all.extend(
            files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "parquet")),
        );
    }
    if all.is_empty() {
        let said = format!("no data/chunk-*/file-*.parquet in {}", folder.display());
        return Err(said + ", expected a LeRobotDataset of version 3");
    }
    Ok(all)
}

/// SHA-256 over the description and all tables of frames.
fn digest(folder: &Path) -> Result<String, String> {
    let mut hash = Sha256::new();
    let info = folder.join("meta/info.json");
    for path in std::iter::once(info).chain(tables(folder)?) {
        let bytes =
            fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The episodes of a dataset whose features are those of the suite.
fn read(folder: &Path, suite: &Suite) -> Result<Vec<Demonstrations>, String> {
    let total = check_info(&folder.join("meta/info.json"), suite)?;
    let mut episodes: Vec<(i64, Demonstrations)> = Vec::new();
    for path in tables(folder)? {
        let named = |error: String| format!("{}: {error}", path.display());
        read_table(&path, suite, &mut episodes).map_err(named)?;
    }
    let frames: usize = episodes.iter().map(|(_, one)| one.actions.len() / suite.action()).sum();
    if frames as u64 != total {
        return Err(format!("{frames} frames, expected total_frames = {total} of meta/info.json"));
    }
    Ok(episodes.into_iter().map(|(_, episode)| episode).collect())
}

/// Checks the description and returns the number of frames.
fn check_info(path: &Path, suite: &Suite) -> Result<u64, String> {
    let text =
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let info: Info =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if !info.codebase_version.starts_with("v3.") {
        let found = info.codebase_version;
        return Err(format!(
            "codebase_version = {found}, expected v3: LeRobot converts older ones"
        ));
    }
    for (name, width) in [(STATE, suite.observation()), (ACTION, suite.action())] {
        let found = info.features.get(name).map(|one| (one.dtype.as_str(), &one.shape[..]));
        let is_real = |kind: &str| kind == "float32" || kind == "float64";
        match found {
            Some((kind, [shape])) if is_real(kind) && *shape == width as u64 => {}
            found => {
                let found = found.map_or("missing".to_owned(), |(kind, shape)| {
                    format!("{kind} of shape {shape:?}")
                });
                let expected = format!("float32 of shape [{width}] as in suite {}", suite.name);
                return Err(format!("feature {name} = {found}, expected {expected}"));
            }
        }
    }
    let numbers = info.total_frames.saturating_mul(suite.observation() as u64);
    if numbers > MOST_NUMBERS {
        let most = MOST_NUMBERS / suite.observation() as u64;
        return Err(format!("total_frames = {}, expected at most {most}", info.total_frames));
    }
    Ok(info.total_frames)
}

/// Appends the frames of one table to the episodes.
fn read_table(
    path: &Path,
    suite: &Suite,
    episodes: &mut Vec<(i64, Demonstrations)>,
) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let corrupt = |error: ParquetError| format!("truncated or corrupt ({error})");
    let reader = SerializedFileReader::new(file).map_err(corrupt)?;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(corrupt)?;
        let table = Group { group: &*group, length };
        let states = table.lists(STATE, suite.observation())?;
        let actions = table.lists(ACTION, suite.action())?;
        let indices = table.whole(EPISODE)?;
        let rows = states.chunks(suite.observation()).zip(actions.chunks(suite.action()));
        for (index, (state, action)) in indices.into_iter().zip(rows) {
            if episodes.last().is_none_or(|(last, _)| *last != index) {
                episodes.push((index, Demonstrations::default()));
            }
            if let Some((_, episode)) = episodes.last_mut() {
                episode.observations.extend(state);
                episode.actions.extend(action);
            }
        }
    }
    Ok(())
}

/// A group of rows.
struct Group<'a> {
    group: &'a dyn RowGroupReader,
    /// Bytes of the file.
    length: u64,
}

impl Group<'_> {
    fn n_rows(&self) -> usize {
        self.group.metadata().num_rows().max(0) as usize
    }

    /// The reader of a column after its pages were checked.
    fn column(&self, name: &str) -> Result<ColumnReader, String> {
        let about = self.group.metadata();
        let is_named = |place: &usize| about.column(*place).column_path().parts()[0] == name;
        let place = (0..about.num_columns()).find(is_named);
        let place = place.ok_or_else(|| format!("no column {name}"))?;
        let corrupt = |error: ParquetError| format!("column {name}: corrupt ({error})");
        if !lies_inside(about.column(place), self.length) {
            return Err(format!("column {name}: outside the file"));
        }
        let pages = self.group.get_column_page_reader(place).map_err(corrupt)?;
        if !pages_are_known(pages).map_err(corrupt)? {
            return Err(format!("column {name}: an encoding that LeRobot does not write"));
        }
        self.group.get_column_reader(place).map_err(corrupt)
    }

    /// A column of lists with this many finite numbers each.
    fn lists(&self, name: &str, width: usize) -> Result<Vec<f32>, String> {
        let corrupt = |error: ParquetError| format!("column {name}: corrupt ({error})");
        let (mut defined, mut repeated) = (Vec::new(), Vec::new());
        let n_rows = self.n_rows();
        let values: Vec<f32> = match self.column(name)? {
            ColumnReader::FloatColumnReader(mut reader) => {
                let mut values = Vec::new();
                let levels = (Some(&mut defined), Some(&mut repeated));
                reader.read_records(n_rows, levels.0, levels.1, &mut values).map_err(corrupt)?;
                values
            }
            ColumnReader::DoubleColumnReader(mut reader) => {
                let mut values = Vec::new();
                let levels = (Some(&mut defined), Some(&mut repeated));
                reader.read_records(n_rows, levels.0, levels.1, &mut values).map_err(corrupt)?;
                values.into_iter().map(|value| value as f32).collect()
            }
            _ => return Err(format!("column {name} is of another type than real numbers")),
        };
        let begins = |(n, level): (usize, &i16)| (*level == 0) == (n % width == 0);
        let is_regular = repeated.len() == values.len() && repeated.iter().enumerate().all(begins);
        if values.len() != n_rows * width || !is_regular {
            return Err(format!("column {name}: rows of another length than {width}"));
        }
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(format!("column {name} = {value}, expected finite numbers")),
            None => Ok(values),
        }
    }

    /// A column with one whole number in each row.
    fn whole(&self, name: &str) -> Result<Vec<i64>, String> {
        let corrupt = |error: ParquetError| format!("column {name}: corrupt ({error})");
        let ColumnReader::Int64ColumnReader(mut reader) = self.column(name)? else {
            return Err(format!("column {name} is of another type than int64"));
        };
        let (mut values, mut defined) = (Vec::new(), Vec::new());
        let n_rows = self.n_rows();
        reader.read_records(n_rows, Some(&mut defined), None, &mut values).map_err(corrupt)?;
        match values.len() == n_rows {
            true => Ok(values),
            false => Err(format!("column {name}: {} of {n_rows} values", values.len())),
        }
    }
}
