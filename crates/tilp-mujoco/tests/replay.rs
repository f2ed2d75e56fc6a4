//! Recorded episodes of the live Python environment, replayed.
#![cfg(feature = "mujoco")]

mod data;

use serde::Deserialize;
use tilp_mujoco::libero::{Episode, OBJECTS};

#[derive(Deserialize)]
struct Recording {
    actions: Vec<[f64; 7]>,
    qpos: Vec<Vec<f64>>,
    succ: Vec<bool>,
    goal_ori: [f64; 9],
}

fn recording(object: &str, index: usize) -> Option<Recording> {
    let path = data::libero()?.join(object).join(format!("replay{index}.json"));
    let text = std::fs::read_to_string(&path).expect("a recording");
    Some(serde_json::from_str(&text).expect("a recording in JSON"))
}

#[test]
fn recorded_episodes_replay_with_the_same_joints_and_the_same_success() {
    for object in OBJECTS {
        for index in 0..2 {
            let Some(recording) = recording(object, index) else { return };
            let task = data::task(object).expect("the data is there");
            let mut episode = Episode::start(&task, index).expect("an initial state");
            let mut worst: f64 = 0.0;
            let mut at = 0;
            for (step, action) in recording.actions.iter().enumerate() {
                episode.step(*action).expect("a recorded action");
                let now = episode.world().qpos().iter().zip(&recording.qpos[step]);
                let error = now.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                if error > worst {
                    worst = error;
                    at = step
                }
                assert_eq!(episode.is_success(), recording.succ[step], "{object} {index} {step}");
            }
            eprintln!(
                "{} {object} {index}: {} steps, {worst:.1e} at {at}",
                episode.world().maxuse(),
                recording.actions.len()
            );
        }
    }
}
