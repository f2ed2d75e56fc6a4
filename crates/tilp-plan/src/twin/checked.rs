//! What every number of a twin in a snapshot must be, whatever it means.

use crate::snapshot::{Array, Snapshot, SnapshotError};

/// No number that a twin keeps has a larger magnitude.
const MOST: f64 = 1e12;

/// Arrays in which NaN means an unknown value.
const MAY_BE_UNKNOWN: [&str; 3] =
    ["twin/training/levels", "twin/task/centres", "twin/absent/numbers"];

/// Refuses a snapshot in which a number of the twin is not finite or out of bounds.
pub(super) fn check(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    for (name, array) in snapshot.0.iter().filter(|(name, _)| name.starts_with("twin/")) {
        let length = snapshot.len_of(name);
        match array {
            Array::F64(_) if MAY_BE_UNKNOWN.contains(&name.as_str()) => {
                snapshot.known_f64(name, length, MOST).map(drop)?;
            }
            Array::F64(_) => snapshot.bounded_f64(name, length, MOST).map(drop)?,
            Array::F32(_) => snapshot.finite_f32(name, length).map(drop)?,
            Array::U64(_) => snapshot.u64_up_to(name, length, MOST as u64).map(drop)?,
        }
    }
    Ok(())
}
