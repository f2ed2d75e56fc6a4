//! A snapshot as bytes.

use prost::Message;
use tilp_core::snapshot::{Array, Snapshot};

use super::journal;

/// The bytes of a snapshot.
pub fn state_to_bytes(snapshot: &Snapshot) -> Vec<u8> {
    let array = |(name, array): (&String, &Array)| {
        let mut message = journal::Array { name: name.clone(), ..journal::Array::default() };
        match array {
            Array::F32(values) => (message.kind, message.f32) = (1, values.clone()),
            Array::F64(values) => (message.kind, message.f64) = (2, values.clone()),
            Array::U64(values) => (message.kind, message.u64) = (3, values.clone()),
        }
        message
    };
    journal::State { arrays: snapshot.0.iter().map(array).collect() }.encode_to_vec()
}

/// The snapshot in these bytes.
pub fn state_from_bytes(bytes: &[u8]) -> Result<Snapshot, String> {
    let state = journal::State::decode(bytes).map_err(|error| format!("state: {error}"))?;
    let mut snapshot = Snapshot::default();
    for array in state.arrays {
        let values = match array.kind {
            1 => Array::F32(array.f32),
            2 => Array::F64(array.f64),
            3 => Array::U64(array.u64),
            kind => return Err(format!("state: kind {kind} of `{}`, expected 1 to 3", array.name)),
        };
        snapshot.0.insert(array.name, values);
    }
    Ok(snapshot)
}
