//! `tilp scenario`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Execution, Format};

/// `tilp scenario`.
#[derive(Args)]
pub(crate) struct Scenario {
    /// What to do.
    #[command(subcommand)]
    pub verb: ScenarioVerb,
}

const HEALTH: &str = "\
Criteria: health (expert, centralised training, random robot, base policy), stable, repeatable,
saturation, far, allocation (bandwidth, power and cut), participation (compression and schedule),
radio, cost, headroom. Criteria that need runs use ordinary runs of reference rules and published
methods, several at the same time. Runs and findings are kept: the same command, also with other
criteria, continues. The folder contains runs/POINT/METHOD-SEED, health.json and health.md.

Exit codes: 0 measured, with any verdict, 1 a run failed or a folder cannot be read or
written, 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1 after the
rounds in progress; checkpoints were written";

/// `tilp scenario health`.
#[derive(Args)]
#[command(after_help = HEALTH)]
pub(crate) struct Health {
    /// A built-in scenario or a TOML file
    #[arg(default_value = "default")]
    pub name: String,
    /// Override a value, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Criteria, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pub criteria: Vec<String>,
    /// Tuning seeds: `1000..1010` or `1000,1003`; criteria that need fewer use the first ones
    #[arg(long, default_value = "1000..1010")]
    pub seeds: String,
    /// Steps of centralised training; 0 skips it
    #[arg(long, default_value_t = 20_000)]
    pub steps: usize,
    /// A first look in a folder of its own: at most 100 rounds, two seeds, few episodes
    #[arg(long)]
    pub quick: bool,
    /// Number of runs at the same time [default: one per core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Folder for runs and findings [default: studies/health-SCENARIO-HASH]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Checkpoints and output.
    #[command(flatten)]
    pub execution: Execution,
}

/// Verbs of `tilp scenario`.
#[derive(Subcommand)]
pub(crate) enum ScenarioVerb {
    /// List the built-in scenarios
    List {
        /// How to print the result
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Print a scenario with all its keys, as TOML
    Show {
        /// A built-in scenario or a TOML file
        name: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Check every value of a scenario and every file that it names.
    ///
    /// Prints the terminals of each task and the radio regime, and warns where a table of shares was
    /// merged with that of the scenario it extends.
    Check {
        /// A TOML file or a built-in scenario
        file: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Seed of the cell that is described
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Print the JSON schema of a scenario
    Schema,
    /// Measure whether good and bad decisions lead to different results in a scenario: every
    /// criterion, its required value and the measured value
    Health(Health),
    /// Compare rapier and MuJoCo on the same robot cells: expert, base policy, trajectories.
    ///
    /// Needs a program built with `--features mujoco`. Fails with exit code 1 if the expert succeeds in
    /// less than 95 % of all episodes of an engine, or in less than 80 % of the episodes of a task.
    Engines {
        /// A built-in scenario or a TOML file
        #[arg(default_value = "default")]
        name: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Seed of the cells and their episodes
        #[arg(long, default_value_t = 1000)]
        seed: u64,
        /// Robot cells of each task
        #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..))]
        cells: u16,
        /// Episodes in each cell
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
        episodes: u16,
        /// How to print the result
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Draw one expert episode of every task as a strip of frames, SVG
    Draw {
        /// File to write
        #[arg(long)]
        out: PathBuf,
        /// Physics engine: rapier or mujoco
        #[arg(long, default_value = "rapier")]
        engine: String,
    },
}
