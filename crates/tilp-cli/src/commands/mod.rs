//! One file per verb.

pub mod adapter;
pub mod branch;
mod certificates;
pub mod channel;
pub mod completions;
pub mod dash;
mod engines;
pub mod enrol;
mod health;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod proxy;
pub mod report;
pub mod run;
pub mod scenario;
pub mod study;
pub mod testbed;
pub mod tune;
pub mod twin;
pub mod verify;

use std::path::PathBuf;

use tilp::scenario::Cache;

/// The folder for demonstrations: `TILP_CACHE`, else the user's cache folder, else none.
fn cache() -> Option<Cache> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("TILP_CACHE")
        .map(PathBuf::from)
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("tilp")))
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache/tilp")));
    folder.map(|folder| Cache::new(&folder))
}
