//! LIBERO's scenario: what a program without MuJoCo says, and with it whole runs on real data.
//!
//! With the feature the data are looked for in `TILP_LIBERO`, else in `shared/libero` beside the
//! checkout; a test without them says SKIPPED, with `TILP_REQUIRE_LIBERO=1` it fails.

use crate::bad_input::{assert_names, refused};
use crate::{Scratch, succeed};

#[test]
fn the_scenario_is_listed_and_shown_whatever_the_program_is_built_with() {
    let scratch = Scratch::new("libero-list");
    assert!(succeed(scratch.path(), &["scenario", "list"]).contains("libero-object"));
    let shown = succeed(scratch.path(), &["scenario", "show", "libero-object"]);
    assert!(shown.contains("suite = \"libero-object\"") && shown.contains("assets = \""));
}

#[cfg(not(feature = "mujoco"))]
#[test]
fn a_program_without_mujoco_says_what_it_must_be_built_with() {
    let scratch = Scratch::new("libero-without");
    for verb in [["run", "libero-object"], ["policy", "pretrain"]] {
        let more = ["libero-object", "--out", "never"];
        let arguments: Vec<&str> = if verb[0] == "run" {
            verb.into_iter().chain(["--quiet"]).collect()
        } else {
            verb.into_iter().chain(more).collect()
        };
        let said = refused(&scratch, &arguments);
        assert_names(&said, &["tasks.suite = libero-object", "--features mujoco"]);
    }
}

#[cfg(feature = "mujoco")]
mod with_data {
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::{run, text, tilp};

    /// The folder of LIBERO's data; none if it is absent and not required.
    fn libero() -> Option<PathBuf> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/libero");
        let folder = std::env::var_os("TILP_LIBERO").map_or(beside, PathBuf::from);
        if folder.is_dir() {
            return Some(folder);
        }
        let absent = format!("{} is absent: TILP_LIBERO names LIBERO's data", folder.display());
        let required = std::env::var_os("TILP_REQUIRE_LIBERO").is_some_and(|value| value == "1");
        assert!(!required, "{absent}");
        let line = format!("SKIPPED: {absent}\n");
        std::io::stderr().write_all(line.as_bytes()).expect("standard error");
        None
    }

    /// A run that takes seconds: two terminals, short episodes, a few rounds.
    fn short(libero: &Path) -> Vec<String> {
        let data = format!("tasks.libero.data={}", libero.display());
        let mut arguments: Vec<String> =
            ["run", "libero-object", "--method", "random", "--rounds", "4", "--quiet"]
                .map(str::to_owned)
                .to_vec();
        for set in [
            data.as_str(),
            "tasks.libero.assets=",
            "cell.n_terminals=2",
            "tasks.demonstrations=1",
            "tasks.episode_steps=12",
            "evaluation.calibrate_every=2",
            "evaluation.measure_every=2",
            "evaluation.calibration_episodes=1",
            "evaluation.report_episodes=1",
            "evaluation.final_episodes=1",
        ] {
            arguments.extend(["--set".to_owned(), set.to_owned()]);
        }
        arguments
    }

    fn go(scratch: &Scratch, arguments: &[String], threads: &str) {
        let output =
            tilp(scratch.path()).args(arguments).env("RAYON_NUM_THREADS", threads).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    fn assert_same(scratch: &Scratch, one: &str, other: &str) {
        for file in ["rounds.csv", "summary.json", "model.safetensors", "scenario.toml"] {
            let read = |folder: &str| fs::read(scratch.path().join(folder).join(file)).unwrap();
            assert!(read(one) == read(other), "{file} of {one} and {other}");
        }
    }

    #[test]
    fn a_run_on_real_tasks_is_the_same_for_any_threads_and_after_a_resume() {
        let Some(libero) = libero() else { return };
        let scratch = Scratch::new("libero-run");
        let with_out = |out: &str| {
            let mut arguments = short(&libero);
            arguments.extend(["--out".to_owned(), out.to_owned()]);
            arguments
        };
        go(&scratch, &with_out("one"), "1");
        go(&scratch, &with_out("two"), "2");
        assert_same(&scratch, "one", "two");
        let manifest = fs::read_to_string(scratch.path().join("one/manifest.json")).unwrap();
        for word in ["\"environment\"", "\"mujoco\":\"3.8.0\"", "\"libero_assets\""] {
            assert!(manifest.contains(word), "{word} in {manifest}");
        }
        // Stopped in the first round, then resumed.
        let child = tilp(scratch.path())
            .args(with_out("three").iter().filter(|word| *word != "--quiet"))
            .stderr(std::process::Stdio::piped())
            .spawn();
        let mut child = child.expect("the program starts");
        while !scratch.path().join("three/manifest.json").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        if !scratch.path().join("three/summary.json").exists() {
            let resume = ["run", "--resume", "three", "--quiet"].map(str::to_owned);
            go(&scratch, &resume, "1");
        }
        assert_same(&scratch, "one", "three");
    }

    #[test]
    fn data_that_are_missing_or_others_than_expected_are_named_in_one_line() {
        let scratch = Scratch::new("libero-missing");
        let arguments = |set: &'static str| ["run", "libero-object", "--quiet", "--set", set];
        let said = refused(&scratch, &arguments("tasks.libero.data=nowhere"));
        assert_names(&said, &["tasks.libero.data = ", "nowhere", "tools/libero/export.py"]);
        let output = tilp(scratch.path())
            .args(["run", "libero-object", "--quiet"])
            .env("TILP_LIBERO", "no-such-folder")
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        assert_names(&text(&output.stderr), &["no-such-folder", "TILP_LIBERO"]);
        let Some(libero) = libero() else { return };
        let data = format!("tasks.libero.data={}", libero.display());
        let others = ["--set", &data, "--set", "tasks.libero.assets=0000"];
        let all: Vec<&str> =
            ["run", "libero-object", "--quiet"].into_iter().chain(others).collect();
        let output = run(scratch.path(), &all);
        assert_eq!(output.status.code(), Some(2));
        assert_names(&text(&output.stderr), &["tasks.libero.assets = 0000", "expected"]);
    }
}
