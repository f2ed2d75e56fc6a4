//! A scripted expert that knows the physical state.
//!
//! It is a function of the present state alone: what it is about follows from where things are and
//! what the fingers touch. So a policy can imitate it from any state, also from those that it would
//! not have reached itself, and noisy demonstrations are made by adding noise to its actions.

mod grasp;
mod shape;

use crate::expert::grasp::Grasp;
use crate::expert::shape::Extent;
use crate::libero::Episode;
use crate::linear::{Matrix, Vector, length, scale, subtract, turn_between};
use crate::osc::{ACTION, MOVE_M};

/// Sideways error in metres below which the hand goes down on an object.
const ALIGNED_M: f64 = 0.010;
/// Turn in radians below which it does.
const ALIGNED_RAD: f64 = 0.12;
/// Sideways distance in metres below which other objects may be obstacles.
const FAR_M: f64 = 0.03;
/// Distance from the grasp in metres at which the fingers shut.
const REACH_M: f64 = 0.008;
/// Fingers that are nearer to each other than this have begun to shut, in metres.
const OPEN_M: f64 = 0.07;
/// What the fingers must be further open than the object is wide, in metres.
const PLAY_M: f64 = 0.008;
/// Clearance between the lowest moving point and the highest obstacle, in metres.
const CLEAR_M: f64 = 0.03;
/// Sideways distance from the basket's middle in metres at which the object is lowered.
const OVER_BASKET_M: f64 = 0.02;
/// Actions per radian of turn still to go, and the largest.
const TURN_GAIN: f64 = 2.0;
const TURN_LIMIT: f64 = 0.5;

/// Present action of the expert, in the units of [`Episode::step`].
pub fn expert(episode: &Episode) -> [f64; ACTION] {
    let scene = Scene::read(episode);
    let wish = if episode.is_success() {
        Wish { step_m: [0.0, 0.0, 0.02], turn: [0.0; 3], shut: false }
    } else if scene.holds() {
        scene.carry()
    } else {
        scene.pick()
    };
    let [x, y, z] = wish.step_m.map(|step| (step / MOVE_M).clamp(-1.0, 1.0));
    let [a, b, c] = scale(&wish.turn, TURN_GAIN).map(|turn| turn.clamp(-TURN_LIMIT, TURN_LIMIT));
    [x, y, z, a, b, c, if wish.shut { 1.0 } else { -1.0 }]
}

/// The commanded motion: metres, and axis times radians.
struct Wish {
    step_m: Vector,
    turn: Vector,
    shut: bool,
}

/// Observation of the expert.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The point between the finger tips.
    pub hand_m: Vector,
    rotation: Matrix<3, 3>,
    /// Distance between the fingers.
    pub opening_m: f64,
    /// Which finger touches the object.
    pub touches: [bool; 2],
    /// Whether the fingers were commanded to close fully.
    pub is_shut: bool,
    grasp: Grasp,
    /// The object's origin.
    pub object_m: Vector,
    object: Extent,
    /// The middle of the space in the basket.
    pub goal_m: Vector,
    /// The basket's rim.
    pub basket_top_m: f64,
    /// The highest point of the other things.
    pub others_top_m: f64,
}

/// What a policy may see of it besides.
impl Scene {
    /// The grasp of the object among its neighbours.
    pub fn grasp_m(&self) -> Vector {
        self.grasp.position_m
    }

    /// What is between the fingers there, in metres.
    pub fn grasp_width_m(&self) -> f64 {
        self.grasp.width_m
    }

    /// The turn from the hand as it is to that grasp, axis times radians.
    pub fn turn_to_grasp(&self) -> Vector {
        turn_between(&self.rotation, &self.grasp.rotation)
    }

    /// The turn from the hand as it is to fingers straight down.
    pub fn turn_upright(&self) -> Vector {
        turn_between(&self.rotation, &self.grasp.upright(&self.rotation))
    }

    /// The object's lowest and highest point.
    pub fn object_span_m(&self) -> [f64; 2] {
        [self.object.low_m[2], self.object.high_m[2]]
    }

    /// Both fingers touch the object and were commanded to close fully.
    pub fn holds(&self) -> bool {
        self.touches == [true; 2] && self.is_shut
    }
}

impl Scene {
    /// Reads the state of an episode.
    pub fn read(episode: &Episode) -> Self {
        let (world, parts) = (episode.world(), episode.parts());
        let rotation = world.site_rotation(episode.controller().arm().grip());
        let seen = episode.observe();
        let others = shape::things(world).filter(|&body| body != parts.object);
        let others: Vec<_> = others.flat_map(|body| world.blocks(body)).collect();
        let object: Vec<_> = world.blocks(parts.object).collect();
        let basket: Vec<_> = world.blocks(parts.basket).collect();
        let touched = |finger: &[_; 2]| finger.iter().any(|&part| world.touch(part, parts.object));
        Self {
            hand_m: seen.eef_position_m,
            rotation,
            opening_m: seen.gripper_m[0] - seen.gripper_m[1],
            touches: [touched(&parts.fingers[0]), touched(&parts.fingers[1])],
            is_shut: episode.controller().is_shut(),
            grasp: Grasp::best(&object, &others).facing(&rotation),
            object_m: seen.object.position_m,
            object: Extent::of(&object),
            goal_m: world.site_position_m(parts.region),
            basket_top_m: Extent::of(&basket).high_m[2],
            others_top_m: Extent::of(&others).high_m[2],
        }
    }

    /// Brings the open hand over the grasp, down, and shuts it.
    fn pick(&self) -> Wish {
        let way = subtract(&self.grasp.position_m, &self.hand_m);
        let turn = self.turn_to_grasp();
        let sideways = length(&[way[0], way[1]]);
        // Fingers that have started to close continue, even if the object moved a little.
        let reach = if self.opening_m < OPEN_M { 2.0 * REACH_M } else { REACH_M };
        if length(&way) < reach {
            return Wish { step_m: way, turn, shut: true };
        }
        // A descending hand tolerates twice the error; otherwise noise would reverse its motion.
        let slack = if self.hand_m[2] < self.object.high_m[2] + CLEAR_M / 2.0 { 2.0 } else { 1.0 };
        let aligned = sideways < slack * ALIGNED_M && length(&turn) < slack * ALIGNED_RAD;
        if aligned && self.opening_m > self.grasp.width_m + PLAY_M {
            return Wish { step_m: way, turn, shut: false };
        }
        Wish { step_m: self.hover(&way, sideways), turn, shut: false }
    }

    /// Towards the place above the grasp, up first where the hand would run into something.
    fn hover(&self, way: &Vector, sideways: f64) -> Vector {
        let tallest = if sideways > FAR_M { self.others_top_m } else { 0.0 };
        let height = self.object.high_m[2].max(tallest) + CLEAR_M;
        let up = height - self.hand_m[2];
        if up > CLEAR_M { [0.0, 0.0, up] } else { [way[0], way[1], up] }
    }

    /// Lifts the object, takes it over the basket and lets it down.
    fn carry(&self) -> Wish {
        let way = subtract(&self.goal_m, &self.object_m);
        let turn = self.turn_upright();
        let up = self.basket_top_m + CLEAR_M - self.object.low_m[2];
        let over = length(&[way[0], way[1]]) < OVER_BASKET_M;
        let step_m = match (over, up > CLEAR_M) {
            (true, _) => way,
            (false, true) => [0.0, 0.0, up],
            (false, false) => [way[0], way[1], up],
        };
        Wish { step_m, turn, shut: true }
    }
}
