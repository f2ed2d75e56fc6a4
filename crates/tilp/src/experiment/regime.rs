//! The radio regime of a cell: which terminals miss the deadline, and whether joint decisions could help.

use crate::allocate::need;
use crate::allocate::solve::{Need, finish_at};
use crate::cost::{CostModel, Grant, Job, cost};
use crate::units::{Hertz, Seconds};
use crate::wireless::{Fading, computation_delay};
use crate::world::{Channel, Radio};

/// The radio regime, on the true channel and hardware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regime {
    /// Share of the terminals that miss the deadline in a median round: all scheduled, an
    /// even split, nothing compressed, the shallowest cut.
    pub late_median: f64,
    /// Share of all these misses that falls on terminals which miss more than half of the rounds.
    pub late_same: f64,
    /// Share of the terminals that make it at their median fade with a tenth of the band and 90 %
    /// compression, at the best cut they can hold.
    pub reachable: f64,
    /// Share of the rounds in which the band is too small for all terminals together that could meet the
    /// deadline alone, uncompressed.
    pub crowded: f64,
    /// Share of the terminals that cannot hold the deepest cut.
    pub short_of_memory: f64,
}

/// Measures the regime over a number of rounds.
pub fn regime(radio: &Radio, rounds: u64) -> Regime {
    let n_terminals = radio.truth.len();
    let mut misses = vec![0u64; n_terminals];
    let mut late_shares = Vec::new();
    let mut crowded = 0u64;
    let mut channel = Walk::new(radio);
    for round in 1..=rounds {
        let fades: Vec<f64> = (0..n_terminals).map(|n| channel.power(radio, n, round)).collect();
        let late = late_with_even_split(radio, &fades);
        late.iter().for_each(|&n| misses[n] += 1);
        late_shares.push(late.len() as f64 / n_terminals as f64);
        crowded += u64::from(is_crowded(radio, &fades));
        channel.advance();
    }
    late_shares.sort_by(f64::total_cmp);
    let all: u64 = misses.iter().sum();
    let frequent: u64 = misses.iter().filter(|&&count| 2 * count > rounds).sum();
    let share = |count: usize| count as f64 / n_terminals as f64;
    let deepest =
        radio.cost.profile.memory(*radio.cost.limits.cuts.last().expect("checked: not empty"));
    Regime {
        late_median: late_shares[late_shares.len() / 2],
        late_same: if all > 0 { frequent as f64 / all as f64 } else { 0.0 },
        reachable: share((0..n_terminals).filter(|&n| is_reachable(radio, n)).count()),
        crowded: crowded as f64 / rounds as f64,
        short_of_memory: share(radio.memory.iter().filter(|&&budget| budget < deepest).count()),
    }
}

/// A walk over the rounds of a channel that leaves the world's own alone.
struct Walk(Option<Fading>);

impl Walk {
    fn new(radio: &Radio) -> Self {
        match &radio.channel {
            Channel::Drawn { fading, .. } => Self(Some(fading.clone())),
            Channel::Recorded(_) => Self(None),
        }
    }

    fn power(&self, radio: &Radio, n: usize, round: u64) -> f64 {
        match &self.0 {
            Some(fading) => fading.values()[n].power(),
            // Relative to the mean over the recording.
            None => {
                let Radio { channel, .. } = radio;
                let total = channel.gain(n, round).0 * channel.fading_power(n, round);
                total / channel.mean_gain(n).0
            }
        }
    }

    fn advance(&mut self) {
        if let Some(fading) = &mut self.0 {
            fading.advance();
        }
    }
}

/// A terminal's job in a round without model exchange.
fn job(radio: &Radio, cut: usize, compression: f64) -> Job {
    let CostModel { accounting, profile, .. } = &radio.cost;
    accounting.training(profile, profile.batch, cut, compression, cut, 0)
}

fn delay(radio: &Radio, n: usize, fade: f64, job: &Job, bandwidth: Hertz) -> Seconds {
    let link = radio.cost.link(radio.channel.mean_gain(n), fade);
    let grant = Grant { bandwidth, power: radio.cost.limits.power };
    cost(job, &radio.truth[n], &link, grant).delay()
}

fn late_with_even_split(radio: &Radio, fades: &[f64]) -> Vec<usize> {
    let share = radio.cost.limits.bandwidth / fades.len() as f64;
    let job = job(radio, radio.cost.limits.cuts[0], 0.0);
    let is_late = |n: &usize| delay(radio, *n, fades[*n], &job, share) > radio.cost.limits.deadline;
    (0..fades.len()).filter(is_late).collect()
}

fn is_reachable(radio: &Radio, n: usize) -> bool {
    // The median of Exp(1).
    let fade = std::f64::consts::LN_2;
    let share = radio.cost.limits.bandwidth / 10.0;
    (radio.cost.limits.cuts.iter())
        .filter(|&&cut| radio.cost.profile.memory(cut) <= radio.memory[n])
        .any(|&cut| {
            let job = job(radio, cut, radio.cost.limits.compression);
            delay(radio, n, fade, &job, share) <= radio.cost.limits.deadline
        })
}

/// Whether the band is too small for all terminals that could meet the deadline alone, uncompressed.
fn is_crowded(radio: &Radio, fades: &[f64]) -> bool {
    let job = job(radio, radio.cost.limits.cuts[0], 0.0);
    let (band, deadline) = (radio.cost.limits.bandwidth, radio.cost.limits.deadline);
    let alone: Vec<usize> =
        (0..fades.len()).filter(|&n| delay(radio, n, fades[n], &job, band) <= deadline).collect();
    let needed = |&n: &usize| {
        let hardware = &radio.truth[n];
        let link = radio.cost.link(radio.channel.mean_gain(n), fades[n]);
        let speed = hardware.operations_per_cycle;
        let fixed = computation_delay(job.work, speed, hardware.clock);
        let (power, bytes) = (radio.cost.limits.power, [job.air(), job.down + job.sync_down]);
        need(&link, power, hardware.noise_w_per_hz, bytes, fixed.0)
    };
    let needs: Vec<Need> = alone.iter().map(needed).collect();
    finish_at(&needs, band, deadline).is_none()
}
