//! The main table as LaTeX, for `booktabs`.

use super::columns::{COLUMNS, Column};
use crate::experiment::study::{Plan, Row, Table};

/// A complete `tabular`.
pub(crate) fn table(plan: &Plan, table: &Table) -> String {
    let by_point = plan.points.len() > 1;
    let head: Vec<String> = COLUMNS.iter().map(|column| escaped(column.title)).collect();
    let first = if by_point { "Point & Method & Seeds" } else { "Method & Seeds" };
    let mut lines = vec![
        format!("% {} on {}: means over seeds with 95\\% intervals", plan.question, plan.scenario),
        "% (success: Wilson's on episodes; the rest: bootstrap over seeds); ranked: rows with every seed"
            .to_owned(),
        format!(
            "\\begin{{tabular}}{{l{}r{}}}",
            if by_point { "l" } else { "" },
            "r".repeat(head.len())
        ),
        "\\toprule".to_owned(),
        format!("{first} & {} \\\\", head.join(" & ")),
        "\\midrule".to_owned(),
    ];
    for row in &table.rows {
        let cells: Vec<String> = COLUMNS.iter().map(|column| cell(table, row, column)).collect();
        let mut name = format!("{} & {}", escaped(&row.subject.method), row.seeds());
        if by_point {
            name = format!("{} & {name}", escaped(&row.subject.point));
        }
        lines.push(format!("{name} & {} \\\\", cells.join(" & ")));
    }
    if let Some(note) = table.note() {
        let columns = head.len() + if by_point { 3 } else { 2 };
        lines.push(format!("\\midrule\n\\multicolumn{{{columns}}}{{l}}{{{}}} \\\\", escaped(note)));
    }
    lines.extend(["\\bottomrule".to_owned(), "\\end{tabular}".to_owned()]);
    lines.join("\n") + "\n"
}

fn cell(table: &Table, row: &Row, column: &Column) -> String {
    let text = escaped(&column.text(row));
    match column.rank(table, row) {
        Some(0) => format!("\\textbf{{{text}}}"),
        Some(1) => format!("\\underline{{{text}}}"),
        _ => text,
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => safe.extend(['\\', c]),
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            _ => safe.push(c),
        }
    }
    safe
}
