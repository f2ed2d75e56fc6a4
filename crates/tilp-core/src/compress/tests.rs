//! Compression: what survives, how well, in how many bytes.

use super::*;
use crate::rng::Seed;
use rand::RngExt as _;

const ALL: [Compressor; 3] = [Compressor::Quantize, Compressor::TopK, Compressor::RandomTopK];

/// Reproducible values between -1 and 1.
fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut rng = Seed::new(seed.into()).named("values").rng();
    (0..count).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
}

fn round_trip(compressor: Compressor, x: &[f32], elements: usize, q: f64, draw: u64) -> Vec<f32> {
    let (mut bytes, mut y) = (Vec::new(), Vec::new());
    let mut rng = Seed::new(1).at(draw).rng();
    let sent = compressor.encode(x, elements, q, &mut rng, &mut bytes);
    let read = decode(&bytes, elements, x.len() / elements, &mut y).unwrap();
    assert_eq!(sent, read, "both sides know the same packing");
    y
}

#[test]
fn top_k_keeps_exactly_the_largest_and_leaves_them_unchanged() {
    let x = values(50, 3);
    for q in [0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0] {
        let kept = kept_per_sample(50, q);
        assert_eq!(kept, (((1.0 - q) * 50.0 - 1e-6).ceil() as usize).max(1));
        let y = round_trip(Compressor::TopK, &x, 50, q, 0);
        assert_eq!(y.iter().filter(|value| **value != 0.0).count(), kept, "q = {q}");
        let smallest_kept =
            y.iter().filter(|v| **v != 0.0).fold(f32::MAX, |least, v| least.min(v.abs()));
        for (a, b) in x.iter().zip(&y) {
            assert!(a == b || (*b == 0.0 && a.abs() <= smallest_kept));
        }
        let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
        let error = square(&mut x.iter().zip(&y).map(|(a, b)| a - b));
        let bound = (1.0 - kept as f32 / 50.0) * square(&mut x.iter().copied());
        assert!(error <= bound + 1e-6, "q = {q}: {error} above {bound}");
    }
}

#[test]
fn top_k_keeps_as_much_energy_as_the_best_of_all_subsets() {
    let x = values(10, 4);
    for kept in 1..=10u32 {
        let energy =
            |chosen: &mut dyn Iterator<Item = usize>| chosen.map(|i| x[i] * x[i]).sum::<f32>();
        let ours =
            energy(&mut top_positions(&x, kept as usize).iter().map(|position| *position as usize));
        let subsets = (0u32..1 << 10).filter(|set| set.count_ones() == kept);
        let best = subsets
            .map(|set| energy(&mut (0..10).filter(|i| set >> i & 1 == 1)))
            .fold(0.0f32, f32::max);
        assert!((ours - best).abs() < 1e-5);
    }
}

#[test]
fn of_equal_magnitudes_the_first_ones_are_kept() {
    assert_eq!(top_positions(&[1.0, -2.0, 1.0, 2.0, -1.0], 3), [0, 1, 3]);
    assert_eq!(top_positions(&[0.0; 6], 2), [0, 1]);
}

#[test]
fn the_share_of_a_decimal_q_is_not_one_too_many() {
    assert_eq!(kept_per_sample(10, 0.7), 3);
    assert_eq!(kept_per_sample(384, 0.75), 96);
    assert_eq!(kept_per_sample(7, 1.0), 1);
    assert_eq!(kept_per_sample(7, 0.0), 7);
}

#[test]
fn random_top_k_keeps_as_many_and_now_and_then_one_from_outside() {
    let x = values(100, 5);
    let top = top_positions(&x, 20);
    let mut outside = 0;
    for draw in 0..200 {
        let y = round_trip(Compressor::RandomTopK, &x, 100, 0.8, draw);
        let kept: Vec<u32> = (0..100).filter(|i| y[*i as usize] != 0.0).collect();
        assert_eq!(kept.len(), 20);
        assert!(kept.iter().all(|i| y[*i as usize] == x[*i as usize]));
        outside += kept.iter().filter(|position| !top.contains(position)).count();
    }
    // Binomial with 4000 trials of chance 0.1: five standard deviations are 95.
    assert!((outside as i32 - 400).abs() < 95, "{outside} of 4000 from outside");
}

#[test]
fn quantisation_is_unbiased_and_off_by_at_most_one_step() {
    let x: Vec<f32> = values(64, 6).iter().map(|v| 3.0 * v + 1.0).collect();
    let (low, high) = x.iter().fold((f32::MAX, f32::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    for (q, bits) in [(0.75, 8), (0.875, 4), (0.9, 3), (0.97, 1)] {
        // Offset and step are rounded outwards to 8 digits: the step grows by less than 3 %.
        let step = f64::from((high - low) / ((1u32 << bits) - 1) as f32) * 1.03;
        let draws = 2000;
        let mut mean = vec![0.0f64; 64];
        for draw in 0..draws {
            for ((sum, a), b) in
                mean.iter_mut().zip(&x).zip(round_trip(Compressor::Quantize, &x, 64, q, draw))
            {
                let error = f64::from(b) - f64::from(*a);
                assert!(error.abs() <= step, "q = {q}: error {error}, step {step}");
                *sum += error / draws as f64;
            }
        }
        // The error of one draw has deviation at most half a step; of 64 means none should lie
        // beyond 4.5 of theirs (chance 4e-4).
        let bound = 4.5 * 0.5 * step / (draws as f64).sqrt();
        assert!(mean.iter().all(|error| error.abs() < bound), "q = {q}: {mean:?}, bound {bound}");
    }
}

#[test]
fn constant_tiny_and_huge_groups_survive_quantisation() {
    for value in [0.0, 1.0, 0.1, -0.1, 1e-30, -3e20] {
        let y = round_trip(Compressor::Quantize, &[value; 70], 70, 0.75, 0);
        assert!(y.iter().all(|v| (v - value).abs() <= 0.01 * value.abs()), "{value}: {y:?}");
    }
    let mut broken = vec![1.0; 64];
    broken[5] = f32::NAN;
    let y = round_trip(Compressor::Quantize, &broken, 64, 0.75, 0);
    assert!(y.iter().all(|v| v.is_nan()), "a broken value must not be hidden");
}

#[test]
fn q_zero_is_the_identity_bit_for_bit() {
    let x = values(96, 7);
    for compressor in ALL {
        assert_eq!(round_trip(compressor, &x, 32, 0.0, 0), x);
    }
}

#[test]
fn the_payload_is_as_long_as_computed_and_never_grows_with_q() {
    for compressor in ALL {
        for (elements, samples) in [(1, 1), (7, 3), (96, 16), (384, 5)] {
            let x = values(elements * samples, 8);
            let mut last = HEADER_BYTES + 4 * elements * samples;
            for step in 0..=100 {
                let q = f64::from(step) / 100.0;
                let (mut up, mut down) = (Vec::new(), Vec::new());
                let mut rng = Seed::new(2).rng();
                let packing = compressor.encode(&x, elements, q, &mut rng, &mut up);
                encode_gradient(&packing, &x, elements, &mut rng, &mut down);
                assert_eq!(up.len(), compressor.payload_bytes(elements, samples, q));
                assert_eq!(down.len(), compressor.gradient_bytes(elements, samples, q));
                assert!(up.len() <= last, "{compressor:?} {elements} x {samples}, q = {q}");
                assert!(down.len() <= up.len());
                last = up.len();
            }
        }
    }
}

#[test]
fn the_shortest_of_dense_bitmap_and_indices_is_sent() {
    let bytes = |q| Compressor::TopK.payload_bytes(65_536, 1, q) - HEADER_BYTES;
    let ratio = |q| bytes(q) as f64 / 262_144.0;
    for (q, expected) in [(0.0, 1.0), (0.3, 0.731), (0.5, 0.531), (0.9, 0.131), (0.99, 0.015)] {
        assert!((ratio(q) - expected).abs() < 1e-3, "q = {q}: {}", ratio(q));
    }
    assert_eq!(nominal_bytes(100, 2, 0.75), 200);
}

#[test]
fn the_gradient_returns_on_the_mask_of_the_activation_and_nowhere_else() {
    let (x, gradient) = (values(200, 9), values(200, 10));
    for compressor in [Compressor::TopK, Compressor::RandomTopK] {
        let (mut up, mut down, mut y, mut back) = (vec![], vec![], vec![], vec![]);
        let mut rng = Seed::new(3).rng();
        let sent = compressor.encode(&x, 50, 0.7, &mut rng, &mut up);
        let read = decode(&up, 50, 4, &mut y).unwrap();
        encode_gradient(&read, &gradient, 50, &mut rng, &mut down);
        decode_gradient(&down, &sent, 50, 4, &mut back).unwrap();
        for i in 0..200 {
            // Where a value was dropped the decoded activation does not depend on it.
            let expected = if y[i] == 0.0 { 0.0 } else { gradient[i] };
            assert_eq!(back[i], expected);
        }
    }
}

#[test]
fn error_feedback_loses_nothing() {
    let mut feedback = ErrorFeedback::new(40);
    let (mut given, mut sent) = (vec![0.0f64; 40], vec![0.0f64; 40]);
    for step in 0..50 {
        let input = values(40, 100 + step);
        let compensated = feedback.compensate(&input);
        let output = round_trip(Compressor::TopK, &compensated, 40, 0.9, 0);
        feedback.settle(&input, &output);
        for i in 0..40 {
            given[i] += f64::from(input[i]);
            sent[i] += f64::from(output[i]);
            assert!((given[i] - sent[i] - feedback.residual()[i]).abs() < 1e-12);
        }
    }
}

#[test]
fn payloads_cut_short_or_changed_are_errors_and_never_panics() {
    let x = values(4 * 48, 11);
    let noise = values(20_000, 12);
    let mut y = Vec::new();
    for compressor in ALL {
        for q in [0.0, 0.5, 0.75, 0.97] {
            let mut bytes = Vec::new();
            compressor.encode(&x, 48, q, &mut Seed::new(4).rng(), &mut bytes);
            for length in 0..bytes.len() {
                assert!(decode(&bytes[..length], 48, 4, &mut y).is_err());
            }
            bytes.push(0);
            assert!(decode(&bytes, 48, 4, &mut y).is_err());
            bytes.pop();
            assert!(decode(&bytes, 47, 4, &mut y).is_err());
            assert!(decode(&bytes, 48, 3, &mut y).is_err());
            for (round, noise) in noise.chunks(2).take(500).enumerate() {
                let mut broken = bytes.clone();
                let at = (round * 31 + (noise[0].abs() * 40.0) as usize) % broken.len();
                broken[at] ^= (noise[1] * 128.0 + 128.0) as u8 | 1;
                let _ = decode(&broken, 48, 4, &mut y);
                assert!(y.len() <= 4 * 48);
            }
        }
    }
    for chunk in noise.chunks(40) {
        let random: Vec<u8> = chunk.iter().map(|v| (v * 128.0 + 128.0) as u8).collect();
        assert!(decode(&random, 48, 4, &mut y).is_err());
        assert!(decode_gradient(&random, &Packing::Dense, 48, 4, &mut y).is_err());
    }
}

#[test]
fn an_error_names_field_value_and_expectation() {
    let mut bytes = Vec::new();
    Compressor::Quantize.encode(&[1.0; 8], 4, 0.75, &mut Seed::new(5).rng(), &mut bytes);
    let mut y = Vec::new();
    let said = decode(&bytes, 5, 2, &mut y).unwrap_err().to_string();
    assert_eq!(said, "elements = 4, expected 5");
    bytes[1] = 30;
    let said = decode(&bytes, 4, 2, &mut y).unwrap_err().to_string();
    assert_eq!(said, "bits = 30, expected 1 to 23");
}
