//! Which request gets which answer.

use serde_json::json;

use crate::assets;
use crate::compare::compare;
use crate::http::{Request, Response};
use crate::hub::Hub;
use crate::metrics::metrics;
use crate::run::{Missing, Run};
use crate::{map, remote, robots, twin, whatif};

impl From<Missing> for Response {
    fn from(Missing(what): Missing) -> Self {
        Self::error(404, what)
    }
}

/// The answer to a request that is not a stream.
pub(crate) fn answer(hub: &Hub, request: &Request) -> Response {
    let named = request.asked(if request.path == "/api/compare" { "study" } else { "run" });
    if let Some((place, _)) = named.and_then(remote::split)
        && let Some(remote) = hub.remotes.get(place)
    {
        return remote.answer(place, request);
    }
    match request.path.as_str() {
        "/api/runs" => Response::json(hub.list().1.as_bytes()),
        "/api/round" => of_run(hub, request, |run| {
            let round = number(request, "round")?;
            Ok(Response::json(run.round(round)?))
        }),
        "/api/spent" => of_run(hub, request, |run| {
            let round = number(request, "round")?;
            Ok(Response::json(run.spent(round).to_string()))
        }),
        "/api/terminal" => of_run(hub, request, |run| {
            let id = number(request, "terminal")?;
            let id = u32::try_from(id).map_err(|_| Missing("there is no such terminal".into()))?;
            Ok(Response::json(run.terminal(id)?.to_string()))
        }),
        "/api/predictions" => {
            of_run(hub, request, |run| Ok(Response::json(run.predictions().to_string())))
        }
        "/api/episode" => {
            of_run(hub, request, |run| hub.turns.take(|| robots::episode(run, request)))
        }
        "/api/outcomes" => {
            of_run(hub, request, |run| hub.turns.take(|| robots::outcomes(run, request)))
        }
        "/api/whatif" => of_run(hub, request, |run| {
            hub.turns.take(|| whatif::prospects(run, &hub.repeated, request))
        }),
        "/api/twin" => {
            of_run(hub, request, |run| hub.turns.take(|| twin::twin(run, &hub.reported)))
        }
        "/api/map" => of_run(hub, request, |run| {
            hub.turns.take(|| Ok(Response::json(map::map(run)?.to_string())))
        }),
        "/api/compare" => {
            let (study, scenario) = (request.asked("study"), request.asked("scenario"));
            match compare(hub, study, scenario) {
                Some(found) => Response::json(found.to_string()),
                None => Response::error(404, "there is no such study"),
            }
        }
        "/metrics" => Response::new("text/plain; version=0.0.4; charset=utf-8", metrics(hub)),
        "/api/version" => {
            Response::json(json!({ "version": env!("CARGO_PKG_VERSION") }).to_string())
        }
        path => assets::file(path).unwrap_or_else(|| Response::error(404, "there is nothing here")),
    }
}

fn of_run(
    hub: &Hub,
    request: &Request,
    answer: impl FnOnce(&Run) -> Result<Response, Response>,
) -> Response {
    let run = request.asked("run").and_then(|id| hub.run(id));
    match run {
        Some(run) => answer(&run).unwrap_or_else(|refusal| refusal),
        None => Response::error(404, "there is no such run"),
    }
}

fn number(request: &Request, name: &str) -> Result<u64, Response> {
    let given = request.asked(name).and_then(|text| text.parse().ok());
    given.ok_or_else(|| Response::error(400, format!("{name} is missing, expected a number")))
}
