//! Private data for terminals on machines that cannot make demonstrations themselves.

use std::path::PathBuf;

use tilp::round::TerminalId;
use tilp::scenario::{Cache, Parts, World, assemble_world};

use super::{ServeError, Testbed};
use crate::terminal::TerminalData;

/// Puts the run of a testbed together, with all terminals in this process.
pub(super) fn assembled(
    testbed: &Testbed,
    clock: Option<tilp::allocate::Clock>,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Parts, ServeError> {
    let Testbed { scenario, method, seed, replicate, .. } = testbed;
    let seeds = tilp::scenario::Seeds { seed: *seed, replicate: *replicate };
    match assemble_world(scenario, method.clone(), seeds, clock, cache, progress)? {
        World::Robots(parts) => Ok(*parts),
        World::Profile(_) => Err(ServeError::NoRobots),
    }
}

/// Writes the data of the terminals that are processes, one file each. Returns the files.
pub fn write_data(
    testbed: &Testbed,
    cache: Option<&Cache>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<PathBuf>, ServeError> {
    let parts = assembled(testbed, None, cache, progress)?;
    let halves = parts.cell.learner();
    let architecture = halves.engine.model().architecture();
    let widths = (architecture.observation_width(), architecture.actions);
    let mut files = Vec::new();
    for &id in &testbed.terminals {
        let mut sets = halves.data.of(TerminalId(id)).into_iter();
        let Some((_, first)) = sets.next() else { continue };
        let data = sets.fold(TerminalData::constant(first, widths), |data, (round, set)| {
            data.then(round, set)
        });
        let path = testbed.data_file(id);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| ServeError::Io(folder.into(), error))?;
        }
        data.write(&path)?;
        files.push(path);
    }
    Ok(files)
}
