//! Where and how turned the hand takes hold of an object among others.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::expert::shape::{Extent, span_m};
use crate::linear::{Matrix, Vector};
use crate::world::Block;

/// Half the hand's width along the way its fingers move, and across, in metres.
const HAND_HALF_M: [f64; 2] = [0.104, 0.032];
/// Half of what two open fingers take up, along and across.
const FINGERS_HALF_M: [f64; 2] = [0.068, 0.011];
/// The hand's underside above the grip point, and the finger tips below it, in metres.
const HAND_ABOVE_M: f64 = 0.031;
const TIPS_BELOW_M: f64 = 0.0095;
/// How high above the ground the grip point stays, so that the finger tips do not scrape.
const GROUND_M: f64 = 0.0115;
/// How far below an object's top it is taken: the hand must not press on it.
const BELOW_TOP_M: f64 = 0.025;
/// What the finger pads cover below and above the grip point, in metres.
const PADS_M: [f64; 2] = [-0.004, 0.012];
/// The widest thing between open fingers, in metres.
const WIDEST_M: f64 = 0.074;
/// Required clearance to other objects, in metres.
const ROOM_M: f64 = 0.010;
/// Half of what a finger covers across, which must stay on the object, in metres.
const PAD_HALF_M: f64 = 0.010;

/// A place of the grip point and a turn of the hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grasp {
    pub position_m: Vector,
    /// Columns are the hand's axes; the first is the way the fingers move.
    pub rotation: Matrix<3, 3>,
    /// What is between the fingers there.
    pub width_m: f64,
    cost: f64,
}

impl Grasp {
    /// The cheapest of a fan of turns and a row of offsets: narrow, free of neighbours, in the
    /// middle, and little turned.
    pub(super) fn best(object: &[Block], others: &[Block]) -> Self {
        let extent = Extent::of(object);
        let middle = (extent.low_m[2] + extent.high_m[2]) / 2.0;
        let height = middle.max(extent.high_m[2] - BELOW_TOP_M).max(GROUND_M);
        let base = principal_angle(object);
        let candidates = (0..12).flat_map(|turn| {
            let angle = base + f64::from(turn) * PI / 12.0;
            (-3..=3).map(move |shift| (angle, f64::from(shift) * 0.008))
        });
        candidates
            .map(|(angle, shift_m)| Self::candidate(object, others, height, angle, shift_m))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("the row of candidates is not empty")
    }

    fn candidate(object: &[Block], others: &[Block], z: f64, angle: f64, shift_m: f64) -> Self {
        let (along, across) = frame(angle);
        // The arm is at ease with the fingers moving along y; half a turn gives the same grasp.
        let turn = angle.rem_euclid(PI) - FRAC_PI_2;
        let slab = slab(object, z);
        let [from, to] = span(&slab, &along);
        let [left, right] = span(&slab, &across);
        let room_across = ((right - left) / 2.0 - PAD_HALF_M).max(0.0);
        let (u, v) = ((from + to) / 2.0, (left + right) / 2.0 + shift_m);
        let position_m = [u * along[0] + v * across[0], u * along[1] + v * across[1], z];
        let width_m = to - from;
        let gap = gap_m(others, &along, &across, [u, v], z);
        // All in metres of width that the expert would rather grip than suffer the defect.
        let cost = width_m
            + 0.01 * turn.abs()
            + 0.3 * shift_m.abs()
            + 2.0 * (shift_m.abs() - room_across).max(0.0)
            + 5.0 * (ROOM_M - gap).max(0.0)
            + 5.0 * (width_m - WIDEST_M).max(0.0);
        Self { position_m, rotation: hand(&along), width_m, cost }
    }

    /// The same grasp from the side that the hand is nearer to: fingers can change places.
    pub(super) fn facing(self, rotation: &Matrix<3, 3>) -> Self {
        let [x, y] = [self.rotation[0][0], self.rotation[1][0]];
        let faces = rotation[0][0] * x + rotation[1][0] * y >= 0.0;
        if faces { self } else { Self { rotation: hand(&[-x, -y, 0.0]), ..self } }
    }

    /// The hand's present direction, fingers straight down.
    pub(super) fn upright(&self, rotation: &Matrix<3, 3>) -> Matrix<3, 3> {
        let [x, y] = [rotation[0][0], rotation[1][0]];
        let length = x.hypot(y);
        if length > 0.1 { hand(&[x / length, y / length, 0.0]) } else { self.rotation }
    }
}

/// The direction at an angle in the plane, and the one across it.
fn frame(angle: f64) -> (Vector, Vector) {
    let (sine, cosine) = angle.sin_cos();
    ([cosine, sine, 0.0], [-sine, cosine, 0.0])
}

/// The hand with its fingers down, which move along this level direction.
fn hand(along: &Vector) -> Matrix<3, 3> {
    let [x, y, _] = *along;
    [[x, y, 0.0], [y, -x, 0.0], [0.0, 0.0, -1.0]]
}

/// The angle of a level edge of the object's largest box.
fn principal_angle(object: &[Block]) -> f64 {
    let volume = |block: &Block| block.half_m.iter().product::<f64>();
    let largest = object.iter().max_by(|a, b| volume(a).total_cmp(&volume(b)));
    largest.map_or(0.0, |block| {
        let level = |&axis: &usize| block.rotation[2][axis].abs() < 0.5;
        let axis = (0..3).find(level).unwrap_or(0);
        block.rotation[1][axis].atan2(block.rotation[0][axis])
    })
}

/// The boxes that the finger pads would meet at this height; all of them if none.
fn slab(object: &[Block], z: f64) -> Vec<Block> {
    let met = |block: &&Block| {
        let [low, high] = span_m(block, &[0.0, 0.0, 1.0]);
        low < z + PADS_M[1] && high > z + PADS_M[0]
    };
    let slab: Vec<_> = object.iter().filter(met).copied().collect();
    if slab.is_empty() { object.to_vec() } else { slab }
}

fn span(blocks: &[Block], direction: &Vector) -> [f64; 2] {
    let spans = blocks.iter().map(|block| span_m(block, direction));
    spans.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], [from, to]| {
        [low.min(from), high.max(to)]
    })
}

/// Clearance between the open hand at this place and the nearest other object; negative if they overlap.
fn gap_m(others: &[Block], along: &Vector, across: &Vector, at: [f64; 2], z: f64) -> f64 {
    let room = |block: &Block| {
        let top = span_m(block, &[0.0, 0.0, 1.0])[1];
        let beside = |half: [f64; 2]| {
            let one = |direction: &Vector, middle: f64, half: f64| {
                let [low, high] = span_m(block, direction);
                (low - middle - half).max(middle - half - high)
            };
            one(along, at[0], half[0]).max(one(across, at[1], half[1]))
        };
        let hand =
            if top > z + HAND_ABOVE_M - ROOM_M { beside(HAND_HALF_M) } else { f64::INFINITY };
        let fingers = if top > z - TIPS_BELOW_M { beside(FINGERS_HALF_M) } else { f64::INFINITY };
        hand.min(fingers)
    };
    others.iter().map(room).fold(f64::INFINITY, f64::min).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPRIGHT: Matrix<3, 3> = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    /// A box on the ground.
    fn block(x: f64, y: f64, half_m: Vector) -> Block {
        Block { centre_m: [x, y, half_m[2]], rotation: UPRIGHT, half_m }
    }

    /// As long and flat as the cream cheese.
    const FLAT: Vector = [0.040, 0.021, 0.009];

    #[test]
    fn a_box_alone_is_taken_in_the_middle_across_its_narrow_side() {
        let grasp = Grasp::best(&[block(0.1, 0.2, FLAT)], &[]);
        assert!((grasp.width_m - 0.042).abs() < 1e-12, "{grasp:?}");
        assert!((grasp.position_m[0] - 0.1).abs() < 1e-12, "{grasp:?}");
        assert!((grasp.position_m[1] - 0.2).abs() < 1e-12, "{grasp:?}");
        assert_eq!(grasp.position_m[2], GROUND_M);
    }

    #[test]
    fn a_tall_neighbour_moves_the_grasp_until_the_hand_is_clear_of_it() {
        let neighbour = block(0.05, -0.1, [0.031, 0.031, 0.038]);
        let beside = |grasp: Grasp| {
            let along = [grasp.rotation[0][0], grasp.rotation[1][0], 0.0];
            let across = [-along[1], along[0], 0.0];
            let at = [&along, &across].map(|axis| crate::linear::dot(axis, &grasp.position_m));
            gap_m(&[neighbour], &along, &across, at, grasp.position_m[2])
        };
        let object = [block(0.0, 0.0, FLAT)];
        assert!(beside(Grasp::best(&object, &[])) < 0.0);
        assert!(beside(Grasp::best(&object, &[neighbour])) > 0.005);
    }

    #[test]
    fn a_neighbour_lower_than_the_hand_is_not_in_its_way() {
        let low = block(0.0, -0.085, [0.01, 0.01, 0.009]);
        let object = [block(0.0, 0.0, FLAT)];
        let [alone, beside] = [&[][..], &[low]].map(|others| Grasp::best(&object, others));
        assert_eq!(alone.position_m, beside.position_m);
    }

    #[test]
    fn fingers_change_places_rather_than_turn_the_hand_by_half() {
        let grasp = Grasp::best(&[block(0.0, 0.0, FLAT)], &[]);
        let away = hand(&[0.3, -0.95, 0.0]);
        let facing = grasp.facing(&away).rotation;
        assert!(facing[0][0] * away[0][0] + facing[1][0] * away[1][0] > 0.0);
    }
}
