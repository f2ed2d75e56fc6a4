//! Tells the program its commit and the versions of the real parts it is built on.

use std::process::Command;

/// The parts whose version a result may depend on.
const PARTS: [&str; 6] =
    ["gemm", "rand_chacha", "rapier3d", "rapier3d-mjcf", "safetensors", "parquet"];

fn main() {
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().ok();
    let commit = commit.filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo:rustc-env=TILP_COMMIT={}", commit.as_deref().map_or("unknown", str::trim));
    let lock = std::fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    let versions: Vec<String> =
        PARTS.iter().map(|part| format!("{part}={}", version(&lock, part))).collect();
    println!("cargo:rustc-env=TILP_PARTS={}", versions.join(","));
}

fn version<'a>(lock: &'a str, part: &str) -> &'a str {
    let entry = lock.split(&format!("name = \"{part}\"\n")).nth(1).unwrap_or_default();
    entry.split('"').nth(1).unwrap_or("unknown")
}
