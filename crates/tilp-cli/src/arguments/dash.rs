//! `tilp dash` and `tilp channel`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

const DASH: &str = "\
Finds run folders and studies below every DIR, including those that are started later, and follows them
as they grow. Shows the runs of the dashboard at every URL, http://HOST:PORT/?token=.., beside them.
Read-only. On the loopback address every user of the machine has access. On any other address access
needs the token, which is part of the printed address.

Environment:
  TILP_TOKEN  the token (default: none on the loopback address, otherwise a random one)

Exit codes: 2 bad usage or bad input, 130, 143 and 138 stopped by Ctrl-C, SIGTERM and SIGUSR1";

/// `tilp dash`.
#[derive(Args)]
#[command(after_help = DASH)]
pub(crate) struct Dash {
    /// Folders that contain runs or studies at any depth, and addresses of other dashboards
    #[arg(value_name = "DIR|URL", default_value = ".")]
    pub places: Vec<PathBuf>,
    /// Address and port; port 0 selects a free one
    #[arg(long, default_value = "127.0.0.1:8020")]
    pub listen: std::net::SocketAddr,
    /// Write the run or study DIR as one page that needs no server, and exit
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
}

/// `tilp channel`.
#[derive(Args)]
pub(crate) struct Channel {
    /// Folder of a run or of DeepMIMO, a file of tools/sionna (.npz) or of gains (CSV), or a scenario
    #[arg(value_name = "DIR|FILE|SCENARIO")]
    pub channel: String,
    /// Seed of the channel, for a scenario that draws it
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Folder for the figures: SVG, PNG, PDF, and their data as CSV
    #[arg(long, default_value = "channel")]
    pub out: PathBuf,
    /// Overwrite existing figures
    #[arg(long)]
    pub replace: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}
