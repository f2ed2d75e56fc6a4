//! The true radio and hardware: who makes it in time, and what it costs.

use super::Channel;
use crate::cost::{self, Accounting, Cost, Grant, Hardware, Job, Link, Profile};
use crate::round::{Feasible, Limits, Observation};
use crate::units::{Bytes, Hertz, Seconds, Watts};
use crate::wireless::{RateModel, round_delay};

/// What happens to a terminal that misses the deadline (D2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The round closes at the deadline; the terminal contributes nothing.
    Drop,
    /// The round waits for everybody.
    Wait,
}

/// The true radio and hardware of a cell.
pub struct Radio {
    /// Limits of the problem.
    pub limits: Limits,
    /// Sizes of the policy.
    pub profile: Profile,
    /// How exchanges are billed.
    pub accounting: Accounting,
    /// Where channels come from.
    pub channel: Channel,
    /// True hardware.
    pub truth: Vec<Hardware>,
    /// Memory budgets.
    pub memory: Vec<Bytes>,
    /// How fading enters the rate.
    pub rate_model: RateModel,
    /// What happens to late terminals.
    pub late: Late,
    /// No latency counts above this (D3).
    pub give_up: Seconds,
}

/// How a round went in time, energy and bytes; one entry per terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// Scheduled, or owing its copy in a round that aggregates.
    pub involved: Vec<bool>,
    /// Involved, fits its memory, and made it.
    pub in_time: Vec<bool>,
    /// What of its job each got done on the air.
    pub jobs: Vec<Job>,
    /// Bandwidth each really had.
    pub bandwidths: Vec<Hertz>,
    /// Uncut delay.
    pub delays: Vec<Seconds>,
    /// What was really spent, cut at the deadline if the round closes there.
    pub costs: Vec<Cost>,
    /// Slowest scheduled terminal, at most the give-up time.
    pub latency: Seconds,
    /// By how much the clock advances.
    pub duration: Seconds,
}

impl Radio {
    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.truth.len()
    }

    /// Executes a plan on the true channel and hardware.
    ///
    /// In a round that aggregates, a terminal that is not scheduled but owes its copy delivers it
    /// at full power over one N-th of the band; the scheduled share what is left. The round waits
    /// for such copies until the deadline. One that does not arrive is lost: that costs learning,
    /// but it is no violation, since nobody scheduled that terminal.
    pub fn settle(&self, plan: &Feasible, seen: &Observation) -> Settled {
        let decision = plan.decision();
        let n_terminals = self.n_terminals();
        let owes = |n: usize| {
            let owed = seen.aggregates && seen.terminals[n].owed_layers > 0;
            owed && !decision.terminals[n].scheduled
        };
        let slice = self.limits.bandwidth / n_terminals as f64;
        let reserved = slice * (0..n_terminals).filter(|&n| owes(n)).count() as f64;
        let asked = decision.bandwidth();
        let free = self.limits.bandwidth - reserved;
        // D4: a base station cannot hand out more than it has.
        let scale = if asked > free { free.0 / asked.0 } else { 1.0 };
        let grant = |n: usize| {
            let one = &decision.terminals[n];
            match (one.scheduled, owes(n)) {
                (true, _) => Grant { bandwidth: one.bandwidth * scale, power: one.power },
                (_, true) => Grant { bandwidth: slice, power: self.limits.power },
                _ => Grant { bandwidth: Hertz(0.0), power: Watts(0.0) },
            }
        };
        let grants: Vec<Grant> = (0..n_terminals).map(grant).collect();
        let jobs: Vec<Job> = (0..n_terminals).map(|n| self.job(plan, seen, n)).collect();
        let involved =
            (0..n_terminals).map(|n| decision.terminals[n].scheduled || owes(n)).collect();
        self.close(plan, seen, grants, jobs, involved)
    }

    fn job(&self, plan: &Feasible, seen: &Observation, n: usize) -> Job {
        let (one, view) = (&plan.decision().terminals[n], &seen.terminals[n]);
        if one.scheduled {
            let deliver = if seen.aggregates { one.cut.max(view.owed_layers) } else { 0 };
            let (cut, held) = (one.cut, view.held_layers);
            return self.accounting.training(&self.profile, cut, one.compression, held, deliver);
        }
        let deliver = if seen.aggregates { view.owed_layers } else { 0 };
        self.accounting.delivery(&self.profile, deliver)
    }

    /// Delays and energies, and when the round ends.
    fn close(
        &self,
        plan: &Feasible,
        seen: &Observation,
        grants: Vec<Grant>,
        jobs: Vec<Job>,
        involved: Vec<bool>,
    ) -> Settled {
        let n_terminals = self.n_terminals();
        let full: Vec<Cost> =
            (0..n_terminals).map(|n| self.true_cost(seen, n, &jobs[n], grants[n])).collect();
        let delays: Vec<Seconds> = (0..n_terminals)
            .map(|n| if involved[n] { full[n].delay() } else { Seconds(0.0) })
            .collect();
        let fits = |n: usize| {
            let one = &plan.decision().terminals[n];
            !one.scheduled || self.profile.memory(one.cut) <= self.memory[n]
        };
        let end = self.end();
        let in_time: Vec<bool> =
            (0..n_terminals).map(|n| involved[n] && fits(n) && delays[n] <= end).collect();
        let costs: Vec<Cost> =
            (0..n_terminals).map(|n| full[n].until(end, grants[n].power)).collect();
        let jobs =
            (0..n_terminals).map(|n| jobs[n].part(on_air_share(&full[n], &costs[n]))).collect();
        let scheduled = plan.decision().scheduled().map(|n| delays[n]);
        Settled {
            latency: round_delay(scheduled).min(self.give_up),
            duration: round_delay(delays.iter().copied()).min(end),
            bandwidths: grants.iter().map(|grant| grant.bandwidth).collect(),
            involved,
            in_time,
            jobs,
            delays,
            costs,
        }
    }

    /// When a round ends for those who have not finished.
    fn end(&self) -> Seconds {
        match self.late {
            Late::Drop => self.limits.deadline,
            // Under Rayleigh fading a wait has no mean; nobody waits for ever.
            Late::Wait => self.give_up,
        }
    }

    fn true_cost(&self, seen: &Observation, n: usize, job: &Job, grant: Grant) -> Cost {
        let view = &seen.terminals[n];
        let link =
            Link { gain: view.gain, fading_power: view.fading_power, model: self.rate_model };
        cost::cost(job, &self.truth[n], &link, grant)
    }
}

/// Share of its time on the air that a terminal had before it was cut off.
fn on_air_share(full: &Cost, spent: &Cost) -> f64 {
    let wanted = full.sending + full.receiving;
    if wanted.0 > 0.0 { (spent.sending + spent.receiving).0 / wanted.0 } else { 1.0 }
}
