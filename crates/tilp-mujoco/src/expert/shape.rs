//! Shapes made of boxes, as seen along some direction.

use crate::linear::{Vector, add, apply, dot};
use crate::world::{Block, Body, World};

/// The things that can be picked up or put into: LIBERO names their bodies alike.
pub(super) fn things(world: &World) -> impl Iterator<Item = Body> {
    world.bodies().filter(|(_, name)| name.ends_with("_1_main")).map(|(body, _)| body)
}

/// The eight corners of a box.
pub(super) fn corners(block: &Block) -> [Vector; 8] {
    std::array::from_fn(|corner| {
        let sign = |axis: usize| if corner >> axis & 1 == 0 { -1.0 } else { 1.0 };
        let local = std::array::from_fn(|axis| sign(axis) * block.half_m[axis]);
        add(&block.centre_m, &apply(&block.rotation, &local))
    })
}

/// The lowest and highest place of a box along a direction.
pub(super) fn span_m(block: &Block, direction: &Vector) -> [f64; 2] {
    let along = corners(block).map(|corner| dot(&corner, direction));
    along
        .iter()
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &at| [low.min(at), high.max(at)])
}

/// The upright box around a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub low_m: Vector,
    pub high_m: Vector,
}

impl Extent {
    pub(super) fn of(blocks: &[Block]) -> Self {
        let empty = Self { low_m: [f64::INFINITY; 3], high_m: [f64::NEG_INFINITY; 3] };
        blocks.iter().flat_map(corners).fold(empty, |extent, corner| Self {
            low_m: std::array::from_fn(|axis| extent.low_m[axis].min(corner[axis])),
            high_m: std::array::from_fn(|axis| extent.high_m[axis].max(corner[axis])),
        })
    }
}
