//! The problem as every method receives it: limits, costs, nominal hardware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::share::need;
use super::solve::{Need, finish_together_by};
use crate::cost::{self, Cost, CostModel, FrontCopies, Grant, Job, Link};
use crate::round::{Decision, Observation, TerminalDecision};
use crate::units::{Bytes, Hertz, Seconds};
use crate::wireless;

/// The problem as the base station has it. Hardware and noise come from the data sheets that the
/// terminals report.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Limits, sizes, billing and the rate formula.
    pub cost: CostModel,
    /// The cut of methods that do not choose one.
    pub cut: usize,
}

/// Whose measured success is a terminal's deficit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeficitOf {
    /// That of its task: all terminals of a task together.
    #[default]
    Task,
    /// Its own, shrunk towards that of its task.
    Terminal,
}

impl DeficitOf {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Knobs of the reference methods `random`, `greedy`, `deficit` and `clairvoyant`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceKnobs {
    /// Terminals scheduled per round, at most.
    pub n_scheduled: usize,
    /// Fixed compression.
    pub compression: f64,
    /// Share of the deadline that a predicted delay may use.
    pub margin: f64,
    /// Share of the terminals, the farthest first by gain, that is never scheduled.
    pub skip_far_share: f64,
    /// Uniform part of a terminal's weight in `deficit`; the rest follows the deficit.
    pub uniform_share: f64,
    /// Whose measured success is a terminal's deficit in `deficit`.
    #[serde(default, skip_serializing_if = "DeficitOf::is_default")]
    pub deficit: DeficitOf,
    /// Episodes by which a terminal's own success is shrunk towards that of its task: the weight
    /// of a Beta prior whose mean is the success of the task. Only for `deficit = "terminal"`.
    #[serde(default = "deficit_prior", skip_serializing_if = "is_deficit_prior")]
    pub deficit_prior: f64,
    /// Compression of the nearer half of the terminals, by large-scale gain; the same as that of the
    /// others if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near_compression: Option<f64>,
    /// Episodes per terminal for the true success in `clairvoyant`.
    #[serde(default = "clairvoyant_episodes", skip_serializing_if = "is_clairvoyant_episodes")]
    pub clairvoyant_episodes: usize,
}

fn deficit_prior() -> f64 {
    2.0
}

fn is_deficit_prior(value: &f64) -> bool {
    *value == deficit_prior()
}

fn clairvoyant_episodes() -> usize {
    16
}

fn is_clairvoyant_episodes(value: &usize) -> bool {
    *value == clairvoyant_episodes()
}

impl Problem {
    /// Work of a terminal that is scheduled with this cut and compression.
    pub fn job(&self, seen: &Observation, n: usize, cut: usize, compression: f64) -> Job {
        self.job_in(seen, n, cut, compression, seen.aggregates)
    }

    /// The same in a round that aggregates or not, whatever the schedule says.
    pub fn job_in(
        &self,
        seen: &Observation,
        n: usize,
        cut: usize,
        compression: f64,
        aggregates: bool,
    ) -> Job {
        let report = &seen.terminals[n].report;
        self.cost.training_job(report.into(), report.n_samples, cut, compression, aggregates)
    }

    /// Nominal cost of a job on a terminal's link.
    pub fn cost(&self, seen: &Observation, n: usize, job: &Job, grant: Grant) -> Cost {
        cost::cost(job, &seen.terminals[n].report.hardware, &self.link(seen, n), grant)
    }

    /// The deepest admissible cut up to the fixed one that fits the terminal's memory, else the
    /// shallowest.
    pub fn fitting_cut(&self, memory: Bytes) -> usize {
        let fits = |cut: &&usize| **cut <= self.cut && self.cost.profile.memory(**cut) <= memory;
        *self.cost.limits.cuts.iter().rev().find(fits).unwrap_or(&self.cost.limits.cuts[0])
    }

    /// The band that is left for scheduled terminals if exactly these are scheduled in a round that
    /// aggregates or not.
    pub fn band(&self, seen: &Observation, scheduled: &[usize], aggregates: bool) -> Hertz {
        let copies = seen.terminals.iter().map(|view| FrontCopies::from(&view.report));
        self.cost.free_band(copies, aggregates, |n| scheduled.contains(&n))
    }

    /// Admits terminals in the given order, as long as all admitted are predicted to finish
    /// together within the margin of the deadline; then shares the band so that they do.
    ///
    /// If no terminal can meet it, the one that would finish first gets the whole band and the
    /// decision is marked as a fallback.
    pub fn admit(&self, seen: &Observation, order: &[usize], knobs: &ReferenceKnobs) -> Decision {
        let latest = self.cost.limits.deadline * knobs.margin;
        let compressions = compressions(seen, knobs);
        let mut admitted: Vec<usize> = Vec::new();
        let mut split = Vec::new();
        for &n in order {
            if admitted.len() == knobs.n_scheduled {
                break;
            }
            admitted.push(n);
            match self.finish_together(seen, &admitted, &compressions, latest) {
                Some(bandwidths) => split = bandwidths,
                None => {
                    admitted.pop();
                }
            }
        }
        let fallback = admitted.is_empty();
        if fallback {
            admitted.push(self.fastest(seen, order, &compressions));
            split.push(self.band(seen, &admitted, seen.aggregates));
        }
        let mut decision = Decision::idle(seen.terminals.len(), self.cut);
        decision.fallback = fallback;
        for (&n, &bandwidth) in admitted.iter().zip(&split) {
            decision.terminals[n] = TerminalDecision {
                scheduled: true,
                bandwidth,
                power: self.cost.limits.power,
                cut: self.fitting_cut(seen.terminals[n].report.memory),
                compression: compressions[n],
            };
        }
        decision
    }

    /// Terminals that may be scheduled at all: the farthest share by large-scale gain is left out.
    pub fn reachable(&self, seen: &Observation, skip_far_share: f64) -> Vec<usize> {
        let mut by_gain: Vec<usize> = (0..seen.terminals.len()).collect();
        let gain = |n: &usize| seen.terminals[*n].report.gain.0;
        by_gain.sort_by(|a, b| gain(b).total_cmp(&gain(a)).then(a.cmp(b)));
        let keep = by_gain.len() - (skip_far_share * by_gain.len() as f64).round() as usize;
        by_gain.truncate(keep.max(1));
        by_gain.sort_unstable();
        by_gain
    }

    pub(super) fn link(&self, seen: &Observation, n: usize) -> Link {
        let report = &seen.terminals[n].report;
        self.cost.link(report.gain, report.fading_power)
    }

    /// The need for bandwidth of a number of bytes at full power, in addition to a fixed time; `received` of
    /// them are downlink bytes.
    pub fn need(
        &self,
        seen: &Observation,
        n: usize,
        [all, received]: [Bytes; 2],
        fixed_s: f64,
    ) -> Need {
        let noise = seen.terminals[n].report.hardware.noise_w_per_hz;
        need(&self.link(seen, n), self.cost.limits.power, noise, [all, received], fixed_s)
    }

    /// Nominal time of computation.
    pub fn computation_s(&self, seen: &Observation, n: usize, job: &Job) -> f64 {
        let hardware = &seen.terminals[n].report.hardware;
        let (per_cycle, clock) = (hardware.operations_per_cycle, hardware.clock);
        wireless::computation_delay(job.work, per_cycle, clock).0
    }

    fn finish_together(
        &self,
        seen: &Observation,
        scheduled: &[usize],
        compressions: &[f64],
        latest: Seconds,
    ) -> Option<Vec<Hertz>> {
        let needed = |&n: &usize| {
            let cut = self.fitting_cut(seen.terminals[n].report.memory);
            let job = self.job(seen, n, cut, compressions[n]);
            let bytes = [job.air(), job.down + job.sync_down];
            self.need(seen, n, bytes, self.computation_s(seen, n, &job))
        };
        let needs: Vec<Need> = scheduled.iter().map(needed).collect();
        let band = self.band(seen, scheduled, seen.aggregates);
        finish_together_by(&needs, band, latest).map(|(_, bandwidths)| bandwidths)
    }

    fn fastest(&self, seen: &Observation, order: &[usize], compressions: &[f64]) -> usize {
        let delay = |n: usize| {
            let cut = self.fitting_cut(seen.terminals[n].report.memory);
            let job = self.job(seen, n, cut, compressions[n]);
            let grant =
                Grant { bandwidth: self.cost.limits.bandwidth, power: self.cost.limits.power };
            self.cost(seen, n, &job, grant).delay().0
        };
        order.iter().copied().min_by(|&a, &b| delay(a).total_cmp(&delay(b))).unwrap_or(0)
    }
}

/// The compression of every terminal: one for all, or one for the nearer and one for the farther
/// half.
fn compressions(seen: &Observation, knobs: &ReferenceKnobs) -> Vec<f64> {
    let n_terminals = seen.terminals.len();
    let mut all = vec![knobs.compression; n_terminals];
    let Some(near) = knobs.near_compression else { return all };
    let mut by_gain: Vec<usize> = (0..n_terminals).collect();
    let gain = |n: usize| seen.terminals[n].report.gain.0;
    by_gain.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
    by_gain[..n_terminals / 2].iter().for_each(|&n| all[n] = near);
    all
}
