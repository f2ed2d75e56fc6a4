//! The live world of one episode in MuJoCo.

use rapier3d::math::{Pose, Rotation, Vector};
use rapier3d::prelude::SharedShape;
use tilp_mujoco::Error;
use tilp_mujoco::world::{self, Actuator, Body, Geom, Joint, World};

use crate::tasks::Variant;
use crate::tasks::engine::{
    self, CONTROL_PERIOD, FINGER_TRAVEL, HAND_HEIGHT, Owner, Physics, TARGETS,
};
use crate::tasks::layout::Layout;
use crate::tasks::workcell::touched;

/// A world loaded into MuJoCo.
pub(super) struct MujocoCell {
    world: World,
    parts: Parts,
    /// Physics steps for each target of the servos.
    substeps: usize,
}

/// Where the named parts of a world are.
#[derive(Clone, Copy)]
struct Parts {
    hand: Body,
    fingers: [Body; 2],
    finger_pads: [Geom; 2],
    object: Body,
    object_shape: Geom,
    fixture: Body,
    gantry: [Joint; 3],
    /// What a drawer or a button slides on.
    slide: Option<Joint>,
    motors: [Actuator; 5],
}

impl Parts {
    fn find(world: &World, variant: &Variant) -> Result<Parts, Error> {
        Ok(Parts {
            hand: world.body("hand")?,
            fingers: [world.body("left")?, world.body("right")?],
            finger_pads: [world.geom("left")?, world.geom("right")?],
            object: world.body("object")?,
            object_shape: world.geom(touched(variant.family))?,
            fixture: world.body("goal")?,
            gantry: [world.joint("x")?, world.joint("y")?, world.joint("z")?],
            slide: world.joint("drawer").or_else(|_| world.joint("button")).ok(),
            motors: [
                world.actuator("x")?,
                world.actuator("y")?,
                world.actuator("z")?,
                world.actuator("left")?,
                world.actuator("right")?,
            ],
        })
    }
}

impl MujocoCell {
    pub(super) fn new(variant: &Variant) -> MujocoCell {
        let world = World::from_mjcf(&variant.mjcf())
            .expect("the embedded worlds are valid MJCF for every variant");
        let parts = Parts::find(&world, variant).expect("the embedded worlds name their parts");
        let substeps = f64::from(CONTROL_PERIOD) / TARGETS as f64 / world.step_s();
        MujocoCell { world, parts, substeps: substeps.round() as usize }
    }

    pub(super) fn start(&self, layout: &Layout) -> Mujoco {
        let parts = self.parts;
        let goal = self.on_table(parts.fixture, layout.goal);
        // What floats is part of the state, what is fixed belongs to the description.
        let (mut world, floats) = match self.world.is_free(parts.fixture) {
            true => (self.world.clone(), vec![(parts.fixture, goal)]),
            false => {
                let moved = self.world.with_fixture_at(parts.fixture, goal);
                (moved.expect("a layout is finite"), Vec::new())
            }
        };
        for (body, place) in floats {
            world.place_free(body, place).expect("it floats");
        }
        match parts.slide {
            Some(slide) => world.place_joint(slide, f64::from(layout.opening)),
            None => {
                let place = self.on_table(parts.object, layout.object);
                world.place_free(parts.object, place).expect("objects float or slide");
            }
        }
        let hand = layout.hand - Vector::Z * HAND_HEIGHT;
        for (joint, coordinate) in parts.gantry.into_iter().zip(hand.to_array()) {
            world.place_joint(joint, f64::from(coordinate));
        }
        world.settle();
        Mujoco { world, parts, substeps: self.substeps, broken: false }
    }

    /// A place on the table at the height where the body was loaded.
    fn on_table(&self, body: Body, place: Vector) -> [f64; 3] {
        [f64::from(place.x), f64::from(place.y), self.world.pose(body).position_m[2]]
    }
}

pub(super) struct Mujoco {
    world: World,
    parts: Parts,
    substeps: usize,
    /// Whether the motion blew up. MuJoCo then puts everything back to where it was loaded, where a
    /// drawer is shut and nobody earned it; so from here on every reading is no number.
    broken: bool,
}

impl Mujoco {
    fn pose(&self, body: Body) -> Pose {
        if self.broken {
            return Pose::from_parts(Vector::splat(f32::NAN), Rotation::IDENTITY);
        }
        let world::Pose { position_m, quaternion: [w, x, y, z] } = self.world.pose(body);
        let turn = [x, y, z, w].map(|part| part as f32);
        Pose::from_parts(narrow(position_m), Rotation::from_array(turn))
    }

    fn velocity(&self, body: Body) -> Vector {
        if self.broken { Vector::splat(f32::NAN) } else { narrow(self.world.velocity(body)) }
    }

    fn solids(&self, owner: Owner, body: Body) -> Vec<(Owner, SharedShape, Pose)> {
        // MuJoCo's cylinders stand along z, rapier's along y.
        let upright = Rotation::from_rotation_x(std::f32::consts::FRAC_PI_2);
        let boxes = self.world.blocks(body).map(|block| {
            let [x, y, z] = block.half_m.map(|half| half as f32);
            (SharedShape::cuboid(x, y, z), pose(block.centre_m, block.rotation))
        });
        let rods = self.world.rods(body).map(|rod| {
            let shape = SharedShape::cylinder(rod.half_m as f32, rod.radius_m as f32);
            (shape, pose(rod.centre_m, rod.rotation) * Pose::from_parts(Vector::ZERO, upright))
        });
        boxes.chain(rods).map(|(shape, pose)| (owner, shape, pose)).collect()
    }
}

fn narrow(vector: [f64; 3]) -> Vector {
    Vector::from_array(vector.map(|value| value as f32))
}

fn pose(centre_m: [f64; 3], rows: [[f64; 3]; 3]) -> Pose {
    use rapier3d::math::Matrix;
    let rows = rows.map(|row| row.map(|value| value as f32));
    let turn = Matrix::from_cols_array_2d(&rows).transpose();
    Pose::from_parts(narrow(centre_m), Rotation::from_mat3(&turn))
}

impl Physics for Mujoco {
    fn advance(&mut self, step: Vector, shut: bool) {
        if self.broken {
            return;
        }
        let start = self.hand() - Vector::Z * HAND_HEIGHT;
        let finger = if shut { FINGER_TRAVEL } else { 0.0 };
        for target in 1..=TARGETS {
            let target = start + step * engine::share(target);
            let control = [target.x, target.y, target.z, finger, finger];
            for (motor, value) in self.parts.motors.into_iter().zip(control) {
                self.world.drive(motor, f64::from(value));
            }
            for _ in 0..self.substeps {
                self.world.begin_step();
                self.world.finish_step();
            }
        }
        self.broken = self.world.check().is_err();
        self.world.settle();
    }

    fn hand(&self) -> Vector {
        self.pose(self.parts.hand).translation
    }

    fn hand_velocity(&self) -> Vector {
        self.velocity(self.parts.hand)
    }

    fn opening(&self) -> f32 {
        let [left, right] = self.parts.fingers.map(|finger| self.pose(finger).translation.y);
        engine::opening(left, right)
    }

    fn touches(&self) -> [bool; 2] {
        self.parts.finger_pads.map(|pad| self.world.geoms_touch(pad, self.parts.object_shape))
    }

    fn object(&self) -> Pose {
        self.pose(self.parts.object)
    }

    fn object_velocity(&self) -> Vector {
        self.velocity(self.parts.object)
    }

    fn fixture(&self) -> Pose {
        self.pose(self.parts.fixture)
    }

    fn shapes(&self) -> Vec<(Owner, SharedShape, Pose)> {
        let [left, right] = self.parts.fingers;
        let owned = [
            (Owner::Hand, left),
            (Owner::Hand, right),
            (Owner::Object, self.parts.object),
            (Owner::Fixture, self.parts.fixture),
        ];
        owned.into_iter().flat_map(|(owner, body)| self.solids(owner, body)).collect()
    }

    #[cfg(test)]
    fn masses(&self) -> [f32; 3] {
        let [left, right] = self.parts.fingers;
        [self.parts.object, left, right].map(|body| self.world.mass_kg(body) as f32)
    }
}
