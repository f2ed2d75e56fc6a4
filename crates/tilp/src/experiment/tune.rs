//! Learning rates of a method: one grid, one budget, tuning seeds.
//!
//! Every rate is run on every seed as an ordinary run in one folder, which is kept. Of the rates
//! whose runs are all stable, the one with the best final success is picked.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RunError;
use super::stability::{MOST_BELOW_BASE, MOST_BELOW_BEST, below_base, below_best, worst};
use super::study::{Finished, Job, Outcome, StudyError, StudyFolder, Subject, folder_name};
use crate::record::{RecordError, write_beside};
use crate::scenario::{Method, Scenario, ScenarioError};
use crate::statistics::mean;

/// The first seed that may be used for tuning. Smaller ones are for reports.
pub const FIRST_TUNING_SEED: u64 = 1000;

/// Factors on the scenario's common rates that make the usual grid.
const USUAL: [f64; 5] = [0.125, 0.25, 0.5, 1.0, 2.0];

/// What runs are measured with unless it is set otherwise: more episodes than a run usually has, at
/// the rounds that stability is judged at.
pub const MEASURED: [&str; 3] = [
    "evaluation.measure_every=50",
    "evaluation.report_episodes=16",
    "evaluation.final_episodes=32",
];

/// File of the findings.
const FOUND: &str = "tune.json";

/// Learning rates: of the server side and of the terminal side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePair {
    /// Of the server side.
    pub server_rate: f64,
    /// Of the terminal side.
    pub terminal_rate: f64,
}

impl RatePair {
    /// Reads `server/terminal`, or one number for both.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("rate is `{text}`, expected a number above 0 or two with / between them");
        let number = |text: &str| {
            let number = text.trim().parse::<f64>().ok();
            number.filter(|rate| rate.is_finite() && *rate > 0.0).ok_or_else(wrong)
        };
        let (server, terminal) = text.split_once('/').unwrap_or((text, text));
        Ok(Self { server_rate: number(server)?, terminal_rate: number(terminal)? })
    }

    /// Its name in tables and folders.
    fn label(&self) -> String {
        format!("{}/{}", self.server_rate, self.terminal_rate)
    }
}

/// The grid of a scenario: the same for every method.
pub fn usual_rates(scenario: &Scenario) -> Vec<RatePair> {
    let [server, terminal] = scenario.common_rates();
    USUAL
        .iter()
        .map(|factor| RatePair { server_rate: factor * server, terminal_rate: factor * terminal })
        .collect()
}

/// Method, scenario, rates and seeds of a tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The scenario with the rounds and episodes of every run.
    pub scenario: Scenario,
    /// The method.
    pub method: Method,
    /// The grid.
    pub rates: Vec<RatePair>,
    /// Tuning seeds.
    pub seeds: Vec<u64>,
}

/// Findings, as in `tune.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// Name of the scenario.
    pub scenario: String,
    /// Its version.
    pub version: u32,
    /// Hash of the complete scenario before any rate is set.
    pub hash: String,
    /// The method.
    pub method: String,
    /// Rounds of every run.
    pub rounds: u64,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// One row for every rate, in the order of the server's.
    pub rates: Vec<RateRow>,
    /// The best final success among stable rates; none if no rate is stable.
    pub picked: Option<RatePair>,
    /// Whether a rate beyond the grid might be better: the picked one is the smallest, or the
    /// largest, of the grid.
    pub at_edge: bool,
}

/// Results of one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRow {
    /// The rates.
    #[serde(flatten)]
    pub rates: RatePair,
    /// Final success of every seed; none if its run failed or is missing.
    pub success: Vec<Option<f64>>,
    /// Mean final success over seeds, if all are there.
    pub success_mean: Option<f64>,
    /// Largest number of points below the base policy in rounds 50 to 200.
    pub worst_below_base_points: Option<f64>,
    /// Largest number of points by which a run ended below its own best measurement.
    pub worst_below_own_best_points: Option<f64>,
    /// Runs whose training diverged.
    pub diverged: usize,
    /// Runs that failed for another reason, or are not done.
    pub missing: usize,
    /// Whether every run is stable; `None` if it cannot be decided.
    pub stable: Option<bool>,
}

impl Tuning {
    /// Refuses seeds of reports, and a grid that names a rate twice.
    pub fn check(&self) -> Result<(), String> {
        if let Some(seed) = self.seeds.iter().find(|seed| **seed < FIRST_TUNING_SEED) {
            let expected = format!("{FIRST_TUNING_SEED} or more: smaller ones are for reports");
            return Err(format!("seed is {seed}, expected {expected}"));
        }
        for (at, rates) in self.rates.iter().enumerate() {
            if self.rates[..at].contains(rates) {
                return Err(format!("rates have {} twice, expected each once", rates.label()));
            }
        }
        Ok(())
    }

    /// Default folder: separate for every scenario and method.
    pub fn usual_folder(&self) -> PathBuf {
        let plain = |c: char| if c.is_alphanumeric() || "-_+.".contains(c) { c } else { '_' };
        let scenario: String = self.scenario.name().chars().map(plain).collect();
        let hash = &self.scenario.hash()[..8];
        let method = folder_name(self.method.name());
        PathBuf::from(format!("studies/tune-{scenario}-{method}-{hash}"))
    }

    /// The runs, in one folder. Seeds are outermost: an interrupted tuning has complete seeds.
    pub fn study(&self, folder: &Path) -> Result<StudyFolder, StudyError> {
        self.check_folder(folder)?;
        self.method.training(&self.scenario)?; // a fixed compression is within the limit
        let mut jobs = Vec::new();
        for &seed in &self.seeds {
            for &rates in &self.rates {
                jobs.push(self.job(rates, seed)?);
            }
        }
        Ok(StudyFolder::of_jobs(folder, &self.scenario, jobs))
    }

    fn job(&self, rates: RatePair, seed: u64) -> Result<Job, ScenarioError> {
        let RatePair { server_rate, terminal_rate } = rates;
        let name = self.method.name();
        Ok(Job {
            subject: Subject { point: rates.label(), method: name.to_owned() },
            scenario: self.scenario.with_rates(name, [server_rate, terminal_rate])?,
            method: self.method.clone(),
            seed: seed.into(),
        })
    }

    /// A folder belongs to one scenario and one method.
    fn check_folder(&self, folder: &Path) -> Result<(), StudyError> {
        let path = folder.join(FOUND);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
        let malformed = |reason: String| RecordError::Malformed { path: path.clone(), reason };
        let before: Tuned =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        let (hash, name) = (self.scenario.hash(), self.method.name());
        if before.hash != hash {
            return Err(malformed(format!("hash is {}, expected {hash}", before.hash)).into());
        }
        if before.method != name {
            return Err(malformed(format!("method is {}, expected {name}", before.method)).into());
        }
        Ok(())
    }

    /// Evaluates the rates by the finished runs and writes the findings.
    pub fn judge(&self, study: &StudyFolder) -> Result<Tuned, StudyError> {
        let rows = self.rates.iter().map(|&rates| self.row(rates, study));
        let tuned = self.tuned(rows.collect::<Result<_, _>>()?);
        let json = serde_json::to_string_pretty(&tuned).expect("what was found is plain data");
        let files = [(FOUND.to_owned(), json + "\n"), ("tune.md".to_owned(), as_markdown(&tuned))];
        write_beside(study.path(), &files)?;
        Ok(tuned)
    }

    fn row(&self, rates: RatePair, study: &StudyFolder) -> Result<RateRow, StudyError> {
        let label = rates.label();
        let (mut runs, mut diverged) = (Vec::new(), 0);
        for job in study.jobs.iter().filter(|job| job.subject.point == label) {
            runs.push(match study.outcome(job)? {
                Outcome::Done(run) => Some(*run),
                Outcome::Failed(reason) => {
                    diverged += usize::from(RunError::is_divergence(&reason));
                    None
                }
                Outcome::Missing => None,
            });
        }
        Ok(row(rates, &runs, diverged))
    }

    fn tuned(&self, mut rows: Vec<RateRow>) -> Tuned {
        let key = |row: &RateRow| (row.rates.server_rate, row.rates.terminal_rate);
        rows.sort_by(|a, b| key(a).partial_cmp(&key(b)).expect("rates are finite"));
        let at = best(&rows);
        Tuned {
            scenario: self.scenario.name().to_owned(),
            version: self.scenario.version(),
            hash: self.scenario.hash(),
            method: self.method.name().to_owned(),
            rounds: self.scenario.rounds(),
            seeds: self.seeds.clone(),
            picked: at.map(|at| rows[at].rates),
            at_edge: at.is_some_and(|at| at == 0 || at + 1 == rows.len()),
            rates: rows,
        }
    }
}

/// Results of one rate, one entry per seed.
fn row(rates: RatePair, runs: &[Option<Finished>], diverged: usize) -> RateRow {
    let success: Vec<Option<f64>> =
        runs.iter().map(|run| run.as_ref()?.summary.success_final).collect();
    let all: Option<Vec<f64>> = success.iter().copied().collect();
    let dip = worst(runs.iter().flatten(), below_base);
    let loss = worst(runs.iter().flatten(), below_best);
    let missing = runs.iter().filter(|run| run.is_none()).count() - diverged;
    let is_fallen = |worst: Option<f64>, most: f64| worst.is_some_and(|points| points > most);
    let fallen = is_fallen(dip, MOST_BELOW_BASE) || is_fallen(loss, MOST_BELOW_BEST);
    // A run of fewer than 50 rounds has no early measurement, and may be unstable all the same.
    let known = missing == 0 && dip.is_some() && loss.is_some();
    RateRow {
        rates,
        success_mean: all.and_then(mean),
        success,
        worst_below_base_points: dip,
        worst_below_own_best_points: loss,
        diverged,
        missing,
        stable: if diverged > 0 || fallen { Some(false) } else { known.then_some(true) },
    }
}

/// The place of the best mean among stable rates; of equals the smaller rate.
fn best(rows: &[RateRow]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.stable == Some(true)) {
        let Some(success) = row.success_mean else { continue };
        if best.is_none_or(|(_, most)| success > most) {
            best = Some((at, success));
        }
    }
    best.map(|(at, _)| at)
}

/// The findings as a table in Markdown.
pub fn as_markdown(tuned: &Tuned) -> String {
    let Tuned { scenario, version, hash, method, rounds, seeds, .. } = tuned;
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let mut text = format!(
        "Learning rates of `{method}` on {scenario} version {version}, hash `{hash}`: {rounds} rounds, \
         seeds {}.\n\n",
        seeds.join(", ")
    );
    text += "| server rate | terminal rate | success, % | by seed, % | at worst below the base \
             policy, points | at worst below the own best, points | stable |\n\
             |---|---|---|---|---|---|---|\n";
    let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for row in &tuned.rates {
        let by_seed: Vec<String> = row.success.iter().map(|one| number(percent(*one))).collect();
        let stable = match (row.stable, row.diverged, row.missing) {
            (_, diverged @ 1.., _) => format!("no, {diverged} diverged"),
            (_, _, missing @ 1..) => format!("{missing} runs are missing or failed"),
            (Some(true), ..) => "yes".to_owned(),
            (Some(false), ..) => "no".to_owned(),
            (None, ..) => "-".to_owned(),
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {stable} |\n",
            row.rates.server_rate,
            row.rates.terminal_rate,
            number(percent(row.success_mean)),
            by_seed.join(", "),
            number(row.worst_below_base_points),
            number(row.worst_below_own_best_points),
        );
    }
    let verdict = match (tuned.picked, tuned.at_edge) {
        (None, _) => "No rate is stable.".to_owned(),
        (Some(rates), edge) => {
            let beyond = " It is at the edge of the grid: a rate beyond it may be better.";
            format!(
                "Best stable rates: server {}, terminal {}.{}",
                rates.server_rate,
                rates.terminal_rate,
                if edge { beyond } else { "" }
            )
        }
    };
    text + &format!("\n{verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Summary;
    use crate::scenario::method;

    fn pair(rate: f64) -> RatePair {
        RatePair { server_rate: rate, terminal_rate: rate }
    }

    fn run(early: f64, last: f64) -> Option<Finished> {
        let summary = Summary {
            success_final: Some(last),
            success_curve: vec![(0, 0.3), (50, early), (400, 0.6)],
            ..Summary::default()
        };
        Some(Finished { summary, ..Finished::default() })
    }

    fn tuning(seeds: &[u64]) -> Tuning {
        Tuning {
            scenario: Scenario::load("tiny", &[]).unwrap(),
            method: method("random").unwrap(),
            rates: vec![pair(0.1), pair(0.2)],
            seeds: seeds.to_vec(),
        }
    }

    #[test]
    fn the_best_success_among_stable_rates_is_picked() {
        let rows = vec![
            row(pair(0.4), &[run(0.24, 0.9), run(0.5, 0.9)], 0),
            row(pair(0.2), &[run(0.26, 0.7), run(0.5, 0.6)], 0),
            row(pair(0.1), &[run(0.3, 0.5), run(0.4, 0.6)], 0),
            row(pair(0.8), &[run(0.5, 0.9), None], 1),
        ];
        let stable: Vec<_> = rows.iter().map(|row| row.stable).collect();
        assert_eq!(stable, [Some(false), Some(true), Some(true), Some(false)]);
        let tuned = tuning(&[1000, 1001]).tuned(rows);
        assert_eq!(tuned.picked, Some(pair(0.2)));
        assert!(!tuned.at_edge);
        let text = as_markdown(&tuned);
        assert!(text.contains("| 0.2 | 0.2 | 65.0 | 70.0, 60.0 | 4.0 | 0.0 | yes |"), "{text}");
        assert!(text.contains("| no, 1 diverged |"), "{text}");
        assert!(text.ends_with("Best stable rates: server 0.2, terminal 0.2.\n"), "{text}");
    }

    #[test]
    fn a_rate_that_loses_what_it_had_or_is_not_run_yet_is_not_picked() {
        let lost = row(pair(0.1), &[run(0.4, 0.44)], 0);
        assert_eq!(lost.stable, Some(false), "it ends 16 points below its best");
        let unknown = row(pair(0.2), &[run(0.4, 0.9), None], 0);
        assert_eq!((unknown.stable, unknown.success_mean, unknown.missing), (None, None, 1));
        let tuned = tuning(&[1000]).tuned(vec![lost, unknown]);
        assert_eq!(tuned.picked, None);
        assert!(as_markdown(&tuned).contains("No rate is stable."));
    }

    #[test]
    fn seeds_of_reports_and_a_rate_named_twice_are_refused() {
        let said = tuning(&[1000, 999]).check().unwrap_err();
        assert_eq!(said, "seed is 999, expected 1000 or more: smaller ones are for reports");
        let twice = Tuning { rates: vec![pair(0.1), pair(0.1)], ..tuning(&[1000]) };
        assert_eq!(twice.check().unwrap_err(), "rates have 0.1/0.1 twice, expected each once");
        assert_eq!(tuning(&[1000]).check(), Ok(()));
    }

    #[test]
    fn a_rate_is_one_number_or_two() {
        assert_eq!(RatePair::parse("0.05"), Ok(pair(0.05)));
        let both = RatePair { server_rate: 1e-3, terminal_rate: 0.2 };
        assert_eq!(RatePair::parse("1e-3/0.2"), Ok(both));
        for bad in ["", "0", "-1", "nan", "inf", "1/", "1/2/3", "fast"] {
            let said = RatePair::parse(bad).unwrap_err();
            assert!(said.starts_with(&format!("rate is `{bad}`, expected ")), "{said}");
        }
    }

    #[test]
    fn every_run_has_its_own_rates_and_a_divergence_is_known_by_its_reason() {
        let study = tuning(&[1000, 1001]).study(Path::new("nowhere")).unwrap();
        let folders: Vec<_> = study.jobs.iter().map(|job| job.folder()).collect();
        let names = ["0.1_0.1/random-1000", "0.2_0.2/random-1000"];
        assert_eq!(folders[..2], names.map(|name| Path::new("runs").join(name)));
        assert_eq!(folders.len(), 4);
        assert_ne!(study.jobs[0].scenario.hash(), study.jobs[1].scenario.hash());
        assert_eq!(study.jobs[0].scenario.hash(), study.jobs[2].scenario.hash());
        let diverged = RunError::Diverged { round: 3, loss: f64::NAN }.to_string();
        assert!(RunError::is_divergence(&diverged) && !RunError::is_divergence("no space"));
    }
}
