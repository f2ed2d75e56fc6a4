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
    /// Reads a table of total gains in dB: a header line, then one line per round with one
    /// comma-separated value per terminal.
    pub fn parse(text: &str, n_terminals: usize) -> Result<Self, TraceError> {
        let mut rounds = Vec::new();
        for (index, line) in text.lines().skip(1).filter(|line| !line.trim().is_empty()).enumerate()
        {
            rounds.push(parse_row(line, index + 1, n_terminals)?);
        }
        if rounds.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(Self::from_total_gains(&rounds))
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

fn parse_row(line: &str, row: usize, n_terminals: usize) -> Result<Vec<f64>, TraceError> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != n_terminals {
        return Err(TraceError::Terminals { row, found: cells.len(), expected: n_terminals });
    }
    let gain = |(terminal, cell): (usize, &&str)| {
        let wrong = || TraceError::Value { row, terminal, value: (*cell).to_owned() };
        let gain_db: f64 = cell.parse().map_err(|_| wrong())?;
        let gain = crate::units::from_db(gain_db);
        if gain.is_finite() && gain > 0.0 { Ok(gain) } else { Err(wrong()) }
    };
    cells.iter().enumerate().map(gain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_split_into_mean_gain_and_fading() {
        let trace = Trace::parse("a,b\n-100,-90\n-110,-90\n", 2).unwrap();
        assert!((trace.gains()[0].0 - 0.55e-10).abs() < 1e-16);
        assert!((trace.fading_powers(1)[0] - 1.0 / 0.55).abs() < 1e-12);
        assert_eq!(trace.fading_powers(1), trace.fading_powers(3));
    }

    #[test]
    fn a_trace_with_nan_names_row_and_terminal() {
        let error = Trace::parse("a,b\n-100,nan\n", 2).unwrap_err().to_string();
        assert_eq!(error, "trace row 1, terminal 1 is `nan`, expected a finite gain in dB");
    }

    #[test]
    fn a_trace_with_the_wrong_number_of_terminals_is_refused() {
        let error = Trace::parse("a,b\n-100,-90,-80\n", 2).unwrap_err();
        assert_eq!(error, TraceError::Terminals { row: 1, found: 3, expected: 2 });
        assert_eq!(Trace::parse("a,b\n", 2), Err(TraceError::Empty));
    }
}
