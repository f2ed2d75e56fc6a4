//! A summary of a channel for a reader: gains, line of sight, how fast it changes, a map.

mod figures;

use std::path::Path;

use serde::Serialize;

pub use figures::figures;

use super::RunError;
use crate::record::{RecordError, RunFolder, TerminalRow};
use crate::scenario::{Registry, Scenario, drawn_channel, read_recording, recording};
use crate::statistics::{mean, quantile};
use crate::units::{from_db, to_db};
use crate::wireless::{Recording, RecordingError};

/// Why there is no channel to show.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The record of the run.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The scenario.
    #[error(transparent)]
    Scenario(#[from] crate::scenario::ScenarioError),
}

/// Number of rounds shown of a channel that a scenario draws.
const DRAWN_ROUNDS: usize = 200;

/// Figures of a channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelReport {
    /// Where it was recorded.
    pub scene: String,
    /// Rounds.
    pub rounds: usize,
    /// Terminals.
    pub n_terminals: usize,
    /// Seconds between rounds.
    pub interval_s: Option<f64>,
    /// Gains of the terminals, each the mean over rounds: lowest, quartiles, highest, in dB.
    pub gain_db: [f64; 5],
    /// Fading about that mean over all terminals and rounds: 5, 50 and 95 %, in dB.
    pub fading_db: [f64; 3],
    /// Share of terminals and rounds with the station in sight.
    pub sight_share: Option<f64>,
    /// Correlation of the gain of a round with that of the next, median over the terminals; `None`
    /// if nothing changes.
    pub correlation: Option<f64>,
    /// Rounds until that correlation is below one half, median of the terminals.
    pub coherence_rounds: Option<f64>,
    /// Spread of delays, median, in seconds.
    pub delay_spread_s: Option<f64>,
    /// Largest Doppler shift, median of the terminals, in hertz.
    pub doppler_hz: Option<f64>,
}

/// Reads a channel: the folder of a run or of DeepMIMO, a file, or that of a scenario; one that is drawn,
/// with this seed.
pub fn read(name: &str, seed: u64) -> Result<Recording, ChannelError> {
    let path = Path::new(name);
    if path.join("manifest.json").exists() {
        return of_run(&RunFolder::open(path)?);
    }
    if path.exists() && path.extension().is_none_or(|ending| ending != "toml") {
        return Ok(read_recording(path)?);
    }
    let scenario = Scenario::load(name, &[])?;
    match recording(&scenario)? {
        Some(recorded) => Ok(recorded),
        None => Ok(drawn_channel(&scenario, seed, DRAWN_ROUNDS)?),
    }
}

/// The channel of a run, with additional data of its scenario's recording.
fn of_run(folder: &RunFolder) -> Result<Recording, ChannelError> {
    let (scenario, _, seed) = super::read_run_identity(folder, &Registry::builtin())?;
    let rows = folder.read_terminals()?;
    let gain_db = |row: &TerminalRow| to_db(row.gain * row.fading_power);
    let rounds = rows.chunk_by(|a, b| a.round == b.round);
    let gains_db = rounds.map(|round| round.iter().map(gain_db).collect()).collect();
    let known = recording(&scenario)?.unwrap_or_default();
    let scene = format!("run of {}, seed {seed}", scenario.name());
    // In a run longer than the recording the gains repeat; the additional data is shown once.
    Ok(Recording { scene, gains_db, ..known })
}

/// Sums up a channel.
pub fn survey(channel: &Recording) -> ChannelReport {
    let n = channel.n_terminals();
    let means = mean_gains_db(channel);
    let at = |share: f64| quantile(means.iter().copied(), share).unwrap_or(f64::NAN);
    let fading = |share: f64| {
        let relative = channel.gains_db.iter().flat_map(|row| row.iter().zip(&means));
        quantile(relative.map(|(gain, mean)| gain - mean), share).unwrap_or(f64::NAN)
    };
    let series: Vec<Vec<f64>> = (0..n).map(|terminal| series(channel, terminal)).collect();
    let correlations = series.iter().filter_map(|one| correlation(one, 1));
    let coherences = series.iter().filter_map(|one| coherence(one));
    let median = |table: &Option<Vec<Vec<f64>>>| {
        let values = table.as_ref()?.iter().flatten().copied();
        quantile(values, 0.5)
    };
    let in_sight = |seen: &bool| f64::from(u8::from(*seen));
    ChannelReport {
        scene: channel.scene.clone(),
        rounds: channel.gains_db.len(),
        n_terminals: n,
        interval_s: channel.interval_s,
        gain_db: [0.0, 0.25, 0.5, 0.75, 1.0].map(at),
        fading_db: [0.05, 0.5, 0.95].map(fading),
        sight_share: channel
            .sight
            .as_ref()
            .and_then(|table| mean(table.iter().flatten().map(in_sight))),
        correlation: quantile(correlations, 0.5),
        coherence_rounds: quantile(coherences, 0.5),
        delay_spread_s: median(&channel.delay_spread_s),
        doppler_hz: median(&channel.doppler_hz),
    }
}

/// Gain of every terminal, the mean over rounds.
pub(super) fn mean_gains_db(channel: &Recording) -> Vec<f64> {
    let of = |terminal: usize| to_db(mean(series(channel, terminal)).unwrap_or(0.0));
    (0..channel.n_terminals()).map(of).collect()
}

/// Linear gains of a terminal over rounds.
fn series(channel: &Recording, terminal: usize) -> Vec<f64> {
    channel.gains_db.iter().map(|row| from_db(row[terminal])).collect()
}

/// Autocorrelation of a series at this lag; `None` if the series is constant or too short.
fn correlation(series: &[f64], lag: usize) -> Option<f64> {
    let centre = mean(series.iter().copied())?;
    let about: Vec<f64> = series.iter().map(|value| value / centre - 1.0).collect();
    let square = mean(about.iter().map(|one| one * one))?;
    let product = mean(about.iter().zip(about.get(lag..)?).map(|(a, b)| a * b))?;
    (square > 1e-12).then(|| product / square)
}

/// Steps until the correlation is below one half; `None` if it is constant or never falls that low.
fn coherence(series: &[f64]) -> Option<f64> {
    let lags = 1..series.len() / 2;
    lags.map(|lag| (lag, correlation(series, lag)))
        .find(|(_, found)| found.is_some_and(|found| found < 0.5))
        .map(|(lag, _)| lag as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(gains_db: Vec<Vec<f64>>) -> Recording {
        Recording { scene: "test".into(), gains_db, ..Recording::default() }
    }

    #[test]
    fn a_channel_that_stands_still_has_gains_and_no_coherence() {
        let report = survey(&recording(vec![vec![-80.0, -100.0, -90.0]; 8]));
        assert!((report.gain_db[0] + 100.0).abs() < 1e-9);
        assert!((report.gain_db[2] + 90.0).abs() < 1e-9);
        assert!(report.fading_db.iter().all(|fading| fading.abs() < 1e-9));
        assert_eq!((report.correlation, report.coherence_rounds), (None, None));
        assert_eq!(report.sight_share, None);
    }

    #[test]
    fn a_gain_that_swings_is_coherent_for_a_sixth_of_its_period() {
        // The correlation of a cosine with a period of 60 rounds is a cosine too: one half after
        // 10.
        let swing = |round: u32| {
            vec![to_db(
                1e-9 * (1.0 + 0.5 * (f64::from(round) * std::f64::consts::TAU / 60.0).cos()),
            )]
        };
        let report = survey(&recording((0..1200).map(swing).collect()));
        assert!((report.coherence_rounds.unwrap() - 10.5).abs() <= 0.5, "{report:?}");
        assert!((report.correlation.unwrap() - (std::f64::consts::TAU / 60.0).cos()).abs() < 0.01);
    }

    #[test]
    fn the_recordings_that_come_with_the_program_can_be_shown() {
        for (name, sight) in [("factory-rt", 0.5..0.95), ("street-rt", 0.1..0.4)] {
            let report = survey(&read(name, 0).unwrap());
            assert_eq!((report.n_terminals, report.rounds), (50, 200), "{name}");
            assert!(sight.contains(&report.sight_share.unwrap()), "{name}: {report:?}");
            assert!(report.gain_db[0] < report.gain_db[4] - 5.0, "{name}: {report:?}");
        }
        let drawn = read("default", 3).unwrap();
        assert_eq!((drawn.gains_db.len(), &drawn.scene[..]), (200, "default, seed 3"));
    }

    #[test]
    fn figures_show_what_is_known() {
        let gains = vec![vec![-80.0, -100.0], vec![-82.0, -101.0]];
        let plain = recording(gains.clone());
        let names = |channel: &Recording| -> Vec<String> {
            figures(channel).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&plain), ["gains"]);
        let placed = Recording {
            places_m: Some(vec![vec![[0.0; 3], [5.0, 5.0, 1.0]]; 2]),
            sight: Some(vec![vec![true, false]; 2]),
            station_m: Some([1.0, 1.0, 6.0]),
            walls_m: vec![[2.0, 2.0, 3.0, 3.0]],
            ..plain
        };
        assert_eq!(names(&placed), ["gains", "map"]);
        let map = figures(&placed)[1].1.to_svg();
        assert!(map.contains(">in sight</text>") && map.contains(">station</text>"), "{map}");
    }
}
