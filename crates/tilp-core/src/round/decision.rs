//! Decisions of the base station, and their executed form.

use super::{Observation, TerminalId};
use crate::rates::Rates;
use crate::rule::Rule;
use crate::units::{Hertz, Seconds, Watts};

/// Decision of the base station for one terminal, a_n of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalDecision {
    /// x_n: takes part in the round.
    pub scheduled: bool,
    /// b_n: bandwidth.
    pub bandwidth: Hertz,
    /// p_n: transmit power.
    pub power: Watts,
    /// l_n: the terminal runs layers 1..=cut.
    pub cut: usize,
    /// q_n: share of the payload that is not sent.
    pub compression: f64,
}

/// The decision for a round, one entry per terminal, a of the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// One decision per terminal.
    pub terminals: Vec<TerminalDecision>,
    /// Training plan of the round, for methods that decide it too.
    pub training: TrainingPlan,
    /// The method found nothing that it predicts to be feasible and fell back to the least bad.
    pub fallback: bool,
}

impl Decision {
    /// No terminal scheduled; every terminal at `cut`.
    pub fn idle(n_terminals: usize, cut: usize) -> Self {
        let idle = TerminalDecision {
            scheduled: false,
            bandwidth: Hertz(0.0),
            power: Watts(0.0),
            cut,
            compression: 0.0,
        };
        Self {
            terminals: vec![idle; n_terminals],
            training: TrainingPlan::default(),
            fallback: false,
        }
    }

    /// Checks the form: one entry for each terminal observed, and finite numbers only.
    pub fn check(&self, seen: &Observation) -> Result<(), DecideError> {
        let (found, expected) = (self.terminals.len(), seen.terminals.len());
        if found != expected {
            return Err(DecideError::Length { round: seen.round, found, expected });
        }
        for (one, view) in self.terminals.iter().zip(&seen.terminals) {
            let values = [
                ("bandwidth", one.bandwidth.0),
                ("power", one.power.0),
                ("compression", one.compression),
            ];
            if let Some((what, value)) = values.into_iter().find(|(_, value)| !value.is_finite()) {
                let (round, terminal) = (seen.round, view.report.id);
                return Err(DecideError::NotFinite { round, terminal, what, value });
            }
        }
        Ok(())
    }

    /// The set of scheduled terminals.
    ///
    /// $$ \mathcal{S}\[t\] = \\{n : x_n\[t\] = 1\\} $$
    ///
    /// Eq. `scheduled-set`
    pub fn scheduled(&self) -> impl Iterator<Item = usize> + '_ {
        self.terminals.iter().enumerate().filter(|(_, one)| one.scheduled).map(|(n, _)| n)
    }

    /// Bandwidth asked for by all scheduled terminals together.
    pub fn bandwidth(&self) -> Hertz {
        self.terminals.iter().filter(|one| one.scheduled).map(|one| one.bandwidth).sum()
    }
}

/// Training plan of a round, for methods that decide more than the paper's five variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingPlan {
    /// The order of the terminals (places in the decision), where they train one after another.
    pub order: Vec<usize>,
    /// Which layers have copies of their own and which are averaged; none leaves it to the
    /// scenario.
    pub tiers: Option<Tiers>,
}

/// Layers by where their copies live, and whose turn it is to be averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Up to this layer every terminal has a copy of its own; what lies behind its cut the server
    /// keeps for it.
    pub own: usize,
    /// The copies of the terminals are averaged at the end of this round.
    pub average_own: bool,
    /// From there up to this layer every edge server has a copy for its group.
    pub edge: usize,
    /// The copies of the edge servers are averaged at the end of this round.
    pub average_edge: bool,
}

/// The limits of the problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Per-round deadline, C1.
    pub deadline: Seconds,
    /// Total bandwidth B^max, C3.
    pub bandwidth: Hertz,
    /// Largest transmit power P^max, C4.
    pub power: Watts,
    /// Largest compression level q^max, C6.
    pub compression: f64,
    /// Admissible cuts in ascending order, C7.
    pub cuts: Vec<usize>,
}

/// A decision inside the hard domain, C4 to C8. It may still violate C1 to C3. Only
/// [`Limits::project`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectedDecision(Decision);

impl ProjectedDecision {
    /// The decision itself.
    pub fn decision(&self) -> &Decision {
        &self.0
    }

    /// How the round is trained. The order names every scheduled terminal once.
    pub fn training(&self) -> &TrainingPlan {
        &self.0.training
    }

    /// Whether the terminals' copies are averaged at the end of the round, if the schedule says
    /// `scheduled`.
    pub fn aggregates(&self, scheduled: bool) -> bool {
        self.0.training.tiers.map_or(scheduled, |tiers| tiers.average_own)
    }
}

/// Order of the base station to the cell for one round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundOrder {
    /// The round, counted from 1.
    pub round: u64,
    /// The terminals; entry `n` of the decision belongs to the `n`-th of them.
    pub terminals: Vec<TerminalId>,
    /// The decision.
    pub plan: ProjectedDecision,
    /// How the participants train.
    pub rule: Rule,
    /// Learning rates of the round.
    pub rates: Rates,
    /// Whether copies are aggregated at the end of the round, unless the plan has tiers.
    pub aggregates: bool,
}

/// Why a method has no decision for a round.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecideError {
    /// A number of the decision is not finite.
    #[error(
        "round {round}: the method decided on a {what} of {value} for terminal {terminal}, \
         expected a finite number"
    )]
    NotFinite {
        /// The round.
        round: u64,
        /// The terminal.
        terminal: TerminalId,
        /// The decision.
        what: &'static str,
        /// On what.
        value: f64,
    },
    /// The decision has too few or too many entries.
    #[error("round {round}: the method decided for {found} terminals, expected {expected}")]
    Length {
        /// The round.
        round: u64,
        /// Entries of the decision.
        found: usize,
        /// Terminals observed.
        expected: usize,
    },
    /// There is no terminal to decide for.
    #[error("round {round}: no terminal is present, expected at least one")]
    NoTerminals {
        /// The round.
        round: u64,
    },
    /// The method gave up.
    #[error("round {round}: the method failed: {reason}")]
    Failed {
        /// The round.
        round: u64,
        /// Why.
        reason: String,
    },
}

impl Limits {
    /// The nearest decision inside the hard domain, C4 to C8.
    ///
    /// Deadline, memory and spectrum, C1 to C3, are never repaired behind a method's back: they
    /// are executed as they are and counted as violation.
    pub fn project(&self, mut wanted: Decision) -> ProjectedDecision {
        if wanted.scheduled().next().is_none() {
            self.schedule_one(&mut wanted);
        }
        for one in &mut wanted.terminals {
            *one = self.project_terminal(*one);
        }
        let mut waiting: Vec<usize> = wanted.scheduled().collect();
        // Scheduled terminals that are missing from the order are appended.
        wanted.training.order.retain(|n| {
            let place = waiting.iter().position(|other| other == n);
            place.map(|index| waiting.remove(index)).is_some()
        });
        wanted.training.order.extend(waiting);
        ProjectedDecision(wanted)
    }

    fn project_terminal(&self, one: TerminalDecision) -> TerminalDecision {
        let share = if one.scheduled { 1.0 } else { 0.0 };
        TerminalDecision {
            scheduled: one.scheduled,
            bandwidth: Hertz(clip(one.bandwidth.0, self.bandwidth.0) * share),
            power: Watts(clip(one.power.0, self.power.0) * share),
            cut: self.nearest_cut(one.cut),
            compression: clip(one.compression, self.compression),
        }
    }

    /// C8: at least one terminal takes part. The one with the most bandwidth, otherwise the first.
    fn schedule_one(&self, wanted: &mut Decision) {
        let most = wanted
            .terminals
            .iter()
            .enumerate()
            .max_by(|a, b| {
                clip(a.1.bandwidth.0, 1e300)
                    .total_cmp(&clip(b.1.bandwidth.0, 1e300))
                    .then(b.0.cmp(&a.0))
            })
            .map(|(n, _)| n);
        let Some(n) = most else { return };
        let one = &mut wanted.terminals[n];
        one.scheduled = true;
        if clip(one.bandwidth.0, self.bandwidth.0) == 0.0 {
            one.bandwidth = self.bandwidth;
        }
        if clip(one.power.0, self.power.0) == 0.0 {
            one.power = self.power;
        }
    }

    fn nearest_cut(&self, cut: usize) -> usize {
        let distance = |candidate: usize| candidate.abs_diff(cut);
        self.cuts.iter().copied().min_by_key(|&c| distance(c)).unwrap_or(cut)
    }
}

/// Into `0..=most`; what is not a number becomes zero.
fn clip(value: f64, most: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            deadline: Seconds(5.0),
            bandwidth: Hertz(100.0),
            power: Watts(0.2),
            compression: 0.9,
            cuts: vec![2, 4, 6],
        }
    }

    fn wanted() -> Decision {
        let mut decision = Decision::idle(3, 2);
        decision.terminals[1] = TerminalDecision {
            scheduled: true,
            bandwidth: Hertz(300.0),
            power: Watts(-1.0),
            cut: 9,
            compression: f64::NAN,
        };
        decision.terminals[2].bandwidth = Hertz(7.0);
        decision
    }

    #[test]
    fn a_projected_decision_is_inside_the_hard_domain() {
        let feasible = limits().project(wanted());
        let [idle, busy, unscheduled] = feasible.decision().terminals[..] else { panic!() };
        assert!(!idle.scheduled);
        assert_eq!((busy.bandwidth, busy.power), (Hertz(100.0), Watts(0.0)));
        assert_eq!((busy.cut, busy.compression), (6, 0.0));
        assert_eq!(unscheduled.bandwidth, Hertz(0.0));
    }

    #[test]
    fn projecting_twice_changes_nothing() {
        let once = limits().project(wanted());
        assert_eq!(limits().project(once.decision().clone()), once);
    }

    #[test]
    fn somebody_always_takes_part() {
        let feasible = limits().project(Decision::idle(3, 2));
        assert_eq!(feasible.decision().scheduled().collect::<Vec<_>>(), [0]);
        assert_eq!(feasible.decision().terminals[0].bandwidth, Hertz(100.0));
    }

    #[test]
    fn an_order_names_every_scheduled_terminal_once() {
        let mut decision = Decision::idle(5, 2);
        for n in [0, 1, 3, 4] {
            decision.terminals[n].scheduled = true;
        }
        assert_eq!(limits().project(decision.clone()).training().order, [0, 1, 3, 4]);
        decision.training.order = vec![4, 9, 2, 0, 4];
        assert_eq!(limits().project(decision).training().order, [4, 0, 1, 3]);
    }

    #[test]
    fn eq_scheduled_set_holds_the_terminals_with_x_one() {
        assert_eq!(wanted().scheduled().collect::<Vec<_>>(), [1]);
    }
}
