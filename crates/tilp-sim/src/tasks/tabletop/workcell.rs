//! A cell loaded once and copied for each episode.

use rapier3d::prelude::*;
use rapier3d_mjcf::{MjcfLoaderOptions, MjcfMultibodyOptions, MjcfRobot, MjcfRobotHandles};

use crate::tasks::tabletop::engine::Physics;
use crate::tasks::tabletop::layout::Layout;
#[cfg(feature = "mujoco")]
use crate::tasks::tabletop::mujoco::MujocoCell;
use crate::tasks::tabletop::physics::Rapier;
use crate::tasks::tabletop::{Engine, Family, Variant};

/// Handles of a cell whose joints are those of articulated chains.
pub(super) type Handles = MjcfRobotHandles<Option<MultibodyJointHandle>>;

/// The loaded world of one [`Variant`], from which each episode starts.
pub struct Workcell {
    /// The loaded world.
    pub variant: Variant,
    world: Loaded,
}

/// A world as the engine that runs it keeps it.
enum Loaded {
    Rapier(Box<RapierCell>),
    #[cfg(feature = "mujoco")]
    Mujoco(Box<MujocoCell>),
}

impl Workcell {
    /// Loads the world of this variant into rapier.
    pub fn new(variant: Variant) -> Workcell {
        Self::in_engine(variant, Engine::Rapier)
    }

    /// Loads the world of this variant into this engine.
    pub fn in_engine(variant: Variant, engine: Engine) -> Workcell {
        let world = match engine {
            Engine::Rapier => Loaded::Rapier(Box::new(RapierCell::new(&variant))),
            #[cfg(feature = "mujoco")]
            Engine::Mujoco => Loaded::Mujoco(Box::new(MujocoCell::new(&variant))),
        };
        Workcell { variant, world }
    }

    /// A live world with everything where the layout says.
    pub(super) fn start(&self, layout: &Layout) -> Box<dyn Physics + '_> {
        match &self.world {
            Loaded::Rapier(cell) => Box::new(Rapier::new(cell, layout)),
            #[cfg(feature = "mujoco")]
            Loaded::Mujoco(cell) => Box::new(cell.start(layout)),
        }
    }
}

/// A world loaded into rapier.
pub(super) struct RapierCell {
    pub bodies: RigidBodySet,
    pub colliders: ColliderSet,
    pub joints: MultibodyJointSet,
    pub couplings: ImpulseJointSet,
    pub handles: Handles,
    pub parts: Parts,
}

/// Places of the named parts of a world.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub hand: RigidBodyHandle,
    pub fingers: [RigidBodyHandle; 2],
    pub finger_pads: [ColliderHandle; 2],
    pub object: RigidBodyHandle,
    pub object_shape: ColliderHandle,
    pub fixture: RigidBodyHandle,
}

impl RapierCell {
    fn new(variant: &Variant) -> RapierCell {
        let options = MjcfLoaderOptions { skip_plane_geoms: false, ..MjcfLoaderOptions::default() };
        let (robot, _) = MjcfRobot::from_str(&variant.mjcf(), options, ".")
            .expect("the embedded worlds are valid MJCF for every variant");
        let names = Names::of(&robot, variant.family);
        let mut bodies = RigidBodySet::new();
        let mut colliders = ColliderSet::new();
        let mut joints = MultibodyJointSet::new();
        let mut couplings = ImpulseJointSet::new();
        let handles = robot.insert_using_multibody_joints(
            &mut bodies,
            &mut colliders,
            &mut joints,
            &mut couplings,
            MjcfMultibodyOptions::DISABLE_SELF_CONTACTS,
        );
        let parts = names.resolve(&handles);
        RapierCell { bodies, colliders, joints, couplings, handles, parts }
    }
}

/// The shape that the fingers are watched to touch.
pub(super) fn touched(family: Family) -> &'static str {
    if family == Family::DrawerClose { "front" } else { "object" }
}

/// Places of the named parts in the loaded robot, before they have handles.
struct Names {
    bodies: [usize; 5],
    geoms: [(usize, usize); 3],
}

impl Names {
    fn of(robot: &MjcfRobot, family: Family) -> Names {
        let touched = touched(family);
        let body = |name: &str| robot.body_name_to_idx[name];
        let geom = |name: &str| robot.geom_name_to_collider[name];
        Names {
            bodies: [body("hand"), body("left"), body("right"), body("object"), body("goal")],
            geoms: [geom("left"), geom("right"), geom(touched)],
        }
    }

    fn resolve(&self, handles: &Handles) -> Parts {
        let entry =
            |index: usize| handles.bodies[index].as_ref().expect("named bodies are inserted");
        let body = |place: usize| entry(self.bodies[place]).body;
        let geom = |place: usize| {
            let (body, shape) = self.geoms[place];
            entry(body).colliders[shape].handle
        };
        Parts {
            hand: body(0),
            fingers: [body(1), body(2)],
            finger_pads: [geom(0), geom(1)],
            object: body(3),
            object_shape: geom(2),
            fixture: body(4),
        }
    }
}
