//! A graph of ONNX: nodes, constants, and the names of what flows between them.

use super::protobuf::Message;

/// Numbers of the standard: element types, and types of attributes.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
const ATTRIBUTE_FLOAT: u64 = 1;
const ATTRIBUTE_INT: u64 = 2;
const ATTRIBUTE_INTS: u64 = 7;

/// Version of the file format, and of the set of operators: `LayerNormalization` is in it from 17 on.
const IR_VERSION: u64 = 8;
const OPERATORS: u64 = 17;

/// A dimension: of this size, or free with a name.
#[derive(Clone, Copy)]
enum Size {
    Fixed(usize),
    Named(&'static str),
}

/// An attribute of a node.
pub(super) enum Attribute<'a> {
    Int(&'static str, i64),
    Ints(&'static str, &'a [i64]),
    Float(&'static str, f32),
}

impl Attribute<'_> {
    fn message(&self) -> Message {
        let named = |name: &str| Message::default().bytes(1, name);
        match self {
            Self::Int(name, value) => {
                named(name).number(3, *value as u64).number(20, ATTRIBUTE_INT)
            }
            Self::Ints(name, values) => named(name)
                .numbers(8, values.iter().map(|value| *value as u64))
                .number(20, ATTRIBUTE_INTS),
            Self::Float(name, value) => named(name).float(2, *value).number(20, ATTRIBUTE_FLOAT),
        }
    }
}

/// A graph that is being written.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    /// Shapes of the values in between, which other programs need for sizes and work.
    values: Vec<Message>,
}

/// The first dimension of every value.
const BATCH: Size = Size::Named("batch");

/// A batch of rows of these sizes.
fn batched(sizes: &[usize]) -> Vec<Size> {
    std::iter::once(BATCH).chain(sizes.iter().map(|size| Size::Fixed(*size))).collect()
}

impl Graph {
    /// Adds a node and returns the name of its output, which has these sizes for every sample.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        (output, sizes): (&str, &[usize]),
        attributes: &[Attribute<'_>],
    ) -> String {
        self.values.push(value(output, &batched(sizes)));
        let node = Message::default()
            .texts(1, inputs)
            .bytes(2, output)
            .bytes(3, output)
            .bytes(4, operator)
            .messages(5, attributes.iter().map(Attribute::message));
        self.nodes.push(node);
        output.to_owned()
    }

    /// Divides the last dimension into three parts of these lengths and sizes.
    pub(super) fn split(
        &mut self,
        x: &str,
        lengths: &str,
        outputs: &[String; 3],
        sizes: &[usize],
    ) -> [String; 3] {
        self.values.extend(outputs.iter().map(|output| value(output, &batched(sizes))));
        let node = Message::default()
            .texts(1, [x, lengths])
            .texts(2, outputs)
            .bytes(3, format!("{x}.split"))
            .bytes(4, "Split")
            .message(5, &Attribute::Int("axis", -1).message());
        self.nodes.push(node);
        outputs.clone()
    }

    /// Adds a constant of real numbers and returns its name.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, shape, FLOAT, bytes)
    }

    /// Adds a constant list of whole numbers and returns its name.
    pub(super) fn whole(&mut self, name: &str, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, &[values.len()], INT64, bytes)
    }

    fn constant(&mut self, name: &str, shape: &[usize], kind: u64, bytes: Vec<u8>) -> String {
        let tensor = Message::default()
            .numbers(1, shape.iter().map(|size| *size as u64))
            .number(2, kind)
            .bytes(8, name)
            .bytes(9, bytes);
        self.constants.push(tensor);
        name.to_owned()
    }

    /// The bytes of a model with one input and one output.
    pub(super) fn model(
        self,
        name: &str,
        input: (&str, &[usize]),
        output: (&str, &[usize]),
    ) -> Vec<u8> {
        let graph = Message::default()
            .messages(1, self.nodes)
            .bytes(2, name)
            .messages(5, self.constants)
            .message(11, &value(input.0, &batched(input.1)))
            .message(12, &value(output.0, &batched(output.1)))
            .messages(13, self.values);
        Message::default()
            .number(1, IR_VERSION)
            .bytes(2, "tilp")
            .bytes(3, env!("CARGO_PKG_VERSION"))
            .message(7, &graph)
            .message(8, &Message::default().bytes(1, "").number(2, OPERATORS))
            .into_bytes()
    }
}

/// Name and shape of an input or output.
fn value(name: &str, shape: &[Size]) -> Message {
    let dimension = |size: &Size| match size {
        Size::Fixed(size) => Message::default().number(1, *size as u64),
        Size::Named(name) => Message::default().bytes(2, name),
    };
    let shape = Message::default().messages(1, shape.iter().map(dimension));
    let tensor = Message::default().number(1, FLOAT).message(2, &shape);
    let kind = Message::default().message(1, &tensor);
    Message::default().bytes(1, name).message(2, &kind)
}
