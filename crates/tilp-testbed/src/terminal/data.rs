//! The private data of a terminal, as a file.
//!
//! A safetensors file with the tensors `observations.R` and `actions.R`: one row for each sample,
//! 32-bit floats. `R` is the round from which on the terminal has these samples, all earlier ones
//! included; `0` must be there.

use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use tilp_split::split::data::Dataset;

/// Why a data file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        error: String,
    },
    /// It does not contain what it must.
    #[error("{path}: tensor `{tensor}`: {reason}")]
    Tensor {
        /// The file.
        path: String,
        /// The tensor.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
}

/// Samples over the rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalData {
    /// By the first round, rising from 0.
    sets: Vec<(u64, Arc<Dataset>)>,
    widths: (usize, usize),
}

impl TerminalData {
    /// Data that never changes.
    pub fn constant(data: Arc<Dataset>, widths: (usize, usize)) -> Self {
        Self { sets: vec![(0, data)], widths }
    }

    /// The same with other data from a round on. Rounds rise.
    pub fn then(mut self, round: u64, data: Arc<Dataset>) -> Self {
        self.sets.push((round, data));
        self
    }

    /// The data in a round.
    pub fn at(&self, round: u64) -> &Arc<Dataset> {
        let set = self.sets.iter().rev().find(|(first, _)| *first <= round);
        &set.unwrap_or(&self.sets[0]).1
    }

    /// `Ok` if samples have these widths.
    pub fn check(&self, observation: usize, action: usize) -> Result<(), String> {
        if self.widths == (observation, action) {
            return Ok(());
        }
        let (found, actions) = self.widths;
        Err(format!(
            "data: {found} features and {actions} components of an action, expected {observation} \
             and {action}"
        ))
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let name = path.display().to_string();
        let unread = |error: String| DataError::File { path: name.clone(), error };
        let bytes = std::fs::read(path).map_err(|error| unread(error.to_string()))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| unread(error.to_string()))?;
        let round = |name: &str| name.strip_prefix("observations.")?.parse::<u64>().ok();
        let mut rounds: Vec<u64> = file.names().iter().filter_map(|name| round(name)).collect();
        rounds.sort_unstable();
        let wrong = |tensor: String, reason: String| DataError::Tensor {
            path: name.clone(),
            tensor,
            reason,
        };
        if rounds.first() != Some(&0) {
            return Err(wrong("observations.0".into(), "missing".into()));
        }
        let matrix = |tensor: String| match rows(&file, &tensor) {
            Ok(found) => Ok(found),
            Err(reason) => Err(wrong(tensor, reason)),
        };
        let (mut sets, mut widths) = (Vec::new(), None);
        for round in rounds {
            let (n, wide, observations) = matrix(format!("observations.{round}"))?;
            let (m, narrow, actions) = matrix(format!("actions.{round}"))?;
            if m != n || *widths.get_or_insert((wide, narrow)) != (wide, narrow) {
                let reason = format!("{m} rows of {narrow}, expected {n} and the same widths");
                return Err(wrong(format!("actions.{round}"), reason));
            }
            let mut data = Dataset::new(wide, narrow);
            for (observation, action) in observations.chunks(wide).zip(actions.chunks(narrow)) {
                data.push(observation, action);
            }
            sets.push((round, Arc::new(data)));
        }
        Ok(Self { sets, widths: widths.unwrap_or_default() })
    }

    /// Writes a file.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        let unwritten = |error: String| DataError::File { path: path.display().to_string(), error };
        let (wide, narrow) = self.widths;
        let bytes = |values: Vec<&[f32]>| -> Vec<u8> {
            values.into_iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
        };
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
        for (round, data) in &self.sets {
            let n = data.len();
            let observations = (0..n).map(|sample| data.observation(sample)).collect();
            let actions = (0..n).map(|sample| data.action(sample)).collect();
            tensors.push((format!("observations.{round}"), vec![n, wide], bytes(observations)));
            tensors.push((format!("actions.{round}"), vec![n, narrow], bytes(actions)));
        }
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            (name, view.expect("as many bytes as the shape says"))
        });
        let file = serialize(views, None).map_err(|error| unwritten(error.to_string()))?;
        std::fs::write(path, file).map_err(|error| unwritten(error.to_string()))
    }
}

/// Rows, columns and values of a matrix of finite 32-bit floats.
fn rows(file: &SafeTensors<'_>, name: &str) -> Result<(usize, usize, Vec<f32>), String> {
    let view = file.tensor(name).map_err(|error| error.to_string())?;
    let (&[rows, columns], Dtype::F32) = (view.shape(), view.dtype()) else {
        return Err(format!("{:?} {:?}, expected a matrix of F32", view.dtype(), view.shape()));
    };
    if rows == 0 || columns == 0 {
        return Err(format!("{rows} x {columns}, expected at least one sample"));
    }
    let bytes = view.data().chunks_exact(4);
    let values = bytes.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let values: Vec<f32> = values.collect();
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok((rows, columns, values)),
        Some(value) => Err(format!("{value}, expected finite numbers")),
    }
}
