//! Dated events: from the entries of a scenario to presence, work and channel of the terminals
//! in each round. All of it is a function of scenario, seed and round, so that a resumed run
//! meets the same events.

use super::raw::{self, Event, Raw, TerminalRef};
use super::{Scenario, ScenarioError, terminals};
use crate::record::EventMark;
use crate::round::TerminalId;
use crate::tasks::Suite;
use crate::wireless::Place;
use crate::world::{self, Disturbance, Disturbances, Presence};

/// So that a share which is a whole number of rounds on paper is one in binary too.
const SHARE_TOLERANCE: f64 = 1e-9;

impl Event {
    /// The round at whose start it happens.
    pub(super) fn starts(&self, rounds: u64) -> u64 {
        let done = |share: f64| (share * rounds as f64 + SHARE_TOLERANCE).floor() as u64;
        self.round.or_else(|| self.at.map(|share| done(share) + 1)).unwrap_or(1)
    }

    /// Its name, or a description.
    pub(super) fn label(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let counted = |verb: &str, count: usize| format!("{count} {verb}");
        let parts = [
            (!self.leave.is_empty()).then(|| counted("leave", self.leave.len())),
            (!self.join.is_empty()).then(|| counted("join", self.join.len())),
            self.change.as_ref().map(|_| "change of work".to_owned()),
            self.interferer.as_ref().map(|_| "interferer".to_owned()),
            self.blockage.as_ref().map(|_| "blockage".to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The last round of something that starts in round `first`.
pub(super) fn ends(first: u64, lasts: Option<u64>, share: Option<f64>, rounds: u64) -> u64 {
    let of_run = |share: f64| (share * rounds as f64).round() as u64;
    let lasts = lasts.or_else(|| share.map(of_run)).unwrap_or(1).max(1);
    first.saturating_add(lasts - 1)
}

/// The id of a terminal; none if the scenario has no such terminal.
pub(super) fn terminal_id(raw: &Raw, terminal: &TerminalRef) -> Option<TerminalId> {
    match terminal {
        TerminalRef::Id(id) => ((*id as usize) < raw.cell.n_terminals).then_some(TerminalId(*id)),
        TerminalRef::Name(name) => terminals::id_of(raw, name).map(TerminalId),
    }
}

fn ids(raw: &Raw, terminals: &[TerminalRef]) -> Vec<TerminalId> {
    terminals.iter().filter_map(|one| terminal_id(raw, one)).collect()
}

/// The events of a run, for summaries and reports.
pub(super) fn marks(raw: &Raw) -> Vec<EventMark> {
    let mark = |event: &Event| EventMark { round: event.starts(raw.rounds), name: event.label() };
    raw.events.iter().map(mark).collect()
}

/// Presence of terminals by round. A terminal whose first event is a join is absent before.
pub(super) fn presence(raw: &Raw) -> Presence {
    let changes: Vec<world::Change> = (raw.events.iter())
        .map(|event| world::Change {
            round: event.starts(raw.rounds),
            leave: ids(raw, &event.leave),
            join: ids(raw, &event.join),
        })
        .filter(|change| !change.leave.is_empty() || !change.join.is_empty())
        .collect();
    let first_change = |id: &TerminalId| {
        let names = |one: &&world::Change| one.join.contains(id) || one.leave.contains(id);
        changes.iter().find(names)
    };
    let joins_first =
        |id: &TerminalId| first_change(id).is_some_and(|change| change.join.contains(id));
    let all = Presence::constant(raw.cell.n_terminals).first;
    Presence { first: all.into_iter().filter(|id| !joins_first(id)).collect(), changes }
}

/// The state of a terminal's work from a round on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Mass on top of the payload's.
    pub payload_kg: f64,
    /// Angle of the goal place against the one that was drawn.
    pub goal_turn_rad: f64,
}

/// A terminal's work changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WorkChange {
    /// Place of the event in the scenario.
    pub event: usize,
    /// The round.
    pub round: u64,
    /// The terminal.
    pub terminal: TerminalId,
    /// Its work from then on.
    pub work: Work,
    /// Demonstrations that arrive.
    pub demonstrations: usize,
}

/// All changes of work, in the order of the rounds, for terminals with these tasks.
pub(super) fn work_changes(
    scenario: &Scenario,
    tasks: &[usize],
    suite: &Suite,
) -> Result<Vec<WorkChange>, ScenarioError> {
    let raw = &scenario.raw;
    let mut work = vec![Work::default(); raw.cell.n_terminals];
    let mut changes = Vec::new();
    for (index, event) in raw.events.iter().enumerate() {
        let Some(change) = &event.change else { continue };
        let round = event.starts(raw.rounds);
        for terminal in changed(scenario, index, change, tasks, suite)? {
            let own = &mut work[terminal.0 as usize];
            own.payload_kg = change.payload_kg.unwrap_or(own.payload_kg);
            own.goal_turn_rad = change.goal_turn_rad.unwrap_or(own.goal_turn_rad);
            let demonstrations = change.demonstrations;
            changes.push(WorkChange { event: index, round, terminal, work: *own, demonstrations });
        }
    }
    Ok(changes)
}

/// The terminals of a change: those that it names, or the first with one of its tasks.
fn changed(
    scenario: &Scenario,
    index: usize,
    change: &raw::Change,
    tasks: &[usize],
    suite: &Suite,
) -> Result<Vec<TerminalId>, ScenarioError> {
    let raw = &scenario.raw;
    if !change.terminals.is_empty() {
        return Ok(ids(raw, &change.terminals));
    }
    let suits = |id: &TerminalId| {
        let task = suite.task_name(tasks[id.0 as usize]);
        change.tasks.is_empty() || change.tasks.iter().any(|name| name == task)
    };
    let present = presence(raw).at(raw.events[index].starts(raw.rounds));
    let found: Vec<TerminalId> = present.into_iter().filter(suits).collect();
    let count = change.count.unwrap_or(found.len());
    if found.len() < count || found.is_empty() {
        return Err(ScenarioError::Range {
            field: format!("events[{index}].change.count"),
            value: count.to_string(),
            expected: format!("1 to {}, as many as are there with such a task", found.len()),
            place: scenario.place.clone(),
        });
    }
    Ok(found.into_iter().take(count).collect())
}

/// What happens on the air. Places are those of the terminals; a sector needs them.
pub(super) fn disturbances(
    scenario: &Scenario,
    places: Option<&[Place]>,
) -> Result<Disturbances, ScenarioError> {
    let raw = &scenario.raw;
    let mut all = Vec::new();
    for (index, event) in raw.events.iter().enumerate() {
        let first = event.starts(raw.rounds);
        let hit = |what: &str, terminals: &[TerminalRef], sector: Option<[f64; 2]>| {
            let field = format!("events[{index}].{what}.sector_deg");
            hit_terminals(scenario, &field, terminals, sector, places)
        };
        if let Some(one) = &event.interferer {
            all.push(Disturbance {
                first,
                last: ends(first, one.lasts_rounds, one.lasts_share, raw.rounds),
                terminals: hit("interferer", &one.terminals, one.sector_deg)?,
                noise_db: one.noise_db,
                loss_db: 0.0,
            });
        }
        if let Some(one) = &event.blockage {
            all.push(Disturbance {
                first,
                last: ends(first, one.lasts_rounds, one.lasts_share, raw.rounds),
                terminals: hit("blockage", &one.terminals, one.sector_deg)?,
                noise_db: 0.0,
                loss_db: one.loss_db,
            });
        }
    }
    Ok(Disturbances(all))
}

fn hit_terminals(
    scenario: &Scenario,
    field: &str,
    terminals: &[TerminalRef],
    sector: Option<[f64; 2]>,
    places: Option<&[Place]>,
) -> Result<Vec<TerminalId>, ScenarioError> {
    let Some(sector) = sector else { return Ok(ids(&scenario.raw, terminals)) };
    let Some(places) = places else {
        return Err(ScenarioError::Range {
            field: field.to_owned(),
            value: format!("{sector:?}"),
            expected: "a list `terminals` instead: a recorded channel has no angles".into(),
            place: scenario.place.clone(),
        });
    };
    let inside = (0..).map(TerminalId).zip(places).filter(|(_, place)| in_sector(**place, sector));
    Ok(inside.map(|(id, _)| id).collect())
}

/// Whether a place lies between two angles in degrees, counter-clockwise from the first to the
/// second. A sector of 360 degrees or more is the whole circle.
fn in_sector(place: Place, [from, to]: [f64; 2]) -> bool {
    let angle = place.y_m.atan2(place.x_m).to_degrees();
    (angle - from).rem_euclid(360.0) <= to - from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::raw_events::Blockage;

    #[test]
    fn a_share_of_the_run_is_the_round_after_that_share_is_done() {
        let at =
            |share: f64, rounds: u64| Event { at: Some(share), ..Event::default() }.starts(rounds);
        assert_eq!(at(0.0, 1000), 1);
        assert_eq!(at(0.333, 1000), 334);
        assert_eq!(at(0.333, 200), 67);
        for tenth in 0..10 {
            assert_eq!(at(f64::from(tenth) / 10.0, 1000), 100 * u64::from(tenth as u32) + 1);
            assert_eq!(at(f64::from(tenth) / 10.0, 20), 2 * u64::from(tenth as u32) + 1);
        }
        assert_eq!(Event { round: Some(7), ..Event::default() }.starts(1000), 7);
    }

    #[test]
    fn a_duration_is_counted_in_rounds_or_in_shares_of_the_run() {
        assert_eq!(ends(851, Some(100), None, 1000), 950);
        assert_eq!(ends(851, None, Some(0.1), 1000), 950);
        assert_eq!(ends(171, None, Some(0.1), 200), 190);
        assert_eq!(ends(5, None, Some(1e-6), 10), 5, "at least one round");
        assert_eq!(ends(5, Some(u64::MAX), None, 10), u64::MAX);
    }

    #[test]
    fn a_sector_goes_counter_clockwise_and_may_cross_the_east() {
        let at = |degrees: f64| {
            let angle = degrees.to_radians();
            Place { x_m: 90.0 * angle.cos(), y_m: 90.0 * angle.sin() }
        };
        let inside = |degrees: f64, sector: [f64; 2]| in_sector(at(degrees), sector);
        assert!(inside(10.0, [0.0, 60.0]) && !inside(61.0, [0.0, 60.0]));
        assert!(!inside(-1.0, [0.0, 60.0]));
        assert!(inside(-20.0, [330.0, 390.0]) && inside(29.0, [330.0, 390.0]));
        assert!(!inside(31.0, [330.0, 390.0]) && !inside(200.0, [330.0, 390.0]));
        assert!((0..360).all(|degrees| inside(f64::from(degrees), [45.0, 405.0])));
    }

    #[test]
    fn an_event_without_a_name_says_what_it_is() {
        let leave = vec![TerminalRef::Id(3)];
        let event = Event { leave, blockage: Some(Blockage::default()), ..Event::default() };
        assert_eq!(event.label(), "1 leave, blockage");
        assert_eq!(Event { name: "night shift".into(), ..event }.label(), "night shift");
    }
}
