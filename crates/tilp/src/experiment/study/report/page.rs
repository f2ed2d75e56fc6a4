//! One page that opens from disk: tables, figures, scenario.

use std::fmt::Write as _;

use super::events::events_table;
use super::headline::headline;
use super::tables::{against_aims, beside, main_table, pairs};
use super::{Report, Section, aims, differences, equal_budget};
use crate::experiment::study::{Plan, StudyKind, Table};

/// The page. The files of a section are in the folder `place`.
pub(crate) fn page(report: &Report, place: &dyn Fn(&Section) -> String) -> String {
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
    html += &differences::list(sections);
    html + "</main>\n</body>\n</html>\n"
}

fn title(plan: &Plan) -> String {
    format!("{} on {}", plan.question, plan.scenario)
}

/// The headlines of the comparisons, or of all studies if there is no comparison, and links to all
/// sections.
fn contents(sections: &[Section]) -> String {
    let link = |section: &Section| {
        let (name, title) = (escaped(&section.name), escaped(&title(&section.plan)));
        format!("<a href=\"#{name}\">{title}</a>")
    };
    let has_comparison = sections.iter().any(|section| section.plan.question == StudyKind::Compare);
    let mut html = String::new();
    for section in sections {
        if section.plan.question == StudyKind::Compare || !has_comparison {
            let headline = escaped(&headline(&section.plan, &section.table));
            let (link, rows, apart) = (link(section), rows(section), apart(section));
            let _ = writeln!(html, "<p class=\"headline\">{link} ({rows}{apart}): {headline}</p>");
        }
    }
    let item = |section: &Section| {
        let (rows, seeds, apart) = (rows(section), seeds(&section.plan.seeds), apart(section));
        format!("<li>{}: {rows}, {seeds}{apart}</li>\n", link(section))
    };
    let items: String = sections.iter().map(item).collect();
    html + &format!("<nav><ul>\n{items}</ul></nav>\n")
}

fn rows(section: &Section) -> String {
    let rows = section.table.rows.len();
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

/// The values that distinguish a study from others on the same scenario.
fn apart(section: &Section) -> String {
    match section.set_apart.is_empty() {
        true => String::new(),
        false => format!("; set apart: {}", codes(&section.set_apart)),
    }
}

/// Seeds as text: a range if they are consecutive.
fn seeds(seeds: &[u64]) -> String {
    let is_range = seeds.windows(2).all(|pair| pair[1].checked_sub(1) == Some(pair[0]));
    match seeds {
        [one] => format!("seed {one}"),
        [first, .., last] if is_range => format!("seeds {first} to {last}"),
        _ => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn codes(values: &[String]) -> String {
    let codes: Vec<String> =
        values.iter().map(|value| format!("<code>{}</code>", escaped(value))).collect();
    codes.join(", ")
}

fn shown(section: &Section, place: &str) -> String {
    let Section { name, plan, table, figures, scenario, set_apart, caution, .. } = section;
    let mut html = format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"headline\">{}</p>\n",
        escaped(name),
        escaped(&title(plan)),
        escaped(&headline(plan, table))
    );
    if let Some(note) = table.note() {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(note));
    }
    if let Some(caution) = caution {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(caution));
    }
    if !set_apart.is_empty() {
        let (scenario, values) = (escaped(&plan.scenario), codes(set_apart));
        let _ =
            writeln!(html, "<p>Set apart from the built-in <code>{scenario}</code>: {values}.</p>");
    }
    html += &gaps(table);
    let tables = equal_budget::html(plan, table)
        + &main_table(plan, table)
        + &against_aims(plan, table)
        + &beside(plan, table)
        + &events_table(plan, table)
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
    // The figure of a sweep comes first; its long tables are folded.
    html += &match plan.question.is_sweep() {
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
    if aims::lines(plan, table).is_some() {
        links.push(link("aims.md"));
    }
    if plan.question == StudyKind::EqualBudget {
        links.push(link("equal-budget.md"));
    }
    for (name, _) in figures {
        links.extend(["svg", "png", "pdf", "csv"].map(|end| link(&format!("{name}.{end}"))));
    }
    html + &format!("<p>Files: {}</p>\n</section>\n", links.join(", "))
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

/// The style sheet of a page. A table that is wider than the page scrolls, and a shadow marks the
/// edge with more columns.
pub(in crate::experiment) const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1f2328; --ground: #ffffff; --line: #d0d7de; --quiet: #59636e;
  --best: #0072b2; --paper: rgba(89, 99, 110, 0.06); --edge: rgba(31, 35, 40, 0.35); }
@media (prefers-color-scheme: dark) { :root { --ink: #d0d7de; --ground: #0d1117; --line: #30363d;
  --quiet: #9198a1; --best: #4aa8e0; --paper: rgba(145, 152, 161, 0.1); --edge: rgba(255, 255, 255, 0.3); } }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.35rem; margin-top: 3rem; }
h3 { font-size: 1.1rem; margin-top: 2rem; }
.headline { font-size: 1.1rem; }
.gaps { color: #d55e00; }
.note { border-left: 4px solid #d55e00; padding-left: 0.8rem; font-weight: 700; }
.scroll { overflow-x: auto; scrollbar-width: thin; scrollbar-color: var(--quiet) transparent;
  background: linear-gradient(to right, var(--ground) 30%, transparent) 0 0,
    linear-gradient(to left, var(--ground) 30%, transparent) 100% 0,
    linear-gradient(to right, var(--edge), transparent) 0 0,
    linear-gradient(to left, var(--edge), transparent) 100% 0;
  background-repeat: no-repeat; background-size: 3rem 100%, 3rem 100%, 1.2rem 100%, 1.2rem 100%;
  background-attachment: local, local, scroll, scroll; }
.scroll .tilp-figure .ground { fill: none; }
.scroll::-webkit-scrollbar { height: 10px; }
.scroll::-webkit-scrollbar-thumb { background: var(--quiet); border-radius: 5px; }
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
p, li, h1, h2, h3, summary { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  .words table, .words tbody, .words tr, .words th, .words td { display: block; }
  .words thead { display: none; }
  .words tr { padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
  .words th, .words td { border: 0; padding: 0.1rem 0; white-space: normal; }
  .words td:empty { display: none; }
  .words td::before { content: attr(data-label) \": \"; color: var(--quiet); }
}
";

/// Text escaped for HTML.
pub(in crate::experiment) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
