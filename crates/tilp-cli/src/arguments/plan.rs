//! `tilp plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

const PLAN_EXAMPLE: &str = "\
An observation is JSON of at most 16 MiB; docs/reference/observation.md lists its fields. Example:
  tilp plan --example tiny > observation.json
  tilp plan tiny < observation.json";

/// `tilp plan`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = PLAN_EXAMPLE)]
pub(crate) struct Plan {
    /// Another task than one plan.
    #[command(subcommand)]
    pub verb: Option<PlanVerb>,
    /// A built-in scenario or a TOML file: limits, policy, nominal hardware [default: default]
    pub scenario: Option<String>,
    /// Seed of the nominal hardware and of the search [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Plan with the twin, the actor and the critic that a run of tilp has learned
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "seed"])]
    pub from: Option<PathBuf>,
    /// Time limit of the search in milliseconds; 0 uses the actor alone
    #[arg(long, value_name = "M")]
    pub budget_ms: Option<f64>,
    /// Print the observation of the first round, or of the next after --from, instead of a plan
    #[arg(long)]
    pub example: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

const PLAN_SERVE: &str = "\
Every line on standard input is a JSON object with a `type`: setup, observe, outcome or end. Every line
except `end` gets one line as answer: method, decision with reasons, learned, or error. A line that gets
an error changes nothing. The state is written to disk after every outcome, and every observation before
its decision is printed. The server can therefore be killed at any moment and started again, and a line
that is sent twice gets the same answer. docs/reference/exchange.md lists all fields.

Exit codes: 0 the input ended, 1 failed on the way, 2 bad usage or bad input";

/// Verbs of `tilp plan`.
#[derive(Subcommand)]
pub(crate) enum PlanVerb {
    /// Plan round after round for an external base station: observations and outcomes as JSON lines on
    /// standard input, decisions with reasons on standard output, state on disk
    Serve(PlanServe),
    /// Print the JSON schema of the lines that `tilp plan serve` and methods `exec:PROGRAM` exchange
    Schema,
}

/// `tilp plan serve`.
#[derive(Args)]
#[command(after_help = PLAN_SERVE)]
pub(crate) struct PlanServe {
    /// A built-in scenario or a TOML file: limits, policy, nominal hardware [default: default]
    pub scenario: Option<String>,
    /// Seed of the nominal hardware and of the search [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the learned state; a server that is started again with it continues
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Start from the learned state of a run of tilp, if the state folder is empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "seed"])]
    pub from: Option<PathBuf>,
    /// Time limit of the search in milliseconds; 0 uses the actor alone
    #[arg(long, value_name = "M")]
    pub budget_ms: Option<f64>,
}
