//! Layers kept, downloaded, uploaded and averaged.

use super::*;
use crate::split::engine::RoundError;
use crate::split::message::LayerWeights;

#[test]
fn without_participants_no_weight_changes() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let before = engine.virtual_mean();
    assert_eq!(engine.round(0, &[]), Ok(vec![]));
    assert_eq!(engine.virtual_mean(), before);
    engine.aggregate(&ids(&[0, 1])).unwrap();
    assert_eq!(engine.server().weights(), &before);
}

#[test]
fn a_single_participant_is_adopted_bit_for_bit() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    engine.round(0, &[Participant { terminal: TerminalId(1), cut: 4, q: 0.5 }]).unwrap();
    let own = own_weights(&engine, 1);
    engine.aggregate(&ids(&[1])).unwrap();
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
    let participants: Vec<_> = (0..3)
        .map(|n| Participant { terminal: TerminalId(n), cut: cuts[n as usize], q: 0.0 })
        .collect();
    engine.round(0, &participants).unwrap();
    let copies: Vec<Weights> = (0..3).map(|n| own_weights(&engine, n)).collect();
    let mean = engine.virtual_mean();
    let samples = [16.0, 9.0, 16.0];
    for layer in 1..=8 {
        for index in 0..mean.layer(layer).len() {
            let copy = |terminal: usize| {
                let server = engine.server().weights();
                let holder = if layer <= cuts[terminal] { &copies[terminal] } else { server };
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
        let settings = Settings { optimiser: momentum(0.9), ..settings() };
        let mut engine = engine(thin_policy(), settings, &[20, 9, 30, 40, 16]);
        let mut losses = Vec::new();
        for round in 0..6 {
            let mut participants = all_at(&engine, 3, 0.75);
            participants.retain(|one| !(u64::from(one.terminal.0) + round).is_multiple_of(3));
            participants[0].cut = 5;
            losses.extend(engine.round(round, &participants).unwrap().iter().map(|o| o.loss));
            if evaluate {
                let mut actions = vec![0.0; 8];
                let observations = values(24, 7);
                engine.model().act(&engine.virtual_mean(), &observations, &mut actions);
            }
            if round % 3 == 2 {
                engine.aggregate(&everybody(&engine)).unwrap();
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
    let loss = |terminals: &[u32]| {
        let mut engine = engine(thin_policy(), settings(), &[40, 40, 40]);
        let one = |terminal| Participant { terminal, cut: 3, q: 0.75 };
        let participants: Vec<_> = ids(terminals).into_iter().map(one).collect();
        let outcomes = engine.round(4, &participants).unwrap();
        outcomes.iter().find(|outcome| outcome.terminal == TerminalId(1)).unwrap().loss
    };
    assert_eq!(loss(&[1]), loss(&[0, 1, 2]));
}

#[test]
fn eq_sys_upd_unscheduled_who_takes_no_part_keeps_its_layers() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let before = own_weights(&engine, 0);
    engine.round(0, &[Participant { terminal: TerminalId(1), cut: 4, q: 0.0 }]).unwrap();
    assert_eq!(own_weights(&engine, 0), before);
    assert_ne!(own_weights(&engine, 1), before);
}

#[test]
fn a_terminal_downloads_what_it_lacks_and_owes_what_it_trained() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let id = TerminalId(0);
    let held = |engine: &Engine<Policy>| engine.terminal(id).unwrap().held();
    let missing = |engine: &Engine<Policy>, cut| engine.missing_bytes(id, cut).unwrap().0;
    let pending = |engine: &Engine<Policy>| engine.pending_bytes(id).unwrap().0;
    let bytes = |engine: &Engine<Policy>, first: usize, last: usize| {
        let numbers: usize = (first..=last).map(|l| engine.model().n_parameters(l)).sum();
        4 * numbers as u64 + 20
    };
    assert_eq!(missing(&engine, 6), 0, "at the start everybody holds the base policy");
    assert_eq!(pending(&engine), 0);
    let train = |engine: &mut Engine<Policy>, round, cut| {
        let one = [Participant { terminal: id, cut, q: 0.0 }];
        engine.round(round, &one).unwrap()[0].sync_down.0
    };
    assert_eq!(train(&mut engine, 0, 3), 0);
    assert_eq!(pending(&engine), bytes(&engine, 1, 3));
    engine.aggregate(&ids(&[0])).unwrap();
    assert_eq!((held(&engine), pending(&engine)), (0, 0));
    assert_eq!(missing(&engine, 2), bytes(&engine, 1, 2));
    assert_eq!(train(&mut engine, 1, 2), bytes(&engine, 1, 2));
    assert_eq!(missing(&engine, 5), bytes(&engine, 3, 5));
    assert_eq!(train(&mut engine, 2, 5), bytes(&engine, 3, 5), "a deeper cut in between");
    assert_eq!(train(&mut engine, 3, 4), 0, "a shallower cut needs nothing");
    assert_eq!(pending(&engine), bytes(&engine, 1, 5));
}

#[test]
fn a_copy_that_does_not_arrive_is_lost() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    let first = own_weights(&engine, 0);
    engine.aggregate(&ids(&[0])).unwrap();
    for layer in 1..=3 {
        assert_eq!(engine.server().weights().layer(layer), first.layer(layer));
    }
}

#[test]
fn new_weights_reset_the_velocity_of_a_terminal() {
    let settings = Settings { optimiser: momentum(0.9), ..settings() };
    let mut engine = engine(thin_policy(), settings, &[20]);
    engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    let moving = |engine: &Engine<Policy>| {
        let link = locked(&engine.links[&TerminalId(0)]);
        link.terminal().optimiser.layer(1).velocity.iter().any(|speed| *speed != 0.0)
    };
    assert!(moving(&engine));
    engine.aggregate(&ids(&[0])).unwrap();
    let context = Context { round: 1, terminal: TerminalId(0), cut: 2 };
    let layers = engine.server().weights().layers()[..2].to_vec();
    let message = LayerWeights { context, first: 1, layers }.to_bytes();
    let handle = || locked(&engine.links[&TerminalId(0)]).terminal_mut().handle(&message);
    handle().unwrap();
    assert!(!moving(&engine));
    assert_eq!(handle().unwrap_err().field, "layer", "a layer that is held already");
}

#[test]
fn an_impossible_participant_is_named() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let mut said = |terminal, cut, q| {
        let one = Participant { terminal: TerminalId(terminal), cut, q };
        engine.round(0, &[one]).unwrap_err().to_string()
    };
    assert_eq!(said(2, 3, 0.0), "terminal 2 is not a member");
    assert_eq!(said(1, 9, 0.0), "participant 1: cut = 9, expected 1 to 8");
    assert_eq!(said(1, 3, f64::NAN), "participant 1: q = NaN, expected 0 to 1");
    let twice = [Participant { terminal: TerminalId(0), cut: 2, q: 0.0 }; 2];
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
    assert_ne!(own_weights(&own, 0), own_weights(&common, 0));
    assert_eq!(first[0].loss, second[0].loss);
    assert_eq!((first[1].up, first[1].down), (second[1].up, second[1].down));
    let mixed = [Participant { cut: 2, ..all[0] }, all[1]];
    assert!(matches!(common.broadcast_round(1, &mixed), Err(RoundError::Participant { .. })));
}
