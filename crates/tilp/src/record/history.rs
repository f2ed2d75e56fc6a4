//! All rows so far, made of the events of a run.

use super::event::{Decided, Event, EventId, Executed, read_events};
use super::files::{CALIBRATION, EPISODES, ROUNDS, TERMINALS};
use super::table::differ;
use super::{CalibrationRow, EpisodeKind, EpisodeRow, RoundRow, TerminalRow};

/// All rows of a run so far. They depend on its events only, so a resumed run
/// writes the same files as one that was never stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One row per round.
    pub rounds: Vec<RoundRow>,
    /// One row per terminal and round, round by round.
    pub terminals: Vec<TerminalRow>,
    /// One row per task and calibration.
    pub calibrations: Vec<CalibrationRow>,
    /// One row per terminal and measurement.
    pub episodes: Vec<EpisodeRow>,
    /// Names of the tasks.
    pub tasks: Vec<String>,
    /// The decision that is being executed.
    pub(super) decided: Option<Box<Decided>>,
    pub(super) last: Option<EventId>,
}

impl History {
    /// The rows of the events in the complete lines of a stream.
    pub fn of_stream(bytes: &[u8]) -> Result<Self, String> {
        let mut history = Self::default();
        for (event, number) in read_events(bytes).zip(1..) {
            history.push(&event?).map_err(|error| format!("line {number}: {error}"))?;
        }
        Ok(history)
    }

    /// Adds what an event says. An error if no run can contain it there.
    pub fn push(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Header(header) => self.tasks.clone_from(&header.tasks),
            Event::Decided(decided) => self.decide(decided)?,
            Event::Executed(executed) => self.execute(executed)?,
            Event::Calibrated(event) => {
                event.terminals.check()?;
                let row = self.last_row(event.id)?;
                row.calibration_success = event.rate();
                self.calibrations.extend(CalibrationRow::all_of(event, self.tasks.len()));
                let (kind, round) = (EpisodeKind::Calibration, event.id.0);
                self.episodes.extend(EpisodeRow::all_of(kind, round, &event.terminals));
            }
            Event::Measured(event) => {
                event.terminals.check()?;
                if event.id.0 > 0 {
                    self.last_row(event.id)?.report_success = event.rate();
                }
                let (kind, round) = (EpisodeKind::Report, event.id.0);
                self.episodes.extend(EpisodeRow::all_of(kind, round, &event.terminals));
            }
            Event::Finished(event) => {
                event.terminals.check()?;
                self.last_row(event.id)?;
                let (kind, round) = (EpisodeKind::Final, event.id.0);
                self.episodes.extend(EpisodeRow::all_of(kind, round, &event.terminals));
            }
        }
        self.last = Some(event.id());
        Ok(())
    }

    /// The id of the last event.
    pub fn last_event(&self) -> Option<EventId> {
        self.last
    }

    /// The last round that was executed; 0 before the first.
    pub fn last_round(&self) -> u64 {
        self.rounds.last().map_or(0, |row| row.round)
    }

    fn decide(&mut self, decided: &Decided) -> Result<(), String> {
        let next = self.last_round() + 1;
        if self.decided.is_some() || decided.id.0 != next {
            return Err(format!("a decision for round {}, expected round {next}", decided.id.0));
        }
        if decided.terminals.length().is_none() {
            return Err("columns of different lengths, expected one entry per terminal".into());
        }
        self.decided = Some(Box::new(decided.clone()));
        Ok(())
    }

    fn execute(&mut self, executed: &Executed) -> Result<(), String> {
        let round = executed.id.0;
        let Some(decided) = self.decided.take().filter(|decided| decided.id.0 == round) else {
            return Err(format!("round {round} was executed, expected a decision for it before"));
        };
        executed.check(decided.terminals.terminal.len())?;
        self.rounds.push(RoundRow::of(&decided, executed));
        self.terminals.extend(TerminalRow::all_of(&decided, executed));
        Ok(())
    }

    /// The row of the round that an event belongs to, which must be the last one.
    fn last_row(&mut self, id: EventId) -> Result<&mut RoundRow, String> {
        let (found, expected) = (id.0, self.last_round());
        let row = self.rounds.last_mut().filter(|row| row.round == found);
        let is_open = self.decided.is_some();
        row.filter(|_| !is_open)
            .ok_or_else(|| format!("a measurement in round {found}, expected round {expected}"))
    }
}

/// The first row of any file that is not the one expected.
pub(crate) fn rows_differ(found: &History, expected: &History) -> Option<String> {
    differ(ROUNDS, &found.rounds, &expected.rounds)
        .or_else(|| differ(CALIBRATION, &found.calibrations, &expected.calibrations))
        .or_else(|| differ(TERMINALS, &found.terminals, &expected.terminals))
        .or_else(|| differ(EPISODES, &found.episodes, &expected.episodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{events, finished, history, stream};

    /// Equality that also holds for NaN.
    fn text(history: &History) -> String {
        format!("{history:?}")
    }

    #[test]
    fn rows_come_back_from_the_stream_bit_for_bit() {
        let bytes = stream(20);
        assert_eq!(text(&History::of_stream(&bytes).unwrap()), text(&history(20)));
        let back: Vec<Event> = read_events(&bytes).map(Result::unwrap).collect();
        let again: String = back.iter().map(Event::to_line).collect();
        assert_eq!(again.as_bytes(), bytes);
    }

    #[test]
    fn a_stream_cut_anywhere_gives_the_rounds_that_are_whole() {
        let bytes = stream(4);
        for length in 0..bytes.len() {
            let found = History::of_stream(&bytes[..length]).unwrap();
            let expected = history(4);
            assert_eq!(found.rounds.len() * 3, found.terminals.len());
            let rounds = found.rounds.iter().zip(&expected.rounds);
            assert!(rounds.clone().all(|(a, b)| a.energy_j == b.energy_j), "{length}");
        }
    }

    #[test]
    fn an_absent_loss_stays_apart_from_a_broken_one() {
        let mut events = events(2);
        for (event, loss) in events.iter_mut().filter_map(|event| match event {
            Event::Executed(executed) => Some((executed.id.0, &mut executed.loss)),
            _ => None,
        }) {
            *loss = (event == 2).then(|| f64::NAN.into());
        }
        let lines: String = events.iter().map(Event::to_line).collect();
        let rows = History::of_stream(lines.as_bytes()).unwrap().rounds;
        assert_eq!(rows[0].loss, None);
        assert!(rows[1].loss.is_some_and(f64::is_nan));
    }

    #[test]
    fn events_out_of_order_or_with_gaps_are_refused() {
        let events = events(3);
        let lines = |which: &[usize]| -> Vec<u8> {
            which.iter().flat_map(|n| events[*n].to_line().into_bytes()).collect()
        };
        let n = events.len();
        assert!(History::of_stream(&lines(&(0..n).collect::<Vec<_>>())).is_ok());
        // The last event of a round may be one of those that not every round has.
        let is_last = |n: usize| events[n + 1].id().1 == 0;
        for missing in (0..n - 1).filter(|n| !is_last(*n)) {
            let rest: Vec<usize> = (0..n).filter(|n| *n != missing).collect();
            assert!(History::of_stream(&lines(&rest)).is_err(), "without {missing}");
        }
        for twice in 0..n {
            let mut doubled: Vec<usize> = (0..n).collect();
            doubled.insert(twice, twice);
            assert!(History::of_stream(&lines(&doubled)).is_err(), "{twice} twice");
        }
    }

    #[test]
    fn lists_of_other_lengths_and_impossible_counts_are_refused() {
        let lines: String = events(4).iter().map(Event::to_line).collect();
        for (from, to) in [
            (r#""cut":[2,2,1]"#, r#""cut":[2,2]"#),
            (r#""late":[false,true,false]"#, r#""late":[false,true]"#),
            (r#""unfit":[false,false,true]"#, r#""unfit":[false,true]"#),
            (r#""bytes_up":[100,200,0]"#, r#""bytes_up":[100,200,0,0]"#),
            (r#""bytes_up":[100,200,0]"#, r#""bytes_up":[18446744073709551615,1,0]"#),
            (r#""successes":[4,0],"episodes":[8,8]"#, r#""successes":[9,0],"episodes":[8,8]"#),
            (r#""successes":[4,0],"episodes":[8,8]"#, r#""successes":[4,0],"episodes":[8]"#),
            (r#""version":1"#, r#""version":2"#),
            (r#""tilp-events""#, r#""other""#),
        ] {
            assert!(lines.contains(from), "{from}");
            let changed = lines.replacen(from, to, 1);
            assert!(History::of_stream(changed.as_bytes()).is_err(), "{to}");
        }
    }

    #[test]
    fn the_end_adds_the_final_episodes() {
        let mut rows = history(4);
        let before = rows.episodes.len();
        rows.push(&finished(4)).unwrap();
        let finals: Vec<_> =
            rows.episodes[before..].iter().map(|row| (row.kind, row.round)).collect();
        assert_eq!(finals, [(EpisodeKind::Final, 4); 3]);
        assert!(rows.push(&finished(5)).is_err());
    }
}
