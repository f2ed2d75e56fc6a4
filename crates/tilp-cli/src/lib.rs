//! The `tilp` command line: parse, call the library, exit code. It is a library so that the Python
//! package contains the same command.

// `pub` is a promise to users: what they cannot reach is `pub(crate)`.
#![cfg_attr(not(test), warn(unreachable_pub))]

mod arguments;
mod clock;
mod columns;
mod commands;
mod failure;
mod output;
mod progress;
mod serve;
mod signals;
mod study_progress;

/// What the command line passes to the library, for programs that call both.
pub mod host {
    pub use crate::clock::WallTime;
    pub use crate::commands::cache;
    pub use crate::commands::run::{about, run_folder};
    pub use crate::commands::study::{n_threads, study_folder};
}

use std::ffi::OsString;

use clap::Parser;
use clap::error::{Error, ErrorKind};

use arguments::{Arguments, Verb};
use failure::Failure;

/// Executes the arguments, the first of which is the name of the program, and returns the exit
/// code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let result = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => perform(arguments.verb),
        Err(error) => explain(&error),
    };
    match result {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

fn perform(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Run(run) => commands::run::run(run),
        Verb::Compare(compare) => commands::study::compare(compare),
        Verb::Ablate(ablate) => commands::study::ablate(ablate),
        Verb::Sweep(sweep) => commands::study::sweep(sweep),
        Verb::Tune(tune) => commands::tune::tune(&tune),
        Verb::Report(report) => commands::report::report(report),
        Verb::Verify(verify) => commands::verify::verify(verify),
        Verb::Twin(twin) => commands::twin::twin(twin),
        Verb::Branch(branch) => commands::branch::branch(branch),
        Verb::Dash(dash) => commands::dash::dash(dash),
        Verb::Channel(channel) => commands::channel::channel(channel),
        Verb::Plan(plan) => commands::plan::plan(plan),
        Verb::Scenario(scenario) => commands::scenario::scenario(scenario),
        Verb::Server(server) => commands::testbed::server(&server),
        Verb::Terminal(terminal) => commands::testbed::terminal(&terminal),
        Verb::Evaluator(evaluator) => commands::testbed::evaluator(&evaluator),
        Verb::Testbed(testbed) => commands::testbed::testbed(testbed),
        Verb::Policy(policy) => commands::policy::policy(policy),
        Verb::Enrol(enrol) => commands::enrol::enrol(enrol),
        Verb::Proxy(proxy) => commands::proxy::proxy(proxy),
        Verb::Adapter(adapter) => commands::adapter::adapter(adapter),
        Verb::Profile(profile) => commands::profile::profile(profile),
        Verb::Export(export) => commands::export::export(export),
        Verb::Completions(completions) => commands::completions::completions(&completions),
    }
}

/// What a parser of numbers says, in words for a user.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("invalid digit found in string", "expected a whole number from 0 on"),
        ("cannot parse integer from empty string", "expected a whole number from 0 on"),
        ("number too large to fit in target type", "expected a smaller whole number"),
        ("number too small to fit in target type", "expected a larger whole number"),
        ("invalid float literal", "expected a number"),
        ("cannot parse float from empty string", "expected a number"),
    ];
    WORDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Help and version are results. Any other parse error becomes one line and exit code 2.
fn explain(error: &Error) -> Result<(), Failure> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::input("no command given, expected one of those in `tilp --help`"))
        }
        _ => {
            // The parser's message has several paragraphs; the first one names the error.
            let first = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<&str> = first.split_whitespace().collect();
            let what = words.join(" ");
            let what = what.strip_prefix("error: ").unwrap_or(&what);
            // A later paragraph may suggest a correction.
            let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
            let tip = tip.map_or(String::new(), |tip| format!("; {tip}"));
            Err(Failure::input(format!("{}{tip} (see --help)", in_words(what))))
        }
    }
}
