//! The program `tilp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilp_cli::run(std::env::args_os()).into()
}
