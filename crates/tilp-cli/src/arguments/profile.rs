//! `tilp profile`.

use clap::{Args, Subcommand};

use super::Format;

const DEVICE: &str = "\
Runs forward and backward passes of the front layers, up to every cut of the scenario, on one batch of
the scenario's size. The text output is TOML for [hardware] of a scenario. Energy comes from the
processor's counters (RAPL) minus the consumption of the idle machine. Without counters the coefficient
of the scenario is printed and labelled as modelled. RAYON_NUM_THREADS limits the number of threads.";

/// `tilp profile`.
#[derive(Args)]
pub(crate) struct Profile {
    /// What to measure.
    #[command(subcommand)]
    pub verb: ProfileVerb,
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
