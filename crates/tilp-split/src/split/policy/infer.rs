//! Actions for observations, from many threads at once.

use std::sync::Mutex;

use super::{Policy, Workspace};
use crate::split::model::{SplitModel, Weights};

/// Workspaces at rest. A copy of a policy starts with none.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Workspace>>);

impl Clone for Pool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pool {
    fn take(&self) -> Option<Workspace> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop()
    }

    fn put(&self, workspace: Workspace) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(workspace);
    }
}

impl Policy {
    /// The actions of the policy for a batch of observations, both sample by sample.
    ///
    /// Any number of threads may call it on one policy; buffers are taken from a pool.
    pub fn act(&self, weights: &Weights, observations: &[f32], actions: &mut [f32]) {
        if observations.is_empty() {
            return;
        }
        let mut workspace = self.pool.take().unwrap_or_else(|| self.workspace());
        let all = 1..=self.n_layers();
        actions.copy_from_slice(self.forward(all, weights, observations, &mut workspace));
        self.pool.put(workspace);
    }
}
