//! `tilp dash`: the numbers of the files, live runs, restarts, and refused access.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
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
        Self::of(scratch, ".", listen, token)
    }

    /// Of a folder or of another dashboard.
    fn of(scratch: &Scratch, place: &str, listen: &str, token: &str) -> Self {
        let mut command = tilp(scratch.path());
        command.args(["dash", place, "--listen", listen]).env("TILP_TOKEN", token);
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
fn episodes_end_and_plans_are_expected_as_the_record_says() {
    let scratch = Scratch::new("dash-again");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "done"]].concat());
    let dash = Dash::local(&scratch);
    let events = fs::read_to_string(scratch.path().join("done/events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = events.collect();
    let counts = &events.iter().find(|one| one["kind"] == "finished").unwrap()["terminals"];
    for n in 0..3 {
        let (id, episodes) = (&counts["terminal"][n], counts["episodes"][n].as_u64().unwrap());
        let asked = format!("run=0/done&policy=trained&terminal={id}&index={episodes}");
        let found = dash.json(&format!("/api/outcomes?{asked}"));
        let found = found["success"].as_array().unwrap();
        let done = found.iter().filter(|one| **one == true).count() as u64;
        assert_eq!(
            (found.len() as u64, done),
            (episodes, counts["successes"][n].as_u64().unwrap())
        );
        let asked = format!("run=0/done&policy=trained&terminal={id}&index=0");
        let one = dash.json(&format!("/api/episode?{asked}"));
        assert_eq!(one["success"], found[0]);
        assert_eq!(one["measured"], serde_json::json!([done, episodes]));
    }
    let start = Instant::now();
    let mut found = dash.json("/api/whatif?run=0/done&round=6");
    while found["working"] == true {
        assert!(start.elapsed() < Duration::from_secs(60), "{found}");
        found = dash.json("/api/whatif?run=0/done&round=6");
    }
    let is_seventh = |one: &&Value| one["kind"] == "decided" && one["id"][0] == 7;
    let recorded = &events.iter().find(is_seventh).unwrap()["rationale"];
    for name in ["latency_s", "energy_j", "success_after", "violation", "planned_return"] {
        assert_eq!(found["plan"]["predicted"][name], recorded[name], "{name}");
    }
    let (status, line) = dash.get_with("/api/whatif?run=0/done&round=12", "");
    assert_eq!((status, line.contains("before the last")), (422, true), "{line}");
    for query in ["set=model.base=%2Fetc%2Fpasswd", "remove=99", "edit=0,cut=77", "edit=x"] {
        let (status, line) = dash.get_with(&format!("/api/whatif?run=0/done&round=6&{query}"), "");
        assert!([400, 422].contains(&status) && line.matches('\n').count() == 1, "{line}");
    }
    assert_eq!(dash.json("/api/map?run=0/done")["terminals_m"][0].as_array().unwrap().len(), 6);
}

#[test]
fn the_runs_of_a_dashboard_elsewhere_are_shown_over_its_restart() {
    let scratch = Scratch::with_run("dash-elsewhere");
    scratch.put("secret.txt", "secret");
    let there = Dash::start(&scratch, "127.0.0.1:0", "right");
    let url = format!("http://{}/?token=right", there.address);
    let here = Dash::of(&scratch, &url, "127.0.0.1:0", "");
    let start = Instant::now();
    while !here.get_with("/api/runs", "").1.contains("@0/0/done") {
        assert!(start.elapsed() < Duration::from_secs(30), "the run is not listed");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!here.get_with("/api/runs", "").1.contains("right"), "the token is not told");
    let bearer = "Authorization: Bearer right\r\n";
    for path in ["/api/round?round=3&run=", "/api/spent?round=3&run=", "/api/predictions?run="] {
        let own = there.get_with(&format!("{path}0/done"), bearer);
        assert_eq!(here.get_with(&format!("{path}@0/0/done"), ""), own, "{path}");
    }
    for (path, status) in [
        ("/api/round?round=99&run=@0/0/done", 404),
        ("/api/round?round=1&run=@0/../done", 404),
        ("/api/round?round=1&run=@7/0/done", 404),
        ("/secret.txt?run=@0/0/done", 404),
        ("/metrics?run=@0/0/done", 404),
    ] {
        let (found, body) = here.get_with(path, "");
        assert_eq!(found, status, "{path}");
        assert!(!body.contains("secret"), "{path}: {body}");
    }
    let mut page = Page::default();
    let mut stream = here.stream("@0/0/done", "");
    page.take(message(&mut stream));
    assert_eq!((page.rounds.len(), page.is_over), (12, true));
    // It goes away, comes back, and the page gets what it lacks: nothing.
    let address = there.address.clone();
    drop(there);
    let (status, line) = here.get_with("/api/round?round=3&run=@0/0/done", "");
    assert!(status == 503 && line.contains(&address), "{line}");
    let _again = Dash::start(&scratch, &address, "right");
    assert_eq!(here.get_with("/api/round?round=3&run=@0/0/done", "").0, 200);
    let mut stream = here.stream("@0/0/done", &page.cursor);
    let mut other = Page::default();
    let mut fresh = here.stream("@0/0/done", "");
    other.take(message(&mut fresh));
    assert_eq!(other.rounds, page.rounds);
    // The old stream was told nothing twice: its next message is about the list only.
    stream.get_ref().set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("event: state"));
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
    for url in ["https://127.0.0.1:1/", "http://127.0.0.1:1/path", "ftp://x"] {
        assert!(refused(&scratch, &["dash", url]).contains("expected the address of a dashboard"));
    }
    let dash = Dash::local(&scratch);
    assert!(refused(&scratch, &["dash", "--listen", &dash.address]).contains("cannot listen"));
}

/// The decision of a round of a run.
fn decided(folder: &Path, round: u64) -> Value {
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let mut lines = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|one| one["kind"] == "decided" && one["id"][0] == round).unwrap()
}

#[test]
fn an_exported_run_of_tilp_has_episodes_and_the_plans_of_the_record() {
    let scratch = Scratch::new("dash-export-tilp");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "own"]].concat());
    succeed(scratch.path(), &["dash", "own", "--export", "own.html"]);
    let page = fs::read_to_string(scratch.path().join("own.html")).unwrap();
    let data = page.split("id=\"export\">").nth(1).unwrap().split("</script>").next().unwrap();
    let answers = &serde_json::from_str::<Value>(data).unwrap()["answers"];
    let of = |kind: &str| {
        let all = answers.as_object().unwrap().iter();
        all.filter(|(key, _)| key.starts_with(kind)).map(|(_, one)| one).collect::<Vec<_>>()
    };
    let (episodes, plans) = (of("episode "), of("whatif "));
    assert!(episodes.len() > 3 && episodes.iter().all(|one| one["poses"].is_array()));
    assert_eq!(plans.len(), 4, "one after each state that the run has kept");
    for one in plans {
        assert!(one["changes"].as_array().unwrap().len() > 5);
        let planned = decided(&scratch.path().join("own"), one["round"].as_u64().unwrap());
        for name in ["latency_s", "energy_j", "planned_return"] {
            assert_eq!(one["plan"]["predicted"][name], planned["rationale"][name], "{name}");
        }
    }
    assert!(answers["twin"]["sub_twins"].is_array());
    // A damaged state costs time only: the planner is repeated from an earlier one.
    for file in fs::read_dir(scratch.path().join("own/checkpoint")).unwrap() {
        fs::write(file.unwrap().path(), "damaged").unwrap();
    }
    succeed(scratch.path(), &["dash", "own", "--export", "damaged.html"]);
    assert_eq!(fs::read_to_string(scratch.path().join("damaged.html")).unwrap(), page);
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
