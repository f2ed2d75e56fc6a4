//! Sets the search path of MuJoCo for this crate's tests and examples, with an error if it is missing.

use std::env;
use std::path::Path;

/// The folder that mujoco-rs links from; `.cargo/config.toml` gives its default.
const LINK: &str = "MUJOCO_DYNAMIC_LINK_DIR";
/// Where `tools/mujoco/setup` puts the library.
const SETUP: &str = "../../tools/mujoco/lib";
const LIBRARY: &str = "libmujoco.so.3.8.0";

fn main() {
    println!("cargo::rerun-if-env-changed={LINK}");
    if env::var_os("CARGO_FEATURE_MUJOCO").is_none() {
        return;
    }
    // Asked now and not compiled in: checkouts that share a target folder share this program.
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let setup = Path::new(&manifest).join(SETUP);
    let candidates = [env::var(LINK).unwrap_or_default().into(), setup];
    for folder in &candidates {
        println!("cargo::rerun-if-changed={}", folder.join(LIBRARY).display());
    }
    let found = candidates.iter().find(|folder| folder.join(LIBRARY).is_file());
    match found.map_or(Err(std::io::ErrorKind::NotFound.into()), |folder| folder.canonicalize()) {
        Ok(folder) => announce(&folder),
        Err(_) => println!("cargo::error={LIBRARY} is missing: run tools/mujoco/setup once"),
    }
}

fn announce(folder: &Path) {
    let folder = folder.display();
    println!("cargo::rustc-link-search=native={folder}");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    // A binary of another crate needs the same argument: it reads DEP_TILP_MUJOCO_FOLDER.
    println!("cargo::metadata=folder={folder}");
}
