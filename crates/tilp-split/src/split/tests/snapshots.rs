//! Checkpoints and weight files.

use super::*;
use crate::snapshot::{Persist, Snapshot};

fn saved(engine: &Engine<Policy>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    engine.save(&mut snapshot);
    snapshot
}

fn go_on(engine: &mut Engine<Policy>, rounds: std::ops::Range<u64>) {
    for round in rounds {
        let mut participants = all_at(engine, 3, 0.75);
        participants[round as usize % 3].cut = 5;
        participants.remove(round as usize % 2);
        engine.round(round, &participants).unwrap();
        if round % 4 == 3 {
            engine.aggregate(&everybody(engine)).unwrap();
        }
    }
}

#[test]
fn a_restored_engine_goes_on_bit_for_bit() {
    let rates = Settings { server_rate: 0.01, client_rate: 0.01, ..settings() };
    let heavy = Settings { optimiser: momentum(0.9), ..rates };
    let clipped = Settings { optimiser: adamw(), clip: 0.5, ..rates };
    let keep = StateAtAggregation::Keep;
    let keeping = Settings { state_at_aggregation: keep, ..clipped };
    for settings in [heavy, clipped, keeping] {
        goes_on_bit_for_bit(thin_policy(), settings);
    }
    let adapted = adapted(thin_policy(), Lora { rank: 2, scale: 1.0 });
    goes_on_bit_for_bit(adapted, Settings { exchange: Exchange::Byte, ..keeping });
}

fn goes_on_bit_for_bit(model: Policy, settings: Settings) {
    let samples = [20, 30, 9];
    for stop in [0, 2, 4, 5] {
        let mut first = engine(model.clone(), settings, &samples);
        go_on(&mut first, 0..stop);
        let snapshot = saved(&first);
        let mut second = engine(model.clone(), settings, &samples);
        second.restore(&snapshot).unwrap();
        assert_eq!(saved(&second), snapshot);
        go_on(&mut first, stop..9);
        go_on(&mut second, stop..9);
        assert_eq!(saved(&first), saved(&second));
        assert_eq!(first.virtual_mean(), second.virtual_mean());
    }
}

#[test]
fn a_snapshot_of_another_model_names_the_tensor() {
    let snapshot = saved(&engine(policy(), settings(), &[20]));
    let mut other = engine(thin_policy(), settings(), &[20]);
    let said = other.restore(&snapshot).unwrap_err().to_string();
    assert_eq!(said, "checkpoint array `server/weights/1` has 2304 values, expected 128");
}

#[test]
fn a_policy_file_gives_back_architecture_and_weights() {
    let policy = policy();
    let weights = policy.initial(Seed::new(2));
    let bytes = policy.to_safetensors(&weights).unwrap();
    let (read, read_weights) = Policy::from_safetensors(&bytes).unwrap();
    assert_eq!(read.architecture(), policy.architecture());
    assert_eq!(read_weights, weights);
    assert_eq!(policy.to_safetensors(&weights).unwrap(), bytes);
}

#[test]
fn a_policy_file_of_another_shape_names_the_tensor() {
    let policy = policy();
    let bytes = policy.to_safetensors(&policy.initial(Seed::new(2))).unwrap();
    let said = thin_policy().weights_from(&bytes).unwrap_err().to_string();
    assert_eq!(said, "tensor layer1.token0.weight = F32 [32, 5], expected F32 [8, 3]");
    for length in [0, 7, 100, bytes.len() - 1] {
        assert!(Policy::from_safetensors(&bytes[..length]).is_err());
    }
}

#[test]
fn many_threads_act_alike() {
    use rayon::prelude::*;
    let policy = policy();
    let weights = policy.initial(Seed::new(2));
    let observations = values(16 * 60, 3);
    let act = || {
        let mut actions = vec![0.0; 64];
        policy.act(&weights, &observations, &mut actions);
        actions
    };
    let expected = act();
    assert!((0..40).into_par_iter().all(|_| act() == expected));
    let mut workspace = policy.workspace();
    assert_eq!(expected, policy.forward(1..=8, &weights, &observations, &mut workspace));
}
