//! `tilp proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

const PROXY: &str = "\
Terminal n connects to the n-th port from --listen on, and is passed on to --server. The proxy does
not read what passes. Without a grant a link has the signalling rate; the control channel grants band
and power (docs/reference/adapters.md). A table of rates has the header
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
    /// Where the server listens
    #[arg(long, value_name = "ADDRESS")]
    pub server: SocketAddr,
    /// Where the proxy listens for terminal 0; port 0 for any that are free
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
    /// What makes the channel go on
    #[arg(long, value_enum, default_value_t = Advance::Clock)]
    pub advance: Advance,
    /// Seconds between the rows of a recording that does not say; of a table of rates, after which
    /// it starts again
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub period_s: f64,
    /// Seconds that every byte takes beside its transmission; a table of rates has its own
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub delay_s: f64,
    /// Noise of a recording's receivers
    #[arg(long, value_name = "DBM", default_value_t = -167.0, allow_hyphen_values = true)]
    pub noise_dbm_per_hz: f64,
    /// Bits a second of a terminal without a grant
    #[arg(long, value_name = "BPS", default_value_t = 64e3)]
    pub signalling_bps: f64,
    /// Bytes that a silent link saves up
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    pub burst_bytes: u32,
}

/// What makes the channel of a proxy go on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Advance {
    /// The clock: a row holds for its time.
    Clock,
    /// The control channel: it says which round has begun.
    Rounds,
}
