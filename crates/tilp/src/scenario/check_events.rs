//! Checks the events of a scenario.

use super::check::Checker;
use super::events::{presence, terminal_id};
use super::load::ScenarioError;
use super::raw::{Change, Event, Raw, SuiteName, TerminalRef};
use super::robots::suite;
use super::terminals;

/// Refuses events that cannot happen; the message names field, value and expectation.
pub(super) fn events(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let mut last = 1;
    for (index, event) in raw.events.iter().enumerate() {
        let at = |field: &str| format!("events[{index}].{field}");
        last = date(checker, raw, event, last, &at)?;
        empty(checker, event, &at)?;
        if let Some(change) = &event.change {
            self::change(checker, raw, change, &at)?;
        }
        if let Some(one) = &event.interferer {
            checker.between(&at("interferer.noise_db"), one.noise_db, 0.0, 100.0)?;
            let whose = (one.terminals.as_slice(), one.sector_deg);
            hits(checker, raw, whose, &at("interferer"))?;
            lasts(checker, (one.lasts_rounds, one.lasts_share), &at("interferer"))?;
        }
        if let Some(one) = &event.blockage {
            checker.between(&at("blockage.loss_db"), one.loss_db, 0.0, 100.0)?;
            let whose = (one.terminals.as_slice(), one.sector_deg);
            hits(checker, raw, whose, &at("blockage"))?;
            lasts(checker, (one.lasts_rounds, one.lasts_share), &at("blockage"))?;
        }
    }
    members(checker, raw)
}

/// Exactly one date, inside the run, not before the event before it.
fn date(
    checker: &Checker,
    raw: &Raw,
    event: &Event,
    last: u64,
    at: &dyn Fn(&str) -> String,
) -> Result<u64, ScenarioError> {
    match (event.round, event.at) {
        (Some(round), None) => {
            checker.within(&at("round"), round, last, raw.rounds.max(last))?;
        }
        (None, Some(share)) => {
            if !(0.0..1.0).contains(&share) {
                return Err(checker.wrong(&at("at"), share, "0 up to, not including, 1"));
            }
            if event.starts(raw.rounds) < last {
                let expected = format!("a share of the run not before round {last}");
                return Err(checker.wrong(&at("at"), share, &expected));
            }
        }
        (None, None) => return Err(checker.wrong(&at("round"), "nothing", "`round` or `at`")),
        (Some(round), Some(_)) => {
            return Err(checker.wrong(&at("round"), round, "either `round` or `at`, not both"));
        }
    }
    Ok(event.starts(raw.rounds))
}

fn empty(
    checker: &Checker,
    event: &Event,
    at: &dyn Fn(&str) -> String,
) -> Result<(), ScenarioError> {
    let Event { leave, join, change, interferer, blockage, .. } = event;
    let moves = !leave.is_empty() || !join.is_empty();
    if moves || change.is_some() || interferer.is_some() || blockage.is_some() {
        return Ok(());
    }
    let expected = "one of leave, join, change, interferer, blockage";
    Err(checker.wrong(&at("leave"), "nothing", expected))
}

fn change(
    checker: &Checker,
    raw: &Raw,
    change: &Change,
    at: &dyn Fn(&str) -> String,
) -> Result<(), ScenarioError> {
    let field = |name: &str| at(&format!("change.{name}"));
    known(checker, raw, &change.terminals, &field("terminals"))?;
    let by_task = !change.tasks.is_empty() || change.count.is_some();
    if change.terminals.is_empty() != by_task {
        let expected = "either `terminals`, or `tasks` or `count` or both";
        return Err(checker.wrong(&field("terminals"), change.terminals.len(), expected));
    }
    let suite = suite(raw);
    if let Some(name) = change.tasks.iter().find(|name| suite.task_index(name).is_none()) {
        let expected = format!("some of {}", suite.tasks.join(", "));
        return Err(checker.wrong(&field("tasks"), name, &expected));
    }
    if let Some(count) = change.count {
        checker.within(&field("count"), count as u64, 1, raw.cell.n_terminals as u64)?;
    }
    if let Some(mass) = change.payload_kg {
        checker.between(&field("payload_kg"), mass, 0.0, 100.0)?;
    }
    if let Some(angle) = change.goal_turn_rad {
        checker.between(&field("goal_turn_rad"), angle, -7.0, 7.0)?;
        if raw.tasks.suite != SuiteName::Tabletop {
            let expected = "none: only the goals of the table-top suite move";
            return Err(checker.wrong(&field("goal_turn_rad"), angle, expected));
        }
    }
    checker.within(&field("demonstrations"), change.demonstrations as u64, 0, 10_000)?;
    if change.payload_kg.is_none() && change.goal_turn_rad.is_none() && change.demonstrations == 0 {
        let expected = "one of payload_kg, goal_turn_rad, demonstrations";
        return Err(checker.wrong(&field("payload_kg"), "nothing", expected));
    }
    Ok(())
}

/// Terminals or a sector, not both.
fn hits(
    checker: &Checker,
    raw: &Raw,
    (terminals, sector): (&[TerminalRef], Option<[f64; 2]>),
    at: &str,
) -> Result<(), ScenarioError> {
    known(checker, raw, terminals, &format!("{at}.terminals"))?;
    let Some([from, to]) = sector else {
        if terminals.is_empty() {
            let expected = "`terminals` or `sector_deg`";
            return Err(checker.wrong(&format!("{at}.terminals"), "nothing", expected));
        }
        return Ok(());
    };
    let field = format!("{at}.sector_deg");
    if !terminals.is_empty() {
        let expected = "either `terminals` or `sector_deg`, not both";
        return Err(checker.wrong(&field, format!("{:?}", [from, to]), expected));
    }
    let is_sector = (-360.0..=720.0).contains(&from) && to > from && to - from <= 360.0;
    if !is_sector {
        let expected = "two angles, the second at most 360 above the first";
        return Err(checker.wrong(&field, format!("{:?}", [from, to]), expected));
    }
    Ok(())
}

fn lasts(
    checker: &Checker,
    (rounds, share): (Option<u64>, Option<f64>),
    at: &str,
) -> Result<(), ScenarioError> {
    let field = format!("{at}.lasts_rounds");
    match (rounds, share) {
        (Some(rounds), None) => checker.at_least(&field, rounds, 1),
        (None, Some(share)) => checker.between(&format!("{at}.lasts_share"), share, 1e-9, 1.0),
        (None, None) => Err(checker.wrong(&field, "nothing", "`lasts_rounds` or `lasts_share`")),
        (Some(rounds), Some(_)) => {
            let expected = "either `lasts_rounds` or `lasts_share`, not both";
            Err(checker.wrong(&field, rounds, expected))
        }
    }
}

/// Every terminal exists and comes once.
fn known(
    checker: &Checker,
    raw: &Raw,
    terminals: &[TerminalRef],
    field: &str,
) -> Result<(), ScenarioError> {
    let mut seen = Vec::new();
    for terminal in terminals {
        let Some(id) = terminal_id(raw, terminal) else {
            return Err(checker.wrong(field, terminal, &existing(raw)));
        };
        if seen.contains(&id) {
            return Err(checker.wrong(field, terminal, "each terminal once"));
        }
        seen.push(id);
    }
    Ok(())
}

fn existing(raw: &Raw) -> String {
    let named = if terminals::names(raw).is_empty() { "" } else { ", or a name of [[terminals]]" };
    format!("an id below cell.n_terminals = {}{named}", raw.cell.n_terminals)
}

/// Terminals leave when they are there, join when they are not, and at least one stays.
fn members(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let presence = presence(raw);
    if presence.at(1).is_empty() {
        return Err(checker.wrong("events", raw.events.len(), "a terminal in round 1"));
    }
    let mut present = presence.at(0);
    for (index, event) in raw.events.iter().enumerate() {
        let at = |field: &str| format!("events[{index}].{field}");
        known(checker, raw, &event.leave, &at("leave"))?;
        known(checker, raw, &event.join, &at("join"))?;
        for terminal in &event.leave {
            let id = terminal_id(raw, terminal);
            if !id.is_some_and(|id| present.remove(&id)) {
                return Err(checker.wrong(&at("leave"), terminal, "a terminal that is there"));
            }
        }
        for terminal in &event.join {
            let id = terminal_id(raw, terminal);
            if !id.is_some_and(|id| present.insert(id)) {
                return Err(checker.wrong(&at("join"), terminal, "a terminal that is not there"));
            }
        }
        if present.is_empty() {
            let expected = "at least one terminal to stay";
            return Err(checker.wrong(&at("leave"), event.leave.len(), expected));
        }
    }
    Ok(())
}
