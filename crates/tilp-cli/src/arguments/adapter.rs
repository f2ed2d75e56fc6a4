//! `tilp adapter`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const ADAPTER: &str = "\
An adapter reads requests from standard input and writes answers to standard output, one JSON document
per line (docs/reference/adapters.md).

Exit codes: 0 the input ended, 1 a line was not a request, 2 bad usage or bad input";

/// `tilp adapter`.
#[derive(Args)]
#[command(after_help = ADAPTER)]
pub(crate) struct Adapter {
    /// Which adapter.
    #[command(subcommand)]
    pub verb: AdapterVerb,
}

/// A kind of adapter.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdapterKind {
    /// Measures the channel.
    Probe,
    /// Applies band and power.
    Actuator,
    /// Measures energy.
    Meter,
    /// Runs an episode.
    Robot,
}

/// Where a probe measures.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ProbeSource {
    /// The link of a proxy, by its control socket
    #[arg(long, value_name = "SOCKET")]
    pub proxy: Option<PathBuf>,
    /// Linux wireless statistics of this interface
    #[arg(long, value_name = "INTERFACE")]
    pub wireless: Option<String>,
    /// The channel of a scenario, round by round
    #[arg(long, value_name = "SCENARIO")]
    pub simulated: Option<String>,
}

/// What an actuator sets.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ActuatorTarget {
    /// The link of a proxy, by its control socket
    #[arg(long, value_name = "SOCKET")]
    pub proxy: Option<PathBuf>,
    /// No equipment: every grant is confirmed
    #[arg(long)]
    pub simulated: bool,
}

/// What a meter reads.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct MeterSource {
    /// The energy counters of the processor (RAPL)
    #[arg(long)]
    pub rapl: bool,
    /// No counters: energy by the cost model, labelled as modelled
    #[arg(long)]
    pub modelled: bool,
}

/// Verbs of `tilp adapter`.
#[derive(Subcommand)]
pub(crate) enum AdapterVerb {
    /// Measure the channel of a terminal
    #[command(override_usage = "tilp adapter probe [OPTIONS]")]
    Probe {
        /// Source of the measurements.
        #[command(flatten)]
        source: ProbeSource,
        /// The terminal, for a proxy or a scenario
        #[arg(long, value_name = "ID", default_value_t = 0)]
        terminal: u32,
        /// Seed of the scenario
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Transmit power of the base station, for wireless statistics
        #[arg(long, value_name = "DBM", default_value_t = 20.0, allow_hyphen_values = true)]
        station_dbm: f64,
        /// Use the program `iw` instead of reading /proc/net/wireless
        #[arg(long)]
        iw: bool,
    },
    /// Apply the band and power of a terminal
    #[command(override_usage = "tilp adapter actuator [OPTIONS]")]
    Actuator {
        /// Equipment to set.
        #[command(flatten)]
        target: ActuatorTarget,
        /// The terminal, for a proxy
        #[arg(long, value_name = "ID", default_value_t = 0)]
        terminal: u32,
    },
    /// Measure the energy of this machine
    #[command(override_usage = "tilp adapter meter [OPTIONS]")]
    Meter {
        /// Source of the energy values.
        #[command(flatten)]
        source: MeterSource,
        /// Energy coefficient of a modelled meter, J s^2 per operation
        #[arg(long, value_name = "K", default_value_t = 1e-28)]
        energy_coefficient: f64,
        /// Processor frequency of a modelled meter
        #[arg(long, value_name = "HZ", default_value_t = 1.5e9)]
        clock_hz: f64,
        /// Control socket of a proxy: a modelled meter adds the granted power for the time that the
        /// terminal's bytes take at the rate of its link
        #[arg(long, value_name = "SOCKET", conflicts_with = "rapl")]
        proxy: Option<PathBuf>,
        /// The terminal, for a proxy
        #[arg(long, value_name = "ID", default_value_t = 0)]
        terminal: u32,
    },
    /// Run episodes of a simulated robot
    Robot {
        /// A built-in scenario or a TOML file
        scenario: String,
        /// Terminal of the robot
        #[arg(long, value_name = "ID", default_value_t = 0)]
        terminal: u32,
        /// Seed of the scenario
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Print the JSON schema of the lines of an adapter
    Schema {
        /// Kind of adapter
        #[arg(value_enum)]
        kind: AdapterKind,
    },
    /// Start an adapter, send it one request and print the answer
    Check {
        /// Kind of adapter
        #[arg(value_enum)]
        kind: AdapterKind,
        /// Time limit in seconds
        #[arg(long, value_name = "S", default_value_t = 5.0)]
        timeout_s: f64,
        /// Policy for a robot: model.safetensors of a run
        #[arg(long, value_name = "FILE")]
        model: Option<PathBuf>,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}
