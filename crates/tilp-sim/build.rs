//! Lets this crate's tests and examples find MuJoCo at run time, where the feature is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by crates/tilp-mujoco/build.rs, and only with the feature.
    if let Ok(folder) = std::env::var("DEP_TILP_MUJOCO_FOLDER") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
