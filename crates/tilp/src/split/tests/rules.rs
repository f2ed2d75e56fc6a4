//! Who keeps, downloads, owes and averages what.

use super::*;
use crate::split::engine::RoundError;

#[test]
fn without_participants_no_weight_changes() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let before = engine.virtual_mean();
    assert_eq!(engine.round(0, &[]), Ok(vec![]));
    assert_eq!(engine.virtual_mean(), before);
    engine.aggregate(&[0, 1]);
    assert_eq!(engine.server().weights(), &before);
}

#[test]
fn a_single_participant_is_adopted_bit_for_bit() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    engine.round(0, &[Participant { terminal: 1, cut: 4, q: 0.5 }]).unwrap();
    let own = engine.terminals()[1].weights().clone();
    engine.aggregate(&[1]);
    for layer in 1..=4 {
        assert_eq!(engine.server().weights().layer(layer), own.layer(layer));
    }
}

#[test]
fn the_order_of_participants_changes_nothing() {
    let run = |turned: bool| {
        let mut engine = engine(thin_policy(), settings(), &[20, 20, 20]);
        for round in 0..3 {
            let mut participants = all_at(&engine, 3, 0.75);
            participants[1].cut = 5;
            if turned {
                participants.reverse();
            }
            let outcomes = engine.round(round, &participants).unwrap();
            for (outcome, participant) in outcomes.iter().zip(&participants) {
                assert_eq!(outcome.terminal, participant.terminal);
            }
        }
        engine.virtual_mean()
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn averaging_layer_by_layer_is_averaging_the_reassembled_models() {
    let mut engine = engine(thin_policy(), settings(), &[20, 9, 30]);
    let cuts = [2, 4, 6];
    let participants: Vec<_> =
        (0..3).map(|terminal| Participant { terminal, cut: cuts[terminal], q: 0.0 }).collect();
    engine.round(0, &participants).unwrap();
    let mean = engine.virtual_mean();
    let samples = [16.0, 9.0, 16.0];
    for layer in 1..=8 {
        for index in 0..mean.layer(layer).len() {
            let copy = |terminal: usize| {
                let server = engine.server().weights();
                let own = engine.terminals()[terminal].weights();
                let holder = if layer <= cuts[terminal] { own } else { server };
                f64::from(holder.layer(layer)[index])
            };
            let whole: f64 = (0..3).map(|n| samples[n] / 41.0 * copy(n)).sum();
            assert!((f64::from(mean.layer(layer)[index]) - whole).abs() < 1e-6);
        }
    }
}

#[test]
fn q_zero_is_the_uncompressed_run_bit_for_bit_for_every_operator() {
    let run = |compressor| {
        let mut engine = engine(thin_policy(), Settings { compressor, ..settings() }, &[20, 20]);
        for round in 0..3 {
            engine.round(round, &all_at(&engine, 3, 0.0)).unwrap();
        }
        engine.virtual_mean()
    };
    let quantized = run(Compressor::Quantize);
    assert_eq!(quantized, run(Compressor::TopK));
    assert_eq!(quantized, run(Compressor::RandomTopK));
}

fn trajectory(evaluate: bool, threads: usize) -> (Vec<f64>, Weights) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let settings = Settings { momentum: 0.9, ..settings() };
        let mut engine = engine(thin_policy(), settings, &[20, 9, 30, 40, 16]);
        let mut losses = Vec::new();
        for round in 0..6 {
            let mut participants = all_at(&engine, 3, 0.75);
            participants.retain(|one| !(one.terminal as u64 + round).is_multiple_of(3));
            participants[0].cut = 5;
            losses.extend(engine.round(round, &participants).unwrap().iter().map(|o| o.loss));
            if evaluate {
                let mut actions = vec![0.0; 8];
                let observations = values(24, 7);
                engine.model().act(&engine.virtual_mean(), &observations, &mut actions);
            }
            if round % 3 == 2 {
                engine.aggregate(&everybody(&engine));
            }
        }
        (losses, engine.virtual_mean())
    })
}

#[test]
fn the_same_seed_gives_the_same_trajectory_with_any_number_of_threads() {
    assert_eq!(trajectory(false, 1), trajectory(false, 1));
    assert_eq!(trajectory(false, 1), trajectory(false, 3));
}

#[test]
fn evaluating_changes_nothing() {
    assert_eq!(trajectory(false, 2), trajectory(true, 2));
}

#[test]
fn a_minibatch_does_not_depend_on_who_else_takes_part() {
    let loss = |terminals: &[usize]| {
        let mut engine = engine(thin_policy(), settings(), &[40, 40, 40]);
        let one = |terminal: &usize| Participant { terminal: *terminal, cut: 3, q: 0.75 };
        let participants: Vec<_> = terminals.iter().map(one).collect();
        let outcomes = engine.round(4, &participants).unwrap();
        outcomes.iter().find(|outcome| outcome.terminal == 1).unwrap().loss
    };
    assert_eq!(loss(&[1]), loss(&[0, 1, 2]));
}

#[test]
fn eq_sys_upd_unscheduled_who_takes_no_part_keeps_its_layers() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let before = engine.terminals()[0].weights().clone();
    engine.round(0, &[Participant { terminal: 1, cut: 4, q: 0.0 }]).unwrap();
    assert_eq!(engine.terminals()[0].weights(), &before);
    assert_ne!(engine.terminals()[1].weights(), &before);
}

#[test]
fn a_terminal_downloads_what_it_lacks_and_owes_what_it_trained() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let bytes = |engine: &Engine<Policy>, first: usize, last: usize| {
        let numbers: usize = (first..=last).map(|l| engine.model().n_parameters(l)).sum();
        4 * numbers as u64 + 20
    };
    assert_eq!(engine.missing_bytes(0, 6).0, 0, "at the start everybody holds the base policy");
    assert_eq!(engine.owed_bytes(0).0, 0);
    let train = |engine: &mut Engine<Policy>, round, cut| {
        engine.round(round, &[Participant { terminal: 0, cut, q: 0.0 }]).unwrap()[0].sync_down.0
    };
    assert_eq!(train(&mut engine, 0, 3), 0);
    assert_eq!(engine.owed_bytes(0).0, bytes(&engine, 1, 3));
    assert_eq!(engine.terminals()[0].upload(0).len() as u64, engine.owed_bytes(0).0);
    engine.aggregate(&[0]);
    assert_eq!((engine.terminals()[0].held(), engine.owed_bytes(0).0), (0, 0));
    assert_eq!(engine.missing_bytes(0, 2).0, bytes(&engine, 1, 2));
    assert_eq!(train(&mut engine, 1, 2), bytes(&engine, 1, 2));
    assert_eq!(engine.missing_bytes(0, 5).0, bytes(&engine, 3, 5));
    assert_eq!(train(&mut engine, 2, 5), bytes(&engine, 3, 5), "a deeper cut in between");
    assert_eq!(train(&mut engine, 3, 4), 0, "a shallower cut needs nothing");
    assert_eq!(engine.owed_bytes(0).0, bytes(&engine, 1, 5));
}

#[test]
fn a_copy_that_does_not_arrive_is_lost() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    let first = engine.terminals()[0].weights().clone();
    engine.aggregate(&[0]);
    for layer in 1..=3 {
        assert_eq!(engine.server().weights().layer(layer), first.layer(layer));
    }
}

#[test]
fn new_weights_reset_the_velocity_of_a_terminal() {
    let settings = Settings { momentum: 0.9, ..settings() };
    let mut engine = engine(thin_policy(), settings, &[20]);
    engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    assert!(engine.terminals[0].velocity.layer(1).iter().any(|speed| *speed != 0.0));
    engine.aggregate(&[0]);
    let message = engine.server().weights_message(1, 0, 1..=2);
    let model = engine.model.clone();
    engine.terminals[0].receive(&*model, &message).unwrap();
    assert!(engine.terminals[0].velocity.layer(1).is_empty());
    assert_eq!(engine.terminals[0].receive(&*model, &message).unwrap_err().field, "first layer");
}

#[test]
fn an_impossible_participant_is_named() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let mut said = |terminal, cut, q| {
        let one = Participant { terminal, cut, q };
        engine.round(0, &[one]).unwrap_err().to_string()
    };
    assert_eq!(said(2, 3, 0.0), "participant 2: index = 2, expected below 2");
    assert_eq!(said(1, 9, 0.0), "participant 1: cut = 9, expected 1 to 8");
    assert_eq!(said(1, 3, f64::NAN), "participant 1: q = NaN, expected 0 to 1");
    let twice = [Participant { terminal: 0, cut: 2, q: 0.0 }; 2];
    assert!(matches!(engine.round(0, &twice), Err(RoundError::Participant { .. })));
}

#[test]
fn training_lowers_the_loss_also_when_compressed() {
    for compressor in [Compressor::Quantize, Compressor::TopK, Compressor::RandomTopK] {
        let mut engine = engine(thin_policy(), Settings { compressor, ..settings() }, &[40, 40]);
        let mut losses = Vec::new();
        for round in 0..150 {
            let outcomes = engine.round(round, &all_at(&engine, 3, 0.75)).unwrap();
            losses.push(crate::split::engine::training_loss(&outcomes));
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (early, late) = (mean(&losses[..10]), mean(&losses[140..]));
        assert!(late < 0.7 * early, "{compressor:?}: {early} to {late}");
    }
}

#[test]
fn a_broadcast_to_one_terminal_is_an_ordinary_round() {
    let run = |broadcast: bool| {
        let mut engine = engine(thin_policy(), settings(), &[20]);
        for round in 0..4 {
            let all = all_at(&engine, 3, 0.75);
            let done = if broadcast {
                engine.broadcast_round(round, &all)
            } else {
                engine.round(round, &all)
            };
            done.unwrap();
        }
        engine.virtual_mean()
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_broadcast_leaves_the_server_gradient_exact_and_the_terminals_biased() {
    let mut own = engine(thin_policy(), settings(), &[20, 20]);
    let mut common = engine(thin_policy(), settings(), &[20, 20]);
    let all = all_at(&own, 3, 0.0);
    let (first, second) = (own.round(0, &all).unwrap(), common.broadcast_round(0, &all).unwrap());
    assert_eq!(own.server().weights(), common.server().weights());
    assert_ne!(own.terminals()[0].weights(), common.terminals()[0].weights());
    assert_eq!(first[0].loss, second[0].loss);
    assert_eq!((first[1].up, first[1].down), (second[1].up, second[1].down));
    let mixed = [Participant { cut: 2, ..all[0] }, all[1]];
    assert!(matches!(common.broadcast_round(1, &mixed), Err(RoundError::Participant { .. })));
}
