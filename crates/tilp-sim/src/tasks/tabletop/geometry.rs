//! Measures which the worlds, the experts and the success predicates share, in metres.

use rapier3d::math::Vector;

use crate::tasks::tabletop::{Family, Variant};

/// Height of the bin's walls.
pub(super) const BIN_WALL: f32 = 0.05;
/// Half the inner width of the bin.
pub(super) const BIN_HALF: f32 = 0.064;
/// Half the width of the shelf board.
pub(super) const SHELF_HALF: f32 = 0.07;
/// Half the height of the block below the stacked cube.
pub(super) const BLOCK_HALF_HEIGHT: f32 = 0.03;
/// Half the width of that block.
pub(super) const BLOCK_HALF: f32 = 0.04;
/// Half the height of the peg.
pub(super) const PEG_HALF_HEIGHT: f32 = 0.04;
/// How far above its middle the peg is gripped, so that the fingers stay above the hole.
pub(super) const PEG_GRIP: f32 = 0.02;
/// Clearance between peg and hole on each side.
pub(super) const PEG_PLAY: f32 = 0.01;
/// Height of the block with the hole.
pub(super) const HOLE_WALL: f32 = 0.04;
/// Half the height of the puck.
pub(super) const PUCK_HALF_HEIGHT: f32 = 0.025;
/// How far a drawer must come out to count as open.
pub(super) const DRAWER_OPEN: f32 = 0.12;
/// What may be left of the way in for a drawer to count as shut.
pub(super) const DRAWER_SHUT: f32 = 0.015;
/// How far a button must travel.
pub(super) const BUTTON_TRAVEL: f32 = 0.02;
/// Distance within which a puck counts as arrived.
pub(super) const PUSH_TOLERANCE: f32 = 0.04;
/// Half a finger's thickness along x, which is the pusher's radius when the hand is shut.
pub(super) const FINGER: f32 = 0.012;

/// Height of the palm's middle above the point between the finger tips.
pub(super) const PALM_HEIGHT: f32 = 0.053;
/// Half the edges of the palm.
pub(super) const PALM_HALF: [f32; 3] = [0.014, 0.065, 0.008];

/// The point at which the object is handled, in the object's own frame.
pub(super) fn handle(family: Family) -> Vector {
    match family {
        Family::Peg => Vector::new(0.0, 0.0, PEG_GRIP),
        Family::DrawerOpen => Vector::new(-0.024, 0.0, 0.085),
        Family::DrawerClose => Vector::new(0.0, 0.0, 0.035),
        Family::Button => Vector::new(0.0, 0.0, 0.008),
        _ => Vector::ZERO,
    }
}

/// Height of the handle point once the object is where it belongs.
pub(super) fn goal_height(variant: &Variant) -> f32 {
    match variant.family {
        Family::Bin => variant.size,
        Family::Shelf => variant.shelf_height + variant.size,
        Family::Stack => 2.0 * BLOCK_HALF_HEIGHT + variant.size,
        Family::Push => PUCK_HALF_HEIGHT,
        Family::Peg => PEG_HALF_HEIGHT + PEG_GRIP,
        Family::DrawerOpen | Family::DrawerClose => handle(variant.family).z,
        Family::Button => button_rest(variant) + 0.008 - BUTTON_TRAVEL,
    }
}

/// Radius of the puck.
pub(super) fn puck_radius(variant: &Variant) -> f32 {
    variant.size + 0.012
}

/// Half the width of the peg.
pub(super) fn peg_half(variant: &Variant) -> f32 {
    variant.size * 0.75
}

/// Half the height of the button's housing.
pub(super) fn button_base(variant: &Variant) -> f32 {
    variant.size
}

/// Height of the middle of the cap when it is not pressed.
pub(super) fn button_rest(variant: &Variant) -> f32 {
    2.0 * button_base(variant) + 0.038
}

/// How far above its goal a carried handle point is let go.
pub(super) fn release_height(variant: &Variant) -> f32 {
    match variant.family {
        Family::Bin => BIN_WALL + 0.01,
        _ => 0.008,
    }
}

/// How far above its goal a handle point is carried.
pub(super) fn carry_height(variant: &Variant) -> f32 {
    match variant.family {
        Family::Bin => BIN_WALL + 0.04,
        Family::Peg => HOLE_WALL + 0.03,
        _ => 0.05,
    }
}
