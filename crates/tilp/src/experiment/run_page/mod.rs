//! One page for one run: metrics, rounds, participation and resources of each terminal, and the twin's
//! predictions against the outcomes.

mod causes;
mod figures;
mod levelled;
mod tables;

use super::RunError;
use super::open::read_run_identity;
use super::replay::Replay;
use super::study::{STYLE, escaped};
use crate::plot::{Figure, PaperWidth};
use crate::record::event::Decided;
use crate::record::{Event, History, RecordError, RunFolder, Summary};
use crate::rule::Rule;
use crate::scenario::{Registry, Scenario, suite_of};

/// The data of the page.
pub struct RunPage {
    /// The method, the scenario and the seed in words.
    title: String,
    scenario: Scenario,
    history: History,
    /// The decisions with predictions, by round; empty for methods that make none.
    predictions: Vec<Decided>,
    /// The metrics; `None` if the run is not complete.
    summary: Option<Summary>,
    /// Names of the tasks.
    tasks: Vec<String>,
    /// The rounds with the hardware behind them, where terminals train side by side.
    replay: Option<Replay>,
}

impl RunPage {
    /// Reads a run folder. The run may be unfinished.
    pub fn of(folder: &RunFolder, registry: &Registry) -> Result<Self, RunError> {
        let (scenario, method, seeds) = read_run_identity(folder, registry)?;
        let history = folder.read_history()?;
        let events = if folder.has_events() { folder.read_events()? } else { Vec::new() };
        let predicted = |event: Event| match event {
            Event::Decided(decided) if decided.rationale.is_some() => Some(*decided),
            _ => None,
        };
        let summary = match folder.read_summary() {
            Ok(summary) => Some(summary),
            Err(RecordError::Absent { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let rule = method.training(&scenario)?;
        let is_side_by_side = matches!(rule, Rule::Parallel | Rule::Sequential);
        let replay = (is_side_by_side && !history.rounds.is_empty()).then(|| {
            Replay::of_events(scenario.clone(), method.clone(), seeds.seed, history.clone())
        });
        Ok(Self {
            replay: replay.transpose()?,
            title: format!("{} on {}, seed {seeds}", method.name(), scenario.name()),
            tasks: suite_of(&scenario).tasks.iter().map(|&name| name.to_owned()).collect(),
            predictions: events.into_iter().filter_map(predicted).collect(),
            scenario,
            history,
            summary,
        })
    }

    /// The figures with their names.
    pub fn figures(&self) -> Vec<(String, Figure)> {
        let named = |(name, figure): (&str, Figure)| (name.to_owned(), figure);
        figures::all(self).into_iter().map(named).collect()
    }

    /// The files of the page, name and bytes. With a width the figures are also made for a paper.
    pub fn files(&self, paper: Option<PaperWidth>) -> Vec<(String, Vec<u8>)> {
        let figures = self.figures();
        let mut files = vec![("report.html".to_owned(), self.html(&figures).into_bytes())];
        files.push(("robots.csv".to_owned(), tables::robots_csv(self).into_bytes()));
        files.extend(figures.iter().flat_map(|(name, figure)| figure.files(name, paper)));
        files
    }

    fn html(&self, figures: &[(String, Figure)]) -> String {
        let (title, narrow) = (escaped(&self.title), tables::NARROW);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>TiLP: {title}</title>\n<style>\n{STYLE}{narrow}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n"
        );
        if let Some(note) = self.scenario.note() {
            html += &format!("<p class=\"note\">{}</p>\n", escaped(note));
        }
        if self.summary.is_none() {
            let rounds = self.history.last_round();
            html += &format!("<p class=\"note\">The run is not complete: {rounds} rounds.</p>\n");
        }
        html += &tables::metrics(self);
        html += &tables::violations(self);
        for (_, figure) in figures {
            html += &format!("<figure class=\"scroll\">{}</figure>\n", figure.to_svg());
        }
        if self.predictions.is_empty() {
            html += "<p>The method makes no predictions. <code>tilp twin</code> with the folder of the \
                     run shows it to a twin.</p>\n";
        }
        html += &tables::levelled(self);
        html += &tables::robots(self);
        html += &format!(
            "<details>\n<summary>All values of the scenario</summary>\n<pre>{}</pre>\n</details>\n",
            escaped(&self.scenario.to_toml())
        );
        let files = figures.iter().flat_map(|(name, _)| {
            ["svg", "png", "pdf", "csv"]
                .map(|end| format!("<a href=\"{name}.{end}\">{name}.{end}</a>"))
        });
        let files: Vec<String> = files.collect();
        html +=
            &format!("<p>Files: <a href=\"robots.csv\">robots.csv</a>, {}</p>\n", files.join(", "));
        html + "</main>\n</body>\n</html>\n"
    }
}
