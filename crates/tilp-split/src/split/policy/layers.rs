//! The layers of the policy in a row, and the buffers of a pass over them.

use std::ops::RangeInclusive;

use super::{Architecture, Policy};
use crate::nn::adapter::Gradients;
use crate::nn::attention::Attention;
use crate::nn::block::{Block, BlockCache, Scratch};
use crate::nn::embed::Embedding;
use crate::nn::head::{Head, HeadCache};
use crate::nn::lanes::transpose;
use crate::nn::merge::{Merge, MergeCache};
use crate::split::model::Weights;

/// One numbered layer of the policy.
#[derive(Clone, Debug)]
pub(super) enum Layer {
    Embed(Embedding),
    Block(Block, Option<Merge>),
    Head(Head),
}

/// What a layer keeps from its forward pass.
#[derive(Debug)]
enum Cache {
    Embed,
    Block(Box<BlockCache>, MergeCache),
    Head(HeadCache),
}

impl Layer {
    /// All layers of an architecture in order.
    pub(super) fn all(architecture: &Architecture) -> Vec<Layer> {
        let (width, heads) = (architecture.width, architecture.heads);
        let hidden = width * architecture.hidden_ratio;
        let mut tokens = architecture.tokens.len();
        let mut layers =
            vec![Layer::Embed(Embedding { groups: architecture.tokens.clone(), width })];
        for block in 1..=architecture.blocks {
            let shape = Block { attention: Attention { width, heads, tokens }, hidden };
            let merges = architecture.merge_after.contains(&block);
            layers.push(Layer::Block(shape, merges.then_some(Merge { width, tokens })));
            tokens = if merges { tokens / 2 } else { tokens };
        }
        layers.push(Layer::Head(Head { inputs: width * tokens, outputs: architecture.actions }));
        layers
    }

    pub(super) fn n_parameters(&self) -> usize {
        match self {
            Layer::Embed(embed) => embed.n_parameters(),
            Layer::Block(block, merge) => {
                block.n_parameters() + merge.map_or(0, Merge::n_parameters)
            }
            Layer::Head(head) => head.n_parameters(),
        }
    }

    /// Elements per sample after the layer.
    pub(super) fn n_elements(&self) -> usize {
        match self {
            Layer::Embed(embed) => embed.width * embed.groups.len(),
            Layer::Block(block, None) => block.attention.width * block.attention.tokens,
            Layer::Block(_, Some(merge)) => merge.width * merge.tokens / 2,
            Layer::Head(head) => head.outputs,
        }
    }

    /// Multiply-adds of the forward pass, per sample.
    pub(super) fn n_products(&self) -> usize {
        match self {
            Layer::Embed(embed) => embed.n_products(),
            Layer::Block(block, merge) => block.n_products() + merge.map_or(0, Merge::n_products),
            Layer::Head(head) => head.n_products(),
        }
    }

    /// For every adapted linear layer, in the order of storage, its columns per sample.
    pub(super) fn columns(&self) -> Vec<usize> {
        match self {
            Layer::Embed(_) => vec![],
            Layer::Block(block, merge) => {
                let mut columns = vec![block.attention.tokens; 4];
                columns.extend(merge.map(|merge| merge.tokens / 2));
                columns
            }
            Layer::Head(_) => vec![1],
        }
    }

    /// Elements that the layer keeps for its backward pass, its output not counted.
    pub(super) fn n_cached(&self, samples: usize) -> usize {
        match self {
            Layer::Embed(_) => 0,
            Layer::Block(block, merge) => {
                block.n_cached(samples) + merge.map_or(0, |merge| merge.n_cached(samples))
            }
            Layer::Head(head) => head.n_cached(samples),
        }
    }

    pub(super) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let own = |named: Vec<(&str, Vec<usize>)>| {
            named.into_iter().map(|(name, shape)| (name.to_string(), shape)).collect::<Vec<_>>()
        };
        match self {
            Layer::Embed(embed) => embed.tensors(),
            Layer::Block(block, merge) => {
                let mut named = own(block.tensors());
                named.extend(merge.map_or(vec![], |merge| own(merge.tensors())));
                named
            }
            Layer::Head(head) => own(head.tensors()),
        }
    }

    fn forward(&self, weights: &[f32], x: &[f32], y: &mut [f32], buffers: Buffers<'_>) {
        let Buffers { samples, cache, whole } = buffers;
        match (self, cache) {
            (Layer::Embed(embed), Cache::Embed) => embed.forward(weights, x, y, samples),
            (Layer::Block(block, None), Cache::Block(cache, _)) => {
                block.forward(weights, x, y, cache);
            }
            (Layer::Block(block, Some(merge)), Cache::Block(cache, merge_cache)) => {
                let (first, second) = weights.split_at(block.n_parameters());
                whole.resize(x.len(), 0.0);
                block.forward(first, x, whole, cache);
                merge.forward(second, whole, y, merge_cache);
            }
            (Layer::Head(head), Cache::Head(cache)) => head.forward(weights, x, y, cache),
            _ => unreachable!("a workspace belongs to the policy that made it"),
        }
    }

    fn backward(&self, pass: Backward<'_>, flow: &mut Vec<f32>, scratch: &mut Scratch) {
        let Backward { weights, x, cache, mut gradient, samples } = pass;
        match (self, cache) {
            (Layer::Embed(embed), Cache::Embed) => {
                if let Some(gradient) = gradient.into_all() {
                    embed.backward(x, flow, gradient, samples);
                }
            }
            (Layer::Block(block, merge), Cache::Block(cache, merge_cache)) => {
                let (first, second) = weights.split_at(block.n_parameters());
                let of_block = block.gradients(&mut gradient);
                if let Some(merge) = merge {
                    merge.backward(second, merge_cache, &mut gradient, flow, scratch);
                }
                block.backward(first, x, cache, of_block, flow, scratch);
            }
            (Layer::Head(head), Cache::Head(cache)) => {
                head.backward(weights, x, cache, &mut gradient, flow, scratch);
            }
            _ => unreachable!("a workspace belongs to the policy that made it"),
        }
    }
}

/// What a forward pass of a layer may write besides its output.
struct Buffers<'a> {
    samples: usize,
    cache: &'a mut Cache,
    whole: &'a mut Vec<f32>,
}

/// What a backward pass of a layer reads, and where its gradient goes.
struct Backward<'a> {
    weights: &'a [f32],
    x: &'a [f32],
    cache: &'a Cache,
    gradient: Gradients<'a>,
    samples: usize,
}

/// The buffers of one forward and backward pass over a range of layers.
///
/// Only the layers that are really run take memory.
#[derive(Debug)]
pub struct Workspace {
    /// Feature-major activation after every layer; the first is the observation.
    values: Vec<Vec<f32>>,
    caches: Vec<Cache>,
    /// Output of a block before its tokens are merged.
    whole: Vec<f32>,
    flow: Vec<f32>,
    scratch: Scratch,
    /// Sample by sample, what crosses the boundary of the range.
    boundary: Vec<f32>,
    /// For a policy with adapters: the parameters of one layer, and unused gradients.
    merged: Vec<f32>,
    unused: Vec<f32>,
}

impl Workspace {
    pub(super) fn new(layers: &[Layer]) -> Self {
        let cache = |layer: &Layer| match layer {
            Layer::Embed(_) => Cache::Embed,
            Layer::Block(..) => Cache::Block(Box::default(), MergeCache::default()),
            Layer::Head(_) => Cache::Head(HeadCache::default()),
        };
        Self {
            values: vec![Vec::new(); layers.len() + 1],
            caches: layers.iter().map(cache).collect(),
            whole: vec![],
            flow: vec![],
            scratch: Scratch::default(),
            boundary: vec![],
            merged: vec![],
            unused: vec![],
        }
    }

    /// Elements really kept for the backward pass of layers 1 to `cut`.
    pub fn n_cached(&self, cut: usize) -> usize {
        let cached = |cache: &Cache| match cache {
            Cache::Embed => 0,
            Cache::Block(block, merge) => block.len() + merge.len(),
            Cache::Head(head) => head.len(),
        };
        self.values[..=cut].iter().map(Vec::len).sum::<usize>()
            + self.caches[..cut].iter().map(cached).sum::<usize>()
    }

    pub(super) fn forward(
        &mut self,
        policy: &Policy,
        range: RangeInclusive<usize>,
        weights: &Weights,
        input: &[f32],
        samples: usize,
    ) -> &[f32] {
        let (first, last) = range.into_inner();
        self.values[first - 1].resize(input.len(), 0.0);
        transpose(input, samples, &mut self.values[first - 1]);
        for layer in first..=last {
            let shape = &policy.layers[layer - 1];
            let parameters = match &policy.adapters {
                None => weights.layer(layer),
                Some(adapters) => {
                    let scratch = &mut self.scratch.low;
                    adapters.merge(layer, weights.layer(layer), &mut self.merged, scratch);
                    &self.merged
                }
            };
            let (before, after) = self.values.split_at_mut(layer);
            after[0].resize(shape.n_elements() * samples, 0.0);
            let cache = &mut self.caches[layer - 1];
            let buffers = Buffers { samples, cache, whole: &mut self.whole };
            shape.forward(parameters, &before[layer - 1], &mut after[0], buffers);
        }
        self.boundary.resize(self.values[last].len(), 0.0);
        transpose(&self.values[last], self.values[last].len() / samples, &mut self.boundary);
        &self.boundary
    }

    pub(super) fn backward(
        &mut self,
        policy: &Policy,
        range: RangeInclusive<usize>,
        weights: &Weights,
        output_gradient: &[f32],
        samples: usize,
        gradients: &mut Weights,
    ) -> &[f32] {
        let (first, last) = range.into_inner();
        self.flow.resize(output_gradient.len(), 0.0);
        transpose(output_gradient, samples, &mut self.flow);
        for layer in (first..=last).rev() {
            let (shape, trained) = (&policy.layers[layer - 1], weights.layer(layer));
            let gradient = gradients.layer_mut(layer);
            let (weights, gradient) = match &policy.adapters {
                None => (trained, Gradients::all(gradient)),
                Some(adapters) => {
                    let Self { merged, unused, scratch, .. } = self;
                    adapters.merge(layer, trained, merged, &mut scratch.low);
                    unused.resize(shape.n_parameters(), 0.0);
                    let gradient = Gradients::adapters(adapters.lora, trained, gradient, unused);
                    (&merged[..], gradient)
                }
            };
            let (x, cache) = (&self.values[layer - 1], &self.caches[layer - 1]);
            let pass = Backward { weights, x, cache, gradient, samples };
            shape.backward(pass, &mut self.flow, &mut self.scratch);
        }
        if first == 1 {
            return &[];
        }
        self.boundary.resize(self.flow.len(), 0.0);
        transpose(&self.flow, self.flow.len() / samples, &mut self.boundary);
        &self.boundary
    }
}
