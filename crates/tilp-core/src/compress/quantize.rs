//! Group-wise quantisation with stochastic rounding.
//!
//! Every group of 64 values carries its own offset and step as 16-bit floats with the exponent of
//! an f32 (so neither tiny gradients nor large activations leave the range), rounded outwards so
//! that the group lies inside; a value goes to one of its two neighbouring levels, with the
//! probability that makes the mean exact.

use rand::Rng as _;

use super::bits::{pack, packed_bytes, unpack};
use crate::lanes::vectorised;
use crate::rng::Rng;

const GROUP: usize = 64;
const GROUP_HEADER_BYTES: usize = 4;

/// More bits than this bring nothing over the 24 digits of an f32.
pub(super) const MAX_BITS: u32 = 23;

/// Bits per value for `count` values at this compression; none means 32, uncompressed, which is
/// also the answer where a payload is so small that its group headers would make it longer.
pub(super) fn bits(q: f64, count: usize) -> Option<u32> {
    // The small addition takes back the rounding of decimal shares such as 0.9.
    let bits = ((1.0 - q) * 32.0 + 1e-6).floor().clamp(1.0, 32.0) as u32;
    (bits <= MAX_BITS && body_bytes(count, bits) < 4 * count).then_some(bits)
}

/// Bytes of `count` values at this many bits.
pub(super) fn body_bytes(count: usize, bits: u32) -> usize {
    let (groups, rest) = (count / GROUP, count % GROUP);
    let last = if rest > 0 { GROUP_HEADER_BYTES + packed_bytes(rest, bits) } else { 0 };
    groups * (GROUP_HEADER_BYTES + packed_bytes(GROUP, bits)) + last
}

/// Appends the values at this many bits.
pub(super) fn put(values: &[f32], bits: u32, rng: &mut Rng, bytes: &mut Vec<u8>) {
    let levels = (1u32 << bits) - 1;
    let mut noise = [0u8; 4 * GROUP];
    for group in values.chunks(GROUP) {
        let (offset, step) = grid(group, levels);
        bytes.extend(((offset.to_bits() >> 16) as u16).to_le_bytes());
        bytes.extend(((step.to_bits() >> 16) as u16).to_le_bytes());
        rng.fill_bytes(&mut noise);
        let mut codes = [0u32; GROUP];
        let scale = if step > 0.0 { 1.0 / step } else { 0.0 };
        round(group, offset, scale, levels, &noise, &mut codes);
        pack(codes[..group.len()].iter().copied(), bits, bytes);
    }
}

vectorised! {
    /// The level of every value, by chance the one below or the one above.
    fn round(
        group: &[f32],
        offset: f32,
        scale: f32,
        levels: u32,
        noise: &[u8],
        codes: &mut [u32],
    ) {
        let draws = noise.as_chunks::<4>().0;
        for ((code, value), draw) in codes.iter_mut().zip(group).zip(draws) {
            let place = ((value - offset) * scale).clamp(0.0, levels as f32);
            let below = place as u32;
            let share = place - below as f32;
            let uniform = (u32::from_le_bytes(*draw) >> 8) as f32 / (1 << 24) as f32;
            *code = (below + u32::from(uniform < share)).min(levels);
        }
    }
}

/// Reads `count` values; the length of `body` has been checked.
pub(super) fn get(body: &[u8], count: usize, bits: u32, values: &mut Vec<f32>) {
    values.clear();
    values.reserve(count);
    for group in body.chunks(GROUP_HEADER_BYTES + packed_bytes(GROUP, bits)) {
        let (head, codes) = group.split_at(GROUP_HEADER_BYTES.min(group.len()));
        let half = |at: usize| {
            f32::from_bits(u32::from(u16::from_le_bytes([head[at], head[at + 1]])) << 16)
        };
        let (offset, step) = (half(0), half(2));
        let wanted = GROUP.min(count - values.len());
        values.extend(unpack(codes, bits).take(wanted).map(|code| offset + code as f32 * step));
    }
}

/// Offset and step of a group, both exact in 16 bits.
fn grid(group: &[f32], levels: u32) -> (f32, f32) {
    let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
    for value in group {
        low = low.min(*value);
        high = high.max(*value);
    }
    if !(low.is_finite() && high.is_finite()) || group.iter().any(|value| value.is_nan()) {
        return (f32::NAN, 0.0); // a broken value must not arrive as a sound one
    }
    let offset = round_down(low);
    (offset, round_up((high - offset) / levels as f32))
}

/// The largest 16-bit float not above `x`.
fn round_down(x: f32) -> f32 {
    let cut = f32::from_bits(x.to_bits() & 0xffff_0000);
    // Cutting digits moves towards zero; below zero that is up, so go one further.
    if cut > x { f32::from_bits(cut.to_bits() + 0x1_0000) } else { cut }
}

/// The smallest 16-bit float not below `x`, which is not negative.
fn round_up(x: f32) -> f32 {
    let cut = f32::from_bits(x.to_bits() & 0xffff_0000);
    if cut < x { f32::from_bits(cut.to_bits() + 0x1_0000) } else { cut }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_follow_from_the_share_not_sent() {
        let expected = [
            (0.0, None),
            (0.2, None),
            (0.3, Some(22)),
            (0.5, Some(16)),
            (0.75, Some(8)),
            (0.875, Some(4)),
            (0.9, Some(3)),
            (0.95, Some(1)),
            (1.0, Some(1)),
        ];
        assert_eq!(bits(0.9, 1), None, "one value is not worth a group header");
        for (q, wanted) in expected {
            assert_eq!(bits(q, 640), wanted, "q = {q}");
        }
    }

    proptest! {
        #[test]
        fn rounding_to_sixteen_bits_goes_outwards(x in f32::MIN_POSITIVE..1e38) {
            prop_assert!(round_up(x) >= x && round_up(x) < x * 1.01);
            prop_assert!(round_down(x) <= x && round_down(-x) <= -x && round_down(-x) > -x * 1.01);
        }
    }

    #[test]
    fn zero_is_rounded_to_itself() {
        assert_eq!((round_up(0.0), round_down(0.0)), (0.0, 0.0));
    }
}
