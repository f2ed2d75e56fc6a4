//! The table-top suite behind the seam.

use crate::tasks::tabletop::{ACTION, Family, Robot, TOKENS, Workcell, expert, scene};
use crate::tasks::{self, Scene, Start, Suite};

/// Common properties of all table-top robots. Motion counts in full, the fingers half.
pub static SUITE: Suite = Suite {
    name: "tabletop",
    tasks: &NAMES,
    tokens: &TOKENS,
    loss_weights: &[1.0, 1.0, 1.0, 0.5],
    n_motions: 3,
    demonstration_steps: 80,
    steps_per_second: 20,
};

const NAMES: [&str; Family::ALL.len()] = {
    let mut names = [""; Family::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Family::ALL[index].name();
        index += 1;
    }
    names
};

impl tasks::Workcell for Workcell {
    fn suite(&self) -> &'static Suite {
        &SUITE
    }

    fn task(&self) -> usize {
        self.variant.family.index()
    }

    fn reset(&self, start: Start) -> Box<dyn tasks::Robot + '_> {
        Box::new(Robot::reset(self, start.seed))
    }
}

impl AsRef<dyn tasks::Workcell> for Workcell {
    fn as_ref(&self) -> &(dyn tasks::Workcell + 'static) {
        self
    }
}

impl tasks::Robot for Robot<'_> {
    fn observe(&self, row: &mut Vec<f32>) {
        row.extend(Robot::observe(self));
    }

    fn act(&mut self, action: &[f32]) {
        let action: &[f32; ACTION] = action.try_into().expect("as many numbers as the suite says");
        Robot::act(self, action);
    }

    fn succeeded(&self) -> bool {
        Robot::succeeded(self)
    }

    fn expert(&self) -> Vec<f32> {
        expert(self).to_vec()
    }

    fn scene(&self) -> Option<Scene> {
        Some(scene::scene(self))
    }
}
