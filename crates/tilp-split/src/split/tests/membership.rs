//! Terminals that join and leave.

use super::*;
use crate::snapshot::{Array, Persist, Snapshot, SnapshotError};
use crate::split::engine::{Copies, RoundError};

fn saved(engine: &Engine<Policy>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    engine.save(&mut snapshot);
    snapshot
}

fn start() -> Engine<Policy> {
    engine(thin_policy(), Settings { optimiser: momentum(0.9), ..settings() }, &[20, 30, 9])
}

#[test]
fn a_newcomer_holds_nothing_and_downloads_the_current_layers_first() {
    let mut engine = start();
    engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    engine.aggregate(&everybody(&engine)).unwrap();
    let id = TerminalId(17);
    engine.join(id, data(&thin_policy(), 17, 20)).unwrap();
    assert_eq!(engine.ids(), ids(&[0, 1, 2, 17]));
    assert_eq!(engine.terminal(id).unwrap().held(), 0);
    let front = engine.server().weights().clone();
    let missing = engine.missing_bytes(id, 3).unwrap();
    let still = Settings { client_rate: 0.0, ..engine.settings };
    *engine.settings_mut() = still;
    let done = engine.round(1, &[Participant { terminal: id, cut: 3, q: 0.0 }]).unwrap();
    assert_eq!((done[0].terminal, done[0].sync_down), (id, missing));
    for layer in 1..=3 {
        assert_eq!(own_weights(&engine, 17).layer(layer), front.layer(layer));
    }
    assert!(own_weights(&engine, 17).layer(4).is_empty());
}

#[test]
fn terminals_that_join_and_leave_change_no_bit_of_the_others() {
    let mut plain = start();
    let mut changing = start();
    for round in 0..8u64 {
        if round == 2 {
            changing.join(TerminalId(9), data(&thin_policy(), 9, 20)).unwrap();
            changing.join(TerminalId(5), data(&thin_policy(), 5, 20)).unwrap();
        }
        if round == 5 {
            changing.leave(TerminalId(9)).unwrap();
        }
        let old = all_at(&plain, 2 + round as usize % 3, 0.75);
        assert_eq!(plain.round(round, &old), changing.round(round, &old));
        if round % 3 == 2 {
            plain.aggregate(&everybody(&plain)).unwrap();
            changing.aggregate(&everybody(&changing)).unwrap();
        }
    }
    for terminal in 0..3 {
        assert_eq!(own_weights(&plain, terminal), own_weights(&changing, terminal));
    }
    assert_eq!(plain.virtual_mean(), changing.virtual_mean());
}

#[test]
fn the_unaggregated_copy_of_a_terminal_that_leaves_is_lost() {
    let (mut left, mut late) = (start(), start());
    for engine in [&mut left, &mut late] {
        let all = all_at(engine, 3, 0.0);
        engine.round(0, &all).unwrap();
    }
    left.leave(TerminalId(1)).unwrap();
    left.aggregate(&ids(&[0, 2])).unwrap();
    late.aggregate(&ids(&[0, 2])).unwrap();
    assert_eq!(left.server().weights(), late.server().weights());
}

#[test]
fn an_unknown_id_is_a_typed_error_and_nothing_is_done() {
    let mut engine = start();
    let before = saved(&engine);
    let ghost = TerminalId(7);
    let unknown = Err(RoundError::Unknown(ghost));
    let one = [Participant { terminal: ghost, cut: 3, q: 0.0 }];
    assert_eq!(engine.round(0, &one), Err(RoundError::Unknown(ghost)));
    assert_eq!(engine.broadcast_round(0, &one), Err(RoundError::Unknown(ghost)));
    assert_eq!(engine.aggregate(&[ghost]), unknown);
    assert_eq!(engine.leave(ghost).err(), Some(RoundError::Unknown(ghost)));
    assert_eq!(engine.pending_bytes(ghost), Err(RoundError::Unknown(ghost)));
    assert!(engine.terminal(ghost).is_none() && engine.data(ghost).is_none());
    let again = data(&thin_policy(), 1, 20);
    let member = engine.join(TerminalId(1), again);
    assert_eq!(member, Err(RoundError::AlreadyMember(TerminalId(1))));
    let empty = Arc::new(Dataset::new(12, 4));
    assert_eq!(engine.join(ghost, empty), Err(RoundError::NoSamples(ghost)));
    assert_eq!(saved(&engine), before);
}

#[test]
fn a_snapshot_restores_a_changed_set_of_terminals() {
    let mut first = start();
    first.round(0, &all_at(&first, 3, 0.5)).unwrap();
    first.leave(TerminalId(1)).unwrap();
    first.join(TerminalId(8), data(&thin_policy(), 8, 20)).unwrap();
    first.round(1, &all_at(&first, 4, 0.5)).unwrap();
    let snapshot = saved(&first);
    let mut second = start();
    let unknown = second.restore(&snapshot).unwrap_err().to_string();
    assert_eq!(unknown, "checkpoint array `server/terminals` contains 8, expected ids of members");
    assert_eq!(saved(&second), saved(&start()), "a refused snapshot changes nothing");
    second.join(TerminalId(8), data(&thin_policy(), 8, 20)).unwrap();
    second.restore(&snapshot).unwrap();
    assert_eq!(second.ids(), ids(&[0, 2, 8]));
    for engine in [&mut first, &mut second] {
        let all = all_at(engine, 5, 0.0);
        engine.round(2, &all).unwrap();
    }
    assert_eq!(saved(&first), saved(&second));
}

/// A snapshot in the middle of a run of tiers: kept copies, edge servers, counts.
fn rich() -> (Engine<Policy>, Snapshot) {
    let mut engine = start();
    let copies = Copies { own: 4, edge: 6, n_edges: 2 };
    for round in 0..3 {
        let all = all_at(&engine, 2 + round as usize, 0.0);
        engine.round_with(round, &all, copies).unwrap();
    }
    let last = [Participant { terminal: TerminalId(0), cut: 2, q: 0.0 }];
    engine.round_with(3, &last, copies).unwrap();
    let snapshot = saved(&engine);
    (engine, snapshot)
}

#[test]
fn a_forged_value_of_a_snapshot_is_refused() {
    let (_, good) = rich();
    let refuse = |name: &str, values: Array| {
        assert!(good.0.contains_key(name), "{name}");
        let mut forged = good.clone();
        forged.0.insert(name.to_owned(), values);
        let mut engine = start();
        let error = engine.restore(&forged).unwrap_err();
        assert!(error.to_string().contains(name.split("/holds").next().unwrap()), "{error}");
        assert_eq!(saved(&engine), saved(&start()));
        error
    };
    let counts = |value: u64| Array::U64(vec![value; 8]);
    refuse("server/terminal/0/held", Array::U64(vec![9, 0]));
    refuse("server/terminal/0/held", Array::U64(vec![u64::MAX, 0]));
    refuse("server/terminal/0/held", Array::U64(vec![8, 2]));
    refuse("server/terminal/0/held", Array::U64(vec![8, 1]));
    refuse("server/terminal/0/trained", counts(u64::MAX));
    refuse("server/terminal/0/trained", Array::U64(vec![1; 7]));
    refuse("server/terminal/0/kept", counts(2));
    refuse("server/served", counts(1 << 60));
    refuse("server/edge/0/served", counts(5));
    refuse("server/edge/1/holds", counts(3));
    refuse("server/terminals", Array::U64(vec![0, 2, 1]));
    refuse("server/terminals", Array::U64(vec![0, 1, 1 << 40]));
    refuse("terminal/0/holds", counts(1));
    refuse("terminal/1/holds", counts(0));
    refuse("terminal/2/order", Array::U64(vec![256]));
    refuse("terminal/2/order", Array::U64(vec![1; 52]));
    let size = thin_policy().n_parameters(1);
    let infinite = refuse("server/weights/1", Array::F32(vec![f32::INFINITY; size]));
    assert!(matches!(infinite, SnapshotError::Value { .. }));
    refuse("terminal/0/weights/1", Array::F32(vec![f32::NAN; size]));
    let mut many = good.clone();
    many.put_u64("server/edges", vec![u64::MAX]);
    assert!(start().restore(&many).is_err());
}

#[test]
fn any_array_of_a_snapshot_with_other_numbers_is_refused_or_can_be_trained() {
    let (_, good) = rich();
    let copies = Copies { own: 4, edge: 6, n_edges: 2 };
    for name in good.0.keys() {
        for value in [0, 1, 7, 1 << 47, u64::MAX] {
            let mut forged = good.clone();
            if let Some(Array::U64(values)) = forged.0.get_mut(name) {
                values.fill(value);
            } else {
                forged.0.remove(name);
            }
            let mut engine = start();
            if engine.restore(&forged).is_ok() {
                let all = all_at(&engine, 3, 0.0);
                engine.round_with(9, &all, copies).unwrap();
                engine.aggregate(&everybody(&engine)).unwrap();
                engine.round(10, &all).unwrap();
            }
        }
    }
}

#[test]
fn another_seed_of_minibatches_changes_the_minibatches_and_nothing_else() {
    let other = Settings { minibatches: Seed::new(77), ..settings() };
    let losses = |settings: Settings, samples: &[usize]| {
        let mut engine = engine(thin_policy(), settings, samples);
        let participants = all_at(&engine, 3, 0.75);
        engine.round(1, &participants).unwrap().iter().map(|one| one.loss).collect::<Vec<f64>>()
    };
    // More samples than a minibatch holds: another choice.
    assert_ne!(losses(settings(), &[40, 40]), losses(other, &[40, 40]));
    // A single sample leaves no choice; compression draws from the other seed as before.
    assert_eq!(losses(settings(), &[1, 1]), losses(other, &[1, 1]));
    let compressed = Settings { seed: Seed::new(77), ..settings() };
    assert_ne!(losses(settings(), &[1, 1]), losses(compressed, &[1, 1]));
}
