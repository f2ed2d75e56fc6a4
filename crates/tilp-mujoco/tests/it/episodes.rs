//! Tasks and episodes: masses, initial states, copies, what a policy sees.

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, OBJECTS};

use crate::data;

/// Kilograms per cubic metre of every thing in LIBERO's MJCF files.
const DENSITY: f64 = 100.0;

fn bits(episode: &Episode) -> Vec<u64> {
    let world = episode.world();
    world.qpos().iter().chain(world.qvel()).map(|value| value.to_bits()).collect()
}

#[test]
fn every_thing_weighs_what_its_boxes_do_and_the_robot_what_its_file_says() {
    for object in OBJECTS {
        let Some(task) = data::task(object) else { return };
        let world = task.world();
        for (body, name) in world.bodies().filter(|(_, name)| name.ends_with("_1_main")) {
            let volume = |half: [f64; 3]| 8.0 * half.iter().product::<f64>();
            let kg: f64 = world.blocks(body).map(|block| DENSITY * volume(block.half_m)).sum();
            assert!((world.mass_kg(body) - kg).abs() < 1e-9, "{object}: {name}, {kg}");
        }
        assert!((0.005..0.033).contains(&task.object_mass_kg()), "{}", task.object_mass_kg());
        let mass = |name: &str| world.mass_kg(world.body(name).expect("a part of the robot"));
        assert_eq!([mass("robot0_link1"), mass("robot0_link4")], [3.0, 2.0]);
        assert_eq!([mass("robot0_right_hand"), mass("gripper0_leftfinger")], [0.5, 0.1]);
    }
}

#[test]
fn all_initial_states_of_all_tasks_load() {
    for object in OBJECTS {
        let Some(task) = data::task(object) else { return };
        assert_eq!(task.n_states(), 50);
        for state in 0..task.n_states() {
            let episode = Episode::start(&task, state).expect("an initial state");
            assert!(!episode.is_success(), "{object} {state}");
            let seen = episode.observe();
            assert!(seen.state().iter().all(|value| value.is_finite()));
            // The hand starts above the table, its fingers half open, the basket to its left.
            assert!((0.15..0.35).contains(&seen.eef_position_m[2]), "{seen:?}");
            assert!(seen.gripper_m[0] > 0.0 && seen.gripper_m[1] < 0.0, "{seen:?}");
            assert!(seen.basket.position_m[1] > 0.2, "{seen:?}");
        }
        let beyond = Episode::start(&task, 50).expect_err("no such state").to_string();
        assert!(beyond.ends_with("initial state = 50, expected less than 50"), "{beyond}");
    }
}

#[test]
fn the_same_episode_twice_is_the_same_bit_for_bit() {
    let Some(task) = data::task("bbq_sauce") else { return };
    let run = || {
        let mut episode = Episode::start(&task, 3).expect("an initial state");
        let mut seen = Vec::new();
        for _ in 0..60 {
            episode.step(expert(&episode)).expect("the expert's action");
            seen.push(bits(&episode));
        }
        seen
    };
    assert!(run() == run());
}

#[test]
fn a_copy_of_an_episode_does_not_disturb_the_original() {
    let Some(task) = data::task("milk") else { return };
    let mut alone = Episode::start(&task, 2).expect("an initial state");
    let mut copied = alone.clone();
    for step in 0..50 {
        let action = expert(&alone);
        alone.step(action).expect("the expert's action");
        copied.step(action).expect("the expert's action");
        if step % 10 == 0 {
            let mut copy = copied.clone();
            assert!(bits(&copy) == bits(&copied));
            copy.step([1.0, -1.0, -1.0, 0.5, 0.5, 0.5, 1.0]).expect("some action");
            assert!(bits(&copy) != bits(&copied));
        }
    }
    assert!(bits(&alone) == bits(&copied));
}

#[test]
fn an_action_that_is_no_number_is_refused_and_moves_nothing() {
    let Some(task) = data::task("ketchup") else { return };
    let mut episode = Episode::start(&task, 0).expect("an initial state");
    let before = bits(&episode);
    let error = episode.step([0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0]).expect_err("no number");
    assert!(error.to_string().ends_with("action[2] = NaN, expected a finite number"), "{error}");
    assert!(bits(&episode) == before && episode.n_steps() == 0);
}

#[test]
fn a_payload_adds_its_kilograms_to_the_object_and_to_nothing_else() {
    let Some(task) = data::task("butter") else { return };
    let heavy = task.with_extra_mass(2.0).expect("a payload");
    assert!((heavy.object_mass_kg() - task.object_mass_kg() - 2.0).abs() < 1e-12);
    let total = |world: &tilp_mujoco::world::World| -> f64 {
        world.bodies().map(|(body, _)| world.mass_kg(body)).sum()
    };
    assert!((total(heavy.world()) - total(task.world()) - 2.0).abs() < 1e-9);
    let error = task.with_extra_mass(-0.1).expect_err("no payload").to_string();
    assert!(error.ends_with("extra_mass_kg = -0.1, expected zero or more"), "{error}");
}

#[test]
fn a_policy_sees_position_axis_angle_and_gripper_in_this_order() {
    let Some(task) = data::task("butter") else { return };
    let episode = Episode::start(&task, 0).expect("an initial state");
    let seen = episode.observe();
    let [x, y, z, a, b, c, left, right] = seen.state();
    assert_eq!([x, y, z], seen.eef_position_m);
    assert_eq!([left, right], seen.gripper_m);
    // Fingers down is half a turn about a level axis.
    assert!((a.hypot(b).hypot(c) - std::f64::consts::PI).abs() < 0.1, "{a} {b} {c}");
}
