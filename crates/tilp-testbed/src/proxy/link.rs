//! The link of one terminal: which rate and delay hold when.

use tilp_core::cost::{Downlink, Grant};
use tilp_core::units::{BitsPerSecond, Seconds};
use tilp_core::wireless::{RateModel, rate};

use super::channel::{Conditions, Quality, ReplayedChannel, Step};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the terminal to the server.
    Up,
    /// From the server to the terminal.
    Down,
}

/// What advances the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The clock: a step holds as long as the channel says.
    Clock,
    /// The control channel: round r (from 1) has the conditions of step r.
    Rounds,
}

/// What all links of a proxy have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// What advances the replay.
    pub pace: Pace,
    /// How fading enters the rate.
    pub model: RateModel,
    /// At which rate the way down goes.
    pub downlink: Downlink,
    /// Rate of a terminal without a grant, and the least rate of one with a grant: radios keep a
    /// channel for signalling. Nothing passes during an outage.
    pub signalling: BitsPerSecond,
}

/// The link of one terminal.
#[derive(Clone, Debug)]
pub struct Link {
    steps: Vec<Step>,
    period_s: f64,
    settings: LinkSettings,
    grant: Option<Grant>,
    round: u64,
    outage: bool,
}

impl Link {
    /// The link of terminal `n` of a channel, without a grant, before the first round.
    pub fn new(channel: &ReplayedChannel, n: usize, settings: LinkSettings) -> Self {
        let (steps, period_s) = channel.terminal(n);
        Self { steps: steps.to_vec(), period_s, settings, grant: None, round: 1, outage: false }
    }

    /// The grant that holds.
    pub fn grant(&self) -> Option<Grant> {
        self.grant
    }

    /// The round that holds.
    pub fn round(&self) -> u64 {
        self.round
    }

    pub(super) fn set_grant(&mut self, grant: Option<Grant>) {
        self.grant = grant;
    }

    pub(super) fn set_round(&mut self, round: u64) {
        self.round = round;
    }

    pub(super) fn set_outage(&mut self, outage: bool) {
        self.outage = outage;
    }

    /// Conditions at a time, in seconds after the start.
    pub fn conditions(&self, now_s: f64) -> Conditions {
        let index = match self.settings.pace {
            Pace::Clock => self.index(now_s),
            Pace::Rounds => (self.round.max(1) - 1) as usize % self.steps.len(),
        };
        let conditions = self.steps[index].conditions;
        Conditions { outage: conditions.outage || self.outage, ..conditions }
    }

    fn index(&self, now_s: f64) -> usize {
        let within = now_s.max(0.0) % self.period_s;
        self.steps.partition_point(|step| step.start_s <= within).saturating_sub(1)
    }

    /// The next time at which the conditions may change by themselves.
    pub fn next_change(&self, now_s: f64) -> Option<f64> {
        if self.settings.pace == Pace::Rounds || self.steps.len() == 1 {
            return None;
        }
        let now_s = now_s.max(0.0);
        let within = now_s % self.period_s;
        let next = self.index(now_s) + 1;
        let after = self.steps.get(next).map_or(self.period_s, |step| step.start_s);
        // If the sum rounds to now, the clock must still advance.
        Some((now_s + (after - within)).max(now_s.next_up()))
    }

    /// Rate at a time.
    pub fn rate(&self, direction: Direction, now_s: f64) -> BitsPerSecond {
        let Conditions { quality, outage, .. } = self.conditions(now_s);
        if outage {
            return BitsPerSecond(0.0);
        }
        let granted = match (quality, self.grant) {
            (Quality::Rate(rate), _) => return rate,
            (Quality::Air { .. }, None) => BitsPerSecond(0.0),
            (Quality::Air { gain, fading_power, noise_w_per_hz }, Some(grant)) => {
                let power = match (direction, self.settings.downlink) {
                    (Direction::Down, Downlink::Own(power)) => power,
                    _ => grant.power,
                };
                rate(
                    self.settings.model,
                    grant.bandwidth,
                    power,
                    gain,
                    fading_power,
                    noise_w_per_hz,
                )
            }
        };
        granted.max(self.settings.signalling)
    }

    /// Delay at a time, in addition to the transmission.
    pub fn delay(&self, now_s: f64) -> Seconds {
        self.conditions(now_s).delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilp_core::units::{Gain, Hertz, Watts};

    const NOISE: f64 = 4e-21;

    fn air(gain: f64) -> Conditions {
        let quality = Quality::Air { gain: Gain(gain), fading_power: 0.5, noise_w_per_hz: NOISE };
        Conditions { quality, delay: Seconds(0.002), outage: false }
    }

    fn link(pace: Pace) -> Link {
        let rows = [vec![air(1e-12)], vec![air(1e-13)], vec![air(1e-14)]];
        let channel = ReplayedChannel::from_rows(&rows, Seconds(2.0)).unwrap();
        let settings = LinkSettings {
            pace,
            model: RateModel::Held,
            downlink: Downlink::Own(Watts(1.0)),
            signalling: BitsPerSecond(1000.0),
        };
        Link::new(&channel, 0, settings)
    }

    const GRANT: Grant = Grant { bandwidth: Hertz(1e6), power: Watts(0.2) };

    fn expected(gain: f64, power: f64) -> BitsPerSecond {
        rate(RateModel::Held, GRANT.bandwidth, Watts(power), Gain(gain), 0.5, NOISE)
    }

    #[test]
    fn the_granted_band_and_power_set_the_rate_by_the_uplink_formula() {
        let mut link = link(Pace::Clock);
        assert_eq!(link.rate(Direction::Up, 0.0), BitsPerSecond(1000.0));
        link.set_grant(Some(GRANT));
        assert_eq!(link.rate(Direction::Up, 0.0), expected(1e-12, 0.2));
        assert_eq!(link.rate(Direction::Down, 0.0), expected(1e-12, 1.0));
        assert_eq!(link.rate(Direction::Up, 3.0), expected(1e-13, 0.2));
        link.set_outage(true);
        assert_eq!(link.rate(Direction::Up, 3.0), BitsPerSecond(0.0));
    }

    #[test]
    fn by_the_clock_a_step_holds_for_its_interval_and_the_replay_starts_again() {
        let link = link(Pace::Clock);
        let gain = |now_s: f64| link.conditions(now_s).quality;
        assert_eq!(gain(1.999), air(1e-12).quality);
        assert_eq!(gain(2.0), air(1e-13).quality);
        assert_eq!(gain(6.5), air(1e-12).quality);
        assert_eq!(link.next_change(0.0), Some(2.0));
        assert_eq!(link.next_change(2.0), Some(4.0));
        assert_eq!(link.next_change(5.0), Some(6.0));
        assert_eq!(link.next_change(6.0), Some(8.0));
    }

    #[test]
    fn by_rounds_the_control_channel_says_which_step_holds() {
        let mut link = link(Pace::Rounds);
        assert_eq!(link.conditions(100.0).quality, air(1e-12).quality);
        link.set_round(3);
        assert_eq!(link.conditions(0.0).quality, air(1e-14).quality);
        link.set_round(5);
        assert_eq!(link.conditions(0.0).quality, air(1e-13).quality);
        assert_eq!(link.next_change(0.0), None);
    }
}
