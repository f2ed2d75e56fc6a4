//! Several runs side by side: those of a study, or those of one scenario.
//!
//! A study keeps metrics and curve of each finished run in `runs.jsonl`. Other runs are read from
//! their folders, so that an unfinished study is shown too.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Value, json};
use tilp::record::RoundRow;
use tilp::statistics::bootstrap_mean;

use crate::bounded::{open, text};
use crate::hub::Hub;
use crate::run::Run;

/// Runs that are compared at a time.
const MOST_RUNS: usize = 2000;
/// Folders that are read for it. The rows of a run take about 200 bytes each.
const MOST_FOLDERS: usize = 500;
/// Bytes of a line of `runs.jsonl`.
const MOST_LINE: usize = 4 << 20;
/// Metrics of the table: names as in `summary.json`.
const METRICS: [&str; 12] = [
    "success_final",
    "success_far",
    "success_worst_task",
    "rta_0.7",
    "tta_s_0.7",
    "eta_j_0.7",
    "latency_p50_s",
    "energy_total_j",
    "air_total_bytes",
    "volume_total_bytes",
    "clock_total_s",
    "late_total",
];

/// Point, method, seed and replicate: what a run of a study is.
type Key = (String, String, u64, u64);

/// The runs of a study or of a scenario, and a row for each method.
pub(crate) fn compare(hub: &Hub, study: Option<&str>, scenario: Option<&str>) -> Option<Value> {
    let place = study.map(|id| hub.study(id));
    let mut runs: BTreeMap<Key, Value> = BTreeMap::new();
    if let Some(place) = &place {
        runs = kept(&place.as_ref()?.path.join("runs.jsonl"));
    }
    let mut n_read = 0;
    for run in hub.runs() {
        let is_of = match study {
            Some(id) => run.place.study.as_deref() == Some(id),
            None => run.place.study.is_none() && run.scenario().as_deref() == scenario,
        };
        let key = key(&run);
        if !is_of || key.1.is_empty() {
            continue;
        }
        if !runs.contains_key(&key) && n_read < MOST_FOLDERS {
            n_read += 1;
            runs.insert(key.clone(), of_folder(&run, &key));
        }
        if let Some(entry) = runs.get_mut(&key) {
            entry["id"] = json!(run.place.id);
        }
    }
    let study = place.flatten().map(|place| {
        json!({
            "aims": text(&place.path.join("aims.md")),
            "plan": text(&place.path.join("study.json")).and_then(|plan| serde_json::from_str::<Value>(&plan).ok()),
        })
    });
    let rows = rows(&runs);
    Some(json!({ "runs": runs.into_values().collect::<Vec<_>>(), "rows": rows, "study": study }))
}

/// What a study keeps of its finished runs. A damaged line is left out.
fn kept(path: &Path) -> BTreeMap<Key, Value> {
    let mut runs = BTreeMap::new();
    let Ok(file) = open(path) else { return runs };
    let lines = BufReader::new(file).lines().map_while(Result::ok).take(MOST_RUNS);
    for line in lines.filter(|line| line.len() < MOST_LINE) {
        let Ok(one) = serde_json::from_str::<Value>(&line) else { continue };
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| one[name].as_u64().unwrap_or_default();
        let key = (word("point"), word("method"), number("seed"), number("replicate"));
        let column = |name: &str| -> Value {
            one["curve"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|sample| sample[name].clone())
                .collect()
        };
        let base = one["summary"]["success_curve"][0].clone();
        let entry = entry(
            &key,
            "finished",
            &one["summary"],
            &json!({
                "base": base[1],
                "round": column("round"),
                "success": column("success"),
                "clock_s": column("clock_s"),
                "energy_j": column("energy_j"),
                "volume_bytes": column("volume_bytes"),
            }),
        );
        runs.insert(key, entry);
    }
    runs
}

fn entry(key: &Key, state: &str, summary: &Value, curve: &Value) -> Value {
    let (point, method, seed, replicate) = key;
    json!({
        "point": point,
        "method": method,
        "seed": seed,
        "replicate": replicate,
        "state": state,
        "metrics": metrics(summary),
        "curve": curve,
    })
}

/// The metrics of a table. A threshold that was not reached is none.
fn metrics(summary: &Value) -> Value {
    let value = |name: &str| match name.rsplit_once('_') {
        Some((group, at)) if at.starts_with("0.") => summary[group][at].clone(),
        _ => summary[name].clone(),
    };
    METRICS
        .iter()
        .map(|name| ((*name).to_owned(), value(name)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn key(run: &Run) -> Key {
    let about = run.about();
    let word = |name: &str| about.manifest[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| about.manifest[name].as_u64().unwrap_or_default();
    // The folder above a run of a study is that of its point.
    let point = match run.place.study {
        Some(_) => run.place.id.rsplit('/').nth(1).unwrap_or_default().to_owned(),
        // Runs of one name may differ in overrides; the hash tells them apart.
        None => {
            let hash = word("scenario_hash");
            format!("{} {}", word("scenario"), hash.get(..8).unwrap_or(&hash))
        }
    };
    (point, word("method"), number("seed"), number("replicate"))
}

fn of_folder(run: &Run, key: &Key) -> Value {
    let about = run.about();
    let curve = run.with_rows(|rows| curve(rows, &about.summary));
    entry(key, about.state.name(), &about.summary, &curve)
}

/// The run wherever its success was measured.
fn curve(rows: &[RoundRow], summary: &Value) -> Value {
    let (mut energy, mut volume) = (0.0, 0);
    let mut columns: [Vec<Value>; 5] = Default::default();
    for row in rows {
        energy += row.energy_j;
        volume += row.volume_bytes;
        let Some(success) = row.report_success else { continue };
        let cells =
            [json!(row.round), json!(success), json!(row.clock_s), json!(energy), json!(volume)];
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
    }
    let [round, success, clock_s, energy_j, volume_bytes] = columns;
    json!({
        "base": summary["success_curve"][0][1],
        "round": round,
        "success": success,
        "clock_s": clock_s,
        "energy_j": energy_j,
        "volume_bytes": volume_bytes,
    })
}

/// A row for each method at each point: means over finished runs with 95 % bootstrap intervals, and
/// how many of the runs have the metric.
fn rows(runs: &BTreeMap<Key, Value>) -> Vec<Value> {
    let names: BTreeSet<(&str, &str)> =
        runs.keys().map(|(point, method, ..)| (point.as_str(), method.as_str())).collect();
    let row = |(point, method): (&str, &str)| {
        let own = runs.iter().filter(|((p, m, ..), _)| p == point && m == method);
        let own: Vec<&Value> = own.map(|(_, run)| run).collect();
        let done: Vec<&&Value> = own.iter().filter(|run| run["state"] == "finished").collect();
        let estimate = |name: &str| {
            let values: Vec<f64> =
                done.iter().filter_map(|run| run["metrics"][name].as_f64()).collect();
            let found = bootstrap_mean(&values);
            let ends = found.as_ref().and_then(|one| one.interval);
            json!({ "n": values.len(), "mean": found.map(|one| one.mean), "interval": ends })
        };
        let metrics: serde_json::Map<String, Value> =
            METRICS.iter().map(|name| ((*name).to_owned(), estimate(name))).collect();
        json!({ "point": point, "method": method, "runs": own.len(), "finished": done.len(), "metrics": metrics })
    };
    names.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Scratch;

    fn line(method: &str, seed: u64, success: f64) -> String {
        json!({
            "point": "default", "method": method, "seed": seed,
            "summary": { "success_final": success, "energy_total_j": 2.0 * success, "tta_s": { "0.7": null },
                         "success_curve": [[0, 0.1], [10, success]] },
            "curve": [{ "round": 10, "success": success, "clock_s": 5.0, "energy_j": 1.0, "volume_bytes": 7 }],
        })
        .to_string()
    }

    #[test]
    fn a_study_of_200_runs_has_a_row_for_each_method_with_mean_and_interval() {
        let scratch = Scratch::new("compare");
        scratch.put("study/study.json", "{}");
        let methods = ["tilp", "random", "deficit", "<i>own</i>"];
        let lines = methods.iter().flat_map(|method| {
            (0..50).map(move |seed| line(method, seed, 0.5 + 0.01 * (seed % 5) as f64))
        });
        let mut text: String = lines.map(|line| line + "\n").collect();
        text += "not json\n";
        scratch.put("study/runs.jsonl", text);
        let hub = Hub::new(vec![scratch.path().to_owned()]);
        let found = compare(&hub, Some("0/study"), None).unwrap();
        assert_eq!(found["runs"].as_array().unwrap().len(), 200);
        let rows = found["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 4);
        let success = &rows[0]["metrics"]["success_final"];
        assert!((success["mean"].as_f64().unwrap() - 0.52).abs() < 1e-12 && success["n"] == 50);
        assert!(success["interval"][0].as_f64().unwrap() > 0.51);
        assert_eq!(rows[0]["metrics"]["tta_s_0.7"]["n"], 0);
        assert_eq!(found["runs"][0]["curve"]["base"], 0.1);
        assert_eq!(compare(&hub, Some("0/other"), None), None);
    }
}
