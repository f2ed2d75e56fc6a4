//! A plan with its reasons: the expected result, and why each terminal is scheduled or not.

use rayon::prelude::*;

use super::plan::{PlanInputs, Planned, is_rejected};
use super::{Tilp, guide};
use crate::cost::{FrontCopies, Grant};
use crate::lanes::LANES;
use crate::round::{Decision, ExpectedRound, Observation, Rationale, Reason, TerminalRationale};
use crate::search::cem::Ranked;
use crate::search::sample::{Choice, ChoiceLanes};
use crate::search::score::Candidates;
use crate::twin::{Decreases, Exchange, Scratch, StepPrediction, Sureness, TwinState};
use crate::units::Seconds;

/// A decision with the predictions and reasons behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The decision to execute, within the hard limits.
    pub decision: Decision,
    /// The twin's prediction of the round; violation and late terminals use delays with the safety
    /// margin.
    pub predicted: StepPrediction,
    /// By how much the round lowers the loss, in total and per task group.
    pub decreases: Decreases,
    /// Success over all terminals before the round.
    pub success_before: f64,
    /// Predicted return over the horizon. `None` for the fallback, which no search has scored, and
    /// for a plan with a later round without terminals.
    pub planned_return: Option<f64>,
    /// Iterations of the search; `None` without one.
    pub iterations: Option<usize>,
    /// One entry per terminal.
    pub terminals: Vec<TerminalRationale>,
    /// The next best candidates of the search, best first.
    pub runner_ups: Vec<RunnerUp>,
}

/// One of the next best candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Its predicted return.
    pub score: f64,
    /// By how much the best candidate scores higher.
    pub behind: f64,
    /// Number of terminals it schedules after the guard has removed late ones.
    pub n_scheduled: usize,
    /// Terminals it schedules and the plan does not.
    pub added: Vec<usize>,
    /// Terminals that the plan schedules and it does not.
    pub left_out: Vec<usize>,
}

/// Ways to add a terminal that was left out, besides the way last sampled: power and compression as
/// shares of the maximum. The last is the fastest.
const WAYS: [[f32; 2]; 3] = [[0.95, 0.84], [0.95, 0.93], [1.0, 1.0]];

impl Tilp {
    /// Plans a round and explains it. The decision equals that of
    /// [`crate::round::Allocator::decide`], but actor and critic do not learn from the round.
    pub fn explain(&mut self, seen: &Observation) -> Plan {
        self.attend(seen);
        self.set_prices(seen);
        let inputs = self.inputs(seen, self.options.horizon);
        let now = inputs.features.agent_state(&inputs.rollout, inputs.rollout.start(), 0);
        let planned = self.plan(seen, &inputs, &now);
        Inquiry::new(self, seen, &inputs, &planned).plan(&planned)
    }

    /// The last decision, for the observed round, with its reasons; `None` before the first. The
    /// call changes nothing.
    pub fn explained(&self, seen: &Observation) -> Option<Plan> {
        let (inputs, planned) = self.planned.as_ref()?;
        Some(Inquiry::new(self, seen, inputs, planned).plan(planned))
    }

    /// The expected result of a plan for the observed round, and why each terminal is scheduled or
    /// not.
    pub(super) fn reasons(
        &self,
        seen: &Observation,
        inputs: &PlanInputs,
        planned: &Planned,
    ) -> Rationale {
        let inquiry = Inquiry::new(self, seen, inputs, planned);
        let (step, reward) = (&inquiry.predicted, &inquiry.predicted.reward);
        let expected = ExpectedRound {
            latency: step.latency,
            duration: step.duration,
            energy: step.energy,
            loss_decrease: step.loss_decrease,
            success_before: inputs.state.success,
            success_after: step.success,
            violation: step.violation.relative,
            reward_task: reward.task,
            reward_communication: reward.communication,
            reward_penalty: reward.penalty,
            planned_return: inquiry.planned_return(planned),
        };
        Rationale { expected, terminals: inquiry.terminals() }
    }

    /// The choices behind a plan, step by step.
    fn sequence(&self, inputs: &PlanInputs, planned: &Planned) -> Vec<Choice> {
        if let Some(found) = &planned.found {
            let sequence = &found.best.sequence;
            // The inner solver gives the choices of the first step only.
            let is_first = sequence.len() == found.n_terminals;
            return sequence.repeat(if is_first { self.options.horizon } else { 1 });
        }
        let now = inputs.features.agent_state(&inputs.rollout, inputs.rollout.start(), 0);
        let once = guide::actors_choice(&self.agent.sac, &now, &self.options.start);
        once.repeat(self.options.horizon)
    }
}

/// The data of an explanation: the plan as executed, and the twin's prediction of it.
struct Inquiry<'a> {
    tilp: &'a Tilp,
    seen: &'a Observation,
    inputs: &'a PlanInputs,
    decision: Decision,
    /// The choices behind the plan, step by step; no terminal in the first step of a fallback.
    sequence: Vec<Choice>,
    total: f32,
    predicted: StepPrediction,
    after: TwinState,
    scratch: Scratch,
    planned: &'a Planned,
}

impl<'a> Inquiry<'a> {
    fn new(
        tilp: &'a Tilp,
        seen: &'a Observation,
        inputs: &'a PlanInputs,
        planned: &'a Planned,
    ) -> Self {
        let decision = tilp.decoder.limits().project(planned.decision.clone()).decision().clone();
        let mut sequence = tilp.sequence(inputs, planned);
        let first = &mut sequence[..seen.terminals.len()];
        match &planned.choices {
            Some(choices) => first.copy_from_slice(choices),
            None => first.iter_mut().for_each(|choice| choice.flag = false),
        }
        let (mut after, mut scratch) = (inputs.state.clone(), tilp.twin.scratch());
        let sureness = Sureness::Safe;
        let predicted = tilp.twin.step(&mut after, &decision.terminals, sureness, &mut scratch);
        let unchanged = (0, sequence[0]);
        let total = 0.0;
        let mut inquiry = Self {
            tilp,
            seen,
            inputs,
            decision,
            sequence,
            total,
            predicted,
            after,
            scratch,
            planned,
        };
        inquiry.total = inquiry.returns(&[unchanged])[0];
        inquiry
    }

    /// The prediction for each terminal, and why it is scheduled or not.
    fn terminals(&self) -> Vec<TerminalRationale> {
        let terminal = |(n, reason): (usize, Reason)| TerminalRationale {
            delay: self.scratch.delays[n],
            sure_delay: self.scratch.safe_delays[n],
            energy: self.scratch.energies[n],
            reason,
        };
        self.reasons().into_iter().enumerate().map(terminal).collect()
    }

    fn planned_return(&self, planned: &Planned) -> Option<f64> {
        let is_planned = planned.choices.is_some() && !is_rejected(self.total);
        is_planned.then_some(f64::from(self.total))
    }

    fn plan(self, planned: &Planned) -> Plan {
        let terminals = self.terminals();
        let found = planned.found.as_ref();
        let best = found.map_or(0.0, |found| f64::from(found.best.score));
        let others = found.map_or(&[][..], |found| &found.runner_ups);
        let others = others.iter().filter(|other| !is_rejected(other.score));
        Plan {
            predicted: self.predicted,
            decreases: self.tilp.twin.decreases_from(
                self.inputs.state.clone(),
                self.seen,
                &self.decision.terminals,
            ),
            success_before: self.inputs.state.success,
            planned_return: self.planned_return(planned),
            iterations: found.map(|found| found.iterations),
            terminals,
            runner_ups: others.map(|other| self.runner_up(other, best)).collect(),
            decision: self.decision,
        }
    }

    /// Predicted returns of the plan with one choice of its first step replaced, one per change.
    fn returns(&self, changes: &[(usize, Choice)]) -> Vec<f32> {
        if let Some(plan) = &self.planned.inner {
            let first = &self.sequence[..self.seen.terminals.len()];
            return self.tilp.inner_returns(self.inputs, plan, first, changes);
        }
        let everywhere = |choice: &Choice| {
            let mut cell = ChoiceLanes::ZERO;
            (0..LANES).for_each(|lane| cell.set(lane, choice));
            cell
        };
        let base: Vec<ChoiceLanes> = self.sequence.iter().map(everywhere).collect();
        let n_terminals = self.seen.terminals.len();
        let score = |cells: &mut Vec<ChoiceLanes>, (group, chunk): (usize, &[(usize, Choice)])| {
            for (lane, (n, choice)) in chunk.iter().enumerate() {
                cells[*n].set(lane, choice);
            }
            let scores = self.tilp.score(self.inputs, Candidates { group, n_terminals, cells });
            chunk.iter().for_each(|(n, _)| cells[*n] = base[*n]);
            scores[..chunk.len()].to_vec()
        };
        // A batch is limited by the scratch memory.
        let batches = changes.chunks(LANES * self.tilp.works.len());
        let scores = batches.flat_map(|batch| {
            let groups = batch.par_chunks(LANES).enumerate();
            groups.map_init(|| base.clone(), score).collect::<Vec<_>>()
        });
        scores.flatten().collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        let n_terminals = self.seen.terminals.len();
        let sure: Vec<Result<(), Reason>> = (0..n_terminals).map(|n| self.alone(n)).collect();
        let mut changes = Vec::new();
        let mut places = Vec::with_capacity(n_terminals);
        for (n, sure) in sure.iter().enumerate() {
            places.push(changes.len());
            if self.sequence[n].flag {
                changes.push((n, Choice { flag: false, ..self.sequence[n] }));
            } else if sure.is_ok() && !self.decision.terminals[n].scheduled {
                changes.extend(self.ways(n).into_iter().map(|way| (n, way)));
            }
        }
        let returns = self.returns(&changes);
        let reason = |n: usize| match (self.decision.terminals[n].scheduled, sure[n]) {
            (true, _) if !self.sequence[n].flag => {
                Reason::LeastBad { sure: self.scratch.safe_delays[n] }
            }
            (true, _) => self.gain(n, returns[places[n]]),
            (false, Err(reason)) => reason,
            (false, Ok(())) => self.left_out(n, &returns[places[n]..]),
        };
        (0..n_terminals).into_par_iter().map(reason).collect()
    }

    /// Whether a terminal meets the deadline with the safety margin if it is scheduled alone, with
    /// the whole band, full power and the strongest compression; if not, why.
    fn alone(&self, n: usize) -> Result<(), Reason> {
        let (twin, view) = (&self.tilp.twin, &self.seen.terminals[n]);
        let nominal = twin.nominal();
        let (limits, profile) = (&nominal.cost.limits, &nominal.cost.profile);
        let fits = |cut: &&usize| profile.memory(**cut) <= view.report.memory;
        let aggregates = twin.aggregates(self.seen.round);
        let copies = self.seen.terminals.iter().map(|view| FrontCopies::from(&view.report));
        let bandwidth = nominal.cost.free_band(copies, aggregates, |other| other == n);
        let grant = Grant { bandwidth, power: limits.power };
        let link = nominal.cost.link(view.report.gain, view.report.fading_power);
        let delay = |cut: &usize| {
            let (copies, q) = ((&view.report).into(), limits.compression);
            let job = nominal.cost.training_job(copies, view.report.n_samples, *cut, q, aggregates);
            twin.network.safe_delay(n, &Exchange { job, link, grant }, twin.sure_z(1))
        };
        match limits.cuts.iter().filter(fits).map(delay).reduce(Seconds::min) {
            Some(sure) if sure <= limits.deadline => Ok(()),
            Some(sure) => Err(Reason::Unreachable { sure }),
            None => {
                let need = profile.memory(limits.cuts[0]);
                Err(Reason::MemoryShort { need, budget: view.report.memory })
            }
        }
    }

    /// Ways to add a terminal. The inner solver has already found the best cut and compression of
    /// each terminal, and solves for band and power.
    fn ways(&self, n: usize) -> Vec<Choice> {
        let way = |[power, compression]: [f32; 2]| Choice {
            reals: [0.5, power, compression],
            category: 0,
            flag: true,
        };
        let mut ways = vec![Choice { flag: true, ..self.sequence[n] }];
        if self.planned.inner.is_none() {
            ways.extend(WAYS.map(way));
        }
        ways
    }

    fn gain(&self, n: usize, without: f32) -> Reason {
        let out = Choice { flag: false, ..self.sequence[n] };
        let (_, other) = self.changed(n, out);
        Reason::Gain {
            own_success: self.success(n, &self.after) - self.success(n, &other),
            difference: (!is_rejected(without)).then(|| f64::from(self.total - without)),
        }
    }

    /// Why a terminal that meets the deadline alone is left out; `returns` begins with those of its
    /// ways.
    fn left_out(&self, n: usize, returns: &[f32]) -> Reason {
        let mut ways: Vec<(f32, Choice)> = returns.iter().copied().zip(self.ways(n)).collect();
        if self.planned.guarded.contains(&n) {
            ways.truncate(1); // the way of the search, which the guard rejected
        }
        ways.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut least = Seconds(f64::INFINITY);
        for (with, way) in ways {
            let (sure, _) = self.changed(n, way);
            if sure <= self.tilp.decoder.limits().deadline {
                let difference = f64::from(with - self.total);
                return match difference > 0.0 {
                    true => Reason::Overlooked { difference },
                    false => Reason::WorthLess { difference },
                };
            }
            least = least.min(sure);
        }
        Reason::Crowded { sure: least }
    }

    /// The round with one choice replaced: its delay with the safety margin, and the state after
    /// it.
    fn changed(&self, n: usize, choice: Choice) -> (Seconds, TwinState) {
        let Self { tilp, inputs, .. } = self;
        let mut choices = self.sequence[..self.seen.terminals.len()].to_vec();
        choices[n] = choice;
        let wanted: Vec<bool> = choices.iter().map(|choice| choice.flag).collect();
        let actions = if self.planned.inner.is_some() && !choice.flag {
            // Without this terminal the others keep their allocation.
            let mut actions = self.decision.terminals.clone();
            actions[n].scheduled = false;
            actions
        } else {
            tilp.decide_first(inputs, self.planned.finish(), &mut choices)
        };
        // A terminal was removed to make room.
        let is_crowded = (0..wanted.len()).any(|n| wanted[n] && !choices[n].flag);
        let (mut after, mut scratch) = (inputs.state.clone(), tilp.twin.scratch());
        tilp.twin.step(&mut after, &actions, Sureness::Safe, &mut scratch);
        let fits = |n: usize| {
            tilp.twin.nominal().cost.profile.memory(actions[n].cut)
                <= self.seen.terminals[n].report.memory
        };
        let sure = |n: usize| match (actions[n].scheduled, fits(n)) {
            (true, true) => scratch.safe_delays[n],
            (true, false) => Seconds(f64::INFINITY),
            (false, _) => Seconds(0.0),
        };
        let least = if is_crowded { tilp.twin.nominal().give_up } else { Seconds(0.0) };
        ((0..actions.len()).map(sure).fold(least, Seconds::max), after)
    }

    /// Success of one terminal in a state, reduced by its uncertainty as in the plan.
    fn success(&self, n: usize, state: &TwinState) -> f64 {
        let twin = &self.tilp.twin;
        let doubt = twin.options().caution * state.variance[n].sqrt();
        twin.task.predict(n, state.log_loss[n] + doubt)
    }

    fn runner_up(&self, other: &Ranked, best: f64) -> RunnerUp {
        let mut choices = other.sequence[..self.seen.terminals.len()].to_vec();
        let finish = self.planned.finish();
        let theirs = self.tilp.guard(self.inputs, finish, &mut choices);
        let ours = &self.decision.terminals;
        let who = |wanted: [bool; 2]| -> Vec<usize> {
            let is = |n: &usize| [ours[*n].scheduled, theirs[*n].scheduled] == wanted;
            (0..ours.len()).filter(is).collect()
        };
        RunnerUp {
            score: f64::from(other.score),
            behind: best - f64::from(other.score),
            n_scheduled: theirs.iter().filter(|one| one.scheduled).count(),
            added: who([false, true]),
            left_out: who([true, false]),
        }
    }
}
