//! The operational-space pose controller of robosuite 1.4 (`OSC_POSE`), as LIBERO sets it up.
//!
//! An action is a step of the hand relative to where it is: 5 cm and half a radian at most, held
//! for 50 ms. The controller pulls the hand there like a critically damped spring, keeps the elbow
//! near its first posture where that costs the hand nothing, and carries the arm's weight.

use crate::Error;
use crate::linear::{
    Matrix, Vector, add, apply, inverse, product, rotation, scale, subtract, transpose,
    turn_between,
};
use crate::world::{Actuator, Joint, Site, World};

/// Numbers in an action: a move (3), a turn (3), the gripper.
pub const ACTION: usize = 7;
/// Physics steps during one action: 20 Hz over steps of 2 ms.
pub const SUBSTEPS: usize = 25;
/// Length of a physics step that the controller is made for, in seconds.
pub const SUBSTEP_S: f64 = 0.002;

/// The hand's way for an action of one, in metres.
pub const MOVE_M: f64 = 0.05;
/// The hand's turn for an action of one, in radians.
const TURN_RAD: f64 = 0.5;
/// Stiffness of the hand's spring, per second squared.
const STIFFNESS: f64 = 150.0;
/// Stiffness of the posture's spring, per second squared.
const POSTURE_STIFFNESS: f64 = 10.0;
/// What the gripper's command changes per physics step, of a range from -1 to 1.
const GRIPPER_SPEED: f64 = 0.01;
/// The joints that LIBERO resets the arm to, in radians, and the posture it prefers.
const POSTURE_RAD: [f64; 7] =
    [0.0, -0.161037389, 0.0, -2.44459747, 0.0, 2.2267522, std::f64::consts::FRAC_PI_4];

/// The parts of a Franka Panda in a LIBERO world.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    joints: [Joint; 7],
    motors: [Actuator; 7],
    finger_motors: [Actuator; 2],
    grip: Site,
}

impl Arm {
    /// Finds the arm by robosuite's names.
    pub fn find(world: &World) -> Result<Self, Error> {
        if (world.step_s() - SUBSTEP_S).abs() > 1e-12 {
            return Err(Error::value(world.place(), "timestep", world.step_s(), SUBSTEP_S));
        }
        let joint = |i: usize| world.joint(&format!("robot0_joint{i}"));
        let motor = |i: usize| world.actuator(&format!("robot0_torq_j{i}"));
        let finger = |i: usize| world.actuator(&format!("gripper0_gripper_finger_joint{i}"));
        Ok(Self {
            joints: all(joint)?,
            motors: all(motor)?,
            finger_motors: all(finger)?,
            grip: world.site("gripper0_grip_site")?,
        })
    }

    /// The point between the finger tips, which the controller moves.
    pub fn grip(&self) -> Site {
        self.grip
    }
}

/// The first `N` parts of a numbered row, counted from one.
fn all<const N: usize, T: Copy>(find: impl Fn(usize) -> Result<T, Error>) -> Result<[T; N], Error> {
    let mut parts = [find(1)?; N];
    for (i, part) in parts.iter_mut().enumerate().skip(1) {
        *part = find(i + 1)?;
    }
    Ok(parts)
}

/// What the controller keeps between actions.
#[derive(Clone, Debug)]
pub struct Controller {
    arm: Arm,
    goal_position_m: Vector,
    goal_rotation: Matrix<3, 3>,
    /// The fingers' commands, -1 to 1 each: the left one opens upwards, the right one downwards.
    fingers: [f64; 2],
}

impl Controller {
    /// The controller after robosuite's `reset` and LIBERO's `set_init_state`.
    ///
    /// That pair leaves a trace: the state is new, but the goal's orientation is still that of the
    /// reset posture, and it stays so until an action turns the hand.
    pub fn new(world: &World) -> Result<Self, Error> {
        let arm = Arm::find(world)?;
        let mut reset = world.clone();
        for (&joint, &angle) in arm.joints.iter().zip(&POSTURE_RAD) {
            reset.place_joint(joint, angle);
        }
        reset.settle();
        Ok(Self {
            arm,
            goal_position_m: reset.site_position_m(arm.grip),
            goal_rotation: reset.site_rotation(arm.grip),
            fingers: [0.0; 2],
        })
    }

    /// The arm that is controlled.
    pub fn arm(&self) -> &Arm {
        &self.arm
    }

    /// Columns are the axes of the orientation that the hand is held in.
    pub fn goal_rotation(&self) -> &Matrix<3, 3> {
        &self.goal_rotation
    }

    /// Whether the fingers were commanded to close fully.
    pub fn is_shut(&self) -> bool {
        self.fingers == [-1.0, 1.0]
    }

    /// Runs one action in the world: 50 ms.
    pub fn act(&mut self, world: &mut World, action: &[f64; ACTION]) -> Result<(), Error> {
        if let Some(at) = action.iter().position(|value| !value.is_finite()) {
            let field = format!("action[{at}]");
            return Err(Error::value(world.place(), field, action[at], "a finite number"));
        }
        for substep in 0..SUBSTEPS {
            world.begin_step();
            let state = State::read(world, &self.arm);
            if substep == 0 {
                self.set_goal(&state, action);
            }
            self.drive_arm(world, &state);
            self.drive_fingers(world, action[6]);
            world.finish_step();
        }
        world.check()
    }

    fn set_goal(&mut self, state: &State, action: &[f64; ACTION]) {
        let [x, y, z, turn @ .., _] = action.map(|value| value.clamp(-1.0, 1.0));
        self.goal_position_m = add(&state.position_m, &scale(&[x, y, z], MOVE_M));
        // Without a turn the old goal stays: the hand is drawn back to it, not held where it is.
        if turn != [0.0; 3] {
            self.goal_rotation = product(&rotation(&scale(&turn, TURN_RAD)), &state.rotation);
        }
    }

    fn drive_arm(&self, world: &mut World, state: &State) {
        let torques = self.torques(state);
        for (&motor, torque) in self.arm.motors.iter().zip(torques) {
            let [low, high] = world.drive_range(motor);
            world.drive(motor, torque.clamp(low, high));
        }
    }

    fn drive_fingers(&mut self, world: &mut World, shut: f64) {
        let change = match shut {
            shut if shut > 0.0 => GRIPPER_SPEED,
            shut if shut < 0.0 => -GRIPPER_SPEED,
            _ => 0.0,
        };
        self.fingers = add(&self.fingers, &[-change, change]).map(|value| value.clamp(-1.0, 1.0));
        for (&motor, command) in self.arm.finger_motors.iter().zip(self.fingers) {
            let [low, high] = world.drive_range(motor);
            world.drive(motor, 0.5 * (low + high) + 0.5 * (high - low) * command);
        }
    }

    /// Torques on the seven joints, before the motors' limits.
    fn torques(&self, state: &State) -> [f64; 7] {
        let inertia_inverse = inverse(&state.inertia);
        let [x, y, z, a, b, c] = state.jacobian;
        let (moving, turning) = ([x, y, z], [a, b, c]);
        let pull = spring(&subtract(&self.goal_position_m, &state.position_m), &moving, state);
        let twist = spring(&turn_between(&state.rotation, &self.goal_rotation), &turning, state);
        let [fx, fy, fz] = apply(&felt_inertia(&moving, &inertia_inverse), &pull);
        let [tx, ty, tz] = apply(&felt_inertia(&turning, &inertia_inverse), &twist);
        let hand = apply(&transpose(&state.jacobian), &[fx, fy, fz, tx, ty, tz]);
        add(&add(&hand, &state.bias), &posture(state, &inertia_inverse))
    }
}

/// Acceleration that a critically damped spring gives the hand, along the rows of its Jacobian.
fn spring(error: &Vector, jacobian: &Matrix<3, 7>, state: &State) -> Vector {
    let velocity = apply(jacobian, &state.speeds);
    subtract(&scale(error, STIFFNESS), &scale(&velocity, 2.0 * STIFFNESS.sqrt()))
}

/// The inertia of the whole arm as the hand feels it: (J M^-1 J^T)^-1.
fn felt_inertia<const N: usize>(
    jacobian: &Matrix<N, 7>,
    inertia_inverse: &Matrix<7, 7>,
) -> Matrix<N, N> {
    inverse(&product(&product(jacobian, inertia_inverse), &transpose(jacobian)))
}

/// Torques towards the first posture, less what the hand would feel of them.
fn posture(state: &State, inertia_inverse: &Matrix<7, 7>) -> [f64; 7] {
    let error = subtract(&POSTURE_RAD, &state.angles);
    let damping = scale(&state.speeds, 2.0 * POSTURE_STIFFNESS.sqrt());
    let wish = apply(&state.inertia, &subtract(&scale(&error, POSTURE_STIFFNESS), &damping));
    let felt = felt_inertia(&state.jacobian, inertia_inverse);
    let at_hand = apply(&felt, &apply(&state.jacobian, &apply(inertia_inverse, &wish)));
    subtract(&wish, &apply(&transpose(&state.jacobian), &at_hand))
}

/// What the controller reads before each physics step.
struct State {
    position_m: Vector,
    rotation: Matrix<3, 3>,
    jacobian: Matrix<6, 7>,
    inertia: Matrix<7, 7>,
    angles: [f64; 7],
    speeds: [f64; 7],
    bias: [f64; 7],
}

impl State {
    fn read(world: &World, arm: &Arm) -> Self {
        Self {
            position_m: world.site_position_m(arm.grip),
            rotation: world.site_rotation(arm.grip),
            jacobian: world.jacobian(arm.grip, &arm.joints),
            inertia: world.inertia(&arm.joints),
            angles: arm.joints.map(|joint| world.coordinate(joint)),
            speeds: arm.joints.map(|joint| world.speed(joint)),
            bias: arm.joints.map(|joint| world.bias_force(joint)),
        }
    }
}
