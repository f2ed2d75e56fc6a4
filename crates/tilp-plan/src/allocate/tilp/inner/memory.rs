//! The best candidates of the last plan: rearranged when terminals change, and as named arrays.

use super::rule::KNOBS;
use crate::allocate::tilp::Tilp;
use crate::snapshot::{Snapshot, SnapshotError};

impl Tilp {
    /// Rearranges the candidates of the last plan for other terminals; `from` has the old place of
    /// each, or `None`.
    pub(in crate::allocate::tilp) fn rearrange_inner(&mut self, from: &[Option<usize>]) {
        let horizon = self.options.horizon.max(1);
        let moved = self.inner_planner.remembered().iter().map(|values| {
            let width = values.len() / horizon;
            values.chunks_exact(width.max(1)).flat_map(|step| rearranged(step, from)).collect()
        });
        let moved: Vec<Vec<f32>> = moved.collect();
        self.inner_planner.set_remembered(moved);
    }

    pub(in crate::allocate::tilp) fn save_inner(&self, snapshot: &mut Snapshot) {
        if self.options.inner.is_none() {
            return;
        }
        let known = self.inner_planner.remembered();
        snapshot.put_f32("tilp/inner/remembered", known.concat());
    }

    pub(in crate::allocate::tilp) fn restore_inner(
        &mut self,
        snapshot: &Snapshot,
    ) -> Result<(), SnapshotError> {
        if self.options.inner.is_none() {
            return Ok(());
        }
        let name = "tilp/inner/remembered";
        let flat = snapshot.f32(name, snapshot.len_of(name))?;
        let length = self.inner_shape().len();
        let known = flat.chunks_exact(length.max(1)).map(<[f32]>::to_vec);
        self.inner_planner.set_remembered(known.collect());
        Ok(())
    }
}

/// One step for other terminals; a new terminal has the worth that the twin gives it.
fn rearranged(step: &[f32], from: &[Option<usize>]) -> Vec<f32> {
    let (knobs, tilts) = step.split_at(KNOBS.min(step.len()));
    let tilt = |place: &Option<usize>| place.and_then(|n| tilts.get(n)).copied().unwrap_or(0.0);
    knobs.iter().copied().chain(from.iter().map(tilt)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worths_follow_their_terminals_and_new_ones_have_none() {
        let step = [1.0, 2.0, 3.0, 4.0, 0.1, 0.2, 0.3];
        assert_eq!(rearranged(&step, &[Some(2), None]), [1.0, 2.0, 3.0, 4.0, 0.3, 0.0]);
    }
}
