//! Sets the search path of MuJoCo for this crate's tests and examples, if the feature is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by crates/tilp-mujoco/build.rs, and only with the feature.
    if let Ok(folder) = std::env::var("DEP_TILP_MUJOCO_FOLDER") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
