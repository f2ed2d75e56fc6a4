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
        /// Accepted values.
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

    /// Quantities of that name and length; all finite, with magnitudes up to `most`.
    pub fn bounded_f64(
        &self,
        name: &str,
        length: usize,
        most: f64,
    ) -> Result<&[f64], SnapshotError> {
        let values = self.f64(name, length)?;
        match values.iter().find(|value| value.is_nan() || value.abs() > most) {
            Some(value) => Err(SnapshotError::value(name, value, format!("-{most} to {most}"))),
            None => Ok(values),
        }
    }

    /// The same, where NaN means an unknown value.
    pub fn known_f64(&self, name: &str, length: usize, most: f64) -> Result<&[f64], SnapshotError> {
        let values = self.f64(name, length)?;
        match values.iter().find(|value| value.abs() > most) {
            Some(value) => {
                Err(SnapshotError::value(name, value, format!("-{most} to {most}, or NaN")))
            }
            None => Ok(values),
        }
    }

    /// The only number of that name, which must be from `least` to `most`.
    pub fn count(&self, name: &str, least: u64, most: u64) -> Result<u64, SnapshotError> {
        match self.u64(name, 1)?[0] {
            count if (least..=most).contains(&count) => Ok(count),
            count => Err(SnapshotError::value(name, count, format!("{least} to {most}"))),
        }
    }

    /// An error unless this is what was restored: what the restored parts save again. A snapshot
    /// with other arrays, lengths or values than a run has does not come back the same.
    pub fn check_restored(&self, again: &Self) -> Result<(), SnapshotError> {
        for (name, array) in &self.0 {
            match again.0.get(name) {
                Some(same) if same.has_bits_of(array) => {}
                Some(same) => {
                    let (found, expected) = (array.len(), same.len());
                    return Err(match found == expected {
                        true => SnapshotError::value(name, "other values", "what a run saves"),
                        false => SnapshotError::Length { name: name.clone(), found, expected },
                    });
                }
                None => {
                    let expected = "no such array";
                    return Err(SnapshotError::value(name, "an array", expected));
                }
            }
        }
        match again.0.iter().find(|(name, _)| !self.0.contains_key(*name)) {
            Some((name, array)) => {
                Err(SnapshotError::Missing { name: name.clone(), expected: array.type_name() })
            }
            None => Ok(()),
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
        self.0.get(name).map_or(0, Array::len)
    }
}

impl Array {
    fn len(&self) -> usize {
        match self {
            Array::F32(values) => values.len(),
            Array::F64(values) => values.len(),
            Array::U64(values) => values.len(),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Array::F32(_) => "f32",
            Array::F64(_) => "f64",
            Array::U64(_) => "u64",
        }
    }

    /// Whether both are the same, bit for bit.
    fn has_bits_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Array::F32(a), Array::F32(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Array::F64(a), Array::F64(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Array::U64(a), Array::U64(b)) => a == b,
            _ => false,
        }
    }
}

/// State that survives a kill: it is saved to a snapshot and restored bit for bit.
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

    #[test]
    fn values_beyond_their_bounds_are_refused_by_name() {
        let mut snapshot = Snapshot::default();
        snapshot.put_f64("a", vec![1.0, -3.0, f64::NAN]);
        snapshot.put_u64("n", vec![7]);
        assert!(snapshot.bounded_f64("a", 3, 5.0).unwrap_err().to_string().contains("NaN"));
        assert!(snapshot.known_f64("a", 3, 5.0).is_ok());
        let said = snapshot.known_f64("a", 3, 2.0).unwrap_err().to_string();
        assert_eq!(said, "checkpoint array `a` contains -3, expected -2 to 2, or NaN");
        assert_eq!(snapshot.count("n", 1, 7), Ok(7));
        let said = snapshot.count("n", 8, 9).unwrap_err().to_string();
        assert_eq!(said, "checkpoint array `n` contains 7, expected 8 to 9");
    }

    #[test]
    fn what_does_not_come_back_the_same_is_no_snapshot_of_a_run() {
        let mut whole = Snapshot::default();
        whole.put_f64("a", vec![1.0, f64::NAN]);
        whole.put_u64("n", vec![7]);
        assert_eq!(whole.check_restored(&whole.clone()), Ok(()));
        let changed = |change: fn(&mut Snapshot)| {
            let mut forged = whole.clone();
            change(&mut forged);
            forged.check_restored(&whole).unwrap_err().to_string()
        };
        assert!(
            changed(|one| one.put_f64("a", vec![1.0])).contains("`a` has 1 values, expected 2")
        );
        assert!(changed(|one| one.put_f64("a", vec![2.0, f64::NAN])).contains("`a`"));
        assert!(changed(|one| one.put_f32("n", vec![7.0])).contains("`n`"));
        assert!(changed(|one| one.put_u64("more", vec![])).contains("`more`"));
        assert!(changed(|one| drop(one.0.remove("n"))).contains("no array `n` of type u64"));
    }
}
