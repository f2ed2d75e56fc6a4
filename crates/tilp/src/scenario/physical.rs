//! The physical side of a scenario without a run: the channel that its terminals meet, and its
//! robots. For a proxy that replays the channel, and for robots that run episodes alone.

use super::assemble::{cost_model, radio};
use super::events::work_changes;
use super::robots::{Roster, suite};
use super::{Scenario, ScenarioError};
use crate::cost::{Downlink, Profile};
use crate::rng::Seed;
use crate::round::TerminalId;
use crate::units::{Gain, Seconds};
use crate::wireless::RateModel;
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
