//! The whole state of engine, server and terminals as named arrays, restored bit for bit.
//!
//! Everything in a snapshot is checked before anything is changed. A forged snapshot is a
//! [`SnapshotError`] and leaves the receiver as it was.

use std::collections::BTreeMap;

use super::control::{LayerCopy, TrainOrder};
use super::edge::Edge;
use super::engine::{Engine, locked};
use super::link::LocalLink;
use super::model::{SplitModel, Weights};
use super::optimiser::{LayerState, OptimiserState, finite};
use super::server::{ServerHalf, SharedLayers};
use super::session::sizes;
use super::terminal::{Pending, TerminalHalf};
use super::terminal_state::TerminalState;
use crate::round::TerminalId;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// Largest number of samples that a snapshot may claim for one copy, so that sums of counts
/// cannot overflow.
const MAX_SAMPLES: u64 = 1 << 48;

/// No run has more rounds.
const MAX_ROUND: u64 = 1 << 32;

impl<M: SplitModel> Persist for Engine<M, LocalLink<M>> {
    /// The server half and every terminal, by id.
    fn save(&self, snapshot: &mut Snapshot) {
        self.server.save(snapshot);
        for link in self.links.values() {
            locked(link).terminal().save(snapshot);
        }
    }

    /// Takes over a snapshot of an engine of the same model. Terminals that the snapshot does not
    /// name leave. Terminals that it names must be members: those that joined during the run
    /// must have joined again, since a snapshot contains no data sets.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let server = ServerHalf::restored(&sizes(self.model()), snapshot)?;
        let mut copies = BTreeMap::new();
        for (id, state) in &server.terminals {
            let Some(link) = self.links.get(id) else {
                return Err(SnapshotError::value("server/terminals", id, "ids of members"));
            };
            let restored = Held::restored(locked(link).terminal(), snapshot)?;
            restored.check(*id, state)?;
            copies.insert(*id, restored);
        }
        self.server = server;
        self.links.retain(|id, _| copies.contains_key(id));
        for (id, restored) in copies {
            if let Some(link) = self.links.get(&id) {
                restored.put_into(locked(link).terminal_mut());
            }
        }
        Ok(())
    }
}

impl<M: SplitModel> Persist for TerminalHalf<M> {
    /// The copies it holds with their optimiser state, and the pending order.
    fn save(&self, snapshot: &mut Snapshot) {
        let name = format!("terminal/{}", self.id);
        snapshot.put_u64(&format!("{name}/holds"), flags(&self.holds));
        for (layer, held) in (1..).zip(&self.holds) {
            if *held {
                put_layer(&name, layer, self.weights.layer(layer), snapshot);
            }
            let state = self.optimiser.layer(layer);
            if *held || !state.is_empty() {
                state.save(&format!("{name}/optimiser/{layer}"), snapshot);
            }
        }
        let order = self.pending.iter().flat_map(|pending| pending.order.to_bytes());
        snapshot.put_u64(&format!("{name}/order"), order.map(u64::from).collect());
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        Held::restored(self, snapshot)?.put_into(self);
        Ok(())
    }
}

/// The state of a terminal, read and checked.
struct Held {
    weights: Weights,
    holds: Vec<bool>,
    optimiser: OptimiserState,
    order: Option<TrainOrder>,
}

impl Held {
    fn restored<M: SplitModel>(
        terminal: &TerminalHalf<M>,
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        let (name, sizes) = (format!("terminal/{}", terminal.id), sizes(&*terminal.model));
        let holds = get_flags(&format!("{name}/holds"), sizes.len(), snapshot)?;
        let mut weights = Weights::empty(sizes.len());
        let mut optimiser = OptimiserState::new(sizes.len());
        for (layer, (held, &size)) in (1..).zip(holds.iter().zip(&sizes)) {
            if *held {
                *weights.layer_mut(layer) = get_layer(&name, layer, size, snapshot)?;
            }
            let state = format!("{name}/optimiser/{layer}");
            *optimiser.layer_mut(layer) = match held {
                true => LayerState::restored(&state, size, snapshot)?,
                false => LayerState::restored_if_saved(&state, size, snapshot)?,
            };
        }
        let order = get_order(&format!("{name}/order"), terminal.id, &holds, snapshot)?;
        Ok(Self { weights, holds, optimiser, order })
    }

    /// `Ok` if the terminal holds what the server's books say.
    fn check(&self, id: TerminalId, state: &TerminalState) -> Result<(), SnapshotError> {
        for (index, holds) in self.holds.iter().enumerate() {
            if !state.must_forget && state.is_on_terminal(index + 1) != *holds {
                let expected = format!("the layers of server/terminal/{id}, {} differs", index + 1);
                let name = format!("terminal/{id}/holds");
                return Err(SnapshotError::value(&name, u8::from(*holds), expected));
            }
        }
        Ok(())
    }

    fn put_into<M: SplitModel>(self, terminal: &mut TerminalHalf<M>) {
        terminal.weights = self.weights;
        terminal.holds = self.holds;
        terminal.optimiser = self.optimiser;
        terminal.pending = self.order.map(Pending::again);
    }
}

/// A pending order. The forward pass is run again when the gradient arrives.
fn get_order(
    name: &str,
    id: TerminalId,
    holds: &[bool],
    snapshot: &Snapshot,
) -> Result<Option<TrainOrder>, SnapshotError> {
    let numbers = snapshot.u64(name, snapshot.len_of(name))?;
    if numbers.is_empty() {
        return Ok(None);
    }
    let bytes: Result<Vec<u8>, _> = numbers.iter().map(|number| u8::try_from(*number)).collect();
    let bytes = bytes.map_err(|error| SnapshotError::value(name, error, "bytes"))?;
    let order = TrainOrder::from_bytes(&bytes, holds.len());
    let order = order.map_err(|error| SnapshotError::value(name, error, "a train order"))?;
    let cut = usize::from(order.context.cut);
    if order.context.terminal != id || cut == holds.len() || holds[..cut].contains(&false) {
        let found = format!("{:?}", order.context);
        return Err(SnapshotError::value(name, found, "an order that this terminal can have"));
    }
    Ok(Some(order))
}

impl Persist for ServerHalf {
    /// Shared layers, edge servers, and the books about every terminal.
    fn save(&self, snapshot: &mut Snapshot) {
        let SharedLayers { weights, optimiser, served } = &self.shared;
        for (index, layer) in weights.layers().iter().enumerate() {
            put_layer("server", index + 1, layer, snapshot);
        }
        optimiser.save("server/optimiser", snapshot);
        snapshot.put_u64("server/served", served.clone());
        snapshot.put_u64("server/round", vec![self.last_round]);
        snapshot.put_u64("server/edges", vec![self.edges.len() as u64]);
        for (index, edge) in self.edges.iter().enumerate() {
            save_edge(&format!("server/edge/{index}"), edge, snapshot);
        }
        let ids = self.terminals.keys().map(|id| u64::from(id.0)).collect();
        snapshot.put_u64("server/terminals", ids);
        for (id, state) in &self.terminals {
            save_books(&format!("server/terminal/{id}"), state, snapshot);
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let sizes: Vec<usize> = self.shared.weights.layers().iter().map(Vec::len).collect();
        *self = Self::restored(&sizes, snapshot)?;
        Ok(())
    }
}

impl ServerHalf {
    /// Reads the server half of a model whose layers have these numbers of parameters.
    pub(super) fn restored(sizes: &[usize], snapshot: &Snapshot) -> Result<Self, SnapshotError> {
        let layer =
            |(index, size): (usize, &usize)| get_layer("server", index + 1, *size, snapshot);
        let weights = sizes.iter().enumerate().map(layer).collect::<Result<_, _>>()?;
        let shared = SharedLayers {
            weights: Weights::new(weights),
            optimiser: OptimiserState::restored("server/optimiser", sizes, snapshot)?,
            served: get_counts("server/served", sizes.len(), snapshot)?,
        };
        let edges = (0..snapshot.u64("server/edges", 1)?[0])
            .map(|index| get_edge(&format!("server/edge/{index}"), sizes, snapshot))
            .collect::<Result<_, _>>()?;
        let mut terminals = BTreeMap::new();
        for id in get_ids(snapshot)? {
            let state = get_books(&format!("server/terminal/{id}"), sizes, snapshot)?;
            terminals.insert(id, state);
        }
        let last_round = match snapshot.len_of("server/round") {
            0 => 0,
            _ => snapshot.count("server/round", 0, MAX_ROUND)?,
        };
        Ok(Self { shared, edges, terminals, last_round })
    }
}

/// The ids of the members: different ones, rising.
fn get_ids(snapshot: &Snapshot) -> Result<Vec<TerminalId>, SnapshotError> {
    let name = "server/terminals";
    let mut ids: Vec<TerminalId> = Vec::new();
    for number in snapshot.u64(name, snapshot.len_of(name))? {
        match u32::try_from(*number).map(TerminalId) {
            Ok(id) if ids.last().is_none_or(|last| *last < id) => ids.push(id),
            _ => return Err(SnapshotError::value(name, number, "rising ids of terminals")),
        }
    }
    Ok(ids)
}

fn save_books(name: &str, state: &TerminalState, snapshot: &mut Snapshot) {
    let TerminalState { held, trained, kept, resting, compressed, must_forget } = state;
    snapshot.put_u64(&format!("{name}/held"), vec![*held as u64, u64::from(*must_forget)]);
    snapshot.put_u64(&format!("{name}/trained"), trained.clone());
    if *compressed {
        snapshot.put_u64(&format!("{name}/compressed"), vec![1]);
    }
    let is_kept: Vec<bool> = kept.iter().map(Option::is_some).collect();
    snapshot.put_u64(&format!("{name}/kept"), flags(&is_kept));
    for (index, copy) in kept.iter().enumerate() {
        if let Some(LayerCopy { parameters, state }) = copy {
            put_layer(name, index + 1, parameters, snapshot);
            state.save(&format!("{name}/optimiser/{}", index + 1), snapshot);
        }
    }
    for (index, state) in resting.iter().enumerate().filter(|(_, state)| !state.is_empty()) {
        state.save(&format!("{name}/resting/{}", index + 1), snapshot);
    }
}

fn get_books(
    name: &str,
    sizes: &[usize],
    snapshot: &Snapshot,
) -> Result<TerminalState, SnapshotError> {
    let n_layers = sizes.len();
    let of = |part: &str| format!("{name}/{part}");
    let (held, must_forget) = match *snapshot.u64(&of("held"), 2)? {
        [held, flag @ 0..=1] if held <= n_layers as u64 => (held as usize, flag == 1),
        ref found => {
            let expected = format!("0 to {n_layers}, and 0 or 1");
            return Err(SnapshotError::value(&of("held"), format!("{found:?}"), expected));
        }
    };
    let trained = get_counts(&of("trained"), n_layers, snapshot)?;
    let is_kept = get_flags(&of("kept"), n_layers, snapshot)?;
    let mut kept = vec![None; n_layers];
    for layer in (1..=n_layers).filter(|layer| is_kept[layer - 1]) {
        let parameters = get_layer(name, layer, sizes[layer - 1], snapshot)?;
        let state = of(&format!("optimiser/{layer}"));
        let state = LayerState::restored(&state, sizes[layer - 1], snapshot)?;
        kept[layer - 1] = Some(LayerCopy { parameters, state });
    }
    let mut resting = vec![LayerState::default(); n_layers];
    for (layer, (resting, &size)) in (1..).zip(resting.iter_mut().zip(sizes)) {
        let name = of(&format!("resting/{layer}"));
        *resting = LayerState::restored_if_saved(&name, size, snapshot)?;
    }
    for layer in 1..=n_layers {
        if trained[layer - 1] > 0 && layer > held && kept[layer - 1].is_none() {
            let expected = format!("0 for layer {layer}, of which there is no copy");
            return Err(SnapshotError::value(&of("trained"), trained[layer - 1], expected));
        }
    }
    if must_forget && (held > 0 || is_kept.contains(&true)) {
        return Err(SnapshotError::value(&of("held"), held, "0 before a reset"));
    }
    let compressed = snapshot.len_of(&of("compressed")) > 0;
    Ok(TerminalState { held, trained, kept, resting, compressed, must_forget })
}

fn save_edge(name: &str, edge: &Edge, snapshot: &mut Snapshot) {
    snapshot.put_u64(&format!("{name}/holds"), flags(&edge.holds));
    snapshot.put_u64(&format!("{name}/served"), edge.served.clone());
    for (layer, held) in (1..).zip(&edge.holds) {
        if *held {
            put_layer(name, layer, edge.weights.layer(layer), snapshot);
        }
        let state = edge.optimiser.layer(layer);
        if *held || !state.is_empty() {
            state.save(&format!("{name}/optimiser/{layer}"), snapshot);
        }
    }
}

fn get_edge(name: &str, sizes: &[usize], snapshot: &Snapshot) -> Result<Edge, SnapshotError> {
    let mut edge = Edge::new(sizes.len());
    edge.holds = get_flags(&format!("{name}/holds"), sizes.len(), snapshot)?;
    edge.served = get_counts(&format!("{name}/served"), sizes.len(), snapshot)?;
    for (layer, &size) in (1..).zip(sizes) {
        let state = format!("{name}/optimiser/{layer}");
        if edge.holds[layer - 1] {
            *edge.weights.layer_mut(layer) = get_layer(name, layer, size, snapshot)?;
            *edge.optimiser.layer_mut(layer) = LayerState::restored(&state, size, snapshot)?;
            continue;
        }
        *edge.optimiser.layer_mut(layer) = LayerState::restored_if_saved(&state, size, snapshot)?;
        if edge.served[layer - 1] > 0 {
            let expected = format!("0 for layer {layer}, of which there is no copy");
            let name = format!("{name}/served");
            return Err(SnapshotError::value(&name, edge.served[layer - 1], expected));
        }
    }
    Ok(edge)
}

fn put_layer(name: &str, layer: usize, values: &[f32], snapshot: &mut Snapshot) {
    snapshot.put_f32(&format!("{name}/weights/{layer}"), values.to_vec());
}

fn get_layer(
    name: &str,
    layer: usize,
    size: usize,
    snapshot: &Snapshot,
) -> Result<Vec<f32>, SnapshotError> {
    finite(&format!("{name}/weights/{layer}"), size, snapshot)
}

fn get_counts(name: &str, length: usize, snapshot: &Snapshot) -> Result<Vec<u64>, SnapshotError> {
    let counts = snapshot.u64(name, length)?;
    match counts.iter().find(|count| **count > MAX_SAMPLES) {
        None => Ok(counts.to_vec()),
        Some(count) => Err(SnapshotError::value(name, count, format!("at most {MAX_SAMPLES}"))),
    }
}

fn flags(values: &[bool]) -> Vec<u64> {
    values.iter().map(|value| u64::from(*value)).collect()
}

fn get_flags(name: &str, length: usize, snapshot: &Snapshot) -> Result<Vec<bool>, SnapshotError> {
    let numbers = snapshot.u64(name, length)?;
    match numbers.iter().find(|number| **number > 1) {
        None => Ok(numbers.iter().map(|number| *number == 1).collect()),
        Some(number) => Err(SnapshotError::value(name, number, "0 or 1")),
    }
}
