//! A task in a folder: a world and the initial states of its episodes.

use std::path::Path;

use crate::Error;
use crate::libero::npy;
use crate::osc::Controller;
use crate::world::{Body, Joint, Site, World};

/// The ten objects of the suite; each has one task.
pub const OBJECTS: [&str; 10] = [
    "alphabet_soup",
    "bbq_sauce",
    "butter",
    "chocolate_pudding",
    "cream_cheese",
    "ketchup",
    "milk",
    "orange_juice",
    "salad_dressing",
    "tomato_sauce",
];

/// The file with the world's physics.
const WORLD: &str = "phys.xml";
/// The file with the initial states.
const STATES: &str = "init_states.npy";

/// One task, ready to start episodes from.
#[derive(Clone, Debug)]
pub struct Task {
    pub(super) world: World,
    pub(super) controller: Controller,
    pub(super) parts: Parts,
    object: String,
    states: Vec<Vec<f64>>,
}

/// The things of a world that the task is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub object: Body,
    pub basket: Body,
    /// The space inside the basket.
    pub region: Site,
    pub hand: Body,
    /// Each finger's body and its pad's.
    pub fingers: [[Body; 2]; 2],
    pub finger_joints: [Joint; 2],
}

impl Task {
    /// Reads the folder of a task, `phys.xml` and `init_states.npy`, whose object has this name.
    pub fn load(folder: &Path, object: &str) -> Result<Self, Error> {
        let world = World::from_file(&folder.join(WORLD))?;
        let (coordinates, velocities) = world.sizes();
        let states = npy::read_rows(&folder.join(STATES), 1 + coordinates + velocities)?;
        Ok(Self {
            controller: Controller::new(&world)?,
            parts: Parts::find(&world, object)?,
            object: object.to_owned(),
            world,
            states,
        })
    }

    /// The same task with a heavier object: a payload that shares its shape and balance.
    pub fn with_extra_mass(&self, extra_mass_kg: f64) -> Result<Self, Error> {
        if !(extra_mass_kg.is_finite() && extra_mass_kg >= 0.0) {
            let place = self.world.place();
            return Err(Error::value(place, "extra_mass_kg", extra_mass_kg, "zero or more"));
        }
        let world =
            self.world.with_mass(self.parts.object, self.object_mass_kg() + extra_mass_kg)?;
        Ok(Self { world, ..self.clone() })
    }

    /// The name of the object that belongs in the basket.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// The object's mass, payload included.
    pub fn object_mass_kg(&self) -> f64 {
        self.world.mass_kg(self.parts.object)
    }

    /// The world before any episode.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Number of initial states.
    pub fn n_states(&self) -> usize {
        self.states.len()
    }

    /// Time, coordinates and velocities of an initial state.
    pub(super) fn state(&self, index: usize) -> Result<(f64, &[f64], &[f64]), Error> {
        let state = self.states.get(index).ok_or_else(|| {
            let expected = format!("less than {}", self.states.len());
            Error::value(self.world.place(), "initial state", index, expected)
        })?;
        let (qpos, qvel) = state[1..].split_at(self.world.sizes().0);
        Ok((state[0], qpos, qvel))
    }
}

impl Parts {
    fn find(world: &World, object: &str) -> Result<Self, Error> {
        let joint = |i: usize| world.joint(&format!("gripper0_finger_joint{i}"));
        Ok(Self {
            object: world.body(&format!("{object}_1_main"))?,
            basket: world.body("basket_1_main")?,
            region: world.site("basket_1_contain_region")?,
            hand: world.body("robot0_right_hand")?,
            fingers: [
                [world.body("gripper0_leftfinger")?, world.body("gripper0_finger_joint1_tip")?],
                [world.body("gripper0_rightfinger")?, world.body("gripper0_finger_joint2_tip")?],
            ],
            finger_joints: [joint(1)?, joint(2)?],
        })
    }
}
