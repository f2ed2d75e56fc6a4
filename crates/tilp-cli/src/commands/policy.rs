//! `tilp policy`.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use tilp::experiment::{Pretraining, pretrain};
use tilp::scenario::Scenario;
use tilp::split::policy::Policy as Model;

use crate::arguments::{Policy, PolicyVerb, Serve};
use crate::failure::Failure;
use crate::output;
use crate::serve::{Limits, Server};
use crate::signals::Signals;

/// Makes policies and serves them.
pub(crate) fn policy(arguments: Policy) -> Result<(), Failure> {
    match arguments.verb {
        PolicyVerb::Pretrain { scenario, overrides, narrow, steps, out } => {
            let scenario = Scenario::load(&scenario, &overrides).map_err(Failure::input)?;
            let shipped = Pretraining::shipped(&scenario);
            let how = Pretraining {
                narrow: narrow.unwrap_or(shipped.narrow),
                steps: steps.unwrap_or(shipped.steps),
                ..shipped
            };
            let file = pretrain(&scenario, &how).map_err(Failure::input)?;
            std::fs::write(&out, file).map_err(|error| at(&out, "cannot write", &error))
        }
        PolicyVerb::Serve(arguments) => serve(&arguments),
    }
}

fn at(path: &Path, what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::input(format!("{what} {}: {error}", path.display()))
}

/// Serves until a signal asks to stop.
fn serve(arguments: &Serve) -> Result<(), Failure> {
    let path = &arguments.model;
    let bytes = std::fs::read(path).map_err(|error| at(path, "cannot read", &error))?;
    let (policy, weights) =
        Model::from_safetensors(&bytes).map_err(|error| at(path, "no policy in", &error))?;
    let token = match std::env::var("TILP_TOKEN") {
        Ok(token) => Some(token).filter(|token| !token.is_empty()),
        Err(std::env::VarError::NotPresent) => None,
        // Not the system's message, which would print it.
        Err(_) => return Err(Failure::input("TILP_TOKEN is not UTF-8, expected text")),
    };
    let limits = Limits {
        message_bytes: arguments.message_bytes,
        connections: arguments.connections,
        idle: Duration::from_secs(arguments.idle_s),
        token,
    };
    let address = arguments.listen;
    let taken = |error| Failure::input(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let n = policy.architecture().observation_width();
    output::print(&format!("serving {} at ws://{address}, state of {n} numbers", path.display()))?;
    let server = Server::new(policy, weights, limits);
    server.serve(&listener, &|| signals.asked().is_some()).map_err(Failure::failed)?;
    Err(Failure::signal(signals.asked().unwrap_or_default(), "stopped"))
}
