//! What actor and critic see of a state, and how actions look to them.

use crate::rl::replay::Scene;
use crate::round::{Limits, TerminalDecision};
use crate::search::sample::Choice;
use crate::twin::{Twin, TwinState};
use crate::units::to_db;

/// Features of a terminal.
pub(super) const SPACE_TERMINALS: usize = 7;
/// Features of the whole system.
pub(super) const SPACE_GLOBALS: usize = 4;

/// The features of a state, all about one in size.
pub(super) fn scene(twin: &Twin, state: &TwinState) -> Scene {
    let nominal = twin.nominal();
    let n_layers = nominal.profile.cuts.len() as f32;
    let deepest = nominal.limits.cuts.last().map_or(1, |&cut| nominal.profile.memory(cut).0);
    let mean_loss = state.loss.iter().sum::<f64>() / state.loss.len() as f64;
    let mut terminals = Vec::with_capacity(SPACE_TERMINALS * state.gain.len());
    for n in 0..state.gain.len() {
        let fading = state.fading(n).mean().max(1e-6);
        let loss = state.loss[nominal.tasks[n]];
        terminals.extend([
            ((to_db(state.gain[n]) + 120.0) / 20.0) as f32,
            (to_db(fading) / 10.0) as f32,
            state.held[n] as f32 / n_layers,
            state.owed[n] as f32 / n_layers,
            (state.memory[n].0 as f64 / deepest as f64).min(1.5) as f32,
            (loss / mean_loss.max(1e-9)).min(4.0) as f32 - 1.0,
            (1.0 - twin.task.predict(nominal.tasks[n], loss)) as f32,
        ]);
    }
    let every = nominal.aggregate_every;
    let globals = vec![
        (every - 1 - (state.round + every - 1) % every) as f32 / every as f32,
        state.success as f32,
        (mean_loss.max(1e-6).ln() / 3.0) as f32,
        f32::from(u8::from(twin.aggregates(state.round))),
    ];
    Scene { terminals, globals }
}

/// An action as the search knows it, from a row of the actor.
pub(super) fn choice(row: &[f32]) -> Choice {
    let reals = [0, 1, 2].map(|index: usize| 0.5 * (row[index] + 1.0));
    let categories = &row[3..row.len() - 1];
    let category = (0..categories.len()).max_by(|&a, &b| categories[a].total_cmp(&categories[b]));
    Choice { reals, category: category.unwrap_or(0), flag: row[row.len() - 1] > 0.5 }
}

/// An executed action as a row of the actor.
pub(super) fn action_row(one: &TerminalDecision, cuts: &[usize], limits: &Limits) -> Vec<f32> {
    let signed = |share: f64| (2.0 * share - 1.0).clamp(-0.999, 0.999) as f32;
    let mut row = vec![
        signed(one.bandwidth.0 / limits.bandwidth.0),
        signed(one.power.0 / limits.power.0),
        signed(one.compression / limits.compression.max(1e-9)),
    ];
    row.extend(cuts.iter().map(|&cut| f32::from(u8::from(cut == one.cut))));
    row.push(f32::from(u8::from(one.scheduled)));
    row
}
