//! Points at which a test can hold a process, so that a fault strikes in a known phase.
//!
//! With `TILP_HOLD=FOLDER`, a process that comes to a point and finds the file `FOLDER/POINT`
//! renames it to `FOLDER/POINT.held` and waits there until that file is gone. Without the
//! variable nothing happens.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// No process is held for longer.
const LONGEST: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(2);

fn folder() -> Option<&'static PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os("TILP_HOLD").map(PathBuf::from)).as_ref()
}

/// Waits here if a test asks for it.
pub(crate) fn hold(point: impl FnOnce() -> String) {
    let Some(folder) = folder() else { return };
    let point = point();
    let held = folder.join(format!("{point}.held"));
    if std::fs::rename(folder.join(&point), &held).is_err() {
        return;
    }
    let until = Instant::now() + LONGEST;
    while held.exists() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}
