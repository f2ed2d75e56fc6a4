//! Adapters as child programs, good and bad, and the reference implementations.

use std::path::PathBuf;

use tilp_core::units::Hertz;

use super::child::command;
use super::lines::parse_answer;
use super::*;

const GREETING: &str = r#"{"version":1,"adapter":"probe","name":"test","modelled":true}"#;

/// A probe that a shell plays: greets, then answers every line with the script's output.
fn probe(script: &str, timeout_s: f64) -> Program {
    let script = format!("echo '{GREETING}'; {script}");
    Program { command: vec!["sh".into(), "-c".into(), script], timeout_s }
}

fn answering(answer: &str) -> Program {
    probe(&format!("while read -r line; do echo '{answer}'; done"), 20.0)
}

fn refused(program: Program) -> AdapterError {
    let mut adapter = Adapter::<Probe>::start(program).unwrap();
    adapter.ask(&ProbeAsk { round: 1 }).unwrap_err()
}

#[test]
fn an_adapter_greets_and_answers_in_turn() {
    let script = "n=1; while read -r line; do \
        echo \"{\\\"version\\\":1,\\\"id\\\":$n,\\\"answer\\\":{\\\"gain_db\\\":-9$n}}\"; \
        n=$((n+1)); done";
    let mut adapter = Adapter::<Probe>::start(probe(script, 20.0)).unwrap();
    assert_eq!(adapter.hello().unwrap().name, "test");
    assert!(adapter.hello().unwrap().modelled);
    for round in 1..=3 {
        let answer = adapter.ask(&ProbeAsk { round }).unwrap();
        assert_eq!(answer.gain_db, -90.0 - round as f64);
    }
}

#[test]
fn a_program_that_is_not_there_or_greets_wrongly_is_named() {
    let start = |command: &[&str], timeout_s| {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Adapter::<Probe>::start(Program { command, timeout_s }).err().unwrap().to_string()
    };
    assert!(start(&["./no-such-program"], 5.0).starts_with("probe `./no-such-program` cannot be"));
    assert!(start(&[], 5.0).contains("its command is empty"));
    assert!(start(&["true"], -1.0).contains("timeout_s = -1"));
    assert!(start(&["sh", "-c", "exit 3"], 20.0).contains("ended: exit status: 3"));
    assert!(start(&["echo", "hello"], 20.0).contains("a line is no greeting"));
    let meter = GREETING.replace("probe", "meter");
    assert!(start(&["echo", &meter], 20.0).contains("adapter = meter, expected probe"));
    let old = GREETING.replace(":1,", ":0,");
    assert!(start(&["echo", &old], 20.0).contains("version = 0, expected 1"));
}

#[test]
fn silence_crashes_and_garbage_are_errors_of_their_own() {
    assert!(matches!(refused(probe("sleep 60", 0.05)), AdapterError::Silent { .. }));
    let crashed = refused(probe("read -r line; exit 7", 20.0));
    assert!(crashed.to_string().ends_with("ended: exit status: 7"), "{crashed}");
    let cases = [
        ("not json", "a line is no answer"),
        (r#"{"version":1,"id":1}"#, "not exactly one of answer and error"),
        (r#"{"version":1,"id":9,"answer":{"gain_db":-90}}"#, "id = 9, expected 1"),
        (r#"{"version":2,"id":1,"answer":{"gain_db":-90}}"#, "version = 2, expected 1"),
        (r#"{"version":1,"id":1,"answer":{"gain_db":900}}"#, "gain_db = 900, expected -250"),
        (r#"{"version":1,"id":1,"answer":{"gain_db":null}}"#, "a line is no answer"),
        (r#"{"version":1,"id":1,"answer":{"gain_db":-90,"more":1}}"#, "unknown field"),
    ];
    for (answer, expected) in cases {
        let error = refused(answering(answer));
        assert!(matches!(error, AdapterError::Line { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let long = refused(probe("read -r line; head -c 70000 /dev/zero; echo", 20.0));
    assert!(matches!(long, AdapterError::Line { error: LineError::TooLong, .. }), "{long}");
    let error = refused(answering(r#"{"version":1,"id":1,"error":"no antenna"}"#));
    assert_eq!(error.to_string(), "probe `sh` refused: no antenna");
}

#[test]
fn an_adapter_that_crashed_is_started_again_with_the_next_question() {
    let once = "read -r line; echo '{\"version\":1,\"id\":2,\"answer\":{\"gain_db\":-80}}'";
    let mut adapter = Adapter::<Probe>::start(probe(once, 20.0)).unwrap();
    // The answer is that of the second question.
    assert!(adapter.ask(&ProbeAsk { round: 1 }).is_err());
    assert!(adapter.hello().is_none());
    assert_eq!(adapter.ask(&ProbeAsk { round: 2 }).unwrap().gain_db, -80.0);
}

#[test]
fn a_child_does_not_get_the_secrets_of_the_program() {
    let command = command("probe", &[]);
    let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
    let names: Vec<_> = removed.iter().filter_map(|(name, _)| name.to_str()).collect();
    assert_eq!(names, ["TILP_JOIN_TOKEN", "TILP_TOKEN"]);
}

#[test]
fn both_sides_of_the_lines_fit_together() {
    let asked = concat!(
        r#"{"version":1,"id":4,"ask":{"round":2,"bandwidth_hz":1e6,"power_w":0.2}}"#,
        "\n",
        r#"{"version":1,"id":5,"ask":{"round":3,"bandwidth_hz":2e6,"power_w":0.2}}"#,
        "\n"
    );
    let mut said = Vec::new();
    serve::<Actuator>(asked.as_bytes(), &mut said, "test", true, |ask| {
        match ask.bandwidth_hz > 1.5e6 {
            true => Err("too wide".into()),
            false => Ok(ActuatorAnswer { bandwidth_hz: ask.bandwidth_hz, power_w: 0.1 }),
        }
    })
    .unwrap();
    let lines: Vec<&[u8]> = said.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    assert_eq!(Hello::parse::<Actuator>(lines[0]).unwrap().name, "test");
    let first = parse_answer::<Actuator>(lines[1], 4).unwrap();
    assert_eq!(first, Ok(ActuatorAnswer { bandwidth_hz: 1e6, power_w: 0.1 }));
    assert_eq!(parse_answer::<Actuator>(lines[2], 5).unwrap(), Err("too wide".into()));
    let garbage =
        serve::<Actuator>(&b"what?\n"[..], Vec::new(), "test", true, |_| Err("never asked".into()));
    assert!(garbage.unwrap_err().to_string().contains("a line is no question"));
}

#[test]
fn every_kind_has_a_schema() {
    for kind in ["probe", "actuator", "meter", "robot"] {
        let schema = schema(kind).unwrap();
        assert_eq!(schema["adapter"], kind);
        assert!(schema["answer"]["properties"]["answer"].is_object(), "{schema}");
    }
    assert!(schema("toaster").is_none());
}

#[test]
fn linux_wireless_statistics_become_a_gain() {
    let text = "Inter-| sta-|   Quality        |   Discarded packets\n\
                 face | tus | link level noise |  nwid  crypt\n\
                 wlan0: 0000   54.  -56.  -256        0      0\n\
                 wlp2s0: 0000   70.  -40.  -95.        0      0\n";
    let none = Signal { signal_dbm: -56.0, noise_dbm: None };
    assert_eq!(Signal::from_statistics(text, "wlan0"), Some(none));
    let both = Signal { signal_dbm: -40.0, noise_dbm: Some(-95.0) };
    assert_eq!(Signal::from_statistics(text, "wlp2s0"), Some(both));
    assert_eq!(Signal::from_statistics(text, "wlan1"), None);
    assert_eq!(Signal::from_statistics("", "wlan0"), None);
    let iw = "Connected to 00:11:22:33:44:55 (on wlan0)\n\tSSID: x\n\tsignal: -61 dBm\n";
    let signal = Signal::from_iw(iw).unwrap();
    let probe = WirelessProbe { interface: "wlan0".into(), station_dbm: 20.0, with_iw: true };
    assert_eq!(probe.answer(signal).gain_db, -81.0);
    assert_eq!(Signal::from_iw("Not connected."), None);
    assert_eq!(Signal::from_iw("signal: loud dBm"), None);
}

/// A folder of its own, gone at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn energy_counters_are_added_over_packages_and_round_their_end() {
    let scratch = Scratch(std::env::temp_dir().join(format!("tilp-rapl-{}", std::process::id())));
    let put = |domain: &str, file: &str, text: &str| {
        let folder = scratch.0.join(domain);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    };
    for (domain, name) in
        [("a:0", "package-0"), ("a:1", "package-1"), ("a:0:0", "core"), ("a:2", "psys")]
    {
        put(domain, "name", name);
        put(domain, "energy_uj", "900000\n");
        put(domain, "max_energy_range_uj", "1000000\n");
    }
    let mut rapl = Rapl::open_at(&scratch.0).unwrap();
    put("a:0", "energy_uj", "950000\n");
    put("a:1", "energy_uj", "100000\n");
    let answer = rapl.read().unwrap();
    assert!((answer.compute_j - 0.25).abs() < 1e-12, "{answer:?}");
    assert!(!answer.modelled && answer.radio_j.is_none());
    put("a:1", "energy_uj", "many\n");
    assert!(rapl.read().unwrap_err().to_string().ends_with("it is no number"));
    let none = Rapl::open_at(&scratch.0.join("nothing")).unwrap_err().to_string();
    assert!(none.contains("has no energy counter"), "{none}");
}

#[test]
fn a_modelled_meter_follows_the_cost_model_and_says_so() {
    let mut meter = ModelledMeter::new(1e-28, Hertz(1.5e9));
    let ask = MeterAsk { operations: 1e8, sending_s: 0.5, power_w: 0.2 };
    meter.read(&ask).unwrap();
    let answer = meter.read(&ask).unwrap();
    assert!((answer.compute_j - 0.045).abs() < 1e-12, "{answer:?}");
    assert!((answer.radio_j.unwrap() - 0.2).abs() < 1e-12, "{answer:?}");
    assert!(answer.modelled);
    let error = meter.read(&MeterAsk { operations: f64::NAN, ..ask }).unwrap_err();
    assert_eq!(error, "operations = NaN, expected 0 to 1e18");
}
