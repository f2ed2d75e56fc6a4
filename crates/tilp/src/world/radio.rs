//! The true radio and hardware: who makes it in time, and what it costs.

use super::Channel;
use crate::cost::{Accounting, Bill, Cost, Hardware, Job, Profile, Terms};
use crate::round::{Feasible, Limits, Observation};
use crate::split::rule::Rule;
use crate::units::{Bytes, Hertz, Seconds};
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
    /// How rounds are trained.
    pub rule: Rule,
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

    /// The terms of a round, with the true hardware.
    pub fn terms(&self) -> Terms<'_> {
        Terms {
            limits: &self.limits,
            profile: &self.profile,
            accounting: &self.accounting,
            hardware: &self.truth,
            rate_model: self.rate_model,
            rule: self.rule,
            closes: self.end(),
        }
    }

    /// Executes a plan on the true channel and hardware.
    ///
    /// The round waits until the deadline for copies that are owed. One that does not arrive is
    /// lost: that costs learning, but it is no violation, since nobody scheduled that terminal.
    pub fn settle(&self, plan: &Feasible, seen: &Observation) -> Settled {
        let terms = self.terms();
        let Bill { involved, grants, jobs, costs: full, starts, delays } = terms.bill(plan, seen);
        let n_terminals = self.n_terminals();
        let fits = |n: usize| {
            let one = &plan.decision().terminals[n];
            !one.scheduled || terms.memory(one.cut) <= self.memory[n]
        };
        let end = self.end();
        let in_time: Vec<bool> =
            (0..n_terminals).map(|n| involved[n] && fits(n) && delays[n] <= end).collect();
        let left = |n: usize| (end - starts[n]).max(Seconds(0.0));
        let costs: Vec<Cost> =
            (0..n_terminals).map(|n| full[n].until(left(n), grants[n].power)).collect();
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
}

/// Share of its time on the air that a terminal had before it was cut off.
fn on_air_share(full: &Cost, spent: &Cost) -> f64 {
    let wanted = full.sending + full.receiving;
    if wanted.0 > 0.0 { (spent.sending + spent.receiving).0 / wanted.0 } else { 1.0 }
}
