//! `tilp report`.

use std::path::{Path, PathBuf};

use tilp::experiment::study::{StudyFolder, Table};
use tilp::record::write_beside;

use crate::arguments::Report;
use crate::failure::Failure;
use crate::output;

/// Makes tables, figures and a page of a study out of the folders that hold it.
pub fn report(arguments: Report) -> Result<(), Failure> {
    let open = |path: &PathBuf| StudyFolder::open(path).map_err(Failure::input);
    let folders: Vec<StudyFolder> = arguments.folders.iter().map(open).collect::<Result<_, _>>()?;
    let out = arguments.out.as_deref().unwrap_or(&arguments.folders[0]);
    let table = write(&folders, out)?;
    output::print(&format!("{}\nresults in {}", table.markdown(), out.display()))
}

/// Writes the files of a report and gives its table.
pub fn write(folders: &[StudyFolder], out: &Path) -> Result<Table, Failure> {
    let (table, files) = tilp::experiment::study::report(folders).map_err(Failure::input)?;
    write_beside(out, &files).map_err(Failure::failed)?;
    Ok(table)
}
