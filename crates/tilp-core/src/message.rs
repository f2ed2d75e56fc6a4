//! The messages between terminal and server, as bytes.
//!
//! Every message starts with the same 20 bytes: a mark, the version, the kind, the cut (or the
//! last layer), the first layer (or zero), the terminal, the round. Every length in a message is
//! checked against the bytes received before it is used.
//!
//! This file holds the messages that the cost model bills: activation, gradient at the cut and
//! layer weights. Orders, acknowledgements and copies that change sides are in `control.rs`; they
//! are not billed.

use crate::compress::{Compressor, Exchange};
use crate::rng::{Rng, Seed};
use crate::round::TerminalId;
use crate::wire::{Reader, WireError, expect, get_floats, put_floats};

/// Bytes at the start of every message.
pub const MESSAGE_HEADER_BYTES: usize = 20;

const MARK: u16 = 0x4c54;
const VERSION: u8 = 2;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// [`Activation`].
    Activation = 1,
    /// [`CutGradient`].
    CutGradient = 2,
    /// [`LayerWeights`].
    LayerWeights = 3,
    /// Order to train.
    Train = 4,
    /// End of a training step.
    Done = 5,
    /// Order to upload layers.
    Collect = 6,
    /// Order to hand layers over to the server.
    HandOver = 7,
    /// Layers with their optimiser state.
    MovedCopies = 8,
    /// Notice of an aggregation.
    Aggregated = 9,
    /// Acknowledgement.
    Acknowledged = 10,
    /// [`LayerWeights`] in 16 bits.
    HalfWeights = 11,
    /// [`LayerWeights`] in 8 bits.
    ByteWeights = 12,
}

impl Kind {
    const ALL: [Kind; 12] = [
        Kind::Activation,
        Kind::CutGradient,
        Kind::LayerWeights,
        Kind::Train,
        Kind::Done,
        Kind::Collect,
        Kind::HandOver,
        Kind::MovedCopies,
        Kind::Aggregated,
        Kind::Acknowledged,
        Kind::HalfWeights,
        Kind::ByteWeights,
    ];

    /// Whether the cost model bills messages of this kind.
    pub fn is_billed(self) -> bool {
        matches!(self, Kind::Activation | Kind::CutGradient) || self.exchange().is_some()
    }

    /// The encoding of layer weights; `None` for other messages.
    pub fn exchange(self) -> Option<Exchange> {
        Exchange::ALL.into_iter().find(|encoding| Self::of(*encoding) == self)
    }

    /// The kind of layer weights in this encoding.
    fn of(encoding: Exchange) -> Self {
        match encoding {
            Exchange::Single => Kind::LayerWeights,
            Exchange::Half => Kind::HalfWeights,
            Exchange::Byte => Kind::ByteWeights,
        }
    }
}

/// Round, terminal and layer that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The round.
    pub round: u64,
    /// The terminal.
    pub terminal: TerminalId,
    /// The cut, or the last layer of a range.
    pub cut: u16,
}

impl Context {
    /// `Ok` if this is the expected context.
    pub fn expect(self, expected: Self) -> Result<(), WireError> {
        expect("terminal", self.terminal.0 as usize, expected.terminal.0 as usize)?;
        expect("cut", self.cut.into(), expected.cut.into())?;
        if self.round != expected.round {
            return Err(WireError::new("round", self.round, expected.round.to_string()));
        }
        Ok(())
    }
}

/// Kind and context of a message; nothing behind the header is read.
pub fn peek(bytes: &[u8]) -> Result<(Kind, Context), WireError> {
    let (kind, context, _) = read_header(&mut Reader::new(bytes))?;
    Ok((kind, context))
}

/// `Ok` if `first` to `last` is a range of layers of a model with `n_layers`.
pub fn check_layers(first: u16, last: u16, n_layers: usize) -> Result<(), WireError> {
    let (start, end) = (usize::from(first), usize::from(last));
    if start == 0 || start > end || end > n_layers {
        let expected = format!("1 to the last layer, {end} of {n_layers}");
        return Err(WireError::new("first layer", start as u64, expected));
    }
    Ok(())
}

/// Terminal to server: the activation at the cut and the labels of its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    /// Round, terminal, cut.
    pub context: Context,
    /// The activation, encoded by a [`Compressor`].
    pub payload: Vec<u8>,
    /// The actions to imitate, sample by sample.
    pub labels: Vec<f32>,
}

/// Server to terminal: the gradient of the loss by the activation.
#[derive(Clone, Debug, PartialEq)]
pub struct CutGradient {
    /// Round, terminal, cut.
    pub context: Context,
    /// The loss of the minibatch.
    pub loss: f32,
    /// The gradient, in the packing of the activation.
    pub payload: Vec<u8>,
}

/// Either way: the parameters of neighbouring layers.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerWeights {
    /// Round, terminal, and as `cut` the last of the layers.
    pub context: Context,
    /// The first of the layers.
    pub first: u16,
    /// Their parameters.
    pub layers: Vec<Vec<f32>>,
}

impl Activation {
    /// Length of such a message, known without data.
    pub fn n_bytes(
        compressor: Compressor,
        elements: usize,
        label_width: usize,
        samples: usize,
        q: f64,
    ) -> usize {
        let payload = compressor.payload_bytes(elements, samples, q);
        MESSAGE_HEADER_BYTES + 8 + payload + 4 * label_width * samples
    }

    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = MESSAGE_HEADER_BYTES + 8 + self.payload.len() + 4 * self.labels.len();
        let mut bytes = Vec::with_capacity(length);
        put_header(Kind::Activation, self.context, 0, &mut bytes);
        bytes.extend((self.payload.len() as u32).to_le_bytes());
        bytes.extend((self.labels.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        put_floats(&self.labels, &mut bytes);
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(Kind::Activation, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        let length = reader.u32("payload length")? as usize;
        let n_labels = reader.u32("labels")? as usize;
        let payload = reader.bytes("payload", length)?.to_vec();
        expect("labels length", reader.rest().len(), n_labels.saturating_mul(4))?;
        let mut labels = Vec::new();
        get_floats(reader.rest(), &mut labels);
        Ok(Self { context, payload, labels })
    }
}

impl CutGradient {
    /// Length of such a message, known without data.
    pub fn n_bytes(compressor: Compressor, elements: usize, samples: usize, q: f64) -> usize {
        MESSAGE_HEADER_BYTES + 4 + compressor.gradient_bytes(elements, samples, q)
    }

    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MESSAGE_HEADER_BYTES + 4 + self.payload.len());
        put_header(Kind::CutGradient, self.context, 0, &mut bytes);
        put_floats(&[self.loss], &mut bytes);
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(Kind::CutGradient, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        let loss = f32::from_bits(reader.u32("loss")?);
        Ok(Self { context, loss, payload: reader.rest().to_vec() })
    }
}

impl LayerWeights {
    /// Length of such a message for layers with these numbers of parameters.
    pub fn n_bytes(encoding: Exchange, n_parameters: impl Iterator<Item = usize>) -> usize {
        let layers = n_parameters.map(|count| encoding.layer_bytes(count));
        MESSAGE_HEADER_BYTES + layers.sum::<usize>()
    }

    /// The message as bytes, in 32 bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encoded(Exchange::Single, &mut Seed::new(0).rng())
    }

    /// The message as bytes in this encoding. Fewer than 32 bits are rounded by chance.
    pub fn encoded(&self, encoding: Exchange, rng: &mut Rng) -> Vec<u8> {
        let sizes = self.layers.iter().map(Vec::len);
        let mut bytes = Vec::with_capacity(Self::n_bytes(encoding, sizes));
        put_header(Kind::of(encoding), self.context, self.first, &mut bytes);
        for layer in &self.layers {
            encoding.put(layer, rng, &mut bytes);
        }
        bytes
    }

    /// Reads a message, in any encoding, about layers of a model with these numbers of parameters
    /// per layer.
    pub fn from_bytes(bytes: &[u8], n_parameters: &[usize]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (kind, context, first) = read_header(&mut reader)?;
        let Some(encoding) = kind.exchange() else {
            return Err(WireError::new("kind", kind as u64, "layer weights"));
        };
        check_layers(first, context.cut, n_parameters.len())?;
        let wanted = &n_parameters[usize::from(first) - 1..usize::from(context.cut)];
        expect("length", bytes.len(), Self::n_bytes(encoding, wanted.iter().copied()))?;
        let mut layers = vec![Vec::new(); wanted.len()];
        for (layer, &count) in layers.iter_mut().zip(wanted) {
            let body = reader.bytes("parameters", encoding.layer_bytes(count))?;
            encoding.get(body, count, layer);
        }
        Ok(Self { context, first, layers })
    }
}

/// Appends the header of a message.
pub fn put_header(kind: Kind, context: Context, first: u16, bytes: &mut Vec<u8>) {
    bytes.extend(MARK.to_le_bytes());
    bytes.extend([VERSION, kind as u8]);
    bytes.extend(context.cut.to_le_bytes());
    bytes.extend(first.to_le_bytes());
    bytes.extend(context.terminal.0.to_le_bytes());
    bytes.extend(context.round.to_le_bytes());
}

/// Reads the header of a message of this kind: its context and its first layer.
pub fn get_header(kind: Kind, reader: &mut Reader<'_>) -> Result<(Context, u16), WireError> {
    let (found, context, first) = read_header(reader)?;
    expect("kind", found as usize, kind as usize)?;
    Ok((context, first))
}

fn read_header(reader: &mut Reader<'_>) -> Result<(Kind, Context, u16), WireError> {
    expect("mark", reader.u16("mark")?.into(), MARK.into())?;
    expect("version", reader.u8("version")?.into(), VERSION.into())?;
    let number = reader.u8("kind")?;
    let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == number);
    let kind = kind.ok_or_else(|| WireError::new("kind", number.into(), "1 to 12"))?;
    let (cut, first) = (reader.u16("cut")?, reader.u16("first layer")?);
    let (terminal, round) = (TerminalId(reader.u32("terminal")?), reader.u64("round")?);
    Ok((kind, Context { round, terminal, cut }, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { round: 7, terminal: TerminalId(3), cut: 2 };

    #[test]
    fn a_message_read_back_is_the_message() {
        let up = Activation { context: CONTEXT, payload: vec![1, 2, 3], labels: vec![0.5, -1.0] };
        assert_eq!(Activation::from_bytes(&up.to_bytes()), Ok(up));
        let down = CutGradient { context: CONTEXT, loss: 0.25, payload: vec![9; 5] };
        assert_eq!(CutGradient::from_bytes(&down.to_bytes()), Ok(down));
        let layers = vec![vec![1.0, 2.0], vec![3.0]];
        let model = LayerWeights { context: CONTEXT, first: 1, layers };
        assert_eq!(LayerWeights::from_bytes(&model.to_bytes(), &[2, 1, 9]), Ok(model));
    }

    #[test]
    fn layers_in_fewer_bits_are_shorter_and_say_their_encoding() {
        let layers = vec![vec![0.5; 640], vec![], vec![-0.25; 65]];
        let model = LayerWeights { context: Context { cut: 3, ..CONTEXT }, first: 1, layers };
        let sizes = [640, 0, 65];
        for (encoding, length) in Exchange::ALL.into_iter().zip([2840, 1430, 20 + 680 + 73]) {
            let bytes = model.encoded(encoding, &mut Seed::new(1).rng());
            assert_eq!(bytes.len(), length);
            assert_eq!(LayerWeights::n_bytes(encoding, sizes.into_iter()), length);
            let (kind, _) = peek(&bytes).unwrap();
            assert!(kind.exchange() == Some(encoding) && kind.is_billed());
            // Both values are levels of every encoding.
            assert_eq!(LayerWeights::from_bytes(&bytes, &sizes).as_ref(), Ok(&model));
            for length in 0..bytes.len() {
                assert!(LayerWeights::from_bytes(&bytes[..length], &sizes).is_err());
            }
        }
        let other = CutGradient { context: CONTEXT, loss: 0.0, payload: vec![] }.to_bytes();
        assert_eq!(LayerWeights::from_bytes(&other, &sizes).unwrap_err().field, "kind");
    }

    #[test]
    fn a_message_cut_short_is_an_error_at_every_length() {
        let up = Activation { context: CONTEXT, payload: vec![1; 30], labels: vec![0.5; 8] };
        let down = CutGradient { context: CONTEXT, loss: 0.0, payload: vec![] };
        let model = LayerWeights { context: CONTEXT, first: 2, layers: vec![vec![1.0; 5]] };
        let (up, down, model) = (up.to_bytes(), down.to_bytes(), model.to_bytes());
        for length in 0..up.len() {
            assert!(Activation::from_bytes(&up[..length]).is_err());
        }
        for length in 0..down.len() {
            assert!(CutGradient::from_bytes(&down[..length]).is_err());
        }
        for length in 0..model.len() {
            assert!(LayerWeights::from_bytes(&model[..length], &[4, 5]).is_err());
        }
    }

    #[test]
    fn a_message_of_another_version_names_the_version() {
        let mut bytes = CutGradient { context: CONTEXT, loss: 0.0, payload: vec![] }.to_bytes();
        bytes[2] = 9;
        let said = CutGradient::from_bytes(&bytes).unwrap_err().to_string();
        assert_eq!(said, "version = 9, expected 2");
    }
}
