//! `tilp run` and `tilp branch`.

use std::path::PathBuf;

use clap::Args;

use super::{EXIT_CODES, Execution};

/// The end of `tilp run --help`: every method, and the exit codes.
fn run_help() -> String {
    let methods = tilp::scenario::methods();
    let line = |one: &tilp::scenario::Method| format!("  {:12} {}\n", one.name(), one.about());
    let lines: String = methods.iter().map(line).collect();
    format!(
        "Methods:\n{lines}  Published methods have the variants NAME+guard (terminals predicted late are left out),\n  \
         NAME+q0.9 (fixed compression) and NAME+guard+q0.9.\n\n{EXIT_CODES}"
    )
}

/// What `tilp run` and `tilp branch` take, and studies do not.
#[derive(Args)]
pub(crate) struct Planner {
    /// States of TiLP's planner to keep on the way. What if in `tilp dash` starts from the nearest
    /// one instead of repeating the run
    #[arg(long, value_name = "N", default_value_t = tilp::experiment::PLANNER_STATES, value_parser = clap::value_parser!(u64).range(..=100))]
    pub planner_states: u64,
}

/// `tilp run`.
#[derive(Args)]
#[command(after_help = run_help())]
pub(crate) struct Run {
    /// A built-in scenario or a TOML file [default: default]
    pub scenario: Option<String>,
    /// The method: one of those below, or `exec:PROGRAM`, a program of your own
    /// [default: tilp]
    #[arg(long)]
    pub method: Option<String>,
    /// Seed of the cell, the robots, the data and the training [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Replicate of the seed: only the order of minibatches differs [default: 0]
    #[arg(long, value_name = "K")]
    pub replicate: Option<u64>,
    /// Number of rounds, instead of the scenario's
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the results [default: runs/SCENARIO-METHOD-SEED, with a replicate
    /// runs/SCENARIO-METHOD-SEED-rK]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Resume an interrupted run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "method", "seed", "replicate", "rounds", "overrides", "out"])]
    pub resume: Option<PathBuf>,
    /// States of the planner.
    #[command(flatten)]
    pub planner: Planner,
    /// Checkpoints and output.
    #[command(flatten)]
    pub execution: Execution,
}

const BRANCH: &str = "\
Rounds 1 to T are repeated: from the run's checkpoint if it is not later than T, otherwise from the
start. The changes apply from round T + 1. Without changes the branch has the same bytes as the run.
The new folder is a normal run; its manifest names the branch.

Exit codes: 0 done, 1 failed on the way, 2 bad usage or bad input, 130, 143 and 138 stopped by
Ctrl-C, SIGTERM and SIGUSR1. A branch that is stopped before round T keeps nothing, later it keeps a
checkpoint";

/// `tilp branch`.
#[derive(Args)]
#[command(after_help = BRANCH)]
pub(crate) struct Branch {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// The last round that run and branch have in common
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..))]
    pub round: u64,
    /// Change a value of the scenario from the next round on, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the results [default: RUN-branch-T]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// States of the planner.
    #[command(flatten)]
    pub planner: Planner,
    /// Checkpoints and output.
    #[command(flatten)]
    pub execution: Execution,
}
