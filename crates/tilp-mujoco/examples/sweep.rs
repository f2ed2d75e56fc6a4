//! How often the expert succeeds, task by task.
//!
//! `cargo run --release -p tilp-mujoco --features mujoco --example sweep -- FOLDER [EPISODES [KG]]`,
//! where FOLDER has one folder per task of LIBERO's suite libero_object and KG is a payload.

use std::path::Path;

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, OBJECTS, Task};

/// An episode that is not done by now has failed.
const HORIZON: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected the folder with LIBERO's tasks")?;
    let n_episodes: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let extra_mass_kg: f64 = arguments.next().map_or(Ok(0.0), |text| text.parse())?;
    println!("{:20} {:>10} {:>14}  failed", "task", "successes", "median steps");
    for object in OBJECTS {
        let task = Task::load(&Path::new(&folder).join(object), object)?;
        let task = task.with_extra_mass(extra_mass_kg)?;
        let mut steps = Vec::new();
        let mut failed = Vec::new();
        for state in 0..n_episodes {
            match attempt(&task, state)? {
                Some(n_steps) => steps.push(n_steps),
                None => failed.push(state),
            }
        }
        steps.sort_unstable();
        let median = steps.get(steps.len() / 2).copied().unwrap_or(HORIZON);
        println!("{object:20} {:>7}/{n_episodes} {median:>14}  {failed:?}", steps.len());
    }
    Ok(())
}

/// Control steps until success.
fn attempt(task: &Task, state: usize) -> Result<Option<usize>, tilp_mujoco::Error> {
    let mut episode = Episode::start(task, state)?;
    while episode.n_steps() < HORIZON {
        episode.step(expert(&episode))?;
        if episode.is_success() {
            return Ok(Some(episode.n_steps()));
        }
    }
    Ok(None)
}
