//! One page that opens from disk: tables, figures, scenario.

use std::fmt::Write as _;

use super::paper::{Published, published};
use super::{Report, Section, aims};
use crate::experiment::study::{Metric, Plan, Row, Table};
use crate::statistics::interquartile_mean;

/// A column of the tables for people.
pub struct Column {
    /// Its title, with its unit.
    pub title: &'static str,
    metric: &'static str,
    factor: f64,
    digits: usize,
    /// The paper's number, if it has one.
    paper: Option<fn(&Published) -> Option<f64>>,
}

const fn column(
    title: &'static str,
    metric: &'static str,
    factor: f64,
    digits: usize,
    paper: Option<fn(&Published) -> Option<f64>>,
) -> Column {
    Column { title, metric, factor, digits, paper }
}

/// The columns of the paper's tables.
pub const COLUMNS: [Column; 8] = [
    column("Success, %", "success_final", 1e2, 1, Some(|row| Some(row.success))),
    column("Rounds to 60 %", "rta_0.6", 1.0, 0, Some(|row| row.rta[0].map(f64::from))),
    column("Rounds to 70 %", "rta_0.7", 1.0, 0, Some(|row| row.rta[1].map(f64::from))),
    column("Rounds to 80 %", "rta_0.8", 1.0, 0, Some(|row| row.rta[2].map(f64::from))),
    column("Latency, s", "latency_mean_s", 1.0, 2, Some(|row| Some(row.latency_s))),
    column("Energy, J", "energy_total_j", 1.0, 0, None),
    column("Volume, GB", "volume_total_bytes", 1e-9, 3, Some(|row| Some(row.volume_gb))),
    column("Violation", "violation_mean", 1.0, 4, Some(|row| Some(row.violation))),
];

/// What the paper does not count.
const BESIDE: [Column; 12] = [
    column("Far third, %", "success_far", 1e2, 1, None),
    column("Worst task, %", "success_worst_task", 1e2, 1, None),
    column("s to 60 %", "tta_s_0.6", 1.0, 0, None),
    column("s to 70 %", "tta_s_0.7", 1.0, 0, None),
    column("s to 80 %", "tta_s_0.8", 1.0, 0, None),
    column("J to 60 %", "eta_j_0.6", 1.0, 0, None),
    column("J to 70 %", "eta_j_0.7", 1.0, 0, None),
    column("J to 80 %", "eta_j_0.8", 1.0, 0, None),
    column("Latency p50, s", "latency_p50_s", 1.0, 2, None),
    column("Latency p95, s", "latency_p95_s", 1.0, 2, None),
    column("On the air, GB", "air_total_bytes", 1e-9, 3, None),
    column("Late", "late_total", 1.0, 0, None),
];

/// Metrics whose differences are shown in pairs.
const PAIRED: [(&str, &str, f64); 5] = [
    ("Success, points", "success_final", 1e2),
    ("Far third, points", "success_far", 1e2),
    ("Latency p50, s", "latency_p50_s", 1.0),
    ("Energy, J", "energy_total_j", 1.0),
    ("Volume, GB", "volume_total_bytes", 1e-9),
];

impl Column {
    fn metric(&self) -> &'static Metric {
        Metric::named(self.metric)
    }

    /// A row's value for people.
    pub fn text(&self, row: &Row) -> String {
        row.cell(self.metric(), self.factor, self.digits)
    }

    /// The place of a row among those with every seed: 0 for the best. None where the numbers are
    /// alike, for rows that are no method, and where a place has no meaning.
    pub fn rank(&self, table: &Table, row: &Row) -> Option<usize> {
        let more_is_better = self.metric().more_is_better?;
        let counts = |row: &&Row| row.subject.method != "oracle" && row.failed.is_empty();
        let value = |row: &Row| row.estimate(self.metric()).map(|estimate| estimate.mean);
        let own = value(row).filter(|_| counts(&row))?;
        let others: Vec<f64> = table.rows.iter().filter(counts).filter_map(value).collect();
        let better = |other: &&f64| if more_is_better { **other > own } else { **other < own };
        let alike = others.iter().all(|other| *other == own);
        (!alike).then(|| others.iter().filter(better).count())
    }
}

/// The page. Files of a section lie in the folder that is its `place`.
pub fn page(report: &Report, place: &dyn Fn(&Section) -> String) -> String {
    let sections = &report.sections;
    let title = match &sections[..] {
        [one] => format!("TiLP: {}", title(&one.plan)),
        _ => format!("TiLP: {} studies", sections.len()),
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{heading}</h1>\n",
        title = escaped(&title),
        heading = if sections.len() > 1 { escaped(&title) } else { "TiLP".to_owned() }
    );
    if sections.len() > 1 {
        html += &contents(sections);
    }
    for section in sections {
        html += &shown(section, &place(section));
    }
    html += DIFFERENCES;
    html + "</main>\n</body>\n</html>\n"
}

fn title(plan: &Plan) -> String {
    format!("{} on {}", plan.question, plan.scenario)
}

/// What the first study says, and where the others are.
fn contents(sections: &[Section]) -> String {
    let first = &sections[0];
    let headline = escaped(&headline(&first.plan, &first.table));
    let link = |section: &Section| {
        let (name, title) = (escaped(&section.name), escaped(&title(&section.plan)));
        format!("<li><a href=\"#{name}\">{title}</a></li>\n")
    };
    let links: String = sections.iter().map(link).collect();
    format!("<p class=\"headline\">{headline}</p>\n<nav><ul>\n{links}</ul></nav>\n")
}

fn shown(section: &Section, place: &str) -> String {
    let Section { name, plan, table, figures, scenario, set_apart, .. } = section;
    let mut html = format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"headline\">{}</p>\n",
        escaped(name),
        escaped(&title(plan)),
        escaped(&headline(plan, table))
    );
    if !set_apart.is_empty() {
        let values: Vec<String> =
            set_apart.iter().map(|value| format!("<code>{}</code>", escaped(value))).collect();
        let scenario = escaped(&plan.scenario);
        let _ = writeln!(
            html,
            "<p>Set apart from the built-in <code>{scenario}</code>: {}.</p>",
            values.join(", ")
        );
    }
    html += &gaps(table);
    let tables = main_table(plan, table)
        + &against_aims(plan, table)
        + &beside(plan, table)
        + &pairs(plan, table);
    let drawn: String = figures
        .iter()
        .map(|(name, figure)| {
            let svg = figure.to_svg();
            format!(
                "<figure id=\"{0}-{name}\">\n<div class=\"scroll\">{svg}</div>\n</figure>\n",
                section.name
            )
        })
        .collect();
    // What a sweep shows is a figure; its tables are many lines.
    html += &match plan.question.starts_with("sweep") {
        true => format!("{drawn}<details>\n<summary>Tables</summary>\n{tables}</details>\n"),
        false => tables + &drawn,
    };
    let _ = writeln!(
        html,
        "<details>\n<summary>All values of the scenario that every run starts \
         from</summary>\n<pre>{}</pre>\n</details>",
        escaped(scenario)
    );
    let link = |file: &str| format!("<a href=\"{0}{file}\">{file}</a>", escaped(place));
    let mut links: Vec<String> =
        ["runs.csv", "runs.jsonl", "table.csv", "table.md", "table.tex"].map(link).to_vec();
    for (name, _) in figures {
        links.extend([link(&format!("{name}.svg")), link(&format!("{name}.png"))]);
    }
    html + &format!("<p>Files: {}</p>\n</section>\n", links.join(", "))
}

/// The aims with their verdicts, where there are any.
fn against_aims(plan: &Plan, table: &Table) -> String {
    let Some(lines) = aims::lines(plan, table) else { return String::new() };
    let head = "<tr><th>Aim</th><th>Best of the eight with guard</th><th>TiLP against it</th>\
                <th>Verdict</th><th>Row of the highest success</th><th>TiLP against it</th>\
                <th>Verdict</th></tr>\n";
    let mut body = String::new();
    for [title, cells @ ..] in lines {
        let cells: String =
            cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        let _ = writeln!(body, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escaped(&title));
    }
    let note = "<p>Differences and ratios (geometric means) paired by seed with 95 % bootstrap \
                intervals. The best of the eight is the best in that one metric.</p>\n";
    format!("<div class=\"words\">{}</div>\n{note}", wrapped("Against the aims", head, &body))
}

/// What came out, in one sentence.
fn headline(plan: &Plan, table: &Table) -> String {
    let (success, reference) = (&COLUMNS[0], &table.rows[table.reference]);
    let name = |row: &Row| match plan.points.len() {
        1 => row.subject.method.clone(),
        _ => format!("{} at {}", row.subject.method, row.subject.point),
    };
    let mean = |row: &Row| row.estimate(success.metric()).map(|estimate| estimate.mean);
    let others = table.rows.iter().enumerate();
    let best = others
        .filter(|(index, row)| *index != table.reference && row.subject.method != "oracle")
        .filter_map(|(index, row)| Some((mean(row)?, index)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(_), Some((_, best))) = (mean(reference), best) else {
        return format!("{} of {} rows have runs.", counted(table), table.rows.len());
    };
    let row = &table.rows[best];
    let mut text = format!(
        "{} ends at {} % success over {} seeds; the best other row, {}, at {} %.",
        name(reference),
        success.text(reference),
        reference.runs.len(),
        name(row),
        success.text(row)
    );
    if let Some(pairing) = table.pairing(best, success.metric()) {
        let points = 100.0 * pairing.difference.mean;
        let p = pairing.p.map_or(String::new(), |p| format!(", p = {p:.3}"));
        let _ = write!(text, " Paired by seed the difference is {points:+.1} points{p}.");
    }
    let is_behind = |row: &&Row| mean(row).is_none_or(|other| Some(other) < mean(reference));
    let is_rival = |row: &&Row| row.subject != reference.subject && row.subject.method != "oracle";
    let level = table.rows.iter().filter(is_rival).filter(|row| !is_behind(row));
    let level: Vec<String> = level.map(name).collect();
    if !level.is_empty() {
        let _ = write!(text, " No less success in the mean: {}.", level.join(", "));
    }
    text
}

fn counted(table: &Table) -> usize {
    table.rows.iter().filter(|row| !row.runs.is_empty()).count()
}

fn gaps(table: &Table) -> String {
    let lines = table.gaps();
    if lines.is_empty() {
        return String::new();
    }
    let items: Vec<String> =
        lines.iter().map(|line| format!("<li>{}</li>", escaped(line))).collect();
    format!("<ul class=\"gaps\">\n{}\n</ul>\n", items.join("\n"))
}

fn names(plan: &Plan, row: &Row) -> String {
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

fn wrapped(caption: &str, head: &str, body: &str) -> String {
    format!(
        "<h3>{caption}</h3>\n<div class=\"scroll\"><table>\n<thead>\n{head}</thead>\n<tbody>\n{body}\
         </tbody>\n</table></div>\n"
    )
}

fn main_table(plan: &Plan, table: &Table) -> String {
    let of = |row: &Row| published(&plan.question, &row.subject.point, &row.subject.method);
    let has_paper = table.rows.iter().any(|row| of(row).is_some());
    let titles = |columns: &[Column]| -> String {
        columns.iter().map(|column| format!("<th>{}</th>", escaped(column.title))).collect()
    };
    let paper = || COLUMNS.iter().filter(|column| column.paper.is_some());
    let mut head = String::from("<tr><th></th>");
    head += &titles(&COLUMNS);
    if has_paper {
        head += "<th>Energy / tilp</th>";
        paper().for_each(|column| {
            let _ = write!(head, "<th class=\"paper\">paper: {}</th>", escaped(column.title));
        });
        head += "<th class=\"paper\">paper: energy / tilp</th>";
    }
    head += "</tr>\n";
    let energy =
        |row: &Row| row.estimate(Metric::named("energy_total_j")).map(|estimate| estimate.mean);
    let mut body = String::new();
    for row in &table.rows {
        let _ = write!(body, "<tr>{}{}", names(plan, row), cells(table, row, &COLUMNS));
        if has_paper {
            let ratio = energy(row).zip(energy(&table.rows[table.reference]));
            let ratio = ratio.map_or("-".into(), |(own, ours)| format!("{:.2}", own / ours));
            let _ = write!(body, "<td>{ratio}</td>");
            let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
            let row = of(row);
            paper().for_each(|column| {
                let value = row.and_then(|row| column.paper.and_then(|paper| paper(row)));
                let _ = write!(body, "<td class=\"paper\">{}</td>", text(value));
            });
            let _ = write!(body, "<td class=\"paper\">{}</td>", text(row.map(|row| row.energy)));
        }
        body += "</tr>\n";
    }
    let note = "<p>Means over seeds with 95 % intervals: of success Wilson's on the episodes of all \
                seeds, of the rest bootstrap over seeds. Best in bold, second underlined. \"2 of 3\": reached with two of three seeds. Columns marked \"paper\" are \
                the paper's own numbers, from its testbed.</p>\n";
    wrapped("Main results", &head, &body) + note
}

fn beside(plan: &Plan, table: &Table) -> String {
    let mut head = String::from("<tr><th></th>");
    BESIDE.iter().for_each(|column| {
        let _ = write!(head, "<th>{}</th>", escaped(column.title));
    });
    head += "<th>Success, interquartile mean, %</th></tr>\n";
    let mut body = String::new();
    for row in &table.rows {
        let values: Vec<f64> = row
            .values(Metric::named("success_final"))
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        let middle = interquartile_mean(&values);
        let middle = middle.map_or("-".into(), |value| format!("{:.1}", 100.0 * value));
        let (names, cells) = (names(plan, row), cells(table, row, &BESIDE));
        let _ = writeln!(body, "<tr>{names}{cells}<td>{middle}</td></tr>");
    }
    wrapped("Beside the paper's metrics", &head, &body)
}

fn pairs(plan: &Plan, table: &Table) -> String {
    let reference = &table.rows[table.reference];
    let name = match plan.points.len() {
        1 => reference.subject.method.clone(),
        _ => format!("{} at {}", reference.subject.method, reference.subject.point),
    };
    let mut head = String::from("<tr><th></th>");
    PAIRED.iter().for_each(|(title, ..)| {
        let _ = write!(head, "<th>{title}</th><th>effect</th><th>p</th>");
    });
    head += "</tr>\n";
    let mut body = String::new();
    for (index, row) in table.rows.iter().enumerate() {
        if index == table.reference {
            continue;
        }
        body += &format!("<tr>{}", names(plan, row));
        for &(_, name, factor) in &PAIRED {
            let Some(pairing) = table.pairing(index, Metric::named(name)) else {
                body += "<td>-</td><td>-</td><td>-</td>";
                continue;
            };
            let digits = if factor < 1.0 { 3 } else { 1 };
            let mean = factor * pairing.difference.mean;
            let interval = pairing.difference.interval.map(|ends| ends.map(|end| factor * end));
            let interval = interval.map_or(String::new(), |[low, high]| {
                format!("<br><small>[{low:.digits$}, {high:.digits$}]</small>")
            });
            let effect = pairing.effect.map_or("-".into(), |effect| format!("{effect:.1}"));
            let p = pairing.p.map_or("-".into(), |p| format!("{p:.3}"));
            let _ =
                write!(body, "<td>{mean:+.digits$}{interval}</td><td>{effect}</td><td>{p}</td>");
        }
        body += "</tr>\n";
    }
    let caption = format!("{} less each row, paired by seed", escaped(&name));
    let note = "<p>Effect: mean difference in units of its standard deviation, corrected for few \
                seeds. p: exact sign-flip test; with n seeds it cannot be below 2<sup>1-n</sup>.</p>\n";
    wrapped(&caption, &head, &body) + note
}

const DIFFERENCES: &str = "<h2>What differs from the paper</h2>
<ul>
<li>Radio: a TR 38.901 urban micro cell with terminals up to 650 m away; the paper has a testbed of \
four radios and emulates the rest.</li>
<li>Robots: eight families of table-top tasks on a rigid-body engine with scripted experts; the paper \
runs LIBERO.</li>
<li>Policy: a transformer of six small blocks that trains on a processor; the paper does not say how \
large its policy is. Volumes are those of this policy.</li>
<li>Violation: the paper's unit is not given; ours is the relative excess over the limits, and methods \
with <code>+guard</code> keep the deadline, which as published they do not.</li>
<li>The eight methods were rebuilt from what is public of them: docs/methods.md.</li>
</ul>
";

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1f2328; --ground: #ffffff; --line: #d0d7de; --quiet: #59636e;
  --best: #0072b2; --paper: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #d0d7de; --ground: #0d1117; --line: #30363d;
  --quiet: #9198a1; --best: #4aa8e0; --paper: #161b22; } }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.35rem; margin-top: 3rem; }
h3 { font-size: 1.1rem; margin-top: 2rem; }
.headline { font-size: 1.1rem; }
.gaps { color: #d55e00; }
.scroll { overflow-x: auto; }
figure { margin: 2rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; white-space: nowrap; }
thead th { white-space: normal; vertical-align: bottom; }
tbody th, thead th:first-child { text-align: left; position: sticky; left: 0;
  background: var(--ground); }
small { color: var(--quiet); }
.best { font-weight: 700; color: var(--best); } .second { text-decoration: underline; }
.paper { background: var(--paper); color: var(--quiet); }
.words td { white-space: normal; text-align: left; } .words thead th { text-align: left; }
pre { overflow-x: auto; font-size: 0.8rem; }
";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
