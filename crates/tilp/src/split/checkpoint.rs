//! The whole state of an engine as named tensors, restored bit for bit.

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::engine::Engine;
use super::model::{SplitModel, Weights};

/// The content of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Parameters and velocities.
    Floats(Vec<f32>),
    /// Counters.
    Counts(Vec<u64>),
}

/// Named tensors in a fixed order.
pub type Snapshot = Vec<(String, Content)>;

/// Why a snapshot does not fit an engine.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// A tensor is missing, of another type or length.
    #[error("tensor {name} = {value}, expected {expected}")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// What was found.
        value: String,
        /// What would be right.
        expected: String,
    },
}

impl<M: SplitModel> Engine<M> {
    /// Everything needed to go on: copies, velocities, counters.
    pub fn snapshot(&self) -> Snapshot {
        let mut all = Vec::new();
        put_layers("server/weights", &self.server.weights, usize::MAX, &mut all);
        put_layers("server/velocity", &self.server.velocity, usize::MAX, &mut all);
        all.push(("server/served".to_string(), Content::Counts(self.server.served.clone())));
        for (index, terminal) in self.terminals.iter().enumerate() {
            let held = terminal.held;
            put_layers(&format!("terminal{index}/weights"), &terminal.weights, held, &mut all);
            put_layers(&format!("terminal{index}/velocity"), &terminal.velocity, held, &mut all);
            let mut counts = vec![held as u64];
            counts.extend(&terminal.trained);
            all.push((format!("terminal{index}/counts"), Content::Counts(counts)));
        }
        all
    }

    /// Takes over a snapshot of an engine of the same model and number of terminals. After an
    /// error the engine is in no defined state.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let mut source = snapshot.iter();
        let n_layers = self.model.n_layers();
        let sizes: Vec<usize> = (1..=n_layers).map(|l| self.model.n_parameters(l)).collect();
        let mut next = |name: &str| take(&mut source, name);
        self.server.weights = get_layers("server/weights", &sizes, n_layers, &mut next)?;
        self.server.velocity = get_layers("server/velocity", &sizes, 0, &mut next)?;
        self.server.served = counts("server/served", n_layers, &mut next)?;
        for (index, terminal) in self.terminals.iter_mut().enumerate() {
            let (name, speed) =
                (format!("terminal{index}/weights"), format!("terminal{index}/velocity"));
            let weights = get_layers(&name, &sizes, 0, &mut next)?;
            terminal.velocity = get_layers(&speed, &sizes, 0, &mut next)?;
            let counters = counts(&format!("terminal{index}/counts"), n_layers + 1, &mut next)?;
            terminal.held = counters[0] as usize;
            terminal.trained = counters[1..].to_vec();
            let full = weights.layers().iter().take_while(|layer| !layer.is_empty()).count();
            if full != terminal.held {
                return Err(wrong(&name, format!("{full} layers"), terminal.held.to_string()));
            }
            terminal.weights = weights;
        }
        Ok(())
    }
}

/// A snapshot as a safetensors file.
pub fn to_safetensors(snapshot: &Snapshot) -> Result<Vec<u8>, SnapshotError> {
    let bytes: Vec<(Dtype, usize, Vec<u8>)> = snapshot
        .iter()
        .map(|(_, content)| match content {
            Content::Floats(values) => {
                (Dtype::F32, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
            }
            Content::Counts(values) => {
                (Dtype::U64, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
            }
        })
        .collect();
    let mut views = Vec::with_capacity(bytes.len());
    for (index, ((name, _), (dtype, length, data))) in snapshot.iter().zip(&bytes).enumerate() {
        // The number keeps the order, which the format does not promise.
        views.push((format!("{index:05}/{name}"), TensorView::new(*dtype, vec![*length], data)?));
    }
    Ok(serialize(views, None)?)
}

/// The snapshot in a safetensors file.
pub fn from_safetensors(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut names: Vec<&str> = file.names();
    names.sort_unstable();
    let mut snapshot = Vec::with_capacity(names.len());
    for name in names {
        let view = file.tensor(name)?;
        let content = match view.dtype() {
            Dtype::F32 => Content::Floats(
                view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            ),
            Dtype::U64 => Content::Counts(
                view.data().as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect(),
            ),
            other => return Err(wrong(name, format!("{other:?}"), "F32 or U64".to_string())),
        };
        let short = name.split_once('/').map_or(name, |(_, short)| short);
        snapshot.push((short.to_string(), content));
    }
    Ok(snapshot)
}

fn put_layers(name: &str, weights: &Weights, last: usize, all: &mut Snapshot) {
    for (index, layer) in weights.layers().iter().enumerate() {
        let values = if index < last { layer.clone() } else { Vec::new() };
        all.push((format!("{name}/{}", index + 1), Content::Floats(values)));
    }
}

fn take<'s>(
    source: &mut std::slice::Iter<'s, (String, Content)>,
    name: &str,
) -> Result<&'s Content, SnapshotError> {
    match source.next() {
        Some((found, content)) if found == name => Ok(content),
        Some((found, _)) => Err(wrong(name, format!("tensor {found}"), "this name".to_string())),
        None => Err(wrong(name, "missing".to_string(), "this name".to_string())),
    }
}

/// Layers of the given sizes; behind the first `required` ones a layer may also be empty.
fn get_layers<'s>(
    name: &str,
    sizes: &[usize],
    required: usize,
    next: &mut impl FnMut(&str) -> Result<&'s Content, SnapshotError>,
) -> Result<Weights, SnapshotError> {
    let mut layers = Vec::with_capacity(sizes.len());
    for (index, size) in sizes.iter().enumerate() {
        let full = format!("{name}/{}", index + 1);
        match next(&full)? {
            Content::Floats(values)
                if values.len() == *size || (index >= required && values.is_empty()) =>
            {
                layers.push(values.clone());
            }
            Content::Floats(values) => {
                return Err(wrong(&full, format!("{} values", values.len()), size.to_string()));
            }
            Content::Counts(_) => {
                return Err(wrong(&full, "counts".to_string(), "floats".to_string()));
            }
        }
    }
    Ok(Weights::new(layers))
}

fn counts<'s>(
    name: &str,
    length: usize,
    next: &mut impl FnMut(&str) -> Result<&'s Content, SnapshotError>,
) -> Result<Vec<u64>, SnapshotError> {
    match next(name)? {
        Content::Counts(values) if values.len() == length => Ok(values.clone()),
        other => Err(wrong(name, format!("{other:?}"), format!("{length} counts"))),
    }
}

fn wrong(name: &str, value: String, expected: String) -> SnapshotError {
    SnapshotError::Tensor { name: name.to_string(), value, expected }
}
