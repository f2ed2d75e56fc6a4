//! Where the terminals of a run stand.

use serde_json::{Value, json};
use tilp::scenario::cell_map;

use crate::http::Response;
use crate::origin::{one_line, origin};
use crate::run::Run;

/// Places of one answer: rounds times terminals.
const MOST_PLACES: usize = 400_000;

/// The map of a run as JSON; null where places are not known.
pub(crate) fn map(run: &Run) -> Result<Value, Response> {
    let (scenario, seed) = origin(run)?;
    let found = cell_map(&scenario, seed);
    let found = found.map_err(|error| Response::error(422, one_line(&error)))?;
    let found =
        found.filter(|map| map.terminals_m.iter().map(Vec::len).sum::<usize>() <= MOST_PLACES);
    Ok(found.map_or(Value::Null, |map| {
        let rounded =
            |all: &Vec<[f64; 2]>| all.iter().map(|place| place.map(centimetres)).collect();
        let rounds: Vec<Vec<[f64; 2]>> = map.terminals_m.iter().map(rounded).collect();
        json!({ "station_m": map.station_m, "terminals_m": rounds, "walls_m": map.walls_m })
    }))
}

/// Centimetres are enough to be drawn.
fn centimetres(metres: f64) -> f64 {
    (metres * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Place;
    use crate::fixture::Scratch;
    use tilp::scenario::Scenario;

    #[test]
    fn a_map_is_that_of_scenario_and_seed_or_none() {
        let scratch = Scratch::new("map");
        let of = |scenario: &str, more: &[&str]| {
            let more: Vec<String> = more.iter().map(|&one| one.to_owned()).collect();
            let scenario = Scenario::load(scenario, &more).unwrap();
            scratch.put("run/scenario.toml", scenario.to_toml());
            scratch.put("run/manifest.json", r#"{"method":"tilp","seed":5}"#);
            let (id, path) = ("0/run".to_owned(), scratch.path().join("run"));
            (map(&Run::new(Place { id, path, study: None })), scenario)
        };
        let (found, scenario) = of("tiny", &[]);
        let found = found.unwrap();
        let drawn = cell_map(&scenario, 5).unwrap().unwrap();
        assert_eq!(found["terminals_m"][0].as_array().unwrap().len(), 6);
        let x = found["terminals_m"][0][3][0].as_f64().unwrap();
        assert!((x - drawn.terminals_m[0][3][0]).abs() < 0.006);
        let (found, _) = of("factory-rt", &[]);
        assert!(found.unwrap()["terminals_m"].as_array().unwrap().len() > 1, "robots that move");
        let (found, _) = of("factory-rt", &["cell.trace=\"/etc/passwd\""]);
        assert_eq!(found.unwrap(), Value::Null);
        scratch.put("run/scenario.toml", "= =");
        let run =
            Run::new(Place { id: "0/run".into(), path: scratch.path().join("run"), study: None });
        assert_eq!(map(&run).unwrap_err().status, 422);
    }
}
