//! `tilp verify`.

use std::fs;
use std::path::{Path, PathBuf};

use tilp::experiment::{Ended, RunSpec, first_difference, run_single, verify as check};
use tilp::record::{RunFolder, unique_name};
use tilp::scenario::Registry;

use super::run::{failure, identified};
use crate::arguments::Verify;
use crate::clock::WallTime;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::signals::Signals;

/// Checks a finished run and, if asked, repeats it.
pub(crate) fn verify(arguments: Verify) -> Result<(), Failure> {
    let path = &arguments.folder;
    let (spec, folder) = identified(path)?;
    if arguments.rerun && !folder.has_events() {
        let line = "format is 1, expected 2: a run of the first version cannot be repeated exactly";
        return Err(Failure::input(format!("{}: {line}", path.join("manifest.json").display())));
    }
    let verdict = check(&folder, &Registry::builtin()).map_err(Failure::input)?;
    if let Some(difference) = verdict.difference {
        return Err(Failure::failed(format!("{}: {difference}", path.display())));
    }
    let (method, scenario) = (spec.method.name(), spec.scenario.name());
    let mut lines =
        vec![format!("{}: {method} on {scenario}, seed {}", path.display(), spec.seeds())];
    lines.extend(verdict.checked.iter().map(|line| format!("  same         {line}")));
    lines.extend(verdict.unchecked.iter().map(|line| format!("  not checked  {line}")));
    if arguments.rerun {
        let n_files = repeated(&spec, path, arguments.quiet)?;
        lines.push(format!("  same         all {n_files} files of a repetition, byte for byte"));
    }
    output::print(&lines.join("\n"))
}

/// A folder that is removed in any case.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the same again and compares; how many files are the same.
fn repeated(spec: &RunSpec, path: &Path, quiet: bool) -> Result<usize, Failure> {
    let place = Temporary(std::env::temp_dir().join(unique_name("tilp-verify")));
    let folder = RunFolder::create(&place.0).map_err(Failure::failed)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(quiet, Some(signals.clone()));
    let cache = super::cache();
    let time = WallTime::start();
    let ended = run_single(spec, folder, false, cache.as_ref(), &time, &mut progress);
    progress.clear();
    match ended.map_err(|error| failure(error, true))? {
        Ended::Finished(_) => {}
        Ended::Interrupted(_) => {
            let line = "stopped before the repetition was complete";
            return Err(Failure::signal(signals.asked().unwrap_or(2), line));
        }
    }
    let (n_files, difference) = first_difference(path, &place.0).map_err(Failure::failed)?;
    match difference {
        None => Ok(n_files),
        Some(line) => Err(Failure::failed(format!("{}: {line}{}", path.display(), made_by(path)))),
    }
}

/// Which other program made the run, if it was another one.
fn made_by(path: &Path) -> String {
    let about = super::run::about();
    let manifest = RunFolder::open(path).and_then(|folder| folder.read_manifest());
    let commit = manifest.ok().and_then(|it| it["commit"].as_str().map(str::to_owned));
    match commit {
        Some(commit) if about["commit"] != *commit => {
            let ours = about["commit"].as_str().unwrap_or_default();
            format!(" (made by commit {commit}, repeated by {ours})")
        }
        _ => String::new(),
    }
}
