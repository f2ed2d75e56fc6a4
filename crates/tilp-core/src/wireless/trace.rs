//! A recorded channel: gains per round and terminal, from measurement or ray tracing.

use crate::units::Gain;

/// A recorded channel: large-scale gain and fading power of every terminal over rounds.
///
/// A run longer than the recording starts it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    gains: Vec<Gain>,
    fading_powers: Vec<Vec<f64>>,
}

/// What is wrong with a recorded channel.
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
        /// What stands there.
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
        Ok(Self::from_total_gains(&linear))
    }

    /// Splits total gains into their mean over time and a fading power of mean one.
    fn from_total_gains(rounds: &[Vec<f64>]) -> Self {
        let n_rounds = rounds.len() as f64;
        let mean = |n: usize| rounds.iter().map(|row| row[n]).sum::<f64>() / n_rounds;
        let means: Vec<f64> = (0..rounds[0].len()).map(mean).collect();
        let relative = |row: &Vec<f64>| row.iter().zip(&means).map(|(g, m)| g / m).collect();
        let fading_powers = rounds.iter().map(relative).collect();
        Self { gains: means.into_iter().map(Gain).collect(), fading_powers }
    }

    /// Large-scale gain of every terminal.
    pub fn gains(&self) -> &[Gain] {
        &self.gains
    }

    /// Fading power of every terminal in a round counted from 1.
    pub fn fading_powers(&self, round: u64) -> &[f64] {
        let index = (round.max(1) - 1) % self.fading_powers.len() as u64;
        &self.fading_powers[index as usize]
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
    fn a_trace_is_split_into_mean_gain_and_fading() {
        let rounds = [vec![-100.0, -90.0], vec![-110.0, -90.0]];
        let trace = Trace::from_gains_db(&rounds, 2).unwrap();
        assert!((trace.gains()[0].0 - 0.55e-10).abs() < 1e-16);
        assert!((trace.fading_powers(1)[0] - 1.0 / 0.55).abs() < 1e-12);
        assert_eq!(trace.fading_powers(1), trace.fading_powers(3));
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
