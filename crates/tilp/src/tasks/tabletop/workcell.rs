//! A cell loaded once and copied for each episode.

use rapier3d::prelude::*;
use rapier3d_mjcf::{MjcfLoaderOptions, MjcfMultibodyOptions, MjcfRobot, MjcfRobotHandles};

use crate::tasks::tabletop::{Family, Variant};

/// Handles of a cell whose joints are those of articulated chains.
type Handles = MjcfRobotHandles<Option<MultibodyJointHandle>>;

/// The loaded world of one [`Variant`], from which each episode starts.
pub struct Workcell {
    /// What was loaded.
    pub variant: Variant,
    pub(super) bodies: RigidBodySet,
    pub(super) colliders: ColliderSet,
    pub(super) joints: MultibodyJointSet,
    pub(super) couplings: ImpulseJointSet,
    pub(super) handles: Handles,
    pub(super) parts: Parts,
}

/// Where the named parts of a world are.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub hand: RigidBodyHandle,
    pub fingers: [RigidBodyHandle; 2],
    pub finger_pads: [ColliderHandle; 2],
    pub object: RigidBodyHandle,
    pub object_shape: ColliderHandle,
    pub fixture: RigidBodyHandle,
}

impl Workcell {
    /// Loads the world of this variant.
    pub fn new(variant: Variant) -> Workcell {
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
        Workcell { variant, bodies, colliders, joints, couplings, handles, parts }
    }
}

/// Places of the named parts in the loaded robot, before they have handles.
struct Names {
    bodies: [usize; 5],
    geoms: [(usize, usize); 3],
}

impl Names {
    fn of(robot: &MjcfRobot, family: Family) -> Names {
        let touched = if family == Family::DrawerClose { "front" } else { "object" };
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
