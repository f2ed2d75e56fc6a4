//! The solids of a table-top robot.

use rapier3d::math::{Pose, Vector};
use rapier3d::prelude::SharedShape;

use crate::tasks::tabletop::engine::Owner;
use crate::tasks::tabletop::geometry::{PALM_HALF, PALM_HEIGHT, PUSH_TOLERANCE};
use crate::tasks::tabletop::{Family, Robot};
use crate::tasks::{Form, Part, Scene, Solid};

/// Half the thickness of a mark on the table.
const MARK: f32 = 0.0005;

/// The robot and its work as they are now.
pub(super) fn scene(robot: &Robot) -> Scene {
    let state = robot.state();
    let mut solids: Vec<Solid> = robot
        .physics
        .shapes()
        .iter()
        .filter_map(|(owner, shape, pose)| {
            let part = match owner {
                Owner::Hand => Part::Hand,
                Owner::Object => Part::Object,
                Owner::Fixture => Part::Fixture,
            };
            Some(solid(part, form(shape)?, pose))
        })
        .collect();
    // The palm carries no contact, so the physics does not know its shape.
    let palm = Pose::from_translation(state.hand + Vector::Z * PALM_HEIGHT);
    solids.push(solid(Part::Hand, Form::Box(PALM_HALF), &palm));
    if robot.variant().family == Family::Push {
        let upright = Vector::X * std::f32::consts::FRAC_PI_2;
        let on_table = Vector::new(state.goal.x, state.goal.y, MARK);
        let form = Form::Cylinder([PUSH_TOLERANCE, MARK]);
        solids.push(solid(Part::Mark, form, &Pose::new(on_table, upright)));
    }
    Scene {
        solids,
        hand: state.hand.to_array(),
        object: state.handle.to_array(),
        goal: state.goal.to_array(),
    }
}

fn solid(part: Part, form: Form, pose: &Pose) -> Solid {
    let (position, rotation) = (pose.translation.to_array(), pose.rotation.to_array());
    Solid { part, form, position, rotation }
}

/// The form of a box or a cylinder; the worlds have no others.
fn form(shape: &SharedShape) -> Option<Form> {
    if let Some(cuboid) = shape.as_cuboid() {
        return Some(Form::Box(cuboid.half_extents.to_array()));
    }
    shape.as_cylinder().map(|one| Form::Cylinder([one.radius, one.half_height]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::tasks::tabletop::{Variant, VariantRange, Workcell, expert};

    #[test]
    fn the_solids_of_an_episode_move_and_stay_the_same_solids() {
        for family in Family::ALL {
            let variant = Variant::draw(family, &VariantRange::WIDE, &mut Seed::new(61).rng());
            let cell = Workcell::new(variant);
            let mut robot = Robot::reset(&cell, Seed::new(62));
            let kinds = |scene: &Scene| {
                scene.solids.iter().map(|one| (one.part, one.form)).collect::<Vec<_>>()
            };
            let first = scene(&robot);
            assert!(first.solids.iter().any(|one| one.part == Part::Object), "{}", family.name());
            for _ in 0..12 {
                robot.act(&expert(&robot));
                let now = scene(&robot);
                assert_eq!(kinds(&now), kinds(&first), "{}", family.name());
                let sound = |one: &Solid| {
                    let length: f32 = one.rotation.iter().map(|part| part * part).sum();
                    one.position.iter().all(|x| x.abs() < 2.0) && (length - 1.0).abs() < 1e-3
                };
                assert!(now.solids.iter().all(sound), "{}", family.name());
            }
            assert_ne!(scene(&robot).hand, first.hand, "{}", family.name());
        }
    }

    #[test]
    fn the_fingers_are_beside_the_hand_and_the_mark_lies_on_the_table() {
        let variant = Variant::draw(Family::Push, &VariantRange::WIDE, &mut Seed::new(63).rng());
        let cell = Workcell::new(variant);
        let found = scene(&Robot::reset(&cell, Seed::new(64)));
        for one in found.solids.iter().filter(|one| one.part == Part::Hand) {
            let way = (0..3).map(|n| (one.position[n] - found.hand[n]).powi(2)).sum::<f32>();
            assert!(way.sqrt() < 0.1, "{one:?}");
        }
        let mark = found.solids.iter().find(|one| one.part == Part::Mark).unwrap();
        assert_eq!(mark.position[..2], found.goal[..2]);
        // Its axis, y turned about x by a quarter, points up.
        let [x, _, _, w] = mark.rotation;
        assert!((2.0 * x * w - 1.0).abs() < 1e-6);
    }
}
