//! Bandwidth need of a job, for the solvers of equal finishing times.

use super::solve::{Channel, Down, Need};
use crate::cost::{Downlink, Link};
use crate::units::{Bits, Bytes, Watts};
use crate::wireless::RateModel;

/// A link at this power and noise density.
pub(super) fn channel(link: &Link, power: Watts, noise_w_per_hz: f64) -> Channel {
    let fading = match link.model {
        RateModel::Held => link.fading_power,
        RateModel::Averaged => 1.0,
    };
    let received = power.0 * link.gain.0 * fading;
    Channel { strength_hz: received / noise_w_per_hz, model: link.model }
}

/// The need for bandwidth of a number of bytes, in addition to a fixed time; `received` are downlink bytes.
pub fn need(
    link: &Link,
    power: Watts,
    noise_w_per_hz: f64,
    [all, received]: [Bytes; 2],
    fixed_s: f64,
) -> Need {
    let up = channel(link, power, noise_w_per_hz);
    let bits = |bytes: Bytes| Bits::from_bytes(bytes).0;
    match link.downlink {
        Downlink::Shared => Need { bits: bits(all), fixed_s, channel: up, down: None },
        Downlink::Own(power) => {
            let channel = channel(link, power, noise_w_per_hz);
            let down = Some(Down { bits: bits(received), channel });
            Need { bits: bits(Bytes(all.0 - received.0)), fixed_s, channel: up, down }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Grant, Hardware, Job, cost};
    use crate::units::{Gain, Hertz, Operations};

    const HARDWARE: Hardware = Hardware {
        clock: Hertz(1e9),
        operations_per_cycle: 0.5,
        energy_coefficient: 1e-28,
        noise_w_per_hz: 4e-21,
    };

    #[test]
    fn a_need_finishes_when_the_cost_model_says() {
        let job = Job {
            work: Operations(2e8),
            up: Bytes(40_000),
            down: Bytes(30_000),
            sync_down: Bytes(5_000),
            sync_up: Bytes(7_000),
        };
        for model in [RateModel::Held, RateModel::Averaged] {
            for downlink in [Downlink::Shared, Downlink::Own(Watts(2.0))] {
                let link = Link { gain: Gain(1e-12), fading_power: 0.7, model, downlink };
                for hertz in [1e5, 3e6, 1e8] {
                    let grant = Grant { bandwidth: Hertz(hertz), power: Watts(0.2) };
                    let wanted = cost(&job, &HARDWARE, &link, grant).delay().0;
                    let bytes = [job.air(), job.down + job.sync_down];
                    let need = need(&link, grant.power, HARDWARE.noise_w_per_hz, bytes, 0.4);
                    let found = need.finish(grant.bandwidth);
                    assert!((found / wanted - 1.0).abs() < 1e-12, "{model:?} {downlink:?}");
                }
            }
        }
    }
}
