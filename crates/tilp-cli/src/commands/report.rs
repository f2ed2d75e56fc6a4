//! `tilp report`.

use std::path::Path;

use tilp::experiment::study::{StudyFolder, Table, merged};
use tilp::record::write_beside;

use crate::arguments::Report;
use crate::failure::Failure;
use crate::output;

/// Makes the tables of a study out of the folders that hold it.
pub fn report(arguments: Report) -> Result<(), Failure> {
    let open = |path: &std::path::PathBuf| StudyFolder::open(path).map_err(Failure::input);
    let folders: Vec<StudyFolder> = arguments.folders.iter().map(open).collect::<Result<_, _>>()?;
    let made = tables(&folders)?;
    let out = arguments.out.as_deref().unwrap_or(&arguments.folders[0]);
    write(&made, out)?;
    output::print(&format!("{}\nresults in {}", made.markdown(), out.display()))
}

/// The tables of one study.
pub fn tables(folders: &[StudyFolder]) -> Result<Table, Failure> {
    let results = merged(folders).map_err(Failure::input)?;
    Ok(Table::new(&folders[0].plan, &results))
}

/// Writes the tables as files.
pub fn write(table: &Table, out: &Path) -> Result<(), Failure> {
    let files = [
        ("runs.csv".to_owned(), table.runs_csv()),
        ("table.csv".to_owned(), table.table_csv()),
        ("table.md".to_owned(), table.markdown()),
    ];
    write_beside(out, &files).map_err(Failure::failed)
}
