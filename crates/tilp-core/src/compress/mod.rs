//! Compression of the activation at the cut and of the gradient that comes back, and the encoding
//! of layers that are exchanged.
//!
//! `q` is the share of the 32-bit payload that is not sent. An encoded payload says itself how it
//! is packed, so the receiver needs no `q`; and the gradient returns in the packing of the
//! activation: in as many bits, or on the same positions, values only.

mod bits;
mod exchange;
mod feedback;
mod quantize;
mod sparse;

#[cfg(test)]
mod tests;

pub use exchange::Exchange;
pub use feedback::ErrorFeedback;
pub use sparse::{kept_per_sample, top_positions};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::Rng;
use crate::wire::{Reader, WireError, expect, get_floats, put_floats};

/// The operator that shrinks a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compressor {
    /// Group-wise quantisation with stochastic rounding: fewer bits for every value, unbiased.
    Quantize,
    /// The largest magnitudes of every sample.
    TopK,
    /// The same number of values, a few of them drawn from outside the largest.
    RandomTopK,
}

/// How a payload is packed; the gradient returns in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Every value in 32 bits.
    Dense,
    /// Every value in this many bits.
    Quantized {
        /// Bits per value, 1 to 23.
        bits: u32,
    },
    /// Only some values of every sample.
    Sparse {
        /// Positions kept, `per_sample` rising numbers for every sample.
        positions: Vec<u32>,
        /// Values kept of every sample.
        per_sample: usize,
    },
}

/// Bytes in front of every payload: form, bits, samples, elements, kept.
pub const HEADER_BYTES: usize = 14;

const DENSE: u8 = 0;
const QUANTIZED: u8 = 1;
const BITMAP: u8 = 2;
const INDEXED: u8 = 3;
const VALUES: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    form: u8,
    bits: u8,
    samples: usize,
    elements: usize,
    kept: usize,
}

impl Header {
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend([self.form, self.bits]);
        for number in [self.samples, self.elements, self.kept] {
            bytes.extend((number as u32).to_le_bytes());
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (form, bits) = (reader.u8("form")?, reader.u8("bits")?);
        let mut number = |field| reader.u32(field).map(|number| number as usize);
        Ok(Self {
            form,
            bits,
            samples: number("samples")?,
            elements: number("elements")?,
            kept: number("kept")?,
        })
    }
}

impl Compressor {
    /// Bytes of an encoded activation, known without data.
    pub fn payload_bytes(self, elements: usize, samples: usize, q: f64) -> usize {
        let body = match (self, quantize::bits(q, elements * samples)) {
            (Compressor::Quantize, None) => 4 * elements * samples,
            (Compressor::Quantize, Some(bits)) => quantize::body_bytes(elements * samples, bits),
            _ => sparse::body_bytes(elements, samples, sparse::kept_on_wire(elements, samples, q)),
        };
        HEADER_BYTES + body
    }

    /// Bytes of the encoded gradient that answers such an activation.
    pub fn gradient_bytes(self, elements: usize, samples: usize, q: f64) -> usize {
        match self {
            Compressor::Quantize => self.payload_bytes(elements, samples, q),
            _ => HEADER_BYTES + 4 * samples * sparse::kept_on_wire(elements, samples, q),
        }
    }

    /// Appends the encoded values (`elements` per sample) to `bytes`.
    pub fn encode(
        self,
        values: &[f32],
        elements: usize,
        q: f64,
        rng: &mut Rng,
        bytes: &mut Vec<u8>,
    ) -> Packing {
        let samples = values.len() / elements;
        let packing = match self {
            Compressor::Quantize => match quantize::bits(q, values.len()) {
                None => Packing::Dense,
                Some(bits) => Packing::Quantized { bits },
            },
            _ => sparse::choose(self, values, elements, q, rng),
        };
        match &packing {
            Packing::Sparse { positions, per_sample } => {
                let form = sparse::form(elements, samples, *per_sample);
                header(form, &packing, samples, elements).put(bytes);
                sparse::put_positions(positions, *per_sample, elements, form, bytes);
                sparse::put_values(values, positions, *per_sample, elements, bytes);
            }
            other => put_all(other, values, elements, rng, bytes),
        }
        packing
    }
}

/// Bytes that the paper bills: the payload times `1 - q`, no header.
pub fn nominal_bytes(elements: usize, samples: usize, q: f64) -> usize {
    ((4 * elements * samples) as f64 * (1.0 - q)).ceil() as usize
}

/// Decodes an activation of at most `max_samples` samples of `elements` into `values`.
pub fn decode(
    bytes: &[u8],
    elements: usize,
    max_samples: usize,
    values: &mut Vec<f32>,
) -> Result<Packing, WireError> {
    let mut reader = Reader::new(bytes);
    let header = Header::get(&mut reader)?;
    expect("elements", header.elements, elements)?;
    if header.samples == 0 || header.samples > max_samples {
        let expected = format!("1 to {max_samples}");
        return Err(WireError::new("samples", header.samples as u64, expected));
    }
    match header.form {
        BITMAP | INDEXED => {
            let packing = sparse::get_positions(header, &mut reader)?;
            get_sparse(&packing, elements, header.samples, reader.rest(), values)?;
            Ok(packing)
        }
        _ => get_all(header, reader.rest(), values),
    }
}

/// Appends a gradient in the packing of its activation.
pub fn encode_gradient(
    packing: &Packing,
    values: &[f32],
    elements: usize,
    rng: &mut Rng,
    bytes: &mut Vec<u8>,
) {
    match packing {
        Packing::Sparse { positions, per_sample } => {
            header(VALUES, packing, values.len() / elements, elements).put(bytes);
            sparse::put_values(values, positions, *per_sample, elements, bytes);
        }
        other => put_all(other, values, elements, rng, bytes),
    }
}

/// Decodes a gradient of `samples` samples that answers an activation in this packing.
pub fn decode_gradient(
    bytes: &[u8],
    packing: &Packing,
    elements: usize,
    samples: usize,
    values: &mut Vec<f32>,
) -> Result<(), WireError> {
    let mut reader = Reader::new(bytes);
    let found = Header::get(&mut reader)?;
    let form = match packing {
        Packing::Dense => DENSE,
        Packing::Quantized { .. } => QUANTIZED,
        Packing::Sparse { .. } => VALUES,
    };
    let wanted = header(form, packing, samples, elements);
    expect("form", found.form.into(), wanted.form.into())?;
    expect("bits", found.bits.into(), wanted.bits.into())?;
    expect("samples", found.samples, wanted.samples)?;
    expect("elements", found.elements, wanted.elements)?;
    expect("kept", found.kept, wanted.kept)?;
    match packing {
        Packing::Sparse { .. } => get_sparse(packing, elements, samples, reader.rest(), values),
        _ => get_all(found, reader.rest(), values).map(|_| ()),
    }
}

fn header(form: u8, packing: &Packing, samples: usize, elements: usize) -> Header {
    let (bits, kept) = match packing {
        Packing::Dense => (32, elements),
        Packing::Quantized { bits } => (*bits as u8, elements),
        Packing::Sparse { per_sample, .. } => (32, *per_sample),
    };
    Header { form, bits, samples, elements, kept }
}

fn put_all(packing: &Packing, values: &[f32], elements: usize, rng: &mut Rng, bytes: &mut Vec<u8>) {
    let samples = values.len() / elements;
    if let Packing::Quantized { bits } = packing {
        header(QUANTIZED, packing, samples, elements).put(bytes);
        quantize::put(values, *bits, rng, bytes);
    } else {
        header(DENSE, packing, samples, elements).put(bytes);
        put_floats(values, bytes);
    }
}

fn get_all(header: Header, body: &[u8], values: &mut Vec<f32>) -> Result<Packing, WireError> {
    let count = header.samples * header.elements;
    expect("kept", header.kept, header.elements)?;
    match header.form {
        DENSE => {
            expect("bits", header.bits.into(), 32)?;
            expect("payload length", body.len(), 4 * count)?;
            get_floats(body, values);
            Ok(Packing::Dense)
        }
        QUANTIZED => {
            let bits = u32::from(header.bits);
            if !(1..=quantize::MAX_BITS).contains(&bits) {
                let expected = format!("1 to {}", quantize::MAX_BITS);
                return Err(WireError::new("bits", bits.into(), expected));
            }
            expect("payload length", body.len(), quantize::body_bytes(count, bits))?;
            quantize::get(body, count, bits, values);
            Ok(Packing::Quantized { bits })
        }
        other => Err(WireError::new("form", other.into(), "0 to 3")),
    }
}

fn get_sparse(
    packing: &Packing,
    elements: usize,
    samples: usize,
    body: &[u8],
    values: &mut Vec<f32>,
) -> Result<(), WireError> {
    let Packing::Sparse { positions, per_sample } = packing else { return Ok(()) };
    expect("payload length", body.len(), 4 * positions.len())?;
    values.clear();
    values.resize(samples * elements, 0.0);
    let numbers = body.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    for (index, (position, number)) in positions.iter().zip(numbers).enumerate() {
        values[index / per_sample * elements + *position as usize] = number;
    }
    Ok(())
}
