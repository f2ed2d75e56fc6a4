//! Control steps per second on one core, while the expert works: by the wall clock, and per second
//! that the core really gave, which differs on a busy machine.
//!
//! `cargo run --release -p tilp-mujoco --features mujoco --example speed -- FOLDER [EPISODES]`,
//! where FOLDER has one folder per task of LIBERO's suite libero_object.

use std::path::Path;
use std::time::Instant;

use tilp_mujoco::expert::expert;
use tilp_mujoco::libero::{Episode, OBJECTS, Task};

/// An episode that is unfinished after this number of steps is counted as it is.
const HORIZON: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected the folder with LIBERO's tasks")?;
    let n_episodes: usize = arguments.next().map_or(Ok(2), |text| text.parse())?;
    println!("{:20} {:>8} {:>10} {:>12}", "task", "steps", "steps/s", "steps/CPU s");
    let mut all = Work::default();
    for object in OBJECTS {
        let task = Task::load(&Path::new(&folder).join(object), object)?;
        let work = work(&task, n_episodes)?;
        work.print(object);
        all.steps += work.steps;
        all.wall_s += work.wall_s;
        all.cpu_s += work.cpu_s;
    }
    all.print("all");
    Ok(())
}

/// Control steps and the time they took.
#[derive(Default)]
struct Work {
    steps: usize,
    wall_s: f64,
    cpu_s: f64,
}

impl Work {
    fn print(&self, name: &str) {
        let steps = self.steps as f64;
        let [wall, cpu] = [self.wall_s, self.cpu_s].map(|seconds| steps / seconds);
        println!("{name:20} {:8} {wall:10.0} {cpu:12.0}", self.steps);
    }
}

/// Some episodes, the loading apart.
fn work(task: &Task, n_episodes: usize) -> Result<Work, Box<dyn std::error::Error>> {
    let (start, cpu_start_s) = (Instant::now(), cpu_s()?);
    let mut steps = 0;
    for state in 0..n_episodes {
        let mut episode = Episode::start(task, state)?;
        while !episode.is_success() && episode.n_steps() < HORIZON {
            episode.step(expert(&episode))?;
        }
        steps += episode.n_steps();
    }
    Ok(Work { steps, wall_s: start.elapsed().as_secs_f64(), cpu_s: cpu_s()? - cpu_start_s })
}

/// Seconds that this thread has spent on a core: the first number of the file, in nanoseconds.
fn cpu_s() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(nanoseconds * 1e-9)
}
