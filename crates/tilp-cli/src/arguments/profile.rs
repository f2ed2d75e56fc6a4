//! `tilp profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Format;

const DEVICE: &str = "\
Runs forward and backward passes of the front layers, up to every cut of the scenario, on one batch of
the scenario's size. The text output is TOML for [hardware] of a scenario. Energy comes from the
processor's counters (RAPL) minus the consumption of the idle machine. Without counters the coefficient
of the scenario is printed and labelled as modelled. RAYON_NUM_THREADS limits the number of threads.";

const MODEL: &str = "\
Prints a table for [profile] of a scenario: for every value that alone connects what comes before with what
comes after, its size, the work before it, the parameters before it and the memory for training them. The
file needs the shapes of its values; onnx.shape_inference.infer_shapes_path writes them. Work counts the
products of matrices and convolutions, forward and backward. For a model in PyTorch see tilp.profile_torch
in the Python package.";

/// `tilp profile`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = MODEL)]
pub(crate) struct Profile {
    /// What to measure instead of a model.
    #[command(subcommand)]
    pub verb: Option<ProfileVerb>,
    /// The model.
    #[command(flatten)]
    pub model: ModelFile,
}

/// A model and how it is trained.
#[derive(Args)]
pub(crate) struct ModelFile {
    /// A model as an ONNX file
    pub model: Option<PathBuf>,
    /// Samples of a minibatch
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: u64,
    /// What the terminal trains with
    #[arg(long, value_enum, default_value_t = OptimiserKind::Adamw)]
    pub optimiser: OptimiserKind,
    /// Size of a named dimension
    #[arg(long = "size", value_name = "NAME=NUMBER")]
    pub sizes: Vec<String>,
}

/// An optimiser by what it keeps.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OptimiserKind {
    /// Nothing.
    Sgd,
    /// One number for every parameter.
    Momentum,
    /// Two numbers for every parameter.
    Adamw,
}

/// Verbs of `tilp profile`.
#[derive(Subcommand)]
pub(crate) enum ProfileVerb {
    /// Measure this machine's operations per second and joules per operation
    #[command(after_help = DEVICE)]
    Device {
        /// The scenario with the policy to run
        #[arg(default_value = "default")]
        scenario: String,
        /// Override a value, with a dotted key
        #[arg(long = "set", value_name = "KEY=VALUE")]
        overrides: Vec<String>,
        /// Seconds of measurement for each cut
        #[arg(long, value_name = "S", default_value_t = 1.0)]
        seconds: f64,
        /// Processor frequency [default: as the system reports it]
        #[arg(long, value_name = "HZ")]
        clock_hz: Option<f64>,
        /// How to print the result
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}
