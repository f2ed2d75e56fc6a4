//! One file per verb.

pub(crate) mod adapter;
pub(crate) mod branch;
mod certificates;
pub(crate) mod channel;
pub(crate) mod completions;
pub(crate) mod dash;
mod engines;
pub(crate) mod enrol;
pub(crate) mod export;
mod health;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod proxy;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scenario;
pub(crate) mod study;
pub(crate) mod testbed;
pub(crate) mod tune;
pub(crate) mod twin;
pub(crate) mod verify;

use std::path::PathBuf;

use tilp::scenario::Cache;

/// The folder for demonstrations: `TILP_CACHE`, else the user's cache folder, else none.
pub fn cache() -> Option<Cache> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = set("TILP_CACHE")
        .map(PathBuf::from)
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| PathBuf::from(cache).join("tilp")))
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache/tilp")));
    folder.map(|folder| Cache::new(&folder))
}
