//! The whole state of an engine as named arrays, restored bit for bit.

use super::edge::Edge;
use super::engine::Engine;
use super::model::{SplitModel, Weights};
use crate::snapshot::{Persist, Snapshot, SnapshotError};

impl<M: SplitModel> Persist for Engine<M> {
    /// Everything needed to go on: copies, velocities, counters. Of a terminal's copies only the
    /// layers that are its own are state.
    fn save(&self, snapshot: &mut Snapshot) {
        put_layers("server/weights", &self.server.weights, usize::MAX, snapshot);
        put_layers("server/velocity", &self.server.velocity, usize::MAX, snapshot);
        snapshot.put_u64("server/served", self.server.served.clone());
        for (index, terminal) in self.terminals.iter().enumerate() {
            let own = terminal.current;
            put_layers(&format!("terminal/{index}/weights"), &terminal.weights, own, snapshot);
            put_layers(&format!("terminal/{index}/velocity"), &terminal.velocity, own, snapshot);
            let mut counts = vec![terminal.held as u64, own as u64];
            counts.extend(&terminal.trained);
            snapshot.put_u64(&format!("terminal/{index}/counts"), counts);
        }
        for (index, edge) in self.edges.iter().enumerate() {
            put_layers(&format!("edge/{index}/weights"), &edge.weights, usize::MAX, snapshot);
            put_layers(&format!("edge/{index}/velocity"), &edge.velocity, usize::MAX, snapshot);
            let holds = edge.holds.iter().map(|&holds| u64::from(holds));
            let counts = edge.served.iter().copied().chain(holds).collect();
            snapshot.put_u64(&format!("edge/{index}/counts"), counts);
        }
    }

    /// Takes over a snapshot of an engine of the same model and number of terminals. After an
    /// error the engine is in no defined state.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n_layers = self.model.n_layers();
        let sizes: Vec<usize> = (1..=n_layers).map(|l| self.model.n_parameters(l)).collect();
        self.server.weights = get_layers("server/weights", &sizes, n_layers, snapshot)?;
        self.server.velocity = get_layers("server/velocity", &sizes, 0, snapshot)?;
        self.server.served = snapshot.u64("server/served", n_layers)?.to_vec();
        for (index, terminal) in self.terminals.iter_mut().enumerate() {
            let counts = snapshot.u64(&format!("terminal/{index}/counts"), n_layers + 2)?;
            terminal.held = (counts[0] as usize).min(n_layers);
            terminal.current = (counts[1] as usize).min(n_layers);
            terminal.trained = counts[2..].to_vec();
            let (weights, velocity) =
                (format!("terminal/{index}/weights"), format!("terminal/{index}/velocity"));
            terminal.weights = get_layers(&weights, &sizes, terminal.current, snapshot)?;
            terminal.velocity = get_layers(&velocity, &sizes, 0, snapshot)?;
        }
        self.edges = get_edges(&sizes, snapshot)?;
        Ok(())
    }
}

/// The edge servers of a snapshot; most rules have none.
fn get_edges(sizes: &[usize], snapshot: &Snapshot) -> Result<Vec<Edge>, SnapshotError> {
    let counts = |index: usize| format!("edge/{index}/counts");
    let n_edges = (0..).take_while(|&index| snapshot.len_of(&counts(index)) > 0).count();
    let edge = |index: usize| {
        let numbers = snapshot.u64(&counts(index), 2 * sizes.len())?;
        let (served, holds) = numbers.split_at(sizes.len());
        Ok(Edge {
            weights: get_layers(&format!("edge/{index}/weights"), sizes, 0, snapshot)?,
            velocity: get_layers(&format!("edge/{index}/velocity"), sizes, 0, snapshot)?,
            served: served.to_vec(),
            holds: holds.iter().map(|&holds| holds > 0).collect(),
        })
    };
    (0..n_edges).map(edge).collect()
}

fn put_layers(name: &str, weights: &Weights, last: usize, snapshot: &mut Snapshot) {
    for (index, layer) in weights.layers().iter().enumerate() {
        let values = if index < last { layer.clone() } else { Vec::new() };
        snapshot.put_f32(&format!("{name}/{}", index + 1), values);
    }
}

/// Layers of the given sizes; behind the first `required` ones a layer may also be empty.
fn get_layers(
    name: &str,
    sizes: &[usize],
    required: usize,
    snapshot: &Snapshot,
) -> Result<Weights, SnapshotError> {
    let layer = |(index, size): (usize, &usize)| {
        let full = format!("{name}/{}", index + 1);
        let empty = index >= required && snapshot.len_of(&full) == 0;
        snapshot.f32(&full, if empty { 0 } else { *size }).map(<[f32]>::to_vec)
    };
    let layers: Result<Vec<_>, _> = sizes.iter().enumerate().map(layer).collect();
    Ok(Weights::new(layers?))
}
