//! One robot in one episode.

use rapier3d::math::Vector;

use crate::rng::Seed;
use crate::tasks::tabletop::engine::Physics;
use crate::tasks::tabletop::geometry::{self, DRAWER_OPEN};
use crate::tasks::tabletop::layout::Layout;
use crate::tasks::tabletop::observe::{self, OBSERVATION};
use crate::tasks::tabletop::{Family, Variant, Workcell, success};

/// Numbers in an action: three of motion, one of the fingers.
pub const ACTION: usize = 4;
/// Way of the hand in one control step at full deflection, in metres.
pub const STEP: f32 = 0.045;

/// A robot in the middle of an episode.
pub struct Robot<'a> {
    cell: &'a Workcell,
    pub(super) physics: Box<dyn Physics + 'a>,
    shut: bool,
}

/// State for the expert, the observation and the success predicate, in the robot's frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub hand: Vector,
    pub hand_velocity: Vector,
    /// One when the fingers are wide open, zero when they meet.
    pub opening: f32,
    /// Which finger touches the object.
    pub touches: [bool; 2],
    /// Whether the last command closes the fingers.
    pub shut: bool,
    /// Point at which the object is handled.
    pub handle: Vector,
    pub object_velocity: Vector,
    /// Goal of the handle point.
    pub goal: Vector,
    /// How far the drawer is out or the button down.
    pub displacement: f32,
}

impl State {
    /// Whether the object is between both fingers.
    pub(super) fn holding(&self) -> bool {
        self.touches == [true; 2]
    }

    /// Whether no finger touches the object.
    pub(super) fn released(&self) -> bool {
        self.touches == [false; 2]
    }
}

impl<'a> Robot<'a> {
    /// A robot at the start of the episode with this seed.
    pub fn reset(cell: &'a Workcell, episode: Seed) -> Robot<'a> {
        let layout = Layout::draw(&cell.variant, episode);
        Robot { cell, physics: cell.start(&layout), shut: false }
    }

    /// The cell it works in.
    pub fn variant(&self) -> &Variant {
        &self.cell.variant
    }

    /// Observation of the policy; see [`crate::tasks::tabletop::TOKENS`].
    pub fn observe(&self) -> [f32; OBSERVATION] {
        observe::observation(&self.cell.variant, &self.state())
    }

    /// Where the hand and the handle point of the object are, in metres in the robot's frame.
    pub fn places(&self) -> [[f32; 3]; 2] {
        let state = self.state();
        [state.hand.to_array(), state.handle.to_array()]
    }

    /// Runs one control step: dx, dy, dz in [-1, 1] of [`STEP`] in the frame of the
    /// variant's commands, and the fingers, which shut above zero. A motion that is no number is no motion.
    pub fn act(&mut self, action: &[f32; ACTION]) {
        let part = |value: f32| if value.is_nan() { 0.0 } else { value.clamp(-1.0, 1.0) };
        let wanted = Vector::new(part(action[0]), part(action[1]), part(action[2]));
        let step = observe::turn(wanted, -self.cell.variant.command_yaw()) * STEP;
        self.shut = action[3] > 0.0;
        self.physics.advance(step, self.shut);
    }

    /// Whether the task is done; `success.rs` has the predicate of each family.
    pub fn succeeded(&self) -> bool {
        success::succeeded(&self.cell.variant, &self.state())
    }

    pub(super) fn state(&self) -> State {
        State {
            hand: self.physics.hand(),
            hand_velocity: self.physics.hand_velocity(),
            opening: self.physics.opening(),
            touches: self.physics.touches(),
            shut: self.shut,
            handle: self.physics.object() * geometry::handle(self.cell.variant.family),
            object_velocity: self.physics.object_velocity(),
            goal: self.goal(),
            displacement: self.displacement(),
        }
    }

    fn goal(&self) -> Vector {
        let variant = &self.cell.variant;
        let fixture = self.physics.fixture();
        match variant.family {
            Family::DrawerOpen => {
                fixture * (geometry::handle(variant.family) + Vector::X * (DRAWER_OPEN + 0.02))
            }
            Family::DrawerClose => fixture * geometry::handle(variant.family),
            _ => {
                let place = fixture.translation;
                Vector::new(place.x, place.y, geometry::goal_height(variant))
            }
        }
    }

    fn displacement(&self) -> f32 {
        let way = self.physics.object().translation - self.physics.fixture().translation;
        match self.cell.variant.family {
            Family::Button => geometry::button_rest(&self.cell.variant) - way.z,
            _ => way.length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tabletop::{Frame, VariantRange, expert};
    use rand::RngExt;

    fn cell(family: Family, index: u64) -> Workcell {
        let mut rng = Seed::new(11).named(family.name()).at(index).rng();
        Workcell::new(Variant::draw(family, &VariantRange::WIDE, &mut rng))
    }

    /// Runs an episode with random actions and passes every observation on.
    fn stagger(cell: &Workcell, seed: Seed, mut show: impl FnMut([f32; OBSERVATION])) -> bool {
        let mut robot = Robot::reset(cell, seed.named("episode"));
        let mut rng = seed.stream("actions");
        for _ in 0..80 {
            show(robot.observe());
            robot.act(&std::array::from_fn(|_| rng.random_range(-1.0..=1.0)));
            if robot.succeeded() {
                return true;
            }
        }
        false
    }

    #[test]
    fn a_robot_acting_at_random_fails_and_always_sees_bounded_numbers() {
        let mut lucky = 0;
        for family in Family::ALL {
            for index in 0..16 {
                let seed = Seed::new(12).named(family.name()).at(index);
                lucky += u32::from(stagger(&cell(family, index), seed, |seen| {
                    let bounded = |value: &f32| value.is_finite() && value.abs() <= 3.0;
                    assert!(seen.iter().all(bounded), "{}: {seen:?}", family.name());
                }));
            }
        }
        assert!(lucky <= 2, "{lucky} of 128 episodes");
    }

    #[test]
    fn the_same_seed_gives_the_same_trajectory_bit_for_bit() {
        for family in Family::ALL {
            let trajectory = |seed| {
                let mut seen = Vec::new();
                stagger(&cell(family, 0), Seed::new(seed), |row| {
                    seen.extend(row.map(f32::to_bits))
                });
                seen
            };
            assert_eq!(trajectory(1), trajectory(1), "{}", family.name());
            assert_ne!(trajectory(1), trajectory(2), "{}", family.name());
        }
    }

    #[test]
    fn an_expert_sees_numbers_of_the_size_of_one() {
        for family in Family::ALL {
            let cell = cell(family, 1);
            let mut robot = Robot::reset(&cell, Seed::new(13));
            for _ in 0..40 {
                assert!(
                    robot.observe().iter().all(|value| value.abs() <= 1.5),
                    "{}",
                    family.name()
                );
                robot.act(&expert(&robot));
            }
        }
    }

    #[test]
    fn no_hand_at_full_speed_passes_through_a_shelf() {
        for index in 0..24 {
            let cell = cell(Family::Shelf, index);
            let mut robot = Robot::reset(&cell, Seed::new(16).at(index));
            let board = cell.variant.shelf_height;
            for _ in 0..40 {
                let way = (robot.state().goal - robot.state().hand) / STEP;
                let over = way.truncate().length() < 1.0;
                // Different heights of the run-up, so that the last step ends differently deep.
                let run_up = 1.0 + 0.1 * index as f32 + way.z;
                let seen = observe::turn(way, cell.variant.yaw);
                robot.act(&[seen.x, seen.y, if over { -1.0 } else { run_up }, 1.0]);
                assert!(!over || robot.state().hand.z > board, "{}", robot.state().hand);
            }
        }
    }

    #[test]
    fn an_action_that_is_no_number_moves_nothing() {
        let cell = cell(Family::Bin, 0);
        let mut robot = Robot::reset(&cell, Seed::new(14));
        let before = robot.state().hand;
        robot.act(&[f32::NAN; ACTION]);
        assert!((robot.state().hand - before).length() < 1e-3);
    }

    #[test]
    fn actions_are_meant_in_the_frame_of_the_camera() {
        let mut variant = cell(Family::Button, 0).variant;
        variant.yaw = std::f32::consts::FRAC_PI_2;
        let cell = Workcell::new(variant);
        let mut robot = Robot::reset(&cell, Seed::new(15));
        let before = (robot.state().hand, robot.observe());
        robot.act(&[1.0, 0.0, 0.0, -1.0]);
        let moved = robot.state().hand - before.0;
        assert!(moved.y < -0.5 * STEP && moved.x.abs() < 0.1 * STEP, "{moved}");
        let seen = robot.observe()[0] - before.1[0];
        assert!(seen > 0.0, "the hand is seen to go where it was told, not by {seen}");
    }

    #[test]
    fn a_cell_may_take_its_actions_in_the_frame_of_the_robot() {
        let mut variant = cell(Family::Bin, 0).variant;
        variant.commands = Frame::Robot;
        let cell = Workcell::new(variant);
        let mut robot = Robot::reset(&cell, Seed::new(17));
        let before = robot.state().hand;
        robot.act(&[1.0, 0.0, 0.0, -1.0]);
        assert!((robot.state().hand - before).x > 0.5 * STEP);
        for _ in 0..40 {
            robot.act(&expert(&robot));
            if robot.succeeded() {
                return;
            }
        }
        panic!("the expert speaks the robot's frame too");
    }
}
