//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

// The path is written out because a test includes this file from another folder.
#[path = "arguments/adapter.rs"]
mod adapter;
#[path = "arguments/enrol.rs"]
mod enrol;
#[path = "arguments/profile.rs"]
mod profile;
#[path = "arguments/proxy.rs"]
mod proxy;

pub(crate) use adapter::{
    ActuatorTarget, Adapter, AdapterKind, AdapterVerb, MeterSource, ProbeSource,
};
pub(crate) use enrol::{Enrol, EnrolVerb};
pub(crate) use profile::{Profile, ProfileVerb};
pub(crate) use proxy::{Advance, Proxy};

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

const PLAN_EXAMPLE: &str = "\
An observation is JSON, at most 16 MiB of it; docs/reference/observation.md has its fields. To begin with:
  tilp plan --example tiny > observation.json
  tilp plan tiny < observation.json";

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
    #[command(after_help = run_help())]
    Run(Run),
    /// Run methods beside each other, on several seeds: the paper's main table
    #[command(after_help = STUDY)]
    Compare(Compare),
    /// Run tilp without each of its parts: the paper's table of ablations
    #[command(after_help = STUDY)]
    Ablate(Ablate),
    /// Run methods along an axis of the problem: the paper's figures
    #[command(after_help = STUDY)]
    Sweep(Sweep),
    /// Find the learning rates of a method: one grid, one budget, tuning seeds
    #[command(after_help = TUNE)]
    Tune(Tune),
    /// Make tables, figures and one page of studies, or a page of one run; shards are put together
    Report(Report),
    /// Check a finished run: its metrics against its rows, and with --rerun its bytes against a
    /// repetition
    #[command(after_help = VERIFY)]
    Verify(Verify),
    /// Show a finished run to the twin: predicted against realised, before and after calibration
    #[command(after_help = TWIN)]
    Twin(Twin),
    /// Go on from a round of a run, with something changed
    #[command(after_help = BRANCH)]
    Branch(Branch),
    /// Show runs and studies in a browser, live: learning, cell, rounds and reasons
    #[command(after_help = DASH)]
    Dash(Dash),
    /// Show a channel: gains, line of sight, how fast it changes, a map
    Channel(Channel),
    /// Plan one round for an observation on standard input, with reasons
    #[command(after_help = PLAN_EXAMPLE)]
    Plan(Plan),
    /// List, show, check and measure scenarios
    Scenario(Scenario),
    /// Serve a testbed as its base station: terminals are processes that dial in
    #[command(after_help = TESTBED)]
    Server(Server),
    /// Be a terminal of a testbed: private data, front half, journal
    #[command(after_help = TESTBED)]
    Terminal(Terminal),
    /// Be the evaluator of a testbed: runs calibration episodes
    #[command(after_help = TESTBED)]
    Evaluator(Evaluator),
    /// Start a whole testbed on this machine, or make the data of its terminals
    Testbed(Testbed),
    /// Make policies
    Policy(Policy),
    /// Enrol terminals and the evaluator of a testbed: keys, certificates, deny list
    Enrol(Enrol),
    /// Stand between terminals and server as a radio channel would
    Proxy(Proxy),
    /// Be an adapter to equipment, or try one
    Adapter(Adapter),
    /// Measure what a scenario needs to know of a machine
    Profile(Profile),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const COMPLETIONS: &str = "\
For bash: tilp completions bash > ~/.local/share/bash-completion/completions/tilp
For zsh:  tilp completions zsh > ~/.zfunc/_tilp, with ~/.zfunc in fpath
For fish: tilp completions fish > ~/.config/fish/completions/tilp.fish";

/// Shells that can complete commands.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// fish.
    Fish,
}

/// What `tilp run --help` says after its arguments: every method, and the exit codes.
fn run_help() -> String {
    let methods = tilp::scenario::methods();
    let line = |one: &tilp::scenario::Method| format!("  {:12} {}\n", one.name(), one.about());
    let lines: String = methods.iter().map(line).collect();
    format!(
        "Methods:\n{lines}  Published methods also as NAME+guard (terminals predicted late are left out),\n  \
         NAME+q0.9 (fixed compression) and NAME+guard+q0.9.\n\n{EXIT_CODES}"
    )
}

/// `tilp run`.
#[derive(Args)]
pub(crate) struct Run {
    /// A built-in scenario or a TOML file [default: default]
    pub scenario: Option<String>,
    /// The method that decides: one of those below, or `exec:PROGRAM`, a program of your own
    /// [default: tilp]
    #[arg(long)]
    pub method: Option<String>,
    /// Seed of the cell, the robots, the data and the training [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Replicate of the seed: another order of minibatches, and nothing else [default: 0]
    #[arg(long, value_name = "K")]
    pub replicate: Option<u64>,
    /// Rounds to train instead of the scenario's
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the results [default: runs/SCENARIO-METHOD-SEED, with a replicate
    /// runs/SCENARIO-METHOD-SEED-rK]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Go on with an interrupted run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "method", "seed", "replicate", "rounds", "overrides", "out"])]
    pub resume: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
}

const TESTBED: &str = "\
docs/howto/testbed.md shows how the processes are put together, docs/reference/testbed.md has every
key of a testbed's file. A process that is killed goes on where it was when it is started again.

Exit codes: 0 the run is complete, 1 failed on the way, 2 bad usage or bad input, 130 and 143 stopped
by Ctrl-C and SIGTERM";

/// `tilp server`.
#[derive(Args)]
pub(crate) struct Server {
    /// The TOML file of the testbed
    pub file: PathBuf,
    /// How to print the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// Print nothing but warnings and the result
    #[arg(long)]
    pub quiet: bool,
}

/// How a log is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// How a process reaches the base station.
#[derive(Args)]
pub(crate) struct Reach {
    /// Host and port of the base station
    #[arg(long, value_name = "HOST:PORT")]
    pub server: String,
    /// Folder with ca.pem, cert.pem and key.pem; may be left out on the loopback interface
    #[arg(long, value_name = "DIR")]
    pub tls: Option<PathBuf>,
    /// How to print the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
}

/// `tilp terminal`.
#[derive(Args)]
pub(crate) struct Terminal {
    /// Its id in the scenario
    #[arg(long)]
    pub id: u32,
    /// Its private data, a safetensors file
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Folder for its journal
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Wait for the disk at every step, so that the journal survives a power failure
    #[arg(long)]
    pub power_safe: bool,
    /// The way to the base station.
    #[command(flatten)]
    pub reach: Reach,
}

/// `tilp evaluator`.
#[derive(Args)]
pub(crate) struct Evaluator {
    /// The way to the base station.
    #[command(flatten)]
    pub reach: Reach,
}

/// `tilp testbed`.
#[derive(Args)]
pub(crate) struct Testbed {
    /// What to do.
    #[command(subcommand)]
    pub verb: TestbedVerb,
}

/// Verbs of `tilp testbed`.
#[derive(Subcommand)]
pub(crate) enum TestbedVerb {
    /// Start base station, terminals and evaluator on this machine and stop them at the end
    #[command(after_help = TESTBED)]
    Up {
        /// The TOML file of the testbed
        file: PathBuf,
        /// Print nothing but the result
        #[arg(long)]
        quiet: bool,
    },
    /// Write the private data of the terminals that are processes, one file each
    Data {
        /// The TOML file of the testbed
        file: PathBuf,
    },
}

const STUDY: &str = "\
A study is a list of runs (point x method x seed x replicate). Started again it goes on: finished runs are
kept, interrupted ones resumed, failed ones tried again; a failed run does not stop the others. Started with
more methods, seeds, values or replicates it grows by what is missing. Shard
i of N does every N-th run from the i-th on, into the same folder or one of its own (`tilp report`
puts folders together). The folder holds study.json, scenario.toml, runs/POINT/METHOD-SEED[-rK], runs.jsonl
(what is kept of each finished run), the tables runs.csv, table.csv, table.md and table.tex, aims.md,
the figures as SVG and PNG, and report.html.

Exit codes: 0 done, 1 some run failed or a folder cannot be read or written, 2 bad usage or bad
input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1 after the rounds in progress;
checkpoints were written";

/// What all studies have in common.
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
    /// A first look: 100 rounds, measured every 10, and seed 0, unless said otherwise, in a folder of
    /// its own. Rankings after 100 rounds are not those after 1000
    #[arg(long)]
    pub quick: bool,
    /// Runs at a time [default: one for each core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Do only share i of N, counted from 0
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Folder of the study [default: studies/QUESTION-SCENARIO, with --quick
    /// studies/QUESTION-SCENARIO-quick]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
}

/// `tilp compare`.
#[derive(Args)]
pub(crate) struct Compare {
    /// What all studies have in common.
    #[command(flatten)]
    pub study: Study,
    /// Methods, separated by commas. `main` stands for tilp, the eight with +guard and the reference
    /// rows, `published` for the eight as published, `compressed` for the eight with +guard and a
    /// fixed q; exec:PROGRAM for a program of your own [default: main]
    #[arg(long, value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Runs of every method and seed that differ in the order of minibatches only; tables pool them
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub replicates: u64,
}

/// `tilp ablate`.
#[derive(Args)]
pub(crate) struct Ablate {
    /// What all studies have in common.
    #[command(flatten)]
    pub study: Study,
}

/// `tilp sweep`.
#[derive(Args)]
pub(crate) struct Sweep {
    /// retention, split, terminals, snr, mass or bandwidth; late, payload or hidden
    pub axis: String,
    /// What all studies have in common.
    #[command(flatten)]
    pub study: Study,
    /// Values, separated by commas [default: those of the figure]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    pub values: Vec<String>,
    /// Methods, separated by commas [default: tilp and hsfl, asfl, fedsl with +guard, but for `late`
    /// and `hidden`]
    #[arg(long, value_delimiter = ',')]
    pub methods: Vec<String>,
}

const TUNE: &str = "\
Every rate is run on every seed, as ordinary runs that are kept: started again, or with more rates or
seeds, it goes on. A rate is stable if no run of it is more than 5 points of success below the base
policy at a measurement in rounds 50 to 200, ends more than 15 points below its own best measurement,
or diverges. Of the stable rates the one with the best final success is picked. Runs are measured
every 50 rounds on 16 episodes per terminal and at the end on 32, unless --set says otherwise. The
folder holds runs/RATE/METHOD-SEED, tune.json and tune.md.

Exit codes: 0 measured, also if runs diverged or no rate is stable, 1 some run failed otherwise or a
folder cannot be read or written, 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM
and SIGUSR1 after the rounds in progress; checkpoints were written";

/// `tilp tune`.
#[derive(Args)]
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
    /// Runs at a time [default: one for each core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Folder for runs and findings [default: studies/tune-SCENARIO-METHOD-HASH]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
}

/// `tilp report`.
#[derive(Args)]
pub(crate) struct Report {
    /// Folders of studies or of shards of them, or the folder of one run
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    /// Folder for what is made [default: the first DIR, of a single study; DIR/report of a run]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Also make every panel of every figure for a paper, of this width, as in `3.5in` or `89mm`: SVG,
    /// PNG, PDF and CSV in the folder `paper`, without titles, readable in grey
    #[arg(long, value_name = "WIDTH")]
    pub width: Option<String>,
}

const VERIFY: &str = "\
Without --rerun: every row must be the one that events.jsonl gives, and every metric of summary.json the one
that the rows give. With --rerun the run is repeated into a temporary folder, which is removed, and every file
that does not depend on the machine must be the same, byte for byte. That holds on one type of processor, and
for the program that made the run.

Exit codes: 0 the same, 1 something differs (the first difference is named) or the repetition failed,
2 bad usage or bad input";

/// `tilp verify`.
#[derive(Args)]
pub(crate) struct Verify {
    /// Folder of a finished run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// Repeat the run too
    #[arg(long)]
    pub rerun: bool,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
}

const TWIN: &str = "\
Two twins go through the rounds of a run whose terminals train side by side: one calibrates after
every round (but for the loops that [methods.tilp] of the run's scenario freezes), one never does.
Both forecast each round before they see it. A second table has each forecast against the naive rules:
no change, as last measured, as in the mean so far. Figures, each as SVG, PNG, PDF and CSV: delay,
energy, loss, decrease, decrease-tasks, success, tasks.

Exit codes: 0 done, 1 failed on the way, 2 bad usage or bad input";

/// `tilp twin`.
#[derive(Args)]
pub(crate) struct Twin {
    /// Folder of a finished run
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Override a setting of the twin, a dotted key below methods.tilp
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the figures [default: DIR/twin]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

const BRANCH: &str = "\
The rounds up to the branch are repeated, from the run's checkpoint if it is not later, else from the
start: runs are deterministic. Then the changes apply. With nothing changed the branch has the same
bytes as the run. The new folder is a run like any other; its manifest names the branch.

Exit codes: 0 done, 1 failed on the way, 2 bad usage or bad input, 130, 143 and 138 stopped by
Ctrl-C, SIGTERM and SIGUSR1; before the branch nothing is kept, after it a checkpoint is";

/// `tilp branch`.
#[derive(Args)]
pub(crate) struct Branch {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// The last round that both have in common
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..))]
    pub round: u64,
    /// Change a value of the scenario from the next round on, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for the results [default: RUN-branch-T]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
}

const DASH: &str = "\
Finds run folders and studies below every DIR, also those that are started later, and follows them as
they grow. Shows the runs of the dashboard at every URL, http://HOST:PORT/?token=.., beside them. Read-only. On the loopback address everybody on the machine may look; on any other address
only those with the token, which is part of the printed address.

Environment:
  TILP_TOKEN  the token (default: none on the loopback address, else a random one)

Exit codes: 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1";

/// `tilp dash`.
#[derive(Args)]
pub(crate) struct Dash {
    /// Folders with runs or studies somewhere below them, and addresses of other dashboards
    #[arg(value_name = "DIR|URL", default_value = ".")]
    pub places: Vec<PathBuf>,
    /// Address and port; port 0 for any that is free
    #[arg(long, default_value = "127.0.0.1:8020")]
    pub listen: std::net::SocketAddr,
    /// Write the run or study DIR as one page that needs no server, and end
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
}

/// `tilp channel`.
#[derive(Args)]
pub(crate) struct Channel {
    /// Folder of a run or of DeepMIMO, a file of tools/sionna (.npz) or of gains (CSV), or a scenario
    #[arg(value_name = "DIR|FILE|SCENARIO")]
    pub channel: String,
    /// Seed of the channel of a scenario that draws it
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder for the figures: SVG, PNG, PDF, and their data as CSV
    #[arg(long, default_value = "channel")]
    pub out: PathBuf,
    /// Write over figures that are there
    #[arg(long)]
    pub replace: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// `tilp plan`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Plan {
    /// Something else than one plan.
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
    /// Plan with all that a run of tilp has learned: its twin, its actor and its critic
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "seed"])]
    pub from: Option<PathBuf>,
    /// Milliseconds for the search; 0 for the actor alone
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
but the last kind is answered by one line: method, decision with reasons, learned, or error. A line that
cannot be answered changes nothing. What was learned is written after every outcome, and every
observation before its decision is answered, so that a kill at any moment changes nothing; a line that
is sent again is answered again. docs/reference/exchange.md has all fields.

Exit codes: 0 the input ended, 1 failed on the way, 2 bad usage or bad input";

/// Verbs of `tilp plan`.
#[derive(Subcommand)]
pub(crate) enum PlanVerb {
    /// Plan round after round for a base station outside: observations and outcomes as JSON lines on
    /// standard input, decisions with reasons on standard output, state on disk
    #[command(after_help = PLAN_SERVE)]
    Serve(PlanServe),
    /// Print the JSON schema of the lines that `tilp plan serve` and methods `exec:PROGRAM` exchange
    Schema,
}

/// `tilp plan serve`.
#[derive(Args)]
pub(crate) struct PlanServe {
    /// A built-in scenario or a TOML file: limits, policy, nominal hardware [default: default]
    pub scenario: Option<String>,
    /// Seed of the nominal hardware and of the search [default: 0]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Folder for what is learned; started again with it, the server goes on
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Begin with all that a run of tilp has learned, unless the state has begun
    #[arg(long, value_name = "DIR", conflicts_with_all = ["scenario", "seed"])]
    pub from: Option<PathBuf>,
    /// Milliseconds for the search; 0 for the actor alone
    #[arg(long, value_name = "M")]
    pub budget_ms: Option<f64>,
}

/// How to print a result.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// For a program.
    Json,
}

/// `tilp scenario`.
#[derive(Args)]
pub(crate) struct Scenario {
    /// What to do with scenarios.
    #[command(subcommand)]
    pub verb: ScenarioVerb,
}

const HEALTH: &str = "\
Criteria: health (expert, centralised training, random robot, base policy), stable, repeatable,
saturation, far, allocation (bandwidth, power and cut), participation (compression and schedule),
radio, cost, headroom. What takes runs is done as ordinary runs, several at a time, with reference
rules and published methods only. Runs and findings are kept: started again, or with other criteria,
it goes on. The folder holds runs/POINT/METHOD-SEED, health.json and health.md.

Exit codes: 0 measured, whatever the verdicts, 1 some run failed or a folder cannot be read or
written, 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1 after the
rounds in progress; checkpoints were written";

/// `tilp scenario health`.
#[derive(Args)]
pub(crate) struct Health {
    /// A built-in scenario or a TOML file
    #[arg(default_value = "default")]
    pub name: String,
    /// Override a value, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// What to measure, separated by commas [default: everything]
    #[arg(long, value_delimiter = ',')]
    pub criteria: Vec<String>,
    /// Tuning seeds: `1000..1010` or `1000,1003`; criteria that need fewer take the first
    #[arg(long, default_value = "1000..1010")]
    pub seeds: String,
    /// Steps of centralised training; 0 leaves it out
    #[arg(long, default_value_t = 20_000)]
    pub steps: usize,
    /// A first look: at most 100 rounds, two seeds, few episodes, in a folder of its own
    #[arg(long)]
    pub quick: bool,
    /// Runs at a time [default: one for each core]
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Folder for runs and findings [default: studies/health-SCENARIO-HASH]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Rounds between checkpoints
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: u64,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing but the result
    #[arg(long)]
    pub quiet: bool,
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
    /// Print a scenario complete and resolved, as TOML
    Show {
        /// A built-in scenario or a TOML file
        name: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Check a scenario and say what is wrong with it: every value, and every file that it names.
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
    /// Measure whether a scenario can tell good decisions from bad ones: every criterion, what is
    /// wanted, what was measured
    #[command(after_help = HEALTH)]
    Health(Health),
    /// Compare rapier and MuJoCo on the same robot cells: expert, base policy, trajectories.
    ///
    /// Needs a program built with `--features mujoco`. Fails with exit code 1 if the expert masters
    /// less than 95 % of all episodes in either engine, or less than 80 % of those of a task.
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
        /// What moves the robots: rapier or mujoco
        #[arg(long, default_value = "rapier")]
        engine: String,
    },
}

/// `tilp policy`.
#[derive(Args)]
pub(crate) struct Policy {
    /// What to do with policies.
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

const SERVE: &str = "\
The first message to a client says which state is expected and how long an action is. A request is a
map with `observation/state`; pictures and words in it are accepted and not read. What cannot be
answered is answered with a line of text.

Environment:
  TILP_TOKEN  what a client must present as `Authorization: Api-Key TOKEN` (default: nothing)

Exit codes: 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1";

/// `tilp policy serve`.
#[derive(Args)]
pub(crate) struct Serve {
    /// A policy: model.safetensors of a run
    pub model: PathBuf,
    /// Address and port; port 0 for any that is free
    #[arg(long, default_value = "127.0.0.1:8000")]
    pub listen: std::net::SocketAddr,
    /// Largest message in bytes
    #[arg(long, default_value_t = 4 << 20)]
    pub message_bytes: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds that a client may be silent
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub idle_s: u64,
}

/// Verbs of `tilp policy`.
#[derive(Subcommand)]
pub(crate) enum PolicyVerb {
    /// Let outside clients drive a policy: openpi's websocket protocol
    #[command(after_help = SERVE)]
    Serve(Serve),
    /// Train the base policy on a narrow part of the tasks
    Pretrain {
        /// The scenario whose model is trained
        #[arg(default_value = "default")]
        scenario: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Share of the scenario's variation that is seen [default: as shipped]
        #[arg(long)]
        narrow: Option<f32>,
        /// Steps of Adam [default: as shipped]
        #[arg(long)]
        steps: Option<usize>,
        /// File to write
        #[arg(long)]
        out: PathBuf,
    },
}
