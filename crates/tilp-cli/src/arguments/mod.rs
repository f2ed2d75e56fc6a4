//! The command line: one file for each group of verbs.

mod adapter;
mod completions;
mod dash;
mod enrol;
mod export;
mod plan;
mod policy;
mod profile;
mod proxy;
mod report;
mod run;
mod scenario;
mod study;
mod testbed;
mod tune;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use adapter::{
    ActuatorTarget, Adapter, AdapterKind, AdapterVerb, MeterSource, ProbeSource,
};
pub(crate) use completions::{Completions, Shell};
pub(crate) use dash::{Channel, Dash};
pub(crate) use enrol::{Enrol, EnrolVerb};
pub(crate) use export::{Export, ExportVerb};
pub(crate) use plan::{Plan, PlanServe, PlanVerb};
pub(crate) use policy::{Policy, PolicyVerb, Serve};
pub(crate) use profile::{ModelFile, OptimiserKind, Profile, ProfileVerb};
pub(crate) use proxy::{Advance, Proxy};
pub(crate) use report::{Report, Twin, Verify};
pub(crate) use run::{Branch, Run};
pub(crate) use scenario::{Health, Scenario, ScenarioVerb};
pub(crate) use study::{Ablate, Compare, Study, Sweep};
pub(crate) use testbed::{Evaluator, LogFormat, Reach, Server, Terminal, Testbed, TestbedVerb};
pub(crate) use tune::Tune;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed on the way
  2    bad usage or bad input
  130  stopped by Ctrl-C after the round in progress; a checkpoint was written
  143  stopped by SIGTERM, likewise
  138  stopped by SIGUSR1, likewise

Environment:
  TILP_CACHE         folder for demonstrations (default: the user's cache folder)
  RAYON_NUM_THREADS  threads (default: all cores); results do not depend on it";

/// Task-success-oriented planning for federated split learning over a wireless cell.
#[derive(Parser)]
#[command(name = "tilp", version, about, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Train the robots' policy with one method on one scenario
    Run(Run),
    /// Compare methods on several seeds: the paper's main table
    Compare(Compare),
    /// Run tilp without each of its parts: the paper's table of ablations
    Ablate(Ablate),
    /// Run methods along an axis of the problem: the paper's figures
    Sweep(Sweep),
    /// Find the learning rates of a method: one grid, one budget, tuning seeds
    Tune(Tune),
    /// Write tables, figures and a page of studies, or a page of one run; shards of a study are joined
    Report(Report),
    /// Check a finished run: its metrics against its rows, and with --rerun its bytes against a
    /// repetition
    Verify(Verify),
    /// Replay a finished run through the twin: predicted against measured, with and without
    /// calibration
    Twin(Twin),
    /// Continue a run from one of its rounds, with changed values
    Branch(Branch),
    /// Show runs and studies in a browser, live: learning, cell, rounds and reasons
    Dash(Dash),
    /// Show a channel: gains, line of sight, how fast it changes, a map
    Channel(Channel),
    /// Plan one round for an observation on standard input, with reasons
    Plan(Plan),
    /// List, show, check and measure scenarios
    Scenario(Scenario),
    /// Run the base station of a testbed; terminals are processes that connect to it
    Server(Server),
    /// Run one terminal of a testbed: private data, front half of the policy, journal
    Terminal(Terminal),
    /// Run the evaluator of a testbed, which executes calibration episodes
    Evaluator(Evaluator),
    /// Start a whole testbed on this machine, or write the data of its terminals
    Testbed(Testbed),
    /// Pretrain a base policy, or serve a trained policy
    Policy(Policy),
    /// Enrol terminals and the evaluator of a testbed: keys, certificates, deny list
    Enrol(Enrol),
    /// Run a TCP proxy between terminals and server with the rates of a radio channel
    Proxy(Proxy),
    /// Run an adapter to equipment, or check one
    Adapter(Adapter),
    /// Measure this machine's speed and energy for a scenario, or the sizes and work of a model by cut
    Profile(Profile),
    /// Write demonstrations and trained policies in the formats of other programs
    Export(Export),
    /// Print a script that completes commands and flags in a shell
    Completions(Completions),
}

/// What every command that executes runs and prints one result takes.
#[derive(Args)]
pub(crate) struct Execution {
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print only the result
    #[arg(long)]
    pub quiet: bool,
}

/// How to print a result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for reading.
    Text,
    /// JSON for programs.
    Json,
}
