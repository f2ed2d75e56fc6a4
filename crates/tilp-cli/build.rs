//! Passes the commit and the versions of the numerical dependencies to the program.

use std::path::Path;
use std::process::Command;

/// Dependencies whose version may change a result.
const PARTS: [&str; 6] =
    ["gemm", "rand_chacha", "rapier3d", "rapier3d-mjcf", "safetensors", "parquet"];

fn main() {
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let history = git(&["rev-parse", "--git-path", "HEAD", "--git-path", "logs/HEAD"]);
    // A missing path would count as changed at every build.
    for path in history.iter().flat_map(|text| text.lines()).filter(|path| Path::new(path).exists())
    {
        println!("cargo:rerun-if-changed={path}");
    }
    let commit = git(&["rev-parse", "HEAD"]);
    println!("cargo:rustc-env=TILP_COMMIT={}", commit.as_deref().map_or("unknown", str::trim));
    let lock = std::fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    let versions: Vec<String> =
        PARTS.iter().map(|part| format!("{part}={}", version(&lock, part))).collect();
    println!("cargo:rustc-env=TILP_PARTS={}", versions.join(","));
    // Built with the feature `mujoco`, the program looks for MuJoCo's library there.
    if let Ok(folder) = std::env::var("DEP_TILP_MUJOCO_FOLDER") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok())?
}

fn version<'a>(lock: &'a str, part: &str) -> &'a str {
    let entry = lock.split(&format!("name = \"{part}\"\n")).nth(1).unwrap_or_default();
    entry.split('"').nth(1).unwrap_or("unknown")
}
