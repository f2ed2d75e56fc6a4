//! Keeping a few values of every sample.

use rand::RngExt as _;

use super::bits::{pack, packed_bytes, unpack};
use super::{BITMAP, Compressor, DENSE, Header, INDEXED, Packing};
use crate::rng::Rng;
use crate::wire::{Reader, WireError, expect, put_floats};

/// Chance of every kept value to come from outside the largest in [`Compressor::RandomTopK`].
const OUTSIDE_CHANCE: f64 = 0.1;

/// Values kept of a sample, `max(1, ceil((1 - q) elements))`.
pub fn kept_per_sample(elements: usize, q: f64) -> usize {
    // The small subtraction takes back the rounding of decimal shares: (1 - 0.7) * 10 is 3.
    (((1.0 - q) * elements as f64 - 1e-6).ceil() as usize).clamp(1, elements)
}

/// The positions of the `kept` largest magnitudes, rising; of equals the first ones.
pub fn top_positions(values: &[f32], kept: usize) -> Vec<u32> {
    let mut order = ranked(values, kept);
    order.truncate(kept);
    order.sort_unstable();
    order
}

/// All positions, the `kept` largest magnitudes in front.
fn ranked(values: &[f32], kept: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    if kept < values.len() {
        order.select_nth_unstable_by(kept, |&a, &b| {
            let magnitude = |position: u32| values[position as usize].abs();
            magnitude(b).total_cmp(&magnitude(a)).then(a.cmp(&b))
        });
    }
    order
}

fn random_top_positions(values: &[f32], kept: usize, rng: &mut Rng) -> Vec<u32> {
    let mut order = ranked(values, kept);
    let outside = (0..kept).filter(|_| rng.random_bool(OUTSIDE_CHANCE)).count();
    for swap in 0..outside.min(values.len() - kept) {
        let leaves = rng.random_range(swap..kept);
        order.swap(swap, leaves);
        let enters = rng.random_range(kept + swap..values.len());
        order.swap(kept + swap, enters);
        order.swap(swap, kept + swap);
    }
    order.truncate(kept);
    order.sort_unstable();
    order
}

/// Values really sent of a sample: all of them where that takes no more bytes than fewer values
/// with their positions.
pub(super) fn kept_on_wire(elements: usize, samples: usize, q: f64) -> usize {
    let kept = kept_per_sample(elements, q);
    if form(elements, samples, kept) == DENSE { elements } else { kept }
}

/// The shortest form for this number of values.
pub(super) fn form(elements: usize, samples: usize, kept: usize) -> u8 {
    let values = 4 * kept * samples;
    let sizes = [
        (4 * elements * samples, DENSE),
        (values + bitmap_bytes(elements, samples), BITMAP),
        (values + index_bytes(elements, samples, kept), INDEXED),
    ];
    sizes.into_iter().min().map_or(DENSE, |(_, form)| form)
}

/// Bytes of positions and values.
pub(super) fn body_bytes(elements: usize, samples: usize, kept: usize) -> usize {
    let positions = match form(elements, samples, kept) {
        BITMAP => bitmap_bytes(elements, samples),
        INDEXED => index_bytes(elements, samples, kept),
        _ => return 4 * elements * samples,
    };
    4 * kept * samples + positions
}

fn bitmap_bytes(elements: usize, samples: usize) -> usize {
    packed_bytes(elements * samples, 1)
}

fn index_bytes(elements: usize, samples: usize, kept: usize) -> usize {
    packed_bytes(kept * samples, index_bits(elements))
}

fn index_bits(elements: usize) -> u32 {
    (usize::BITS - (elements - 1).leading_zeros()).max(1)
}

/// Which values of every sample are sent.
pub(super) fn choose(
    compressor: Compressor,
    values: &[f32],
    elements: usize,
    q: f64,
    rng: &mut Rng,
) -> Packing {
    let per_sample = kept_on_wire(elements, values.len() / elements, q);
    if per_sample == elements {
        return Packing::Dense;
    }
    let mut positions = Vec::with_capacity(values.len() / elements * per_sample);
    for sample in values.chunks_exact(elements) {
        positions.extend(match compressor {
            Compressor::RandomTopK => random_top_positions(sample, per_sample, rng),
            _ => top_positions(sample, per_sample),
        });
    }
    Packing::Sparse { positions, per_sample }
}

pub(super) fn put_positions(
    positions: &[u32],
    per_sample: usize,
    elements: usize,
    form: u8,
    bytes: &mut Vec<u8>,
) {
    if form == INDEXED {
        return pack(positions.iter().copied(), index_bits(elements), bytes);
    }
    let start = bytes.len();
    let samples = positions.len() / per_sample;
    bytes.resize(start + bitmap_bytes(elements, samples), 0);
    for (index, position) in positions.iter().enumerate() {
        let bit = index / per_sample * elements + *position as usize;
        bytes[start + bit / 8] |= 1 << (bit % 8);
    }
}

pub(super) fn put_values(
    values: &[f32],
    positions: &[u32],
    per_sample: usize,
    elements: usize,
    bytes: &mut Vec<u8>,
) {
    for (sample, kept) in values.chunks_exact(elements).zip(positions.chunks_exact(per_sample)) {
        for position in kept {
            put_floats(&[sample[*position as usize]], bytes);
        }
    }
}

/// Reads and checks the positions in a payload.
pub(super) fn get_positions(header: Header, reader: &mut Reader<'_>) -> Result<Packing, WireError> {
    let Header { samples, elements, kept: per_sample, .. } = header;
    if per_sample == 0 || per_sample > elements {
        return Err(WireError::new("kept", per_sample as u64, format!("1 to {elements}")));
    }
    expect("form", header.form.into(), form(elements, samples, per_sample).into())?;
    let positions = if header.form == BITMAP {
        let bytes = reader.bytes("bitmap", bitmap_bytes(elements, samples))?;
        let bits = unpack(bytes, 1).take(elements * samples).enumerate();
        bits.filter(|(_, bit)| *bit == 1).map(|(at, _)| (at % elements) as u32).collect()
    } else {
        let bytes = reader.bytes("indices", index_bytes(elements, samples, per_sample))?;
        unpack(bytes, index_bits(elements)).take(samples * per_sample).collect::<Vec<u32>>()
    };
    expect("positions", positions.len(), samples * per_sample)?;
    // Rising inside every sample: this also finds a bitmap with too many bits in one sample.
    for sample in positions.chunks_exact(per_sample) {
        let falls = sample.windows(2).find(|pair| pair[0] >= pair[1]);
        if let Some(pair) = falls {
            return Err(WireError::new("position", pair[1].into(), format!("above {}", pair[0])));
        }
        if let Some(position) = sample.iter().find(|position| **position as usize >= elements) {
            let expected = format!("below {elements}");
            return Err(WireError::new("position", (*position).into(), expected));
        }
    }
    Ok(Packing::Sparse { positions, per_sample })
}
