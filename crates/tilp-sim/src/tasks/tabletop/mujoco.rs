//! The live world of one episode in MuJoCo.

use rapier3d::math::{Pose, Rotation, Vector};
use rapier3d::prelude::SharedShape;
use tilp_mujoco::Error;
use tilp_mujoco::world::{self, Actuator, Body, Geom, Joint, World};

use crate::tasks::tabletop::Variant;
use crate::tasks::tabletop::engine::{
    self, CONTROL_PERIOD, FINGER_TRAVEL, HAND_HEIGHT, Owner, Physics, TARGETS,
};
use crate::tasks::tabletop::layout::Layout;
use crate::tasks::tabletop::workcell::touched;

/// A world loaded into MuJoCo.
pub(super) struct MujocoCell {
    world: World,
    parts: Parts,
    /// Physics steps for each target of the servos.
    substeps: usize,
}

/// Places of the named parts of a world.
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
        let mut world = match self.world.is_free(parts.fixture) {
            true => self.world.clone(),
            false => {
                let moved = self.world.with_fixture_at(parts.fixture, goal);
                moved.expect("a layout is finite")
            }
        };
        if world.is_free(parts.fixture) {
            world.place_free(parts.fixture, goal).expect("it floats");
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
    /// Whether the motion became unstable. MuJoCo then resets the world, which would count as a closed
    /// drawer; so from here on every reading is NaN.
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
        // MuJoCo's cylinders have their axis along z, rapier's along y.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use crate::tasks::tabletop::{
        ACTION, Engine, Family, OBSERVATION, Robot, VariantRange, Workcell, expert, strip,
    };
    use crate::tasks::{Episode, EpisodeSet, demonstrate, rollout};

    fn variant(family: Family, index: u64) -> Variant {
        let mut rng = Seed::new(61).named(family.name()).at(index).rng();
        Variant::draw(family, &VariantRange::WIDE, &mut rng)
    }

    fn cell(family: Family, index: u64) -> Workcell {
        Workcell::in_engine(variant(family, index), Engine::Mujoco)
    }

    /// The start of an episode in both engines.
    fn both(family: Family, index: u64, look: impl Fn(&[&dyn Physics; 2], &Layout)) {
        let variant = variant(family, index);
        let layout = Layout::draw(&variant, Seed::new(62).at(index));
        let cells = [Engine::Rapier, Engine::Mujoco]
            .map(|engine| Workcell::in_engine(variant.clone(), engine));
        let live = cells.each_ref().map(|cell| cell.start(&layout));
        look(&live.each_ref().map(|world| &**world), &layout);
    }

    /// Masses in both engines, after a step: rapier adds them up in its first.
    fn masses(family: Family, extra_kg: f32) -> [[f32; 3]; 2] {
        let variant = variant(family, 5).with_extra_mass(extra_kg);
        let layout = Layout::draw(&variant, Seed::new(62));
        [Engine::Rapier, Engine::Mujoco].map(|engine| {
            let cell = Workcell::in_engine(variant.clone(), engine);
            let mut live = cell.start(&layout);
            live.advance(Vector::ZERO, false);
            live.masses()
        })
    }

    fn close(one: Vector, other: Vector) -> bool {
        (one - other).length() < 1e-5
    }

    #[test]
    fn both_engines_place_everything_where_the_layout_says() {
        for (family, index) in Family::ALL.into_iter().zip([0, 1, 2, 3].into_iter().cycle()) {
            both(family, index, |live, layout| {
                for world in live {
                    assert!(close(world.hand(), layout.hand), "{}", family.name());
                    let fixture = world.fixture().translation;
                    assert!(close(fixture, layout.goal + Vector::Z * fixture.z), "{fixture}");
                    assert!((world.opening() - 1.0).abs() < 1e-5, "{}", world.opening());
                }
                let [rapier, mujoco] = live;
                for pair in [rapier.object(), rapier.fixture()]
                    .into_iter()
                    .zip([mujoco.object(), mujoco.fixture()])
                {
                    assert!(close(pair.0.translation, pair.1.translation), "{pair:?}");
                    let turn = pair.0.rotation.dot(pair.1.rotation).abs();
                    assert!((turn - 1.0).abs() < 1e-5, "{pair:?}");
                }
            });
        }
    }

    #[test]
    fn the_steps_of_mujoco_fill_a_control_step() {
        let cell = MujocoCell::new(&variant(Family::Bin, 0));
        let filled = cell.world.step_s() * (cell.substeps * TARGETS) as f64;
        assert!((filled - f64::from(CONTROL_PERIOD)).abs() < 1e-6, "{filled} s");
    }

    #[test]
    fn both_engines_have_the_same_shapes_in_the_same_places() {
        for family in Family::ALL {
            both(family, 4, |live, _| {
                let boxes = live.map(|world| {
                    let shapes = world.shapes().into_iter();
                    let mut boxes: Vec<[i32; 6]> = shapes
                        .map(|(_, shape, pose)| {
                            let around = shape.compute_aabb(&pose);
                            let [low, high] = [around.mins, around.maxs].map(|v| v.to_array());
                            // Tenths of a millimetre, set off so that no measure is on an edge.
                            std::array::from_fn(|i| {
                                let metres = if i < 3 { low[i] } else { high[i - 3] };
                                (1e4 * metres + 0.137).round() as i32
                            })
                        })
                        .collect();
                    boxes.sort_unstable();
                    boxes
                });
                let [rapier, mujoco] = boxes;
                assert_eq!(rapier.len(), mujoco.len(), "{}", family.name());
                for (one, other) in rapier.iter().flatten().zip(mujoco.iter().flatten()) {
                    assert!((one - other).abs() <= 1, "{}: {rapier:?} {mujoco:?}", family.name());
                }
            });
        }
    }

    #[test]
    fn both_engines_weigh_the_same() {
        for (family, extra_kg) in Family::ALL.into_iter().flat_map(|one| [(one, 0.0), (one, 2.0)]) {
            let [rapier, mujoco] = masses(family, extra_kg);
            for (one, other) in rapier.into_iter().zip(mujoco) {
                let equal = one > 0.0 && (one - other).abs() <= 1e-5 * one;
                assert!(equal, "{} with {extra_kg} kg: {one} {other}", family.name());
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trajectory_in_mujoco_bit_for_bit() {
        for family in Family::ALL {
            let trajectory = |seed: u64| {
                let cell = cell(family, 0);
                let mut robot = Robot::reset(&cell, Seed::new(seed));
                let mut seen: Vec<u32> = Vec::new();
                for _ in 0..40 {
                    seen.extend(robot.observe().map(f32::to_bits));
                    robot.act(&expert(&robot));
                }
                seen
            };
            assert_eq!(trajectory(1), trajectory(1), "{}", family.name());
            assert_ne!(trajectory(1), trajectory(2), "{}", family.name());
        }
    }

    #[test]
    fn success_and_demonstrations_in_mujoco_do_not_depend_on_the_number_of_threads() {
        let cells = Family::ALL.map(|family| cell(family, 0));
        let episode = |n: u64| Episode {
            cell: (n % 8) as usize,
            start: EpisodeSet::Report.episode(Seed::new(63), n % 8, n / 8),
        };
        let episodes: Vec<Episode> = (0..40).map(episode).collect();
        let press = |seen: &[f32], actions: &mut [f32]| {
            for (seen, action) in seen.chunks(OBSERVATION).zip(actions.chunks_mut(ACTION)) {
                action.copy_from_slice(&[6.0 * seen[6], 6.0 * seen[7], 6.0 * seen[8] - 0.5, 1.0]);
            }
        };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let done = rollout(&cells, &episodes, &press, 40);
                (done, demonstrate(&cells[3], 4, 0.3, Seed::new(64)))
            })
        };
        let one = on(1);
        assert!(one.1.actions.len() > 40 * ACTION);
        assert_eq!(one, on(2));
    }

    #[test]
    fn motion_that_blew_up_in_mujoco_is_no_success_and_is_seen_as_bounded_numbers() {
        let cell = cell(Family::DrawerClose, 0);
        let loaded = MujocoCell::new(&cell.variant);
        let layout = Layout::draw(&cell.variant, Seed::new(65));
        let mut robot = Robot::reset(&cell, Seed::new(65));
        let mut live = loaded.start(&layout);
        live.broken = true;
        robot.physics = Box::new(live);
        robot.act(&[1.0; ACTION]);
        assert!(!robot.succeeded());
        assert!(robot.observe().iter().all(|value| value.is_finite()));
    }

    #[test]
    fn an_episode_in_mujoco_can_be_drawn() {
        let svg = strip(&Family::ALL.map(|family| cell(family, 1)), Seed::new(66), 2);
        assert_eq!(svg.matches("<svg").count(), 1 + 8 * 2);
        assert!(!svg.contains("NaN"));
    }
}
