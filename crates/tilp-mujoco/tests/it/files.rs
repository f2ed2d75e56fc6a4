//! Files that are not what they should be: one clear line each, and no panic.

use std::fs;
use std::path::Path;

use tilp_mujoco::libero::Task;
use tilp_mujoco::world::World;

use crate::data::{self, Scratch};

fn complaint(folder: &Path) -> String {
    let error = Task::load(folder, "butter").expect_err("a bad file").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn a_world_that_is_missing_no_xml_or_too_large_is_refused() {
    let scratch = Scratch::new("worlds");
    let file = scratch.0.join("phys.xml");
    let missing = complaint(&scratch.0);
    assert!(missing.contains("phys.xml") && missing.contains("No such file"), "{missing}");
    for text in ["not a world", "<mujoco><worldbody>", "<html/>", ""] {
        fs::write(&file, text).expect("a scratch file");
        let refused = complaint(&scratch.0);
        assert!(refused.contains("phys.xml: not a world for MuJoCo: "), "{refused}");
    }
    fs::write(&file, vec![b' '; (4 << 20) + 1]).expect("a scratch file");
    let large = complaint(&scratch.0);
    assert!(large.ends_with("4194305 bytes, expected at most 4194304"), "{large}");
}

#[test]
fn a_world_without_the_robot_or_the_object_is_refused_by_name() {
    let scratch = Scratch::new("bare");
    let world =
        "<mujoco><worldbody><body><freejoint/><geom size=\"1\"/></body></worldbody></mujoco>";
    fs::write(scratch.0.join("phys.xml"), world).expect("a scratch file");
    let world = World::from_file(&scratch.0.join("phys.xml")).expect("a world of MuJoCo's");
    let error = world.body("butter_1_main").expect_err("no butter").to_string();
    assert!(error.ends_with("phys.xml: no body named butter_1_main"), "{error}");
    let Some(folder) = data::libero() else { return };
    let error = Task::load(&folder.join("butter"), "marmalade").expect_err("no such object");
    assert!(error.to_string().ends_with("no body named marmalade_1_main"), "{error}");
}

#[test]
fn initial_states_cut_short_misshapen_or_missing_are_refused() {
    let Some(folder) = data::libero() else { return };
    let scratch = Scratch::new("states");
    let text = fs::read_to_string(folder.join("butter/phys.xml")).expect("a world");
    let meshes = format!("file=\"{}/", folder.join("meshes").display());
    let text = text.replace("file=\"../meshes/", &meshes);
    fs::write(scratch.0.join("phys.xml"), text).expect("a scratch file");
    let missing = complaint(&scratch.0);
    assert!(missing.contains("init_states.npy") && missing.contains("No such file"), "{missing}");
    let states = fs::read(folder.join("butter/init_states.npy")).expect("initial states");
    let wrong = |bytes: &[u8]| {
        fs::write(scratch.0.join("init_states.npy"), bytes).expect("a scratch file");
        complaint(&scratch.0)
    };
    let cut = wrong(&states[..states.len() - 8]);
    assert!(cut.ends_with("data bytes = 43992, expected 50 x 110 x 8"), "{cut}");
    assert!(wrong(&states[..5]).contains("a NumPy array"));
    let mut misshapen = states.clone();
    let at = states.windows(9).position(|nine| nine == b"(50, 110)").expect("the shape");
    misshapen[at..at + 9].copy_from_slice(b"(110, 50)");
    assert!(wrong(&misshapen).ends_with("'shape': (rows, 110)"));
}
