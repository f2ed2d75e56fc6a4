//! `summary.json`: the metrics of one run under the names that files, tables and code share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    EventMark, EventSummary, FirstPassage, History, RoundRow, event_summaries, joules_to_accuracy,
    mean_latency, mean_violation, rounds_to_accuracy, seconds_to_accuracy, server_steps,
    success_area, success_rate, total_energy, total_volume, wilson_95,
};
use crate::round::{Budget, BudgetState, BudgetUse, SuccessCount, TerminalId, TerminalSuccess};
use crate::rule::Rule;
use crate::statistics::{mean, quantile};
use crate::units::{Bytes, Joules, Seconds};

/// What was measured around the rounds, besides the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Success of the base policy on report episodes, if it was measured.
    pub base: Option<SuccessCount>,
    /// Success per terminal on final episodes.
    pub terminals: Vec<TerminalSuccess>,
    /// Names of the tasks, in the order of their indices.
    pub task_names: Vec<String>,
    /// When a success threshold counts as reached.
    pub first_passage: FirstPassage,
    /// How the rounds were trained, if it is known.
    pub rule: Option<Rule>,
    /// The events of the run.
    pub events: Vec<EventMark>,
    /// What kind of scenario it was, where that needs saying.
    pub note: Option<String>,
    /// Budgets of the run.
    pub budget: Budget,
}

/// A value for each success threshold; none where it was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtThresholds<T> {
    /// At a success of 60 %.
    #[serde(rename = "0.6")]
    pub at_60: Option<T>,
    /// At a success of 70 %.
    #[serde(rename = "0.7")]
    pub at_70: Option<T>,
    /// At a success of 80 %.
    #[serde(rename = "0.8")]
    pub at_80: Option<T>,
}

impl<T> AtThresholds<T> {
    fn of(mut value: impl FnMut(f64) -> Option<T>) -> Self {
        Self { at_60: value(0.6), at_70: value(0.7), at_80: value(0.8) }
    }
}

/// The metrics of one run. A mean over nothing, or a rate without an episode, is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// What kind of scenario it was, where that needs saying: a profile scenario has neither robots
    /// nor tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Rounds executed.
    pub rounds: u64,
    /// Success on final episodes of all terminals.
    pub success_final: Option<f64>,
    /// Wilson's 95 % interval of the final success.
    pub success_final_interval: Option<[f64; 2]>,
    /// Final success of the far third of the terminals, by the mean of the large-scale gains
    /// that they reported.
    pub success_far: Option<f64>,
    /// Final success of the task that succeeds least.
    pub success_worst_task: Option<f64>,
    /// Final success of each task.
    pub success_by_task: BTreeMap<String, Option<f64>>,
    /// Optimiser steps of the server's common layers in a mean round. Summaries of the first
    /// version have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_steps_per_round: Option<f64>,
    /// Rounds until a success is reached on report episodes.
    pub rta: AtThresholds<u64>,
    /// Simulated seconds until a success is reached on report episodes.
    pub tta_s: AtThresholds<f64>,
    /// Energy of all terminals until a success is reached on report episodes.
    pub eta_j: AtThresholds<f64>,
    /// Mean latency of a round.
    pub latency_mean_s: Option<f64>,
    /// Median latency of a round.
    pub latency_p50_s: Option<f64>,
    /// Latency that 95 % of the rounds do not exceed.
    pub latency_p95_s: Option<f64>,
    /// Energy of all terminals.
    pub energy_total_j: f64,
    /// Energy of all terminals that was spent on transmission.
    pub energy_radio_j: f64,
    /// Energy of all terminals that was spent on computation.
    pub energy_compute_j: f64,
    /// Activations sent up.
    pub volume_total_bytes: u64,
    /// Model exchange, both ways.
    pub sync_total_bytes: u64,
    /// Everything on the air, both ways.
    pub air_total_bytes: u64,
    /// Mean violation of a round.
    pub violation_mean: Option<f64>,
    /// Share of the rounds without a violation.
    pub violation_zero_share: Option<f64>,
    /// Share of rounds in which the least scheduled terminal was scheduled.
    pub participation_min: Option<f64>,
    /// Times a scheduled terminal missed the deadline.
    pub late_total: u64,
    /// Times a scheduled terminal did not fit its memory. Summaries of the first version have none:
    /// they count it in `late_total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_total: Option<u64>,
    /// Episodes run: base policy, calibration, report and final.
    pub eval_episodes_total: u64,
    /// Simulated time of the run.
    pub clock_total_s: f64,
    /// Used share of each budget of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget_used: BTreeMap<String, f64>,
    /// Round and success on report episodes; round 0 is the base policy. A round counts the
    /// terminals that were there.
    pub success_curve: Vec<(u64, f64)>,
    /// Only for a scenario with events: the area under the success curve, divided by the rounds that
    /// it spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_area: Option<f64>,
    /// What every event of the scenario cost, and when that was recovered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventSummary>,
}

impl Summary {
    /// The metrics of a finished run.
    pub fn of(history: &History, evaluation: &Evaluation) -> Self {
        let rounds = &history.rounds[..];
        let latencies = || rounds.iter().map(|row| row.latency_s);
        let total = |of: fn(&RoundRow) -> u64| rounds.iter().map(of).sum();
        let joules = |of: fn(&RoundRow) -> f64| rounds.iter().map(of).sum();
        let finals = &evaluation.terminals;
        let counts = || finals.iter().map(|one| one.count);
        let all = counts().fold(SuccessCount::default(), SuccessCount::plus);
        let by_task = success_by_task(evaluation);
        let passage = evaluation.first_passage;
        let curve = success_curve(rounds, evaluation);
        let events = &evaluation.events;
        let no_violation = rounds.iter().map(|row| f64::from(u8::from(row.violation == 0.0)));
        Self {
            note: evaluation.note.clone(),
            rounds: rounds.len() as u64,
            success_final: success_rate(counts()),
            success_final_interval: wilson_95(all),
            success_far: success_far(history, finals),
            success_worst_task: by_task.values().flatten().copied().reduce(f64::min),
            success_by_task: by_task,
            server_steps_per_round: evaluation.rule.and_then(|rule| server_steps(rounds, rule)),
            rta: AtThresholds::of(|at| rounds_to_accuracy(rounds, at, passage)),
            tta_s: AtThresholds::of(|at| Some(seconds_to_accuracy(rounds, at, passage)?.0)),
            eta_j: AtThresholds::of(|at| Some(joules_to_accuracy(rounds, at, passage)?.0)),
            latency_mean_s: mean_latency(rounds).map(|mean| mean.0),
            latency_p50_s: quantile(latencies(), 0.5),
            latency_p95_s: quantile(latencies(), 0.95),
            energy_total_j: total_energy(rounds).0,
            energy_radio_j: joules(|row| row.energy_radio_j),
            energy_compute_j: joules(|row| row.energy_compute_j),
            volume_total_bytes: total_volume(rounds).0,
            sync_total_bytes: total(|row| row.sync_bytes),
            air_total_bytes: total(|row| row.air_bytes),
            violation_mean: mean_violation(rounds),
            violation_zero_share: mean(no_violation),
            participation_min: participation_min(history),
            late_total: total(|row| row.n_late),
            unfit_total: (!rounds.is_empty()).then(|| total(|row| row.n_unfit)),
            eval_episodes_total: total(|row| row.episodes)
                + all.episodes
                + evaluation.base.map_or(0, |count| count.episodes),
            clock_total_s: rounds.last().map_or(0.0, |row| row.clock_s),
            budget_used: budget_used(history, evaluation.budget),
            success_area: success_area(&curve).filter(|_| !events.is_empty()),
            events: event_summaries(events, &curve, rounds),
            success_curve: curve,
        }
    }
}

/// Base policy first, then every measured round.
fn success_curve(rounds: &[RoundRow], evaluation: &Evaluation) -> Vec<(u64, f64)> {
    let base = evaluation.base.and_then(SuccessCount::rate).map(|success| (0, success));
    let measured = rounds.iter().filter_map(|row| Some((row.round, row.report_success?)));
    base.into_iter().chain(measured).collect()
}

/// What was really used of every budget that is set.
fn budget_used(history: &History, budget: Budget) -> BTreeMap<String, f64> {
    let mut used = BudgetUse::default();
    for row in &history.terminals {
        let bytes = Bytes(row.bytes_up + row.bytes_down + row.bytes_sync);
        let joules = Joules(row.energy_radio_j + row.energy_compute_j);
        let one = (TerminalId(row.terminal as u32), joules, bytes);
        used.add(Seconds(0.0), std::iter::once(one));
    }
    used.seconds = Seconds(history.rounds.last().map_or(0.0, |row| row.clock_s));
    let shares = BudgetState { budget, used }.shares();
    shares.into_iter().map(|(name, share)| (name.to_owned(), share)).collect()
}

/// Mean of the large-scale gains of every terminal, in decibels, over the rounds in which it was there.
fn mean_gains(history: &History) -> BTreeMap<u64, f64> {
    let mut gains: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for row in &history.terminals {
        let (sum, count) = gains.entry(row.terminal).or_default();
        (*sum, *count) = (*sum + row.gain_db, *count + 1.0);
    }
    gains.into_iter().map(|(terminal, (sum, count))| (terminal, sum / count)).collect()
}

/// Terminals in the far third, those with the lowest gain.
pub fn n_far(n_terminals: usize) -> usize {
    n_terminals.div_ceil(3)
}

fn success_far(history: &History, finals: &[TerminalSuccess]) -> Option<f64> {
    let gains = mean_gains(history);
    let gain = |one: &TerminalSuccess| gains.get(&u64::from(one.id.0)).copied();
    let mut by_gain: Vec<_> =
        finals.iter().filter_map(|one| Some((gain(one)?, one.count))).collect();
    by_gain.sort_by(|a, b| a.0.total_cmp(&b.0));
    success_rate(by_gain[..n_far(by_gain.len())].iter().map(|(_, count)| *count))
}

fn success_by_task(evaluation: &Evaluation) -> BTreeMap<String, Option<f64>> {
    let rate = |task: usize| {
        let of_task = evaluation.terminals.iter().filter(|one| one.task == task);
        success_rate(of_task.map(|one| one.count))
    };
    let names = evaluation.task_names.iter().enumerate();
    names.map(|(task, name)| (name.clone(), rate(task))).collect()
}

/// Share of the rounds of a terminal's presence in which it was scheduled; the least of
/// all terminals.
fn participation_min(history: &History) -> Option<f64> {
    let mut counts: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for row in &history.terminals {
        let [scheduled, there] = counts.entry(row.terminal).or_default();
        *scheduled += u64::from(row.scheduled);
        *there += 1;
    }
    let shares = counts.values().map(|[scheduled, there]| *scheduled as f64 / *there as f64);
    shares.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{evaluation, history};

    #[test]
    fn a_summary_holds_every_metric_under_its_name() {
        let mut history = history(6);
        history.rounds[1].latency_s = 9.0;
        let json = serde_json::to_value(Summary::of(&history, &evaluation())).unwrap();
        for (name, expected) in [
            ("rounds", "6"),
            ("success_final", "0.6"),
            ("success_far", "0.3"),
            ("success_worst_task", "0.45"),
            ("success_by_task", r#"{"push":0.9,"reach":0.45}"#),
            ("server_steps_per_round", "1.0"),
            ("rta", r#"{"0.6":6,"0.7":6,"0.8":null}"#),
            ("tta_s", r#"{"0.6":12.0,"0.7":12.0,"0.8":null}"#),
            ("latency_mean_s", "4.0"),
            ("latency_p50_s", "3.0"),
            ("latency_p95_s", "7.5"),
            ("volume_total_bytes", "1800"),
            ("sync_total_bytes", "42"),
            ("air_total_bytes", "2022"),
            ("violation_zero_share", "0.0"),
            ("participation_min", "0.0"),
            ("late_total", "6"),
            ("unfit_total", "6"),
            ("eval_episodes_total", "64"),
            ("clock_total_s", "12.0"),
            ("success_curve", "[[0,0.3],[2,0.25],[4,0.5],[6,0.75]]"),
        ] {
            assert_eq!(json[name].to_string(), expected, "{name}");
        }
        let energy = |name: &str| json[name].as_f64().unwrap();
        let parts = energy("energy_radio_j") + energy("energy_compute_j");
        assert!((energy("energy_total_j") - parts).abs() < 1e-9);
        assert_eq!(json["eta_j"]["0.7"], json["energy_total_j"]);
        assert!((json["violation_mean"].as_f64().unwrap() - 0.7).abs() < 1e-12);
        assert!(json["success_final_interval"][0].as_f64().unwrap() < 0.6);
    }

    #[test]
    fn a_summary_comes_back_from_its_json() {
        let summary = Summary::of(&history(6), &evaluation());
        let text = serde_json::to_string(&summary).unwrap();
        // An infinite latency has no JSON form and becomes null.
        let back: Summary = serde_json::from_str(&text).unwrap();
        assert_eq!(back.success_curve, summary.success_curve);
        assert_eq!((back.rta, back.latency_mean_s), (summary.rta, None));
    }

    #[test]
    fn a_run_without_a_round_has_no_means() {
        let summary = Summary::of(&History::default(), &Evaluation::default());
        assert_eq!(summary, Summary::default());
    }

    #[test]
    fn of_every_budget_the_share_that_was_really_used_is_shown() {
        let budget = Budget {
            seconds: Some(Seconds(24.0)),
            bytes: Some(Bytes(4044)),
            joules: None,
            joules_per_terminal: Some(Joules(6.0)),
        };
        let history = history(6);
        let summary = Summary::of(&history, &Evaluation { budget, ..evaluation() });
        let names: Vec<&str> = summary.budget_used.keys().map(String::as_str).collect();
        assert_eq!(names, ["bytes", "joules_per_terminal", "seconds"]);
        assert_eq!(summary.budget_used["seconds"], 0.5);
        assert_eq!(summary.budget_used["bytes"], 0.5);
        // Terminals use 0.6, 0.25 + 0.2 / round and 0 J a round.
        let second: f64 = (1..=6).map(|round| 0.25 + 0.2 / f64::from(round)).sum();
        let mean = (0.6 + second / 6.0) / 3.0;
        assert!((summary.budget_used["joules_per_terminal"] - mean).abs() < 1e-12);
        let json = serde_json::to_value(Summary::of(&history, &evaluation())).unwrap();
        assert!(json.get("budget_used").is_none(), "a run without a budget has none");
    }

    #[test]
    fn the_curve_starts_without_round_0_if_the_base_was_not_measured() {
        let evaluation = Evaluation { base: None, ..evaluation() };
        assert_eq!(Summary::of(&history(2), &evaluation).success_curve, [(2, 0.25)]);
    }
}
