//! The tables of a study as HTML.

use std::fmt::Write as _;

use super::aims;
use super::columns::{BESIDE, COLUMNS, Column};
use super::page::escaped;
use super::paper::{Published, published};
use crate::experiment::study::{Metric, Pairing, Plan, Row, Table};
use crate::statistics::{Estimate, stratified_interquartile_mean};

/// Metrics whose differences are shown in pairs.
const PAIRED: [(&str, &str, f64); 5] = [
    ("Success, points", "success_final", 1e2),
    ("Far third, points", "success_far", 1e2),
    ("Latency p50, s", "latency_p50_s", 1.0),
    ("Energy, J", "energy_total_j", 1.0),
    ("Volume, GB", "volume_total_bytes", 1e-9),
];

/// The aims with their verdicts, if there are any. On a narrow screen the cells of a line are below
/// each other, each with its title.
pub(super) fn against_aims(plan: &Plan, table: &Table) -> String {
    let Some(lines) = aims::lines(plan, table) else { return String::new() };
    let titles: String = aims::HEAD.iter().map(|title| format!("<th>{title}</th>")).collect();
    let mut body = String::new();
    for [title, cells @ ..] in lines {
        let cell = |(label, text): (&&str, &String)| {
            let text = escaped(text);
            format!("<td data-label=\"{label}\">{text}</td>")
        };
        let cells: String = aims::HEAD[1..].iter().zip(&cells).map(cell).collect();
        let _ = writeln!(body, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escaped(&title));
    }
    let head = format!("<tr>{titles}</tr>\n");
    format!("<div class=\"words\">{}</div>\n{AIMS}", wrapped("Against the aims", &head, &body))
}

const AIMS: &str = "<p>Differences and ratios (geometric means) paired by seed, with Student's 95 % \
intervals. Where on some seed only one of the two reached a threshold, the verdict counts seeds. The \
best of the eight is the best in that one metric, on the seeds that TiLP has too.</p>\n";

pub(super) fn names(plan: &Plan, row: &Row) -> String {
    let method = escaped(&row.subject.method);
    if plan.points.len() == 1 {
        return format!("<th scope=\"row\">{method}</th>");
    }
    format!("<th scope=\"row\">{}<br><small>{method}</small></th>", escaped(&row.subject.point))
}

fn cells(table: &Table, row: &Row, columns: &[Column]) -> String {
    let cell = |column: &Column| {
        let class = match column.rank(table, row) {
            Some(0) => " class=\"best\"",
            Some(1) => " class=\"second\"",
            _ => "",
        };
        // The interval below the mean keeps columns narrow.
        let text = escaped(&column.text(row)).replacen(" [", "<br><small>[", 1);
        let end = if text.contains("<small>") { "</small>" } else { "" };
        format!("<td{class}>{text}{end}</td>")
    };
    columns.iter().map(cell).collect()
}

pub(super) fn wrapped(caption: &str, head: &str, body: &str) -> String {
    format!(
        "<h3>{caption}</h3>\n<div class=\"scroll\"><table>\n<thead>\n{head}</thead>\n<tbody>\n{body}\
         </tbody>\n</table></div>\n"
    )
}

/// The columns of the paper, with the paper's own numbers if it has any.
pub(super) fn main_table(plan: &Plan, table: &Table) -> String {
    let of = |row: &Row| match table.note() {
        // The paper's numbers are for policies that control robots.
        Some(_) => None,
        None => published(plan.question, &row.subject.point, &row.subject.method),
    };
    let has_paper = table.rows.iter().any(|row| of(row).is_some());
    let mut head = format!("<tr><th></th><th>Seeds</th>{}", titles(&COLUMNS));
    if has_paper {
        head += &paper_titles(&escaped(&table.rows[table.reference].subject.method));
    }
    head += "</tr>\n";
    let mut body = String::new();
    for row in &table.rows {
        let (names, seeds) = (names(plan, row), row.seeds());
        let _ = write!(body, "<tr>{names}<td>{seeds}</td>{}", cells(table, row, &COLUMNS));
        if has_paper {
            body += &paper_cells(table, row, of(row));
        }
        body += "</tr>\n";
    }
    let places = match table.by_point {
        true => "best at each point in bold, second underlined",
        false => "best in bold, second underlined",
    };
    let paper = match has_paper {
        true => " Columns marked \"paper\" are the paper's own numbers, from its testbed.",
        false => "",
    };
    let note = format!(
        "<p>Means over seeds with 95 % intervals. Those of success are Wilson's on the episodes of all \
         seeds: they cover episode noise only, not the variation between seeds. All others are bootstrap \
         over seeds; with few seeds they hold less than 95 % (for normal values 67 % with three seeds, \
         84 % with five). Among rows with every seed the {places}. \"2 of 3\": reached with two of \
         three seeds.{paper}</p>\n"
    );
    wrapped("Main results", &head, &body) + &note
}

fn titles(columns: &[Column]) -> String {
    columns.iter().map(|column| format!("<th>{}</th>", escaped(column.title))).collect()
}

/// The columns with a number in the paper.
fn paper() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.paper.is_some())
}

fn paper_titles(reference: &str) -> String {
    let title = |column: &Column| format!("<th class=\"paper\">paper: {}</th>", column.title);
    let titles: String = paper().map(title).collect();
    format!("<th>Energy / {reference}</th>{titles}<th class=\"paper\">paper: energy / tilp</th>")
}

fn paper_cells(table: &Table, row: &Row, published: Option<&Published>) -> String {
    let energy =
        |row: &Row| row.estimate(Metric::named("energy_total_j")).map(|estimate| estimate.mean);
    let ratio = energy(row).zip(energy(&table.rows[table.reference]));
    let ratio = ratio.map_or("-".into(), |(own, ours)| format!("{:.2}", own / ours));
    let cell = |value: Option<f64>| {
        let text = value.map_or("-".to_owned(), |value| value.to_string());
        format!("<td class=\"paper\">{text}</td>")
    };
    let value = |column: &Column| published.and_then(|row| column.paper.and_then(|of| of(row)));
    let cells: String = paper().map(|column| cell(value(column))).collect();
    format!("<td>{ratio}</td>{cells}{}", cell(published.map(|row| row.energy)))
}

/// The columns that the paper does not have.
pub(super) fn beside(plan: &Plan, table: &Table) -> String {
    let head = format!(
        "<tr><th></th>{}<th>Success by task and seed, interquartile mean, %</th></tr>\n",
        titles(&BESIDE)
    );
    let mut body = String::new();
    for row in &table.rows {
        let (names, cells) = (names(plan, row), cells(table, row, &BESIDE));
        let middle = stratified_interquartile_mean(&row.success_by_task());
        let middle = middle.map_or("-".into(), |one| with_interval(one, 100.0, 1, false));
        let _ = writeln!(body, "<tr>{names}{cells}<td>{middle}</td></tr>");
    }
    let note = "<p>The interquartile mean is over all tasks and seeds; its interval resamples seeds \
                within each task.</p>\n";
    wrapped("Beside the paper's metrics", &head, &body) + note
}

/// A mean and, below it in small type, its interval: that keeps columns narrow.
pub(super) fn with_interval(
    estimate: Estimate,
    factor: f64,
    digits: usize,
    signed: bool,
) -> String {
    let mean = factor * estimate.mean;
    let interval = estimate.interval.map(|ends| ends.map(|end| factor * end));
    let interval = interval.map_or(String::new(), |[low, high]| {
        format!("<br><small>[{low:.digits$}, {high:.digits$}]</small>")
    });
    let mean = if signed { format!("{mean:+.digits$}") } else { format!("{mean:.digits$}") };
    mean + &interval
}

/// Every row compared with its reference.
pub(super) fn pairs(plan: &Plan, table: &Table) -> String {
    let title =
        |(title, ..): &(&str, &str, f64)| format!("<th>{title}</th><th>effect</th><th>p</th>");
    let titles: String = PAIRED.iter().map(title).collect();
    let head = format!("<tr><th></th><th>Pairs</th>{titles}</tr>\n");
    let mut body = String::new();
    for (index, row) in table.rows.iter().enumerate() {
        if table.compared_with(index).is_none() {
            continue;
        }
        let of = |name: &str| table.pairing(index, Metric::named(name));
        let n_pairs = of("success_final").map_or(0, |pairing| pairing.pairs);
        let cell = |&(_, name, factor): &(&str, &str, f64)| pair_cells(of(name), factor);
        let cells: String = PAIRED.iter().map(cell).collect();
        let _ = writeln!(body, "<tr>{}<td>{n_pairs}</td>{cells}</tr>", names(plan, row));
    }
    let reference = &table.rows[table.reference].subject;
    let reference = match plan.points.len() {
        1 => reference.method.clone(),
        _ if table.by_point => format!("{} at the same point", reference.method),
        _ => format!("{} at {}", reference.method, reference.point),
    };
    let caption = format!("{} less each row, paired by seed", escaped(&reference));
    wrapped(&caption, &head, &body) + PAIRS
}

const PAIRS: &str = "<p>Means of paired differences with Student's 95 % intervals, which hold 95 % of \
normal values however few. Effect: mean difference in units of its standard deviation, corrected for \
few seeds. p: exact sign-flip test; with n seeds it cannot be below 2<sup>1-n</sup>. Both from three \
pairs on.</p>\n";

fn pair_cells(pairing: Option<Pairing>, factor: f64) -> String {
    let Some(pairing) = pairing else { return "<td>-</td><td>-</td><td>-</td>".to_owned() };
    let digits = if factor < 1.0 { 3 } else { 1 };
    let difference = with_interval(pairing.difference, factor, digits, true);
    let effect = pairing.effect.map_or("-".into(), |effect| format!("{effect:.1}"));
    let p = pairing.p.map_or("-".into(), |p| format!("{p:.3}"));
    format!("<td>{difference}</td><td>{effect}</td><td>{p}</td>")
}
