//! The encoding of layers that are exchanged between server and terminals.
//!
//! Rounding is stochastic and unbiased in both directions. A step of training moves a weight by
//! less than the distance of two neighbouring levels of 16 or 8 bits, so rounding to the nearest
//! level would undo most of it.

use rand::Rng as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantize;
use crate::rng::Rng;
use crate::wire::{get_floats, put_floats};

/// How the parameters of a layer are encoded. It is written as its number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(with = "u32")]
pub enum Exchange {
    /// 32 bits: as they are.
    #[default]
    Single,
    /// 16 bits: IEEE half precision.
    Half,
    /// 8 bits: quantised in groups of 64 with their own offset and step.
    Byte,
}

/// Bits per parameter in a group.
const BYTE_BITS: u32 = 8;

impl Exchange {
    /// All encodings.
    pub const ALL: [Exchange; 3] = [Exchange::Single, Exchange::Half, Exchange::Byte];

    /// Bits per parameter, the headers of groups not counted.
    pub fn bits(self) -> u32 {
        match self {
            Exchange::Single => 32,
            Exchange::Half => 16,
            Exchange::Byte => BYTE_BITS,
        }
    }

    /// Whether this is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The encoding with this number of bits.
    pub fn with_bits(bits: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.bits() == bits)
    }

    /// Bytes of a layer with this number of parameters.
    pub fn layer_bytes(self, n_parameters: usize) -> usize {
        match self {
            Exchange::Single => 4 * n_parameters,
            Exchange::Half => 2 * n_parameters,
            Exchange::Byte => quantize::body_bytes(n_parameters, BYTE_BITS),
        }
    }

    /// Appends the parameters of one layer. 32 bits need no random numbers.
    pub fn put(self, parameters: &[f32], rng: &mut Rng, bytes: &mut Vec<u8>) {
        match self {
            Exchange::Single => put_floats(parameters, bytes),
            Exchange::Half => put_halves(parameters, rng, bytes),
            Exchange::Byte => quantize::put(parameters, BYTE_BITS, rng, bytes),
        }
    }

    /// Reads the parameters of one layer; the length of `body` has been checked.
    pub fn get(self, body: &[u8], n_parameters: usize, parameters: &mut Vec<f32>) {
        match self {
            Exchange::Single => get_floats(body, parameters),
            Exchange::Half => {
                let halves = body.as_chunks::<2>().0.iter().map(|half| u16::from_le_bytes(*half));
                parameters.clear();
                parameters.extend(halves.map(from_half));
            }
            Exchange::Byte => quantize::get(body, n_parameters, BYTE_BITS, parameters),
        }
    }
}

impl TryFrom<u32> for Exchange {
    type Error = &'static str;

    fn try_from(bits: u32) -> Result<Self, Self::Error> {
        Self::with_bits(bits).ok_or("expected 32, 16 or 8")
    }
}

impl From<Exchange> for u32 {
    fn from(encoding: Exchange) -> Self {
        encoding.bits()
    }
}

/// Values whose random numbers are drawn at once.
const DRAWN: usize = 64;

fn put_halves(values: &[f32], rng: &mut Rng, bytes: &mut Vec<u8>) {
    let mut noise = [0u8; 4 * DRAWN];
    for group in values.chunks(DRAWN) {
        rng.fill_bytes(&mut noise);
        for (value, draw) in group.iter().zip(noise.as_chunks::<4>().0) {
            let uniform = (u32::from_le_bytes(*draw) >> 8) as f32 / (1 << 24) as f32;
            bytes.extend(to_half(*value, uniform).to_le_bytes());
        }
    }
}

/// Exponents of the smallest and the largest normal half.
const LEAST_EXPONENT: i32 = -14;
const MOST_EXPONENT: i32 = 15;
const INFINITE_HALF: u32 = 0x7c00;

/// One of the two halves around a value: the larger magnitude if `uniform` is below the share of
/// the way to it. Magnitudes beyond the largest half become infinite.
fn to_half(value: f32, uniform: f32) -> u16 {
    let sign = ((value.to_bits() >> 16) & 0x8000) as u16;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    let exponent = (magnitude.to_bits() >> 23) as i32 - 127;
    if exponent > MOST_EXPONENT {
        return sign | INFINITE_HALF as u16;
    }
    let exponent = exponent.max(LEAST_EXPONENT);
    // A power of two: the product is exact, and 1024 to 2047 for normal halves.
    let place = magnitude * f32::from_bits(((10 - exponent + 127) as u32) << 23);
    let below = place as u32;
    let code = below + u32::from(uniform < place - below as f32);
    // A code of 2048 carries into the exponent.
    let bits = (((exponent + 15) as u32) << 10) + code - 1024;
    sign | bits.min(INFINITE_HALF) as u16
}

fn from_half(half: u16) -> f32 {
    let (exponent, digits) = (u32::from(half >> 10) & 31, u32::from(half) & 1023);
    let magnitude = match exponent {
        31 => f32::from_bits(0x7f80_0000 | (digits << 13)),
        0 => digits as f32 * f32::from_bits((127 - 24) << 23),
        _ => (1024 + digits) as f32 * f32::from_bits((exponent + 127 - 25) << 23),
    };
    if half & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Seed;

    fn round_trip(encoding: Exchange, values: &[f32], seed: u64) -> Vec<f32> {
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        encoding.put(values, &mut Seed::new(seed).rng(), &mut bytes);
        assert_eq!(bytes.len(), encoding.layer_bytes(values.len()));
        encoding.get(&bytes, values.len(), &mut read);
        assert_eq!(read.len(), values.len());
        read
    }

    /// Weights of a few sizes, an odd number of them.
    fn weights() -> Vec<f32> {
        (0..333).map(|n| (0.37 * n as f32).sin() * if n % 64 == 7 { 1.5 } else { 0.2 }).collect()
    }

    #[test]
    fn every_half_read_and_written_again_is_the_half() {
        for half in 0..=u16::MAX {
            let value = from_half(half);
            for uniform in [0.0, 0.5, 0.999_999] {
                let again = to_half(value, uniform);
                assert!(again == half || value.is_nan(), "{half:#06x} became {again:#06x}");
            }
        }
    }

    #[test]
    fn halves_are_those_of_ieee_754() {
        let known = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ];
        for (half, value) in known {
            assert_eq!(from_half(half), value, "{half:#06x}");
        }
        assert!(from_half(0x7e00).is_nan() && from_half(to_half(f32::NAN, 0.3)).is_nan());
        assert_eq!(to_half(1e6, 0.5), 0x7c00);
        assert_eq!(to_half(-f32::INFINITY, 0.5), 0xfc00);
        assert_eq!(to_half(65519.9, 0.0), 0x7c00, "the level above the largest half");
    }

    #[test]
    fn a_value_becomes_one_of_the_two_levels_around_it_and_the_mean_is_the_value() {
        let values = weights();
        for (encoding, error) in [(Exchange::Half, 1e-3), (Exchange::Byte, 0.014)] {
            let mut mean = vec![0.0f64; values.len()];
            for seed in 0..400 {
                for (sum, read) in mean.iter_mut().zip(round_trip(encoding, &values, seed)) {
                    *sum += f64::from(read) / 400.0;
                }
            }
            for ((value, read), mean) in
                values.iter().zip(round_trip(encoding, &values, 1)).zip(&mean)
            {
                assert!((value - read).abs() < error, "{encoding:?}: {value} became {read}");
                // Twenty times more exact than a single rounding, five deviations wide.
                let wide = 5.0 * f64::from(error) / 2.0 / 20.0;
                assert!((f64::from(*value) - mean).abs() < wide, "{encoding:?}: {value}, {mean}");
            }
        }
        assert_eq!(round_trip(Exchange::Single, &values, 1), values);
    }

    proptest! {
        #[test]
        fn every_weight_arrives_within_a_level_of_itself(
            weights in prop::collection::vec(-100.0f32..100.0, 1..200),
            seed in any::<u64>(),
        ) {
            for encoding in Exchange::ALL {
                for (group, read) in weights.chunks(64).zip(round_trip(encoding, &weights, seed).chunks(64)) {
                    let low = group.iter().copied().fold(f32::INFINITY, f32::min);
                    let high = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    // A level of a byte with rounded ends, and eleven bits of a half.
                    let most = high.abs().max(low.abs());
                    let near = 1.01 * (high - low) / 255.0 + most / 1000.0 + 1e-7;
                    for (value, read) in group.iter().zip(read) {
                        prop_assert!((value - read).abs() <= near, "{encoding:?}: {value}, {read}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_broken_weight_does_not_arrive_as_a_sound_one() {
        for encoding in Exchange::ALL {
            for broken in [f32::NAN, f32::INFINITY] {
                let read = round_trip(encoding, &[0.5, broken, -0.5], 3);
                assert!(!read[1].is_finite(), "{encoding:?}: {broken} became {}", read[1]);
            }
        }
    }

    #[test]
    fn sizes_are_exact() {
        let bytes = Exchange::ALL.map(|encoding| encoding.layer_bytes(8544));
        assert_eq!(bytes, [34_176, 17_088, 8544 + 4 * 134]);
        assert_eq!(Exchange::ALL.map(|encoding| encoding.layer_bytes(0)), [0, 0, 0]);
        assert_eq!(Exchange::with_bits(16), Some(Exchange::Half));
        assert_eq!(Exchange::with_bits(4), None);
    }
}
