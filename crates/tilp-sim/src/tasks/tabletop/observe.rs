//! Observation of a policy: twelve tokens in the camera's frame.

use rapier3d::math::Vector;

use crate::tasks::tabletop::robot::{STEP, State};
use crate::tasks::tabletop::{Variant, VariantRange};

/// Numbers in an observation.
pub const OBSERVATION: usize = 43;

/// Start and end of each token in the observation:
/// hand; fingers (opening, left and right touch); object from the hand, coarse and fine; goal from
/// the object, coarse and fine; size, mass and grasp offset; drawer axis; camera yaw; family;
/// object height and velocity; hand velocity and last finger command.
pub const TOKENS: [(usize, usize); 12] = [
    (0, 3),
    (3, 6),
    (6, 9),
    (9, 12),
    (12, 15),
    (15, 18),
    (18, 23),
    (23, 25),
    (25, 27),
    (27, 35),
    (35, 39),
    (39, 43),
];

/// Turns a vector about the vertical axis.
pub(super) fn turn(vector: Vector, angle: f32) -> Vector {
    let (sin, cos) = angle.sin_cos();
    Vector::new(cos * vector.x - sin * vector.y, sin * vector.x + cos * vector.y, vector.z)
}

pub(super) fn observation(variant: &Variant, state: &State) -> [f32; OBSERVATION] {
    let seen = |vector: Vector| turn(vector, variant.yaw);
    let offset = Vector::from_array(variant.grasp_offset);
    let to_object = seen(state.handle - offset - state.hand);
    let to_goal = seen(state.goal - state.handle);
    let mut row = Row { values: [0.0; OBSERVATION], filled: 0 };
    row.vector(seen(state.hand) / 0.4);
    row.push(2.0 * state.opening - 1.0);
    row.flag(state.touches[0]);
    row.flag(state.touches[1]);
    row.vector(to_object / 0.3);
    row.vector(fine(to_object));
    row.vector(to_goal / 0.3);
    row.vector(fine(to_goal));
    row.push((variant.size - VariantRange::SIZE) / 0.005);
    row.push((variant.mass - VariantRange::MASS) / 0.125);
    row.vector(seen(offset) / 0.04);
    let axis = seen(axis(variant));
    row.push(axis.x);
    row.push(axis.y);
    row.push(variant.yaw.cos());
    row.push(variant.yaw.sin());
    for family in crate::tasks::tabletop::Family::ALL {
        row.push(if family == variant.family { 1.0 } else { 0.0 });
    }
    row.push(state.handle.z / 0.2);
    row.vector(bounded(seen(state.object_velocity) / 0.5));
    row.vector(bounded(seen(state.hand_velocity) * 0.05 / STEP));
    row.flag(state.shut);
    debug_assert_eq!(row.filled, OBSERVATION);
    row.values
}

/// Direction in which a drawer opens; other families have none.
fn axis(variant: &Variant) -> Vector {
    use crate::tasks::tabletop::Family::{DrawerClose, DrawerOpen};
    match variant.family {
        DrawerOpen | DrawerClose => turn(Vector::X, variant.axis),
        _ => Vector::ZERO,
    }
}

/// Stretched near zero, where the last centimetre decides.
fn fine(way: Vector) -> Vector {
    bounded(way / 0.06)
}

fn bounded(vector: Vector) -> Vector {
    Vector::new(vector.x.tanh(), vector.y.tanh(), vector.z.tanh())
}

struct Row {
    values: [f32; OBSERVATION],
    filled: usize,
}

impl Row {
    /// Observations are finite and bounded even if the object is far away.
    fn push(&mut self, value: f32) {
        self.values[self.filled] = if value.is_finite() { value.clamp(-3.0, 3.0) } else { 0.0 };
        self.filled += 1;
    }

    fn flag(&mut self, value: bool) {
        self.push(if value { 1.0 } else { -1.0 });
    }

    fn vector(&mut self, vector: Vector) {
        vector.to_array().into_iter().for_each(|value| self.push(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_cover_the_observation_without_gaps() {
        let mut end = 0;
        for (start, stop) in TOKENS {
            assert_eq!(start, end);
            assert!(stop > start);
            end = stop;
        }
        assert_eq!(end, OBSERVATION);
    }

    #[test]
    fn turning_there_and_back_changes_nothing() {
        let vector = Vector::new(0.3, -0.2, 0.1);
        let back = turn(turn(vector, 0.7), -0.7);
        assert!((back - vector).length() < 1e-6);
    }
}
