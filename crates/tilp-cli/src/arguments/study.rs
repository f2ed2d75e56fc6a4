//! `tilp compare`, `tilp ablate` and `tilp sweep`.

use std::path::PathBuf;

use clap::Args;

const STUDY: &str = "\
A study is a list of runs (point x method x seed x replicate). The same command continues a study: finished
runs are kept, interrupted runs are resumed, failed runs are repeated. A failed run does not stop the others.
With more methods, seeds, values or replicates the study grows by the missing runs. Shard i of N
executes every N-th run, beginning with the i-th, in the same folder or in one of its own; `tilp report`
joins the folders. The folder contains study.json, scenario.toml, runs/POINT/METHOD-SEED[-rK], runs.jsonl
(one line per finished run), the tables runs.csv, table.csv, table.md and table.tex, aims.md, the
figures as SVG, PNG, PDF and CSV, and report.html.

Exit codes: 0 done, 1 a run failed or a folder cannot be read or written, 2 bad usage or bad
input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1 after the rounds in progress;
checkpoints were written";

/// Arguments of all studies.
#[derive(Args)]
pub(crate) struct Study {
    /// A built-in scenario or a TOML file
    #[arg(default_value = "default")]
    pub scenario: String,
    /// Seeds: `0..5` (0 to 4) or `0,2,7`
    #[arg(long)]
    pub seeds: Option<String>,
    /// Rounds of every run
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// A first look in a folder of its own: at most 100 rounds, measured every 10, and seed 0, unless
    /// other flags set them. Rankings after 100 rounds differ from those after 1000
    #[arg(long)]
    pub quick: bool,
    /// Number of runs at the same time [default: one per core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Execute only share i of N, counted from 0
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Folder of the study [default: studies/QUESTION-SCENARIO, with --quick
    /// studies/QUESTION-SCENARIO-quick]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// Print only the result
    #[arg(long)]
    pub quiet: bool,
}

/// `tilp compare`.
#[derive(Args)]
#[command(after_help = STUDY)]
pub(crate) struct Compare {
    /// Arguments of all studies.
    #[command(flatten)]
    pub study: Study,
    /// Methods, separated by commas. `main` stands for tilp, the eight with +guard and the reference
    /// rows, `published` for the eight as published, `compressed` for the eight with +guard and a
    /// fixed q. exec:PROGRAM is a program of your own [default: main]
    #[arg(long, value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Number of runs of every method and seed with different orders of minibatches; tables pool them
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub replicates: u64,
    /// After the comparison, TiLP on the budget that each of these rivals used, and each rival on the
    /// budget that TiLP used, seed by seed, in the folder `equal-budget` of the study. Without
    /// --methods, TiLP and the rivals are compared
    #[arg(long, value_name = "RIVALS", value_delimiter = ',')]
    pub equal_budget: Vec<String>,
    /// Budgets that are made equal, separated by commas: seconds, joules, or all (seconds, joules and
    /// bytes) [default: seconds,joules,all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', requires = "equal_budget")]
    pub budgets: Vec<String>,
}

/// `tilp ablate`.
#[derive(Args)]
#[command(after_help = STUDY)]
pub(crate) struct Ablate {
    /// Arguments of all studies.
    #[command(flatten)]
    pub study: Study,
}

/// `tilp sweep`.
#[derive(Args)]
#[command(after_help = STUDY)]
pub(crate) struct Sweep {
    /// retention, split, terminals, snr, mass, bandwidth, late, payload or hidden
    pub axis: String,
    /// Arguments of all studies.
    #[command(flatten)]
    pub study: Study,
    /// Values, separated by commas [default: those of the figure]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub values: Vec<String>,
    /// Methods, separated by commas [default: tilp, and hsfl, asfl and fedsl with +guard; others for
    /// `late` and `hidden`]
    #[arg(long, value_delimiter = ',')]
    pub methods: Vec<String>,
}
