//! Sizes, work and memory of an ONNX model by cut, as a table for profile scenarios.
//!
//! A cut is possible wherever a single value connects what comes before with what comes after. Work
//! counts the products of matrices and convolutions, forward and backward.

mod onnx;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use onnx::{Dimension, Graph, Node};

/// Bytes of a number of an activation or a gradient.
const BYTES_PER_NUMBER: u64 = 4;
/// A multiplication and an addition; forward once, backward for input and parameters.
const OPERATIONS_PER_PRODUCT: u64 = 2 * 3;
/// Operators whose output is the same numbers in another form: nothing more is kept for them.
const VIEWS: [&str; 8] =
    ["Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"];
/// Operators that belong to the product before them: a cut is behind them.
const FOLLOWERS: [&str; 9] =
    ["Add", "Clip", "Elu", "Gelu", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh"];
/// Lines of a table, at most: what a profile scenario takes.
const MOST_CUTS: usize = 512;

/// How a model is profiled.
#[derive(Clone, Debug)]
pub struct ModelProfileSpec {
    /// Samples of a minibatch.
    pub batch: u64,
    /// Numbers that the optimiser keeps for every parameter: none for plain descent, one for momentum, two
    /// for Adam.
    pub state_per_parameter: u64,
    /// Sizes of named dimensions. The first dimension of an input is the batch.
    pub sizes: BTreeMap<String, u64>,
}

/// One line of the table: the costs of a terminal that runs everything up to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCut {
    /// The value that crosses the cut.
    pub name: String,
    /// Numbers of it, of one sample.
    pub activation_elements: u64,
    /// Operations of one sample, forward and backward.
    pub operations: u64,
    /// Parameters before the cut.
    pub trained_parameters: u64,
    /// Parameters, gradients, optimiser state, and what a minibatch keeps.
    pub memory_bytes: u64,
}

/// Why a model cannot be profiled.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelProfileError(String);

/// The cuts of the model in these bytes of an ONNX file.
pub fn profile_onnx(
    bytes: &[u8],
    spec: &ModelProfileSpec,
) -> Result<Vec<ModelCut>, ModelProfileError> {
    let graph = onnx::read(bytes).map_err(|why| ModelProfileError(format!("no ONNX: {why}")))?;
    Walk::new(&graph, spec).and_then(Walk::cuts).map_err(ModelProfileError)
}

/// The table as CSV, for `[profile] model`.
pub fn model_table(cuts: &[ModelCut], source: &str, spec: &ModelProfileSpec) -> String {
    let ModelProfileSpec { batch, state_per_parameter, .. } = spec;
    let mut text = format!(
        "# {source}: all parameters trained, minibatch of {batch}, {state_per_parameter} numbers of optimiser \
         state per parameter\n\
         name,activation_elements,operations,trained_parameters,memory_bytes\n"
    );
    for cut in cuts {
        let name = cut.name.replace([',', '"', '\n'], "_");
        let (n, operations) = (cut.activation_elements, cut.operations);
        let (trained, memory) = (cut.trained_parameters, cut.memory_bytes);
        let _ = writeln!(text, "{name},{n},{operations},{trained},{memory}");
    }
    text
}

/// The nodes in order, with what has been added up so far.
struct Walk<'a> {
    graph: &'a Graph,
    spec: &'a ModelProfileSpec,
    /// Samples of the batch that is written in the shapes.
    written_batch: u64,
    /// Values that depend on an input.
    flowing: BTreeSet<&'a str>,
    /// The last node that reads a value; the outputs are read at the end.
    last_use: BTreeMap<&'a str, usize>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Graph, spec: &'a ModelProfileSpec) -> Result<Self, String> {
        if let Some(node) = graph.nodes.iter().find(|node| node.has_graph) {
            return Err(format!("{} contains a graph, expected a model without", node.operator));
        }
        let inputs = graph.inputs.iter().filter(|name| !graph.constants.contains_key(*name));
        let flowing: BTreeSet<&str> = inputs.map(String::as_str).collect();
        let mut last_use = BTreeMap::new();
        for (place, node) in graph.nodes.iter().enumerate() {
            last_use.extend(node.inputs.iter().map(|name| (name.as_str(), place)));
        }
        for name in &graph.outputs {
            last_use.insert(name, graph.nodes.len());
        }
        let first = flowing.iter().next().ok_or("no input")?;
        let written_batch = match graph.shapes.get(*first).and_then(|shape| shape.first()) {
            Some(Dimension::Size(size)) if *size > 0 => *size,
            _ => 1,
        };
        Ok(Self { graph, spec, written_batch, flowing, last_use })
    }

    /// Numbers of a value of one sample.
    fn elements(&self, name: &str) -> Result<u64, String> {
        let shape = self.shape(name)?;
        let all = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
        Ok(all.ok_or_else(|| format!("value {name} has too many numbers"))? / self.written_batch)
    }

    fn shape(&self, name: &str) -> Result<Vec<u64>, String> {
        if let Some((dimensions, _)) = self.graph.constants.get(name) {
            return Ok(dimensions.clone());
        }
        let shape = self.graph.shapes.get(name).ok_or_else(|| {
            format!(
                "value {name} has no shape: write them into the file with onnx.shape_inference.infer_shapes_path"
            )
        })?;
        let size = |(place, dimension): (usize, &Dimension)| match dimension {
            Dimension::Size(size) => Ok(*size),
            Dimension::Named(name) if self.spec.sizes.contains_key(name) => {
                Ok(self.spec.sizes[name])
            }
            // One sample at a time.
            _ if place == 0 => Ok(1),
            Dimension::Named(size) => {
                Err(format!("value {name} has a dimension {size}, expected --size {size}=NUMBER"))
            }
            Dimension::Unknown => Err(format!("value {name} has an unknown dimension")),
        };
        shape.iter().enumerate().map(size).collect()
    }

    /// Multiply-adds of a node for one sample.
    fn products(&self, node: &Node) -> Result<u64, String> {
        let operand = |place: usize| {
            let name =
                node.inputs.get(place).ok_or_else(|| format!("{} lacks an input", node.name))?;
            self.shape(name)
        };
        let each = match node.operator.as_str() {
            "MatMul" => operand(0)?.last().copied().unwrap_or(1),
            "Gemm" => {
                let turned = node.numbers.get("transA").is_some_and(|turned| *turned != 0);
                operand(0)?.get(usize::from(!turned)).copied().unwrap_or(1)
            }
            "Conv" => operand(1)?.iter().skip(1).product(),
            "ConvTranspose" => {
                // Every number of the input meets the weights of its channel.
                let weights: u64 = operand(1)?.iter().skip(1).product();
                return Ok(self.elements(&node.inputs[0])?.saturating_mul(weights));
            }
            _ => return Ok(0),
        };
        let output = node.outputs.first().map_or("", String::as_str);
        Ok(self.elements(output)?.saturating_mul(each))
    }

    fn cuts(mut self) -> Result<Vec<ModelCut>, String> {
        let mut cuts: Vec<ModelCut> = Vec::new();
        let (mut products, mut kept) = (0u64, 0u64);
        let mut used: BTreeSet<&str> = BTreeSet::new();
        let mut live: BTreeSet<&str> = self.flowing.clone();
        for (place, node) in self.graph.nodes.iter().enumerate() {
            if !node.inputs.iter().any(|name| self.flowing.contains(name.as_str())) {
                continue;
            }
            let constants = node.inputs.iter().map(String::as_str);
            used.extend(constants.filter(|name| self.graph.constants.contains_key(*name)));
            products = products.saturating_add(self.products(node)?);
            for name in node.outputs.iter().filter(|name| !name.is_empty()) {
                self.flowing.insert(name);
                live.insert(name);
                let is_view = VIEWS.contains(&node.operator.as_str());
                if self.last_use.contains_key(name.as_str()) && !is_view {
                    kept = kept.saturating_add(self.elements(name)?);
                }
            }
            live.retain(|name| self.last_use.get(name).is_some_and(|last| *last > place));
            let mut crossing = live.iter();
            if let (Some(name), None) = (crossing.next(), crossing.next()) {
                let follows = FOLLOWERS.contains(&node.operator.as_str());
                add(&mut cuts, self.cut(name, products, kept, &used)?, follows);
            }
        }
        match cuts.len() {
            0 => Err("no cut: no single value connects two parts of the model".into()),
            n if n > MOST_CUTS => Err(format!("{n} cuts, expected at most {MOST_CUTS}")),
            _ => Ok(cuts),
        }
    }

    fn cut(
        &self,
        name: &str,
        products: u64,
        kept: u64,
        used: &BTreeSet<&str>,
    ) -> Result<ModelCut, String> {
        // Whole numbers are sizes and places, and a single number is a setting.
        let is_trained = |name: &&str| {
            let (dimensions, width) = &self.graph.constants[*name];
            *width < 8 && !dimensions.is_empty()
        };
        let of = |name: &str| self.graph.constants[name].0.iter().product::<u64>();
        let trained: u64 = used.iter().filter(|name| is_trained(name)).map(|name| of(name)).sum();
        let copies = 2 + self.spec.state_per_parameter;
        let numbers = copies.saturating_mul(trained);
        let numbers = numbers.saturating_add(kept.saturating_mul(self.spec.batch));
        Ok(ModelCut {
            name: name.to_owned(),
            activation_elements: self.elements(name)?,
            operations: products.saturating_mul(OPERATIONS_PER_PRODUCT),
            trained_parameters: trained,
            memory_bytes: numbers.saturating_mul(BYTES_PER_NUMBER),
        })
    }
}

/// Adds a cut. Of cuts with the same work the one with the smallest activation is kept: columns of a
/// table rise from line to line. Of equal ones it is the one behind an operator that follows.
fn add(cuts: &mut Vec<ModelCut>, cut: ModelCut, follows: bool) {
    match cuts.last_mut() {
        _ if cut.operations == 0 || cut.trained_parameters == 0 => {}
        Some(last)
            if last.operations == cut.operations
                || last.trained_parameters == cut.trained_parameters =>
        {
            let is_equal = cut.activation_elements == last.activation_elements;
            if cut.activation_elements < last.activation_elements || is_equal && follows {
                *last = cut;
            }
        }
        _ => cuts.push(cut),
    }
}
