//! Episodes inside the twin.

use std::sync::Arc;

use rand_distr::{Distribution, StandardNormal};

use tilp::rng::{Rng, Seed};
use tilp::round::{Decision, Limits, Observation, TerminalId};
use tilp::twin::{Scratch, Sureness, Twin, TwinState};
use tilp::wireless::{Complex, autoregressive_step};

use super::simulator::{Simulator, Step};
use super::view;
use crate::errors::Failure;

/// An imagined cell: costs and learning as the twin predicts them, and a fading that is drawn.
pub(crate) struct Imagined {
    twin: Arc<Twin>,
    /// Initial state of every episode.
    start: Arc<Observation>,
    /// The observation of the present round, restricted to the terminals of the start.
    seen: Observation,
    /// Rounds of an episode.
    horizon: u64,
    state: TwinState,
    scratch: Scratch,
    fading: Vec<Complex>,
    rng: Rng,
}

impl Imagined {
    pub(crate) fn new(twin: Arc<Twin>, start: Arc<Observation>, horizon: u64) -> Self {
        let (state, scratch) = (twin.state(&start), twin.scratch());
        let (seen, rng) = (Observation::clone(&start), Seed::new(0).rng());
        Self { twin, start, seen, horizon, state, scratch, fading: Vec::new(), rng }
    }

    fn draw(&mut self) -> Complex {
        let mut part = || {
            let normal: f64 = StandardNormal.sample(&mut self.rng);
            normal * std::f64::consts::FRAC_1_SQRT_2
        };
        Complex { re: part(), im: part() }
    }

    /// Makes the drawn fading the observed fading of the present round.
    fn fade(&mut self) {
        (self.state.lead, self.state.fresh) = (0, 0.0);
        for (known, value) in self.state.known.iter_mut().zip(&self.fading) {
            *known = value.power();
        }
    }
}

impl Simulator for Imagined {
    fn reset(&mut self, seed: u64) -> Result<(), Failure> {
        self.rng = Seed::new(seed).named("environment/fading").rng();
        self.seen.round = self.start.round;
        self.state = self.twin.state(&self.start);
        self.fading = (0..self.state.gain.len()).map(|_| self.draw()).collect();
        self.fade();
        Ok(())
    }

    fn step(&mut self, decision: Decision) -> Result<Step, Failure> {
        decision.check(&self.seen).map_err(Failure::input)?;
        let plan = self.limits().project(decision);
        let (before, actions) = (self.state.success, &plan.decision().terminals);
        let found = self.twin.step(&mut self.state, actions, Sureness::Likely, &mut self.scratch);
        let rho = self.twin.rho();
        for n in 0..self.fading.len() {
            let fresh = self.draw();
            self.fading[n] = autoregressive_step(self.fading[n], rho, fresh);
        }
        self.fade();
        self.seen.round += 1;
        self.twin.move_to(&mut self.state, &self.seen);
        Ok(Step {
            reward: found.reward,
            latency_s: found.latency.0,
            duration_s: found.duration.0,
            energy_j: found.energy.0,
            violation: found.violation.relative,
            n_scheduled: found.n_scheduled as f64,
            n_late: found.n_late as f64,
            success: found.success,
            success_gain: found.success - before,
            report_success: f64::NAN,
            ended: self.seen.round >= self.start.round + self.horizon,
        })
    }

    fn ids(&self) -> Vec<TerminalId> {
        self.twin.members().to_vec()
    }

    fn limits(&self) -> &Limits {
        &self.twin.nominal().cost.limits
    }

    fn look(&self, out: &mut [f32]) {
        view::look(&self.twin, &self.state, out);
    }
}
