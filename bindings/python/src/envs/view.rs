//! What an agent sees of a cell, and what its actions mean: the same on the cell, on the twin and in
//! a study.

use tilp::round::{Decision, Limits, TerminalDecision, TerminalId};
use tilp::twin::{Twin, TwinState};
use tilp::units::{Hertz, Watts};
use tilp::wireless::computation_delay;

/// Features of a terminal, in this order.
pub(crate) const FEATURES: [&str; 10] = [
    "present",
    "signal",
    "mean_signal",
    "relative_loss",
    "failure",
    "doubt",
    "memory",
    "held",
    "owed",
    "computation",
];

/// Features of the whole cell, in this order.
pub(crate) const GLOBALS: [&str; 5] =
    ["round", "until_aggregation", "aggregates", "loss", "success"];

/// Numbers of an action for one terminal: schedule, bandwidth, power, cut, compression.
pub(crate) const ACTIONS: usize = 5;

/// No feature is larger.
pub(crate) const BOUND: f32 = 10.0;

/// Length of an observation of `n` terminals.
pub(crate) fn length(n_slots: usize) -> usize {
    GLOBALS.len() + n_slots * FEATURES.len()
}

/// Writes what an agent sees: the cell, then every terminal by its id. Terminals that are absent
/// are zero.
pub(crate) fn look(twin: &Twin, state: &TwinState, out: &mut [f32]) {
    out.fill(0.0);
    let (globals, terminals) = out.split_at_mut(GLOBALS.len());
    let mean = state.log_loss.iter().sum::<f64>() / state.log_loss.len().max(1) as f64;
    for (feature, value) in globals.iter_mut().zip(whole(twin, state, mean)) {
        *feature = bounded(value);
    }
    for (n, id) in twin.members().iter().enumerate() {
        let start = id.0 as usize * FEATURES.len();
        let Some(slot) = terminals.get_mut(start..start + FEATURES.len()) else { continue };
        for (feature, value) in slot.iter_mut().zip(terminal(twin, state, mean, n)) {
            *feature = bounded(value);
        }
    }
}

fn bounded(value: f64) -> f32 {
    if value.is_nan() { 0.0 } else { (value as f32).clamp(-BOUND, BOUND) }
}

fn whole(twin: &Twin, state: &TwinState, mean: f64) -> [f64; GLOBALS.len()] {
    let (every, rounds) = (twin.nominal().aggregate_every, twin.nominal().rates.rounds);
    let ahead = (every - state.round % every) % every;
    [
        state.round as f64 / rounds.max(1) as f64,
        ahead as f64 / every as f64,
        f64::from(u8::from(ahead == 0)),
        mean / 3.0,
        state.success,
    ]
}

fn terminal(twin: &Twin, state: &TwinState, mean: f64, n: usize) -> [f64; FEATURES.len()] {
    let cost = &twin.nominal().cost;
    let hardware = twin.network.hardware(n);
    // Ratio of signal to noise on a megahertz at one watt, in units of 20 dB.
    let signal = |power: f64| {
        let ratio = state.gain[n] * power / hardware.noise_w_per_hz * 1e-6;
        ratio.max(1e-20).log10() / 2.0
    };
    let deepest = cost.limits.cuts.last().map_or(1, |&cut| cost.profile.memory(cut).0);
    let n_layers = cost.profile.cuts.len() as f64;
    let (start, slope) = twin.task.line_ahead(n, state.outlook);
    let success = 1.0 / (1.0 + (slope * state.log_loss[n] - start).exp());
    let copies = state.copies[n];
    let first = &cost.profile.cuts[cost.limits.cuts.first().map_or(0, |cut| cut - 1)];
    let work = first.operations * state.samples[n];
    let computation = computation_delay(work, hardware.operations_per_cycle, hardware.clock);
    [
        1.0,
        signal(state.fading(n).mean()),
        signal(1.0),
        state.log_loss[n] - mean,
        1.0 - success,
        state.variance[n].sqrt(),
        (state.memory[n].0 as f64 / deepest as f64).min(1.5),
        copies.held as f64 / n_layers,
        copies.pending as f64 / n_layers,
        computation.0 / cost.limits.deadline.0,
    ]
}

/// How the numbers of an action are to be read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// All between -1 and 1. The scheduled terminals share the band by their weights.
    Flat,
    /// A flag, a share of the band, of the power, the index of a cut, and a share of the
    /// compression.
    Mixed,
}

/// The decision that an action means; `action` has a row for every terminal by its id.
pub(crate) fn decode(action: &[f64], form: Form, ids: &[TerminalId], limits: &Limits) -> Decision {
    let row = |id: &TerminalId| -> [f64; ACTIONS] {
        let start = id.0 as usize * ACTIONS;
        let found = action.get(start..start + ACTIONS);
        found.and_then(|row| row.try_into().ok()).unwrap_or([0.0; ACTIONS])
    };
    let mut decision = Decision::idle(ids.len(), limits.cuts[0]);
    let last = limits.cuts.len() - 1;
    for (one, id) in decision.terminals.iter_mut().zip(ids) {
        let [x, b, p, l, q] = row(id);
        let unit = |value: f64| (value + 1.0) / 2.0;
        let (x, b, p, l, q) = match form {
            Form::Mixed => (x > 0.5, b, p, l, q),
            Form::Flat => {
                let place = unit(l) * limits.cuts.len() as f64;
                (x > 0.0, unit(b), unit(p), place.floor(), unit(q))
            }
        };
        *one = TerminalDecision {
            scheduled: x,
            bandwidth: Hertz(limits.bandwidth.0 * b),
            power: Watts(limits.power.0 * p),
            cut: limits.cuts[(l.max(0.0) as usize).min(last)],
            compression: limits.compression * q,
        };
    }
    if form == Form::Flat {
        share_band(&mut decision, limits);
    }
    decision
}

/// Scales the bandwidths of the scheduled terminals so that they use the whole band.
fn share_band(decision: &mut Decision, limits: &Limits) {
    let asked = decision.bandwidth().0;
    let n_scheduled = decision.scheduled().count();
    for one in decision.terminals.iter_mut().filter(|one| one.scheduled) {
        one.bandwidth = match asked > 0.0 {
            true => one.bandwidth * (limits.bandwidth.0 / asked),
            false => limits.bandwidth / n_scheduled as f64,
        };
    }
}
