//! `tilp report`.

use std::path::{Path, PathBuf};

use tilp::experiment::RunPage;
use tilp::experiment::study::{Outcome, Report, StudyFolder, by_study, merged};
use tilp::plot::PaperWidth;
use tilp::record::{RunFolder, write_beside};
use tilp::scenario::Registry;
use tilp_dash::{export, export_study};

use crate::arguments::Report as Arguments;
use crate::failure::Failure;
use crate::output;

/// The views of the dashboard as one file, beside the report.
const VIEWS: &str = "views.html";

/// Makes tables, figures and a page of studies out of the folders that hold them.
pub(crate) fn report(arguments: Arguments) -> Result<(), Failure> {
    let paper = arguments.width.as_deref().map(PaperWidth::parse).transpose();
    let paper = paper.map_err(Failure::input)?;
    if let [run] = &arguments.folders[..]
        && is_run(run)
    {
        return output::print(&page(run, arguments.out.as_deref(), paper)?);
    }
    if let Some(run) = arguments.folders.iter().find(|folder| is_run(folder)) {
        let line = "a run, expected studies, or this folder alone for a page of the run";
        return Err(Failure::input(format!("{}: {line}", run.display())));
    }
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
    let said = write(&folders, out, paper)?;
    if let [folder] = &arguments.folders[..]
        && let Some(views) = export_study(folder)
    {
        write_beside(out, &[(VIEWS.to_owned(), views)]).map_err(Failure::failed)?;
    }
    output::print(&said)
}

/// Whether the folder contains a run and not a study.
fn is_run(folder: &Path) -> bool {
    folder.join("manifest.json").exists() && !folder.join("study.json").exists()
}

/// Makes the page of a run.
fn page(run: &Path, out: Option<&Path>, paper: Option<PaperWidth>) -> Result<String, Failure> {
    let folder = RunFolder::open(run).map_err(Failure::input)?;
    let page = RunPage::of(&folder, &Registry::builtin()).map_err(Failure::input)?;
    let out = out.map_or_else(|| run.join("report"), Path::to_owned);
    write_beside(&out, &page.files(paper)).map_err(Failure::failed)?;
    write_beside(&out, &[(VIEWS.to_owned(), export(run))]).map_err(Failure::failed)?;
    Ok(format!("page in {}", out.join("report.html").display()))
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

/// Writes the files of a report. Returns its tables and its path.
pub(crate) fn write(
    folders: &[StudyFolder],
    out: &Path,
    paper: Option<PaperWidth>,
) -> Result<String, Failure> {
    let report = Report::of(folders).map_err(Failure::study)?;
    write_beside(out, &report.files(paper)).map_err(Failure::failed)?;
    let tables = report.sections.iter().map(|section| {
        let title = match report.sections.len() {
            1 => String::new(),
            _ => format!("{}\n\n", section.name),
        };
        let caution = section.caution.as_ref().map_or(String::new(), |line| format!("{line}\n"));
        let table = match output::is_terminal() {
            true => section.table.compact(),
            false => section.table.markdown(),
        };
        format!("{title}{table}\n{caution}")
    });
    Ok(format!("{}results in {}", tables.collect::<String>(), out.display()))
}
