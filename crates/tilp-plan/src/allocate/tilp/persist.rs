//! What TiLP has learned, as named arrays.

use super::{Pending, Tilp};
use crate::rl::replay::Scene;
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
        let (scene, globals, actions, reward) = match &self.pending {
            Some(one) => {
                let scene = &one.scene;
                (
                    scene.terminals.clone(),
                    scene.globals.clone(),
                    one.actions.clone(),
                    vec![one.reward],
                )
            }
            None => Default::default(),
        };
        snapshot.put_f32("tilp/pending/terminals", scene);
        snapshot.put_f32("tilp/pending/globals", globals);
        snapshot.put_f32("tilp/pending/actions", actions);
        snapshot.put_f32("tilp/pending/reward", reward);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.twin.restore(snapshot)?;
        self.resize(self.twin.members().len());
        self.agent.restore(snapshot)?;
        let all = |name: &str| snapshot.f32(name, snapshot.len_of(name)).map(<[f32]>::to_vec);
        let count = snapshot.u64("tilp/n_remembered", 1)?[0] as usize;
        let flat = all("tilp/remembered")?;
        self.restore_planner(flat.as_chunks::<5>().0, count);
        let reward = all("tilp/pending/reward")?;
        self.pending = match reward.first() {
            Some(&reward) => Some(Pending {
                scene: Scene {
                    terminals: all("tilp/pending/terminals")?,
                    globals: all("tilp/pending/globals")?,
                },
                actions: all("tilp/pending/actions")?,
                reward,
            }),
            None => None,
        };
        Ok(())
    }
}
