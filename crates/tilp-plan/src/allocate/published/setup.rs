//! Inputs of published methods, and their common helper functions.

use crate::allocate::Problem;
use crate::allocate::share::channel;
use crate::allocate::solve::{Channel, Need};
use crate::cost::{Cost, Downlink, Grant, Hardware, Job, RoundInputs};
use crate::rng::Seed;
use crate::round::{Decision, Observation, ProjectedDecision, TerminalDecision};
use crate::split::rule::Rule;
use crate::units::{Bytes, Hertz, Seconds, Watts};

/// Prior information of a published method.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The problem, nominal values.
    pub problem: Problem,
    /// How its rounds are trained.
    pub rule: Rule,
    /// Fixed compression; zero as published.
    pub compression: f64,
    /// Training rounds T.
    pub rounds: u64,
    /// Learning rate of the terminals at the start.
    pub terminal_rate: f64,
    /// Seed of its own draws.
    pub seed: Seed,
}

impl Setup {
    /// Every terminal's predicted delay in a round that closes then, by the data sheets.
    pub fn delays(
        &self,
        seen: &Observation,
        plan: &ProjectedDecision,
        closes: Seconds,
    ) -> Vec<Seconds> {
        let reports = seen.reports();
        let hardware: Vec<Hardware> = reports.iter().map(|report| report.hardware).collect();
        let (aggregates, rule) = (seen.aggregates, self.rule);
        let round =
            RoundInputs { reports: &reports, hardware: &hardware, aggregates, rule, closes };
        self.problem.cost.round_costs(plan, &round).delays
    }

    /// Admissible cuts that fit a terminal's memory, ascending; if none does, the shallowest.
    pub fn fitting_cuts(&self, seen: &Observation, n: usize) -> Vec<usize> {
        let cuts = &self.problem.cost.limits.cuts;
        let fits = |cut: &&usize| {
            self.problem.cost.profile.memory(**cut) <= seen.terminals[n].report.memory
        };
        let fitting: Vec<usize> = cuts.iter().filter(fits).copied().collect();
        if fitting.is_empty() { vec![cuts[0]] } else { fitting }
    }

    /// Whether a terminal can take part at all.
    pub fn fits(&self, seen: &Observation, n: usize) -> bool {
        let least = self.least_layers();
        self.problem.cost.profile.memory(least) <= seen.terminals[n].report.memory
    }

    /// Layers that a terminal holds at least.
    fn least_layers(&self) -> usize {
        match self.rule {
            Rule::Whole(_) => self.problem.cost.profile.cuts.len(),
            _ => self.problem.cost.limits.cuts[0],
        }
    }

    /// Work of a terminal at a cut, in a round with or without aggregation.
    pub fn job(&self, seen: &Observation, n: usize, cut: usize, aggregates: bool) -> Job {
        let (view, problem) = (&seen.terminals[n], &self.problem);
        let (cost, q) = (&problem.cost, self.compression);
        let samples = cost.profile.samples(view.report.n_samples);
        match self.rule {
            Rule::Whole(local) => {
                let samples = local.samples(cost.profile.batch, view.report.n_samples);
                cost.accounting.whole(&cost.profile, samples, q)
            }
            Rule::Relay => cost.accounting.training(&cost.profile, samples, cut, q, 0, cut),
            _ => problem.job_in(seen, n, cut, q, aggregates),
        }
    }

    /// Nominal cost of a job at full power.
    pub fn cost(&self, seen: &Observation, n: usize, job: &Job, bandwidth: Hertz) -> Cost {
        let grant = Grant { bandwidth, power: self.problem.cost.limits.power };
        self.problem.cost(seen, n, job, grant)
    }

    /// A terminal's link at full power.
    pub fn channel(&self, seen: &Observation, n: usize) -> Channel {
        self.channel_at(seen, n, self.problem.cost.limits.power)
    }

    /// The downlink: the same link, unless the base station sends with its own power.
    pub fn channel_down(&self, seen: &Observation, n: usize) -> Channel {
        match self.problem.cost.downlink {
            Downlink::Shared => self.channel(seen, n),
            Downlink::Own(power) => self.channel_at(seen, n, power),
        }
    }

    fn channel_at(&self, seen: &Observation, n: usize, power: Watts) -> Channel {
        let noise = seen.terminals[n].report.hardware.noise_w_per_hz;
        channel(&self.problem.link(seen, n), power, noise)
    }

    /// Nominal time of computation.
    pub fn computation_s(&self, seen: &Observation, n: usize, job: &Job) -> f64 {
        self.problem.computation_s(seen, n, job)
    }

    /// Bandwidth need of a job.
    pub fn need(&self, seen: &Observation, n: usize, job: &Job) -> Need {
        let received = job.down + job.sync_down;
        self.need_of(seen, n, job.air(), received, self.computation_s(seen, n, job))
    }

    /// The need for bandwidth of a number of bytes; `received` of them are downlink bytes.
    pub fn need_of(
        &self,
        seen: &Observation,
        n: usize,
        all: Bytes,
        received: Bytes,
        fixed_s: f64,
    ) -> Need {
        self.problem.need(seen, n, [all, received], fixed_s)
    }

    /// A terminal scheduled at full power with the fixed compression.
    pub fn scheduled(&self, bandwidth: Hertz, cut: usize) -> TerminalDecision {
        let (power, compression) = (self.problem.cost.limits.power, self.compression);
        TerminalDecision { scheduled: true, bandwidth, power, cut, compression }
    }

    /// A decision that schedules these terminals: terminal, bandwidth, cut.
    pub fn decision(
        &self,
        seen: &Observation,
        chosen: impl IntoIterator<Item = (usize, Hertz, usize)>,
    ) -> Decision {
        let mut decision = Decision::idle(seen.terminals.len(), self.problem.cut);
        for (n, bandwidth, cut) in chosen {
            decision.terminals[n] = self.scheduled(bandwidth, cut);
        }
        decision
    }

    /// The band that is left if exactly these are scheduled in a round that aggregates or not.
    pub fn band(&self, seen: &Observation, scheduled: &[usize], aggregates: bool) -> Hertz {
        self.problem.band(seen, scheduled, aggregates)
    }

    /// Whether a terminal has rate zero at any bandwidth.
    pub fn dead(&self, seen: &Observation, n: usize) -> bool {
        let strength = self.channel(seen, n).strength_hz;
        !(strength > 0.0 && strength.is_finite())
    }

    /// Predicted delay at an even share among this number of terminals, at the terminal's fastest cut.
    pub fn even_delay(&self, seen: &Observation, n: usize, sharers: usize) -> f64 {
        let share = self.problem.cost.limits.bandwidth / sharers.max(1) as f64;
        let delay = |cut: usize| {
            self.cost(seen, n, &self.job(seen, n, cut, seen.aggregates), share).delay().0
        };
        self.fitting_cuts(seen, n).into_iter().map(delay).fold(f64::INFINITY, f64::min)
    }

    /// Of these the terminal that would be done first with the whole band to itself.
    pub fn fastest(&self, seen: &Observation, among: &[usize]) -> usize {
        let key = |n: usize| (!self.fits(seen, n), self.even_delay(seen, n, 1));
        let before = |a: &&usize, b: &&usize| {
            let ((a_short, a_delay), (b_short, b_delay)) = (key(**a), key(**b));
            a_short.cmp(&b_short).then(a_delay.total_cmp(&b_delay))
        };
        among.iter().min_by(before).copied().unwrap_or(0)
    }
}
