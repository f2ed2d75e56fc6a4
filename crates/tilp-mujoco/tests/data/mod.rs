//! Where the tests find LIBERO's data.

use std::path::{Path, PathBuf};

use tilp_mujoco::libero::Task;

/// The folder with one folder per task, or none if it is not there and not required.
pub fn libero() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/libero");
    let folder = std::env::var_os("TILP_LIBERO").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let absent = format!("{} is absent: set TILP_LIBERO to LIBERO's data", folder.display());
    assert!(std::env::var_os("TILP_REQUIRE_LIBERO").is_none_or(|value| value != "1"), "{absent}");
    eprintln!("SKIPPED: {absent}");
    None
}

/// A task out of that folder.
pub fn task(object: &str) -> Option<Task> {
    Some(Task::load(&libero()?.join(object), object).expect("a task in LIBERO's data"))
}
