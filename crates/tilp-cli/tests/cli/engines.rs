//! Robots in MuJoCo, and the program without it.

#[cfg(not(feature = "mujoco"))]
mod without {
    use crate::Scratch;
    use crate::bad_input::{assert_names, refused};

    #[test]
    fn a_program_without_mujoco_says_what_it_takes() {
        let scratch = Scratch::new("no-mujoco");
        let run = ["run", "tiny", "--quiet", "--set", "tasks.engine=mujoco"];
        let said = refused(&scratch, &run);
        assert_names(&said, &["tasks.engine = mujoco", "expected rapier", "`--features mujoco`"]);
        let said = refused(&scratch, &["scenario", "engines"]);
        assert_names(&said, &["MuJoCo", "expected", "`--features mujoco`"]);
        let said = refused(&scratch, &["scenario", "draw", "--out", "x.svg", "--engine", "mujoco"]);
        assert_names(&said, &["--engine", "mujoco", "`--features mujoco`"]);
    }
}

#[cfg(feature = "mujoco")]
mod with {
    use std::fs;
    use std::process::Stdio;
    use std::thread::sleep;
    use std::time::Duration;

    use serde_json::Value;
    use tilp::record::fingerprint;

    use crate::scratch::SHORT;
    use crate::{Scratch, run, succeed, text, tilp};

    const MUJOCO: [&str; 3] = ["--quiet", "--set", "tasks.engine=mujoco"];

    #[test]
    fn a_run_in_mujoco_gives_the_same_bytes_for_any_number_of_threads_and_after_a_kill() {
        let scratch = Scratch::new("mujoco-repeat");
        let start = |out: &str, threads: &str| {
            let mut command = tilp(scratch.path());
            command
                .args([&SHORT[..], &MUJOCO, &["--checkpoint-every", "3", "--out", out]].concat());
            command.env("RAYON_NUM_THREADS", threads).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        let print = |out: &str| fingerprint(&scratch.path().join(out)).unwrap();
        for threads in ["1", "2"] {
            assert!(start(threads, threads).wait().unwrap().success());
        }
        assert_eq!(print("1"), print("2"));
        let mut killed = start("killed", "1");
        let state = scratch.path().join("killed/checkpoint/state.safetensors");
        while !state.exists() && killed.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        succeed(scratch.path(), &["run", "--resume", "killed", "--quiet"]);
        assert_eq!(print("killed"), print("1"));
    }

    #[test]
    fn a_run_in_mujoco_says_so_in_its_manifest() {
        let scratch = Scratch::new("mujoco-manifest");
        succeed(scratch.path(), &[&SHORT[..], &MUJOCO, &["--out", "done"]].concat());
        let text = fs::read_to_string(scratch.path().join("done/manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(manifest["engine"], "mujoco");
        assert_eq!(manifest["parts"]["mujoco"], "3.8.0");
        assert!(manifest["parts"]["rapier3d"].is_string());
    }

    #[test]
    fn the_engines_are_compared_task_by_task() {
        let scratch = Scratch::new("engines");
        let few = ["scenario", "engines", "--cells", "3", "--episodes", "1", "--format", "json"];
        let rows: Value = serde_json::from_str(&succeed(scratch.path(), &few)).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 8);
        assert!(rows[0]["expert"]["mujoco"].is_number() && rows[0]["hand"]["end_m"].is_number());
    }

    #[test]
    fn an_expert_without_time_fails_the_comparison_of_engines() {
        let scratch = Scratch::new("engines-fail");
        let set = ["--set", "tasks.episode_steps=3", "--cells", "1", "--episodes", "1"];
        let output = run(scratch.path(), &[&["scenario", "engines"], &set[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(
            said.contains("expert in rapier, all tasks") && said.lines().count() == 1,
            "{said}"
        );
    }

    #[test]
    fn the_expert_can_be_drawn_at_work_in_mujoco() {
        let scratch = Scratch::new("mujoco-draw");
        succeed(scratch.path(), &["scenario", "draw", "--out", "a.svg", "--engine", "mujoco"]);
        assert!(fs::read_to_string(scratch.path().join("a.svg")).unwrap().contains("</svg>"));
    }
}
