//! Orders, acknowledgements, and copies that change sides.
//!
//! None of these messages is billed. Orders and acknowledgements are a few dozen bytes. A
//! [`MovedCopies`] message is as large as the layers in it; it occurs only where the server keeps
//! copies behind the cut (the tiered rule) and the cut of a terminal changes, and the cost model
//! does not contain it. The engine reports its bytes apart from the others.

use super::compress::{Compressor, Exchange};
use super::message::{Context, Kind, check_layers, get_header, put_header};
use super::optimiser::{LayerState, Optimiser, StateAtAggregation};
use super::rule::Local;
use super::wire::{Reader, WireError, expect, get_floats, put_floats};

/// Largest number of minibatches or epochs that one order may ask for.
pub const MAX_LOCAL: usize = 1000;

/// Server to terminal: train one minibatch, or the whole model if the cut is the last layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainOrder {
    /// Round, terminal, cut.
    pub context: Context,
    /// Share of the payload that is not sent.
    pub q: f64,
    /// Learning rate of the terminal.
    pub rate: f32,
    /// Its update rule.
    pub optimiser: Optimiser,
    /// Largest norm of the gradient of its layers; zero for no limit.
    pub clip: f32,
    /// Samples of a minibatch; a terminal with fewer samples uses all of them.
    pub samples: u32,
    /// The operator behind `q`.
    pub compressor: Compressor,
    /// Amount of training if the terminal trains the whole model.
    pub local: Local,
}

impl TrainOrder {
    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::Train, self.context, 0, &mut bytes);
        bytes.extend(self.q.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        self.optimiser.put(&mut bytes);
        bytes.extend(self.clip.to_le_bytes());
        bytes.extend(self.samples.to_le_bytes());
        bytes.push(match self.compressor {
            Compressor::Quantize => 0,
            Compressor::TopK => 1,
            Compressor::RandomTopK => 2,
        });
        let (kind, amount) = match self.local {
            Local::Steps(steps) => (0, steps),
            Local::Epochs(epochs) => (1, epochs),
        };
        bytes.push(kind);
        bytes.extend(u32::try_from(amount).unwrap_or(u32::MAX).to_le_bytes());
        bytes
    }

    /// Reads a message for a model with this number of layers.
    pub fn from_bytes(bytes: &[u8], n_layers: usize) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(Kind::Train, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        check_layers(1, context.cut, n_layers)?;
        let q = reader.f64("q")?;
        if !(0.0..=1.0).contains(&q) {
            return Err(WireError::new("q", q.to_bits(), "the bits of a number from 0 to 1"));
        }
        let rate = finite("rate", reader.f32("rate")?)?;
        let optimiser = Optimiser::get(&mut reader)?;
        let clip = finite("clip", reader.f32("clip")?)?;
        let samples = reader.u32("samples")?;
        if samples == 0 {
            return Err(WireError::new("samples", 0, "at least 1"));
        }
        let compressor = compressor(reader.u8("compressor")?)?;
        let local = local(reader.u8("local")?, reader.u32("local amount")?)?;
        reader.end()?;
        Ok(Self { context, q, rate, optimiser, clip, samples, compressor, local })
    }
}

fn finite(field: &'static str, value: f32) -> Result<f32, WireError> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(WireError::new(field, value.to_bits().into(), "the bits of a finite number"))
}

fn compressor(number: u8) -> Result<Compressor, WireError> {
    match number {
        0 => Ok(Compressor::Quantize),
        1 => Ok(Compressor::TopK),
        2 => Ok(Compressor::RandomTopK),
        other => Err(WireError::new("compressor", other.into(), "0 to 2")),
    }
}

fn local(kind: u8, amount: u32) -> Result<Local, WireError> {
    let amount = amount as usize;
    if !(1..=MAX_LOCAL).contains(&amount) {
        return Err(WireError::new("local amount", amount as u64, format!("1 to {MAX_LOCAL}")));
    }
    match kind {
        0 => Ok(Local::Steps(amount)),
        1 => Ok(Local::Epochs(amount)),
        other => Err(WireError::new("local", other.into(), "0 or 1")),
    }
}

/// Terminal to server: the training of a round is finished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Round, terminal, cut.
    pub context: Context,
    /// Loss over all samples used. After a cut gradient it is the loss in that message.
    pub loss: f64,
    /// Norm of the last gradient of the terminal's layers.
    pub gradient_norm: f64,
    /// Number of samples used.
    pub samples: u32,
}

impl Done {
    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::Done, self.context, 0, &mut bytes);
        bytes.extend(self.loss.to_le_bytes());
        bytes.extend(self.gradient_norm.to_le_bytes());
        bytes.extend(self.samples.to_le_bytes());
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(Kind::Done, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        let (loss, gradient_norm) = (reader.f64("loss")?, reader.f64("gradient norm")?);
        let samples = reader.u32("samples")?;
        reader.end()?;
        Ok(Self { context, loss, gradient_norm, samples })
    }
}

/// Server to terminal: send your copies of these layers. The reply is a `LayerWeights` message;
/// the terminal keeps its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collect {
    /// The last round of training, the terminal, and as `cut` the last of the layers.
    pub context: Context,
    /// The first of the layers.
    pub first: u16,
    /// The encoding of the reply.
    pub exchange: Exchange,
}

impl Collect {
    /// The message as bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::Collect, self.context, self.first, &mut bytes);
        bytes.push(self.exchange.bits() as u8);
        bytes
    }

    /// Reads a message for a model with this number of layers.
    pub fn from_bytes(bytes: &[u8], n_layers: usize) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, first) = get_header(Kind::Collect, &mut reader)?;
        let bits = reader.u8("bits")?;
        reader.end()?;
        check_layers(first, context.cut, n_layers)?;
        let exchange = Exchange::with_bits(bits.into());
        let exchange =
            exchange.ok_or_else(|| WireError::new("bits", bits.into(), "32, 16 or 8"))?;
        Ok(Self { context, first, exchange })
    }
}

/// Server to terminal: hand your copies of these layers over. The reply is a [`MovedCopies`]
/// message; the terminal no longer holds these layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Round, terminal, and as `cut` the last of the layers.
    pub context: Context,
    /// The first of the layers.
    pub first: u16,
}

impl HandOver {
    /// The message as bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::HandOver, self.context, self.first, &mut bytes);
        bytes
    }

    /// Reads a message for a model with this number of layers.
    pub fn from_bytes(bytes: &[u8], n_layers: usize) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, first) = get_header(Kind::HandOver, &mut reader)?;
        reader.end()?;
        check_layers(first, context.cut, n_layers)?;
        Ok(Self { context, first })
    }
}

/// Server to terminal: its copies are no longer current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregated {
    /// Round and terminal.
    pub context: Context,
    /// What becomes of the optimiser state of its copies.
    pub optimiser_state: StateAtAggregation,
}

impl Aggregated {
    /// The message as bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::Aggregated, self.context, 0, &mut bytes);
        bytes.push(u8::from(self.optimiser_state == StateAtAggregation::Keep));
        bytes
    }

    /// Reads a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(Kind::Aggregated, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        let optimiser_state = match reader.u8("optimiser state")? {
            0 => StateAtAggregation::Reset,
            1 => StateAtAggregation::Keep,
            other => return Err(WireError::new("optimiser state", other.into(), "0 or 1")),
        };
        reader.end()?;
        Ok(Self { context, optimiser_state })
    }
}

/// A message without content: [`Kind::Acknowledged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Round and terminal.
    pub context: Context,
}

impl Notice {
    /// The message of this kind as bytes.
    pub fn to_bytes(self, kind: Kind) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(kind, self.context, 0, &mut bytes);
        bytes
    }

    /// Reads a message of this kind.
    pub fn from_bytes(kind: Kind, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, zero) = get_header(kind, &mut reader)?;
        expect("reserved", zero.into(), 0)?;
        reader.end()?;
        Ok(Self { context })
    }
}

/// One layer of a terminal with its optimiser state.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerCopy {
    /// The parameters.
    pub parameters: Vec<f32>,
    /// The optimiser state that belongs to them.
    pub state: LayerState,
}

/// Either way: a terminal's own copies of neighbouring layers change sides and continue there.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedCopies {
    /// Round, terminal, and as `cut` the last of the layers.
    pub context: Context,
    /// The first of the layers.
    pub first: u16,
    /// The copies.
    pub copies: Vec<LayerCopy>,
}

impl MovedCopies {
    /// The message as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(Kind::MovedCopies, self.context, self.first, &mut bytes);
        for copy in &self.copies {
            put_floats(&copy.parameters, &mut bytes);
            copy.state.put(&mut bytes);
        }
        bytes
    }

    /// Reads a message about layers of a model with these numbers of parameters per layer.
    pub fn from_bytes(bytes: &[u8], n_parameters: &[usize]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let (context, first) = get_header(Kind::MovedCopies, &mut reader)?;
        check_layers(first, context.cut, n_parameters.len())?;
        let mut copies = Vec::new();
        for count in &n_parameters[usize::from(first) - 1..usize::from(context.cut)] {
            let mut parameters = Vec::new();
            get_floats(reader.bytes("parameters", 4 * count)?, &mut parameters);
            let state = LayerState::get(&mut reader, *count)?;
            copies.push(LayerCopy { parameters, state });
        }
        reader.end()?;
        Ok(Self { context, first, copies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::TerminalId;

    const CONTEXT: Context = Context { round: 7, terminal: TerminalId(3), cut: 2 };

    fn order() -> TrainOrder {
        TrainOrder {
            context: CONTEXT,
            q: 0.75,
            rate: 0.05,
            optimiser: Optimiser::Sgd { momentum: 0.9 },
            clip: 1.0,
            samples: 16,
            compressor: Compressor::RandomTopK,
            local: Local::Epochs(3),
        }
    }

    fn moved() -> MovedCopies {
        let copy = |parameters: Vec<f32>, velocity: Vec<f32>| LayerCopy {
            parameters,
            state: LayerState { velocity, ..LayerState::default() },
        };
        let copies = vec![copy(vec![1.0, 2.0], vec![]), copy(vec![3.0], vec![4.0])];
        MovedCopies { context: CONTEXT, first: 1, copies }
    }

    /// Whether some bytes are read as a message of one kind.
    type Reads = fn(&[u8]) -> bool;

    /// Every message of this file with its reader.
    fn messages() -> Vec<(Vec<u8>, Reads)> {
        let done = Done { context: CONTEXT, loss: 0.5, gradient_norm: 2.0, samples: 9 };
        let collect = Collect { context: CONTEXT, first: 1, exchange: Exchange::Byte };
        let hand_over = HandOver { context: CONTEXT, first: 1 };
        let notice = Notice { context: CONTEXT };
        let optimiser_state = StateAtAggregation::Keep;
        let aggregated = Aggregated { context: CONTEXT, optimiser_state };
        vec![
            (order().to_bytes(), |b| TrainOrder::from_bytes(b, 8).is_ok()),
            (done.to_bytes(), |b| Done::from_bytes(b).is_ok()),
            (collect.to_bytes(), |b| Collect::from_bytes(b, 8).is_ok()),
            (hand_over.to_bytes(), |b| HandOver::from_bytes(b, 8).is_ok()),
            (aggregated.to_bytes(), |b| Aggregated::from_bytes(b).is_ok()),
            (notice.to_bytes(Kind::Acknowledged), |b| {
                Notice::from_bytes(Kind::Acknowledged, b).is_ok()
            }),
            (moved().to_bytes(), |b| MovedCopies::from_bytes(b, &[2, 1, 9]).is_ok()),
        ]
    }

    #[test]
    fn a_control_message_read_back_is_the_message() {
        for local in [Local::Steps(1), Local::Epochs(MAX_LOCAL)] {
            for compressor in [Compressor::Quantize, Compressor::TopK, Compressor::RandomTopK] {
                let order = TrainOrder { compressor, local, ..order() };
                assert_eq!(TrainOrder::from_bytes(&order.to_bytes(), 2), Ok(order));
            }
        }
        let done = Done { context: CONTEXT, loss: f64::MAX, gradient_norm: 0.1, samples: 4 };
        assert_eq!(Done::from_bytes(&done.to_bytes()), Ok(done));
        for optimiser_state in [StateAtAggregation::Reset, StateAtAggregation::Keep] {
            let aggregated = Aggregated { context: CONTEXT, optimiser_state };
            assert_eq!(Aggregated::from_bytes(&aggregated.to_bytes()), Ok(aggregated));
        }
        for exchange in Exchange::ALL {
            let collect = Collect { context: CONTEXT, first: 2, exchange };
            assert_eq!(Collect::from_bytes(&collect.to_bytes(), 2), Ok(collect));
        }
        let hand_over = HandOver { context: CONTEXT, first: 2 };
        assert_eq!(HandOver::from_bytes(&hand_over.to_bytes(), 2), Ok(hand_over));
        assert_eq!(MovedCopies::from_bytes(&moved().to_bytes(), &[2, 1, 9]), Ok(moved()));
    }

    #[test]
    fn a_control_message_is_read_as_its_own_kind_and_as_no_other() {
        let messages = messages();
        for (place, (bytes, _)) in messages.iter().enumerate() {
            for (other, (_, reads)) in messages.iter().enumerate() {
                assert_eq!(reads(bytes), place == other, "{place} as {other}");
            }
        }
    }

    #[test]
    fn a_control_message_of_another_length_is_an_error_at_every_length() {
        for (bytes, reads) in messages() {
            for length in 0..bytes.len() {
                assert!(!reads(&bytes[..length]), "{length} of {}", bytes.len());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(!reads(&longer));
        }
    }

    #[test]
    fn a_changed_byte_is_an_error_or_another_message_but_never_a_panic() {
        for (bytes, reads) in messages() {
            for place in 0..bytes.len() {
                for value in [0, 1, 2, 3, 127, 128, 254, 255] {
                    let mut changed = bytes.clone();
                    changed[place] = value;
                    let _ = reads(&changed);
                }
            }
        }
    }

    #[test]
    fn an_order_out_of_range_names_the_field() {
        let said = |order: TrainOrder| {
            let read = TrainOrder::from_bytes(&order.to_bytes(), 8);
            read.unwrap_err().field
        };
        assert_eq!(said(TrainOrder { q: f64::NAN, ..order() }), "q");
        assert_eq!(said(TrainOrder { q: 1.5, ..order() }), "q");
        assert_eq!(said(TrainOrder { rate: f32::INFINITY, ..order() }), "rate");
        let optimiser = Optimiser::Sgd { momentum: f32::NAN };
        assert_eq!(said(TrainOrder { optimiser, ..order() }), "momentum");
        assert_eq!(said(TrainOrder { clip: f32::NAN, ..order() }), "clip");
        assert_eq!(said(TrainOrder { samples: 0, ..order() }), "samples");
        for local in [Local::Steps(0), Local::Epochs(MAX_LOCAL + 1), Local::Steps(usize::MAX)] {
            assert_eq!(said(TrainOrder { local, ..order() }), "local amount");
        }
        for cut in [0, 9] {
            let context = Context { cut, ..CONTEXT };
            assert_eq!(said(TrainOrder { context, ..order() }), "first layer");
        }
    }
}
