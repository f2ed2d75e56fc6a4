//! The state of a learner by a law, restored bit for bit.

use std::collections::BTreeMap;

use super::LawLearner;
use super::copies::{Holdings, LayerCopies, OwnCopy, SharedCopy};
use crate::round::TerminalId;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

/// No run has more edge servers; a checkpoint with more is forged.
const MOST_EDGES: u64 = 10_000;

impl Persist for LawLearner {
    fn save(&self, snapshot: &mut Snapshot) {
        let copies = &self.copies;
        snapshot.put_f64("law/settled", copies.settled.clone());
        let members = || copies.members.iter();
        snapshot.put_u64("law/members", members().map(|(id, _)| id.0.into()).collect());
        snapshot.put_u64("law/held", members().map(|(_, own)| own.held as u64).collect());
        let own = || members().flat_map(|(_, own)| &own.layers);
        snapshot.put_f64("law/own/samples", own().map(|copy| copy.samples).collect());
        snapshot.put_f64("law/own/steps", own().map(|copy| copy.steps).collect());
        put_shared(snapshot, "law/server", copies.server.iter());
        let edges = || copies.edges.iter().flatten();
        let holds = edges().map(|copy| u64::from(copy.is_some())).collect();
        snapshot.put_u64("law/edges", vec![copies.edges.len() as u64]);
        snapshot.put_u64("law/edge/holds", holds);
        put_shared(snapshot, "law/edge", edges().flatten());
    }

    /// Everything is checked before anything is changed.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let (n_layers, n_terminals) = (self.copies.n_layers(), self.copies.n_terminals());
        let settled = counts(snapshot, "law/settled", n_terminals)?.to_vec();
        let members = members(snapshot, n_layers, n_terminals)?;
        let server = shared(snapshot, "law/server", n_layers, n_terminals)?;
        let edges = edges(snapshot, n_layers, n_terminals)?;
        let LayerCopies { settled: to, members: books, server: copy, edges: tier, .. } =
            &mut self.copies;
        (*to, *books, *copy, *tier) = (settled, members, server, edges);
        Ok(())
    }
}

fn put_shared<'a>(
    snapshot: &mut Snapshot,
    name: &str,
    copies: impl Iterator<Item = &'a SharedCopy> + Clone,
) {
    let samples = copies.clone().flat_map(|copy| copy.samples.iter().copied());
    snapshot.put_f64(&format!("{name}/samples"), samples.collect());
    snapshot.put_f64(&format!("{name}/steps"), copies.map(|copy| copy.steps).collect());
}

/// Numbers of samples or steps: finite, none negative.
fn counts<'a>(
    snapshot: &'a Snapshot,
    name: &str,
    length: usize,
) -> Result<&'a [f64], SnapshotError> {
    let values = snapshot.finite_f64(name, length)?;
    match values.iter().find(|value| **value < 0.0) {
        Some(value) => Err(SnapshotError::value(name, value, "0 or more")),
        None => Ok(values),
    }
}

fn members(
    snapshot: &Snapshot,
    n_layers: usize,
    n_terminals: usize,
) -> Result<BTreeMap<TerminalId, Holdings>, SnapshotError> {
    const IDS: &str = "law/members";
    let n_members = snapshot.len_of(IDS);
    let ids = snapshot.u64(IDS, n_members)?;
    let rising = ids.windows(2).all(|pair| pair[0] < pair[1]);
    if !rising || ids.iter().any(|id| *id >= n_terminals as u64) {
        let expected = format!("rising ids below {n_terminals}");
        return Err(SnapshotError::value(IDS, format!("{ids:?}"), expected));
    }
    let held = snapshot.u64_up_to("law/held", n_members, n_layers as u64)?;
    let samples = counts(snapshot, "law/own/samples", n_members * n_layers)?;
    let steps = counts(snapshot, "law/own/steps", n_members * n_layers)?;
    let copies: Vec<OwnCopy> =
        (samples.iter().zip(steps)).map(|(&samples, &steps)| OwnCopy { samples, steps }).collect();
    let own = ids.iter().zip(held).zip(copies.chunks(n_layers));
    let holdings = own.map(|((id, held), layers)| {
        let holdings = Holdings { held: *held as usize, layers: layers.to_vec() };
        (TerminalId(*id as u32), holdings)
    });
    Ok(holdings.collect())
}

fn shared(
    snapshot: &Snapshot,
    name: &str,
    n_copies: usize,
    n_terminals: usize,
) -> Result<Vec<SharedCopy>, SnapshotError> {
    let samples = counts(snapshot, &format!("{name}/samples"), n_copies * n_terminals)?;
    let steps = counts(snapshot, &format!("{name}/steps"), n_copies)?;
    let copies = samples.chunks(n_terminals).zip(steps);
    Ok(copies.map(|(samples, &steps)| SharedCopy { samples: samples.to_vec(), steps }).collect())
}

fn edges(
    snapshot: &Snapshot,
    n_layers: usize,
    n_terminals: usize,
) -> Result<Vec<Vec<Option<SharedCopy>>>, SnapshotError> {
    let n_edges = snapshot.u64_up_to("law/edges", 1, MOST_EDGES)?[0] as usize;
    let holds = snapshot.u64_up_to("law/edge/holds", n_edges * n_layers, 1)?;
    let n_copies = holds.iter().filter(|holds| **holds == 1).count();
    let mut copies = shared(snapshot, "law/edge", n_copies, n_terminals)?.into_iter();
    let all: Vec<Option<SharedCopy>> =
        holds.iter().map(|holds| if *holds == 1 { copies.next() } else { None }).collect();
    Ok(all.chunks(n_layers).map(<[_]>::to_vec).collect())
}
