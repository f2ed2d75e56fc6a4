//! The value of treating the terminals of a round differently: recorded rounds, with one part of
//! the decision the same for all participants.
//!
//! Participants, channels and hardware are those of the record, the true ones. Nothing else of the
//! decision changes. The cost is that of the cost model by which the simulated cell bills a round.

use crate::cost::{CostModel, Hardware, RoundInputs};
use crate::experiment::replay::{Replay, ReplayedRound};
use crate::record::{RoundRow, TerminalRow};
use crate::round::{Decision, TerminalDecision, TerminalReport};
use crate::rule::Rule;
use crate::units::{Bytes, Hertz, Seconds, Watts};

/// Number of evaluated rounds, evenly spaced over the run.
const ROUNDS: usize = 50;

/// A part of the decision of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Bandwidth,
    Power,
    Cut,
    Compression,
}

impl Part {
    pub(super) const ALL: [Self; 4] = [Self::Bandwidth, Self::Power, Self::Cut, Self::Compression];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Power => "power",
            Self::Cut => "cut",
            Self::Compression => "compression",
        }
    }
}

/// The cost of one part being the same for all, relative to the recorded rounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Levelled {
    pub part: Part,
    /// Geometric means over the rounds of the ratios of their seconds and joules.
    pub seconds: f64,
    pub joules: f64,
    /// Rounds that then miss the deadline, of those that met it.
    pub missed: usize,
}

/// All parts, and the number of rounds; `None` without a round with two participants.
pub(super) fn levelled(replay: &Replay, rows: &[RoundRow]) -> Option<(usize, Vec<Levelled>)> {
    let rule = replay.method.training(&replay.scenario).ok()?;
    let stride = rows.len().div_ceil(ROUNDS).max(1);
    // The first rounds of a run are not typical: the last one of each stretch is taken.
    let looked = replay.rounds().zip(rows).filter(|(_, row)| row.round % stride as u64 == 0);
    let rounds: Vec<Bill> = looked
        .filter(|(round, _)| round.plan.decision().scheduled().nth(1).is_some())
        .map(|(round, row)| Bill::new(replay, rule, &round, row))
        .collect();
    if rounds.is_empty() {
        return None;
    }
    let whole = |part: Part| {
        let (mut seconds, mut joules, mut missed) = (0.0, 0.0, 0);
        for round in &rounds {
            let found = round.with(part);
            seconds += (found.seconds / round.paid.seconds).ln();
            joules += (found.joules / round.paid.joules).ln();
            missed += usize::from(round.misses(&found) && !round.misses(&round.paid));
        }
        let n = rounds.len() as f64;
        Levelled { part, seconds: (seconds / n).exp(), joules: (joules / n).exp(), missed }
    };
    Some((rounds.len(), Part::ALL.map(whole).to_vec()))
}

/// Seconds and joules of a round without cutting off late terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Paid {
    seconds: f64,
    joules: f64,
}

/// A recorded round that can be billed again.
struct Bill<'a> {
    cost: &'a CostModel,
    decision: Decision,
    reports: Vec<TerminalReport>,
    hardware: Vec<Hardware>,
    aggregates: bool,
    rule: Rule,
    closes: Seconds,
    paid: Paid,
}

impl<'a> Bill<'a> {
    fn new(replay: &'a Replay, rule: Rule, round: &ReplayedRound<'_>, row: &RoundRow) -> Self {
        let truth = |row: &TerminalRow| replay.twin.truth[row.terminal as usize];
        let mut bill = Self {
            cost: &replay.twin.nominal.cost,
            decision: round.plan.decision().clone(),
            reports: round.seen.terminals.iter().map(|view| view.report).collect(),
            hardware: round.truth.iter().map(truth).collect(),
            aggregates: row.aggregated,
            rule,
            closes: replay.twin.nominal.closes,
            paid: Paid::default(),
        };
        bill.paid = bill.pay(bill.decision.clone());
        bill
    }

    fn pay(&self, decision: Decision) -> Paid {
        let inputs = RoundInputs {
            reports: &self.reports,
            hardware: &self.hardware,
            aggregates: self.aggregates,
            rule: self.rule,
            closes: self.closes,
        };
        let costs = self.cost.round_costs(&self.cost.limits.project(decision), &inputs);
        let involved = || (0..costs.costs.len()).filter(|&n| costs.involved[n]);
        Paid {
            seconds: involved().map(|n| costs.delays[n].0).fold(0.0, f64::max),
            joules: involved().map(|n| costs.costs[n].energy().0).sum(),
        }
    }

    fn misses(&self, paid: &Paid) -> bool {
        paid.seconds > self.cost.limits.deadline.0
    }

    /// The round with its mean of a part for every participant.
    fn with(&self, part: Part) -> Paid {
        let mean = |of: fn(&TerminalDecision) -> f64| {
            let all = self.decision.scheduled().map(|n| of(&self.decision.terminals[n]));
            let all: Vec<f64> = all.collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        let mut decision = self.decision.clone();
        for (one, report) in decision.terminals.iter_mut().zip(&self.reports) {
            if !one.scheduled {
                continue;
            }
            match part {
                Part::Bandwidth => one.bandwidth = Hertz(mean(|one| one.bandwidth.0)),
                Part::Power => one.power = Watts(mean(|one| one.power.0)),
                Part::Compression => one.compression = mean(|one| one.compression),
                Part::Cut => {
                    let wanted = mean(|one| one.cut as f64);
                    one.cut = self.nearest_cut(wanted, report.memory).unwrap_or(one.cut);
                }
            }
        }
        self.pay(decision)
    }

    /// The allowed cut that is nearest to the one that is wanted, among those that fit.
    fn nearest_cut(&self, wanted: f64, memory: Bytes) -> Option<usize> {
        let cuts = self.cost.limits.cuts.iter().copied();
        let fits = cuts.filter(|&cut| self.cost.profile.memory(cut) <= memory);
        let distance = |cut: usize| (cut as f64 - wanted).abs();
        fits.min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
    }
}

#[cfg(test)]
mod tests;
