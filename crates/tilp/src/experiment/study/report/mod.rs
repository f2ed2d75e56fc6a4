//! What is made of a study: tables, figures and one page.

mod figures;
pub(super) mod latex;
pub(super) mod page;
mod paper;

use super::{Axis, Plan, Row, StudyError, StudyFolder, Table, merged};
use crate::plot::Figure;
use crate::record::{RoundRow, RunFolder};

/// The files of a report: name and text.
pub fn report(folders: &[StudyFolder]) -> Result<(Table, Vec<(String, String)>), StudyError> {
    let results = merged(folders)?;
    let plan = &folders[0].plan;
    let table = Table::new(plan, &results);
    let rounds = |row: &Row| rounds_of(folders, row);
    let figures = figures_of(plan, &table, &rounds);
    let scenario = folders[0].scenario_text()?;
    let mut files = vec![
        ("runs.csv".to_owned(), table.runs_csv()),
        ("table.csv".to_owned(), table.table_csv()),
        ("table.md".to_owned(), table.markdown()),
        ("table.tex".to_owned(), latex::table(plan, &table)),
    ];
    let drawn: Vec<(String, String)> =
        figures.iter().map(|(name, figure)| (format!("{name}.svg"), figure.to_svg())).collect();
    files.push(("report.html".to_owned(), page::page(plan, &table, &drawn, &scenario)));
    files.extend(drawn);
    Ok((table, files))
}

fn figures_of(plan: &Plan, table: &Table, rounds: &figures::Rounds<'_>) -> Vec<(String, Figure)> {
    let swept = plan.question.strip_prefix("sweep ").and_then(|name| Axis::named(name).ok());
    match swept {
        Some(axis) => vec![("sweep".to_owned(), figures::swept(plan, table, axis))],
        None if plan.question == "compare" => vec![
            ("convergence".to_owned(), figures::convergence(table, rounds)),
            ("profiles".to_owned(), figures::profile(table)),
        ],
        None => Vec::new(),
    }
}

/// The rounds of a row's complete runs, wherever they lie.
fn rounds_of(folders: &[StudyFolder], row: &Row) -> Vec<Vec<RoundRow>> {
    let read = |seed: u64| {
        let job =
            folders[0].jobs.iter().find(|job| job.subject == row.subject && job.seed == seed)?;
        folders.iter().find_map(|folder| {
            RunFolder::open(&folder.path().join(job.folder())).ok()?.read_rounds().ok()
        })
    };
    row.runs.iter().filter_map(|(seed, _)| read(*seed)).collect()
}
