//! Improvement steps: changes of single terminals of the first step while the return grows.

use rayon::prelude::*;

use super::FirstStep;
use super::rule::{Rule, RuleLanes};
use crate::allocate::tilp::Tilp;
use crate::allocate::tilp::plan::PlanInputs;
use crate::lanes::{LANES, Lanes};
use crate::search::gaussian::CandidateLanes;
use crate::search::sample::Choice;
use crate::twin::{ActionLanes, COMPRESSION_LEVELS, Futures};

/// Sixteen first steps.
pub(super) struct FirstLanes {
    actions: Vec<ActionLanes>,
    finish: Lanes,
}

impl FirstLanes {
    /// Unused lanes repeat the last step.
    fn new(steps: &[FirstStep]) -> Self {
        let of = |lane: usize| &steps[lane.min(steps.len() - 1)];
        let action = |n: usize| {
            let mut one = ActionLanes::ZERO;
            for lane in 0..LANES {
                let Choice { reals, category, flag } = of(lane).choices[n];
                one.scheduled[lane] = f32::from(u8::from(flag));
                one.cut[lane] = category as f32;
                one.level[lane] = (reals[2] * (COMPRESSION_LEVELS - 1) as f32).round();
            }
            one
        };
        Self {
            actions: (0..steps[0].choices.len()).map(action).collect(),
            finish: std::array::from_fn(|lane| of(lane).finish),
        }
    }

    /// Shares band and power.
    pub(super) fn apply(
        &self,
        rule: &Rule<'_>,
        futures: &Futures,
        work: &mut RuleLanes,
        actions: &mut [ActionLanes],
    ) {
        actions.copy_from_slice(&self.actions);
        // The second pass starts from a nearly correct price.
        rule.share(futures, 0, &self.finish, work, actions);
        rule.share(futures, 0, &self.finish, work, actions);
    }
}

/// A change in an improvement step: one terminal's choice, or the finishing time.
#[derive(Clone, Copy, Debug)]
enum Change {
    Terminal(usize, Choice),
    Finish(f32),
}

impl Change {
    fn apply(self, step: &mut FirstStep) {
        match self {
            Self::Terminal(n, choice) => step.choices[n] = choice,
            Self::Finish(finish) => step.finish = finish,
        }
    }

    /// Changes with the same place exclude each other: those of one terminal, or of the time.
    fn place(self) -> usize {
        match self {
            Self::Terminal(n, _) => n,
            Self::Finish(_) => usize::MAX,
        }
    }
}

impl Tilp {
    /// The first step after improvements, and the return of the plan.
    pub(super) fn improved(
        &self,
        inputs: &PlanInputs,
        rule: &Rule<'_>,
        values: &[f32],
        mut best: FirstStep,
        is_over: &mut dyn FnMut() -> bool,
    ) -> (FirstStep, f32) {
        let mut score = self.returns_of(inputs, rule, values, std::slice::from_ref(&best))[0];
        for _ in 0..rule.options.improvements {
            if is_over() {
                break;
            }
            let changes = self.changes(rule, &best);
            let changed: Vec<FirstStep> = changes.iter().map(|one| with(&best, &[*one])).collect();
            let returns = self.returns_of(inputs, rule, values, &changed);
            let mut gains: Vec<(f32, Change)> = returns.into_iter().zip(changes).collect();
            gains.retain(|(found, _)| *found > score);
            if gains.is_empty() {
                break;
            }
            gains.sort_by(|a, b| b.0.total_cmp(&a.0));
            let tried = together(&best, &gains);
            let returns = self.returns_of(inputs, rule, values, &tried);
            let found = (0..tried.len()).max_by(|&a, &b| returns[a].total_cmp(&returns[b]));
            let Some(found) = found.filter(|&found| returns[found] > score) else { break };
            (best, score) = (tried[found].clone(), returns[found]);
        }
        (best, score)
    }

    /// Predicted returns of plans that begin with these steps and continue as a candidate.
    pub(super) fn returns_of(
        &self,
        inputs: &PlanInputs,
        rule: &Rule<'_>,
        values: &[f32],
        steps: &[FirstStep],
    ) -> Vec<f32> {
        let lanes: Vec<Lanes> = values.iter().map(|&value| [value; LANES]).collect();
        let width = self.inner_shape().width;
        let score = |(group, steps): (usize, &[FirstStep])| {
            let first = FirstLanes::new(steps);
            let candidates = CandidateLanes { group, width, values: &lanes };
            self.score_inner(inputs, rule, candidates, Some(&first))[..steps.len()].to_vec()
        };
        let groups: Vec<Vec<f32>> = steps.par_chunks(LANES).enumerate().map(score).collect();
        groups.concat()
    }

    /// Possible changes: terminals added or removed, neighbouring cuts and compressions, and other
    /// finishing times.
    fn changes(&self, rule: &Rule<'_>, base: &FirstStep) -> Vec<Change> {
        let mut changes = Vec::new();
        let [deadline, ..] = rule.rollout.most();
        for factor in [0.85, 0.95, 1.05, 1.2] {
            changes.push(Change::Finish((base.finish * factor).min(deadline)));
        }
        let shift = rule.options.level_step as f32 / (COMPRESSION_LEVELS - 1) as f32;
        for (n, &one) in base.choices.iter().enumerate().filter(|(_, one)| one.flag) {
            changes.push(Change::Terminal(n, Choice { flag: false, ..one }));
            let deepest = rule.rollout.deepest_fitting(n);
            let others = [one.category.wrapping_sub(1), one.category + 1];
            for category in others.into_iter().filter(|cut| *cut <= deepest) {
                changes.push(Change::Terminal(n, Choice { category, ..one }));
            }
            let [band, power, share] = one.reals;
            for share in [share - shift, share + shift] {
                let reals = [band, power, share.clamp(0.0, 1.0)];
                changes.push(Change::Terminal(n, Choice { reals, ..one }));
            }
        }
        let mut out: Vec<usize> =
            (0..base.choices.len()).filter(|&n| !base.choices[n].flag).collect();
        out.sort_by(|&a, &b| base.nets[b].total_cmp(&base.nets[a]).then(a.cmp(&b)));
        for &n in out.iter().take(rule.options.additions) {
            changes.push(Change::Terminal(n, Choice { flag: true, ..base.choices[n] }));
        }
        changes
    }
}

fn with(base: &FirstStep, changes: &[Change]) -> FirstStep {
    let mut step = base.clone();
    changes.iter().for_each(|change| change.apply(&mut step));
    step
}

/// The first step with the best change, and with several of the best, one per terminal.
fn together(base: &FirstStep, gains: &[(f32, Change)]) -> Vec<FirstStep> {
    let mut apart: Vec<Change> = Vec::new();
    for (_, change) in gains {
        if apart.iter().all(|known| known.place() != change.place()) {
            apart.push(*change);
        }
    }
    let mut sizes: Vec<usize> = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].to_vec();
    sizes.retain(|size| *size < apart.len());
    sizes.push(apart.len());
    sizes.iter().map(|&size| with(base, &apart[..size])).collect()
}

#[cfg(test)]
impl Tilp {
    /// Returns of a plan of one step over sixteen finishing times.
    pub(in crate::allocate::tilp) fn returns_over_times(
        &self,
        inputs: &PlanInputs,
        choices: &[Choice],
    ) -> Vec<f32> {
        let options = self.inner().expect("an inner solver");
        let rule = Rule::new(&inputs.rollout, options, self.decoder.limits().cuts.len());
        let [deadline, ..] = rule.rollout.most();
        let step = |time: i32| {
            let finish = deadline * (-0.4 * time as f32).exp2();
            FirstStep { choices: choices.to_vec(), finish, nets: Vec::new() }
        };
        let steps: Vec<FirstStep> = (0..LANES as i32).map(step).collect();
        self.returns_of(inputs, &rule, &vec![0.0; self.inner_shape().len()], &steps)
    }
}
