//! Positions of the objects at the start of an episode.

use rand::RngExt;
use rapier3d::math::Vector;

use crate::rng::Seed;
use crate::tasks::tabletop::{Family, Variant};

/// Least distance of object and goal, so that the open fingers fit between them.
const APART: f32 = 0.17;

/// The start of one episode, in the robot's frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Object on the table (or drawer, or button), height left to the world file.
    pub object: Vector,
    /// Goal on the table.
    pub goal: Vector,
    /// Hand, that is the point between the finger tips.
    pub hand: Vector,
    /// How far a drawer is open.
    pub opening: f32,
    /// Whether the object slides in the goal instead of standing apart from it.
    pub jointed: bool,
}

impl Layout {
    pub(super) fn draw(variant: &Variant, seed: Seed) -> Layout {
        let mut rng = seed.rng();
        let mut near = |width: f32| width * rng.random_range(-1.0f32..=1.0);
        let mut square = |width: f32| Vector::new(near(width), near(width), 0.0);
        let centre = Vector::new(variant.centre[0], variant.centre[1], 0.0);
        let offset = Vector::new(variant.goal_offset[0], variant.goal_offset[1], 0.0);
        let object = square(variant.spread);
        let goal = square(0.6 * variant.spread);
        let hand = centre + square(0.12);
        let height = 0.24 + near(0.04);
        let opening = if variant.family == Family::DrawerClose { 0.13 + near(0.02) } else { 0.0 };
        let hand = hand + Vector::Z * height;
        if matches!(variant.family, Family::DrawerOpen | Family::DrawerClose | Family::Button) {
            let object = centre + object;
            return Layout { object, goal: object, hand, opening, jointed: true };
        }
        let object = centre - 0.5 * offset + object;
        let goal = centre + 0.5 * offset + goal;
        Layout { object, goal: apart(object, goal), hand, opening, jointed: false }
    }
}

/// The goal, moved straight away from the object if it would be too close.
fn apart(object: Vector, goal: Vector) -> Vector {
    let way = goal - object;
    if way.length() < APART { object + way.normalize_or(Vector::X) * APART } else { goal }
}
