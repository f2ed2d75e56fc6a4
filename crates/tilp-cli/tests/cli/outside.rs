//! Methods that are programs of their own, as their authors meet them.

use std::fs;
use std::path::Path;

use tilp::record::RunFolder;

use crate::scratch::{SHORT, Scratch};
use crate::{run, succeed, text};

/// A file of the how-to page, which must work literally: the first Python block.
fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/howto/outside-program.md")).unwrap();
    let block = page.split("```python\n").nth(1).expect("a Python block");
    let block = block.split("   ```").next().unwrap();
    let lines = block.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_program_of_the_how_to_page_stands_in_a_table_beside_the_others() {
    let scratch = Scratch::new("outside-how-to");
    scratch.put("best.py", example());
    succeed(
        scratch.path(),
        &[&SHORT[..], &["--quiet", "--method", "exec:python3 best.py"]].concat(),
    );
    let manifest = scratch.path().join("runs/tiny-exec_python3_best.py-0/manifest.json");
    let manifest = fs::read_to_string(manifest).unwrap();
    assert!(manifest.contains("\"name\":\"best-three\""), "{manifest}");
    let mut study = vec!["compare"];
    study.extend(&SHORT[1..]);
    study.extend(["--quiet", "--seeds", "0..2", "--methods", "exec:python3 best.py,random"]);
    let table = succeed(scratch.path(), &study);
    assert!(table.contains("exec:python3 best.py"), "{table}");
    let folder = scratch.path().join("studies/compare-tiny/runs/tiny/exec_python3_best.py-1");
    assert!(folder.join("summary.json").exists());
}

/// A program that answers `setup` as it should and then does this.
fn program(then: &str) -> String {
    format!(
        "import json, sys, time\n\
         say = lambda reply: print(reply, flush=True)\n\
         setup = json.loads(sys.stdin.readline())\n\
         say(json.dumps({{'type': 'method', 'version': 1, 'name': 'x', 'timeout_s': 5}}))\n\
         seen = json.loads(sys.stdin.readline())['observation']\n\
         idle = [{{'scheduled': False}} for _ in seen['terminals']]\n\
         {then}\n"
    )
}

#[test]
fn a_program_that_fails_ends_the_run_with_its_reason() {
    let scratch = Scratch::new("outside-failures");
    for (name, program, expected) in [
        ("crash", program("sys.exit('no idea')"), "exit status: 1: no idea"),
        ("raise", program("1 / 0"), "ZeroDivisionError: division by zero"),
        ("text", program("say('hello')"), "no decision: line: expected value"),
        ("list", program("say('[1, 2]')"), "no decision"),
        ("type", program("say('{\"type\": \"learned\"}')"), "expected \"decision\""),
        ("short", program("say(json.dumps({'type': 'decision', 'terminals': []}))"), "0 terminals"),
        (
            "nan",
            program(
                "idle[0] = {'scheduled': True, 'cut': 2, 'power_w': 1, 'bandwidth_hz': float('nan')}\n\
                 say(json.dumps({'type': 'decision', 'terminals': idle}))",
            ),
            "NaN and Infinity are no JSON",
        ),
        (
            "refuse",
            program("say(json.dumps({'type': 'error', 'error': 'too many\\nterminals'}))"),
            "with an error: too many terminals",
        ),
        (
            "version",
            "print('{\"type\": \"method\", \"version\": 9, \"name\": \"x\"}')".into(),
            "version = 9",
        ),
        ("silent", "".into(), "ended instead of answering `setup`: exit status: 0"),
        (
            "deaf",
            program(
                "say(json.dumps({'type': 'decision', 'terminals': idle}))\n\
                 sys.stdin.readline()\nsys.exit('bad outcome')",
            ),
            "round 1: the method failed: python3 ended instead of answering `outcome`",
        ),
    ] {
        scratch.put(&format!("{name}.py"), program);
        let method = format!("exec:python3 {name}.py");
        let output = run(scratch.path(), &[&SHORT[..], &["--quiet", "--method", &method]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
    }
}

#[test]
fn a_program_that_does_not_answer_in_its_time_is_given_up() {
    let scratch = Scratch::new("outside-timeout");
    let slow = program("time.sleep(60)").replace("'timeout_s': 5", "'timeout_s': 0.2");
    scratch.put("slow.py", slow);
    let arguments = [&SHORT[..], &["--quiet", "--method", "exec:python3 slow.py"]].concat();
    let output = run(scratch.path(), &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no answer to `observe` within 0.2 s"), "{said}");
}

#[test]
fn a_program_that_is_not_there_is_bad_input() {
    let scratch = Scratch::new("outside-absent");
    for (method, expected) in [
        ("exec:./nowhere", "./nowhere cannot be started"),
        ("exec:", "expected exec:PROGRAM"),
        ("exec:'a", "expected exec:PROGRAM"),
    ] {
        let output = run(scratch.path(), &["run", "tiny", "--quiet", "--method", method]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
    assert!(scratch.listing().is_empty(), "{:?}", scratch.listing());
}

#[test]
fn a_program_that_fails_does_not_stop_a_study() {
    let scratch = Scratch::new("outside-study");
    scratch.put("crash.py", program("sys.exit('no idea')"));
    let mut study = vec!["compare"];
    study.extend(&SHORT[1..]);
    study.extend(["--quiet", "--seeds", "0", "--methods", "exec:python3 crash.py,random"]);
    let output = run(scratch.path(), &study);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("exit status: 1: no idea"), "{printed}");
    let runs = scratch.path().join("studies/compare-tiny/runs/tiny");
    assert!(runs.join("random-0/summary.json").exists());
    assert!(runs.join("exec_python3_crash.py-0.failed.json").exists());
    // The report needs no program.
    fs::remove_file(scratch.path().join("crash.py")).unwrap();
    succeed(scratch.path(), &["report", "studies/compare-tiny"]);
}

/// Bytes of the files that hold decisions and what came of them.
fn results(folder: &Path) -> Vec<Vec<u8>> {
    let files = ["rounds.csv", "terminals.parquet", "model.safetensors", "summary.json"];
    files.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect()
}

#[test]
fn tilp_asked_as_a_program_outside_is_tilp() {
    let scratch = Scratch::new("outside-tilp");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "inside"]].concat());
    let values: Vec<&str> = SHORT[4..].to_vec();
    let serve = [
        vec![env!("CARGO_BIN_EXE_tilp"), "plan", "serve", "tiny", "--state", "planner"],
        vec!["--set", "rounds=12"],
        values,
    ];
    let method = format!("exec:{}", serve.concat().join(" "));
    succeed(
        scratch.path(),
        &[&SHORT[..], &["--quiet", "--out", "outside", "--method", &method]].concat(),
    );
    let [inside, outside] = ["inside", "outside"].map(|name| scratch.path().join(name));
    assert_eq!(results(&inside), results(&outside));
    // `tilp twin` shows it again: the declaration is in the manifest.
    assert!(RunFolder::open(&outside).unwrap().read_manifest().unwrap()["declared"].is_object());
    succeed(scratch.path(), &["twin", "outside"]);
}
