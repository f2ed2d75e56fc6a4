//! Differences between cells of the same family.

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::Rng;
use crate::tasks::tabletop::Family;

/// Frame of the horizontal motion of a cell's robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Frame {
    /// As the camera sees it: an action points where the observation says.
    Camera,
    /// The frame of the mounted robot: a policy has to rotate its observation by the given yaw.
    Robot,
}

/// One terminal's cell: its family and everything that stays the same over its episodes.
///
/// Lengths are metres, masses kilograms, angles radians, all in the robot's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The task.
    pub family: Family,
    /// Middle of the part of the table in use.
    pub centre: [f32; 2],
    /// Angle by which the cell's camera is turned against the robot.
    pub yaw: f32,
    /// Frame of the actions.
    pub commands: Frame,
    /// Half an edge of the cube; puck, peg, post and button cap scale with it.
    pub size: f32,
    /// Mass of the object (of the drawer's content, of the puck).
    pub mass: f32,
    /// Mass added at evaluation which no observation shows; the button carries nothing.
    pub extra_mass: f32,
    /// From the marker that the camera tracks to the point where the object is handled.
    pub grasp_offset: [f32; 3],
    /// From the usual place of the object to the usual place of the goal.
    pub goal_offset: [f32; 2],
    /// Height of the shelf board's top.
    pub shelf_height: f32,
    /// Direction in which the drawer opens.
    pub axis: f32,
    /// Factor on the drawer's damping and the button's spring.
    pub resistance: f32,
    /// Half the width of the square in which the object starts, fresh in each episode.
    pub spread: f32,
}

/// Half the width of each parameter's uniform distribution around its middle.
///
/// A narrow distribution to pre-train on and a wide one to deploy on are two values of this type.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRange {
    /// Around the middle of the table.
    pub centre: f32,
    /// Around a camera that looks along the robot's x axis.
    pub yaw: f32,
    /// Not drawn: the frame of every cell's actions.
    pub commands: Frame,
    /// Around [`VariantRange::SIZE`].
    pub size: f32,
    /// Around [`VariantRange::MASS`].
    pub mass: f32,
    /// Each horizontal component of the grasp offset, around zero.
    pub grasp_offset: f32,
    /// Direction of the goal, around the x axis.
    pub goal_angle: f32,
    /// Distance of the goal, around [`VariantRange::GOAL_DISTANCE`].
    pub goal_distance: f32,
    /// Around [`VariantRange::SHELF_HEIGHT`].
    pub shelf_height: f32,
    /// Direction of the drawer, around the x axis.
    pub axis: f32,
    /// Around one.
    pub resistance: f32,
    /// Not drawn: the spread of every cell.
    pub spread: f32,
}

impl VariantRange {
    /// Middle of half the object's edge.
    pub const SIZE: f32 = 0.023;
    /// Middle of the object's mass.
    pub const MASS: f32 = 0.175;
    /// Middle of the distance between object and goal.
    pub const GOAL_DISTANCE: f32 = 0.21;
    /// Middle of the shelf's height.
    pub const SHELF_HEIGHT: f32 = 0.12;

    /// The distribution of the deployed fleet.
    pub const WIDE: VariantRange = VariantRange {
        centre: 0.12,
        yaw: 1.0,
        commands: Frame::Camera,
        size: 0.005,
        mass: 0.125,
        grasp_offset: 0.04,
        goal_angle: std::f32::consts::PI,
        goal_distance: 0.03,
        shelf_height: 0.03,
        axis: std::f32::consts::PI,
        resistance: 0.5,
        spread: 0.04,
    };

    /// The widest distributions that cells are made for. Angles have no end.
    pub const MOST: VariantRange = VariantRange {
        centre: 0.15,
        yaw: f32::INFINITY,
        commands: Frame::Camera,
        size: 0.008,
        mass: 0.17,
        grasp_offset: 0.05,
        goal_angle: f32::INFINITY,
        goal_distance: 0.05,
        shelf_height: 0.05,
        axis: f32::INFINITY,
        resistance: 0.9,
        spread: 0.08,
    };

    /// The same middles with every width, the spread aside, times `share`.
    pub fn narrowed(&self, share: f32) -> VariantRange {
        VariantRange {
            centre: self.centre * share,
            yaw: self.yaw * share,
            commands: self.commands,
            size: self.size * share,
            mass: self.mass * share,
            grasp_offset: self.grasp_offset * share,
            goal_angle: self.goal_angle * share,
            goal_distance: self.goal_distance * share,
            shelf_height: self.shelf_height * share,
            axis: self.axis * share,
            resistance: self.resistance * share,
            spread: self.spread,
        }
    }
}

impl Variant {
    /// Draws a cell of this family.
    pub fn draw(family: Family, range: &VariantRange, rng: &mut Rng) -> Variant {
        Self::made(family, range, |middle, width, _| middle + width * unit(rng))
    }

    /// Draws a cell that differs by a share from a common one of its family. Each parameter is
    /// made of `share` times the cell's own draw and the rest of the common draw: with 0 it is the
    /// common cell, with 1 what [`Variant::draw`] draws. Beyond 1 a parameter goes no further than
    /// [`VariantRange::MOST`], or the range itself where that is wider.
    pub fn draw_around(
        family: Family,
        range: &VariantRange,
        share: f32,
        own: &mut Rng,
        common: &mut Rng,
    ) -> Variant {
        Self::made(family, range, |middle, width, most| {
            let off = width * (share * unit(own) + (1.0 - share) * unit(common));
            let most = most.max(width);
            middle + off.clamp(-most, most)
        })
    }

    /// A cell whose parameters are given by a function of middle, half-width, and largest
    /// half-width.
    fn made(
        family: Family,
        range: &VariantRange,
        mut around: impl FnMut(f32, f32, f32) -> f32,
    ) -> Variant {
        let most = &VariantRange::MOST;
        let mut centre = || around(0.0, range.centre, most.centre);
        let centre = [centre(), centre()];
        let goal_angle = around(0.0, range.goal_angle, most.goal_angle);
        let distance = VariantRange::GOAL_DISTANCE;
        let goal_distance = around(distance, range.goal_distance, most.goal_distance);
        Variant {
            family,
            centre,
            yaw: around(0.0, range.yaw, most.yaw),
            commands: range.commands,
            size: around(VariantRange::SIZE, range.size, most.size),
            mass: around(VariantRange::MASS, range.mass, most.mass),
            extra_mass: 0.0,
            grasp_offset: [
                around(0.0, range.grasp_offset, most.grasp_offset),
                around(0.0, range.grasp_offset, most.grasp_offset),
                around(0.5, 0.5, 0.5) * range.grasp_offset * 0.5,
            ],
            goal_offset: [goal_distance * goal_angle.cos(), goal_distance * goal_angle.sin()],
            shelf_height: around(VariantRange::SHELF_HEIGHT, range.shelf_height, most.shelf_height),
            axis: around(0.0, range.axis, most.axis),
            resistance: around(1.0, range.resistance, most.resistance),
            spread: range.spread,
        }
    }

    /// Angle from the robot's frame to the one its actions are in.
    pub(super) fn command_yaw(&self) -> f32 {
        match self.commands {
            Frame::Camera => self.yaw,
            Frame::Robot => 0.0,
        }
    }

    /// The same cell with this additional mass, which is not observed.
    pub fn with_extra_mass(mut self, extra_mass: f32) -> Variant {
        self.extra_mass = extra_mass;
        self
    }

    /// The same cell with another goal place, by this angle in radians. The line from object to
    /// goal turns about its middle; a drawer opens in a turned direction; a button stands at a
    /// turned place on the table.
    pub fn with_goal_turned(mut self, angle: f32) -> Variant {
        match self.family {
            Family::DrawerOpen | Family::DrawerClose => self.axis += angle,
            Family::Button => self.centre = turned(self.centre, angle),
            _ => self.goal_offset = turned(self.goal_offset, angle),
        }
        self
    }
}

/// A draw between -1 and 1.
fn unit(rng: &mut Rng) -> f32 {
    rng.random_range(-1.0..=1.0)
}

fn turned([x, y]: [f32; 2], angle: f32) -> [f32; 2] {
    let (sin, cos) = angle.sin_cos();
    [cos * x - sin * y, sin * x + cos * y]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    fn drawn(family: Family) -> Variant {
        Variant::draw(family, &VariantRange::WIDE, &mut Seed::new(8).named(family.name()).rng())
    }

    #[test]
    fn a_quarter_turn_moves_the_goal_and_nothing_else() {
        const QUARTER: f32 = std::f32::consts::FRAC_PI_2;
        let near = |a: [f32; 2], b: [f32; 2]| (a[0] - b[0]).hypot(a[1] - b[1]) < 1e-6;
        for family in Family::ALL {
            let (old, new) = (drawn(family), drawn(family).with_goal_turned(QUARTER));
            let quarter = |[x, y]: [f32; 2]| [-y, x];
            let mut expected = old.clone();
            match family {
                Family::DrawerOpen | Family::DrawerClose => expected.axis = new.axis,
                Family::Button => expected.centre = new.centre,
                _ => expected.goal_offset = new.goal_offset,
            }
            assert_eq!(new, expected, "{}: nothing else has changed", family.name());
            match family {
                Family::DrawerOpen | Family::DrawerClose => {
                    assert!((new.axis - old.axis - QUARTER).abs() < 1e-6);
                }
                Family::Button => assert!(near(new.centre, quarter(old.centre))),
                _ => assert!(near(new.goal_offset, quarter(old.goal_offset))),
            }
        }
    }

    #[test]
    fn a_range_narrowed_to_nothing_draws_the_middle() {
        let point = VariantRange::WIDE.narrowed(0.0);
        let variant = Variant::draw(Family::Peg, &point, &mut Seed::new(1).rng());
        assert_eq!(variant.size, VariantRange::SIZE);
        assert_eq!(variant.goal_offset, [VariantRange::GOAL_DISTANCE, 0.0]);
        assert_eq!(variant.grasp_offset, [0.0; 3]);
    }

    /// The cell of a terminal at a share of the differences between terminals.
    fn around(share: f32, terminal: u64) -> Variant {
        let (own, common) = (Seed::new(5).at(terminal), Seed::new(6));
        let range = &VariantRange::WIDE;
        Variant::draw_around(Family::Bin, range, share, &mut own.rng(), &mut common.rng())
    }

    #[test]
    fn cells_share_a_draw_at_share_zero_and_are_their_own_at_share_one() {
        let wide = &VariantRange::WIDE;
        let common = Variant::draw(Family::Bin, wide, &mut Seed::new(6).rng());
        for terminal in 0..20 {
            let own = Variant::draw(Family::Bin, wide, &mut Seed::new(5).at(terminal).rng());
            assert_eq!(around(0.0, terminal), common);
            assert_eq!(around(1.0, terminal), own);
            let half = around(0.5, terminal);
            assert!((half.mass - 0.5 * (own.mass + common.mass)).abs() < 1e-6);
            assert!((half.centre[1] - 0.5 * (own.centre[1] + common.centre[1])).abs() < 1e-6);
        }
    }

    #[test]
    fn cells_beyond_their_range_stay_within_the_widest_one() {
        let most = VariantRange::MOST;
        let (mut outside, mut stopped) = (0, 0);
        for terminal in 0..200 {
            let cell = around(1.5, terminal);
            let off = (cell.mass - VariantRange::MASS).abs();
            assert!(off <= most.mass + 1e-6 && cell.mass > 0.0);
            assert!(cell.centre.iter().all(|at| at.abs() <= most.centre));
            assert!((cell.size - VariantRange::SIZE).abs() <= most.size + 1e-6);
            assert!(cell.grasp_offset[2] >= 0.0 && cell.resistance > 0.0);
            outside += usize::from(off > VariantRange::WIDE.mass + 1e-6);
            stopped += usize::from(off >= most.mass - 1e-6);
        }
        assert!(outside > 10 && stopped > 0, "{outside} outside, {stopped} stopped");
    }

    #[test]
    fn the_same_stream_draws_the_same_cell() {
        let draw = |seed| {
            Variant::draw(
                Family::Bin,
                &VariantRange::WIDE,
                &mut Seed::new(seed).named("cell").rng(),
            )
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
