//! Commands and their flags, against the definition that the program parses with.

use std::collections::BTreeSet;
use std::fs;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use tilp::scenario::Scenario;

use super::arguments::{self, Arguments, PolicyVerb, ScenarioVerb, Verb};
use super::markdown::Kind;
use super::{check, files, root};

/// Ways to call the program in a document.
const PROGRAMS: [&str; 4] = ["tilp", "target/release/tilp", "target/debug/tilp", "$TILP"];

/// Flags of other programs that documents name: cargo, Slurm and shells.
const OTHER_FLAGS: [&str; 14] = [
    "--features",
    "--release",
    "--workspace",
    "--example",
    "--test",
    "--lib",
    "--doc",
    "--ignored",
    "--package",
    "--all-targets",
    "--partition",
    "--time",
    "--cpus-per-task",
    "--signal",
];

#[test]
fn every_command_that_a_document_shows_is_one_that_the_program_takes() {
    check(|_, piece| match piece.kind {
        Kind::Inline => wrong_commands(&piece.text, true),
        Kind::Shell => wrong_commands(&piece.text, false),
        _ => Vec::new(),
    });
}

#[test]
fn every_flag_in_a_sentence_belongs_to_the_program_or_to_a_tool_of_the_repository() {
    let (known, tools) = (flags(&Arguments::command()), tool_texts());
    check(|_, piece| {
        let flag = piece.text.split([' ', '=']).next().unwrap_or_default();
        let is_flag = piece.kind == Kind::Inline && flag.starts_with("--") && flag.len() > 2;
        let is_known = known.contains(flag)
            || OTHER_FLAGS.contains(&flag)
            || tools.iter().any(|text| text.contains(flag));
        match is_flag && !is_known {
            true => vec![format!("no command has the flag `{flag}`")],
            false => Vec::new(),
        }
    });
}

/// The flags of a command and of all commands below it.
fn flags(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|one| one.get_long());
    let mut found: BTreeSet<String> = own.map(|name| format!("--{name}")).collect();
    found.extend(["--help".to_owned(), "--version".to_owned()]);
    command.get_subcommands().for_each(|below| found.extend(flags(below)));
    found
}

/// The scripts that have flags of their own.
fn tool_texts() -> Vec<String> {
    let folders = ["tools", "cluster", "crates/tilp/benches", "crates/tilp-mujoco/examples"];
    let all = folders.iter().flat_map(|folder| files(&root().join(folder), &[""]));
    let scripts = all.filter(|path| path.extension().is_none_or(|ending| ending != "md"));
    scripts.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// What is wrong with the commands in some code. A sentence may name a command without what it
/// needs; a block shows whole ones.
fn wrong_commands(code: &str, is_sentence: bool) -> Vec<String> {
    let code = code.split(" # ").next().unwrap_or_default();
    let parts = code.split([';', '&']).flat_map(|part| part.split(" | ")).map(str::trim);
    parts.filter_map(words).filter_map(|words| wrong(&words, is_sentence)).collect()
}

/// The words after the program, if a piece of a shell line calls it.
fn words(part: &str) -> Option<Vec<&str>> {
    let all: Vec<&str> = part.trim_start_matches("$ ").split_whitespace().collect();
    // In front of the program: variables, or another machine.
    let leads = |word: &&str| {
        word.contains('=') || ["do", "ssh", "time"].contains(word) || word.starts_with("node")
    };
    let by_cargo = all.contains(&"cargo") && all.contains(&"run") && !all.contains(&"--example");
    let at = match by_cargo {
        true => all.iter().position(|word| *word == "--")?,
        false => all.iter().position(|word| PROGRAMS.contains(word))?,
    };
    if !by_cargo && !all[..at].iter().all(leads) {
        return None;
    }
    let is_redirected =
        |word: &str| word.starts_with('>') || word.starts_with('<') && !word.ends_with('>');
    let words = all[at + 1..].iter().take_while(|word| !is_redirected(word));
    Some(words.map(|word| word.trim_matches(['[', ']', '<', '>'])).collect())
}

fn wrong(words: &[&str], is_sentence: bool) -> Option<String> {
    let whole = format!("tilp {}", words.join(" "));
    let mut command = Arguments::command();
    let mut rest = words;
    while let [first, after @ ..] = rest {
        // `list | show`, or `list|show`: every one must exist.
        let names: Vec<&str> = first.split('|').filter(|name| !name.is_empty()).collect();
        let found: Vec<_> = names.iter().map(|name| command.find_subcommand(name)).collect();
        // `tilp plan` takes a scenario or a verb.
        if command.has_subcommands()
            && command.get_positionals().next().is_none()
            && !first.starts_with('-')
            && !is_placeholder(first)
            && let Some(at) = found.iter().position(Option::is_none)
        {
            return Some(format!("`{whole}`: there is no verb `{}`", names[at]));
        }
        match &found[..] {
            [Some(below)] => command = (*below).clone(),
            _ => break,
        }
        rest = after;
    }
    let known = flags(&command);
    let flag_of = |word: &&str| word.split('=').next().map(str::to_owned);
    let given = rest.iter().filter(|word| word.starts_with("--")).filter_map(flag_of);
    if let Some(flag) = given.into_iter().find(|flag| !known.contains(flag)) {
        return Some(format!("`{whole}`: `tilp {}` has no flag {flag}", command.get_name()));
    }
    if words.iter().any(|word| is_placeholder(word)) {
        return None;
    }
    refused(words, is_sentence).map(|reason| format!("`{whole}`: {reason}"))
}

/// A word that stands for something: DIR, i/N, a|b, "...".
fn is_placeholder(word: &str) -> bool {
    let is_name = word.chars().all(|c| c.is_ascii_uppercase() || "/_-".contains(c));
    let has_one = word
        .split(['/', '=', '-'])
        .any(|part| part.chars().all(|c| c.is_ascii_uppercase()) && !part.is_empty());
    is_name || has_one || word.contains(['|', '$', '*', '[', ']']) || word.ends_with("..")
}

/// Why the program would refuse these words.
fn refused(words: &[&str], is_sentence: bool) -> Option<String> {
    let arguments = match Arguments::try_parse_from(["tilp"].iter().chain(words)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let incomplete = [
                ErrorKind::MissingRequiredArgument,
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            ];
            let is_fine = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
            let text = error.to_string();
            let is_incomplete =
                incomplete.contains(&error.kind()) || text.contains("a value is required");
            let passes = is_fine.contains(&error.kind()) || is_sentence && is_incomplete;
            return (!passes).then(|| text.lines().next().unwrap_or_default().to_owned());
        }
    };
    let unknown = methods(&arguments.verb).find_map(|name| tilp::scenario::method(name).err());
    if let Some(error) = unknown {
        return Some(error.to_string());
    }
    let (scenario, overrides) = asked(&arguments.verb)?;
    // Files of the reader's own, and what needs MuJoCo or its data, cannot be tried here.
    let can_try = !scenario.contains(['.', '/']) && !overrides.iter().any(|one| is_foreign(one));
    let loaded = can_try.then(|| Scenario::load(scenario, overrides));
    loaded?.err().map(|error| error.to_string())
}

fn is_foreign(value: &str) -> bool {
    value.contains("mujoco") || value.contains("cell.trace=") || value.contains("tasks.libero")
}

/// The methods that a command names. Groups of them are known to studies only.
fn methods(verb: &Verb) -> impl Iterator<Item = &str> {
    let named: Vec<&String> = match verb {
        Verb::Run(run) => run.method.iter().collect(),
        Verb::Compare(compare) => compare.methods.iter().collect(),
        Verb::Sweep(sweep) => sweep.methods.iter().collect(),
        _ => Vec::new(),
    };
    let is_group = |name: &&str| ["main", "published", "compressed"].contains(name);
    named.into_iter().map(String::as_str).filter(move |name| !is_group(name))
}

/// The scenario and the values that a command asks for.
fn asked(verb: &Verb) -> Option<(&str, &[String])> {
    match verb {
        Verb::Run(run) => Some((run.scenario.as_deref().unwrap_or("default"), &run.overrides)),
        Verb::Compare(one) => Some((&one.study.scenario, &one.study.overrides)),
        Verb::Ablate(one) => Some((&one.study.scenario, &one.study.overrides)),
        Verb::Sweep(one) => Some((&one.study.scenario, &one.study.overrides)),
        Verb::Plan(one) => Some((one.scenario.as_deref().unwrap_or("default"), &one.overrides)),
        Verb::Scenario(arguments::Scenario { verb }) => match verb {
            ScenarioVerb::Health(one) => Some((&one.name, &one.overrides)),
            ScenarioVerb::Show { name, overrides }
            | ScenarioVerb::Engines { name, overrides, .. } => Some((name, overrides)),
            _ => None,
        },
        Verb::Policy(arguments::Policy {
            verb: PolicyVerb::Pretrain { scenario, overrides, .. },
        }) => Some((scenario, overrides)),
        _ => None,
    }
}

#[test]
fn the_documents_show_commands() {
    let calls = |piece: &super::Piece| match piece.kind {
        Kind::Inline | Kind::Shell => words(&piece.text).is_some(),
        _ => false,
    };
    let pieces = super::documents().into_iter().flat_map(|document| document.pieces);
    let n_calls = pieces.filter(calls).count();
    assert!(n_calls > 100, "{n_calls} commands");
}

#[test]
fn wrong_verbs_flags_and_values_are_found() {
    let wrong = |code: &str| wrong_commands(code, false).join("; ");
    assert_eq!(wrong("tilp run tiny --rounds 3 --quiet"), "");
    assert_eq!(wrong("TILP_CACHE=x tilp run tiny > log.txt"), "");
    assert_eq!(wrong("cargo run --release -- run"), "");
    assert_eq!(wrong("tilp scenario list | show NAME"), "");
    assert_eq!(wrong("tilp plan tiny < observation.json"), "");
    assert!(wrong("tilp walk tiny").contains("there is no verb `walk`"));
    assert!(wrong("tilp run tiny --round 3").contains("`tilp run` has no flag --round"));
    assert!(wrong("tilp run [SCENARIO] [--metod M]").contains("has no flag --metod"));
    assert!(wrong("tilp run tiny --rounds three").contains("invalid value 'three'"));
    assert!(wrong("tilp run teeny").contains("teeny"));
    assert!(wrong("tilp run --method tlip").contains("tlip"));
    assert!(wrong("tilp run --set limits.band=3").contains("limits.band"));
    assert!(wrong("tilp report").contains("required"));
    assert_eq!(wrong_commands("tilp report", true), [""; 0]);
}
