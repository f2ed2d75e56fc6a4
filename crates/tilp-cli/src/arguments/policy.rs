//! `tilp policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `tilp policy`.
#[derive(Args)]
pub(crate) struct Policy {
    /// What to do.
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

const SERVE: &str = "\
The first message to a client describes the expected state and the length of an action. A request is a
map with `observation/state`; pictures and words in it are accepted and ignored. A request that is
wrong gets a line of text as answer.

Environment:
  TILP_TOKEN  clients must send `Authorization: Api-Key TOKEN` (default: no token needed)

Exit codes: 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1";

/// `tilp policy serve`.
#[derive(Args)]
#[command(after_help = SERVE)]
pub(crate) struct Serve {
    /// A policy: model.safetensors of a run
    pub model: PathBuf,
    /// Address and port; port 0 selects a free one
    #[arg(long, default_value = "127.0.0.1:8000")]
    pub listen: std::net::SocketAddr,
    /// Largest message in bytes
    #[arg(long, default_value_t = 4 << 20)]
    pub message_bytes: usize,
    /// Number of connections at the same time
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds without a message after which a client is disconnected
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub idle_s: u64,
}

/// Verbs of `tilp policy`.
#[derive(Subcommand)]
pub(crate) enum PolicyVerb {
    /// Serve a policy to external clients over openpi's websocket protocol
    Serve(Serve),
    /// Train a base policy on a part of the tasks' variation
    Pretrain {
        /// The scenario whose model is trained
        #[arg(default_value = "default")]
        scenario: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Share of the scenario's variation that the training data covers [default: as shipped]
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
