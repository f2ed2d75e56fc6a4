//! The `tilp` command line: parse, call the library, exit code.

mod arguments;
mod commands;
mod failure;
mod progress;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.verb {
        Verb::Run(run) => commands::run::run(run),
        Verb::Scenario(scenario) => commands::scenario::scenario(scenario),
        Verb::Policy(policy) => commands::policy::policy(policy),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
