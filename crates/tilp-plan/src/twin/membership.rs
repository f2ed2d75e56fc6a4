//! Terminals that join and leave. What was learned of a terminal is kept, present or absent;
//! nothing that was learned of the others changes.
//!
//! Within a round everything in the twin has the order of the observation. [`Twin::attend`]
//! establishes this order whenever the members of the cell have changed.

use std::collections::BTreeMap;

use super::Twin;
use super::channel::ChannelSeen;
use super::network::Calibration;
use super::task::{TaskPart, TaskTwin, deviation_of};
use super::training::TrainingPart;
use crate::cost::Hardware;
use crate::round::{Observation, SuccessCount, TerminalId, TerminalReport};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::units::Hertz;

/// State of the twin for one terminal.
#[derive(Clone, Debug, PartialEq)]
struct TerminalPart {
    hardware: Hardware,
    task: usize,
    calibration: Calibration,
    training: TrainingPart,
    success: TaskPart,
    channel: ChannelSeen,
    /// True success that was received and is not anchored yet.
    waiting: Option<SuccessCount>,
}

/// An absent terminal.
#[derive(Clone, Debug, PartialEq)]
struct Absent {
    part: TerminalPart,
    /// The first round in which it was absent.
    since: u64,
}

/// The terminals that the twin knows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Members {
    /// Those that are present, in the order of the observation.
    present: Vec<TerminalId>,
    absent: BTreeMap<TerminalId, Absent>,
}

impl Members {
    /// Terminals 0 to `n_terminals - 1`, all present.
    pub(super) fn new(n_terminals: usize) -> Self {
        let present = (0..n_terminals as u32).map(TerminalId).collect();
        Self { present, absent: BTreeMap::new() }
    }

    /// Success of the present terminals was measured: the states of absent ones are older by one
    /// measurement.
    pub(super) fn after_measurement(&mut self, task: &TaskTwin) {
        for Absent { part, .. } in self.absent.values_mut() {
            part.success = task.after_measurement(part.success);
        }
    }
}

impl Twin {
    /// The terminals that the twin plans for, in the order of everything it holds per terminal.
    pub fn members(&self) -> &[TerminalId] {
        &self.members.present
    }

    /// State of a terminal, present or absent; `None` if it was never present.
    pub fn calibration(&self, id: TerminalId) -> Option<Calibration> {
        match self.members.present.iter().position(|known| *known == id) {
            Some(n) => Some(self.network.calibrations()[n]),
            None => self.members.absent.get(&id).map(|absent| absent.part.calibration),
        }
    }

    /// Makes the terminals of an observation the ones that the twin plans for. A terminal that left
    /// is remembered. One that returns gets its former state, with more uncertainty for the rounds
    /// of its absence. A new one starts from the data sheet that it reports.
    ///
    /// Returns the former place of each terminal; `None` if nothing has changed.
    pub fn attend(&mut self, seen: &Observation) -> Option<Vec<Option<usize>>> {
        let ids = seen.ids();
        if ids == self.members.present {
            return None;
        }
        let place = |id: &TerminalId| self.members.present.iter().position(|known| known == id);
        let from: Vec<Option<usize>> = ids.iter().map(place).collect();
        let mut before: Vec<Option<TerminalPart>> =
            (0..self.members.present.len()).map(|n| Some(self.part_of(n))).collect();
        let mut parts = Vec::with_capacity(ids.len());
        for (view, place) in seen.terminals.iter().zip(&from) {
            let stays = place.and_then(|n| before[n].take());
            parts.push(stays.unwrap_or_else(|| self.welcome(&view.report, seen.round)));
        }
        for (id, part) in std::mem::take(&mut self.members.present).into_iter().zip(before) {
            if let Some(mut part) = part {
                part.training.leave();
                part.success.leave();
                part.channel.leave();
                self.members.absent.insert(id, Absent { part, since: seen.round });
            }
        }
        self.members.present = ids;
        self.set_parts(parts);
        Some(from)
    }

    /// A terminal that joins, for the first time or again.
    fn welcome(&mut self, report: &TerminalReport, round: u64) -> TerminalPart {
        match self.members.absent.remove(&report.id) {
            Some(Absent { mut part, since }) => {
                let rounds = round.saturating_sub(since) as f64;
                part.calibration = self.network.aged(part.calibration, rounds);
                part.training = self.training.aged(part.training, rounds);
                part
            }
            None => self.fresh_part(report.hardware, report.task),
        }
    }

    fn fresh_part(&self, hardware: Hardware, task: usize) -> TerminalPart {
        TerminalPart {
            hardware,
            task,
            calibration: self.network.start(),
            training: TrainingPart::default(),
            success: self.task.new_part(),
            channel: ChannelSeen::default(),
            waiting: None,
        }
    }

    fn part_of(&self, n: usize) -> TerminalPart {
        TerminalPart {
            hardware: self.nominal.hardware[n],
            task: self.nominal.tasks[n],
            calibration: self.network.calibrations()[n],
            training: self.training.part(n),
            success: self.task.part(n),
            channel: self.channels.of(n),
            waiting: self.told.waiting_of(n),
        }
    }

    fn set_parts(&mut self, parts: Vec<TerminalPart>) {
        let tasks: Vec<usize> = parts.iter().map(|part| part.task).collect();
        self.nominal.hardware = parts.iter().map(|part| part.hardware).collect();
        self.nominal.tasks.clone_from(&tasks);
        let calibrations = parts.iter().map(|part| part.calibration).collect();
        self.network.set_terminals(self.nominal.hardware.clone(), calibrations);
        let training = parts.iter().map(|part| part.training.clone()).collect();
        self.training.set_terminals(tasks.clone(), training);
        self.task.set_terminals(tasks, &parts.iter().map(|part| part.success).collect::<Vec<_>>());
        self.channels.set_terminals(parts.iter().map(|part| part.channel).collect());
        self.told.set_waiting(parts.iter().map(|part| part.waiting).collect());
        (self.scale, self.z) = super::measures(&self.nominal, &self.options);
    }

    /// Writes the present terminals, and the state of the absent ones.
    pub(super) fn save_members(&self, snapshot: &mut Snapshot) {
        let present = self.members.present.iter().zip(&self.nominal.tasks);
        let present = present.flat_map(|(id, task)| [id.0.into(), *task as u64]);
        snapshot.put_u64("twin/members", present.collect());
        let hardware = self.nominal.hardware.iter().flat_map(hardware_numbers);
        snapshot.put_f64("twin/hardware", hardware.collect());
        let absent = || self.members.absent.iter();
        let counts = absent().flat_map(|(id, Absent { part, since })| {
            let waiting = part.waiting.unwrap_or_default();
            let (task, n_seen) = (part.task as u64, part.calibration.n_seen);
            [id.0.into(), *since, task, n_seen, waiting.successes, waiting.episodes]
        });
        snapshot.put_u64("twin/absent/counts", counts.collect());
        let numbers = absent().flat_map(|(_, Absent { part, .. })| {
            let mut numbers = hardware_numbers(&part.hardware).to_vec();
            numbers.extend(part.calibration.to_array());
            numbers.extend(part.success.anchor.unwrap_or([f64::NAN; 2]));
            numbers.extend(part.training.to_array());
            numbers
        });
        snapshot.put_f64("twin/absent/numbers", numbers.collect());
        let deviations = absent().flat_map(|(_, Absent { part, .. })| {
            let deviation = part.success.deviation;
            [deviation.mean, deviation.variance, deviation.tie]
        });
        snapshot.put_f64("twin/absent/deviations", deviations.collect());
        let channels = absent().flat_map(|(_, Absent { part, .. })| part.channel.to_array());
        snapshot.put_f64("twin/absent/channels", channels.collect());
    }

    /// Restores them. A snapshot of version 1 has none of it: its members never change.
    pub(super) fn restore_members(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const MEMBERS: &str = "twin/members";
        let n = snapshot.len_of(MEMBERS) / 2;
        if n == 0 {
            return Ok(());
        }
        let members = snapshot.u64_up_to(MEMBERS, 2 * n, u32::MAX.into())?.as_chunks::<2>().0;
        if let Some(pair) = members.windows(2).find(|pair| pair[0][0] >= pair[1][0]) {
            return Err(SnapshotError::value(MEMBERS, pair[1][0], "ids in ascending order"));
        }
        let hardware = snapshot.finite_f64("twin/hardware", 4 * n)?.as_chunks::<4>().0;
        let mut parts = Vec::with_capacity(n);
        for (&[_, task], numbers) in members.iter().zip(hardware) {
            let task = self.checked_task(MEMBERS, task)?;
            parts.push(self.fresh_part(hardware_of("twin/hardware", numbers)?, task));
        }
        self.members.present = members.iter().map(|one| TerminalId(one[0] as u32)).collect();
        self.set_parts(parts);
        self.restore_absent(snapshot)
    }

    fn restore_absent(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const COUNTS: &str = "twin/absent/counts";
        const NUMBERS: &str = "twin/absent/numbers";
        const DEVIATIONS: &str = "twin/absent/deviations";
        const CHANNELS: &str = "twin/absent/channels";
        let n = snapshot.len_of(COUNTS) / 6;
        let counts = snapshot.u64(COUNTS, 6 * n)?.as_chunks::<6>().0;
        let width = 4 + 9 + 2 + TrainingPart::N_NUMBERS;
        let numbers = snapshot.f64(NUMBERS, width * n)?;
        let deviations = snapshot.f64(DEVIATIONS, 3 * n)?.as_chunks::<3>().0;
        let channels = snapshot.f64(CHANNELS, 3 * n)?.as_chunks::<3>().0;
        let mut absent = BTreeMap::new();
        let rows =
            counts.iter().zip(numbers.chunks_exact(width)).zip(deviations.iter().zip(channels));
        for ((counts, numbers), (deviation, channel)) in rows {
            let &[id, since, task, n_seen, successes, episodes] = counts;
            let id = u32::try_from(id).map_err(|_| SnapshotError::value(COUNTS, id, "an id"))?;
            let (hardware, rest) = numbers.split_at(4);
            let (calibration, rest) = rest.split_at(9);
            let (anchor, training) = rest.split_at(2);
            // Only an anchor and a level may be unknown, each as a whole.
            let known = [calibration, &training[2..]].concat();
            let halves = [anchor, &training[..2]].map(|one| one[0].is_nan() != one[1].is_nan());
            if known.iter().any(|number| number.is_nan()) || halves.contains(&true) {
                return Err(SnapshotError::value(NUMBERS, "NaN", "a number"));
            }
            let part = TerminalPart {
                hardware: hardware_of(NUMBERS, hardware)?,
                task: self.checked_task(COUNTS, task)?,
                calibration: Calibration::from_slice(calibration, n_seen),
                training: TrainingPart::from_slice(training),
                success: TaskPart {
                    anchor: (!anchor[0].is_nan()).then_some([anchor[0], anchor[1]]),
                    deviation: deviation_of(DEVIATIONS, deviation)?,
                    shared_doubt: 0.0,
                },
                channel: ChannelSeen::from_array(CHANNELS, *channel)?,
                waiting: (episodes > 0).then_some(SuccessCount { successes, episodes }),
            };
            absent.insert(TerminalId(id), Absent { part, since });
        }
        self.members.absent = absent;
        Ok(())
    }

    fn checked_task(&self, name: &str, task: u64) -> Result<usize, SnapshotError> {
        let n_tasks = self.nominal.n_tasks;
        let known = usize::try_from(task).ok().filter(|task| *task < n_tasks);
        known.ok_or_else(|| SnapshotError::value(name, task, format!("a task below {n_tasks}")))
    }
}

fn hardware_numbers(hardware: &Hardware) -> [f64; 4] {
    let Hardware { operations_per_cycle, clock, energy_coefficient, noise_w_per_hz } = *hardware;
    [operations_per_cycle, clock.0, energy_coefficient, noise_w_per_hz]
}

fn hardware_of(name: &str, numbers: &[f64]) -> Result<Hardware, SnapshotError> {
    match numbers.iter().find(|number| !(number.is_finite() && **number > 0.0)) {
        Some(number) => Err(SnapshotError::value(name, number, "a positive number")),
        None => Ok(Hardware {
            operations_per_cycle: numbers[0],
            clock: Hertz(numbers[1]),
            energy_coefficient: numbers[2],
            noise_w_per_hz: numbers[3],
        }),
    }
}
