//! The physical side of a scenario without a run: the channel that its terminals meet, and its
//! robots. For a proxy that replays the channel, and for robots that run episodes alone.

use super::assemble::{cost_model, places, radio, recording};
use super::events::work_changes;
use super::robots::{Roster, suite};
use super::{Scenario, ScenarioError, terminals};
use crate::cost::{Downlink, Profile};
use crate::rng::Seed;
use crate::round::TerminalId;
use crate::units::{Gain, Seconds};
use crate::wireless::{RateModel, Recording};
use crate::world::Fleet;

/// The true link of one terminal in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueLink {
    /// Large-scale gain, blockages included.
    pub gain: Gain,
    /// Power of the small-scale fading.
    pub fading_power: f64,
    /// Noise power spectral density, interferers included.
    pub noise_w_per_hz: f64,
}

/// The channel of a run: round by round the link of every terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueChannel {
    /// Rounds of terminals.
    pub rounds: Vec<Vec<TrueLink>>,
    /// Time between rounds.
    pub interval: Seconds,
    /// How fading enters the rate.
    pub model: RateModel,
    /// Rate of the downlink.
    pub downlink: Downlink,
}

/// The channel of a scenario and seed in its first rounds. It is hidden from methods: only a
/// replacement of the radio may use it.
pub fn true_channel(
    scenario: &Scenario,
    seed: u64,
    rounds: u64,
) -> Result<TrueChannel, ScenarioError> {
    let cost = cost_model(scenario)?;
    let mut radio = radio(scenario, &cost, Seed::new(seed))?;
    let n_terminals = scenario.n_terminals() as u32;
    let mut table = Vec::new();
    for round in 1..=rounds {
        let link = |n: u32| {
            let id = TerminalId(n);
            TrueLink {
                gain: radio.gain(id, round),
                fading_power: radio.channel.fading_power(n as usize, round),
                noise_w_per_hz: radio.true_hardware(id, round).noise_w_per_hz,
            }
        };
        table.push((0..n_terminals).map(link).collect());
        radio.channel.advance();
    }
    Ok(TrueChannel {
        rounds: table,
        interval: Seconds(scenario.raw.cell.round_interval_s),
        model: cost.rate_model,
        downlink: cost.downlink,
    })
}

/// Where terminals and station stand, for a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct CellMap {
    /// The station, x and y in metres.
    pub station_m: [f64; 2],
    /// The terminals, one list per round; after the last list the first one follows again.
    pub terminals_m: Vec<Vec<[f64; 2]>>,
    /// Footprints of what stands around: x and y of two corners.
    pub walls_m: Vec<[f64; 4]>,
}

/// The map of a scenario and seed; none if places are not known: of a recorded channel without
/// them, and of terminals whose gain is given and not drawn from a place. Reads no file.
pub fn cell_map(scenario: &Scenario, seed: u64) -> Result<Option<CellMap>, ScenarioError> {
    let raw = &scenario.raw;
    if raw.cell.trace.starts_with("builtin") {
        return Ok(recording(scenario)?.and_then(|recording| recorded_map(&recording)));
    }
    if !raw.cell.trace.is_empty() || terminals::has_gains(raw) {
        return Ok(None);
    }
    let all = places(raw, Seed::new(seed)).into_iter().map(|place| [place.x_m, place.y_m]);
    let terminals_m = vec![all.collect()];
    Ok(Some(CellMap { station_m: [0.0; 2], terminals_m, walls_m: Vec::new() }))
}

fn recorded_map(recording: &Recording) -> Option<CellMap> {
    let places = recording.places_m.as_ref()?;
    let flat = |[x, y, _]: [f64; 3]| [x, y];
    Some(CellMap {
        station_m: flat(recording.station_m?),
        terminals_m: places.iter().map(|all| all.iter().copied().map(flat).collect()).collect(),
        walls_m: recording.walls_m.clone(),
    })
}

/// Costs of a terminal at every cut of a scenario's model.
pub fn cut_profiles(scenario: &Scenario) -> Result<Profile, ScenarioError> {
    Ok(cost_model(scenario)?.profile)
}

/// The robots of a scenario and seed.
pub fn fleet(scenario: &Scenario, seed: u64) -> Result<Fleet, ScenarioError> {
    let (raw, seed) = (&scenario.raw, Seed::new(seed));
    let roster = Roster::draw(scenario, seed.named("fleet"))?;
    let changes = work_changes(scenario, &roster.tasks(), suite(raw))?;
    roster.fleet(raw, &changes, seed.named("episodes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Cell;
    use crate::scenario::{assemble, method};

    #[test]
    fn a_map_has_every_terminal_where_its_gain_comes_from() {
        let scenario = Scenario::load("tiny", &[]).unwrap();
        let map = cell_map(&scenario, 7).unwrap().unwrap();
        let cell = &scenario.raw.cell;
        assert_eq!(map.terminals_m[0].len(), scenario.n_terminals());
        for [x, y] in &map.terminals_m[0] {
            let far = x.hypot(*y);
            assert!((cell.inner_radius_m..=cell.outer_radius_m).contains(&far), "{far} m");
        }
        assert_ne!(Some(map), cell_map(&scenario, 8).unwrap());
        let recorded = Scenario::load("factory-rt", &[]).unwrap();
        let map = cell_map(&recorded, 0).unwrap().unwrap();
        assert!(map.terminals_m.iter().all(|all| all.len() >= recorded.n_terminals()));
        assert_eq!(Some(map), cell_map(&recorded, 1).unwrap(), "places are recorded, not drawn");
        let elsewhere = recorded.varied(&["cell.trace=\"/etc/passwd\"".to_owned()]).unwrap();
        assert_eq!(cell_map(&elsewhere, 0).unwrap(), None, "no file is read");
    }

    #[test]
    fn the_channel_is_that_of_a_run_with_the_same_seed() {
        let scenario = Scenario::load("tiny", &[]).unwrap();
        let channel = true_channel(&scenario, 7, 2).unwrap();
        let method = method("random").unwrap();
        let mut parts = assemble(&scenario, method, 7, None, &|_, _| ()).unwrap();
        let reports = parts.cell.sense().unwrap();
        assert_eq!(channel.rounds[0].len(), reports.len());
        for (link, report) in channel.rounds[0].iter().zip(&reports) {
            assert_eq!((link.gain, link.fading_power), (report.gain, report.fading_power));
        }
        assert_ne!(channel.rounds[0], channel.rounds[1]);
        assert_eq!(channel, true_channel(&scenario, 7, 2).unwrap());
    }
}
