//! What a page in a file holds of the answers that a server would compute: some episodes, plans of some
//! rounds with and without changes, and errors of the twins.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::http::{Request, Response};
use crate::run::{Run, State};
use crate::turns::Turns;
use crate::whatif::{Repeated, kept_on_disk, prospects};
use crate::{robots, twin};

/// Terminals of which the file has episodes: the first of every task.
const MOST_TERMINALS: usize = 6;
/// Bytes of the episodes, and of the plans.
const MOST_BYTES: usize = 3 << 20;
/// Rounds that are looked ahead, as the page asks.
const AHEAD: &str = "12";

/// The answers, each under what the page asks for.
pub(crate) fn samples(run: &Run, state: &Value) -> Map<String, Value> {
    let mut answers = Map::new();
    let last = state["decided"].as_u64().unwrap_or_default();
    let decided = run.round(last).ok().and_then(|text| serde_json::from_str(&text).ok());
    let decided: Value = decided.unwrap_or_default();
    episodes(run, &decided["decided"]["terminals"], &mut answers);
    plans(run, &state["about"]["limits"], &mut answers);
    if run.about().state == State::Finished {
        let found = asked(|_| twin::twin(run, &twin::Reported::default()), &[]);
        answers.extend(found.map(|found| ("twin".to_owned(), found)));
    }
    answers
}

/// The answer to a question; none if it is refused.
fn asked(
    answer: impl FnOnce(&Request) -> Result<Response, Response>,
    query: &[(&str, String)],
) -> Option<Value> {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let request = Request { query, ..Request::default() };
    let found = Turns::default().take(|| answer(&request)).ok()?;
    serde_json::from_slice(&found.body).ok()
}

/// The first final episode of the first terminals of every task with the trained policy, and how the
/// base policy and the expert do.
fn episodes(run: &Run, plan: &Value, answers: &mut Map<String, Value>) {
    let numbers =
        |name: &str| plan[name].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let mut tasks = BTreeSet::new();
    let firsts = numbers("terminal").zip(numbers("task")).filter(|(_, task)| tasks.insert(*task));
    let mut n_bytes = 0;
    for (terminal, _) in firsts.take(MOST_TERMINALS) {
        for policy in ["trained", "base", "expert"] {
            let query = [
                ("terminal", terminal.to_string()),
                ("policy", policy.to_owned()),
                ("index", "0".to_owned()),
            ];
            let Some(found) = asked(|request| robots::episode(run, request), &query) else {
                continue;
            };
            n_bytes += found.to_string().len();
            if n_bytes > MOST_BYTES {
                return;
            }
            answers.insert(format!("episode {terminal} {policy} 0"), found);
        }
    }
}

/// The plan and some changes of it, in the rounds after the states that the run has kept; without
/// any, in the round after the first.
fn plans(run: &Run, limits: &Value, answers: &mut Map<String, Value>) {
    let repeated = Repeated::default();
    let kept: Vec<u64> = kept_on_disk(run).into_keys().collect();
    let rounds = if kept.is_empty() { vec![1] } else { kept };
    let mut n_bytes = 0;
    for round in rounds {
        let Some(mut found) = prospect(run, &repeated, round, None) else { continue };
        let changes = changes(limits, &found["plan"]["terminals"]);
        let changed = changes.into_iter().filter_map(|(name, value)| {
            let answer = prospect(run, &repeated, round, Some((name, &value)))?;
            Some(json!({ "change": [name, value], "changed": answer["changed"] }))
        });
        found["changes"] = changed.collect();
        n_bytes += found.to_string().len();
        if n_bytes > MOST_BYTES {
            return;
        }
        answers.insert(format!("whatif {round}"), found);
    }
}

/// What is expected of the round that follows, with a change or without.
fn prospect(
    run: &Run,
    repeated: &Repeated,
    round: u64,
    change: Option<(&str, &str)>,
) -> Option<Value> {
    let mut query = vec![("round", round.to_string()), ("ahead", AHEAD.to_owned())];
    query.extend(change.map(|(name, value)| (name, value.to_owned())));
    loop {
        let found = asked(|request| prospects(run, repeated, request), &query)?;
        // An answer that takes long comes in parts.
        if found["working"].is_null() {
            return Some(found);
        }
    }
}

/// Changes of limits and of single terminals, in the form of a request.
fn changes(limits: &Value, plan: &Value) -> Vec<(&'static str, String)> {
    let mut changes = Vec::new();
    for (name, factor) in
        [("deadline_s", 0.5), ("bandwidth_hz", 0.5), ("bandwidth_hz", 2.0), ("power_w", 0.5)]
    {
        let value = limits[name].as_f64().map(|value| factor * value);
        changes.extend(value.map(|value| ("set", format!("limits.{name}={value}"))));
    }
    changes.push(("set", "methods.tilp.caution=2.0".to_owned()));
    let terminals = plan.as_array().map_or(&[][..], Vec::as_slice);
    let delay = |one: &&Value| one["sure_delay_s"].as_f64().unwrap_or(0.0);
    let scheduled = terminals.iter().filter(|one| one["scheduled"] == true);
    let slowest = scheduled.max_by(|a, b| delay(a).total_cmp(&delay(b)));
    let idle = terminals.iter().find(|one| one["scheduled"] == false);
    for (name, found, rest) in [
        ("remove", slowest, ""),
        ("edit", slowest, ",scheduled=false"),
        ("edit", slowest, ",power_w=0.001"),
        ("edit", idle, ",scheduled=true"),
    ] {
        changes.extend(found.map(|one| (name, format!("{}{rest}", one["terminal"]))));
    }
    changes
}
