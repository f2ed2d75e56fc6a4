//! `tilp report`.

use std::path::{Path, PathBuf};

use tilp::experiment::study::{Report, StudyFolder, by_study};
use tilp::record::write_beside;

use crate::arguments::Report as Arguments;
use crate::failure::Failure;
use crate::output;

/// Makes tables, figures and a page of studies out of the folders that hold them.
pub fn report(arguments: Arguments) -> Result<(), Failure> {
    let open = |path: &PathBuf| StudyFolder::open(path).map_err(Failure::study);
    let folders: Vec<StudyFolder> = arguments.folders.iter().map(open).collect::<Result<_, _>>()?;
    if arguments.out.is_none() && by_study(&folders).len() > 1 {
        let line = "--out is missing, expected a folder for the report of several studies";
        return Err(Failure::input(line));
    }
    let out = arguments.out.as_deref().unwrap_or(&arguments.folders[0]);
    output::print(&write(&folders, out)?)
}

/// Writes the files of a report and gives its tables and where it lies.
pub fn write(folders: &[StudyFolder], out: &Path) -> Result<String, Failure> {
    let report = Report::of(folders).map_err(Failure::study)?;
    write_beside(out, &report.files()).map_err(Failure::failed)?;
    let tables = report.sections.iter().map(|section| {
        let title = match report.sections.len() {
            1 => String::new(),
            _ => format!("{}\n\n", section.name),
        };
        format!("{title}{}\n", section.table.markdown())
    });
    Ok(format!("{}results in {}", tables.collect::<String>(), out.display()))
}
