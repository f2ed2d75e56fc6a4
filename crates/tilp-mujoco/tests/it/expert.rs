//! How often the scripted expert succeeds.

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, OBJECTS, Task};

use crate::data;

/// Control steps after which an episode has failed.
const HORIZON: usize = 300;

fn succeeds(task: &Task, state: usize) -> bool {
    let mut episode = Episode::start(task, state).expect("an initial state");
    (0..HORIZON).any(|_| {
        episode.step(expert(&episode)).expect("the expert's action");
        episode.is_success()
    })
}

/// Successes over all ten tasks, with the table.
fn sweep(states: std::ops::Range<usize>) -> Option<usize> {
    let mut all = 0;
    for object in OBJECTS {
        let task = data::task(object)?;
        let done = states.clone().filter(|&state| succeeds(&task, state)).count();
        data::say(&format!("expert {object:20} {done:2} of {}", states.len()));
        all += done;
    }
    Some(all)
}

#[test]
fn the_expert_succeeds_on_every_task() {
    let Some(done) = sweep(0..1) else { return };
    assert_eq!(done, OBJECTS.len());
}

#[test]
#[ignore = "two hundred episodes take more than a minute"]
fn the_expert_succeeds_nine_times_in_ten_over_twenty_initial_states() {
    let Some(done) = sweep(0..20) else { return };
    assert!(done >= 180, "{done} of 200");
}

#[test]
fn the_expert_asks_the_state_and_nothing_else() {
    let Some(task) = data::task("cream_cheese") else { return };
    let mut episode = Episode::start(&task, 0).expect("an initial state");
    for _ in 0..10 {
        let action = expert(&episode);
        assert_eq!(action, expert(&episode.clone()));
        episode.step(action).expect("the expert's action");
    }
}

#[test]
fn ten_kilograms_more_are_too_heavy_to_lift() {
    let Some(task) = data::task("milk") else { return };
    assert!(!succeeds(&task.with_extra_mass(10.0).expect("a payload"), 0));
}
