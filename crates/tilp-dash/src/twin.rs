//! Twin: the rounds of a run shown to a twin that calibrates and to one that never does.

use std::sync::{Mutex, PoisonError};

use tilp::experiment::RunError;
use tilp::experiment::replay::{Replay, forecasts, report};
use tilp::scenario::method;

use crate::http::Response;
use crate::origin::{history, one_line, origin};
use crate::run::Run;

/// Rounds times terminals of a run that is shown to twins here.
const MOST_ROWS: usize = 200_000;

/// The report that was asked for last: id and fingerprint of the run, its rounds, and the text.
#[derive(Debug, Default)]
pub(crate) struct Reported(Mutex<Option<(String, u64, u64, String)>>);

/// What `tilp twin` says of a run.
pub(crate) fn twin(run: &Run, reported: &Reported) -> Result<Response, Response> {
    let key = (run.place.id.clone(), run.fingerprint(), run.last_round());
    let mut kept = reported.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((id, fingerprint, rounds, text)) = &*kept
        && (id, fingerprint, rounds) == (&key.0, &key.1, &key.2)
    {
        return Ok(Response::json(text.as_bytes()));
    }
    let replay = replay(run)?;
    let found = report(&replay, &forecasts(&replay));
    let text = serde_json::to_string(&found).unwrap_or_default();
    *kept = Some((key.0, key.1, key.2, text.clone()));
    Ok(Response::json(text))
}

fn replay(run: &Run) -> Result<Replay, Response> {
    let (scenario, seed) = origin(run)?;
    let manifest = run.about().manifest;
    let name = manifest["method"].as_str().unwrap_or_default();
    // A method may name a program; none is started for a page.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    if !name.chars().all(is_plain) {
        return Err(Response::error(422, "the method is not one of the program"));
    }
    let method = method(name).map_err(|error| Response::error(422, one_line(&error)))?;
    let history = history(run)?;
    let n = history.terminals.len();
    if n > MOST_ROWS {
        let line = format!("{n} rows of terminals, at most {MOST_ROWS} here: use tilp twin DIR");
        return Err(Response::error(422, line));
    }
    let wrong = |error: RunError| Response::error(422, one_line(&error));
    Replay::of_events(scenario, method, seed, history).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Place;
    use crate::fixture::{Scratch, lines, rows};
    use tilp::scenario::Scenario;

    #[test]
    fn a_run_that_no_twin_can_be_shown_is_refused_and_no_program_is_started() {
        let scratch = Scratch::new("twin");
        let lines = lines(3);
        scratch.put("run/events.jsonl", lines.concat());
        scratch.put("run/rounds.csv", rows(&lines));
        scratch.put("run/scenario.toml", Scenario::load("tiny", &[]).unwrap().to_toml());
        for (method, part) in [
            ("exec:touch pwned", "not one of the program"),
            ("cmd:touch pwned", "not one of the program"),
            ("/bin/true", "not one of the program"),
            ("nobody", "nobody"),
            ("tilp", "events.jsonl"),
            ("fedavg", "side by side"),
        ] {
            let manifest = format!(r#"{{"method":"{method}","seed":3}}"#);
            scratch.put("run/manifest.json", manifest);
            let (id, path) = ("0/run".to_owned(), scratch.path().join("run"));
            let run = Run::new(Place { id, path, study: None });
            let refused = twin(&run, &Reported::default()).unwrap_err();
            let line = String::from_utf8(refused.body).unwrap();
            assert!(line.contains(part) && line.matches('\n').count() == 1, "{method}: {line}");
        }
    }
}
