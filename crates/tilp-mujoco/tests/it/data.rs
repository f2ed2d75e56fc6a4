//! Where the tests find LIBERO's data.

use std::io::Write;
use std::path::{Path, PathBuf};

use tilp_mujoco::libero::Task;

/// The folder with one folder per task; none if it is absent and not required.
///
/// `TILP_LIBERO` names it, else it is `shared/libero` beside the checkout. With
/// `TILP_REQUIRE_LIBERO=1` a test without it fails.
pub fn libero() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/libero");
    let folder = std::env::var_os("TILP_LIBERO").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let absent = format!("{} is absent: TILP_LIBERO names LIBERO's data", folder.display());
    assert!(std::env::var_os("TILP_REQUIRE_LIBERO").is_none_or(|value| value != "1"), "{absent}");
    say(&format!("SKIPPED: {absent}"));
    None
}

/// A task out of that folder.
pub fn task(object: &str) -> Option<Task> {
    Some(Task::load(&libero()?.join(object), object).expect("a task in LIBERO's data"))
}

/// Prints a line that is seen although the test passes: the harness hides `eprintln` then.
pub fn say(line: &str) {
    // In one piece, so that lines of other threads do not come between.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).expect("standard error");
}

/// A fresh folder that is gone after the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tilp-mujoco-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for scratch files");
        Self(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
