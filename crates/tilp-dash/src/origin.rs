//! Where a run comes from: what is computed again is drawn from its scenario and seed.

use std::fmt::Display;

use tilp::record::History;
use tilp::scenario::Scenario;

use crate::bounded;
use crate::http::Response;
use crate::run::Run;

/// Bytes of the events of a run that is computed with.
const MOST_RECORD: u64 = 512 << 20;

/// Scenario and seed of a run, out of its folder alone.
pub(crate) fn origin(run: &Run) -> Result<(Scenario, u64), Response> {
    let text = bounded::text(&run.place.path.join("scenario.toml"));
    let text = text.ok_or_else(|| Response::error(404, "scenario.toml is not there"))?;
    let wrong = |error| Response::error(422, one_line(&error));
    let scenario = Scenario::from_text(&text, "scenario.toml").map_err(wrong)?;
    let seed = run.about().manifest["seed"].as_u64();
    Ok((scenario, seed.ok_or_else(|| Response::error(422, "manifest.json has no seed"))?))
}

/// All rows of a run, made of its events.
pub(crate) fn history(run: &Run) -> Result<History, Response> {
    let wrong =
        |reason: &dyn Display| Response::error(422, format!("events.jsonl: {}", one_line(&reason)));
    let bytes = bounded::bytes(&run.place.path.join("events.jsonl"), MOST_RECORD);
    let history = History::of_stream(&bytes.map_err(|error| wrong(&error))?);
    history.map_err(|reason| wrong(&reason))
}

/// An error as one line.
pub(crate) fn one_line(error: &impl Display) -> String {
    error.to_string().replace(['\n', '\r'], " ")
}
