//! The live world of one episode in rapier.

use rapier3d::prelude::*;

use crate::tasks::tabletop::engine::{
    self, CONTROL_PERIOD, FINGER_TRAVEL, HAND_HEIGHT, Owner, Physics, TARGETS,
};
use crate::tasks::tabletop::layout::Layout;
use crate::tasks::tabletop::workcell::{Parts, RapierCell};

pub(super) struct Rapier<'a> {
    cell: &'a RapierCell,
    world: PhysicsWorld,
}

impl<'a> Rapier<'a> {
    pub(super) fn new(cell: &'a RapierCell, layout: &Layout) -> Self {
        let world = PhysicsWorld {
            gravity: Vector::Z * -9.81,
            integration_parameters: IntegrationParameters {
                dt: CONTROL_PERIOD / TARGETS as f32,
                ..IntegrationParameters::default()
            },
            bodies: cell.bodies.clone(),
            colliders: cell.colliders.clone(),
            multibody_joints: cell.joints.clone(),
            impulse_joints: cell.couplings.clone(),
            ..PhysicsWorld::default()
        };
        let mut physics = Self { cell, world };
        physics.arrange(layout);
        physics
    }

    fn parts(&self) -> &Parts {
        &self.cell.parts
    }

    fn arrange(&mut self, layout: &Layout) {
        let parts = self.cell.parts;
        self.move_to(parts.fixture, layout.goal);
        if layout.jointed {
            self.displace(parts.object, layout.opening);
        } else {
            self.move_to(parts.object, layout.object);
        }
        let hand = layout.hand - Vector::Z * HAND_HEIGHT;
        let chain = self.cell.handles.actuators.iter().zip([hand.x, hand.y, hand.z]);
        for (actuator, coordinate) in chain {
            let joint = actuator.joint.flatten().expect("the gantry's joints form a chain");
            let (chain, link) = self.world.multibody_joints.get_mut(joint).expect("loaded joint");
            if let Some(link) = chain.link_mut(link) {
                link.joint.apply_displacement(&[coordinate]);
            }
        }
        self.refresh(parts.hand);
    }

    /// Moves a body on the table and leaves its height and its turn as loaded.
    fn move_to(&mut self, body: RigidBodyHandle, place: Vector) {
        let body = &mut self.world.bodies[body];
        let mut pose = *body.position();
        pose.translation.x = place.x;
        pose.translation.y = place.y;
        body.set_position(pose, true);
    }

    fn displace(&mut self, body: RigidBodyHandle, coordinate: f32) {
        let Some(id) = self.world.multibody_joints.rigid_body_link(body).copied() else { return };
        let chain = self.world.multibody_joints.get_multibody_mut(id.multibody);
        if let Some(link) = chain.and_then(|chain| chain.link_mut(id.id)) {
            link.joint.apply_displacement(&[coordinate]);
        }
        self.refresh(body);
    }

    /// Brings the bodies of a chain to where its coordinates say.
    fn refresh(&mut self, body: RigidBodyHandle) {
        let Some(id) = self.world.multibody_joints.rigid_body_link(body).copied() else { return };
        if let Some(chain) = self.world.multibody_joints.get_multibody_mut(id.multibody) {
            chain.forward_kinematics(&self.world.bodies, true);
            chain.update_rigid_bodies(&mut self.world.bodies, false);
        }
    }
}

impl Physics for Rapier<'_> {
    fn advance(&mut self, step: Vector, shut: bool) {
        let start = self.hand() - Vector::Z * HAND_HEIGHT;
        let finger = if shut { FINGER_TRAVEL } else { 0.0 };
        for target in 1..=TARGETS {
            let target = start + step * engine::share(target);
            let control = [target.x, target.y, target.z, finger, finger];
            self.cell.handles.apply_controls_multibody(
                &mut self.world.bodies,
                &mut self.world.multibody_joints,
                &control,
            );
            self.world.step();
        }
    }

    fn hand(&self) -> Vector {
        self.world.bodies[self.parts().hand].translation()
    }

    fn hand_velocity(&self) -> Vector {
        self.world.bodies[self.parts().hand].linvel()
    }

    fn opening(&self) -> f32 {
        let [left, right] =
            self.parts().fingers.map(|finger| self.world.bodies[finger].translation());
        engine::opening(left.y, right.y)
    }

    fn touches(&self) -> [bool; 2] {
        let object = self.parts().object_shape;
        self.parts().finger_pads.map(|pad| {
            let pair = self.world.narrow_phase.contact_pair(pad, object);
            pair.is_some_and(|pair| pair.has_any_active_contact())
        })
    }

    fn object(&self) -> Pose {
        *self.world.bodies[self.parts().object].position()
    }

    fn object_velocity(&self) -> Vector {
        self.world.bodies[self.parts().object].linvel()
    }

    fn fixture(&self) -> Pose {
        *self.world.bodies[self.parts().fixture].position()
    }

    fn shapes(&self) -> Vec<(Owner, SharedShape, Pose)> {
        let parts = self.parts();
        let owner = |body: RigidBodyHandle| match body {
            body if parts.fingers.contains(&body) => Some(Owner::Hand),
            body if body == parts.object => Some(Owner::Object),
            body if body == parts.fixture => Some(Owner::Fixture),
            _ => None,
        };
        let shape = |collider: &Collider| {
            let body = collider.parent()?;
            // Before the first step only the bodies are at the positions of the layout.
            let pose = *self.world.bodies[body].position() * *collider.position_wrt_parent()?;
            Some((owner(body)?, collider.shared_shape().clone(), pose))
        };
        self.world.colliders.iter().filter_map(|(_, collider)| shape(collider)).collect()
    }

    #[cfg(all(test, feature = "mujoco"))]
    fn masses(&self) -> [f32; 3] {
        let [left, right] = self.parts().fingers;
        [self.parts().object, left, right].map(|body| self.world.bodies[body].mass())
    }
}
