//! The cost of one terminal's part of a round: one formula for all callers.
//!
//! The world calls it with the true hardware, allocators and the twin with nominal values; a
//! difference between the two is a difference of the arguments, never of the formula.

mod pending;
mod profile;
mod round;

pub use pending::FrontCopies;
pub use profile::{Accounting, CutProfile, Payload, Profile, Sync};
pub use round::{CostModel, RoundCosts, RoundInputs};

use crate::units::{Bits, Bytes, Gain, Hertz, Joules, Operations, Seconds, Watts};
use crate::wireless::{self, RateModel};

/// Hardware of one terminal and the noise on its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware {
    /// nu_n: operations per cycle.
    pub operations_per_cycle: f64,
    /// g_n: processor frequency.
    pub clock: Hertz,
    /// kappa_n: energy coefficient in J s^2 per operation.
    pub energy_coefficient: f64,
    /// N_0 times the noise figure, in W/Hz.
    pub noise_w_per_hz: f64,
}

/// At which rate the way down goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Downlink {
    /// At that of the way up, as in the paper.
    #[default]
    Shared,
    /// The base station sends with its own power, over the terminal's band.
    Own(Watts),
}

/// The channel of one terminal in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// G_n.
    pub gain: Gain,
    /// |H_n|^2.
    pub fading_power: f64,
    /// How fading enters the rate.
    pub model: RateModel,
    /// At which rate the way down goes.
    pub downlink: Downlink,
}

/// The radio resources of one terminal in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// b_n.
    pub bandwidth: Hertz,
    /// p_n.
    pub power: Watts,
}

/// Work of one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Job {
    /// Operations of forward and backward pass.
    pub work: Operations,
    /// Encoded activation and labels.
    pub up: Bytes,
    /// Encoded cut gradient.
    pub down: Bytes,
    /// Model layers to fetch before training.
    pub sync_down: Bytes,
    /// Model layers to deliver for aggregation.
    pub sync_up: Bytes,
}

impl Job {
    /// Everything that crosses the air, both ways.
    pub fn air(&self) -> Bytes {
        self.up + self.down + self.sync_down + self.sync_up
    }

    /// The same job with only this share of its bytes exchanged.
    pub fn part(&self, share: f64) -> Self {
        let part = |bytes: Bytes| Bytes((bytes.0 as f64 * share).floor() as u64);
        if share >= 1.0 {
            return *self;
        }
        Self {
            work: self.work,
            up: part(self.up),
            down: part(self.down),
            sync_down: part(self.sync_down),
            sync_up: part(self.sync_up),
        }
    }
}

/// Costs of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Computation.
    pub computation: Seconds,
    /// Everything the terminal sends.
    pub sending: Seconds,
    /// Everything the terminal receives.
    pub receiving: Seconds,
    /// Energy of computation.
    pub energy_compute: Joules,
    /// Energy of sending.
    pub energy_radio: Joules,
}

impl Cost {
    /// Delay of the terminal: computation and both directions of transmission.
    pub fn delay(&self) -> Seconds {
        self.computation + self.sending + self.receiving
    }

    /// Energy of computation and sending.
    pub fn energy(&self) -> Joules {
        self.energy_compute + self.energy_radio
    }

    /// What is spent by `deadline`: a terminal that is cut off has computed first and sent and
    /// received in proportion until then.
    pub fn until(&self, deadline: Seconds, power: Watts) -> Self {
        if self.delay() <= deadline {
            return *self;
        }
        let computation = self.computation.min(deadline);
        let on_air = deadline - computation;
        let radio = self.sending + self.receiving;
        // With a rate of zero the terminal sends until the round closes and nothing arrives.
        let share = if radio.0.is_finite() { self.sending.0 / radio.0 } else { 1.0 };
        let sending = on_air * share;
        Self {
            computation,
            sending,
            receiving: on_air - sending,
            energy_compute: self.energy_compute * (computation.0 / self.computation.0.max(1e-300)),
            energy_radio: power * sending,
        }
    }
}

/// Delay and energy of a job on given hardware, link and grant.
pub fn cost(job: &Job, hardware: &Hardware, link: &Link, grant: Grant) -> Cost {
    let rate = |power: Watts| {
        wireless::rate(
            link.model,
            grant.bandwidth,
            power,
            link.gain,
            link.fading_power,
            hardware.noise_w_per_hz,
        )
    };
    let up = rate(grant.power);
    let down = match link.downlink {
        Downlink::Shared => up,
        Downlink::Own(power) => rate(power),
    };
    let time = |bytes: Bytes, rate| wireless::transmission_delay(Bits::from_bytes(bytes), rate);
    let sending = time(job.up + job.sync_up, up);
    let (energy_compute, energy_radio) = wireless::energy(
        job.work,
        hardware.energy_coefficient,
        hardware.clock,
        grant.power,
        sending,
    );
    Cost {
        computation: wireless::computation_delay(
            job.work,
            hardware.operations_per_cycle,
            hardware.clock,
        ),
        sending,
        receiving: time(job.down + job.sync_down, down),
        energy_compute,
        energy_radio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARDWARE: Hardware = Hardware {
        operations_per_cycle: 1.0,
        clock: Hertz(1e9),
        energy_coefficient: 1e-28,
        noise_w_per_hz: 4e-21,
    };

    fn link(gain: f64) -> Link {
        let downlink = Downlink::Shared;
        Link { gain: Gain(gain), fading_power: 1.0, model: RateModel::Held, downlink }
    }

    fn job() -> Job {
        let bytes = Bytes(1_000);
        Job { work: Operations(1e9), up: bytes, down: bytes, sync_down: bytes, sync_up: bytes }
    }

    #[test]
    fn the_delay_is_computation_and_all_bytes_over_the_rate() {
        let grant = Grant { bandwidth: Hertz(1e6), power: Watts(0.2) };
        let cost = cost(&job(), &HARDWARE, &link(1e-12), grant);
        let rate = 1e6 * 51f64.log2();
        assert!((cost.delay().0 - (1.0 + 32_000.0 / rate)).abs() < 1e-12);
        assert!((cost.energy_radio.0 - 0.2 * 16_000.0 / rate).abs() < 1e-12);
        assert!((cost.energy_compute.0 - 0.1).abs() < 1e-12);
    }

    #[test]
    fn with_a_downlink_of_its_own_only_the_way_down_changes() {
        let grant = Grant { bandwidth: Hertz(1e6), power: Watts(0.2) };
        let shared = cost(&job(), &HARDWARE, &link(1e-12), grant);
        let own = |power| {
            let link = Link { downlink: Downlink::Own(Watts(power)), ..link(1e-12) };
            cost(&job(), &HARDWARE, &link, grant)
        };
        // snr = 1e-12 * 10 / (4e-21 * 1e6) = 2500.
        let rate = 1e6 * 2501f64.log2();
        assert!((own(10.0).receiving.0 - 16_000.0 / rate).abs() < 1e-12);
        assert_eq!(Cost { receiving: shared.receiving, ..own(10.0) }, shared);
        assert_eq!(own(0.2), shared, "at the terminal's power both ways are alike");
    }

    #[test]
    fn a_terminal_that_is_cut_off_has_spent_its_energy_until_then() {
        let grant = Grant { bandwidth: Hertz(1e6), power: Watts(0.2) };
        let late = cost(&job(), &HARDWARE, &link(1e-18), grant);
        assert!(late.delay() > Seconds(5.0));
        let spent = late.until(Seconds(5.0), grant.power);
        assert!((spent.delay().0 - 5.0).abs() < 1e-12);
        assert!((spent.energy_radio.0 - 0.2 * 2.0).abs() < 1e-12);
        assert!((spent.energy_compute.0 - 0.1).abs() < 1e-12);
        let computing = late.until(Seconds(0.5), grant.power);
        assert!((computing.energy_compute.0 - 0.05).abs() < 1e-12);
        assert_eq!(computing.energy_radio, Joules(0.0));
    }

    #[test]
    fn a_dead_link_spends_power_until_the_deadline_and_stays_finite() {
        let grant = Grant { bandwidth: Hertz(0.0), power: Watts(0.2) };
        let dead = cost(&job(), &HARDWARE, &link(1e-12), grant);
        assert_eq!(dead.delay(), Seconds(f64::INFINITY));
        assert!((dead.until(Seconds(3.0), grant.power).energy_radio.0 - 0.4).abs() < 1e-12);
    }
}
