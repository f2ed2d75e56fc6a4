//! A meter that measures nothing: energy by the formula of the cost model.

use tilp_core::units::{Hertz, Operations, Seconds, Watts};
use tilp_core::wireless::energy;

use super::kinds::{MeterAnswer, MeterAsk};

/// Adds up modelled energy. Its answers say that they are modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelledMeter {
    energy_coefficient: f64,
    clock: Hertz,
    compute_j: f64,
    radio_j: f64,
}

impl ModelledMeter {
    /// A meter for hardware with this energy coefficient (J s^2 per operation) and clock.
    pub fn new(energy_coefficient: f64, clock: Hertz) -> Self {
        Self { energy_coefficient, clock, compute_j: 0.0, radio_j: 0.0 }
    }

    /// Adds what was done since the last question.
    pub fn read(&mut self, ask: &MeterAsk) -> Result<MeterAnswer, String> {
        let fields = [
            ("operations", ask.operations),
            ("sending_s", ask.sending_s),
            ("power_w", ask.power_w),
        ];
        for (field, value) in fields {
            if !(0.0..=1e18).contains(&value) {
                return Err(format!("{field} = {value}, expected 0 to 1e18"));
            }
        }
        let (power, sending) = (Watts(ask.power_w), Seconds(ask.sending_s));
        let work = Operations(ask.operations);
        let (compute, radio) = energy(work, self.energy_coefficient, self.clock, power, sending);
        self.compute_j += compute.0;
        self.radio_j += radio.0;
        Ok(MeterAnswer { compute_j: self.compute_j, radio_j: Some(self.radio_j), modelled: true })
    }
}
