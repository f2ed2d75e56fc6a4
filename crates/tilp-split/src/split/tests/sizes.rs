//! Sizes computed from the architecture against sizes counted.

use super::naive::naive;
use super::*;
use crate::split::message::{Activation, CutGradient};

#[test]
fn operations_are_six_times_the_multiply_adds_counted_one_by_one() {
    let policy = policy();
    let weights = policy.initial(Seed::new(1));
    let observation = values(60, 8);
    for cut in 1..=8 {
        let (activation, products) = naive(&policy, &weights, &observation, cut);
        let profile = policy.profile(cut, 16, momentum(0.9));
        assert_eq!(profile.operations.0, 6.0 * products as f64, "cut {cut}");
        assert_eq!(profile.activation_elements, activation.len());
    }
}

#[test]
fn memory_is_what_the_buffers_really_hold() {
    let policy = policy();
    let weights = policy.initial(Seed::new(1));
    for cut in 1..=8 {
        let mut workspace = policy.workspace();
        policy.forward(1..=cut, &weights, &values(16 * 60, 8), &mut workspace);
        let parameters: usize = (1..=cut).map(|layer| weights.layer(layer).len()).sum();
        let floats = |copies| 4 * (copies * parameters + workspace.n_cached(cut)) as u64;
        assert_eq!(policy.profile(cut, 16, momentum(0.9)).memory.0, floats(3), "cut {cut}");
        assert_eq!(policy.profile(cut, 16, momentum(0.0)).memory.0, floats(2), "cut {cut}");
        assert_eq!(policy.profile(cut, 16, adamw()).memory.0, floats(4), "cut {cut}");
        assert_eq!(policy.profile(cut, 16, momentum(0.9)).parameters.0, 4 * parameters as u64);
    }
}

#[test]
fn a_deeper_cut_sends_less_and_costs_the_terminal_more() {
    let policy = policy();
    let profiles: Vec<_> =
        policy.cuts().iter().map(|cut| policy.profile(*cut, 16, momentum(0.9))).collect();
    for pair in profiles.windows(2) {
        assert!(pair[1].activation_elements <= pair[0].activation_elements);
        assert!(pair[1].operations > pair[0].operations);
        assert!(pair[1].parameters > pair[0].parameters && pair[1].memory > pair[0].memory);
    }
}

#[test]
fn the_sizes_of_the_default_policy_are_these() {
    let policy = policy();
    let sizes: Vec<usize> = (1..=8).map(|layer| policy.n_parameters(layer)).collect();
    assert_eq!(sizes, [2304, 8544, 10752, 8544, 10752, 8544, 8544, 580]);
    let rows: Vec<(usize, f64, u64, u64)> = policy
        .cuts()
        .iter()
        .map(|cut| policy.profile(*cut, 16, momentum(0.9)))
        .map(|p| (p.activation_elements, p.operations.0, p.parameters.0, p.memory.0))
        .collect();
    assert_eq!(
        rows,
        [
            (384, 656_640.0, 43_392, 444_288),
            (192, 1_375_488.0, 86_400, 896_640),
            (192, 1_684_224.0, 120_576, 1_132_800),
            (96, 2_029_824.0, 163_584, 1_414_272),
            (96, 2_180_736.0, 197_760, 1_581_312),
        ]
    );
}

#[test]
fn the_bytes_of_a_round_are_known_beforehand() {
    for compressor in [Compressor::Quantize, Compressor::TopK, Compressor::RandomTopK] {
        for (cut, q) in [(2, 0.0), (3, 0.75), (5, 0.9), (6, 0.3)] {
            // Minibatches have 16 samples; the second terminal has only 9 in all.
            let mut engine = engine(policy(), Settings { compressor, ..settings() }, &[20, 9]);
            let outcomes = engine.round(0, &all_at(&engine, cut, q)).unwrap();
            let elements = engine.model().n_elements(cut);
            for (outcome, samples) in outcomes.iter().zip([16, 9]) {
                let up = Activation::n_bytes(compressor, elements, 4, samples, q);
                let down = CutGradient::n_bytes(compressor, elements, samples, q);
                assert_eq!((outcome.up.0, outcome.down.0), (up as u64, down as u64));
            }
        }
    }
    let at = |q| Activation::n_bytes(Compressor::Quantize, 384, 4, 16, q);
    assert_eq!([at(0.0), at(0.75), at(0.9)], [24_874, 6_826, 2_986]);
}

#[test]
fn an_activation_of_a_stranger_is_refused_and_never_panics() {
    use crate::split::server::{ServerWork, serve};
    let engine = engine(thin_policy(), settings(), &[20]);
    let model = engine.model();
    let (mut work, mut gradients) = (ServerWork::new(model), Weights::zeros(model));
    let (order, settings) = (order(&settings(), 0, 0, 3, 0.9), settings());
    let good = locked(&engine.links[&TerminalId(0)]).exchange(&order.to_bytes()).unwrap();
    let weights = engine.server().weights();
    let mut serve = |bytes: &[u8]| {
        serve(order.context, weights, model, &settings, bytes, &mut work, &mut gradients)
    };
    assert!(serve(&good).is_ok());
    for length in 0..good.len() {
        assert!(serve(&good[..length]).is_err());
    }
    let mut cut = good.clone();
    cut[4] = 8;
    assert_eq!(serve(&cut).unwrap_err().to_string(), "cut = 8, expected 3");
    for (place, noise) in values(4000, 13).iter().enumerate() {
        let mut broken = good.clone();
        let at = place * 7919 % broken.len();
        broken[at] ^= (noise * 128.0 + 128.0) as u8 | 1;
        let _ = serve(&broken); // an error or a loss, but no panic
    }
}
