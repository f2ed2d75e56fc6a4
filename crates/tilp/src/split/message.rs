//! What terminal and server say to each other, as bytes.
//!
//! Every message starts with the same 20 bytes: a mark, the version, the kind, the cut (or the
//! last layer), the first layer (or zero), the terminal, the round. Reading is bounded by the
//! bytes themselves: no length in a message is believed before it has been checked.

use super::compress::Compressor;
use super::wire::{Reader, WireError, expect, get_floats, put_floats};

/// Bytes at the start of every message.
pub const MESSAGE_HEADER_BYTES: usize = 20;

const MARK: u16 = 0x4c54;
const VERSION: u8 = 1;
const ACTIVATION: u8 = 1;
const CUT_GRADIENT: u8 = 2;
const LAYER_WEIGHTS: u8 = 3;

/// Who speaks about what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The round.
    pub round: u64,
    /// The terminal.
    pub terminal: u32,
    /// The cut.
    pub cut: u16,
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
        put_header(ACTIVATION, self.context, 0, &mut bytes);
        bytes.extend((self.payload.len() as u32).to_le_bytes());
        bytes.extend((self.labels.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        put_floats(&self.labels, &mut bytes);
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(ACTIVATION, &mut reader)?;
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
        put_header(CUT_GRADIENT, self.context, 0, &mut bytes);
        put_floats(&[self.loss], &mut bytes);
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(CUT_GRADIENT, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        let loss = f32::from_bits(reader.u32("loss")?);
        Ok(Self { context, loss, payload: reader.rest().to_vec() })
    }
}

impl LayerWeights {
    /// Length of such a message for layers of so many parameters.
    pub fn n_bytes(n_parameters: impl Iterator<Item = usize>) -> usize {
        MESSAGE_HEADER_BYTES + 4 * n_parameters.sum::<usize>()
    }

    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::n_bytes(self.layers.iter().map(Vec::len)));
        put_header(LAYER_WEIGHTS, self.context, self.first, &mut bytes);
        for layer in &self.layers {
            put_floats(layer, &mut bytes);
        }
        bytes
    }

    /// Reads a message about layers of a model with these numbers of parameters per layer.
    pub fn from_bytes(bytes: &[u8], n_parameters: &[usize]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, first) = get_header(LAYER_WEIGHTS, &mut reader)?;
        let (start, end) = (usize::from(first), usize::from(context.cut));
        if start == 0 || start > end || end > n_parameters.len() {
            let expected = format!("1 to the last layer, {end} of {}", n_parameters.len());
            return Err(WireError::new("first layer", start as u64, expected));
        }
        let wanted = &n_parameters[start - 1..end];
        expect("length", bytes.len(), Self::n_bytes(wanted.iter().copied()))?;
        let mut layers = vec![Vec::new(); wanted.len()];
        for (layer, count) in layers.iter_mut().zip(wanted) {
            get_floats(reader.bytes("parameters", 4 * count)?, layer);
        }
        Ok(Self { context, first, layers })
    }
}

fn put_header(kind: u8, context: Context, extra: u16, bytes: &mut Vec<u8>) {
    bytes.extend(MARK.to_le_bytes());
    bytes.extend([VERSION, kind]);
    bytes.extend(context.cut.to_le_bytes());
    bytes.extend(extra.to_le_bytes());
    bytes.extend(context.terminal.to_le_bytes());
    bytes.extend(context.round.to_le_bytes());
}

fn get_header(kind: u8, reader: &mut Reader<'_>) -> Result<(Context, u16), WireError> {
    expect("mark", reader.u16("mark")?.into(), MARK.into())?;
    expect("version", reader.u8("version")?.into(), VERSION.into())?;
    expect("kind", reader.u8("kind")?.into(), kind.into())?;
    let (cut, extra) = (reader.u16("cut")?, reader.u16("extra")?);
    let (terminal, round) = (reader.u32("terminal")?, reader.u64("round")?);
    Ok((Context { round, terminal, cut }, extra))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { round: 7, terminal: 3, cut: 2 };

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
        assert_eq!(said, "version = 9, expected 1");
    }
}
