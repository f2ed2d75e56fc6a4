//! Writing to the two streams of the program without ever failing loudly.

use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use crate::columns::{COLUMNS, tables_within};
use crate::failure::Failure;

/// Prints a result, with a line break at its end. A reader that closes the pipe early is not a
/// failure; a full disk is one.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot print the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line on standard error. If that fails, the program continues.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Breaks text at spaces into lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Markdown with tables as a result: at a terminal in aligned columns that fit it.
pub(crate) fn table(markdown: &str) -> String {
    match is_terminal() {
        true => tables_within(markdown, COLUMNS),
        false => markdown.to_owned(),
    }
}
