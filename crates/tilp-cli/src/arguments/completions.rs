//! `tilp completions`.

use clap::{Args, ValueEnum};

const COMPLETIONS: &str = "\
For bash: tilp completions bash > ~/.local/share/bash-completion/completions/tilp
For zsh:  tilp completions zsh > ~/.zfunc/_tilp, with ~/.zfunc in fpath
For fish: tilp completions fish > ~/.config/fish/completions/tilp.fish";

/// `tilp completions`.
#[derive(Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Shells that can complete commands.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// fish.
    Fish,
}
