//! `tilp server`, `tilp terminal`, `tilp evaluator` and `tilp testbed`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const TESTBED: &str = "\
docs/howto/testbed.md shows how to start the processes, docs/reference/testbed.md lists every key of a
testbed's file. A process that was killed continues where it stopped when it is started again.

Exit codes: 0 the run is complete, 1 failed on the way, 2 bad usage or bad input, 130 and 143 stopped
by Ctrl-C and SIGTERM";

/// `tilp server`.
#[derive(Args)]
#[command(after_help = TESTBED)]
pub(crate) struct Server {
    /// The TOML file of the testbed
    pub file: PathBuf,
    /// How to print the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// Print only warnings and the result
    #[arg(long)]
    pub quiet: bool,
}

/// How a log is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for reading
    Text,
    /// One JSON object per line
    Json,
}

/// How a process connects to the base station.
#[derive(Args)]
pub(crate) struct Reach {
    /// Host and port of the base station
    #[arg(long, value_name = "HOST:PORT")]
    pub server: String,
    /// Folder with ca.pem, cert.pem and key.pem; optional on the loopback interface
    #[arg(long, value_name = "DIR")]
    pub tls: Option<PathBuf>,
    /// How to print the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
}

/// `tilp terminal`.
#[derive(Args)]
#[command(after_help = TESTBED)]
pub(crate) struct Terminal {
    /// Id of the terminal in the scenario
    #[arg(long)]
    pub id: u32,
    /// Private data of the terminal, a safetensors file
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Folder for the journal of the terminal
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Flush the journal to the disk at every step, so that it survives a power failure
    #[arg(long)]
    pub power_safe: bool,
    /// TOML file whose table [adapters] names a probe, an actuator and a meter
    #[arg(long, value_name = "FILE")]
    pub adapters: Option<PathBuf>,
    /// Connection to the base station.
    #[command(flatten)]
    pub reach: Reach,
}

/// `tilp evaluator`.
#[derive(Args)]
#[command(after_help = TESTBED)]
pub(crate) struct Evaluator {
    /// TOML file whose table [adapters] names the robots; without it they are simulated
    #[arg(long, value_name = "FILE")]
    pub adapters: Option<PathBuf>,
    /// Connection to the base station.
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
        /// Print only the result
        #[arg(long)]
        quiet: bool,
    },
    /// Write the private data of every terminal that is a process, one file each
    Data {
        /// The TOML file of the testbed
        file: PathBuf,
    },
}
