//! A policy as an ONNX file: states in, actions out, for any number of samples at once.

mod graph;
mod protobuf;

use crate::split::model::{SplitModel, Weights};
use crate::split::policy::{Architecture, Policy, Tensor};
use graph::{Attribute, Graph};

/// Name of the input: one row of numbers for each sample.
const STATE: &str = "state";
/// Name of the output: one row of numbers for each sample.
const ACTION: &str = "action";

/// What the layer normalisation adds to the variance.
const EPSILON: f32 = 1e-5;

/// The bytes of an ONNX file with the policy.
pub fn policy_to_onnx(policy: &Policy, weights: &Weights) -> Vec<u8> {
    let shape = policy.architecture();
    let mut writer = Writer { policy, weights, graph: Graph::default(), tokens: 0 };
    let mut flow = writer.embedding();
    for block in 1..=shape.blocks {
        flow = writer.block(block + 1, &flow);
        if shape.merge_after.contains(&block) {
            flow = writer.merge(block + 1, &flow);
        }
    }
    writer.head(&flow);
    let (seen, done) = (shape.observation_width(), shape.actions);
    writer.graph.model("policy", (STATE, &[seen]), (ACTION, &[done]))
}

/// The layers of a policy, as they become nodes.
struct Writer<'a> {
    policy: &'a Policy,
    weights: &'a Weights,
    graph: Graph,
    /// Tokens of a sample after the last layer written.
    tokens: usize,
}

impl Writer<'_> {
    fn shape(&self) -> &Architecture {
        self.policy.architecture()
    }

    /// A tensor of a layer and its values.
    fn values(&self, layer: usize, name: &str) -> (Tensor, Vec<f32>) {
        let full = format!("layer{layer}.{name}");
        let found = self.policy.tensors(layer).into_iter().find(|tensor| tensor.name == full);
        let tensor = found.expect("a layer has the tensors of its kind");
        let range = tensor.offset..tensor.offset + tensor.n_elements();
        let values = self.weights.layer(layer)[range].to_vec();
        (tensor, values)
    }

    /// A tensor as it is stored.
    fn constant(&mut self, layer: usize, name: &str) -> String {
        let (tensor, values) = self.values(layer, name);
        self.graph.floats(&tensor.name, &tensor.shape, &values)
    }

    /// `y = x W' + b` over the last dimension, of every one of `n` rows or of the only one. Weights are
    /// stored with one row for each output.
    fn linear(
        &mut self,
        layer: usize,
        names: [&str; 2],
        (x, n): (&str, Option<usize>),
        output: &str,
    ) -> String {
        let (tensor, values) = self.values(layer, names[0]);
        let (rows, columns) = (tensor.shape[0], tensor.shape[1]);
        let turned: Vec<f32> =
            (0..rows * columns).map(|n| values[n % rows * columns + n / rows]).collect();
        let weight = self.graph.floats(&tensor.name, &[columns, rows], &turned);
        let bias = self.constant(layer, names[1]);
        let sizes: Vec<usize> = n.into_iter().chain([rows]).collect();
        let product = format!("{output}.product");
        let product = self.graph.node("MatMul", &[x, &weight], (&product, &sizes), &[]);
        self.graph.node("Add", &[&product, &bias], (output, &sizes), &[])
    }

    fn norm(&mut self, layer: usize, name: &str, x: &str, sizes: &[usize]) -> String {
        let gain = self.constant(layer, &format!("{name}.gain"));
        let offset = self.constant(layer, &format!("{name}.offset"));
        let attributes = [Attribute::Int("axis", -1), Attribute::Float("epsilon", EPSILON)];
        let (inputs, output) = ([x, &gain, &offset], format!("layer{layer}.{name}"));
        self.graph.node("LayerNormalization", &inputs, (&output, sizes), &attributes)
    }

    /// The same numbers in other sizes.
    fn reshape(&mut self, x: &str, sizes: &[usize], output: &str) -> String {
        // Zero keeps the first dimension, the batch.
        let all: Vec<i64> =
            std::iter::once(0).chain(sizes.iter().map(|size| *size as i64)).collect();
        let all = self.graph.whole(&format!("{output}.sizes"), &all);
        self.graph.node("Reshape", &[x, &all], (output, sizes), &[])
    }

    /// Dimensions in another order; `sizes` are those of the result.
    fn transpose(&mut self, x: &str, order: &[i64], output: &str, sizes: &[usize]) -> String {
        self.graph.node("Transpose", &[x], (output, sizes), &[Attribute::Ints("perm", order)])
    }

    /// Every token reads its own numbers of the state.
    fn embedding(&mut self) -> String {
        let (groups, width) = (self.shape().tokens.clone(), self.shape().width);
        self.tokens = groups.len();
        let axes = self.graph.whole("layer1.axes", &[1]);
        let mut parts = Vec::new();
        for (token, (start, length)) in groups.iter().enumerate() {
            let name = format!("layer1.token{token}");
            let ends = [*start as i64, (start + length) as i64];
            let from = self.graph.whole(&format!("{name}.start"), &ends[..1]);
            let to = self.graph.whole(&format!("{name}.end"), &ends[1..]);
            let (inputs, read) = ([STATE, &from, &to, &axes], format!("{name}.read"));
            let read = self.graph.node("Slice", &inputs, (&read, &[*length]), &[]);
            let weight = self.constant(1, &format!("token{token}.weight"));
            let (inputs, turned) = ([&*read, &weight], [Attribute::Int("transB", 1)]);
            let row = self.graph.node("Gemm", &inputs, (&name, &[width]), &turned);
            let (inputs, name) = ([&*row, &axes], format!("{name}.row"));
            parts.push(self.graph.node("Unsqueeze", &inputs, (&name, &[1, width]), &[]));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (sizes, axis) = ([self.tokens, width], [Attribute::Int("axis", 1)]);
        let all = self.graph.node("Concat", &parts, ("layer1.tokens", &sizes), &axis);
        let bias = self.constant(1, "bias");
        self.graph.node("Add", &[&all, &bias], ("layer1.output", &sizes), &[])
    }

    fn block(&mut self, layer: usize, x: &str) -> String {
        let name = |part: &str| format!("layer{layer}.{part}");
        let (width, tokens) = (self.shape().width, self.tokens);
        let (sizes, wide) = ([tokens, width], [tokens, width * self.shape().hidden_ratio]);
        let n = Some(tokens);
        let normal = self.norm(layer, "norm1", x, &sizes);
        let names = ["project.weight", "project.bias"];
        let projected = self.linear(layer, names, (&normal, n), &name("project"));
        let mixed = self.attention(layer, &projected);
        let names = ["output.weight", "output.bias"];
        let added = self.linear(layer, names, (&mixed, n), &name("output"));
        let middle = self.graph.node("Add", &[x, &added], (&name("middle"), &sizes), &[]);
        let normal = self.norm(layer, "norm2", &middle, &sizes);
        let up = self.linear(layer, ["up.weight", "up.bias"], (&normal, n), &name("up"));
        let open = self.graph.node("Relu", &[&up], (&name("hidden"), &wide), &[]);
        let down = self.linear(layer, ["down.weight", "down.bias"], (&open, n), &name("down"));
        self.graph.node("Add", &[&middle, &down], (&name("sum"), &sizes), &[])
    }

    /// Queries, keys and values lie side by side; each is divided into heads.
    fn attention(&mut self, layer: usize, projected: &str) -> String {
        let (width, heads, tokens) = (self.shape().width, self.shape().heads, self.tokens);
        let size = width / heads;
        let name = |part: &str| format!("layer{layer}.attention.{part}");
        let lengths = self.graph.whole(&name("lengths"), &[width as i64; 3]);
        let outputs = ["query", "key", "value"].map(name);
        let parts = self.graph.split(projected, &lengths, &outputs, &[tokens, width]);
        let by_head = |writer: &mut Self, part: &str, order: &[i64], sizes: &[usize]| {
            let own = writer.reshape(part, &[tokens, heads, size], &format!("{part}.divided"));
            writer.transpose(&own, order, &format!("{part}.heads"), sizes)
        };
        let query = by_head(self, &parts[0], &[0, 2, 1, 3], &[heads, tokens, size]);
        let key = by_head(self, &parts[1], &[0, 2, 3, 1], &[heads, size, tokens]);
        let value = by_head(self, &parts[2], &[0, 2, 1, 3], &[heads, tokens, size]);
        let square = [heads, tokens, tokens];
        let matches = self.graph.node("MatMul", &[&query, &key], (&name("matches"), &square), &[]);
        let scale = self.graph.floats(&name("scale"), &[], &[1.0 / (size as f32).sqrt()]);
        let scaled = self.graph.node("Mul", &[&matches, &scale], (&name("scaled"), &square), &[]);
        let (last, shares) = ([Attribute::Int("axis", -1)], name("shares"));
        let shares = self.graph.node("Softmax", &[&scaled], (&shares, &square), &last);
        let (mixed, sizes) = (name("mixed"), [heads, tokens, size]);
        let mixed = self.graph.node("MatMul", &[&shares, &value], (&mixed, &sizes), &[]);
        let sizes = [tokens, heads, size];
        let turned = self.transpose(&mixed, &[0, 2, 1, 3], &name("turned"), &sizes);
        self.reshape(&turned, &[tokens, width], &name("joined"))
    }

    /// Adjacent tokens side by side, then back to one width.
    fn merge(&mut self, layer: usize, x: &str) -> String {
        self.tokens /= 2;
        let (sizes, output) =
            ([self.tokens, 2 * self.shape().width], format!("layer{layer}.merged"));
        let pairs = self.reshape(x, &sizes, &format!("layer{layer}.pairs"));
        let normal = self.norm(layer, "merge.norm", &pairs, &sizes);
        let names = ["merge.weight", "merge.bias"];
        self.linear(layer, names, (&normal, Some(self.tokens)), &output)
    }

    /// All features of a sample, feature by feature, to the action.
    fn head(&mut self, x: &str) {
        let (layer, width, tokens) = (self.policy.n_layers(), self.shape().width, self.tokens);
        let turned =
            self.transpose(x, &[0, 2, 1], &format!("layer{layer}.turned"), &[width, tokens]);
        let sizes = [width * tokens];
        let features = self.reshape(&turned, &sizes, &format!("layer{layer}.features"));
        let normal = self.norm(layer, "norm", &features, &sizes);
        self.linear(layer, ["weight", "bias"], (&normal, None), ACTION);
    }
}
