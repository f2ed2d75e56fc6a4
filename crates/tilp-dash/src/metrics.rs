//! `/metrics`: the last round of every run, in the text format of Prometheus.

use std::fmt::Write;

use serde_json::Value;

use crate::hub::Hub;
use crate::run::{About, State};

/// Name, help, and where its value is in the last row or the summary.
const GAUGES: [(&str, &str, &str); 9] = [
    ("tilp_round", "Last executed round", "round"),
    ("tilp_clock_seconds", "Simulated time", "clock_s"),
    ("tilp_success_ratio", "Success at the last report measurement", "success"),
    ("tilp_round_latency_seconds", "Slowest terminal of the last round", "latency_s"),
    ("tilp_round_energy_joules", "Energy of all terminals in the last round", "energy_j"),
    ("tilp_round_air_bytes", "Bytes on the air in the last round, both ways", "air_bytes"),
    ("tilp_round_scheduled", "Terminals scheduled in the last round", "n_scheduled"),
    ("tilp_round_late", "Terminals late in the last round", "n_late"),
    ("tilp_round_loss", "Training loss of the last round", "loss"),
];

/// The metrics of all runs.
pub(crate) fn metrics(hub: &Hub) -> String {
    let runs: Vec<(String, About)> = hub
        .runs()
        .iter()
        .map(|run| {
            let about = run.about();
            (labels(&run.place.id, &about), about)
        })
        .collect();
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: &dyn Fn(&About) -> Option<f64>| {
        let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} gauge\n");
        for (labels, about) in &runs {
            if let Some(value) = value(about) {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
    };
    for (name, help, key) in GAUGES {
        gauge(name, help, &|about| about.last[key].as_f64());
    }
    gauge("tilp_rounds", "Rounds of the scenario", &|about| about.scenario["rounds"].as_f64());
    gauge("tilp_success_final_ratio", "Success on final episodes", &|about| {
        about.summary["success_final"].as_f64()
    });
    gauge("tilp_running", "1 while a process works on the run", &|about| {
        Some(f64::from(u8::from(about.state == State::Running)))
    });
    text
}

fn labels(id: &str, about: &About) -> String {
    let word = |name: &str| match &about.manifest[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let pairs = [
        ("run", id.to_owned()),
        ("method", word("method")),
        ("scenario", word("scenario")),
        ("seed", word("seed")),
    ];
    let pairs = pairs.map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)));
    pairs.join(",")
}

/// The value of a label. Names come from files: they must not end the line.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Scratch, lines, rows};

    #[test]
    fn every_run_has_the_values_of_its_last_row_and_labels_that_cannot_end_a_line() {
        let scratch = Scratch::new("metrics");
        let lines = lines(4);
        scratch.put("run/events.jsonl", lines.concat());
        scratch.put("run/rounds.csv", rows(&lines));
        scratch.put("run/manifest.json", r#"{"method":"a\"b\nc","seed":3,"scenario":"tiny"}"#);
        let text = metrics(&Hub::new(vec![scratch.path().to_owned()]));
        let labels = r#"{run="0/run",method="a\"b\nc",scenario="tiny",seed="3"}"#;
        for line in [
            format!("tilp_round{labels} 4"),
            format!("tilp_clock_seconds{labels} 8"),
            format!("tilp_success_ratio{labels} 0.25"),
            format!("tilp_round_scheduled{labels} 2"),
            "# TYPE tilp_running gauge".to_owned(),
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(!text.contains("tilp_success_final_ratio{"), "it is not finished");
    }
}
