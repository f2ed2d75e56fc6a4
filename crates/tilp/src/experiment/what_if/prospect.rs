//! What is planned and expected with and without a change.

use serde::Serialize;

use super::{PlannerState, RecordedPlanner, WhatIfError};
use crate::allocate::{Plan, RunnerUp, Tilp};
use crate::experiment::plan::{PlanReport, PredictedRow};
use crate::round::{BudgetState, Decision, Limits, Observation, TerminalDecision, TerminalId};
use crate::scenario::{Scenario, suite_of};
use crate::twin::{StepPrediction, Sureness};
use crate::units::{Hertz, Watts};

/// Keys that may be changed: what the planner is told, not what the record holds.
const KEYS: [&str; 2] = ["limits.", "methods.tilp."];

/// What is to be different from a round on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Overrides of the scenario; the planner plans anew with them.
    pub overrides: Vec<String>,
    /// Terminals that are not there.
    pub removed: Vec<TerminalId>,
    /// Changes of the plan that is found then.
    pub edits: Vec<Edit>,
}

/// A change of what one terminal is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edit {
    /// The terminal.
    pub terminal: TerminalId,
    /// Whether it takes part.
    pub scheduled: Option<bool>,
    /// Layers that it computes.
    pub cut: Option<usize>,
    /// Its transmit power.
    pub power_w: Option<f64>,
    /// Share of the exchanged data that is not sent.
    pub compression: Option<f64>,
}

/// The plan of a round, as it is and with a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prospects {
    /// The round that is decided.
    pub round: u64,
    /// Repeated rounds in which the planner decided otherwise than the record says.
    pub differing: u64,
    /// The planner's own plan.
    pub plan: Prospect,
    /// The same with the change.
    pub changed: Prospect,
}

/// What is decided, and what the twin expects of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prospect {
    /// What is expected of the round. The return of a plan that was edited is not known: null.
    pub predicted: PredictedRow,
    /// One entry per terminal.
    pub terminals: Vec<TerminalAhead>,
    /// The round and those that follow, if the decision is kept.
    pub ahead: Vec<RoundAhead>,
    /// The next best plans that the search found, best first; none of a plan that was edited.
    pub runner_ups: Vec<OtherPlan>,
}

/// A plan that came close.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherPlan {
    /// Its predicted return.
    pub score: f64,
    /// By how much the best plan was better.
    pub behind: f64,
    /// Terminals that it schedules.
    pub n_scheduled: usize,
    /// Ids of terminals that it schedules and the plan does not.
    pub added: Vec<u32>,
    /// Ids of terminals that the plan schedules and it does not.
    pub left_out: Vec<u32>,
}

/// What a terminal is to do, and what is expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TerminalAhead {
    /// Its id.
    pub terminal: u32,
    /// Whether it takes part.
    pub scheduled: bool,
    /// Its bandwidth.
    pub bandwidth_hz: f64,
    /// Its transmit power.
    pub power_w: f64,
    /// Layers that it computes.
    pub cut: usize,
    /// Share of the exchanged data that is not sent.
    pub compression: f64,
    /// Likely delay.
    pub delay_s: f64,
    /// Delay that is not exceeded with the probability `methods.tilp.sureness`.
    pub sure_delay_s: f64,
    /// Energy it spends.
    pub energy_j: f64,
}

/// What is expected of a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundAhead {
    /// The round.
    pub round: u64,
    /// By how much the clock advances.
    pub duration_s: f64,
    /// Energy of all terminals involved.
    pub energy_j: f64,
    /// Mean loss of the terminals after the round.
    pub loss: f64,
    /// Success at the end of training, as it looks after the round.
    pub success: f64,
    /// Violation by sure delays, relative to the limits.
    pub violation: f64,
}

impl RecordedPlanner {
    /// The plan of the round that follows a state, with and without a change, and what the twin
    /// expects of so many rounds if the decision is kept.
    pub fn prospects(
        &self,
        from: &PlannerState,
        change: &Change,
        rounds: usize,
    ) -> Result<Prospects, WhatIfError> {
        let seen = self.seen(from.done + 1)?;
        let own = Planned::new(self, &self.replay.scenario, from, seen.clone())?;
        let plan = own.prospect(rounds);
        let is_same = *change == Change::default();
        let changed =
            if is_same { plan.clone() } else { self.changed(from, seen, change, rounds)? };
        Ok(Prospects { round: plan.ahead[0].round, differing: from.differing, plan, changed })
    }

    fn changed(
        &self,
        from: &PlannerState,
        seen: Observation,
        change: &Change,
        rounds: usize,
    ) -> Result<Prospect, WhatIfError> {
        let scenario = self.varied(&change.overrides)?;
        let seen = without(seen, &change.removed, &scenario)?;
        let mut planned = Planned::new(self, &scenario, from, seen)?;
        let is_edited = !change.edits.is_empty();
        if is_edited {
            planned.edit(&change.edits, &crate::scenario::limits_of(&scenario)?)?;
        }
        let mut prospect = planned.prospect(rounds);
        if is_edited {
            prospect.predicted.planned_return = None;
            prospect.runner_ups.clear();
        }
        Ok(prospect)
    }

    fn varied(&self, overrides: &[String]) -> Result<Scenario, WhatIfError> {
        let is_known = |text: &&String| KEYS.iter().any(|key| text.trim_start().starts_with(key));
        if let Some(other) = overrides.iter().find(|text| !is_known(text)) {
            return Err(impossible(
                "change",
                other,
                "a key that begins with limits. or methods.tilp.",
            ));
        }
        Ok(self.replay.scenario.varied(overrides)?)
    }
}

/// The observation without some terminals, with the budget of the scenario.
fn without(
    mut seen: Observation,
    removed: &[TerminalId],
    scenario: &Scenario,
) -> Result<Observation, WhatIfError> {
    for id in removed {
        if !seen.terminals.iter().any(|view| view.report.id == *id) {
            return Err(impossible("terminal", id.0, "one that is there"));
        }
    }
    seen.terminals.retain(|view| !removed.contains(&view.report.id));
    if seen.terminals.is_empty() {
        return Err(impossible("removed", "all terminals", "one that is left"));
    }
    let budget = scenario.budget();
    seen.budget = match (seen.budget, budget.is_none()) {
        (_, true) => None,
        (Some(known), false) => Some(BudgetState { budget, ..known }),
        (None, false) => {
            return Err(impossible("limits.budget", "a budget", "none: the run has none"));
        }
    };
    Ok(seen)
}

fn impossible(field: &str, value: impl ToString, expected: &str) -> WhatIfError {
    WhatIfError::Change { field: field.into(), value: value.to_string(), expected: expected.into() }
}

/// A plan with the planner that made it.
struct Planned {
    tilp: Tilp,
    seen: Observation,
    plan: Plan,
    decision: Decision,
    suite: &'static crate::tasks::Suite,
}

impl Planned {
    fn new(
        record: &RecordedPlanner,
        scenario: &Scenario,
        from: &PlannerState,
        seen: Observation,
    ) -> Result<Self, WhatIfError> {
        let mut tilp = record.restored(scenario, from)?;
        let plan = tilp.explain(&seen);
        let decision = plan.decision.clone();
        Ok(Self { tilp, seen, plan, decision, suite: suite_of(scenario) })
    }

    /// Changes the decision. Bandwidth is divided anew only as far as it must: a terminal that
    /// comes in gets the mean of the others, and if that is more than there is, all get less.
    fn edit(&mut self, edits: &[Edit], limits: &Limits) -> Result<(), WhatIfError> {
        let shares: Vec<f64> =
            self.decision.scheduled().map(|n| self.decision.terminals[n].bandwidth.0).collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let mean = if shares.is_empty() { limits.bandwidth.0 } else { mean };
        for edit in edits {
            let place = self.seen.terminals.iter().position(|view| view.report.id == edit.terminal);
            let n = place
                .ok_or_else(|| impossible("terminal", edit.terminal.0, "one that is there"))?;
            edit.apply(&mut self.decision.terminals[n], limits, Hertz(mean))?;
        }
        self.decision.fallback = false;
        self.decision = limits.project(self.decision.clone()).decision().clone();
        Ok(())
    }

    fn prospect(&self, rounds: usize) -> Prospect {
        let twin = self.tilp.twin();
        let (mut state, mut scratch) = (twin.state(&self.seen), twin.scratch());
        let actions = &self.decision.terminals;
        let mut terminals = Vec::new();
        let mut first = StepPrediction::default();
        let mut ahead = Vec::new();
        for step in 0..rounds.max(1) {
            let round = state.round;
            let found = twin.step(&mut state, actions, Sureness::Safe, &mut scratch);
            if step == 0 {
                first = found;
                terminals = (0..actions.len()).map(|n| self.terminal(n, &scratch)).collect();
            }
            ahead.push(RoundAhead {
                round,
                duration_s: found.duration.0,
                energy_j: found.energy.0,
                loss: state.loss(),
                success: found.success,
                violation: found.violation.relative,
            });
        }
        let plan = Plan { predicted: first, ..self.plan.clone() };
        let predicted = PlanReport::new(&self.seen, &plan, self.suite).predicted;
        let runner_ups = self.plan.runner_ups.iter().map(|other| self.runner_up(other)).collect();
        Prospect { predicted, terminals, ahead, runner_ups }
    }

    fn runner_up(&self, other: &RunnerUp) -> OtherPlan {
        let ids = |places: &[usize]| {
            places.iter().map(|n| self.seen.terminals[*n].report.id.0).collect::<Vec<u32>>()
        };
        OtherPlan {
            score: other.score,
            behind: other.behind,
            n_scheduled: other.n_scheduled,
            added: ids(&other.added),
            left_out: ids(&other.left_out),
        }
    }

    fn terminal(&self, n: usize, scratch: &crate::twin::Scratch) -> TerminalAhead {
        let one = &self.decision.terminals[n];
        TerminalAhead {
            terminal: self.seen.terminals[n].report.id.0,
            scheduled: one.scheduled,
            bandwidth_hz: one.bandwidth.0,
            power_w: one.power.0,
            cut: one.cut,
            compression: one.compression,
            delay_s: scratch.delays[n].0,
            sure_delay_s: scratch.safe_delays[n].0,
            energy_j: scratch.energies[n].0,
        }
    }
}

impl Edit {
    fn apply(
        &self,
        one: &mut TerminalDecision,
        limits: &Limits,
        mean: Hertz,
    ) -> Result<(), WhatIfError> {
        let comes_in = self.scheduled == Some(true) && !one.scheduled;
        one.scheduled = self.scheduled.unwrap_or(one.scheduled);
        if comes_in {
            one.bandwidth = mean;
            one.power = limits.power;
            one.cut = limits.cuts[0];
        }
        if let Some(cut) = self.cut {
            if !limits.cuts.contains(&cut) {
                return Err(impossible("cut", cut, &format!("one of {:?}", limits.cuts)));
            }
            one.cut = cut;
        }
        if let Some(power) = self.power_w {
            if !(power > 0.0 && power <= limits.power.0) {
                let expected = format!("more than 0, at most {}", limits.power.0);
                return Err(impossible("power_w", power, &expected));
            }
            one.power = Watts(power);
        }
        if let Some(compression) = self.compression {
            if !(0.0..=limits.compression).contains(&compression) {
                let expected = format!("0 to {}", limits.compression);
                return Err(impossible("compression", compression, &expected));
            }
            one.compression = compression;
        }
        Ok(())
    }
}
