//! A small radio with hidden truth, written anew from the rules of a round.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, LogNormal, StandardNormal};

use crate::cost::{
    self, Accounting, Cost, CostModel, Downlink, Grant, Hardware, Payload, Profile, Sync,
};
use crate::rng::{Rng, Seed};
use crate::round::{
    Decision, Limits, Observation, Outcome, ProjectedDecision, SuccessCount, TerminalDecision,
    TerminalId, TerminalOutcome, TerminalReport, TerminalView,
};
use crate::split::compress::{Compressor, Exchange};
use crate::split::model::CutProfile;
use crate::split::rates::{RateSchedule, Rates};
use crate::twin::{Nominal, Twin, TwinOptions};
use crate::units::{Bytes, Gain, Hertz, Joules, Operations, Seconds, Watts};
use crate::wireless::RateModel;

pub const N_LAYERS: usize = 8;

/// How far the truth lies from the data sheet, and how well it is measured.
#[derive(Clone, Copy)]
pub struct Hidden {
    pub share: f64,
    pub noise: f64,
    pub measurement: f64,
    /// One clock error for delay and computation, or one each.
    pub one_clock: bool,
}

pub const MIRROR: Hidden = Hidden { share: 0.0, noise: 0.0, measurement: 0.0, one_clock: true };
pub const DEFAULT: Hidden = Hidden { share: 0.3, noise: 0.345, measurement: 0.05, one_clock: true };

pub struct Fake {
    pub nominal: Nominal,
    pub truth: Vec<Hardware>,
    pub rng: Rng,
    pub round: u64,
    hidden: Hidden,
    gains: Vec<f64>,
    fades: Vec<[f64; 2]>,
    held: Vec<usize>,
    owed: Vec<usize>,
    loss: Vec<f64>,
    /// Samples of every terminal.
    pub n_samples: Vec<usize>,
}

pub fn nominal(n: usize, rng: &mut Rng) -> Nominal {
    let cut = |layer: usize| CutProfile {
        cut: layer,
        activation_elements: 256,
        operations: Operations(1e6 * layer as f64),
        parameters: Bytes(30_000 * layer as u64),
        memory: Bytes(1_000 * layer as u64),
    };
    let deadline = Seconds(5.0);
    let mut hardware = |_| Hardware {
        operations_per_cycle: 0.1 * 10f64.powf(rng.random::<f64>()),
        clock: Hertz(1.5e9),
        energy_coefficient: 0.5e-28 * 4f64.powf(rng.random::<f64>()),
        noise_w_per_hz: 3.2e-20,
    };
    Nominal {
        cost: CostModel {
            limits: Limits {
                deadline,
                bandwidth: Hertz(20e6),
                power: Watts(0.2),
                compression: 0.9,
                cuts: vec![2, 3, 4, 5, 6],
            },
            profile: Profile { batch: 64, action: 8, cuts: (1..=N_LAYERS).map(cut).collect() },
            accounting: Accounting {
                compressor: Compressor::Quantize,
                payload: Payload::Encoded,
                sync: Sync::Billed,
                exchange: Exchange::Single,
            },
            rate_model: RateModel::Held,
            downlink: Downlink::Shared,
        },
        hardware: (0..n).map(&mut hardware).collect(),
        closes: deadline,
        give_up: Seconds(60.0),
        rho: 0.9,
        aggregate_every: 10,
        rates: RateSchedule {
            start: Rates { server: 0.05, terminal: 0.2 },
            final_share: 0.1,
            rounds: 1000,
            warm_up: 0,
        },
        tasks: (0..n).map(|n| n % 4).collect(),
        n_tasks: 4,
    }
}

impl Fake {
    pub fn new(n: usize, hidden: Hidden, seed: u64) -> Self {
        let mut rng = Seed::new(seed).stream("fake");
        let nominal = nominal(n, &mut rng);
        let mut truth = nominal.hardware.clone();
        for one in &mut truth {
            let mut factor = |log: f64| (log * (2.0 * rng.random::<f64>() - 1.0)).exp();
            one.operations_per_cycle *= factor((1.0 + hidden.share).ln());
            one.energy_coefficient *= factor((1.0 + hidden.share).ln());
            one.noise_w_per_hz *= factor(hidden.noise);
        }
        let gains = (0..n).map(|_| 10f64.powf(-9.0 - 3.5 * rng.random::<f64>())).collect();
        let fades = (0..n).map(|_| complex(&mut rng)).collect();
        Self {
            nominal,
            truth,
            rng,
            round: 1,
            hidden,
            gains,
            fades,
            held: vec![N_LAYERS; n],
            owed: vec![0; n],
            loss: (0..n).map(|n| 1.0 + 0.1 * (n % 5) as f64).collect(),
            n_samples: vec![1000; n],
        }
    }

    pub fn twin(&self, options: TwinOptions) -> Twin {
        Twin::new(self.nominal.clone(), options)
    }

    pub fn observe(&self) -> Observation {
        let view = |n: usize| TerminalView {
            report: TerminalReport {
                id: TerminalId(n as u32),
                hardware: self.nominal.hardware[n],
                memory: Bytes(if n.is_multiple_of(4) { 4_500 } else { 100_000 }),
                n_samples: self.n_samples[n],
                task: self.nominal.tasks[n],
                gain: Gain(self.gains[n]),
                fading_power: self.fades[n][0].powi(2) + self.fades[n][1].powi(2),
                held_layers: self.held[n],
                owed_layers: self.owed[n],
            },
            previous_bandwidth: Hertz(0.0),
            gradient_norm: Some(1.0 + 0.2 * (n % 3) as f64),
            loss: None,
            rounds_since_scheduled: None,
            success: None,
        };
        Observation {
            round: self.round,
            clock: Seconds(0.0),
            aggregates: self.round.is_multiple_of(self.nominal.aggregate_every),
            loss: None,
            success: None,
            budget: None,
            terminals: (0..self.gains.len()).map(view).collect(),
        }
    }

    /// Some terminals with some shares of the band.
    pub fn any_plan(&mut self, n_scheduled: usize) -> ProjectedDecision {
        let n = self.gains.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut self.rng);
        let mut decision = Decision::idle(n, 2);
        let band = self.nominal.cost.limits.bandwidth.0 / n_scheduled as f64;
        for &n in &order[..n_scheduled] {
            let mut draw = |low: f64, high: f64| low + (high - low) * self.rng.random::<f64>();
            decision.terminals[n] = TerminalDecision {
                scheduled: true,
                bandwidth: Hertz(band * draw(0.3, 1.5)),
                power: Watts(draw(0.1, 0.2)),
                cut: draw(2.0, 6.99) as usize,
                compression: draw(0.5, 0.9),
            };
        }
        self.nominal.cost.limits.project(decision)
    }

    /// True uncut cost of every terminal, by the rules: reserved slices, scaling, deliveries.
    pub fn true_costs(&self, plan: &ProjectedDecision) -> Vec<Option<(Cost, Watts)>> {
        let (seen, limits) = (self.observe(), &self.nominal.cost.limits);
        let terminals = &plan.decision().terminals;
        let n = terminals.len();
        let owes = |n: usize| seen.aggregates && self.owed[n] > 0 && !terminals[n].scheduled;
        let slice = limits.bandwidth.0 / n as f64;
        let free = limits.bandwidth.0 - slice * (0..n).filter(|&n| owes(n)).count() as f64;
        let scale = (free / plan.decision().bandwidth().0).min(1.0);
        let (accounting, profile) = (&self.nominal.cost.accounting, &self.nominal.cost.profile);
        let one = |n: usize| {
            let t = &terminals[n];
            let deliver = if seen.aggregates { t.cut.max(self.owed[n]) } else { 0 };
            let (job, bandwidth, power) = if t.scheduled {
                let job = accounting.training(
                    profile,
                    profile.samples(self.n_samples[n]),
                    t.cut,
                    t.compression,
                    self.held[n],
                    deliver,
                );
                (job, t.bandwidth * scale, t.power)
            } else if owes(n) {
                (accounting.delivery(profile, self.owed[n]), Hertz(slice), limits.power)
            } else {
                return None;
            };
            let view = &seen.terminals[n];
            let mut link = self.nominal.cost.link(view.report.gain, view.report.fading_power);
            link.model = RateModel::Held;
            let grant = Grant { bandwidth, power };
            Some((cost::cost(&job, &self.truth[n], &link, grant), power))
        };
        (0..n).map(one).collect()
    }

    pub fn execute(&mut self, plan: &ProjectedDecision) -> Outcome {
        let costs = self.true_costs(plan);
        let noise = LogNormal::new(0.0, self.hidden.measurement).unwrap();
        let mut outcomes = vec![TerminalOutcome::default(); costs.len()];
        for (n, cost) in costs.iter().enumerate() {
            let Some((cost, power)) = cost else { continue };
            let t = &plan.decision().terminals[n];
            let spent = cost.until(self.nominal.closes, *power);
            let mut draw = || noise.sample(&mut self.rng);
            let (clock, meter, other) = (draw(), draw(), draw());
            let computing = if self.hidden.one_clock { clock } else { other };
            let fits = self.nominal.cost.profile.memory(t.cut)
                <= self.observe().terminals[n].report.memory;
            let unfinished = cost.delay() > self.nominal.closes;
            let in_time = fits && !unfinished;
            outcomes[n] = TerminalOutcome {
                id: TerminalId(n as u32),
                took_part: t.scheduled && in_time,
                late: t.scheduled && fits && !in_time,
                unfit: t.scheduled && !fits,
                unfinished,
                delay: if unfinished { self.nominal.closes } else { cost.delay() * clock },
                computation: spent.computation * computing,
                energy: Joules((spent.energy_compute + spent.energy_radio).0 * meter),
                bytes: Bytes(0),
                loss: None,
                gradient_norm: None,
                success: None,
            };
            if outcomes[n].took_part {
                self.held[n] = self.held[n].max(t.cut);
                self.owed[n] = self.owed[n].max(t.cut);
                let scatter: f64 = StandardNormal.sample(&mut self.rng);
                outcomes[n].loss = Some(self.loss[n] * (0.1 * scatter).exp());
            }
        }
        self.loss.iter_mut().for_each(|loss| *loss *= 0.997);
        let success = self.round.is_multiple_of(20).then(|| self.measure(&mut outcomes));
        let (round, duration, loss) = (self.round, Seconds(1.0), Some(1.0));
        let outcome = Outcome { round, duration, loss, terminals: outcomes, success };
        self.advance();
        outcome
    }

    /// Four episodes of every terminal; those of a task differ.
    fn measure(&self, outcomes: &mut [TerminalOutcome]) -> Vec<SuccessCount> {
        let mut counts = vec![SuccessCount::default(); self.nominal.n_tasks];
        for (n, outcome) in outcomes.iter_mut().enumerate() {
            let task = self.nominal.tasks[n];
            let successes = ((task + n / 4) % 5) as u64;
            let count = SuccessCount { successes, episodes: 4 };
            counts[task] = counts[task].plus(count);
            outcome.success = Some(count);
        }
        counts
    }

    fn advance(&mut self) {
        if self.round.is_multiple_of(self.nominal.aggregate_every) {
            self.held.fill(0);
            self.owed.fill(0);
        }
        let (rho, fresh) = (self.nominal.rho, (1.0 - self.nominal.rho.powi(2)).sqrt());
        for fade in &mut self.fades {
            let new = complex(&mut self.rng);
            *fade = [rho * fade[0] + fresh * new[0], rho * fade[1] + fresh * new[1]];
        }
        self.round += 1;
    }
}

fn complex(rng: &mut Rng) -> [f64; 2] {
    let mut part = || {
        let normal: f64 = StandardNormal.sample(rng);
        normal * std::f64::consts::FRAC_1_SQRT_2
    };
    [part(), part()]
}
