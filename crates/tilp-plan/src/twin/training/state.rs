//! State of the training sub-twin for each terminal, and its saved form.

use super::{Level, N_SHARED, Report, TrainingTwin};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::twin::track::Track;

/// State of one terminal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TrainingPart {
    level: Option<Level>,
    /// Rounds trained since the last aggregation.
    since: f64,
    sums: [f64; N_SHARED],
    advantage: f64,
    /// The series of its reports; none before it joins.
    series: Option<u64>,
}

impl TrainingPart {
    /// Numbers kept of an absent terminal.
    pub(crate) const N_NUMBERS: usize = 3 + N_SHARED;

    /// The terminal leaves: its copies are lost, and after a return it begins a new series.
    pub(crate) fn leave(&mut self) {
        (self.since, self.series) = (0.0, None);
    }

    /// An absent terminal as numbers.
    pub(crate) fn to_array(&self) -> [f64; Self::N_NUMBERS] {
        let [mean, variance] = level_numbers(&self.level);
        let mut numbers = [0.0; Self::N_NUMBERS];
        (numbers[0], numbers[1], numbers[2]) = (mean, variance, self.advantage);
        numbers[3..].copy_from_slice(&self.sums);
        numbers
    }

    /// Back from numbers.
    pub(crate) fn from_slice(numbers: &[f64]) -> Self {
        Self {
            level: level_of([numbers[0], numbers[1]]),
            advantage: numbers[2],
            sums: std::array::from_fn(|i| numbers[3 + i]),
            ..Self::default()
        }
    }
}

impl TrainingTwin {
    /// State of a terminal.
    pub(crate) fn part(&self, n: usize) -> TrainingPart {
        TrainingPart {
            level: self.levels[n],
            since: self.since[n],
            advantage: self.advantage[n],
            sums: self.sums[n],
            series: Some(self.series[n]),
        }
    }

    /// A terminal that returns after this number of rounds: its level has drifted.
    pub(crate) fn aged(&self, part: TrainingPart, rounds: f64) -> TrainingPart {
        let drift = rounds * self.options.drift * self.options.drift;
        let level = part.level.map(|one| Level { variance: one.variance + drift, ..one });
        TrainingPart { level, ..part }
    }

    /// Other terminals, with the groups they belong to and what is known of each.
    pub(crate) fn set_terminals(&mut self, groups: Vec<usize>, parts: Vec<TrainingPart>) {
        self.groups = groups;
        self.levels = parts.iter().map(|part| part.level).collect();
        self.since = parts.iter().map(|part| part.since).collect();
        self.advantage = parts.iter().map(|part| part.advantage).collect();
        self.sums = parts.iter().map(|part| part.sums).collect();
        let mut next = self.next_series;
        let mut begin = || {
            next += 1;
            next - 1
        };
        self.series = parts.iter().map(|part| part.series.unwrap_or_else(&mut begin)).collect();
        self.next_series = next;
    }
}

fn level_numbers(level: &Option<Level>) -> [f64; 2] {
    level.map_or([f64::NAN; 2], |level| [level.mean, level.variance])
}

fn level_of([mean, variance]: [f64; 2]) -> Option<Level> {
    (!mean.is_nan()).then_some(Level { mean, variance })
}

/// No number that is kept has a larger magnitude.
const MOST: f64 = 1e12;

/// Numbers kept of a report.
const KEPT: usize = N_SHARED + 1;

impl Persist for TrainingTwin {
    fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_f64("twin/training/weights", self.weights.clone());
        snapshot.put_f64("twin/training/covariance", self.covariance.clone());
        let [a, b, c, d] = self.track.to_array();
        snapshot.put_f64("twin/training/track", vec![self.minibatch_variance, a, b, c, d]);
        let levels = self.levels.iter().flat_map(level_numbers).collect();
        snapshot.put_f64("twin/training/levels", levels);
        snapshot.put_f64("twin/training/sums", self.sums.concat());
        snapshot.put_f64("twin/training/since", self.since.clone());
        snapshot.put_f64("twin/training/advantage", self.advantage.clone());
        let numbers =
            self.reports.iter().flat_map(|one| std::iter::once(one.log_loss).chain(one.features));
        snapshot.put_f64("twin/training/reports", numbers.collect());
        let whose = self.reports.iter().flat_map(|one| [one.round, one.series]);
        snapshot.put_u64("twin/training/whose", whose.collect());
        let groups = self.reports.iter().map(|one| one.group as u64).collect();
        snapshot.put_u64("twin/training/groups", groups);
        let series = [&self.series[..], &[self.next_series]].concat();
        snapshot.put_u64("twin/training/series", series);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let (n, n_terminals) = (self.weights.len(), self.groups.len());
        let of = |part: &str, length: usize| {
            snapshot.bounded_f64(&format!("twin/training/{part}"), length, MOST)
        };
        self.weights = of("weights", n)?.to_vec();
        self.covariance = of("covariance", n * n)?.to_vec();
        let track = of("track", 5)?;
        self.minibatch_variance = track[0];
        self.track = Track::from_slice(&track[1..]);
        const LEVELS: &str = "twin/training/levels";
        let levels = snapshot.known_f64(LEVELS, 2 * n_terminals, MOST)?;
        let is_half = |one: &&[f64; 2]| one[0].is_nan() != one[1].is_nan();
        if let Some(one) = levels.as_chunks::<2>().0.iter().find(is_half) {
            return Err(SnapshotError::value(LEVELS, format!("{one:?}"), "both numbers or none"));
        }
        self.levels = levels.as_chunks::<2>().0.iter().map(|&level| level_of(level)).collect();
        let sums = of("sums", N_SHARED * n_terminals)?;
        self.sums = sums.as_chunks::<N_SHARED>().0.to_vec();
        self.since = of("since", n_terminals)?.to_vec();
        self.advantage = of("advantage", n_terminals)?.to_vec();
        self.restore_series(snapshot)?;
        self.restore_reports(snapshot)
    }
}

impl TrainingTwin {
    /// Snapshots of version 1 have none: there the series of a terminal is its number.
    fn restore_series(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n = self.groups.len();
        (self.series, self.next_series) = ((0..n as u64).collect(), n as u64);
        if snapshot.len_of("twin/training/series") > 0 {
            const SERIES: &str = "twin/training/series";
            let series = snapshot.u64_up_to(SERIES, n + 1, MOST as u64)?;
            self.next_series = series[n];
            self.series = series[..n].to_vec();
            if let Some(one) = self.series.iter().find(|one| **one >= self.next_series) {
                let expected = format!("below {}", self.next_series);
                return Err(SnapshotError::value(SERIES, one, expected));
            }
        }
        Ok(())
    }

    fn restore_reports(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const WHOSE: &str = "twin/training/whose";
        const GROUPS: &str = "twin/training/groups";
        let n_reports = snapshot.len_of(WHOSE) / 2;
        let numbers = snapshot.bounded_f64("twin/training/reports", KEPT * n_reports, MOST)?;
        let whose = snapshot.u64_up_to(WHOSE, 2 * n_reports, MOST as u64)?.as_chunks::<2>().0;
        if let Some([_, series]) = whose.iter().find(|one| one[1] >= self.next_series) {
            let expected = format!("a series below {}", self.next_series);
            return Err(SnapshotError::value(WHOSE, series, expected));
        }
        let most = (self.n_groups as u64).saturating_sub(1);
        let groups: Vec<u64> = match snapshot.len_of(GROUPS) {
            0 => whose.iter().map(|&[_, n]| self.group_of(WHOSE, n)).collect::<Result<_, _>>()?,
            _ => snapshot.u64_up_to(GROUPS, n_reports, most)?.to_vec(),
        };
        let reports = whose.iter().zip(groups).zip(numbers.as_chunks::<KEPT>().0);
        self.reports = reports
            .map(|((&[round, series], group), v)| Report {
                round,
                series,
                group: group as usize,
                log_loss: v[0],
                features: std::array::from_fn(|i| v[1 + i]),
            })
            .collect();
        match self.reports.iter().zip(self.reports.iter().skip(1)).find(|(a, b)| a.round > b.round)
        {
            Some((_, late)) => Err(SnapshotError::value(WHOSE, late.round, "rounds in order")),
            None => Ok(()),
        }
    }

    fn group_of(&self, name: &str, terminal: u64) -> Result<u64, SnapshotError> {
        let group = usize::try_from(terminal).ok().and_then(|n| self.groups.get(n));
        let expected = || format!("a terminal below {}", self.groups.len());
        group
            .map(|&group| group as u64)
            .ok_or_else(|| SnapshotError::value(name, terminal, expected()))
    }
}
