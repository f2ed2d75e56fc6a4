//! The channel that a proxy replays: for every terminal, conditions that hold from a time on.

use tilp_core::units::{BitsPerSecond, Gain, Seconds, from_db};
use tilp_core::wireless::Recording;

/// Most steps of one terminal.
const MAX_STEPS: usize = 1_000_000;
/// Highest rate that is replayed, in bits a second.
const MAX_RATE_BPS: f64 = 1e11;
/// Longest delay in seconds.
const MAX_DELAY_S: f64 = 60.0;

/// What a link is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quality {
    /// A radio channel: the rate follows from band and power.
    Air {
        /// Large-scale gain.
        gain: Gain,
        /// Power of the small-scale fading.
        fading_power: f64,
        /// Noise power spectral density.
        noise_w_per_hz: f64,
    },
    /// A measured rate, whatever band and power are.
    Rate(BitsPerSecond),
}

/// Conditions of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// What sets the rate.
    pub quality: Quality,
    /// Delay of every byte in addition to its transmission.
    pub delay: Seconds,
    /// Nothing passes.
    pub outage: bool,
}

/// Conditions that hold from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Seconds after the start of the replay.
    pub start_s: f64,
    /// What holds from then on.
    pub conditions: Conditions,
}

/// Steps of every terminal. The replay starts again after its period.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedChannel {
    steps: Vec<Vec<Step>>,
    period_s: f64,
}

/// What is wrong with a channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} = {value}, expected {expected} (channel, line {line})")]
pub struct ChannelError {
    /// The field at fault.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What would be right.
    pub expected: &'static str,
    /// Line of the table, counted from 1; 0 for the whole.
    pub line: usize,
}

fn wrong(
    field: &'static str,
    value: impl ToString,
    expected: &'static str,
    line: usize,
) -> ChannelError {
    let value: String = value.to_string().chars().take(40).collect();
    ChannelError { field, value, expected, line }
}

impl ReplayedChannel {
    /// A channel with a row of conditions for every interval, a column for every terminal.
    pub fn from_rows(rows: &[Vec<Conditions>], interval: Seconds) -> Result<Self, ChannelError> {
        let n_terminals = rows.first().map_or(0, Vec::len);
        if n_terminals == 0 || rows.iter().any(|row| row.len() != n_terminals) {
            return Err(wrong("terminals", n_terminals, "the same number in every row", 0));
        }
        if !(interval.0.is_finite() && interval.0 > 0.0) {
            return Err(wrong("interval_s", interval.0, "above zero", 0));
        }
        let step = |n: usize| {
            let rows = rows.iter().enumerate();
            let at = |(k, row): (usize, &Vec<Conditions>)| Step {
                start_s: k as f64 * interval.0,
                conditions: row[n],
            };
            rows.map(at).collect()
        };
        let period_s = rows.len() as f64 * interval.0;
        Self { steps: (0..n_terminals).map(step).collect(), period_s }.checked()
    }

    /// The gains of a recording, with the same noise and delay for all. `interval` holds where the
    /// recording does not say its own.
    pub fn from_recording(
        recording: &Recording,
        interval: Seconds,
        delay: Seconds,
        noise_w_per_hz: f64,
    ) -> Result<Self, ChannelError> {
        let conditions = |gain_db: &f64| Conditions {
            quality: Quality::Air {
                gain: Gain(from_db(*gain_db)),
                fading_power: 1.0,
                noise_w_per_hz,
            },
            delay,
            outage: false,
        };
        let row = |row: &Vec<f64>| row.iter().map(conditions).collect();
        let rows: Vec<Vec<Conditions>> = recording.gains_db.iter().map(row).collect();
        Self::from_rows(&rows, recording.interval_s.map_or(interval, Seconds))
    }

    /// Reads a table of measured rates: the header `terminal,start_s,rate_bps,delay_s,outage`, then
    /// one line for every change. Terminals are counted from 0; the first line of each starts at
    /// 0 s; `outage` is 0 or 1. The replay starts again `period_s` after its start.
    pub fn from_rates_csv(text: &str, period_s: f64) -> Result<Self, ChannelError> {
        const HEADER: &str = "terminal,start_s,rate_bps,delay_s,outage";
        let mut lines = text.lines().enumerate();
        let header = lines.next().map(|(_, line)| line.trim()).unwrap_or_default();
        if header != HEADER {
            return Err(wrong("header", header, HEADER, 1));
        }
        let mut steps: Vec<Vec<Step>> = Vec::new();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (terminal, step) = rate_step(line, index + 1)?;
            // Terminals come in order, so that no number makes a long list.
            if terminal > steps.len() {
                let expected = "the terminals in order, without a gap";
                return Err(wrong("terminal", terminal, expected, index + 1));
            }
            if terminal == steps.len() {
                steps.push(Vec::new());
            }
            steps[terminal].push(step);
        }
        Self { steps, period_s }.checked()
    }

    fn checked(self) -> Result<Self, ChannelError> {
        if self.steps.is_empty() {
            return Err(wrong("terminals", 0, "at least one", 0));
        }
        if !(self.period_s.is_finite() && self.period_s > 0.0) {
            return Err(wrong("period_s", self.period_s, "above zero", 0));
        }
        for steps in &self.steps {
            if steps.len() > MAX_STEPS {
                return Err(wrong("steps", steps.len(), "at most 1000000", 0));
            }
            if steps[0].start_s != 0.0 {
                return Err(wrong("start_s", steps[0].start_s, "0 in the first step", 0));
            }
            let is_rising = steps.windows(2).all(|pair| pair[0].start_s < pair[1].start_s);
            if !is_rising || steps[steps.len() - 1].start_s >= self.period_s {
                let expected = "rising, and below the period";
                return Err(wrong("start_s", "of a terminal", expected, 0));
            }
            steps.iter().try_for_each(|step| check(&step.conditions))?;
        }
        Ok(self)
    }

    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.steps.len()
    }

    /// The steps of one terminal, and after how many seconds they start again.
    pub fn terminal(&self, n: usize) -> (&[Step], f64) {
        (&self.steps[n], self.period_s)
    }
}

fn check(conditions: &Conditions) -> Result<(), ChannelError> {
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    match conditions.quality {
        Quality::Air { gain, fading_power, noise_w_per_hz } => {
            if !(is_positive(gain.0) && fading_power.is_finite() && fading_power >= 0.0) {
                return Err(wrong("gain", gain.0 * fading_power, "a finite gain", 0));
            }
            if !is_positive(noise_w_per_hz) {
                return Err(wrong("noise_w_per_hz", noise_w_per_hz, "above zero", 0));
            }
        }
        Quality::Rate(BitsPerSecond(rate)) => {
            if !(0.0..=MAX_RATE_BPS).contains(&rate) {
                return Err(wrong("rate_bps", rate, "0 to 1e11", 0));
            }
        }
    }
    if !(0.0..=MAX_DELAY_S).contains(&conditions.delay.0) {
        return Err(wrong("delay_s", conditions.delay.0, "0 to 60", 0));
    }
    Ok(())
}

fn rate_step(line: &str, number: usize) -> Result<(usize, Step), ChannelError> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [terminal, start, rate, delay, outage] = cells[..] else {
        return Err(wrong("columns", cells.len(), "5", number));
    };
    let real = |field: &'static str, cell: &str| {
        let value = cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        value.ok_or_else(|| wrong(field, cell, "a number from 0 on", number))
    };
    let terminal: usize =
        terminal.parse().map_err(|_| wrong("terminal", terminal, "a whole number", number))?;
    let outage = match outage {
        "0" => false,
        "1" => true,
        other => return Err(wrong("outage", other, "0 or 1", number)),
    };
    let conditions = Conditions {
        quality: Quality::Rate(BitsPerSecond(real("rate_bps", rate)?)),
        delay: Seconds(real("delay_s", delay)?),
        outage,
    };
    check(&conditions).map_err(|error| ChannelError { line: number, ..error })?;
    Ok((terminal, Step { start_s: real("start_s", start)?, conditions }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_rates_becomes_steps_of_each_terminal() {
        let text = "terminal,start_s,rate_bps,delay_s,outage\n\
                    0,0,1000000,0.01,0\n0,2.5,0,0,1\n\n1,0,5e5,0,0\n";
        let channel = ReplayedChannel::from_rates_csv(text, 10.0).unwrap();
        assert_eq!(channel.n_terminals(), 2);
        let (steps, period) = channel.terminal(0);
        assert_eq!((steps.len(), period), (2, 10.0));
        assert_eq!(steps[1].start_s, 2.5);
        assert!(steps[1].conditions.outage);
    }

    #[test]
    fn a_wrong_table_names_field_value_and_line() {
        let refused = |rows: &str| {
            let text = format!("terminal,start_s,rate_bps,delay_s,outage\n{rows}");
            ReplayedChannel::from_rates_csv(&text, 10.0).unwrap_err().to_string()
        };
        assert_eq!(
            refused("0,0,fast,0,0"),
            "rate_bps = fast, expected a number from 0 on (channel, line 2)"
        );
        assert!(refused("0,0,1e12,0,0").contains("rate_bps = 1000000000000, expected 0 to 1e11"));
        assert!(refused("7,0,1,0,0").starts_with("terminal = 7"));
        assert!(refused("0,1,1,0,0").starts_with("start_s = 1"));
        assert!(refused("0,0,1,0,0\n0,0,1,0,0").starts_with("start_s"));
        assert!(refused("0,0,1,0,0\n0,10,1,0,0").starts_with("start_s"));
        assert!(refused("0,0,1,0").starts_with("columns = 4"));
        assert!(refused("0,0,1,0,maybe").starts_with("outage = maybe"));
        assert!(refused("").starts_with("terminals = 0"));
        assert!(ReplayedChannel::from_rates_csv("a,b", 10.0).is_err());
    }
}
