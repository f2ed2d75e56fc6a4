//! Folders of one test, gone when it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;

use crate::succeed;

/// Arguments of a run of a third of a second: `tiny` with fewer rounds, samples and steps; actor and critic
/// have their say from the fifth round on.
pub const SHORT: [&str; 14] = [
    "run",
    "tiny",
    "--rounds",
    "12",
    "--set",
    "evaluation.measure_every=6",
    "--set",
    "evaluation.final_episodes=1",
    "--set",
    "tasks.episode_steps=15",
    "--set",
    "learning.batch=16",
    "--set",
    "methods.tilp.warm_up=4",
];

/// An empty folder.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A folder of this name, for this process alone.
    pub fn new(name: &str) -> Self {
        let path = parent().join(format!("{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the target folder can be written");
        Self(path)
    }

    /// A folder that holds the finished run `done`.
    pub fn with_run(name: &str) -> Self {
        let scratch = Self::new(name);
        copy(finished(), &scratch.path().join("done"));
        scratch
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).expect("a scratch file can be written");
    }

    /// Every path below the folder, sorted.
    pub fn listing(&self) -> Vec<PathBuf> {
        let mut paths = below(&self.0);
        paths.sort();
        paths
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn parent() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli")
}

/// A finished short run of `deficit`, seed 0, made once for all tests.
fn finished() -> &'static Path {
    static FINISHED: OnceLock<PathBuf> = OnceLock::new();
    FINISHED.get_or_init(|| {
        let name = &format!("finished-{}", process::id());
        let path = parent().join(name);
        fs::create_dir_all(parent()).expect("the target folder can be written");
        let _ = fs::remove_dir_all(&path);
        succeed(
            &parent(),
            &[&SHORT[..], &["--quiet", "--method", "deficit", "--out", name]].concat(),
        );
        path
    })
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a scratch folder can be listed");
    let mut paths = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            paths.extend(below(&path));
        }
        paths.push(path);
    }
    paths
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a scratch folder can be made");
    for path in fs::read_dir(from).expect("a run folder can be listed") {
        let path = path.expect("an entry").path();
        let target = to.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a file can be copied");
        }
    }
}
