//! `tilp adapter`, `tilp proxy` and `tilp profile device`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::bad_input::{assert_names, refused};
use crate::{Scratch, run, succeed, text, tilp};

const TILP: &str = env!("CARGO_BIN_EXE_tilp");

/// What `tilp adapter check` says of the program's own adapter.
fn checked(folder: &Path, kind: &str, arguments: &[&str]) -> serde_json::Value {
    let own = ["adapter", "check", kind, "--timeout-s", "60", TILP, "adapter", kind];
    let said = succeed(folder, &[&own[..], arguments].concat());
    serde_json::from_str(&said).unwrap()
}

#[test]
fn every_simulated_adapter_answers() {
    let scratch = Scratch::new("adapters");
    let folder = scratch.path();
    let probe = checked(folder, "probe", &["--simulated", "tiny", "--terminal", "2"]);
    assert!(probe["answer"]["gain_db"].as_f64().unwrap() < -60.0, "{probe}");
    assert_eq!(probe["hello"]["modelled"], true);
    let actuator = checked(folder, "actuator", &["--simulated"]);
    assert_eq!(actuator["answer"]["bandwidth_hz"], 1e6);
    let meter = checked(folder, "meter", &["--modelled"]);
    assert_eq!(
        meter["answer"],
        serde_json::json!({"compute_j": 0.0, "radio_j": 0.0, "modelled": true})
    );
    for kind in ["probe", "actuator", "meter", "robot"] {
        let schema = succeed(folder, &["adapter", "schema", kind]);
        assert!(schema.contains(&format!("\"adapter\": \"{kind}\"")), "{schema}");
    }
}

#[test]
fn a_simulated_robot_runs_an_episode_and_the_same_one_ends_the_same() {
    let scratch = Scratch::with_run("adapters-robot");
    let robot = ["adapter", "robot", "tiny", "--terminal", "1"];
    let mut child = tilp(scratch.path())
        .args(robot)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for (id, episode) in [(1, 5), (2, 5)] {
        let ask = format!(r#"{{"model":"done/model.safetensors","episode":{episode}}}"#);
        writeln!(stdin, r#"{{"version":1,"id":{id},"ask":{ask}}}"#).unwrap();
    }
    writeln!(stdin, r#"{{"version":1,"id":3,"ask":{{"model":"none","episode":1}}}}"#).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["adapter"], "robot");
    assert!(lines[1]["answer"]["success"].is_boolean(), "{said}");
    assert_eq!(lines[1]["answer"], lines[2]["answer"]);
    assert!(lines[3]["error"].as_str().unwrap().starts_with("none: "), "{said}");
    assert!(output.status.success());
}

#[test]
fn what_no_adapter_can_be_is_one_line() {
    let scratch = Scratch::new("adapters-refused");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["adapter", "probe"], &["--proxy"]),
        (&["adapter", "probe", "--simulated", "tiny", "--terminal", "6"], &["6", "0 to 5"]),
        (&["adapter", "check", "probe", "echo", "hello"], &["probe `echo`", "no greeting"]),
        (&["adapter", "check", "robot", "true"], &["--model"]),
        (&["adapter", "check", "meter", "./none"], &["meter `./none` cannot be started"]),
        (&["adapter", "meter", "--modelled", "--clock-hz", "0"], &["--clock-hz = 0"]),
    ];
    for (arguments, words) in cases {
        assert_names(&refused(&scratch, arguments), words);
    }
    // Questions that are none end an adapter with exit code 1.
    let mut child = tilp(scratch.path())
        .args(["adapter", "actuator", "--simulated"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"what?\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_names(&text(&output.stderr), &["a line is no question"]);
}

/// A child that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_proxy_of_a_scenario_passes_bytes_on_and_is_granted_a_band_by_the_actuator() {
    let scratch = Scratch::new("proxy");
    let folder = scratch.path();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    // Socket paths are short.
    let socket = std::env::temp_dir().join(format!("tilp-cli-{}.sock", std::process::id()));
    let socket = socket.to_str().unwrap();
    let mut command = tilp(folder);
    command.args(["proxy", "tiny", "--seed", "1", "--server", &address, "--control", socket]);
    command.args(["--advance", "rounds", "--signalling-bps", "1e7"]);
    let mut proxy = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(proxy.0.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let listen =
        first.strip_prefix("terminal 0 at ").unwrap().split(',').next().unwrap().to_owned();
    let mut terminal = TcpStream::connect(listen).unwrap();
    terminal.write_all(b"hello").unwrap();
    let (mut passed, _) = server.accept().unwrap();
    let mut found = [0; 5];
    passed.read_exact(&mut found).unwrap();
    assert_eq!(&found, b"hello");
    // The other five lines: by then the control socket listens.
    assert_eq!(lines.by_ref().take(5).filter(Result::is_ok).count(), 5);
    let at = ["--proxy", socket, "--terminal", "0"];
    let before = checked(folder, "probe", &at);
    let simulated = checked(folder, "probe", &["--simulated", "tiny", "--seed", "1"]);
    assert_eq!(before["answer"], simulated["answer"]);
    checked(folder, "actuator", &at);
    let status = tilp_testbed::proxy::ask_proxy(
        Path::new(socket),
        &tilp_testbed::proxy::Command::Status { version: 1, terminal: 0 },
    );
    let tilp_testbed::proxy::Reply::Status { bandwidth_hz, power_w, .. } = status.unwrap() else {
        panic!("no status");
    };
    assert_eq!((bandwidth_hz, power_w), (Some(1e6), Some(0.1)));
}

#[test]
fn a_proxy_without_a_channel_is_one_line() {
    let scratch = Scratch::new("proxy-refused");
    scratch.put("rates.csv", "terminal,start_s,rate_bps,delay_s,outage\n0,0,fast,0,0\n");
    scratch.put("gains.csv", "a,b\n-90,x\n");
    let server = ["--server", "127.0.0.1:9"];
    let cases: [(&[&str], &[&str]); 4] = [
        (&["proxy", "rates.csv"], &["rates.csv", "rate_bps = fast", "line 2"]),
        (&["proxy", "gains.csv"], &["gains.csv", "terminal 1 is `x`"]),
        (&["proxy", "teeny"], &["teeny"]),
        (&["proxy", "tiny", "--signalling-bps", "-1"], &["-1"]),
    ];
    for (arguments, words) in cases {
        assert_names(&refused(&scratch, &[arguments, &server].concat()), words);
    }
}

#[test]
fn a_device_is_profiled_for_the_hardware_table() {
    let scratch = Scratch::new("profile-device");
    let arguments = ["profile", "device", "tiny", "--seconds", "0.02", "--clock-hz", "1e9"];
    let toml = succeed(scratch.path(), &arguments);
    assert_names(&toml, &["[hardware]", "clock_hz = 1e9", "operations_per_cycle", "# cut 2:"]);
    // What is printed is a scenario's table.
    scratch.put("mine.toml", format!("extends = \"tiny\"\n{toml}"));
    succeed(scratch.path(), &["scenario", "check", "mine.toml"]);
    let json = succeed(scratch.path(), &[&arguments[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["cuts"][0]["operations_per_second"].as_f64().unwrap() > 1e6, "{json}");
    assert!(json["energy_is_modelled"].is_boolean());
    assert_names(&refused(&scratch, &["profile", "device", "--seconds", "0"]), &["--seconds = 0"]);
    let profile = run(scratch.path(), &["profile", "device", "profile-smolvla"]);
    assert_eq!(profile.status.code(), Some(2));
}
