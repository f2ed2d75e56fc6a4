//! `tilp proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

const PROXY: &str = "\
Terminal n connects to the n-th port, counted from --listen, and is forwarded to --server. The proxy
does not read the data. A link without a grant has the signalling rate; band and power are granted over
the control channel (docs/reference/adapters.md). A table of rates has the header
terminal,start_s,rate_bps,delay_s,outage.

Exit codes: 1 failed, 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and
SIGUSR1";

/// `tilp proxy`.
#[derive(Args)]
#[command(after_help = PROXY)]
pub(crate) struct Proxy {
    /// A built-in scenario or a TOML file, a file of tools/sionna (.npz), a folder of DeepMIMO, or a
    /// table of gains or of rates (CSV)
    pub channel: String,
    /// Address of the server
    #[arg(long, value_name = "ADDRESS")]
    pub server: SocketAddr,
    /// Address for terminal 0; port 0 selects free ports
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Unix socket of the control channel
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Seed of a scenario's channel
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Override a value of the scenario, with a dotted key
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// What advances the channel
    #[arg(long, value_enum, default_value_t = Advance::Clock)]
    pub advance: Advance,
    /// Seconds between the rows of a recording without times; for a table of rates, the seconds after
    /// which it repeats
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub period_s: f64,
    /// Delay of every byte in addition to its transmission; a table of rates contains its own
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub delay_s: f64,
    /// Receiver noise for a recording
    #[arg(long, value_name = "DBM", default_value_t = -167.0, allow_hyphen_values = true)]
    pub noise_dbm_per_hz: f64,
    /// Bits per second of a terminal without a grant
    #[arg(long, value_name = "BPS", default_value_t = 64e3)]
    pub signalling_bps: f64,
    /// Bytes that an idle link may send at once
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    pub burst_bytes: u32,
}

/// What advances the channel of a proxy.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Advance {
    /// The clock: each row is valid for its time.
    Clock,
    /// The control channel announces each round.
    Rounds,
}
