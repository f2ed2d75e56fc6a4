//! Weights in the safetensors format, with the architecture as metadata.

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::{Architecture, Policy, Tensor};
use crate::split::model::{SplitModel, Weights};

/// Why a file does not give a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The metadata lacks the architecture or it cannot be read.
    #[error("metadata `architecture`: {0}")]
    Metadata(String),
    /// The architecture is impossible.
    #[error("architecture: {0}")]
    Architecture(#[from] super::ArchitectureError),
    /// A tensor is missing or has another type or shape.
    #[error("tensor {name} = {value}, expected {expected}")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// Contents of the file.
        value: String,
        /// Requirement of the architecture.
        expected: String,
    },
}

/// The serialised form of an [`Architecture`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    tokens: Vec<(usize, usize)>,
    width: usize,
    heads: usize,
    blocks: usize,
    hidden_ratio: usize,
    merge_after: Vec<usize>,
    actions: usize,
    loss_weights: Vec<f32>,
    cuts: Vec<usize>,
}

impl Policy {
    /// The weights of the whole policy as a safetensors file.
    pub fn to_safetensors(&self, weights: &Weights) -> Result<Vec<u8>, PolicyFileError> {
        let bytes: Vec<Vec<u8>> = (1..=self.n_layers())
            .map(|layer| weights.layer(layer).iter().flat_map(|v| v.to_le_bytes()).collect())
            .collect();
        let mut views = Vec::new();
        for layer in 1..=self.n_layers() {
            for tensor in self.tensors(layer) {
                let range = 4 * tensor.offset..4 * (tensor.offset + tensor.n_elements());
                let view = TensorView::new(Dtype::F32, tensor.shape, &bytes[layer - 1][range])?;
                views.push((tensor.name, view));
            }
        }
        let text = serde_json::to_string(&stored(&self.architecture))
            .map_err(|error| PolicyFileError::Metadata(error.to_string()))?;
        // The library asks for a hash map; with one entry its order cannot matter.
        #[expect(clippy::disallowed_types)]
        let metadata = std::collections::HashMap::from([("architecture".to_string(), text)]);
        Ok(serialize(views, Some(metadata))?)
    }

    /// The policy and the weights in a safetensors file.
    pub fn from_safetensors(bytes: &[u8]) -> Result<(Self, Weights), PolicyFileError> {
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        let text = metadata.metadata().as_ref().and_then(|pairs| pairs.get("architecture"));
        let text = text.ok_or_else(|| PolicyFileError::Metadata("missing".to_string()))?;
        let read: Stored = serde_json::from_str(text)
            .map_err(|error| PolicyFileError::Metadata(error.to_string()))?;
        let policy = Policy::new(architecture(read))?;
        let (n_bytes, held) = (4 * policy.n_parameters_total(), bytes.len());
        if n_bytes > held {
            let said = format!("{n_bytes} bytes of parameters in a file of {held}");
            return Err(PolicyFileError::Metadata(said));
        }
        let weights = policy.weights_from(bytes)?;
        Ok((policy, weights))
    }

    /// The weights of the whole policy in a safetensors file, for this very architecture.
    pub fn weights_from(&self, bytes: &[u8]) -> Result<Weights, PolicyFileError> {
        let file = SafeTensors::deserialize(bytes)?;
        let mut weights = Weights::zeros(&self.without_adapters());
        for layer in 1..=self.n_layers() {
            for tensor in self.tensors(layer) {
                let range = tensor.offset..tensor.offset + tensor.n_elements();
                read_tensor(&file, &tensor, &mut weights.layer_mut(layer)[range])?;
            }
        }
        Ok(weights)
    }
}

fn read_tensor(
    file: &SafeTensors<'_>,
    tensor: &Tensor,
    values: &mut [f32],
) -> Result<(), PolicyFileError> {
    let wrong = |value: String| PolicyFileError::Tensor {
        name: tensor.name.clone(),
        value,
        expected: format!("F32 {:?}", tensor.shape),
    };
    let view = file.tensor(&tensor.name).map_err(|_| wrong("missing".to_string()))?;
    if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
        return Err(wrong(format!("{:?} {:?}", view.dtype(), view.shape())));
    }
    for (value, bytes) in values.iter_mut().zip(view.data().as_chunks::<4>().0) {
        *value = f32::from_le_bytes(*bytes);
    }
    Ok(())
}

fn stored(a: &Architecture) -> Stored {
    Stored {
        tokens: a.tokens.clone(),
        width: a.width,
        heads: a.heads,
        blocks: a.blocks,
        hidden_ratio: a.hidden_ratio,
        merge_after: a.merge_after.clone(),
        actions: a.actions,
        loss_weights: a.loss_weights.clone(),
        cuts: a.cuts.clone(),
    }
}

fn architecture(s: Stored) -> Architecture {
    Architecture {
        tokens: s.tokens,
        width: s.width,
        heads: s.heads,
        blocks: s.blocks,
        hidden_ratio: s.hidden_ratio,
        merge_after: s.merge_after,
        actions: s.actions,
        loss_weights: s.loss_weights,
        cuts: s.cuts,
    }
}
