//! Bad input: one line on standard error that says what is wrong where, exit code 2, no panic,
//! and nothing on disk that was not there before.

use std::fs;

use tilp::record::Checkpoint;
use tilp::snapshot::Array;

use crate::scratch::SHORT;
use crate::{Scratch, run, succeed, text};

/// Runs the program, which must refuse; gives the line it says.
pub fn refused(scratch: &Scratch, arguments: &[&str]) -> String {
    let before = scratch.listing();
    let output = run(scratch.path(), arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.starts_with("error: ") && said.ends_with('\n'), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(scratch.listing(), before, "{arguments:?} left something behind");
    said
}

pub fn assert_names(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

/// A scenario file with this text on top of `tiny` is refused by `run` and by `check` alike.
fn refused_file(name: &str, content: &str, words: &[&str]) {
    let scratch = Scratch::new(name);
    scratch.put("mine.toml", format!("extends = \"tiny\"\n{content}\n"));
    for arguments in
        [["run", "mine.toml", "--quiet"].as_slice(), &["scenario", "check", "mine.toml"]]
    {
        let said = refused(&scratch, arguments);
        assert_names(&said, &["mine.toml"]);
        assert_names(&said, words);
    }
}

#[test]
fn an_unknown_field_of_a_scenario_is_named_with_those_that_exist() {
    refused_file("unknown", "[cell]\nterminals = 3", &["cell.terminals", "3", "`n_terminals`"]);
}

#[test]
fn an_unknown_section_of_a_scenario_is_named() {
    refused_file("section", "[antenna]\ngain = 3", &["antenna", "`cell`"]);
}

#[test]
fn a_value_out_of_range_is_named_with_its_range() {
    let expected = "limits.deadline_s = -1, expected 1e-6 to 1e6";
    refused_file("range", "[limits]\ndeadline_s = -1.0", &[expected]);
}

#[test]
fn a_value_that_is_not_a_number_is_out_of_range() {
    let expected = "limits.deadline_s = NaN, expected 1e-6 to 1e6";
    refused_file("nan", "[limits]\ndeadline_s = nan", &[expected]);
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_the_right_one() {
    refused_file(
        "type",
        "rounds = \"many\"",
        &["rounds", "\"many\"", "expected a whole number from 0 on"],
    );
}

#[test]
fn a_word_that_is_no_choice_is_named_with_the_choices() {
    refused_file("choice", "[limits]\nlate = \"never\"", &["limits.late", "never", "`drop`"]);
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    refused_file("syntax", "rounds = = 3", &["line 2"]);
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let scratch = Scratch::new("bytes");
    scratch.put("mine.toml", [0xff, 0xfe, 0x00]);
    assert_names(&refused(&scratch, &["run", "mine.toml"]), &["mine.toml"]);
}

#[test]
fn scenarios_that_extend_each_other_are_refused() {
    let scratch = Scratch::new("circle");
    scratch.put("a.toml", "extends = \"b.toml\"");
    scratch.put("b.toml", "extends = \"a.toml\"");
    assert_names(&refused(&scratch, &["run", "a.toml"]), &["extends", ".toml"]);
}

#[test]
fn an_unknown_scenario_is_named_with_those_that_exist() {
    let said = refused(&Scratch::new("scenario"), &["run", "enormous"]);
    assert_names(&said, &["`enormous`", "default", "tiny"]);
}

#[test]
fn a_missing_scenario_file_is_named() {
    let scratch = Scratch::new("missing");
    assert_names(&refused(&scratch, &["run", "mine.toml"]), &["mine.toml", "No such file"]);
}

#[test]
fn a_folder_is_no_scenario_file() {
    assert_names(&refused(&Scratch::new("folder"), &["run", "."]), &["scenario ."]);
}

#[test]
fn an_unknown_method_is_named_with_those_that_exist() {
    let said = refused(&Scratch::new("method"), &["run", "tiny", "--method", "magic"]);
    assert_names(&said, &["method = magic", "one of tilp, fedavg, splitnn, splitfed", "--method"]);
}

#[test]
fn a_bad_variant_of_a_method_is_refused_with_what_would_be_right() {
    let scratch = Scratch::new("variant");
    let said = |name: &str| refused(&scratch, &["run", "tiny", "--method", name]);
    assert_names(&said("asfl+late"), &["method = asfl+late", "+guard+q0.9"]);
    assert_names(
        &said("random+guard"),
        &["method = random+guard", "only after one of fedavg, splitnn"],
    );
    assert_names(&said("asfl+q0.95"), &["method = asfl+q0.95", "limits.compression = 0.9"]);
}

#[test]
fn a_set_of_an_unknown_key_is_refused() {
    let scratch = Scratch::new("set-key");
    let said = refused(&scratch, &["run", "tiny", "--set", "cell.terminals=3"]);
    assert_names(&said, &["cell.terminals", "no such field", "--set"]);
    let said = refused(&scratch, &["run", "tiny", "--set", "radio.gain=3"]);
    assert_names(&said, &["radio.gain", "no section `radio`", "--set"]);
}

#[test]
fn a_set_without_a_value_is_refused() {
    let said = refused(&Scratch::new("set-value"), &["run", "tiny", "--set", "rounds"]);
    assert_names(&said, &["rounds", "expected key=value", "--set"]);
}

#[test]
fn a_set_to_the_wrong_type_or_out_of_range_is_refused() {
    let scratch = Scratch::new("set-type");
    let said = refused(&scratch, &["run", "tiny", "--set", "rounds=many"]);
    assert_names(
        &said,
        &["rounds", "\"many\"", "expected a whole number from 0 on", "rounds=many"],
    );
    let said = refused(&scratch, &["run", "tiny", "--rounds", "0"]);
    assert_names(&said, &["rounds = 0, expected at least 1"]);
}

#[test]
fn a_message_stays_one_line_whatever_stands_in_the_arguments() {
    let scratch = Scratch::new("breaks");
    refused(&scratch, &["run", "tiny\nerror: x"]);
    refused(&scratch, &["run", "tiny", "--set", "name=\"\"\"\na\nb\"\"\"", "--rounds", "0"]);
    refused(&scratch, &["run", "tiny", "--out", "x\ny/\u{1b}[31m", "--method", "\u{1b}[31m\n"]);
}

#[test]
fn bad_usage_is_one_line_too() {
    let scratch = Scratch::new("usage");
    let said = refused(&scratch, &["run", "tiny", "--seed", "x"]);
    assert_names(&said, &["'x'", "--seed", "expected a whole number"]);
    assert_names(&refused(&scratch, &["run", "tiny", "--color"]), &["--color"]);
    assert_names(&refused(&scratch, &["fly"]), &["fly"]);
    assert_names(&refused(&scratch, &["run", "tiny", "--checkpoint-every", "0"]), &["0"]);
    assert_names(&refused(&scratch, &["run", "tiny", "--resume", "x"]), &["--resume"]);
    assert_names(&refused(&scratch, &["scenario", "show"]), &["<NAME>"]);
    assert_names(&refused(&scratch, &[]), &["--help"]);
}

#[test]
fn a_folder_with_files_is_not_written_into() {
    let scratch = Scratch::with_run("in-use");
    let summary = fs::read(scratch.path().join("done/summary.json")).unwrap();
    let said = refused(&scratch, &["run", "tiny", "--out", "done"]);
    assert_names(&said, &["run folder done", "expected a new or empty folder", "--resume done"]);
    assert_eq!(fs::read(scratch.path().join("done/summary.json")).unwrap(), summary);
}

#[test]
fn an_output_folder_that_is_a_file_is_refused() {
    let scratch = Scratch::new("file");
    scratch.put("taken", "");
    let said = refused(&scratch, &["run", "tiny", "--out", "taken"]);
    assert_names(&said, &["run folder taken is a file"]);
}

#[test]
fn an_output_folder_that_cannot_be_made_is_refused() {
    let scratch = Scratch::new("unwritable");
    scratch.put("taken", "");
    assert_names(&refused(&scratch, &["run", "tiny", "--out", "taken/x/y"]), &["taken/x/y"]);
    let said = refused(&scratch, &["run", "tiny", "--quiet", "--out", "/proc/tilp/x"]);
    assert_names(&said, &["cannot create", "/proc/tilp"]);
}

/// The trace of `tiny`, which has six terminals, is refused.
fn refused_trace(name: &str, content: Option<&str>, words: &[&str]) {
    let scratch = Scratch::new(name);
    if let Some(content) = content {
        scratch.put("trace.csv", content);
    }
    let said = refused(&scratch, &["run", "tiny", "--set", "cell.trace=trace.csv"]);
    assert_names(&said, &["cell.trace", "trace.csv"]);
    assert_names(&said, words);
}

#[test]
fn a_trace_with_nan_is_refused_with_its_place() {
    let content = "a,b,c,d,e,f\n-90,-90,-90,-90,-90,-90\n-90,-90,nan,-90,-90,-90\n";
    refused_trace("trace-nan", Some(content), &["row 2, terminal 2 is `nan`", "finite gain"]);
}

#[test]
fn a_trace_with_infinity_or_words_is_refused() {
    for value in ["inf", "1e999", "loud", ""] {
        let content = format!("a,b,c,d,e,f\n-90,-90,-90,-90,-90,{value}\n");
        let place = format!("row 1, terminal 5 is `{value}`");
        refused_trace("trace-value", Some(&content), &[&place]);
    }
}

#[test]
fn a_trace_with_the_wrong_number_of_terminals_is_refused() {
    let words = ["row 1 has 2 terminals, expected 6"];
    refused_trace("trace-terminals", Some("a,b\n-90,-90\n"), &words);
    refused_trace("trace-empty", Some("a,b,c,d,e,f\n"), &["no row"]);
}

#[test]
fn a_missing_trace_is_named() {
    refused_trace("trace-missing", None, &["No such file"]);
}

#[test]
fn a_base_policy_that_does_not_fit_is_refused() {
    let scratch = Scratch::new("base");
    let said = refused(&scratch, &["run", "tiny", "--set", "model.width=16"]);
    assert_names(&said, &["model.base", "builtin"]);
    let said = refused(&scratch, &["run", "tiny", "--set", "model.base=other.safetensors"]);
    assert_names(&said, &["model.base", "other.safetensors"]);
    scratch.put("cut.safetensors", [8, 0, 0, 0, 0, 0, 0, 0, b'{']);
    let said = refused(&scratch, &["run", "tiny", "--set", "model.base=cut.safetensors"]);
    assert_names(&said, &["model.base", "cut.safetensors"]);
}

#[test]
fn a_folder_that_is_no_run_cannot_be_resumed() {
    let scratch = Scratch::new("no-run");
    scratch.put("notes.txt", "");
    for folder in [".", "nowhere", "notes.txt"] {
        let said = refused(&scratch, &["run", "--resume", folder]);
        assert_names(&said, &[&format!("run folder {folder}"), "manifest.json", "expected"]);
    }
}

#[test]
fn a_manifest_that_cannot_be_read_is_refused() {
    let scratch = Scratch::with_run("manifest");
    for content in ["", "[]", "{\"method\": 3, \"seed\": 0}", "{\"method\": \"deficit\"}"] {
        scratch.put("done/manifest.json", content);
        refused(&scratch, &["run", "--resume", "done"]);
    }
}

#[test]
fn a_truncated_checkpoint_is_refused_at_any_length() {
    let scratch = Scratch::with_run("truncated");
    let name = "done/checkpoint/state.safetensors";
    let bytes = fs::read(scratch.path().join(name)).unwrap();
    for length in [0, 1, 7, 8, 9, 100, 1000, bytes.len() / 2, bytes.len() - 1] {
        scratch.put(name, &bytes[..length]);
        let said = refused(&scratch, &["run", "--resume", "done"]);
        assert_names(&said, &["checkpoint", "truncated or corrupt", name]);
    }
    fs::remove_file(scratch.path().join(name)).unwrap();
    assert_names(&refused(&scratch, &["run", "--resume", "done"]), &["state.safetensors"]);
}

#[test]
fn a_checkpoint_with_a_flipped_bit_is_refused() {
    let scratch = Scratch::with_run("flipped");
    let name = "done/checkpoint/state.safetensors";
    let bytes = fs::read(scratch.path().join(name)).unwrap();
    for place in [0, 9, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        scratch.put(name, flipped);
        assert_names(&refused(&scratch, &["run", "--resume", "done"]), &["checkpoint", name]);
    }
}

/// A run of tilp that lacks nothing but its last step, so that its checkpoint is taken up again.
fn unfinished(name: &str) -> (Scratch, Checkpoint) {
    let scratch = Scratch::new(name);
    succeed(
        scratch.path(),
        &[&SHORT[..], &["--quiet", "--method", "tilp", "--out", "run"]].concat(),
    );
    fs::remove_file(scratch.path().join("run/summary.json")).unwrap();
    let path = scratch.path().join("run/checkpoint/state.safetensors");
    let checkpoint = Checkpoint::from_bytes(&fs::read(&path).unwrap(), &path).unwrap();
    (scratch, checkpoint)
}

#[test]
fn a_forged_checkpoint_is_refused_by_the_name_of_its_array() {
    let (scratch, whole) = unfinished("forged");
    let forge = |name: &str, change: fn(&mut Array)| {
        let mut forged = whole.clone();
        change(forged.state.0.get_mut(name).unwrap_or_else(|| panic!("no {name}")));
        scratch.put("run/checkpoint/state.safetensors", forged.to_bytes());
        let said = refused(&scratch, &["run", "--resume", "run"]);
        assert_names(&said, &["checkpoint", &format!("`{name}`")]);
    };
    forge("tilp/pending/actions", |array| match array {
        Array::F32(values) => values.truncate(values.len() - 1),
        other => panic!("{other:?}"),
    });
    forge("twin/training/whose", |array| match array {
        Array::U64(values) => *values.last_mut().unwrap() = u64::MAX,
        other => panic!("{other:?}"),
    });
    for round in ["cell/round", "station/round"] {
        forge(round, |array| *array = Array::U64(vec![1 << 40]));
        forge(round, |array| *array = Array::U64(vec![12, 13]));
    }
    forge("twin/network/beliefs", |array| match array {
        Array::F64(values) => values[3] = f64::NAN,
        other => panic!("{other:?}"),
    });
    forge("rl/actor", |array| match array {
        Array::F32(values) => values[0] = f32::INFINITY,
        other => panic!("{other:?}"),
    });
    forge("server/weights/1", |array| match array {
        Array::F32(values) => values.push(0.0),
        other => panic!("{other:?}"),
    });
    // Round against history.
    let forged = Checkpoint { round: 11, ..whole.clone() };
    scratch.put("run/checkpoint/state.safetensors", forged.to_bytes());
    refused(&scratch, &["run", "--resume", "run"]);
    // The true one is taken.
    scratch.put("run/checkpoint/state.safetensors", whole.to_bytes());
    succeed(scratch.path(), &["run", "--resume", "run", "--quiet"]);
}

#[test]
fn a_checkpoint_of_another_scenario_is_refused() {
    let scratch = Scratch::with_run("other-scenario");
    let name = "done/scenario.toml";
    let scenario = fs::read_to_string(scratch.path().join(name)).unwrap();
    scratch.put(name, scenario.replace("rounds = 12", "rounds = 13"));
    let said = refused(&scratch, &["run", "--resume", "done"]);
    assert_names(&said, &["belongs to another run", "scenario hash", "expected"]);
}

#[test]
fn a_checkpoint_of_another_seed_or_method_is_refused() {
    let scratch = Scratch::with_run("other-seed");
    let arguments = [&SHORT[..], &["--quiet", "--seed", "1", "--method", "greedy"]].concat();
    succeed(scratch.path(), &[&arguments[..], &["--out", "other"]].concat());
    let other = fs::read(scratch.path().join("other/checkpoint/state.safetensors")).unwrap();
    scratch.put("done/checkpoint/state.safetensors", other);
    let said = refused(&scratch, &["run", "--resume", "done"]);
    assert_names(&said, &["another run", "method = \"greedy\", expected \"deficit\""]);
    let manifest = fs::read_to_string(scratch.path().join("other/manifest.json")).unwrap();
    scratch.put("other/manifest.json", manifest.replace("\"seed\": 1", "\"seed\": 0"));
    let said = refused(&scratch, &["run", "--resume", "other"]);
    assert_names(&said, &["another run", "seed = \"1\", expected \"0\""]);
}

#[test]
fn training_that_diverges_fails_with_a_reason_and_exit_code_1() {
    let scratch = Scratch::new("diverged");
    let rates = ["--set", "learning.server_rate=100", "--set", "learning.terminal_rate=100"];
    let output = run(
        scratch.path(),
        &[&["run", "tiny", "--quiet", "--method", "deficit"], &rates[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_names(&said, &["error: round", "expected a finite number", "learning.server_rate"]);
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn a_terminal_that_the_expert_never_masters_is_named() {
    let scratch = Scratch::new("no-demonstrations");
    // One try at a task, for fifty terminals, with noise as large as the largest motion twice over.
    let set = ["--set", "tasks.demonstrations=1", "--set", "tasks.demonstration_noise=2.0"];
    let said = refused(&scratch, &[&["run", "default", "--quiet"], &set[..]].concat());
    assert_names(&said, &["tasks.demonstrations", "1", "as terminal", "less noise"]);
}
