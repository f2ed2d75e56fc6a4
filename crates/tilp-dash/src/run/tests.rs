use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::fixture::{Scratch, lines, measured, rows};

/// A run folder with so many rounds.
fn write(scratch: &Scratch, rounds: u64) {
    let lines = lines(rounds);
    scratch.put("run/events.jsonl", lines.concat());
    scratch.put("run/rounds.csv", rows(&lines));
}

fn run(scratch: &Scratch) -> Run {
    let (id, path) = ("0/run".to_owned(), scratch.path().join("run"));
    Run::new(Place { id, path, study: None })
}

/// What a page knows after some messages, as the page keeps it.
#[derive(Default)]
struct Page {
    cursor: Option<Cursor>,
    rounds: Vec<u64>,
    measured: BTreeMap<String, Value>,
    n_messages: usize,
    resets: usize,
}

impl Page {
    fn listen(&mut self, run: &Run) {
        let Some((cursor, text)) = run.message(self.cursor.as_ref()) else { return };
        // What a page sends back is text.
        self.cursor = Some(cursor.to_string().parse().unwrap());
        let message: Value = serde_json::from_str(&text).unwrap();
        self.n_messages += 1;
        if message["reset"] == true {
            self.resets += 1;
            (self.rounds, self.measured) = Default::default();
        }
        assert_eq!(message["first_row"], self.rounds.len(), "nothing is lost and nothing doubled");
        let new = message["rows"]["round"].as_array().unwrap();
        self.rounds.extend(new.iter().map(|round| round.as_u64().unwrap()));
        for one in message["measured"].as_array().unwrap() {
            self.measured.insert(format!("{} {}", one["kind"], one["round"]), one.clone());
        }
    }
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_page_gets_everything_once_while_the_files_grow_in_pieces() {
    let scratch = Scratch::new("grow");
    std::fs::create_dir_all(scratch.path().join("run")).unwrap();
    let all = lines(20);
    let (events, csv) = (all.concat(), rows(&all));
    let (run, mut page) = (run(&scratch), Page::default());
    let piece = |text: &str, n: usize| -> String {
        let (from, to) = (text.len() * n / 37, text.len() * (n + 1) / 37);
        text[from..to].to_owned()
    };
    for n in 0..37 {
        append(&scratch.path().join("run/events.jsonl"), &piece(&events, n));
        append(&scratch.path().join("run/rounds.csv"), &piece(&csv, n));
        page.listen(&run);
        page.listen(&run);
    }
    assert_eq!(page.rounds, (1..=20).collect::<Vec<_>>());
    assert_eq!(page.measured.len(), 11);
    assert_eq!(page.measured["\"report\" 0"]["all"][0], 1.0);
    // The weakest channel is the far third, also in the measurement before its gain was known.
    assert_eq!(page.measured["\"report\" 0"]["far"][1], 4.0);
    assert_eq!(page.measured["\"report\" 4"]["far"][0], 1.0);
    assert_eq!(page.measured["\"report\" 4"]["tasks"][1][0], 1.0);
    let before = page.n_messages;
    page.listen(&run);
    assert_eq!(page.n_messages, before, "without news nothing is sent");
}

#[test]
fn a_server_that_was_restarted_sends_only_what_a_page_lacks() {
    let scratch = Scratch::new("restart");
    write(&scratch, 6);
    let mut page = Page::default();
    page.listen(&run(&scratch));
    write(&scratch, 9);
    page.listen(&run(&scratch));
    assert_eq!(page.rounds, (1..=9).collect::<Vec<_>>());
    assert_eq!((page.n_messages, page.resets), (2, 1));
}

#[test]
fn a_run_that_is_cut_back_or_replaced_is_sent_anew() {
    let scratch = Scratch::new("cut");
    write(&scratch, 8);
    let (run, mut page) = (run(&scratch), Page::default());
    page.listen(&run);
    // It was resumed from a checkpoint.
    write(&scratch, 5);
    page.listen(&run);
    assert_eq!((page.rounds.len(), page.resets), (5, 2));
    write(&scratch, 7);
    page.listen(&run);
    assert_eq!((page.rounds.len(), page.resets), (7, 2));
    // Another run in the same folder.
    let other: Vec<String> =
        lines(9).into_iter().map(|line| line.replace("\"seed\":3", "\"seed\":4")).collect();
    scratch.put("run/events.jsonl", other.concat());
    scratch.put("run/rounds.csv", rows(&other));
    page.listen(&run);
    assert_eq!((page.rounds.len(), page.resets), (9, 3));
}

#[test]
fn a_cursor_of_another_run_or_no_cursor_at_all_gets_everything() {
    let scratch = Scratch::new("cursor");
    write(&scratch, 4);
    let run = run(&scratch);
    let (now, _) = run.message(None).unwrap();
    assert_eq!(run.message(Some(&now)), None);
    for change in [
        Cursor { fingerprint: 1, ..now.clone() },
        Cursor { rows: 5, ..now.clone() },
        Cursor { events: 1_000_000, ..now.clone() },
    ] {
        let (_, text) = run.message(Some(&change)).unwrap();
        assert!(text.contains("\"reset\":true"), "{change}");
    }
    for text in ["", "1.2", "x.1.1.running", "1.-1.1.running", "1.1.1.gone"] {
        assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
    }
}

#[test]
fn a_round_has_its_events_as_they_are_and_the_success_then() {
    let scratch = Scratch::new("round");
    write(&scratch, 5);
    let run = run(&scratch);
    let round: Value = serde_json::from_str(&run.round(5).unwrap()).unwrap();
    assert_eq!(round["decided"]["terminals"]["bandwidth_hz"][0], 60.0);
    assert_eq!(round["executed"]["books"]["terminals"]["bytes_up"][2], 200);
    assert_eq!(round["success"]["round"], 4);
    assert_eq!(round["success"]["successes"], serde_json::json!([2, 1, 0]));
    assert_eq!(run.round(6), Err(Missing("round 6 is not there".into())));
    assert_eq!(run.round(0), Err(Missing("round 0 is not there".into())));
    assert!(run.round(u64::MAX).is_err());
}

#[test]
fn a_terminal_has_its_history_and_what_it_spent() {
    let scratch = Scratch::new("terminal");
    write(&scratch, 4);
    let run = run(&scratch);
    let track = run.terminal(9).unwrap();
    assert_eq!(track["round"], serde_json::json!([1, 2, 3, 4]));
    assert_eq!(track["scheduled"][0], true);
    assert!((track["spent_j"][3].as_f64().unwrap() - 4.0 * 0.3).abs() < 1e-6);
    assert!((track["gain_db"][0].as_f64().unwrap() + 110.0).abs() < 1e-3);
    assert_eq!(
        track["measured"],
        serde_json::json!([["report", 0, 0, 4], ["report", 2, 0, 4], ["report", 4, 0, 4]])
    );
    assert!(run.terminal(7).is_err());
    let spent = run.spent(2);
    assert_eq!(spent["terminal"], serde_json::json!([4, 5, 9]));
    assert!((spent["joules"][0].as_f64().unwrap() - 0.4).abs() < 1e-6);
    assert_eq!(spent["turns"], serde_json::json!([2, 0, 2]));
    write(&scratch, 6);
    assert_eq!(run.spent(6)["turns"], serde_json::json!([6, 0, 6]));
}

#[test]
fn predictions_stand_beside_what_came_of_them() {
    let scratch = Scratch::new("predictions");
    write(&scratch, 3);
    let found = run(&scratch).predictions();
    assert_eq!(found["n"], 6);
    // Terminal 4 takes 1.0 s and is surely done in 1.5 s; terminal 9 takes 2.0 s, sure were 1.95 s.
    assert_eq!(found["within_sure"], 3);
    assert_eq!(found["rounds"]["duration_predicted_s"][0], 1.9);
    assert_eq!(found["rounds"]["duration_s"][0], 2.0);
    assert_eq!(found["points"]["delay_s"].as_array().unwrap().len(), 6);
}

#[test]
fn damaged_files_are_an_error_in_place_and_what_is_before_is_shown() {
    let good = lines(3);
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let scratch = Scratch::new("damaged");
        write(&scratch, 3);
        let mut lines = good.clone();
        change(&mut lines);
        scratch.put("run/events.jsonl", lines.concat());
        let message: Value = serde_json::from_str(&run(&scratch).message(None).unwrap().1).unwrap();
        assert_eq!(message["rows"]["round"].as_array().unwrap().len(), 3);
        message["error"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(with(&|_| ()), "");
    assert!(with(&|lines| lines.insert(4, "not json\n".into())).contains("line 5"));
    assert!(with(&|lines| lines.insert(4, lines[3].clone())).contains("again"));
    assert!(with(&|lines| drop(lines.remove(0))).contains("no header"));
    assert!(with(&|lines| drop(lines.remove(2))).contains("expected the next one"));
    assert!(
        with(&|lines| lines[0] = lines[0].replace("\"version\":1", "\"version\":9"))
            .contains("version 9")
    );
    assert!(
        with(&|lines| lines[1] = measured(0, 1, "measured", [9, 0, 0]) + "\n").contains("counts")
    );
    let far = |lines: &mut Vec<String>| {
        lines.push("{\"kind\":\"decided\",\"id\":[99999999999,0],\n".into())
    };
    assert!(with(&far).contains("expected the next one"));
}

#[test]
fn a_damaged_round_is_refused_alone() {
    let scratch = Scratch::new("damaged-round");
    let mut lines = lines(3);
    let n =
        lines.iter().position(|line| line.starts_with(r#"{"kind":"decided","id":[2,"#)).unwrap();
    // It would end the object of the answer and go on with one of its own.
    lines[n] = "{\"kind\":\"decided\",\"id\":[2,0]}},\"executed\":{\"x\":\n".into();
    scratch.put("run/events.jsonl", lines.concat());
    scratch.put("run/rounds.csv", "");
    let run = run(&scratch);
    assert!(run.round(1).is_ok() && run.round(3).is_ok());
    assert_eq!(run.round(2), Err(Missing("round 2 is damaged in events.jsonl".into())));
    assert_eq!(run.terminal(4).unwrap()["round"], serde_json::json!([1, 3]));
}

#[test]
fn a_million_events_are_indexed_and_only_rounds_are_kept_of_them() {
    let scratch = Scratch::new("million");
    let mut text = lines(0).concat();
    for round in 1..=500_000 {
        text += &format!(
            "{{\"kind\":\"decided\",\"id\":[{round},0]}}\n{{\"kind\":\"executed\",\"id\":[{round},1]}}\n"
        );
    }
    scratch.put("run/events.jsonl", text);
    let run = run(&scratch);
    let (cursor, text) = run.message(None).unwrap();
    assert_eq!(cursor.events, 1_000_002);
    assert!(text.len() < 10_000, "{} bytes", text.len());
    assert_eq!(run.terminal(1).err(), Some(Missing("terminal 1 is not there".into())));
}

#[test]
fn a_folder_without_anything_readable_is_shown_as_empty() {
    let scratch = Scratch::new("nothing");
    scratch.put("run/manifest.json", "[[[[");
    scratch.put("run/scenario.toml", "= =");
    scratch.put("run/summary.json", "\u{0}");
    scratch.put("run/rounds.csv", [0xff, 0xfe, b'\n', b'1', b'\n']);
    let run = run(&scratch);
    let about = run.about();
    assert_eq!(about.entry(&run.place)["method"], Value::Null);
    let (_, text) = run.message(None).unwrap();
    assert!(text.contains("rounds.csv is not text"), "{text}");
}

#[test]
fn news_that_another_request_has_read_first_still_wake_the_streams() {
    let scratch = Scratch::new("woken");
    write(&scratch, 4);
    let run = run(&scratch);
    assert!(run.poll() && !run.poll());
    let (cursor, text) = run.shared_message(None).unwrap();
    assert_eq!(run.message(None).map(|(_, own)| own), Some(text.to_string()));
    assert_eq!(run.shared_message(Some(&cursor)), None);
    write(&scratch, 6);
    assert!(run.round(6).is_ok(), "a request reads what is new");
    assert!(run.poll() && !run.poll());
    let (_, text) = run.shared_message(Some(&cursor)).unwrap();
    assert!(text.contains("\"first_row\":4"), "{text}");
}
