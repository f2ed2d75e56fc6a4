//! `tilp report`.

use std::path::{Path, PathBuf};

use tilp::experiment::study::{Outcome, Report, StudyFolder, by_study, merged};
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
    if arguments.out.is_some() {
        check_place(&folders, out)?;
    }
    output::print(&write(&folders, out)?)
}

/// Refuses a folder with a study of its own that the report would write over: another one, or runs of
/// the same that are not among what is reported.
fn check_place(folders: &[StudyFolder], out: &Path) -> Result<(), Failure> {
    if by_study(folders).len() > 1 || !out.join("study.json").exists() {
        return Ok(());
    }
    let refused = |why: &str| Failure::input(format!("{}: {why}", out.display()));
    let there = StudyFolder::open(out).map_err(Failure::study)?;
    let all: Vec<StudyFolder> = folders.iter().cloned().chain([there]).collect();
    let studies = by_study(&all);
    let [same] = &studies[..] else {
        return Err(refused("holds another study, expected an empty folder or the same study"));
    };
    let done = |some: &[&StudyFolder]| -> Result<usize, Failure> {
        let runs = merged(some).map_err(Failure::study)?;
        Ok(runs.iter().filter(|run| matches!(run.outcome, Outcome::Done(_))).count())
    };
    if done(same)? > done(&same[..folders.len()])? {
        return Err(refused("holds runs that the report would lose, expected it among the DIRs"));
    }
    Ok(())
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
