//! The learned state of TiLP as named arrays.

use super::prices::Prices;
use super::{Pending, Tilp};
use crate::rl::replay::AgentState;
use crate::snapshot::{Persist, Snapshot, SnapshotError};

impl Persist for Tilp {
    fn save(&self, snapshot: &mut Snapshot) {
        self.twin.save(snapshot);
        self.agent.save(snapshot);
        let remembered = self.planner.remembered();
        let flat = remembered.iter().flatten().flat_map(|choice| {
            let [b, p, q] = choice.reals;
            [b, p, q, choice.category as f32, f32::from(u8::from(choice.flag))]
        });
        snapshot.put_f32("tilp/remembered", flat.collect());
        snapshot.put_u64("tilp/n_remembered", vec![remembered.len() as u64]);
        self.save_inner(snapshot);
        if self.options.prices.adaptive {
            self.prices.save(snapshot);
        }
        let (agent_state, globals, actions, reward) = match &self.pending {
            Some(one) => {
                let agent_state = &one.agent_state;
                (
                    agent_state.terminals.clone(),
                    agent_state.globals.clone(),
                    one.actions.clone(),
                    vec![one.reward],
                )
            }
            None => Default::default(),
        };
        snapshot.put_f32("tilp/pending/terminals", agent_state);
        snapshot.put_f32("tilp/pending/globals", globals);
        snapshot.put_f32("tilp/pending/actions", actions);
        snapshot.put_f32("tilp/pending/reward", reward);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.twin.restore(snapshot)?;
        self.resize(self.twin.members().len());
        self.agent.restore(snapshot)?;
        self.restore_remembered(snapshot)?;
        self.restore_inner(snapshot)?;
        if self.options.prices.adaptive {
            self.prices = Prices::restore(snapshot)?;
        }
        self.pending = self.restored_pending(snapshot)?;
        Ok(())
    }
}

/// Names of the arrays with the sequences of the last plan.
const REMEMBERED: [&str; 2] = ["tilp/remembered", "tilp/n_remembered"];

impl Tilp {
    fn restored_pending(&self, snapshot: &Snapshot) -> Result<Option<Pending>, SnapshotError> {
        let (space, n) = (self.agent.sac.space(), self.twin.members().len());
        let is_there = snapshot.len_of("tilp/pending/reward") > 0;
        let all = |part: &str, length: usize| {
            let length = if is_there { length } else { 0 };
            let name = format!("tilp/pending/{part}");
            snapshot.finite_f32(&name, length).map(<[f32]>::to_vec)
        };
        let terminals = all("terminals", n * space.terminal_features)?;
        let globals = all("globals", space.global_features)?;
        let actions = all("actions", n * space.n_action())?;
        let reward = all("reward", 1)?;
        let pending = |&reward: &f32| Pending {
            agent_state: AgentState { terminals, globals },
            actions,
            reward,
        };
        Ok(reward.first().map(pending))
    }

    /// Restores the sequences of the last plan from rows of five numbers. Sequences of a plan with
    /// another horizon are dropped.
    fn restore_remembered(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let [name, number] = REMEMBERED;
        let flat = snapshot.finite_f32(name, snapshot.len_of(name))?;
        let (rows, rest) = flat.as_chunks::<5>();
        let count = snapshot.count(number, 0, rows.len() as u64)? as usize;
        let n = self.twin.members().len();
        if !rest.is_empty() || !is_multiple(rows.len(), count * n) {
            let expected = format!("{count} sequences for {n} terminals, five numbers each");
            return Err(SnapshotError::value(name, format!("{} numbers", flat.len()), expected));
        }
        let n_cuts = self.decoder.limits().cuts.len();
        let is_sound = |&&[_, _, _, category, flag]: &&[f32; 5]| {
            let is_cut = category.fract() == 0.0 && (0.0..n_cuts as f32).contains(&category);
            is_cut && [0.0, 1.0].contains(&flag)
        };
        if let Some(row) = rows.iter().find(|row| !is_sound(row)) {
            let expected = format!("a cut below {n_cuts}, and 0 or 1, in the end");
            return Err(SnapshotError::value(name, format!("{row:?}"), expected));
        }
        self.restore_planner(rows, count);
        Ok(())
    }
}

/// Whether `whole` is a positive multiple of `part`, or both are zero.
fn is_multiple(whole: usize, part: usize) -> bool {
    if part == 0 { whole == 0 } else { whole > 0 && whole.is_multiple_of(part) }
}
