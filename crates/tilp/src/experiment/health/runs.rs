//! The criteria that need whole runs: the runs, and the findings from them.

use serde_json::{Value, json};

use super::criteria::{Criterion, Finding, table};
use super::{Examination, allocation, participation, robots};
use crate::experiment::stability::{
    MOST_BELOW_BASE, MOST_BELOW_BEST, below_base, below_best, worst,
};
use crate::experiment::study::{Finished, Job, Outcome, StudyError, StudyFolder, Subject};
use crate::record::RecordError;
use crate::scenario::{Cache, Scenario, ScenarioError, Seeds, method};
use crate::statistics::mean;

/// The methods whose success must not fall far below the base policy.
const STEADY: [&str; 3] = ["random", "deficit", "splitfed+guard+q0.9"];
/// The methods of which no run may be lost, and whose replicates must end with similar success.
const FOUR: [&str; 4] = ["random", "deficit", "splitfed+guard+q0.9", "splitnn+guard+q0.75"];
/// The overrides that leave out the far third of the terminals. Only final success is compared.
const FAR: [&str; 2] =
    ["methods.reference.skip_far_share=0.3333333333333333", "evaluation.report_episodes=1"];

/// The override of runs of which only the way to a success threshold counts.
const PASSAGE: &str = "evaluation.report_episodes=4";

/// Finished runs with their seeds.
pub(super) type Runs = Vec<(Seeds, Finished)>;

/// A result from runs, or the number of missing runs.
pub(super) type Found<T> = Result<Result<T, usize>, StudyError>;

/// Number of seeds of a criterion, and of replicates of each seed.
fn extent(criterion: Criterion) -> (usize, u64) {
    match criterion {
        Criterion::Saturation => (10, 1),
        Criterion::Repeatable => (3, 5),
        Criterion::Allocation => (3, 1),
        _ => (5, 1),
    }
}

impl Examination {
    /// Seeds and replicates of a criterion.
    fn seeds_of(&self, criterion: Criterion) -> Vec<Seeds> {
        let (seeds, replicates) = match (self.quick, extent(criterion)) {
            (true, (_, replicates)) => (2, replicates.min(2)),
            (false, extent) => extent,
        };
        let of = |&seed: &u64| (0..replicates).map(move |replicate| Seeds { seed, replicate });
        self.seeds.iter().take(seeds).flat_map(of).collect()
    }

    /// The evaluation settings of all runs. Replicates are compared by their final success only, so
    /// they have few report episodes.
    fn measured(&self, replicate: u64) -> Vec<String> {
        let (report, last) = match (self.quick, replicate) {
            (true, _) => (1, 2),
            (false, 0) => (16, 32),
            (false, _) => (1, 32),
        };
        let mut set = vec![
            "evaluation.measure_every=50".to_owned(),
            format!("evaluation.report_episodes={report}"),
            format!("evaluation.final_episodes={last}"),
        ];
        set.extend(self.quick_rounds());
        set
    }

    /// Fewer rounds for a first look.
    fn quick_rounds(&self) -> Option<String> {
        self.quick.then(|| format!("rounds={}", self.scenario.rounds().min(100)))
    }

    /// The scenario at a point.
    fn at(&self, overrides: &[String], replicate: u64) -> Result<Scenario, ScenarioError> {
        self.scenario.varied(&[self.measured(replicate), overrides.to_vec()].concat())
    }

    /// Runs of methods at a point.
    fn jobs(
        &self,
        criterion: Criterion,
        point: &str,
        overrides: &[String],
        methods: &[&str],
    ) -> Result<Vec<Job>, ScenarioError> {
        let mut jobs = Vec::new();
        for name in methods {
            let method = method(name)?;
            for seed in self.seeds_of(criterion) {
                let scenario = self.at(overrides, seed.replicate)?;
                method.training(&scenario)?; // checks that a fixed compression is within the limit
                let subject = Subject { point: point.into(), method: method.name().into() };
                jobs.push(Job { subject, scenario, method: method.clone(), seed });
            }
        }
        Ok(jobs)
    }

    /// The runs that a criterion needs.
    pub(super) fn jobs_of(&self, criterion: Criterion) -> Result<Vec<Job>, ScenarioError> {
        let plain = |methods: &[&str]| self.jobs(criterion, "measured", &[], methods);
        match criterion {
            Criterion::Stable | Criterion::Repeatable => plain(&FOUR),
            Criterion::Saturation | Criterion::Allocation => plain(&["random"]),
            Criterion::Headroom => plain(&["random", "clairvoyant"]),
            Criterion::Far => {
                let skipped = FAR.map(str::to_owned);
                let far = self.jobs(criterion, "far third left out", &skipped, &["random"])?;
                Ok([plain(&["random"])?, far].concat())
            }
            Criterion::Participation => {
                let mut jobs = Vec::new();
                for setting in participation::settings(&self.scenario) {
                    let (label, mut set) = (setting.label(), setting.overrides());
                    set.push(PASSAGE.to_owned());
                    jobs.extend(self.jobs(criterion, &label, &set, &["deficit"])?);
                }
                Ok(jobs)
            }
            Criterion::Health | Criterion::Radio | Criterion::Cost => Ok(Vec::new()),
        }
    }

    /// The run whose wall time is judged: all terminals, with the measurements of the scenario.
    pub(super) fn timed_jobs(&self) -> Result<Vec<Job>, ScenarioError> {
        let quick: Vec<String> = self.quick_rounds().into_iter().collect();
        let scenario = self.scenario.varied(&quick)?;
        let method = method("splitfed")?;
        let subject = Subject { point: "timed".into(), method: method.name().to_owned() };
        let seed = self.seeds.first().copied().unwrap_or(1000).into();
        Ok(vec![Job { subject, scenario, method, seed }])
    }

    /// The finding on a criterion.
    pub(super) fn finding(
        &self,
        criterion: Criterion,
        study: &StudyFolder,
        timed: &StudyFolder,
        cache: Option<&Cache>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Finding, StudyError> {
        let found = match criterion {
            Criterion::Health => return Ok(robots::finding(self, cache, progress)?),
            Criterion::Radio => return Ok(robots::radio(self, cache, progress)?),
            Criterion::Cost => self.cost(timed)?,
            Criterion::Stable => self.stable(study)?,
            Criterion::Repeatable => self.repeatable(study)?,
            Criterion::Saturation => self.saturation(study)?,
            Criterion::Far => self.far(study)?,
            Criterion::Allocation => allocation::finding(self, study)?,
            Criterion::Participation => participation::finding(self, study)?,
            Criterion::Headroom => self.headroom(study)?,
        };
        Ok(found.unwrap_or_else(|missing| {
            let measured = format!("{missing} runs are missing or failed");
            Finding::new(criterion, measured, None, Value::Null)
        }))
    }

    /// The finished runs of a method at a point; the number of missing ones if not all are
    /// complete.
    pub(super) fn finished(
        &self,
        criterion: Criterion,
        study: &StudyFolder,
        point: &str,
        method: &str,
    ) -> Found<Runs> {
        let wanted = self.seeds_of(criterion);
        let is_wanted = |job: &&Job| {
            let Subject { point: at, method: name } = &job.subject;
            at == point && name == method && wanted.contains(&job.seed)
        };
        let (mut done, mut missing) = (Vec::new(), 0);
        for job in study.jobs.iter().filter(is_wanted) {
            match study.outcome(job)? {
                Outcome::Done(run) => done.push((job.seed, *run)),
                Outcome::Failed(_) | Outcome::Missing => missing += 1,
            }
        }
        Ok(if missing == 0 && !done.is_empty() { Ok(done) } else { Err(missing.max(1)) })
    }

    /// The finished runs of several methods; the number of missing ones if not all are complete.
    fn of_methods<'a>(
        &self,
        criterion: Criterion,
        study: &StudyFolder,
        methods: &[&'a str],
    ) -> Found<Vec<(&'a str, Runs)>> {
        let (mut all, mut missing) = (Vec::new(), 0);
        for name in methods {
            match self.finished(criterion, study, "measured", name)? {
                Ok(runs) => all.push((*name, runs)),
                Err(count) => missing += count,
            }
        }
        Ok(if missing == 0 { Ok(all) } else { Err(missing) })
    }

    fn stable(&self, study: &StudyFolder) -> Found<Finding> {
        let runs = self.of_methods(Criterion::Stable, study, &FOUR)?;
        Ok(runs.map(|runs| stable(&runs)))
    }

    fn repeatable(&self, study: &StudyFolder) -> Found<Finding> {
        let runs = self.of_methods(Criterion::Repeatable, study, &FOUR)?;
        Ok(runs.map(|runs| repeatable(&runs)))
    }

    fn saturation(&self, study: &StudyFolder) -> Found<Finding> {
        let runs = self.finished(Criterion::Saturation, study, "measured", "random")?;
        Ok(runs.map(|runs| {
            let success = finals(&runs);
            let mean = mean(success.iter().copied()).unwrap_or(f64::NAN);
            let measured = format!("{:.1} % over {} seeds", 100.0 * mean, runs.len());
            let holds = Some((0.65..=0.80).contains(&mean));
            let details = json!({ "success": success });
            Finding::new(Criterion::Saturation, measured, holds, details)
        }))
    }

    /// The mean difference of two rows in points, paired by seed.
    fn difference(
        &self,
        criterion: Criterion,
        study: &StudyFolder,
        rows: [(&str, &str); 2],
    ) -> Found<(f64, Value)> {
        let of = |(point, method): (&str, &str)| self.finished(criterion, study, point, method);
        Ok(match (of(rows[0])?, of(rows[1])?) {
            (Ok(first), Ok(second)) => {
                let (first, second) = (finals(&first), finals(&second));
                let points = first.iter().zip(&second).map(|(a, b)| 100.0 * (a - b));
                let difference = mean(points).unwrap_or(f64::NAN);
                Ok((difference, json!({ "success": [first, second] })))
            }
            (first, second) => {
                let missing = |runs: Result<Vec<_>, usize>| runs.err().unwrap_or(0);
                Err(missing(first) + missing(second))
            }
        })
    }

    fn far(&self, study: &StudyFolder) -> Found<Finding> {
        let rows = [("measured", "random"), ("far third left out", "random")];
        let found = self.difference(Criterion::Far, study, rows)?;
        Ok(found.map(|(cost, details)| {
            let measured = format!("{cost:.1} points");
            Finding::new(Criterion::Far, measured, Some(cost >= 10.0), details)
        }))
    }

    fn headroom(&self, study: &StudyFolder) -> Found<Finding> {
        let rows = [("measured", "clairvoyant"), ("measured", "random")];
        let found = self.difference(Criterion::Headroom, study, rows)?;
        Ok(found.map(|(gain, details)| {
            Finding::new(Criterion::Headroom, format!("{gain:+.1} points"), None, details)
        }))
    }

    fn cost(&self, timed: &StudyFolder) -> Found<Finding> {
        let Some(job) = timed.jobs.first() else { return Ok(Err(1)) };
        let Outcome::Done(run) = timed.outcome(job)? else { return Ok(Err(1)) };
        let path = timed.path().join(job.folder()).join("timing.json");
        let text = std::fs::read_to_string(&path).map_err(RecordError::io("read", &path))?;
        let timing: Value = serde_json::from_str(&text).unwrap_or_default();
        let parts = ["set_up_s", "rounds_s", "final_evaluation_s"];
        let seconds: f64 = parts.iter().filter_map(|part| timing[*part].as_f64()).sum();
        let scaled = seconds * 1000.0 / run.summary.rounds.max(1) as f64;
        let measured = format!("{seconds:.0} s for {} rounds", run.summary.rounds);
        let holds = Some(scaled <= 180.0);
        Ok(Ok(Finding::new(Criterion::Cost, measured, holds, timing)))
    }
}

fn finals(runs: &[(Seeds, Finished)]) -> Vec<f64> {
    runs.iter().filter_map(|(_, run)| run.summary.success_final).collect()
}

fn stable(methods: &[(&str, Runs)]) -> Finding {
    let mut rows = Vec::new();
    for (name, runs) in methods {
        let of = || runs.iter().map(|(_, run)| run);
        let dip = worst(of(), below_base).filter(|_| STEADY.contains(name));
        let is_lost = |run: &&Finished| below_best(run).is_some_and(|by| by > MOST_BELOW_BEST);
        let lost = of().filter(is_lost).count();
        rows.push(json!({
            "method": name,
            "runs": runs.len(),
            "success_%": mean(finals(runs)).map(|mean| 100.0 * mean),
            "worst_below_base_points": dip,
            "worst_below_own_best_points": worst(of(), below_best),
            "lost": lost,
        }));
    }
    let largest = |field: &str| {
        rows.iter().filter_map(|row: &Value| row[field].as_f64()).fold(f64::NEG_INFINITY, f64::max)
    };
    let dip = largest("worst_below_base_points");
    let lost: u64 = rows.iter().filter_map(|row| row["lost"].as_u64()).sum();
    let measured = format!(
        "at worst {dip:.1} points below the base policy; {lost} runs lost (at worst {:.1} points \
         below the own best)",
        largest("worst_below_own_best_points")
    );
    let holds = Some(dip <= MOST_BELOW_BASE && lost == 0);
    let columns = [
        "method",
        "runs",
        "success_%",
        "worst_below_base_points",
        "worst_below_own_best_points",
        "lost",
    ];
    Finding::new(Criterion::Stable, measured, holds, table(&columns, rows))
}

/// Standard deviation of replicates around the mean of their seed, pooled over seeds.
fn pooled_deviation(runs: &[(Seeds, Finished)]) -> Option<f64> {
    let mut seeds: Vec<u64> = runs.iter().map(|(one, _)| one.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let (mut squares, mut freedom) = (0.0, 0.0);
    for seed in seeds {
        let own = runs.iter().filter(|(one, _)| one.seed == seed);
        let values: Vec<f64> = own.filter_map(|(_, run)| run.summary.success_final).collect();
        let centre = mean(values.iter().copied())?;
        squares += values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        freedom += values.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| 100.0 * (squares / freedom).sqrt())
}

fn repeatable(methods: &[(&str, Runs)]) -> Finding {
    let rows: Vec<Value> = methods
        .iter()
        .map(|(name, runs)| {
            json!({
                "method": name,
                "runs": runs.len(),
                "standard_deviation_points": pooled_deviation(runs),
            })
        })
        .collect();
    let deviation = |row: &Value| row["standard_deviation_points"].as_f64();
    let worst = rows.iter().filter_map(deviation).fold(0.0, f64::max);
    let all = rows.iter().all(|row| deviation(row).is_some());
    let measured = format!("at most {worst:.2} points");
    let holds = all.then_some(worst <= 2.0);
    let columns = ["method", "runs", "standard_deviation_points"];
    Finding::new(Criterion::Repeatable, measured, holds, table(&columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Summary;

    fn run(seed: u64, replicate: u64, curve: &[(u64, f64)], last: f64) -> (Seeds, Finished) {
        let summary = Summary {
            success_final: Some(last),
            success_curve: curve.to_vec(),
            ..Summary::default()
        };
        (Seeds { seed, replicate }, Finished { summary, ..Finished::default() })
    }

    #[test]
    fn a_run_is_stable_if_it_never_falls_below_its_base_and_ends_near_its_best() {
        let curve = [(0, 0.3), (50, 0.26), (100, 0.4), (200, 0.5), (500, 0.8)];
        let steady = run(1000, 0, &curve, 0.7);
        assert!((below_base(&steady.1).unwrap() - 4.0).abs() < 1e-9);
        assert!((below_best(&steady.1).unwrap() - 10.0).abs() < 1e-9);
        let finding = stable(&[("random", vec![steady.clone()])]);
        assert_eq!(finding.holds, Some(true));
        // A dip of a sequential relay is not judged, but a lost run is.
        let dipped = run(1000, 0, &[(0, 0.3), (50, 0.1), (100, 0.9)], 0.7);
        let finding = stable(&[("splitnn+guard+q0.75", vec![dipped.clone()])]);
        assert_eq!(finding.holds, Some(false), "it is lost by 20 points");
        let finding =
            stable(&[("random", vec![steady, run(1001, 0, &[(0, 0.3), (50, 0.2)], 0.3)])]);
        assert_eq!(finding.holds, Some(false), "ten points below its base");
    }

    #[test]
    fn the_deviation_of_replicates_is_pooled_within_seeds() {
        // Seeds differ by a lot, replicates by two points around their mean.
        let runs: Vec<_> = [(1, 0.80), (1, 0.84), (2, 0.50), (2, 0.54)]
            .iter()
            .enumerate()
            .map(|(index, (seed, last))| run(*seed, index as u64 % 2, &[], *last))
            .collect();
        let expected = 100.0 * (4.0 * 0.02f64.powi(2) / 2.0).sqrt();
        assert!((pooled_deviation(&runs).unwrap() - expected).abs() < 1e-9);
        assert_eq!(repeatable(&[("random", runs)]).holds, Some(false));
        assert_eq!(pooled_deviation(&[run(1, 0, &[], 0.8)]), None);
    }
}
