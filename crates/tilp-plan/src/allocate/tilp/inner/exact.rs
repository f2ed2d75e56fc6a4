//! The decision of the current round for choices and a finishing time, in double precision.

use crate::allocate::solve::{Allocation, CutChoice, LeastEnergy, Participant, Sure};
use crate::allocate::tilp::Tilp;
use crate::allocate::tilp::plan::PlanInputs;
use crate::cost::Hardware;
use crate::round::TerminalDecision;
use crate::search::sample::Choice;
use crate::twin::{compression_at, compression_level};
use crate::units::{Bits, Hertz, Joules, Seconds, Watts};
use crate::wireless::computation_delay;

/// Factor on deadline and band as a margin: powers are rounded when they are executed.
const MARGIN: f64 = 1.0 - 1e-6;

impl Tilp {
    /// Band and power of the least energy for terminals that finish together, at `finish` or, if
    /// that is too early, as soon as possible. If they do not fit into the band before the
    /// deadline, the terminals that need most of it are removed from the choices.
    pub(in crate::allocate::tilp) fn exact_decision(
        &self,
        inputs: &PlanInputs,
        finish: f64,
        choices: &mut [Choice],
    ) -> Vec<TerminalDecision> {
        loop {
            let who: Vec<usize> = (0..choices.len()).filter(|&n| choices[n].flag).collect();
            let problem = self.problem(inputs, finish, choices, &who);
            match solved(&problem, self.decoder.limits().deadline) {
                Ok(found) => return self.decisions(choices, &who, &found),
                Err(worst) => choices[who[worst]].flag = false,
            }
        }
    }

    fn problem(
        &self,
        inputs: &PlanInputs,
        finish: f64,
        choices: &[Choice],
        who: &[usize],
    ) -> LeastEnergy {
        let (state, twin) = (&inputs.state, &self.twin);
        let (cost, aggregates) = (&twin.nominal().cost, twin.aggregates(state.round));
        let z = twin.sure_z(who.len());
        let participant = |&n: &usize| {
            let (likely, doubtful) =
                (twin.network.hardware(n), twin.network.doubtful_hardware(n, z));
            let power_gain = state.gain[n] * state.fading(n).mean();
            let (cut, q) = self.cut_and_compression(&choices[n]);
            let job =
                cost.training_job(state.copies[n], state.samples[n] as usize, cut, q, aggregates);
            let seconds = |hardware: &Hardware| {
                computation_delay(job.work, hardware.operations_per_cycle, hardware.clock)
            };
            let deadline = cost.limits.deadline * MARGIN;
            let choice = CutChoice {
                cut,
                bits: Bits::from_bytes(job.air()).0,
                // Used for the energy only, which the radio's own consumption scales.
                sent_bits: Bits::from_bytes(job.up + job.sync_up).0 * twin.network.radio_factor(n),
                computation: seconds(likely),
                compute: Joules(0.0),
                sure: Some(Sure {
                    noise_over_gain: doubtful.noise_w_per_hz / power_gain,
                    time: deadline - seconds(&doubtful),
                }),
            };
            Participant {
                noise_over_gain: likely.noise_w_per_hz / power_gain,
                choices: vec![choice],
            }
        };
        let is_scheduled = |n: usize| choices[n].flag;
        LeastEnergy {
            participants: who.iter().map(participant).collect(),
            band: cost.free_band(state.copies.iter().copied(), aggregates, is_scheduled) * MARGIN,
            power: cost.limits.power,
            finish: Seconds(finish).min(cost.limits.deadline),
        }
    }

    fn cut_and_compression(&self, choice: &Choice) -> (usize, f64) {
        let limits = self.decoder.limits();
        let level = compression_level(choice.reals[2]) as usize;
        (limits.cuts[choice.category], compression_at(limits, level))
    }

    fn decisions(
        &self,
        choices: &[Choice],
        who: &[usize],
        found: &[Allocation],
    ) -> Vec<TerminalDecision> {
        let idle = |choice: &Choice| {
            let (cut, compression) = self.cut_and_compression(choice);
            let (bandwidth, power) = (Hertz(0.0), Watts(0.0));
            TerminalDecision { scheduled: false, bandwidth, power, cut, compression }
        };
        let mut decisions: Vec<TerminalDecision> = choices.iter().map(idle).collect();
        for (&n, given) in who.iter().zip(found) {
            let one = &mut decisions[n];
            (one.scheduled, one.bandwidth, one.power) = (true, given.bandwidth, given.power);
        }
        decisions
    }
}

/// The allocation of the least energy at the finishing time of the problem, or at the earliest
/// possible one. The error is the participant that needs most of the band.
fn solved(problem: &LeastEnergy, deadline: Seconds) -> Result<Vec<Allocation>, usize> {
    if problem.participants.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(found) = problem.solve() {
        return Ok(found);
    }
    let later = problem.earliest(deadline).map(|earliest| LeastEnergy {
        finish: (earliest * (1.0 + 1e-9)).min(deadline),
        ..problem.clone()
    });
    if let Some(found) = later.and_then(|later| later.solve()) {
        return Ok(found);
    }
    let alone = |index: usize| {
        let one = LeastEnergy {
            participants: vec![problem.participants[index].clone()],
            finish: deadline,
            ..problem.clone()
        };
        one.least_bandwidth().map_or(f64::INFINITY, |band| band.0)
    };
    let worst = (0..problem.participants.len()).max_by(|&a, &b| alone(a).total_cmp(&alone(b)));
    Err(worst.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use crate::allocate::tilp::tests::{inner_planner, planned_by};
    use crate::twin::Sureness;

    #[test]
    fn the_guard_takes_nobody_out_of_an_exact_decision() {
        for seed in 0..6 {
            let (mut tilp, seen) = inner_planner(12, seed);
            let planned = planned_by(&mut tilp, &seen);
            let limits = tilp.decoder.limits().clone();
            let (mut state, mut scratch) = (tilp.twin.state(&seen), tilp.twin.scratch());
            let actions = &planned.decision.terminals;
            let step = tilp.twin.step(&mut state, actions, Sureness::Safe, &mut scratch);
            assert_eq!(step.n_late, 0, "seed {seed}");
            let band: f64 = actions.iter().map(|one| one.bandwidth.0).sum();
            assert!(band <= limits.bandwidth.0);
            assert!(planned.guarded.len() <= 1, "seed {seed}: {:?}", planned.guarded);
        }
    }
}
