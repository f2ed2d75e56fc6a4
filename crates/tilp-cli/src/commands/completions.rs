//! `tilp completions`.

use clap::CommandFactory;
use clap_complete::{Shell as Target, generate};

use crate::arguments::{Arguments, Completions, Shell};
use crate::failure::Failure;
use crate::output;

/// Prints the script of a shell.
pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let shell = match arguments.shell {
        Shell::Bash => Target::Bash,
        Shell::Zsh => Target::Zsh,
        Shell::Fish => Target::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "tilp", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
