//! `tilp branch`.

use std::path::PathBuf;

use tilp::experiment::{Branch, Ended, RunSpec};
use tilp::scenario::Scenario;

use super::run::{failure, identified, print_result};
use crate::arguments::Branch as Arguments;
use crate::clock::WallTime;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::signals::Signals;

/// Continues a run from one of its rounds, with changed values.
pub(crate) fn branch(arguments: Arguments) -> Result<(), Failure> {
    let (parent, _) = identified(&arguments.folder)?;
    let last = parent.scenario.rounds();
    if arguments.round >= last && parent.scenario.budget().is_none() {
        return Err(Failure::input(format!(
            "--round {}, expected 1 to {}: the run has {last} rounds",
            arguments.round,
            last - 1
        )));
    }
    let name = arguments.folder.join("scenario.toml").display().to_string();
    let scenario = Scenario::load(&name, &arguments.overrides).map_err(Failure::input)?;
    let out = arguments.out.clone().unwrap_or_else(|| {
        let name = arguments.folder.file_name().map_or("run".into(), |name| name.to_string_lossy());
        let name = format!("{name}-branch-{}", arguments.round);
        arguments.folder.parent().map_or_else(|| PathBuf::from(&name), |parent| parent.join(&name))
    });
    let child = RunSpec {
        scenario,
        checkpoint_every: arguments.execution.checkpoint_every,
        planner_states: arguments.planner.planner_states,
        ..parent.clone()
    };
    let branch = Branch {
        parent,
        folder: arguments.folder,
        round: arguments.round,
        child,
        overrides: arguments.overrides,
    };
    let signals = Signals::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(arguments.execution.quiet, Some(signals.clone()));
    let ended = branch.run(&out, super::cache().as_ref(), &WallTime::start(), &mut progress);
    progress.clear();
    match ended.map_err(|error| failure(error, false))? {
        Ended::Interrupted(round) if round < branch.round => {
            let line = format!("stopped in round {round}, before the branch; nothing was kept");
            Err(Failure::signal(signals.asked().unwrap_or(2), line))
        }
        ended => print_result(ended, &branch.child, &out, arguments.execution.format, &signals),
    }
}
