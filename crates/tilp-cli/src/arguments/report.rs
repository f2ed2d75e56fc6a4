//! `tilp report`, `tilp verify` and `tilp twin`: finished runs and studies.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `tilp report`.
#[derive(Args)]
pub(crate) struct Report {
    /// Folders of studies or of shards of studies, or the folder of one run
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    /// Folder for the report [default: the first DIR for a single study, DIR/report for a run]
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Also write every panel of every figure for a paper, with this width, as in `3.5in` or `89mm`:
    /// SVG, PNG, PDF and CSV in the folder `paper`, without titles, readable in grey
    #[arg(long, value_name = "WIDTH")]
    pub width: Option<String>,
}

const VERIFY: &str = "\
Without --rerun: the rows are computed again from events.jsonl, and the metrics of summary.json from the
rows. With --rerun the run is also repeated in a temporary folder, which is removed, and every file that
does not depend on the machine is compared byte for byte. Equal bytes can be expected on the same type of
processor with the program that made the run.

Exit codes: 0 the same, 1 something differs (the first difference is printed) or the repetition failed,
2 bad usage or bad input";

/// `tilp verify`.
#[derive(Args)]
#[command(after_help = VERIFY)]
pub(crate) struct Verify {
    /// Folder of a finished run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// Also repeat the run
    #[arg(long)]
    pub rerun: bool,
    /// Print only the result
    #[arg(long)]
    pub quiet: bool,
}

const TWIN: &str = "\
Two twins process the rounds of a run whose terminals train in parallel: one is calibrated after every
round (except for the loops that [methods.tilp] of the run's scenario freezes), the other never. Both
forecast each round before they see its outcome. A second table compares each forecast with naive
rules: no change, the last measurement, the mean so far. Figures, each as SVG, PNG, PDF and CSV: delay,
energy, loss, decrease, decrease-tasks, success, tasks.

Exit codes: 0 done, 1 failed on the way, 2 bad usage or bad input";

/// `tilp twin`.
#[derive(Args)]
#[command(after_help = TWIN)]
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
