//! `tilp dash`: the numbers of the files, live runs, restarts, and refused access.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bad_input::refused;
use crate::scratch::SHORT;
use crate::{Scratch, succeed, tilp};

/// A dashboard that ends with its owner.
struct Dash {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Dash {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Dash {
    fn start(scratch: &Scratch, listen: &str, token: &str) -> Self {
        let mut command = tilp(scratch.path());
        command.args(["dash", ".", "--listen", listen]).env("TILP_TOKEN", token);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, url) = line.trim().split_once("http://").expect("an address");
        let (address, query) = url.split_once('/').unwrap();
        let token = query.strip_prefix("?token=").unwrap_or_default().to_owned();
        Self { child, address: address.replace("0.0.0.0", "127.0.0.1"), token }
    }

    fn local(scratch: &Scratch) -> Self {
        Self::start(scratch, "127.0.0.1:0", "")
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Status and body of an answer.
    fn get_with(&self, path: &str, headers: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let mut text = String::new();
        self.send(&request).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn json(&self, path: &str) -> Value {
        let (status, body) = self.get_with(path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// A stream of a run, from where a page was.
    fn stream(&self, run: &str, after: &str) -> BufReader<TcpStream> {
        let last =
            if after.is_empty() { String::new() } else { format!("Last-Event-ID: {after}\r\n") };
        BufReader::new(
            self.send(&format!(
                "GET /api/stream?run={run} HTTP/1.1\r\nHost: localhost\r\n{last}\r\n"
            )),
        )
    }
}

/// The next message about the run: its id and its data.
fn message(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let (mut id, mut kind) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has ended");
        if let Some(given) = line.strip_prefix("id: ") {
            id = given.trim().to_owned();
        } else if let Some(given) = line.strip_prefix("event: ") {
            kind = given.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data: ")
            && kind == "state"
        {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
}

/// What a page knows of a run.
#[derive(Default)]
struct Page {
    rounds: Vec<u64>,
    cursor: String,
    is_over: bool,
    n_resets: usize,
}

impl Page {
    fn take(&mut self, (id, data): (String, Value)) {
        if data["reset"] == true {
            self.n_resets += 1;
            self.rounds.clear();
        }
        assert_eq!(data["first_row"], self.rounds.len(), "nothing is lost and nothing doubled");
        let new = data["rows"]["round"].as_array().unwrap();
        self.rounds.extend(new.iter().map(|round| round.as_u64().unwrap()));
        (self.cursor, self.is_over) = (id, data["state"] == "finished");
    }
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
}

#[test]
fn a_finished_run_is_shown_with_the_numbers_of_its_files() {
    let scratch = Scratch::with_run("dash-finished");
    let dash = Dash::local(&scratch);
    let list = dash.json("/api/runs");
    assert_eq!(list["runs"][0]["id"], "0/done");
    assert_eq!(list["runs"][0]["state"], "finished");
    let (_, state) = message(&mut dash.stream("0/done", ""));
    let read = |name: &str| fs::read_to_string(scratch.path().join("done").join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(state["summary"]["success_final"], summary["success_final"]);
    let rows = read("rounds.csv");
    let names: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    for name in ["clock_s", "energy_j", "air_bytes", "latency_s", "loss"] {
        let place = names.iter().position(|own| *own == name).unwrap();
        let file = rows.lines().skip(1).map(|row| row.split(',').nth(place).unwrap());
        let file: Vec<f64> = file.map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(floats(&state["rows"][name]), file, "{name}");
    }
    let last =
        state["measured"].as_array().unwrap().iter().find(|one| one["kind"] == "final").unwrap();
    let rate = |count: &Value| count[0].as_f64().unwrap() / count[1].as_f64().unwrap();
    assert_eq!(rate(&last["all"]), summary["success_final"].as_f64().unwrap());
    assert_eq!(rate(&last["far"]), summary["success_far"].as_f64().unwrap());
    assert_eq!(last["all"][2], summary["success_final_interval"][0]);
    // What the terminals spent is what the run spent.
    let spent = dash.json("/api/spent?run=0/done&round=12");
    let sum: f64 = floats(&spent["joules"]).iter().sum();
    assert!((sum - summary["energy_total_j"].as_f64().unwrap()).abs() < 1e-9 * sum);
    let round = dash.json("/api/round?run=0/done&round=7");
    let events = read("events.jsonl");
    let line =
        events.lines().find(|line| line.starts_with(r#"{"kind":"decided","id":[7,0]"#)).unwrap();
    assert_eq!(round["decided"], serde_json::from_str::<Value>(line).unwrap());
    let track = dash.json("/api/terminal?run=0/done&terminal=0");
    assert_eq!(track["round"].as_array().unwrap().len(), 12);
}

#[test]
fn a_live_run_is_followed_over_a_restart_of_the_server_without_loss_or_doubles() {
    let scratch = Scratch::new("dash-live");
    let dash = Dash::local(&scratch);
    let mut run = tilp(scratch.path());
    let long = ["run", "tiny", "--method", "random", "--rounds", "60", "--quiet", "--out", "live"];
    let mut run = run.args(long).args(&SHORT[4..]).stdout(Stdio::null()).spawn().unwrap();
    let begun = scratch.path().join("live/rounds.csv");
    let start = Instant::now();
    while !begun.exists() || !dash.get_with("/api/runs", "").1.contains("0/live") {
        assert!(start.elapsed() < Duration::from_secs(60), "the run is not found");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut page = Page::default();
    let mut stream = dash.stream("0/live", "");
    page.take(message(&mut stream));
    if !page.is_over {
        page.take(message(&mut stream));
    }
    drop((stream, dash));
    let again = Dash::local(&scratch);
    let mut stream = again.stream("0/live", &page.cursor);
    while !page.is_over {
        page.take(message(&mut stream));
    }
    assert_eq!(page.n_resets, 1, "after the restart only what is new is sent");
    assert_eq!(page.rounds, (1..=60).collect::<Vec<_>>());
    assert!(run.wait().unwrap().success());
}

#[test]
fn nothing_outside_is_served_and_nothing_can_be_changed() {
    let scratch = Scratch::with_run("dash-outside");
    scratch.put("secret.txt", "secret");
    let dash = Dash::local(&scratch);
    for path in [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/secret.txt",
        "/done/manifest.json",
        "/api/round?run=../done&round=1",
        "/api/round?run=0/../done&round=1",
        "/api/round?run=/etc&round=1",
        "/api/terminal?run=0/done/..&terminal=0",
    ] {
        let (status, body) = dash.get_with(path, "");
        assert_eq!(status, 404, "{path}");
        assert!(!body.contains("secret"), "{path}: {body}");
    }
    assert_eq!(dash.get_with("/api/round?run=0/done&round=x", "").0, 400);
    let mut text = String::new();
    dash.send("POST /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.starts_with("HTTP/1.1 405"), "{text}");
    let mut text = String::new();
    dash.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert_eq!(dash.get_with("/", "").0, 200);
}

#[test]
fn elsewhere_than_on_loopback_everything_needs_the_token() {
    let scratch = Scratch::with_run("dash-token");
    let dash = Dash::start(&scratch, "0.0.0.0:0", "");
    assert!(dash.token.len() == 32, "a random token: {}", dash.token);
    for path in ["/", "/style.css", "/js/main.js", "/api/runs", "/api/stream", "/metrics"] {
        assert_eq!(dash.get_with(path, "").0, 401, "{path}");
    }
    let cookie =
        format!("Cookie: tilp_dash_{}={}\r\n", dash.address.split(':').nth(1).unwrap(), dash.token);
    assert_eq!(dash.get_with("/", &cookie).0, 200);
    assert_eq!(dash.get_with(&format!("/?token={}", dash.token), "").0, 303);
    assert_eq!(
        dash.get_with("/api/runs", &format!("Authorization: Bearer {}\r\n", dash.token)).0,
        200
    );
    assert_eq!(
        dash.get_with("/api/runs", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n").0,
        401
    );
}

#[test]
fn a_folder_that_is_not_there_and_an_address_that_is_taken_are_refused() {
    let scratch = Scratch::new("dash-refused");
    assert!(refused(&scratch, &["dash", "nowhere"]).contains("nowhere is no folder"));
    let dash = Dash::local(&scratch);
    assert!(refused(&scratch, &["dash", "--listen", &dash.address]).contains("cannot listen"));
}

#[test]
fn a_run_is_exported_as_one_page_and_metrics_have_its_last_round() {
    let scratch = Scratch::with_run("dash-export");
    succeed(scratch.path(), &["dash", "done", "--export", "done.html"]);
    let page = fs::read_to_string(scratch.path().join("done.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("id=\"export\""));
    // The name of SVG's elements is the one address in it, and nothing loads that.
    let elsewhere = page.split("http").skip(1).filter(|rest| rest.starts_with([':', 's']));
    assert!(elsewhere.clone().all(|rest| rest.starts_with("://www.w3.org/2000/svg")));
    assert!(elsewhere.count() > 0 && !page.contains("src=\""));
    assert!(refused(&scratch, &["dash", ".", "--export", "x.html"]).contains("no manifest.json"));
    let dash = Dash::local(&scratch);
    let (status, text) = dash.get_with("/metrics", "");
    assert_eq!(status, 200);
    assert!(
        text.lines()
            .any(|line| line.starts_with("tilp_round{run=\"0/done\"") && line.ends_with(" 12"))
    );
}
