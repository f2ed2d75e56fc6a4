//! What a run says of itself: manifest, scenario and summary, and whether it is going on.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tilp::record::event::Header;

use crate::bounded::{self, open, text};
use crate::discover::Place;

/// A run whose rows were written so lately is taken as going on, where its lock cannot be seen.
const LATELY: Duration = Duration::from_secs(10);

/// What is going on in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// A process works in it.
    Running,
    /// It is complete.
    Finished,
    /// It is not complete, and no process works in it.
    #[default]
    Stopped,
}

impl State {
    const ALL: [Self; 3] = [Self::Running, Self::Finished, Self::Stopped];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What a run says of itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    stamps: [Option<SystemTime>; 4],
    /// `manifest.json`.
    pub manifest: Value,
    /// `scenario.toml`.
    pub scenario: Value,
    /// `summary.json`.
    pub summary: Value,
    /// What is going on.
    pub state: State,
    /// Last round in `rounds.csv`, with its clock, energy and last success.
    pub last: Value,
}

impl About {
    /// Reads the files that have changed.
    pub fn refresh(&mut self, path: &Path) {
        let names = ["manifest.json", "scenario.toml", "summary.json", "rounds.csv"];
        let modified =
            |name: &str| bounded::about(&path.join(name)).and_then(|one| one.modified().ok());
        let stamps = names.map(modified);
        if stamps[0] != self.stamps[0] {
            self.manifest = json(&path.join(names[0]));
        }
        if stamps[1] != self.stamps[1] {
            let text = text(&path.join(names[1])).unwrap_or_default();
            let table = toml::from_str::<toml::Table>(&text).ok();
            self.scenario =
                table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or_default();
        }
        if stamps[2] != self.stamps[2] {
            self.summary = json(&path.join(names[2]));
        }
        if stamps[3] != self.stamps[3] {
            self.last = last_row(&path.join(names[3]));
        }
        self.stamps = stamps;
        self.state = match (self.summary.is_object(), is_locked(path)) {
            (true, _) => State::Finished,
            (false, true) => State::Running,
            (false, false) => {
                let age = stamps[3].and_then(|stamp| stamp.elapsed().ok());
                if age.is_some_and(|age| age < LATELY) { State::Running } else { State::Stopped }
            }
        };
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.manifest.get(name).and_then(Value::as_str)
    }

    /// What a list shows.
    pub fn entry(&self, place: &Place) -> Value {
        json!({
            "id": place.id,
            "name": place.name(),
            "study": place.study,
            "method": self.text("method"),
            "scenario": self.text("scenario"),
            "seed": self.manifest.get("seed"),
            "replicate": self.manifest.get("replicate"),
            "branch": self.manifest.get("branch"),
            "state": self.state.name(),
            "rounds": self.scenario.get("rounds"),
            "last": self.last,
            "success_final": self.summary.get("success_final"),
        })
    }

    /// What a page needs to know of the run beside its rows.
    pub fn details(&self, header: Option<&Header>) -> Value {
        let of = |part: &str| self.scenario.get(part).cloned().unwrap_or_default();
        let tasks = header.map(|header| header.tasks.clone());
        json!({
            "manifest": self.manifest,
            "limits": of("limits"),
            "cell": of("cell"),
            "evaluation": of("evaluation"),
            "rounds": of("rounds"),
            "cuts": self.scenario.pointer("/model/cuts"),
            "tasks": tasks.unwrap_or_default(),
            "events": of("events"),
        })
    }
}

fn json(path: &Path) -> Value {
    let text = text(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Cells of the last complete row of `rounds.csv` that a list shows.
fn last_row(path: &Path) -> Value {
    use std::io::{Read, Seek, SeekFrom};
    const END: u64 = 64 << 10;
    let read = || -> std::io::Result<(String, String)> {
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        let mut start = vec![0; 2048.min(length as usize)];
        file.read_exact(&mut start)?;
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut end = Vec::new();
        file.take(END).read_to_end(&mut end)?;
        Ok((String::from_utf8_lossy(&start).into(), String::from_utf8_lossy(&end).into()))
    };
    let Ok((start, end)) = read() else { return Value::Null };
    let names: Vec<&str> = start.lines().next().unwrap_or_default().split(',').collect();
    let whole = end.rfind('\n').map_or("", |at| &end[..at]);
    let mut rows = whole.lines().rev().map(|line| line.split(',').collect::<Vec<_>>());
    let of = |row: &[&str], name: &str| -> Option<f64> {
        let place = names.iter().position(|own| *own == name)?;
        row.get(place)?.parse().ok().filter(|value: &f64| value.is_finite())
    };
    let Some(last) = rows.next().filter(|row| row.len() == names.len()) else { return Value::Null };
    let measured = [last.clone()].into_iter().chain(rows);
    let success = measured.filter_map(|row| of(&row, "report_success")).next();
    let mut shown = json!({ "success": success });
    let columns =
        ["round", "clock_s", "latency_s", "energy_j", "air_bytes", "n_scheduled", "n_late", "loss"];
    for name in columns {
        shown[name] = json!(of(&last, name));
    }
    shown
}

/// Whether a process holds the folder's lock, where the system says so without asking for the lock:
/// to ask for it could keep a run from starting.
#[cfg(target_os = "linux")]
fn is_locked(path: &Path) -> bool {
    use std::os::linux::fs::MetadataExt;
    let Ok(locks) = fs::read_to_string("/proc/locks") else { return false };
    let Ok(about) = fs::metadata(path.join(".lock")) else { return false };
    let (device, inode) = (about.st_dev(), about.st_ino());
    // Major and minor number as the kernel packs them.
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    let own = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().any(|line| line.split_whitespace().any(|word| word == own))
}

#[cfg(not(target_os = "linux"))]
fn is_locked(_path: &Path) -> bool {
    false
}
