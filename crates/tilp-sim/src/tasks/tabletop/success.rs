//! When a task counts as done, from the physical state alone.

use rapier3d::math::Vector;

use crate::tasks::tabletop::geometry::{
    self, BIN_HALF, BIN_WALL, BLOCK_HALF, BUTTON_TRAVEL, DRAWER_OPEN, DRAWER_SHUT, PEG_PLAY,
    PUSH_TOLERANCE, SHELF_HALF,
};
use crate::tasks::tabletop::robot::State;
use crate::tasks::tabletop::{Family, Variant};

/// Speed in metres per second below which an object rests.
const REST: f32 = 0.1;
/// How far from its proper height a placed object may be.
const LEVEL: f32 = 0.012;

/// - bin: no finger touches the cube, and it rests inside the walls, below their rim;
/// - shelf: no finger touches the cube, and it rests on the board, its middle above it;
/// - stack: no finger touches the cube, and it rests on the block, its middle above it;
/// - peg: no finger touches the peg, and it rests in the hole on the table's top;
/// - push: the puck rests with its middle within 4 cm of the mark;
/// - drawer-open: the drawer is out by 12 cm or more;
/// - drawer-close: the drawer is in but for 1.5 cm or less;
/// - button: the cap is down by 2 cm or more.
pub(super) fn succeeded(variant: &Variant, state: &State) -> bool {
    let way = state.handle - state.goal;
    let level = way.z.abs() < LEVEL;
    match variant.family {
        Family::Bin => {
            placed(state)
                && within(way, BIN_HALF)
                && state.handle.z + variant.size < BIN_WALL + LEVEL
        }
        Family::Shelf => placed(state) && within(way, SHELF_HALF) && level,
        Family::Stack => placed(state) && within(way, BLOCK_HALF) && level,
        Family::Peg => placed(state) && within(way, PEG_PLAY + 0.005) && level,
        Family::Push => rests(state) && way.truncate().length() < PUSH_TOLERANCE && level,
        Family::DrawerOpen => state.displacement >= DRAWER_OPEN,
        Family::DrawerClose => state.displacement <= DRAWER_SHUT,
        Family::Button => state.displacement >= BUTTON_TRAVEL,
    }
}

/// Whether an object that is not held is close enough to its goal.
pub(super) fn arrived(variant: &Variant, state: &State) -> bool {
    let way = state.handle - state.goal;
    let half = match variant.family {
        Family::Bin => BIN_HALF,
        Family::Shelf => SHELF_HALF,
        Family::Stack => BLOCK_HALF,
        _ => PEG_PLAY + 0.005,
    };
    within(way, half) && way.z < geometry::release_height(variant) + 0.01
}

fn placed(state: &State) -> bool {
    state.released() && rests(state)
}

fn rests(state: &State) -> bool {
    state.object_velocity.length() < REST
}

fn within(way: Vector, half: f32) -> bool {
    way.x.abs() < half && way.y.abs() < half
}
