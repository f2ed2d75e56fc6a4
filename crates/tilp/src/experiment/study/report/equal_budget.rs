//! TiLP against its rivals on equal budgets, as a table.

use super::aims::LEAST_SEEDS;
use super::page::escaped;
use super::tables::wrapped;
use crate::experiment::study::equal_budget::OURS;
use crate::experiment::study::{BudgetKind, Budgets, Finished, Plan, Row, Table};
use crate::scenario::Seeds;
use crate::statistics::{Estimate, mean, student_mean};

/// The titles of the columns.
const HEAD: [&str; 8] = [
    "budget",
    "used by",
    "rival",
    "seeds",
    "TiLP, %",
    "rival, %",
    "difference, points",
    "used share, %",
];

const NOTE: &str = "Final success on equal budgets, means over the seeds. The budget is what the \
method in the second column used on the same seed in a run of the scenario's number of rounds; the \
other method stops with the last round inside it. Difference: TiLP less the rival, paired by seed, \
with its 95 % interval from three seeds on. Used share: of the budget that the bounded run used most \
of.";

/// TiLP against a rival on one budget.
pub(super) struct Line {
    /// The method that used the budget.
    of: String,
    kind: BudgetKind,
    rival: String,
    /// Number of seeds that both have.
    seeds: usize,
    /// Mean final success of TiLP and of the rival.
    success: [f64; 2],
    /// TiLP less the rival, paired by seed.
    difference: Estimate,
    /// Mean share of the budget that the bounded run used; of several budgets the one used most.
    used: f64,
}

/// The lines of a study on equal budgets, in the order of its points.
pub(super) fn lines(plan: &Plan, table: &Table) -> Vec<Line> {
    let mut found = Vec::new();
    for point in &plan.points {
        let Some(budgets) = &point.budgets else { continue };
        for method in &point.methods {
            let is_it =
                |row: &&Row| row.subject.point == point.label && row.subject.method == *method;
            let row = table.rows.iter().find(is_it);
            found.extend(row.and_then(|row| line(budgets, method, row)));
        }
    }
    found
}

fn line(budgets: &Budgets, method: &str, row: &Row) -> Option<Line> {
    let is_ours = method == OURS;
    let run = |(seeds, run): &(Seeds, Finished)| -> Option<[f64; 3]> {
        let spent = budgets.by_seed.get(&seeds.seed)?;
        let used = run.summary.budget_used.values().copied().fold(0.0, f64::max);
        let (bounded, owner) = (run.summary.success_final?, spent.success);
        Some(if is_ours { [bounded, owner, used] } else { [owner, bounded, used] })
    };
    let runs: Vec<[f64; 3]> = row.runs.iter().filter_map(run).collect();
    let column = |at: usize| mean(runs.iter().map(|run| run[at]));
    let differences: Vec<f64> = runs.iter().map(|[ours, theirs, _]| ours - theirs).collect();
    let difference = student_mean(&differences)?;
    let interval = difference.interval.filter(|_| runs.len() >= LEAST_SEEDS);
    Some(Line {
        of: budgets.of.clone(),
        kind: budgets.kind,
        rival: if is_ours { budgets.of.clone() } else { method.to_owned() },
        seeds: runs.len(),
        success: [column(0)?, column(1)?],
        difference: Estimate { interval, ..difference },
        used: column(2)?,
    })
}

impl Line {
    fn cells(&self) -> [String; 8] {
        let [ours, theirs] = self.success.map(|value| format!("{:.1}", 100.0 * value));
        let kind = match self.kind {
            BudgetKind::All => "seconds, joules and bytes",
            one => one.name(),
        };
        [
            kind.to_owned(),
            self.of.clone(),
            self.rival.clone(),
            self.seeds.to_string(),
            ours,
            theirs,
            points(&self.difference),
            format!("{:.0}", 100.0 * self.used),
        ]
    }
}

/// A difference in points with its interval.
fn points(difference: &Estimate) -> String {
    let value = 100.0 * difference.mean;
    match difference.interval {
        Some([low, high]) => format!("{value:+.1} [{:+.1}, {:+.1}]", 100.0 * low, 100.0 * high),
        None => format!("{value:+.1}"),
    }
}

/// The number of comparisons in which TiLP is ahead, and of those with an interval above zero;
/// `None` without comparisons.
pub(super) fn headline(plan: &Plan, table: &Table) -> Option<String> {
    let lines = lines(plan, table);
    let ahead = lines.iter().filter(|line| line.difference.mean > 0.0).count();
    let is_sure = |line: &&Line| line.difference.interval.is_some_and(|[low, _]| low > 0.0);
    let sure = lines.iter().filter(is_sure).count();
    (!lines.is_empty()).then(|| {
        format!(
            "On equal budgets TiLP is ahead in {ahead} of {} comparisons, in {sure} of them with an \
             interval above zero.",
            lines.len()
        )
    })
}

/// The table in Markdown; `None` if the study is of another kind or has no complete run.
pub(super) fn markdown(plan: &Plan, table: &Table) -> Option<String> {
    let lines = lines(plan, table);
    let head = format!("| {} |\n|{}\n", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    let body: String =
        lines.iter().map(|line| format!("| {} |\n", line.cells().join(" | "))).collect();
    (!lines.is_empty()).then(|| format!("{NOTE}\n\n{head}{body}"))
}

/// The table as HTML; empty if the study is of another kind.
pub(super) fn html(plan: &Plan, table: &Table) -> String {
    let lines = lines(plan, table);
    if lines.is_empty() {
        return String::new();
    }
    let titles: String = HEAD.iter().map(|title| format!("<th>{title}</th>")).collect();
    let row = |line: &Line| {
        let cells = line.cells();
        let others: String =
            cells[1..].iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr><th>{}</th>{others}</tr>\n", escaped(&cells[0]))
    };
    let body: String = lines.iter().map(row).collect();
    wrapped("Equal budgets", &format!("<tr>{titles}</tr>\n"), &body) + &format!("<p>{NOTE}</p>\n")
}
