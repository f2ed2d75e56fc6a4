//! Control steps per second on one core, while the expert works.
//!
//! `cargo run --release -p tilp-mujoco --features mujoco --example speed -- FOLDER [EPISODES]`,
//! where FOLDER has one folder per task of LIBERO's suite libero_object.

use std::path::Path;
use std::time::Instant;

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, OBJECTS, Task};

/// An episode that is not done by now counts as it is.
const HORIZON: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected the folder with LIBERO's tasks")?;
    let n_episodes: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    println!("{:20} {:>12} {:>10}", "task", "steps", "steps/s");
    let (mut all_steps, mut all_seconds) = (0, 0.0);
    for object in OBJECTS {
        let task = Task::load(&Path::new(&folder).join(object), object)?;
        let (steps, seconds) = time(&task, n_episodes)?;
        println!("{object:20} {steps:12} {:10.0}", steps as f64 / seconds);
        all_steps += steps;
        all_seconds += seconds;
    }
    println!("{:20} {all_steps:12} {:10.0}", "all", all_steps as f64 / all_seconds);
    Ok(())
}

/// Control steps and seconds of some episodes, the loading apart.
fn time(task: &Task, n_episodes: usize) -> Result<(usize, f64), tilp_mujoco::Error> {
    let start = Instant::now();
    let mut steps = 0;
    for state in 0..n_episodes {
        let mut episode = Episode::start(task, state)?;
        while !episode.is_success() && episode.n_steps() < HORIZON {
            episode.step(expert(&episode))?;
        }
        steps += episode.n_steps();
    }
    Ok((steps, start.elapsed().as_secs_f64()))
}
