//! `tilp plan`: an observation in, a plan with reasons out.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::scratch::SHORT;
use crate::{Scratch, succeed, text, tilp};

fn fed(scratch: &Scratch, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = tilp(scratch.path());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses early does not read the rest.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the program ends")
}

fn planned(scratch: &Scratch, arguments: &[&str], input: &str) -> Value {
    let output = fed(scratch, arguments, input.as_bytes());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one object")
}

fn refused(scratch: &Scratch, arguments: &[&str], input: &[u8], words: &[&str]) {
    let output = fed(scratch, arguments, input);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    assert_eq!(text(&output.stdout), "");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn the_example_is_planned_with_a_reason_for_every_terminal() {
    let scratch = Scratch::new("plan");
    let example = succeed(scratch.path(), &["plan", "--example", "tiny"]);
    let plan = planned(&scratch, &["plan", "tiny", "--format", "json"], &example);
    let terminals = plan["terminals"].as_array().unwrap();
    assert_eq!(terminals.len(), 6);
    assert!(terminals.iter().all(|one| one["reason"]["kind"].is_string()));
    assert!(plan["predicted"]["success_after"].is_f64());
    let decreases = plan["loss_decreases"].as_array().unwrap();
    assert!(decreases.iter().all(|one| one["share_low"].as_f64() < one["share_high"].as_f64()));
    let again = planned(&scratch, &["plan", "tiny", "--format", "json"], &example);
    assert_eq!(plan, again);
    let printed = text(&fed(&scratch, &["plan", "tiny"], example.as_bytes()).stdout);
    assert!(printed.starts_with("round 1: "), "{printed}");
    assert!(printed.contains("  loss by task, %: "), "{printed}");
    let alone = ["plan", "tiny", "--budget-ms", "0", "--format", "json"];
    assert!(planned(&scratch, &alone, &example)["search"].is_null());
}

#[test]
fn a_plan_may_start_from_all_that_a_run_has_learned() {
    let scratch = Scratch::new("plan-from");
    let run = [&SHORT[..], &["--method", "tilp", "--quiet", "--out", "learned"]].concat();
    succeed(scratch.path(), &run);
    let next = succeed(scratch.path(), &["plan", "--example", "--from", "learned"]);
    let from = ["plan", "--from", "learned", "--format", "json"];
    let plan = planned(&scratch, &from, &next);
    assert_eq!(plan["round"], 13);
    let knob = [&from[..], &["--set", "methods.tilp.horizon=4"]].concat();
    planned(&scratch, &knob, &next);
    let limit = [&from[..], &["--set", "limits.deadline_s=1"]].concat();
    refused(&scratch, &limit, next.as_bytes(), &["limits.deadline_s=1", "methods.tilp."]);
    let task = next.replacen("\"task\": \"push\"", "\"task\": \"peg\"", 1);
    refused(&scratch, &from, task.as_bytes(), &["].task = peg, expected push"]);
}

#[test]
fn a_run_of_another_method_or_no_run_at_all_has_nothing_to_plan_from() {
    let scratch = Scratch::with_run("plan-other");
    refused(&scratch, &["plan", "--from", "done"], b"{}", &["method = deficit", "tilp"]);
    refused(&scratch, &["plan", "--from", "nowhere"], b"{}", &["nowhere"]);
}

#[test]
fn a_bad_observation_is_refused_in_one_line() {
    let scratch = Scratch::new("plan-bad");
    let tiny = ["plan", "tiny"];
    refused(&scratch, &tiny, b"", &["empty", "--example"]);
    refused(&scratch, &tiny, b"{\"round\": 1", &["line 1"]);
    refused(&scratch, &tiny, b"{\"round\": -1}", &["at round", "-1", "a whole number"]);
    refused(&scratch, &tiny, &vec![b' '; (16 << 20) + 9], &["more than 16777216 bytes"]);
    let budget = ["plan", "tiny", "--budget-ms=-1"];
    refused(&scratch, &budget, b"{}", &["plan_budget_ms = -1"]);
}
