//! The history of every terminal: what was decided for it and what came of it, round by round.
//!
//! It is made of the events at the first question, and extended by later events.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tilp::record::event::Number;
use tilp::units::to_db;

use super::events::{RoundPlace, line};
use super::slim::{SlimBooks, SlimDecided, SlimExecuted, parsed};

/// Entries that are kept: rounds times terminals. Each takes about 60 bytes.
const MOST_ENTRIES: usize = 8_000_000;
/// Points of a figure of predictions.
const MOST_POINTS: usize = 12_000;

/// Histories so far.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// Rounds that were read.
    rounds: usize,
    n_entries: usize,
    by_terminal: BTreeMap<u32, Track>,
    predictions: Vec<RoundPrediction>,
    /// There are more rounds than are kept.
    pub is_cut: bool,
}

/// One terminal.
#[derive(Debug, Default)]
struct Track {
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    round: u32,
    gain_db: f32,
    fading_db: f32,
    bandwidth_hz: f32,
    power_w: f32,
    compression: f32,
    delay_s: f32,
    loss: f32,
    predicted_delay_s: f32,
    sure_delay_s: f32,
    energy_j: f32,
    predicted_energy_j: f32,
    /// All energy of the terminal up to this round.
    spent_j: f64,
    cut: u8,
    scheduled: bool,
    late: bool,
}

/// What was predicted of a round, and what came of it.
#[derive(Debug)]
struct RoundPrediction {
    round: u32,
    duration_s: [f64; 2],
    energy_j: [f64; 2],
    /// Mean loss of the deployed policy, before minus after; only in the rounds that are looked at.
    loss_decrease: [Option<f64>; 2],
    success_before: f64,
    success_after: f64,
}

impl Tracks {
    /// Reads the rounds that are complete and not yet read. A damaged round is left out.
    pub(super) fn extend(&mut self, path: &Path, rounds: &[RoundPlace]) {
        while let Some(place) = rounds.get(self.rounds) {
            let (Some(decided), Some(executed)) = (place.decided, place.executed) else { return };
            if self.n_entries > MOST_ENTRIES {
                self.is_cut = true;
                return;
            }
            self.rounds += 1;
            let round = self.rounds as u32;
            let decided = line(path, decided).ok().and_then(|line| parsed::<SlimDecided>(&line));
            let executed = line(path, executed).ok().and_then(|line| parsed::<SlimExecuted>(&line));
            if let (Some(decided), Some(executed)) = (decided, executed) {
                self.push(round, &decided, &executed);
            }
        }
    }

    fn push(&mut self, round: u32, decided: &SlimDecided, executed: &SlimExecuted) {
        let plan = &decided.terminals;
        let (seen, books) = (&executed.terminals, executed.books.as_ref());
        let predicted = decided.rationale.as_ref();
        let mut energy = 0.0;
        for (n, id) in plan.terminal.iter().enumerate() {
            let track = self.by_terminal.entry(*id).or_default();
            let spent_j = track.entries.last().map_or(0.0, |entry| entry.spent_j);
            let energy_j = energy_of(books, n).unwrap_or_else(|| at(&seen.energy_j, n));
            let flag = |of: &[bool]| of.get(n).copied().unwrap_or_default();
            let loss = seen.loss.get(n).copied().flatten().map_or(f64::NAN, Number::value);
            let delay = books.map_or(&seen.delay_s, |books| &books.terminals.delay_s);
            let of_plan = |of: fn(&super::slim::PredictedColumns) -> &[Number]| {
                predicted.map_or(f64::NAN, |one| at(of(&one.terminals), n)) as f32
            };
            energy += energy_j;
            track.entries.push(Entry {
                round,
                gain_db: to_db(at(&plan.gain, n)) as f32,
                fading_db: to_db(at(&plan.fading_power, n)) as f32,
                bandwidth_hz: at(&plan.bandwidth_hz, n) as f32,
                power_w: at(&plan.power_w, n) as f32,
                compression: at(&plan.compression, n) as f32,
                delay_s: at(delay, n) as f32,
                loss: loss as f32,
                predicted_delay_s: of_plan(|one| &one.delay_s),
                sure_delay_s: of_plan(|one| &one.sure_delay_s),
                energy_j: energy_j as f32,
                predicted_energy_j: of_plan(|one| &one.energy_j),
                spent_j: spent_j + energy_j,
                cut: plan.cut.get(n).map_or(0, |cut| (*cut).min(255) as u8),
                scheduled: flag(&plan.scheduled),
                late: flag(&seen.late),
            });
            self.n_entries += 1;
        }
        if let Some(one) = predicted {
            self.predictions.push(RoundPrediction {
                round,
                duration_s: [one.duration_s.value(), executed.duration_s.value()],
                energy_j: [one.energy_j.value(), energy],
                loss_decrease: [Some(one.loss_decrease.value()), books.and_then(decrease)],
                success_before: one.success_before.value(),
                success_after: one.success_after.value(),
            });
        }
    }

    /// The history of a terminal, as columns; none if there is no such terminal.
    pub(super) fn terminal(&self, id: u32) -> Option<Value> {
        let entries = &self.by_terminal.get(&id)?.entries;
        macro_rules! columns {
            ($($name:ident),*) => {
                json!({$(
                    stringify!($name): entries.iter().map(|entry| entry.$name).collect::<Vec<_>>(),
                )*})
            };
        }
        Some(columns!(
            round,
            gain_db,
            fading_db,
            bandwidth_hz,
            power_w,
            compression,
            delay_s,
            loss,
            predicted_delay_s,
            sure_delay_s,
            energy_j,
            spent_j,
            cut,
            scheduled,
            late
        ))
    }

    /// Energy of every terminal up to a round, ids and joules, and in how many rounds it took its turn.
    pub(super) fn spent(&self, round: u64) -> Value {
        let (mut ids, mut joules, mut turns) = (Vec::new(), Vec::new(), Vec::new());
        for (id, track) in &self.by_terminal {
            let n = track.entries.partition_point(|entry| u64::from(entry.round) <= round);
            let Some(last) = n.checked_sub(1) else { continue };
            ids.push(*id);
            joules.push(track.entries[last].spent_j);
            turns.push(track.entries[..n].iter().filter(|entry| entry.scheduled).count());
        }
        json!({ "terminal": ids, "joules": joules, "turns": turns })
    }

    /// Predicted and realised values of scheduled terminals and of rounds. Of long runs every n-th.
    pub(super) fn predictions(&self) -> Value {
        let all = self.by_terminal.iter().flat_map(|(id, track)| {
            let used = track.entries.iter().filter(|entry| entry.scheduled);
            used.filter(|entry| entry.predicted_delay_s.is_finite()).map(move |entry| (*id, entry))
        });
        let total = all.clone().count();
        let step = total.div_ceil(MOST_POINTS).max(1);
        let shown: Vec<(u32, &Entry)> = all.clone().step_by(step).collect();
        let in_time = all.clone().filter(|(_, entry)| entry.delay_s <= entry.sure_delay_s).count();
        let column = |of: fn(&Entry) -> f32| -> Vec<f32> {
            shown.iter().map(|(_, entry)| of(entry)).collect()
        };
        let rounds = &self.predictions;
        let of = |of: &dyn Fn(&RoundPrediction) -> Option<f64>| -> Vec<Option<f64>> {
            rounds.iter().map(of).collect()
        };
        json!({
            "n": total,
            "within_sure": in_time,
            "points": {
                "round": shown.iter().map(|(_, entry)| entry.round).collect::<Vec<_>>(),
                "terminal": shown.iter().map(|(id, _)| id).collect::<Vec<_>>(),
                "delay_predicted_s": column(|one| one.predicted_delay_s),
                "delay_sure_s": column(|one| one.sure_delay_s),
                "delay_s": column(|one| one.delay_s),
                "energy_predicted_j": column(|one| one.predicted_energy_j),
                "energy_j": column(|one| one.energy_j),
            },
            "rounds": {
                "round": rounds.iter().map(|one| one.round).collect::<Vec<_>>(),
                "duration_predicted_s": of(&|one| Some(one.duration_s[0])),
                "duration_s": of(&|one| Some(one.duration_s[1])),
                "energy_predicted_j": of(&|one| Some(one.energy_j[0])),
                "energy_j": of(&|one| Some(one.energy_j[1])),
                "decrease_predicted": of(&|one| one.loss_decrease[0]),
                "decrease": of(&|one| one.loss_decrease[1]),
                "success_before": of(&|one| Some(one.success_before)),
                "success_after": of(&|one| Some(one.success_after)),
            },
        })
    }
}

fn at(column: &[Number], n: usize) -> f64 {
    column.get(n).map_or(f64::NAN, |number| number.value())
}

/// True energy of a terminal.
fn energy_of(books: Option<&SlimBooks>, n: usize) -> Option<f64> {
    let books = &books?.terminals;
    Some(at(&books.energy_radio_j, n) + at(&books.energy_compute_j, n))
}

/// Mean loss before minus mean loss after, where the losses were looked at.
fn decrease(books: &SlimBooks) -> Option<f64> {
    let losses = books.losses.as_ref().filter(|losses| !losses.before.is_empty())?;
    let mean = |of: &[Number]| of.iter().map(|one| one.value()).sum::<f64>() / of.len() as f64;
    Some(mean(&losses.before) - mean(&losses.after))
}
