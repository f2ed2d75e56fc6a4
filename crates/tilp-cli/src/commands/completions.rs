//! `tilp completions`.

use clap::CommandFactory;
use clap_complete::{Shell as Known, generate};

use crate::arguments::{Arguments, Shell};
use crate::failure::Failure;
use crate::output;

/// Prints the script of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let shell = match shell {
        Shell::Bash => Known::Bash,
        Shell::Zsh => Known::Zsh,
        Shell::Fish => Known::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "tilp", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
