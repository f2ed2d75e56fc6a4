//! Reports on studies: tables, figures and one page.

pub(super) mod aims;
mod columns;
mod costs;
mod differences;
mod equal_budget;
pub(super) mod events;
pub(super) mod figures;
mod headline;
pub(super) mod latex;
pub(super) mod page;
mod paper;
mod tables;

pub use events::EVENT_COLUMNS;
pub(in crate::experiment) use page::{STYLE, escaped};

use super::check::folder_name;
use super::finished::FINISHED;
use super::folder::{PLAN, SCENARIO, note, note_text};
use super::{
    Job, Outcome, Plan, RunResult, StudyError, StudyFolder, StudyKind, Table, by_study, merged,
};
use crate::plot::{Figure, PaperWidth};
use crate::scenario::Scenario;

/// A report on one or more studies.
pub struct Report {
    /// The studies in the given order.
    pub sections: Vec<Section>,
}

/// One study with its results.
pub struct Section {
    /// Its name: question and scenario; with several studies, the name of its folder.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// The tables.
    pub table: Table,
    /// The figures with their names.
    pub figures: Vec<(String, Figure)>,
    /// The base scenario of all runs, as TOML.
    pub scenario: String,
    /// Its differences from the built-in scenario of the same name.
    pub set_apart: Vec<String>,
    /// A caution if the runs are shorter than those of the built-in scenario.
    pub caution: Option<String>,
    /// The stored results of the finished runs, one line each.
    pub finished: String,
    /// Notes on the runs that failed: file and text.
    pub failures: Vec<(String, String)>,
}

impl Report {
    /// Reads the studies in these folders. The shards of one study are one section.
    pub fn of(folders: &[StudyFolder]) -> Result<Self, StudyError> {
        let mut sections: Vec<Section> = Vec::new();
        let studies = by_study(folders);
        for shards in &studies {
            let mut section = Section::of(shards)?;
            if studies.len() > 1 {
                let given = shards[0].path().file_name().map(|name| name.to_string_lossy());
                section.name = given.map_or(section.name, |name| folder_name(&name));
            }
            let is_taken = |name: &str| sections.iter().any(|other| other.name == name);
            let plain = section.name.clone();
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            let mut names = std::iter::once(plain.clone()).chain(numbered);
            section.name = names.find(|name| !is_taken(name)).unwrap_or(plain);
            sections.push(section);
        }
        Ok(Self { sections })
    }

    /// The files of the report, name and bytes: one page, and the files of each study, in a folder
    /// each if there are several. With a width the figures are also made for a paper.
    pub fn files(&self, paper: Option<PaperWidth>) -> Vec<(String, Vec<u8>)> {
        let place = |section: &Section| match self.sections.len() {
            1 => String::new(),
            _ => format!("{}/", section.name),
        };
        let mut files = vec![("report.html".to_owned(), page::page(self, &place).into_bytes())];
        for section in &self.sections {
            let named = |(name, bytes): (String, _)| (place(section) + &name, bytes);
            files.extend(section.files(paper).into_iter().map(named));
        }
        files
    }
}

impl Section {
    fn of(shards: &[&StudyFolder]) -> Result<Self, StudyError> {
        let plan = shards[0].plan.clone();
        let results = merged(shards)?;
        let table = Table::new(&plan, &results);
        let mut figures = figures_of(&plan, &table);
        if let Some((kind, _)) = table.note().and_then(|note| note.split_once(':')) {
            figures.iter_mut().for_each(|(_, one)| one.title = format!("{} ({kind})", one.title));
        }
        let line = |(job, result): (&Job, &RunResult)| match &result.outcome {
            Outcome::Done(run) => Some(run.line(job)),
            _ => None,
        };
        let finished = shards[0].jobs.iter().zip(&results).filter_map(line).collect();
        let failures = results.iter().filter_map(failure).collect();
        let name = folder_name(&format!("{}-{}", plan.question.folder(), plan.scenario));
        let scenario = shards[0].scenario_text()?;
        let set_apart = shards[0].scenario.set_apart().unwrap_or_default();
        let caution = caution(&shards[0].scenario);
        Ok(Self { name, plan, table, figures, scenario, set_apart, caution, finished, failures })
    }

    fn files(&self, paper: Option<PaperWidth>) -> Vec<(String, Vec<u8>)> {
        let text = |name: &str, text: String| (name.to_owned(), text.into_bytes());
        // The first three and the notes on failed runs make the folder a study again, which can be
        // shown or continued.
        let mut files = vec![
            text(SCENARIO, self.scenario.clone()),
            text(FINISHED, self.finished.clone()),
            text(PLAN, self.plan.to_json()),
            text("runs.csv", self.table.runs_csv()),
            text("table.csv", self.table.table_csv()),
            text("table.md", self.table.markdown()),
            text("table.tex", latex::table(&self.plan, &self.table)),
        ];
        files.extend(self.failures.iter().map(|(name, note)| text(name, note.clone())));
        files.extend(events::events_csv(&self.table).map(|lines| text("events.csv", lines)));
        files.extend(aims::markdown(&self.plan, &self.table).map(|aims| text("aims.md", aims)));
        let equal = equal_budget::markdown(&self.plan, &self.table);
        files.extend(equal.map(|lines| text("equal-budget.md", lines)));
        files.extend(self.figures.iter().flat_map(|(name, figure)| figure.files(name, paper)));
        files
    }
}

/// A caution for runs with fewer rounds than the built-in scenario has.
fn caution(scenario: &Scenario) -> Option<String> {
    let usual = Scenario::load(scenario.name(), &[]).ok()?.rounds();
    let rounds = scenario.rounds();
    (rounds < usual && scenario.budget().is_none()).then(|| {
        format!(
            "These runs have {rounds} of the scenario's {usual} rounds: rankings after {rounds} rounds \
             are not those after {usual}."
        )
    })
}

/// The note on a failed run, below the folder of the study.
fn failure(result: &RunResult) -> Option<(String, String)> {
    let Outcome::Failed(reason) = &result.outcome else { return None };
    Some((note(&result.folder).display().to_string(), note_text(reason)))
}

fn figures_of(plan: &Plan, table: &Table) -> Vec<(String, Figure)> {
    match plan.question {
        StudyKind::Sweep(axis) => {
            vec![("sweep".to_owned(), figures::swept(plan, table, axis))]
        }
        StudyKind::Compare => vec![
            Some(("convergence".to_owned(), figures::convergence(table))),
            Some(("profiles".to_owned(), figures::profile(table))),
            Some(("pareto".to_owned(), costs::pareto(table))),
            costs::latencies(table).map(|figure| ("latency".to_owned(), figure)),
            costs::participation(table).map(|figure| ("participation".to_owned(), figure)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        StudyKind::Ablate | StudyKind::EqualBudget => Vec::new(),
    }
}
