//! Forged checkpoints: whatever an array holds, a checkpoint is refused or used, without a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tilp::scenario::Parts;
use tilp::snapshot::{Array, Persist, Snapshot, SnapshotError};

use crate::rounds::until;
use crate::worlds;

/// The rounds before the checkpoint: with a calibration, aggregations, and terminals that leave and
/// join, so that no array is empty for want of an occasion.
const DONE: u64 = 7;
const EVENTFUL: [&str; 7] = [
    "cell.n_terminals=8",
    "events=[{round=5, leave=[0,1], join=[6,7]}]",
    "rounds=12",
    "learning.aggregate_every=3",
    "evaluation.calibrate_every=4",
    "methods.tilp.samples=32",
    "methods.tilp.warm_up=2",
];

/// Arrays in which NaN stands for what is not known, number by number.
const MAY_BE_UNKNOWN: [&str; 5] = [
    "station/loss",
    "station/gradient_norm",
    "station/terminal_loss",
    "tiers/means",
    "twin/task/centres",
];

/// Arrays that are empty as long as there was no occasion to fill them.
const MAY_BE_EMPTY: [&str; 2] = ["station/success", "oracle/waiting"];

/// The order of a method that does not know who is in the cell: any terminals, each once.
const WALK: &str = "splitnn/walk";

fn state(parts: &Parts) -> Snapshot {
    let mut state = Snapshot::default();
    parts.cell.save(&mut state);
    parts.station.save(&mut state);
    state
}

/// Takes a checkpoint back as a run that is resumed does.
fn resume(parts: &mut Parts, forged: &Snapshot) -> Result<(), SnapshotError> {
    for name in ["cell/round", "station/round"] {
        let next = forged.u64(name, 1)?[0];
        if next != DONE + 1 {
            return Err(SnapshotError::value(name, next, DONE + 1));
        }
    }
    parts.cell.restore(forged)?;
    parts.station.restore(forged)?;
    forged.check_restored(&state(parts))
}

/// A way to forge an array, and whether the result can be that of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forgery {
    Missing,
    OtherType,
    Empty,
    Shorter,
    Longer,
    NotANumber,
    Infinite,
    Huge,
    HugeAtTheEnd,
    Negative,
    /// 2^40, or as a real number the largest.
    Beyond,
}

const ALL: [Forgery; 11] = [
    Forgery::Missing,
    Forgery::OtherType,
    Forgery::Empty,
    Forgery::Shorter,
    Forgery::Longer,
    Forgery::NotANumber,
    Forgery::Infinite,
    Forgery::Huge,
    Forgery::HugeAtTheEnd,
    Forgery::Negative,
    Forgery::Beyond,
];

/// Forges a list; none if this way leaves it as it is.
fn forge_list<T: Copy + PartialEq>(values: &[T], how: Forgery, bad: [T; 5]) -> Option<Vec<T>> {
    let [not_a_number, infinite, huge, negative, beyond] = bad;
    let mut forged = values.to_vec();
    let last = forged.len().checked_sub(1);
    match how {
        Forgery::Empty if !forged.is_empty() => forged.clear(),
        Forgery::Shorter => drop(forged.pop()?),
        Forgery::Longer => forged.push(values.last().copied().unwrap_or(negative)),
        Forgery::NotANumber => forged[last?] = not_a_number,
        Forgery::Infinite => *forged.first_mut()? = infinite,
        Forgery::Huge => *forged.first_mut()? = huge,
        Forgery::HugeAtTheEnd => forged[last?] = huge,
        Forgery::Negative => *forged.first_mut()? = negative,
        Forgery::Beyond => *forged.first_mut()? = beyond,
        _ => return None,
    }
    Some(forged)
}

/// A checkpoint with one array forged; none if this way leaves it as it is.
fn forge(whole: &Snapshot, name: &str, how: Forgery) -> Option<Snapshot> {
    let array = match (&whole.0[name], how) {
        (_, Forgery::Missing) => {
            let mut forged = whole.clone();
            forged.0.remove(name);
            return Some(forged);
        }
        (Array::U64(values), Forgery::OtherType) => {
            Array::F64(values.iter().map(|value| *value as f64).collect())
        }
        (Array::F64(values), Forgery::OtherType) => {
            Array::F32(values.iter().map(|value| *value as f32).collect())
        }
        (Array::F32(values), Forgery::OtherType) => {
            Array::U64(values.iter().map(|value| *value as u64).collect())
        }
        (Array::U64(values), how) => {
            let most = u64::MAX;
            Array::U64(forge_list(values, how, [most, most - 1, most / 2, 1 << 33, 1 << 40])?)
        }
        (Array::F64(values), how) => {
            let bad = [f64::NAN, f64::INFINITY, 1e300, -1.0, f64::MAX];
            Array::F64(forge_list(values, how, bad)?)
        }
        (Array::F32(values), how) => {
            let bad = [f32::NAN, f32::INFINITY, 1e38, -1.0, f32::MAX];
            Array::F32(forge_list(values, how, bad)?)
        }
    };
    let mut forged = whole.clone();
    forged.0.insert(name.to_owned(), array);
    Some(forged)
}

/// Whether no run can have saved this, whatever it learned.
fn is_impossible(name: &str, how: Forgery) -> bool {
    match how {
        Forgery::Missing | Forgery::OtherType => true,
        Forgery::Empty => !MAY_BE_EMPTY.contains(&name) && name != WALK,
        Forgery::Shorter => name != WALK,
        Forgery::Longer => true,
        Forgery::NotANumber => !MAY_BE_UNKNOWN.contains(&name),
        Forgery::Infinite => true,
        _ => false,
    }
}

/// Forges every array of a checkpoint in every way. What is taken for a checkpoint is run on for a
/// round, which must not panic either.
fn forge_everything(method: &str) -> [usize; 2] {
    let mut parts = worlds::parts(method, &EVENTFUL);
    until(&mut parts, DONE);
    let whole = state(&parts);
    assert_eq!(resume(&mut parts, &whole), Ok(()), "{method}: the true one");
    let (mut n_refused, mut n_used, mut accepted) = (0, 0, Vec::new());
    for name in whole.0.keys() {
        for how in ALL {
            let Some(forged) = forge(&whole, name, how) else { continue };
            let tried = catch_unwind(AssertUnwindSafe(|| {
                resume(&mut parts, &forged)?;
                // An error is fine, a panic is not.
                let _ = parts.next_round();
                Ok::<(), SnapshotError>(())
            }));
            match tried.unwrap_or_else(|_| panic!("{method}: {name} forged ({how:?}) panics")) {
                Err(error) => {
                    assert!(!error.to_string().contains('\n'), "{error}");
                    n_refused += 1;
                }
                Ok(()) => {
                    if is_impossible(name, how) {
                        accepted.push(format!("{name} ({how:?})"));
                    }
                    n_used += 1;
                }
            }
        }
    }
    assert!(accepted.is_empty(), "{method}: accepted: {}", accepted.join(", "));
    [n_refused, n_used]
}

/// One more round, if every role does its part.
trait NextRound {
    fn next_round(&mut self) -> Result<(), String>;
}

impl NextRound for Parts {
    fn next_round(&mut self) -> Result<(), String> {
        let Parts { cell, station, evaluator, laboratory, .. } = self;
        let mut keep = crate::rounds::Keep::default();
        let done = tilp::run::round(cell, station, evaluator, laboratory, &mut keep);
        done.map(|_| ()).map_err(|error| error.to_string())
    }
}

#[test]
fn no_array_of_a_checkpoint_of_tilp_can_be_forged_into_a_panic() {
    let [refused, used] = forge_everything("tilp");
    assert!(refused > 1000 && used < refused / 4, "{refused} refused, {used} used");
}

#[test]
fn nor_can_those_of_the_other_methods_with_a_state_of_their_own() {
    for method in ["oracle", "clairvoyant", "splitnn+guard", "hsfl+guard", "fedsl+guard"] {
        let [refused, _] = forge_everything(method);
        assert!(refused > 100, "{method}: {refused} refused");
    }
}
