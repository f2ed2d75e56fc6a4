//! `tilp export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const LEROBOT: &str = "\
Writes FOLDER/dataset, a LeRobotDataset of version 3 with the demonstrations that the terminals have at the
start: features `observation.state`, `action` and `terminal`. For a finished run it also writes
FOLDER/policy, a policy folder of LeRobot for the plug-in in bindings/lerobot.";

const ONNX: &str = "\
The model has one input `state` and one output `action`, both with any number of rows. It uses operators
of version 17.";

/// `tilp export`.
#[derive(Args)]
pub(crate) struct Export {
    /// What to write.
    #[command(subcommand)]
    pub verb: ExportVerb,
}

/// Verbs of `tilp export`.
#[derive(Subcommand)]
pub(crate) enum ExportVerb {
    /// Write demonstrations as a LeRobotDataset, and the policy of a run for LeRobot
    #[command(after_help = LEROBOT)]
    Lerobot {
        /// Folder of a finished run, or a scenario: a TOML file or a built-in name
        source: String,
        /// Folder to write; it must not exist or must be empty
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// Only the demonstrations of this terminal
        #[arg(long, value_name = "ID")]
        terminal: Option<u32>,
        /// Seed of the demonstrations of a scenario [default: 0]
        #[arg(long)]
        seed: Option<u64>,
        /// Override a value of a scenario, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
    },
    /// Write a policy as an ONNX file
    #[command(after_help = ONNX)]
    Onnx {
        /// Folder of a finished run, or a file model.safetensors
        source: PathBuf,
        /// File to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}
