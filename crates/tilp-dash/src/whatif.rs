//! What if: the plan of a round with and without a change, from the record of a run.
//!
//! The planner is repeated up to the round. That may take a minute, so an answer does a part of it and
//! says how far it has come, and the page asks again. Without a question nothing is computed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tilp::experiment::{ASKED, Change, Edit, PlannerState, RecordedPlanner, WhatIfError};
use tilp::record::{Checkpoint, Identity, kept_round};
use tilp::round::TerminalId;

use crate::bounded;
use crate::http::{Request, Response};
use crate::origin::{history, one_line, origin};
use crate::run::Run;

/// Time of one answer.
const SLICE: Duration = Duration::from_millis(800);
/// Bytes of a checkpoint, and of a state that the run has kept.
const MOST_CHECKPOINT: u64 = 512 << 20;
/// Files in the folder of the checkpoint that are looked at.
const MOST_FILES: usize = 1000;
/// Places at which a state is kept for good, spread over the run.
const N_ANCHORS: u64 = 6;
/// States that are kept besides.
const N_RECENT: usize = 3;
/// Changes of one question.
const MOST_CHANGES: usize = 64;
/// Rounds that are looked ahead.
const MOST_AHEAD: usize = 100;

/// The run that was asked about last.
#[derive(Debug, Default)]
pub(crate) struct Repeated(Mutex<Option<OfRun>>);

/// The planner of a run, and states of it.
#[derive(Debug)]
struct OfRun {
    run: String,
    fingerprint: u64,
    record: Arc<RecordedPlanner>,
    identity: Identity,
    /// States that the run has kept and that were not read yet, by round.
    on_disk: BTreeMap<u64, PathBuf>,
    anchors: Vec<PlannerState>,
    recent: Vec<PlannerState>,
}

/// The answer: prospects, or how far the repetition has come.
pub(crate) fn prospects(
    run: &Run,
    repeated: &Repeated,
    request: &Request,
) -> Result<Response, Response> {
    let round = request.asked("round").and_then(|text| text.parse::<u64>().ok());
    let round = round.ok_or_else(|| Response::error(400, "round is missing, expected a number"))?;
    let change = change(request)?;
    let ahead = request.asked("ahead").map_or(Some(10), |text| text.parse::<usize>().ok());
    let ahead = ahead.filter(|rounds| (1..=MOST_AHEAD).contains(rounds));
    let ahead = ahead
        .ok_or_else(|| Response::error(400, format!("ahead, expected 1 to {MOST_AHEAD} rounds")))?;
    let mut kept = repeated.0.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = kept.as_ref().is_some_and(|kept| kept.holds(run, round));
    if !is_there {
        *kept = None;
        *kept = Some(OfRun::read(run)?);
    }
    let Some(kept) = kept.as_mut() else { return Err(Response::error(500, "nothing is kept")) };
    let last = kept.record.n_rounds();
    if round >= last {
        let line = format!(
            "round {round}, expected one before the last, {last}: the round that \
                            follows must be in the record"
        );
        return Err(Response::error(422, line));
    }
    let state = kept.advance(round).map_err(|error| refusal(&error))?;
    if state.done < round {
        let answer = json!({ "working": true, "done": state.done, "round": round });
        return Ok(Response::json(answer.to_string()));
    }
    let found = kept.record.prospects(&state, &change, ahead).map_err(|error| refusal(&error))?;
    Ok(Response::json(serde_json::to_string(&found).unwrap_or_default()))
}

fn refusal(error: &WhatIfError) -> Response {
    Response::error(422, one_line(error))
}

impl OfRun {
    fn holds(&self, run: &Run, round: u64) -> bool {
        let is_same = self.run == run.place.id && self.fingerprint == run.fingerprint();
        is_same && round < self.record.n_rounds()
    }

    fn read(run: &Run) -> Result<Self, Response> {
        let manifest = run.about().manifest;
        let method = manifest["method"].as_str().unwrap_or_default();
        if method != ASKED {
            let line =
                format!("the run is one of {method}, expected {ASKED}: only it has a twin to ask");
            return Err(Response::error(422, line));
        }
        let (scenario, seed) = origin(run)?;
        let history = history(run)?;
        let replicate = manifest["replicate"].as_u64().unwrap_or(0);
        let method = method.to_owned();
        let identity = Identity { method, seed, replicate, scenario: scenario.hash() };
        let checkpoint = checkpoint(run, &identity);
        let record =
            RecordedPlanner::new(scenario, seed, history).map_err(|error| refusal(&error))?;
        let mut anchors = vec![record.start().map_err(|error| refusal(&error))?];
        anchors.extend(checkpoint.map(|checkpoint| record.at(checkpoint)));
        Ok(Self {
            run: run.place.id.clone(),
            fingerprint: run.fingerprint(),
            record: Arc::new(record),
            identity,
            on_disk: kept_on_disk(run),
            anchors,
            recent: Vec::new(),
        })
    }

    /// The state after a round, or as far as one answer comes.
    fn advance(&mut self, round: u64) -> Result<PlannerState, WhatIfError> {
        let end = Instant::now() + SLICE;
        let step = (self.record.n_rounds() / N_ANCHORS).max(1);
        self.read_nearest(round);
        let all = self.anchors.iter().chain(&self.recent).filter(|state| state.done <= round);
        let nearest = all.max_by_key(|state| state.done).cloned();
        let Some(mut state) = nearest else { return self.record.start() };
        while state.done < round && Instant::now() < end {
            let next = ((state.done / step + 1) * step).min(round);
            state = self.record.advance(&state, next, &|| Instant::now() < end)?;
            self.keep(&state, step);
        }
        Ok(state)
    }

    /// Reads the state that the run has kept next before a round, unless a later one is known. One
    /// that cannot be used costs time only.
    fn read_nearest(&mut self, round: u64) {
        let known = self.anchors.iter().chain(&self.recent).map(|state| state.done);
        let latest = known.filter(|done| *done <= round).max().unwrap_or(0);
        let next = |one: &BTreeMap<u64, PathBuf>| {
            let found = one.range(..=round).next_back().filter(|(kept, _)| **kept > latest);
            found.map(|(kept, path)| (*kept, path.clone()))
        };
        while let Some((kept, path)) = next(&self.on_disk) {
            let bytes = bounded::bytes(&path, MOST_CHECKPOINT).ok();
            let found = bytes.and_then(|bytes| Checkpoint::from_kept_bytes(&bytes, &path).ok());
            let is_own =
                |one: &Checkpoint| one.round == kept && one.check(&self.identity, &path).is_ok();
            let found = found.filter(is_own);
            self.on_disk.remove(&kept);
            if let Some(found) = found {
                self.anchors.push(self.record.at(found));
                return;
            }
        }
    }

    fn keep(&mut self, state: &PlannerState, step: u64) {
        let known = self.anchors.iter().any(|anchor| anchor.done == state.done);
        if known {
            return;
        }
        if state.done.is_multiple_of(step) {
            self.anchors.push(state.clone());
            return;
        }
        self.recent.retain(|other| other.done != state.done);
        self.recent.push(state.clone());
        if self.recent.len() > N_RECENT {
            self.recent.remove(0);
        }
    }
}

/// The checkpoint in the folder, if it is of this run. One that cannot be used costs time only.
fn checkpoint(run: &Run, identity: &Identity) -> Option<Checkpoint> {
    let path = run.place.path.join("checkpoint/state.safetensors");
    let bytes = bounded::bytes(&path, MOST_CHECKPOINT).ok()?;
    let found = Checkpoint::planner_from_bytes(&bytes, &path).ok()?;
    found.check(identity, &path).ok()?;
    Some(found)
}

/// Files with states of the planner, by round.
pub(crate) fn kept_on_disk(run: &Run) -> BTreeMap<u64, PathBuf> {
    let entries = std::fs::read_dir(run.place.path.join("checkpoint"));
    let entries = entries.into_iter().flatten().flatten().take(MOST_FILES);
    entries
        .filter_map(|entry| Some((kept_round(entry.file_name().to_str()?)?, entry.path())))
        .collect()
}

/// The change that is asked about: `set=KEY=VALUE`, `remove=ID`, `edit=ID,cut=2,power_w=0.1`.
fn change(request: &Request) -> Result<Change, Response> {
    let all = |name: &str| {
        let own = request.query.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| value.clone()).collect::<Vec<String>>()
    };
    let (overrides, removed, edits) = (all("set"), all("remove"), all("edit"));
    if overrides.len() + removed.len() + edits.len() > MOST_CHANGES {
        return Err(Response::error(400, format!("too many changes, expected {MOST_CHANGES}")));
    }
    let wrong =
        |text: &str, expected: &str| Response::error(400, format!("{text:?}, expected {expected}"));
    let id = |text: &String| {
        let id = text.parse().map(TerminalId);
        id.map_err(|_| wrong(text, "the id of a terminal"))
    };
    let edit = |text: &String| {
        edit(text).ok_or_else(|| wrong(text, "ID,cut=2,power_w=0.1,compression=0.5,scheduled=true"))
    };
    Ok(Change {
        overrides,
        removed: removed.iter().map(id).collect::<Result<_, _>>()?,
        edits: edits.iter().map(edit).collect::<Result<_, _>>()?,
    })
}

fn edit(text: &str) -> Option<Edit> {
    let mut parts = text.split(',');
    let terminal = TerminalId(parts.next()?.parse().ok()?);
    let mut edit = Edit { terminal, scheduled: None, cut: None, power_w: None, compression: None };
    for part in parts {
        let (name, value) = part.split_once('=')?;
        match name {
            "scheduled" => edit.scheduled = Some(value.parse().ok()?),
            "cut" => edit.cut = Some(value.parse().ok()?),
            "power_w" => edit.power_w = Some(value.parse().ok()?),
            "compression" => edit.compression = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(edit)
}

#[cfg(test)]
mod tests {
    use tilp::scenario::Scenario;

    use super::*;
    use crate::discover::Place;
    use crate::fixture::{Scratch, lines, rows};

    fn request(query: &[(&str, &str)]) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Request { query, ..Request::default() }
    }

    #[test]
    fn a_change_is_read_from_the_query() {
        let asked = request(&[
            ("set", "limits.deadline_s=2"),
            ("remove", "3"),
            ("edit", "4,cut=2,scheduled=true"),
            ("edit", "5,power_w=0.1,compression=0.5"),
        ]);
        let found = change(&asked).unwrap();
        assert_eq!(found.overrides, ["limits.deadline_s=2"]);
        assert_eq!(found.removed, [TerminalId(3)]);
        assert_eq!((found.edits[0].cut, found.edits[0].scheduled), (Some(2), Some(true)));
        assert_eq!((found.edits[1].power_w, found.edits[1].cut), (Some(0.1), None));
        for (name, value) in [
            ("remove", "x"),
            ("edit", ""),
            ("edit", "4,cut=x"),
            ("edit", "4,other=1"),
            ("edit", "4,cut"),
        ] {
            assert_eq!(change(&request(&[(name, value)])).unwrap_err().status, 400, "{value}");
        }
        let many: Vec<(&str, &str)> = vec![("remove", "1"); 100];
        assert_eq!(change(&request(&many)).unwrap_err().status, 400);
    }

    #[test]
    fn what_has_no_planner_is_refused_in_one_line() {
        let scratch = Scratch::new("whatif");
        let lines = lines(3);
        scratch.put("run/events.jsonl", lines.concat());
        scratch.put("run/rounds.csv", rows(&lines));
        let (id, path) = ("0/run".to_owned(), scratch.path().join("run"));
        let run = Run::new(Place { id, path, study: None });
        let repeated = Repeated::default();
        let tiny = Scenario::load("tiny", &[]).unwrap().to_toml();
        for (manifest, scenario, part) in [
            (r#"{"method":"random","seed":3}"#, tiny.as_str(), "expected tilp"),
            ("[", tiny.as_str(), "expected tilp"),
            (r#"{"method":"tilp"}"#, tiny.as_str(), "no seed"),
            (r#"{"method":"tilp","seed":3}"#, "= =", "scenario.toml"),
            // Three terminals in the events, six in the scenario.
            (r#"{"method":"tilp","seed":3}"#, tiny.as_str(), "events.jsonl"),
        ] {
            scratch.put("run/manifest.json", manifest);
            scratch.put("run/scenario.toml", scenario);
            let run = Run::new(run.place.clone());
            let refused = prospects(&run, &repeated, &request(&[("round", "1")])).unwrap_err();
            let line = String::from_utf8(refused.body).unwrap();
            assert!(line.contains(part) && line.matches('\n').count() == 1, "{line}");
        }
        scratch.put("run/events.jsonl", [0xff, b'\n', b'{', b'\n']);
        let refused = prospects(&run, &repeated, &request(&[("round", "1")])).unwrap_err();
        assert_eq!(refused.status, 422);
        let refused = prospects(&run, &repeated, &request(&[])).unwrap_err();
        assert_eq!(refused.status, 400);
    }
}
