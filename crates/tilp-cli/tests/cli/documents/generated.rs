//! Documents that are made from something else: the reference of commands from the command line's
//! definition, the table of the README from the results. `UPDATE_EXPECT=1` writes them anew.

use std::fmt::Write;
use std::fs;

use clap::{Arg, Command, CommandFactory};

use super::arguments::Arguments;
use super::root;

/// Compares a file with what it should be, or writes it.
pub fn expect(name: &str, expected: &str) {
    expect_test::expect_file![root().join(name)].assert_eq(expected);
}

#[test]
fn the_reference_of_commands_is_that_of_the_program() {
    let mut text = String::from(
        "# Commands\n\nGenerated from the definition of the command line by a test \
         (`UPDATE_EXPECT=1 cargo test -p tilp-cli --test cli documents`).\n\
         `tilp VERB --help` prints the same.\n",
    );
    let mut command = Arguments::command();
    command.build();
    verbs(&command, &mut text);
    expect("docs/reference/cli.md", &text);
}

#[test]
fn the_schema_of_the_exchange_is_that_of_the_program() {
    let schema = serde_json::to_string_pretty(&tilp::exchange::schema()).unwrap();
    expect("docs/reference/exchange.schema.json", &(schema + "\n"));
}

/// A section for every command that can be typed, in the order of the help.
fn verbs(command: &Command, text: &mut String) {
    for below in command.get_subcommands().filter(|one| one.get_name() != "help") {
        // A command with verbs may also do something by itself.
        if !below.has_subcommands() || below.get_positionals().next().is_some() {
            section(below, text);
        }
        verbs(below, text);
    }
}

fn section(command: &Command, text: &mut String) {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let about = about.unwrap_or_default();
    let about = about.trim_end_matches('.');
    write!(text, "\n## {name}\n\n{about}.\n\n```\n{usage}\n```\n\n").unwrap();
    text.push_str("| argument | meaning | default |\n|---|---|---|\n");
    for argument in command.get_arguments().filter(|one| one.get_id() != "help") {
        text.push_str(&row(argument));
    }
    if let Some(after) = command.get_after_help() {
        write!(text, "\n```text\n{}\n```\n", after.to_string().trim_end()).unwrap();
    }
}

fn row(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let takes_value = argument.get_action().takes_values();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let shown = match (argument.get_long(), takes_value) {
        (Some(long), true) => format!("--{long} {value}"),
        (Some(long), false) => format!("--{long}"),
        (None, _) if argument.is_required_set() => value,
        (None, _) => format!("[{value}]"),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    // Defaults that depend on other arguments stand in brackets at the end of the help.
    let (help, in_words) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(']').to_owned()),
        None => (help, String::new()),
    };
    let defaults = argument.get_default_values().iter().map(|one| one.to_string_lossy());
    let default = match (takes_value, defaults.collect::<Vec<_>>().join(", ")) {
        (true, fixed) if !fixed.is_empty() => fixed,
        _ => in_words,
    };
    let choices = argument.get_possible_values();
    let choices: Vec<&str> = choices.iter().map(|one| one.get_name()).collect();
    let choices = match takes_value && !choices.is_empty() {
        true => format!(": {}", choices.join(" or ")),
        false => String::new(),
    };
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("| `{}` | {}{choices} | {} |\n", plain(&shown), plain(&help), plain(&default))
}

/// The rows of the README's table: the study and the method.
const ROWS: [(&str, &str); 6] = [
    ("v3/compare-default", "tilp"),
    ("v3/compare-default", "random"),
    ("v3/compare-default", "deficit"),
    ("v3/compare-default", "asfl+guard"),
    ("v3/compare-default", "splitfed+guard+q0.9"),
    ("v3/compare-default", "splitnn+guard+q0.75"),
];

/// Its columns: what stands above, the metric, the unit in which it is shown, and whether less is
/// better.
const COLUMNS: [(&str, &str, f64, bool); 6] = [
    ("success, %", "success_final", 0.01, false),
    ("far third, %", "success_far", 0.01, false),
    ("rounds to 70 %", "rta_0.7", 1.0, true),
    ("seconds to 70 %", "tta_s_0.7", 1.0, true),
    ("joules to 70 %", "eta_j_0.7", 1.0, true),
    ("MB on the air", "air_total_bytes", 1e6, true),
];

const BEFORE: &str = "<!-- The table comes from docs/results; a test writes and checks it. -->\n";

#[test]
fn the_table_of_the_readme_is_made_of_the_results() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (before, rest) = readme.split_once(BEFORE).expect("README.md marks its table");
    let after = rest.trim_start().split_once("\n\n").expect("a paragraph after the table").1;
    expect("README.md", &format!("{before}{BEFORE}\n{}\n{after}", table()));
}

/// One screen: its lines at 120 letters each, and one picture.
#[test]
fn the_readme_fits_on_one_screen() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let n_lines: usize = readme.lines().map(|line| line.chars().count().div_ceil(120).max(1)).sum();
    assert!(n_lines <= 58, "README.md has {n_lines} lines of at most 120 letters");
    assert_eq!(readme.matches("<img").count() + readme.matches("![").count(), 1, "pictures");
}

/// What it is for, what one does with it, what it does better and what it does not do come before the first
/// command, each as one sentence without names of methods and keys.
#[test]
fn the_first_lines_of_the_readme_answer_in_one_sentence_each_what_a_user_asks() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let first = readme.split("```").next().unwrap();
    for question in
        ["What you do with it", "What it does better than the alternatives", "What it does not do"]
    {
        let answer = first.lines().find_map(|line| line.strip_prefix(&format!("- *{question}*: ")));
        let answer = answer.unwrap_or_else(|| panic!("README.md does not answer: {question}"));
        assert_eq!(answer.matches(". ").count(), 0, "more than one sentence: {answer}");
        assert!(answer.ends_with('.') && !answer.contains('`'), "{answer}");
    }
    // Words of the glossary come later.
    for word in ["terminal", "policy", "twin", "scenario", "guard", "far third", "deadline"] {
        assert!(!first.to_lowercase().contains(word), "{word} is not explained yet");
    }
}

fn table() -> String {
    let values: Vec<Vec<Value>> = ROWS.iter().map(|&row| values(row)).collect();
    let best = |column: usize| {
        let all = values.iter().filter_map(|row| row[column].mean);
        let less_is_better = COLUMNS[column].3;
        all.reduce(|a, b| if (a < b) == less_is_better { a } else { b })
    };
    let titles: Vec<&str> = COLUMNS.iter().map(|column| column.0).collect();
    let rule = "|---".repeat(COLUMNS.len() + 1);
    let mut text = format!("| method | {} |\n{rule}|\n", titles.join(" | "));
    for ((_, method), row) in ROWS.iter().zip(&values) {
        let cells = row.iter().enumerate().map(|(column, value)| {
            let bold = if value.mean.is_some() && value.mean == best(column) { "**" } else { "" };
            format!("{bold}{}{bold}", value.shown)
        });
        writeln!(text, "| `{method}` | {} |", cells.collect::<Vec<_>>().join(" | ")).unwrap();
    }
    text
}

/// One cell of the table.
struct Value {
    /// None if some seed did not get there.
    mean: Option<f64>,
    shown: String,
}

fn values((study, method): (&str, &str)) -> Vec<Value> {
    let results = Results::read(study);
    let cell = |&(_, metric, unit, _): &(&str, &str, f64, bool)| {
        let mean = results.mean(method, metric).map(|mean| mean / unit);
        let shown = results.shown(method, metric, unit, if unit < 1.0 { 1 } else { 0 });
        Value { mean, shown }
    };
    COLUMNS.iter().map(cell).collect()
}

/// The table of a study.
struct Results {
    study: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Results {
    fn read(study: &str) -> Self {
        let path = root().join(format!("docs/results/{study}/table.csv"));
        let text = fs::read_to_string(path).unwrap();
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(cells);
        Self { study: study.to_owned(), head: lines.next().unwrap(), rows: lines.collect() }
    }

    fn at<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        &row[self.head.iter().position(|name| name == column).unwrap()]
    }

    fn row(&self, method: &str, metric: &str) -> &[String] {
        let mine = |row: &&Vec<String>| {
            self.at(row, "method") == method && self.at(row, "metric") == metric
        };
        let found = self.rows.iter().find(mine);
        found.unwrap_or_else(|| panic!("{}: no {metric} of {method}", self.study))
    }

    /// None if some seed did not get there.
    fn mean(&self, method: &str, metric: &str) -> Option<f64> {
        self.at(self.row(method, metric), "mean").parse().ok()
    }

    /// The mean in a unit, or on how many seeds there is a value.
    fn shown(&self, method: &str, metric: &str, unit: f64, digits: usize) -> String {
        match self.mean(method, metric) {
            Some(mean) => format!("{:.digits$}", mean / unit),
            None => {
                let of = |column: &str| self.at(self.row(method, metric), column);
                format!("{} of {} seeds", of("values"), of("runs"))
            }
        }
    }

    /// Methods that reach 70 % on every seed.
    fn arriving(&self) -> Vec<&str> {
        let rows = self.rows.iter().filter(|row| self.at(row, "metric") == "rta_0.7");
        let rows = rows.filter(|row| !self.at(row, "mean").is_empty());
        rows.map(|row| self.at(row, "method")).collect()
    }
}

/// The table of `docs/results/v3/README.md`.
#[test]
fn the_page_of_version_3_is_made_of_its_results() {
    const PRINTED: [(&str, &str, f64, usize); 9] = [
        ("final success, %", "success_final", 0.01, 1),
        ("far third, %", "success_far", 0.01, 1),
        ("rounds to 60 %", "rta_0.6", 1.0, 0),
        ("seconds to 60 %", "tta_s_0.6", 1.0, 0),
        ("joules to 60 %", "eta_j_0.6", 1.0, 0),
        ("seconds to 70 %", "tta_s_0.7", 1.0, 0),
        ("joules to 70 %", "eta_j_0.7", 1.0, 0),
        ("MB on the air", "air_total_bytes", 1e6, 0),
        ("rounds without violation, %", "violation_zero_share", 0.01, 1),
    ];
    let results = Results::read("v3/compare-default");
    let page = fs::read_to_string(root().join("docs/results/v3/README.md")).unwrap();
    for (title, metric, unit, digits) in PRINTED {
        let cells = ROWS.map(|(_, method)| results.shown(method, metric, unit, digits)).join(" | ");
        let row = format!("| {title} | {cells} |");
        assert!(page.contains(&row), "docs/results/v3/README.md lacks: {row}");
    }
    for row in equal_budgets().lines().filter(|line| line.starts_with('|')) {
        assert!(page.contains(row), "docs/results/v3/README.md lacks: {row}");
    }
}

fn equal_budgets() -> String {
    let name = "docs/results/v3/compare-default/equal-budget/equal-budget.md";
    fs::read_to_string(root().join(name)).unwrap()
}

/// The sentences of the README around its table.
#[test]
fn what_the_readme_says_of_tilp_holds_in_the_results() {
    let results = Results::read("v3/compare-default");
    let value = |method: &str, metric: &str| results.mean(method, metric).unwrap();
    let ratio = |metric: &str, method: &str, to: &str| value(method, metric) / value(to, metric);
    assert_eq!(value("tilp", "violation_zero_share"), 1.0);
    // "in half the time of the next fastest way to decide"
    let others = results.arriving().into_iter().filter(|method| *method != "tilp");
    let next = others.map(|method| value(method, "tta_s_0.7")).fold(f64::INFINITY, f64::min);
    let share = value("tilp", "tta_s_0.7") / next;
    assert!((0.45..0.55).contains(&share), "{share}");
    let budgets = equal_budgets();
    let row = budgets.lines().find(|line| line.starts_with("| seconds | deficit | deficit |"));
    let cells: Vec<&str> = row.unwrap().split(" | ").collect();
    let said = format!("TiLP ends at {} %, `deficit` at {} %", cells[4], cells[5]);
    assert!(fs::read_to_string(root().join("README.md")).unwrap().contains(&said), "{said}");
    let (all, relay) = ("asfl+guard", "splitnn+guard+q0.75");
    for higher in [all, relay] {
        assert!(value(higher, "success_final") > value("tilp", "success_final"), "{higher}");
    }
    assert!(value("deficit", "success_far") > value("tilp", "success_far"));
    for (metric, method, to, expected) in [
        ("energy_total_j", all, "tilp", 19.0),
        ("eta_j_0.7", "tilp", relay, 3.0),
        ("tta_s_0.7", relay, "tilp", 3.0),
    ] {
        let found = ratio(metric, method, to);
        assert!((found / expected - 1.0_f64).abs() < 0.15, "{metric} of {method}: {found}");
    }
}
