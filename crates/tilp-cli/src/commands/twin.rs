//! `tilp twin`.

use tilp::experiment::replay::{
    ContestReport, CurveReport, DecreaseReport, FactorReport, Replay, SubTwinReport, TwinReport,
    figures, forecasts, report,
};
use tilp::record::{RunFolder, write_beside};

use crate::arguments::{Format, Twin};
use crate::columns::{self, COLUMNS};
use crate::failure::Failure;
use crate::output;

/// Shows a run to its twin and says how well the twin predicted it.
pub(crate) fn twin(arguments: Twin) -> Result<(), Failure> {
    let folder = RunFolder::open(&arguments.folder).map_err(Failure::input)?;
    let replay = Replay::open_with(&folder, &arguments.overrides).map_err(Failure::input)?;
    let forecasts = forecasts(&replay);
    let report = report(&replay, &forecasts);
    let out = arguments.out.unwrap_or_else(|| arguments.folder.join("twin"));
    let drawn = figures(&forecasts, &report);
    let files: Vec<(String, Vec<u8>)> =
        drawn.into_iter().flat_map(|(name, figure)| figure.files(&name, None)).collect();
    write_beside(&out, &files).map_err(Failure::writing)?;
    output::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report).expect("a report is plain data"),
        Format::Text => format!("{}figures in {}", as_text(&report), out.display()),
    })
}

/// The note on the kind of scenario is one line, whatever its length.
fn as_text(report: &TwinReport) -> String {
    let TwinReport { scenario, method, seed, rounds, .. } = report;
    let heading = format!("twin of {method} on {scenario}, seed {seed}, {rounds} rounds\n");
    let note = report.note.map_or(String::new(), |note| format!("{note}\n"));
    format!("{heading}{note}{}", columns::within(&tables(report), COLUMNS))
}

fn tables(report: &TwinReport) -> String {
    let (mut text, frozen) = (String::new(), &report.frozen);
    if !frozen.is_empty() {
        text += &format!("frozen by the scenario: {}\n", frozen.join(", "));
    }
    text += "\n                          median |error| of forecasts     90 % intervals hold\n";
    text += "                       n  before   after  first / later         before   after\n";
    report.sub_twins.iter().for_each(|one| text += &sub_twin_line(one));
    text += &notes(report);
    text += &contest_lines(&report.contests);
    text += &decrease_lines(&report.decreases, report.decrease_within_rounds);
    text += &hidden_lines(&report.hidden, first_of(report, "network delay"));
    text + &curve_lines(&report.curve)
}

fn sub_twin_line(one: &SubTwinReport) -> String {
    let error = |value: Option<f64>| percent(value, 1);
    let parts = format!("{} / {}", error(one.error_first), error(one.error_later));
    format!(
        "{:17} {:6}  {:>6}  {:>6}  {parts:>13}         {:>6}  {:>6}\n",
        one.name,
        one.n,
        error(one.error_before),
        error(one.error_after),
        percent(one.coverage_before, 1),
        percent(one.coverage_after, 1),
    )
}

/// Each forecast against the naive rules.
fn contest_lines(contests: &[ContestReport]) -> String {
    let mut text = String::from(
        "\nagainst the naive rules, less is better\n\
         \x20                             n    twin  90 % hold  score\n",
    );
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.4}"));
    for one in contests.iter().filter(|one| one.n > 0) {
        let naive: Vec<String> =
            one.naive.iter().map(|rule| format!("{} {}", rule.rule, number(rule.score))).collect();
        let behind = if one.better == Some(false) { "; the twin is not better" } else { "" };
        text += &format!(
            "{:24} {:6}  {:>6}  {:>9}  {}\n    {}{behind}\n",
            one.quantity,
            one.n,
            number(one.twin),
            percent(one.coverage, 1),
            one.score,
            naive.join(", "),
        );
    }
    text
}

/// How many measurements of a quantity count as its first.
fn first_of(report: &TwinReport, name: &str) -> u64 {
    report.sub_twins.iter().find(|one| one.name == name).map_or(0, |one| one.first)
}

/// What the columns mean.
fn notes(report: &TwinReport) -> String {
    format!(
        "before, after: without and with calibration, in % of what was measured, decrease and \
         success in percentage points. first: with calibration, a terminal's first {} rounds, the \
         first {} looks at the loss, a task's first {} measurements of success. Every forecast was \
         made before its round was seen.\n",
        first_of(report, "network delay"),
        first_of(report, "training decrease"),
        first_of(report, "task success"),
    )
}

/// The one-round loss decrease, in total and per task.
fn decrease_lines(decreases: &[DecreaseReport], within_rounds: Option<f64>) -> String {
    let n = decreases.first().map_or(0, |one| one.n);
    if n == 0 {
        return "\nloss decrease of a round: no round of the run was looked at\n".into();
    }
    let mut text = format!(
        "\nloss decrease of the deployed policy in one round, % of the loss, over {n} rounds\n\
         {0:15}                      rms error of\n\
         {0:15}  realised  forecast  no change  before   after  rank  hold\n",
        ""
    );
    for one in decreases {
        text += &format!(
            "  {:13}  {:>8}  {:>8}  {:>9}  {:>6}  {:>6}  {:>4}  {:>4}\n",
            one.task.unwrap_or("all"),
            percent(one.realised, 2),
            percent(one.forecast, 2),
            percent(one.rms_unchanged, 2),
            percent(one.rmse_before, 2),
            percent(one.rmse_after, 2),
            number(one.spearman),
            percent(one.coverage, 0),
        );
    }
    text + &format!(
        "  rank: correlation of the ranks of forecast and realised; between the terminals of a \
         round: {}\n",
        number(within_rounds)
    )
}

fn hidden_lines(hidden: &[FactorReport], first: u64) -> String {
    let n = hidden.first().map_or(0, |one| one.n_terminals);
    if n == 0 {
        return format!(
            "\nhidden from the twin: no terminal was scheduled more than {first} times\n"
        );
    }
    let mut text = format!(
        "\nhidden from the twin, median error over the {n} terminals scheduled more than {first} times\n\
         {:35}      before       after\n",
        ""
    );
    for one in hidden {
        let (before, after) = (percent(one.error_before, 1), percent(one.error_after, 1));
        text += &format!("  {:33}{before:>12}  {after:>10}\n", one.name);
    }
    text
}

/// Whether loss predicts success within a task.
fn curve_lines(curve: &CurveReport) -> String {
    let groups = curve.groups.iter();
    let groups: Vec<String> =
        groups.map(|one| format!("{} {}", one.task, number(one.spearman))).collect();
    let n = curve.groups.first().map_or(0, |one| one.rounds.len());
    let brier = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
    format!(
        "\nloss against success within a task over {n} measurements, rank correlation (-1: loss \
         tells all)\n  {} together: {}\n  Brier score of {} forecasts: curve {}, a task's mean in \
         hindsight {}, last measured {};\n  skill of the curve {} and {}\n\n",
        number(curve.spearman),
        groups.join(", "),
        curve.n,
        brier(curve.brier_curve),
        brier(curve.brier_constant),
        brier(curve.brier_last),
        percent(curve.skill_to_constant, 1),
        percent(curve.skill_to_last, 1),
    )
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

fn percent(share: Option<f64>, digits: usize) -> String {
    share.map_or("-".into(), |share| format!("{:.digits$}", 100.0 * share))
}
