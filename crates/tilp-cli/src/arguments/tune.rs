//! `tilp tune`.

use std::path::PathBuf;

use clap::Args;

use super::Execution;

const TUNE: &str = "\
Every rate is run on every seed. The runs are kept: the same command, also with more rates or seeds,
continues. A rate is stable if none of its runs is more than 5 points of success below the base policy
at a measurement in rounds 50 to 200, ends more than 15 points below its own best measurement, or
diverges. The stable rate with the best final success is selected. Runs are measured every 50 rounds on
16 episodes per terminal and at the end on 32, unless --set changes that. The folder contains
runs/RATE/METHOD-SEED, tune.json and tune.md.

Exit codes: 0 measured, also if runs diverged or no rate is stable, 1 a run failed otherwise or a
folder cannot be read or written, 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM
and SIGUSR1 after the rounds in progress; checkpoints were written";

/// `tilp tune`.
#[derive(Args)]
#[command(after_help = TUNE)]
pub(crate) struct Tune {
    /// The method
    pub method: String,
    /// A built-in scenario or a TOML file
    #[arg(default_value = "default")]
    pub scenario: String,
    /// Learning rates, separated by commas: SERVER/TERMINAL, or one number for both [default: 1/8, 1/4,
    /// 1/2, 1 and 2 times learning.server_rate and learning.terminal_rate]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub rates: Vec<String>,
    /// Tuning seeds, 1000 or more: `1000..1002` or `1000,1003`
    #[arg(long, default_value = "1000..1002")]
    pub seeds: String,
    /// Rounds of every run
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Number of runs at the same time [default: one per core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Folder for runs and findings [default: studies/tune-SCENARIO-METHOD-HASH]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Checkpoints and output.
    #[command(flatten)]
    pub execution: Execution,
}
