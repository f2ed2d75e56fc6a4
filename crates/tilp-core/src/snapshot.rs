//! State of a run as named arrays: what a checkpoint holds.

use std::collections::BTreeMap;

/// An array of one of the few types that state is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Weights and velocities.
    F32(Vec<f32>),
    /// Physical quantities.
    F64(Vec<f64>),
    /// Counters and indices.
    U64(Vec<u64>),
}

/// Named arrays, ordered by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot(pub BTreeMap<String, Array>);

/// Why a snapshot does not fit what it is restored into.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// An array that must be there is not.
    #[error("checkpoint has no array `{name}` of type {expected}")]
    Missing {
        /// Name of the array.
        name: String,
        /// Its type.
        expected: &'static str,
    },
    /// An array has another length.
    #[error("checkpoint array `{name}` has {found} values, expected {expected}")]
    Length {
        /// Name of the array.
        name: String,
        /// Length found.
        found: usize,
        /// Length expected.
        expected: usize,
    },
    /// A value that no run can have.
    #[error("checkpoint array `{name}` contains {value}, expected {expected}")]
    Value {
        /// Name of the array.
        name: String,
        /// The value.
        value: String,
        /// What is possible.
        expected: String,
    },
}

impl SnapshotError {
    /// A value that no run can have.
    pub fn value(
        name: &str,
        value: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Self {
        Self::Value {
            name: name.to_owned(),
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }
}

macro_rules! accessors {
    ($put:ident, $get:ident, $variant:ident, $type:ty, $word:literal) => {
        /// Stores an array under a name.
        pub fn $put(&mut self, name: &str, values: Vec<$type>) {
            self.0.insert(name.to_owned(), Array::$variant(values));
        }

        /// The array of that name and length.
        pub fn $get(&self, name: &str, length: usize) -> Result<&[$type], SnapshotError> {
            let Some(Array::$variant(values)) = self.0.get(name) else {
                return Err(SnapshotError::Missing { name: name.to_owned(), expected: $word });
            };
            if values.len() != length {
                let (found, expected) = (values.len(), length);
                return Err(SnapshotError::Length { name: name.to_owned(), found, expected });
            }
            Ok(values)
        }
    };
}

impl Snapshot {
    accessors!(put_f32, f32, F32, f32, "f32");
    accessors!(put_f64, f64, F64, f64, "f64");
    accessors!(put_u64, u64, U64, u64, "u64");

    /// Counters or indices of that name and length, none above `most`.
    pub fn u64_up_to(&self, name: &str, length: usize, most: u64) -> Result<&[u64], SnapshotError> {
        let values = self.u64(name, length)?;
        match values.iter().find(|value| **value > most) {
            Some(value) => Err(SnapshotError::value(name, value, format!("at most {most}"))),
            None => Ok(values),
        }
    }

    /// Quantities of that name and length, all finite.
    pub fn finite_f64(&self, name: &str, length: usize) -> Result<&[f64], SnapshotError> {
        let values = self.f64(name, length)?;
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(SnapshotError::value(name, value, "a finite number")),
            None => Ok(values),
        }
    }

    /// Weights of that name and length, all finite.
    pub fn finite_f32(&self, name: &str, length: usize) -> Result<&[f32], SnapshotError> {
        let values = self.f32(name, length)?;
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(SnapshotError::value(name, value, "a finite number")),
            None => Ok(values),
        }
    }

    /// Length of the array of that name, zero if there is none.
    pub fn len_of(&self, name: &str) -> usize {
        match self.0.get(name) {
            Some(Array::F32(values)) => values.len(),
            Some(Array::F64(values)) => values.len(),
            Some(Array::U64(values)) => values.len(),
            None => 0,
        }
    }
}

/// What survives a kill: state goes out to a snapshot and comes back bit for bit.
pub trait Persist {
    /// Writes the state.
    fn save(&self, _snapshot: &mut Snapshot) {}
    /// Takes the state back.
    fn restore(&mut self, _snapshot: &Snapshot) -> Result<(), SnapshotError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_length_or_type_names_the_array() {
        let mut snapshot = Snapshot::default();
        snapshot.put_f64("world/clock", vec![1.0]);
        assert_eq!(snapshot.f64("world/clock", 1), Ok(&[1.0][..]));
        let wrong = snapshot.f64("world/clock", 2).unwrap_err().to_string();
        assert_eq!(wrong, "checkpoint array `world/clock` has 1 values, expected 2");
        assert!(snapshot.u64("world/clock", 1).unwrap_err().to_string().contains("world/clock"));
    }
}
