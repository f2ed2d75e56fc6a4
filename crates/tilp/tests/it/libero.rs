//! LIBERO's cells behind the seam, on real data; skipped with a line where there are none.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilp::rng::Seed;
use tilp::tasks::libero::{Cell, SUITE, states};
use tilp::tasks::{EpisodeSet, Start, Workcell, demonstrate};
use tilp_mujoco::libero::{OBJECTS, Task};

fn libero() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/libero");
    let folder = std::env::var_os("TILP_LIBERO").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let absent = format!("{} is absent: TILP_LIBERO names LIBERO's data", folder.display());
    let required = std::env::var_os("TILP_REQUIRE_LIBERO").is_some_and(|value| value == "1");
    assert!(!required, "{absent}");
    std::io::stderr().write_all(format!("SKIPPED: {absent}\n").as_bytes()).unwrap();
    None
}

fn cell(share: (usize, usize)) -> Option<Cell> {
    let task = Task::load(&libero()?.join("butter"), "butter").unwrap();
    Some(Cell { task: Arc::new(task), index: 2, yaw: 0.7, share })
}

fn start(set: EpisodeSet, index: u64) -> Start {
    set.episode(Seed::new(5), 0, index)
}

#[test]
fn the_suite_names_the_tasks_of_the_crate_in_its_order() {
    assert_eq!(SUITE.tasks, OBJECTS);
    assert_eq!(SUITE.action(), tilp_mujoco::osc::ACTION);
}

#[test]
fn a_cell_begins_each_episode_in_a_state_of_its_set_and_robots_of_one_task_share_no_demonstration()
{
    let (Some(one), Some(other)) = (cell((0, 2)), cell((1, 2))) else { return };
    for set in EpisodeSet::ALL {
        for index in 0..60 {
            assert!(states(set).contains(&one.state(start(set, index))), "{set:?} {index}");
        }
    }
    let shown = |cell: &Cell| -> Vec<usize> {
        (0..10).map(|index| cell.state(start(EpisodeSet::Demonstration, index))).collect()
    };
    let theirs = shown(&other);
    assert!(shown(&one).iter().all(|state| !theirs.contains(state)));
}

#[test]
fn the_same_actions_from_the_same_state_give_the_same_observations_bit_for_bit() {
    let Some(cell) = cell((0, 1)) else { return };
    let trajectory = |index: u64| {
        let mut robot = cell.reset(start(EpisodeSet::Report, index));
        let mut rows = Vec::new();
        for step in 0..20 {
            robot.observe(&mut rows);
            let push = 0.1 * (step % 7) as f32 - 0.3;
            robot.act(&[push, -push, 0.5 * push, 0.0, push, f32::NAN, -1.0]);
        }
        rows.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    assert_eq!(trajectory(0), trajectory(0));
    assert_ne!(trajectory(0), trajectory(1));
}

#[test]
fn demonstrations_succeed_fill_the_suites_rows_and_do_not_depend_on_threads() {
    let Some(cell) = cell((0, 2)) else { return };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| demonstrate(&cell, 2, 0.2, Seed::new(3)))
    };
    let made = on(1);
    let rows = made.actions.len() / SUITE.action();
    assert!(rows > 100, "{rows} rows");
    assert_eq!(made.observations.len(), rows * SUITE.observation());
    assert!(made.observations.iter().all(|value| value.abs() <= 3.0));
    assert_eq!(made, on(2));
}
