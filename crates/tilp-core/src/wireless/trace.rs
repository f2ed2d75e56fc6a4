//! A recorded channel: gains per round and terminal, from measurement or ray tracing.

use crate::units::Gain;

/// A recorded channel: total gains of every terminal over rounds.
///
/// A total gain is divided into a large-scale gain and a fading power. The large-scale gain of a
/// round is the mean over the rounds up to it: what a base station can know then. A run longer than
/// the recording starts it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Total gains, round by round.
    totals: Vec<Vec<f64>>,
    /// Their sums over the rounds up to each.
    sums: Vec<Vec<f64>>,
}

/// Error in a recorded channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TraceError {
    /// The file has no round.
    #[error("trace has no row, expected one row per round")]
    Empty,
    /// A row has another number of terminals.
    #[error("trace row {row} has {found} terminals, expected {expected}")]
    Terminals {
        /// Row, counted from 1 after the header.
        row: usize,
        /// Number found.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// A value is not a positive finite gain in decibels.
    #[error("trace row {row}, terminal {terminal} is `{value}`, expected a finite gain in dB")]
    Value {
        /// Row, counted from 1 after the header.
        row: usize,
        /// Terminal, counted from 0.
        terminal: usize,
        /// Contents of the file at that place.
        value: String,
    },
}

impl Trace {
    /// A channel of total gains in decibels, rounds of terminals.
    pub fn from_gains_db(rounds: &[Vec<f64>], n_terminals: usize) -> Result<Self, TraceError> {
        let linear: Result<Vec<Vec<f64>>, _> = rounds
            .iter()
            .enumerate()
            .map(|(index, row)| linear_row(row, index + 1, n_terminals))
            .collect();
        let linear = linear?;
        if linear.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(Self::from_total_gains(linear))
    }

    fn from_total_gains(totals: Vec<Vec<f64>>) -> Self {
        let mut sum = vec![0.0; totals[0].len()];
        let mut add = |row: &Vec<f64>| {
            sum.iter_mut().zip(row).for_each(|(sum, gain)| *sum += gain);
            sum.clone()
        };
        let sums = totals.iter().map(&mut add).collect();
        Self { totals, sums }
    }

    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.totals[0].len()
    }

    /// Index in the recording of a round counted from 1, and the number of earlier passes.
    fn place(&self, round: u64) -> (usize, u64) {
        let (index, length) = (round.max(1) - 1, self.totals.len() as u64);
        ((index % length) as usize, index / length)
    }

    /// Total gain of a terminal in a round counted from 1.
    pub fn total(&self, n: usize, round: u64) -> Gain {
        Gain(self.totals[self.place(round).0][n])
    }

    /// Large-scale gain of a terminal as known in a round: the mean of its total gain up to then.
    pub fn gain(&self, n: usize, round: u64) -> Gain {
        let (at, times) = self.place(round);
        let mut sum = self.sums[at][n];
        if times > 0 {
            sum += times as f64 * self.sums[self.sums.len() - 1][n];
        }
        Gain(sum / round.max(1) as f64)
    }

    /// Fading power of a terminal in a round: its total gain over its large-scale gain.
    pub fn fading_power(&self, n: usize, round: u64) -> f64 {
        self.total(n, round).0 / self.gain(n, round).0
    }

    /// Mean gain of a terminal over the whole recording. It is unknown in a cell before the end.
    pub fn mean_gain(&self, n: usize) -> Gain {
        self.gain(n, self.totals.len() as u64)
    }
}

fn linear_row(row_db: &[f64], row: usize, n_terminals: usize) -> Result<Vec<f64>, TraceError> {
    if row_db.len() != n_terminals {
        return Err(TraceError::Terminals { row, found: row_db.len(), expected: n_terminals });
    }
    let gain = |(terminal, gain_db): (usize, &f64)| {
        let gain = crate::units::from_db(*gain_db);
        let value = || gain_db.to_string();
        let is_gain = gain.is_finite() && gain > 0.0;
        if is_gain { Ok(gain) } else { Err(TraceError::Value { row, terminal, value: value() }) }
    };
    row_db.iter().enumerate().map(gain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_gain_is_the_mean_up_to_its_round_times_fading() {
        let rounds = [vec![-100.0, -90.0], vec![-110.0, -90.0]];
        let trace = Trace::from_gains_db(&rounds, 2).unwrap();
        assert_eq!((trace.gain(0, 1), trace.fading_power(0, 1)), (trace.total(0, 1), 1.0));
        assert!((trace.gain(0, 2).0 - 0.55e-10).abs() < 1e-16);
        assert!((trace.fading_power(0, 2) - 0.1 / 0.55).abs() < 1e-12);
        assert_eq!(trace.mean_gain(0), trace.gain(0, 2));
        // The recording repeats: the mean continues over all rounds.
        assert_eq!(trace.total(0, 3), trace.total(0, 1));
        assert!((trace.gain(0, 3).0 - 0.7e-10).abs() < 1e-16);
        assert!((trace.gain(0, 4).0 - 0.55e-10).abs() < 1e-16);
    }

    #[test]
    fn a_gain_does_not_depend_on_later_rounds() {
        let rounds: Vec<Vec<f64>> = (0..9).map(|k| vec![-90.0 - 1.3 * (k % 4) as f64]).collect();
        let mut other = rounds.clone();
        other[5..].iter_mut().for_each(|row| row[0] += 20.0);
        let traces = [&rounds, &other].map(|rounds| Trace::from_gains_db(rounds, 1).unwrap());
        for round in 1..=5 {
            assert_eq!(traces[0].gain(0, round), traces[1].gain(0, round));
            assert_eq!(traces[0].fading_power(0, round), traces[1].fading_power(0, round));
        }
        assert_ne!(traces[0].gain(0, 6), traces[1].gain(0, 6));
    }

    #[test]
    fn a_trace_with_nan_names_row_and_terminal() {
        let error = Trace::from_gains_db(&[vec![-100.0, f64::NAN]], 2).unwrap_err().to_string();
        assert_eq!(error, "trace row 1, terminal 1 is `NaN`, expected a finite gain in dB");
    }

    #[test]
    fn a_trace_with_the_wrong_number_of_terminals_is_refused() {
        let error = Trace::from_gains_db(&[vec![-100.0, -90.0, -80.0]], 2).unwrap_err();
        assert_eq!(error, TraceError::Terminals { row: 1, found: 3, expected: 2 });
        assert_eq!(Trace::from_gains_db(&[], 2), Err(TraceError::Empty));
    }
}
