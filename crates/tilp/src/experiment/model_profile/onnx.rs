//! The part of an ONNX file that sizes and work need: nodes, constants, and the shapes of values.

use std::collections::BTreeMap;

/// A model as it is read: nodes in the order in which they are executed.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// Constants by name: dimensions and bytes of an element.
    pub constants: BTreeMap<String, (Vec<u64>, u64)>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// Dimensions of inputs, outputs and values in between.
    pub shapes: BTreeMap<String, Vec<Dimension>>,
}

/// An operation.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub name: String,
    pub operator: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// Whole numbers by the name of the attribute.
    pub numbers: BTreeMap<String, u64>,
    /// Whether it contains a graph of its own.
    pub has_graph: bool,
}

/// A dimension of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    Size(u64),
    Named(String),
    Unknown,
}

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed length that nothing here needs.
    Fixed,
}

/// Fields of a message, one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for (n, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f).checked_shl(7 * n as u32).unwrap_or(0);
            if byte & 0x80 == 0 {
                self.0 = &self.0[n + 1..];
                return Ok(value);
            }
        }
        Err("a number without end".into())
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
        let (taken, rest) = self.0.split_at(length.ok_or("a field beyond the end")?);
        self.0 = rest;
        Ok(taken)
    }

    /// Number and value of the next field; none at the end.
    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.take(8).map(|_| Field::Fixed)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Field::Fixed)?,
            kind => return Err(format!("a field of kind {kind}")),
        };
        Ok(Some((tag >> 3, field)))
    }
}

/// Calls `visit` with every field of a message.
fn fields<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(u64, Field<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut all = Fields(bytes);
    while let Some((number, field)) = all.next()? {
        visit(number, field)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a model.
pub(super) fn read(bytes: &[u8]) -> Result<Graph, String> {
    let mut graph = None;
    fields(bytes, |number, field| {
        if let (7, Field::Bytes(found)) = (number, field) {
            graph = Some(read_graph(found)?);
        }
        Ok(())
    })?;
    graph.ok_or_else(|| "no graph".into())
}

fn read_graph(bytes: &[u8]) -> Result<Graph, String> {
    let mut graph = Graph::default();
    fields(bytes, |number, field| {
        let Field::Bytes(found) = field else { return Ok(()) };
        match number {
            1 => graph.nodes.push(node(found)?),
            5 => {
                let (name, about) = tensor(found)?;
                graph.constants.insert(name, about);
            }
            11..=13 => {
                let (name, shape) = value(found)?;
                match number {
                    11 => graph.inputs.push(name.clone()),
                    12 => graph.outputs.push(name.clone()),
                    _ => {}
                }
                if let Some(shape) = shape {
                    graph.shapes.insert(name, shape);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(graph)
}

fn node(bytes: &[u8]) -> Result<Node, String> {
    let mut node = Node::default();
    fields(bytes, |number, field| {
        let Field::Bytes(found) = field else { return Ok(()) };
        match number {
            1 => node.inputs.push(text(found)),
            2 => node.outputs.push(text(found)),
            3 => node.name = text(found),
            4 => node.operator = text(found),
            5 => attribute(found, &mut node)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(node)
}

fn attribute(bytes: &[u8], node: &mut Node) -> Result<(), String> {
    let (mut name, mut value) = (String::new(), None);
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(found)) => name = text(found),
            (3, Field::Number(found)) => value = Some(found),
            (6 | 11, Field::Bytes(_)) => node.has_graph = true,
            _ => {}
        }
        Ok(())
    })?;
    if let Some(value) = value {
        node.numbers.insert(name, value);
    }
    Ok(())
}

/// Name of a constant, its dimensions and bytes of an element.
fn tensor(bytes: &[u8]) -> Result<(String, (Vec<u64>, u64)), String> {
    let (mut name, mut dimensions, mut width) = (String::new(), Vec::new(), 4);
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Number(size)) => dimensions.push(size),
            (1, Field::Bytes(packed)) => {
                let mut packed = Fields(packed);
                while !packed.0.is_empty() {
                    dimensions.push(packed.varint()?);
                }
            }
            (2, Field::Number(kind)) => width = element_bytes(kind),
            (8, Field::Bytes(found)) => name = text(found),
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, (dimensions, width)))
}

/// Bytes of an element by the standard's number of its type.
fn element_bytes(kind: u64) -> u64 {
    match kind {
        2 | 3 | 9 => 1,
        4 | 5 | 10 | 16 => 2,
        7 | 11 | 13 => 8,
        _ => 4,
    }
}

/// Name and shape of a value.
fn value(bytes: &[u8]) -> Result<(String, Option<Vec<Dimension>>), String> {
    let (mut name, mut shape) = (String::new(), None);
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(found)) => name = text(found),
            (2, Field::Bytes(kind)) => fields(kind, |number, field| {
                let (1, Field::Bytes(tensor)) = (number, field) else { return Ok(()) };
                fields(tensor, |number, field| {
                    if let (2, Field::Bytes(found)) = (number, field) {
                        shape = Some(dimensions(found)?);
                    }
                    Ok(())
                })
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, shape))
}

fn dimensions(bytes: &[u8]) -> Result<Vec<Dimension>, String> {
    let mut all = Vec::new();
    fields(bytes, |number, field| {
        let (1, Field::Bytes(found)) = (number, field) else { return Ok(()) };
        let mut one = Dimension::Unknown;
        fields(found, |number, field| {
            match (number, field) {
                (1, Field::Number(size)) => one = Dimension::Size(size),
                (2, Field::Bytes(name)) => one = Dimension::Named(text(name)),
                _ => {}
            }
            Ok(())
        })?;
        all.push(one);
        Ok(())
    })?;
    Ok(all)
}
