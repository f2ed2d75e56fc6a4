//! A method that counts terminals by place, in a cell where terminals come and go.

use crate::cost::Hardware;
use crate::round::{
    Allocator, DecideError, Decision, Limits, Observation, Outcome, ProjectedDecision,
    TerminalDecision, TerminalId, TerminalOutcome, TerminalReport, TerminalView, TrainingPlan,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::{Bytes, Gain, Hertz, Watts};

/// Gain of an absent terminal over the lowest gain of those that are there: no deadline can be met
/// with it.
const OUT_OF_REACH: f64 = 1e-6;

/// Shows a method every terminal that is ever there, each always at the same place. A terminal that
/// is absent appears as one that is out of reach; whatever is decided for it is left out. While all
/// terminals are there the method sees and decides exactly what it would without this.
pub struct FullRoster<A> {
    method: A,
    limits: Limits,
    hardware: Vec<Hardware>,
    tasks: Vec<usize>,
}

impl<A> FullRoster<A> {
    /// A method for these data sheets and tasks; the terminal with id `n` is at place `n`.
    pub fn new(method: A, limits: Limits, hardware: Vec<Hardware>, tasks: Vec<usize>) -> Self {
        Self { method, limits, hardware, tasks }
    }

    fn is_full(&self, seen: &Observation) -> bool {
        seen.terminals.len() == self.hardware.len()
    }

    fn absent(&self, n: usize, gain: Gain) -> TerminalView {
        TerminalView {
            report: TerminalReport {
                id: TerminalId(n as u32),
                hardware: self.hardware[n],
                memory: Bytes(u64::MAX >> 1),
                n_samples: 0,
                task: self.tasks[n],
                gain,
                fading_power: 1.0,
                held_layers: 0,
                owed_layers: 0,
            },
            previous_bandwidth: Hertz(0.0),
            gradient_norm: None,
            loss: None,
            rounds_since_scheduled: None,
        }
    }

    /// The observation with all terminals.
    fn whole(&self, seen: &Observation) -> Observation {
        let gains = seen.terminals.iter().map(|view| view.report.gain.0);
        let gain = Gain(OUT_OF_REACH * gains.fold(f64::INFINITY, f64::min));
        let mut views: Vec<_> = (0..self.hardware.len()).map(|n| self.absent(n, gain)).collect();
        for view in &seen.terminals {
            if let Some(place) = views.get_mut(view.report.id.0 as usize) {
                *place = view.clone();
            }
        }
        Observation { terminals: views, ..seen.clone() }
    }

    /// What was decided for the terminals that are there.
    fn present(decision: Decision, seen: &Observation) -> Decision {
        let places: Vec<usize> = seen.ids().iter().map(|id| id.0 as usize).collect();
        let seat = |n: &usize| places.iter().position(|place| place == n);
        let TrainingPlan { order, tiers } = decision.training;
        Decision {
            terminals: places.iter().map(|&place| decision.terminals[place]).collect(),
            training: TrainingPlan { order: order.iter().filter_map(seat).collect(), tiers },
            fallback: decision.fallback,
        }
    }

    /// An executed plan and its outcome with all terminals.
    fn executed(
        &self,
        seen: &Observation,
        plan: &ProjectedDecision,
        outcome: &Outcome,
    ) -> (ProjectedDecision, Outcome) {
        let cut = self.limits.cuts[0];
        let idle = TerminalDecision {
            scheduled: false,
            bandwidth: Hertz(0.0),
            power: Watts(0.0),
            cut,
            compression: 0.0,
        };
        let nothing =
            |n: usize| TerminalOutcome { id: TerminalId(n as u32), ..TerminalOutcome::default() };
        let mut decided = vec![idle; self.hardware.len()];
        let mut measured: Vec<_> = (0..self.hardware.len()).map(nothing).collect();
        let (mine, theirs) = (&plan.decision().terminals, &outcome.terminals);
        for (id, (one, other)) in seen.ids().iter().zip(mine.iter().zip(theirs)) {
            decided[id.0 as usize] = *one;
            measured[id.0 as usize] = *other;
        }
        let places = seen.ids();
        let TrainingPlan { order, tiers } = plan.training();
        let order = order.iter().map(|&n| places[n].0 as usize).collect();
        let training = TrainingPlan { order, tiers: *tiers };
        let fallback = plan.decision().fallback;
        let plan = self.limits.project(Decision { terminals: decided, training, fallback });
        (plan, Outcome { terminals: measured, ..outcome.clone() })
    }
}

impl<A: Persist> Persist for FullRoster<A> {
    fn save(&self, snapshot: &mut Snapshot) {
        self.method.save(snapshot);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.method.restore(snapshot)
    }
}

impl<A: Allocator> Allocator for FullRoster<A> {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        if self.is_full(seen) {
            return self.method.decide(seen);
        }
        let whole = self.whole(seen);
        let decision = self.method.decide(&whole)?;
        decision.check(&whole)?;
        Ok(Self::present(decision, seen))
    }

    fn learn(&mut self, seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        if self.is_full(seen) {
            return self.method.learn(seen, plan, outcome);
        }
        let (plan, outcome) = self.executed(seen, plan, outcome);
        self.method.learn(&self.whole(seen), &plan, &outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seconds;

    const HARDWARE: Hardware = Hardware {
        operations_per_cycle: 1.0,
        clock: Hertz(1e9),
        energy_coefficient: 1e-28,
        noise_w_per_hz: 4e-21,
    };

    fn limits() -> Limits {
        Limits {
            deadline: Seconds(5.0),
            bandwidth: Hertz(1e6),
            power: Watts(0.2),
            compression: 0.9,
            cuts: vec![2, 3],
        }
    }

    /// Schedules everybody with a bandwidth that names the place, and keeps what it saw.
    #[derive(Default)]
    struct Everybody {
        seen: Vec<Observation>,
        learned: Vec<(ProjectedDecision, Outcome)>,
    }

    impl Persist for Everybody {}

    impl Allocator for Everybody {
        fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
            self.seen.push(seen.clone());
            let mut decision = Decision::idle(seen.terminals.len(), 2);
            for (n, one) in decision.terminals.iter_mut().enumerate() {
                one.scheduled = true;
                one.bandwidth = Hertz(100.0 * (n + 1) as f64);
            }
            decision.training.order = (0..seen.terminals.len()).rev().collect();
            Ok(decision)
        }

        fn learn(&mut self, _: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
            self.learned.push((plan.clone(), outcome.clone()));
        }
    }

    fn roster() -> FullRoster<Everybody> {
        FullRoster::new(Everybody::default(), limits(), vec![HARDWARE; 5], vec![0, 1, 0, 1, 0])
    }

    fn seen(ids: &[u32]) -> Observation {
        let roster = roster();
        let view = |&id: &u32| roster.absent(id as usize, Gain(1e-12 * f64::from(id + 1)));
        Observation {
            round: 3,
            clock: Seconds(9.0),
            aggregates: false,
            loss: Some(0.5),
            success: None,
            terminals: ids.iter().map(view).collect(),
        }
    }

    #[test]
    fn a_method_sees_every_terminal_at_its_place_and_the_absent_out_of_reach() {
        let mut roster = roster();
        let decision = roster.decide(&seen(&[1, 4])).unwrap();
        let whole = &roster.method.seen[0];
        assert_eq!(whole.ids(), (0..5).map(TerminalId).collect::<Vec<_>>());
        let gains: Vec<f64> = whole.terminals.iter().map(|view| view.report.gain.0).collect();
        assert_eq!(gains, [2e-18, 2e-12, 2e-18, 2e-18, 5e-12]);
        let bandwidths: Vec<f64> = decision.terminals.iter().map(|one| one.bandwidth.0).collect();
        assert_eq!(bandwidths, [200.0, 500.0]);
        assert_eq!(decision.training.order, [1, 0]);
    }

    #[test]
    fn a_method_learns_that_the_absent_did_nothing() {
        let (mut roster, seen) = (roster(), seen(&[1, 4]));
        let plan = limits().project(roster.decide(&seen).unwrap());
        let one = |id| TerminalOutcome { id, took_part: true, ..TerminalOutcome::default() };
        let outcome = Outcome {
            round: 3,
            duration: Seconds(1.0),
            loss: Some(0.4),
            terminals: seen.ids().into_iter().map(one).collect(),
            success: None,
        };
        roster.learn(&seen, &plan, &outcome);
        let (plan, outcome) = &roster.method.learned[0];
        assert_eq!(plan.decision().scheduled().collect::<Vec<_>>(), [1, 4]);
        assert_eq!(plan.training().order, [4, 1]);
        let took_part: Vec<bool> = outcome.terminals.iter().map(|one| one.took_part).collect();
        assert_eq!(took_part, [false, true, false, false, true]);
    }

    #[test]
    fn while_all_are_there_nothing_changes() {
        let (mut roster, all) = (roster(), seen(&[0, 1, 2, 3, 4]));
        let decision = roster.decide(&all).unwrap();
        assert_eq!(roster.method.seen[0], all);
        assert_eq!(decision, Everybody::default().decide(&all).unwrap());
    }
}
