//! Observation of a policy: twelve tokens, level directions in the camera's frame.

use tilp_mujoco::expert::Scene;
use tilp_mujoco::libero::Episode;

use super::{Cell, SUITE};

/// The middle of the hand's workspace in metres.
const MIDDLE_M: [f64; 3] = [-0.1, 0.0, 0.2];

/// The numbers of [`super::suite::TOKENS`].
pub(super) fn observation(cell: &Cell, episode: &Episode) -> Vec<f32> {
    let scene = Scene::read(episode);
    let (sine, cosine) = f64::from(cell.yaw).sin_cos();
    let seen = |[x, y, z]: [f64; 3]| [cosine * x - sine * y, sine * x + cosine * y, z];
    let way =
        |from: [f64; 3], to: [f64; 3]| seen(std::array::from_fn(|axis| to[axis] - from[axis]));
    let to_grasp = way(scene.hand_m, scene.grasp_m());
    let to_basket = way(scene.object_m, scene.goal_m);
    let [low, high] = scene.object_span_m();
    let hand_z = scene.hand_m[2];
    let mut row = Row(Vec::with_capacity(SUITE.observation()));
    row.all(way(MIDDLE_M, scene.hand_m), 0.4);
    row.push(scene.opening_m / 0.04 - 1.0);
    scene.touches.into_iter().for_each(|touch| row.flag(touch));
    row.all(to_grasp, 0.3);
    row.all(to_grasp.map(fine), 1.0);
    row.all(seen(scene.turn_to_grasp()), 0.5);
    row.all(to_basket, 0.3);
    row.all(to_basket.map(fine), 1.0);
    row.all([scene.others_top_m - hand_z, high - hand_z, scene.basket_top_m - low], 0.1);
    row.push((scene.grasp_width_m() - 0.05) / 0.02);
    row.push(cell.task.object_mass_kg());
    row.push(cosine);
    row.push(sine);
    for task in 0..SUITE.tasks.len() {
        row.push(if task == cell.index { 1.0 } else { 0.0 });
    }
    row.flag(scene.is_shut);
    row.all(seen(scene.turn_upright()), 0.5);
    debug_assert_eq!(row.0.len(), SUITE.observation());
    row.0
}

/// Stretched near zero, where the last centimetre decides.
fn fine(way: f64) -> f64 {
    (way / 0.04).tanh()
}

struct Row(Vec<f32>);

impl Row {
    /// Observations are finite and bounded even if the object is far away.
    fn push(&mut self, value: f64) {
        self.0.push(if value.is_finite() { value.clamp(-3.0, 3.0) as f32 } else { 0.0 });
    }

    fn flag(&mut self, value: bool) {
        self.push(if value { 1.0 } else { -1.0 });
    }

    fn all(&mut self, values: [f64; 3], unit: f64) {
        values.into_iter().for_each(|value| self.push(value / unit));
    }
}
