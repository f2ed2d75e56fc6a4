//! Hidden truth that the references `oracle` and `clairvoyant` receive. No other method
//! receives any of it.

use super::SuccessCount;

/// Request of an [`OracleAccess`]; empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// True hardware, and the fading powers of this number of rounds from the present one on.
    pub rounds: Option<usize>,
    /// The loss of the deployed policy, over this number of fixed samples of each terminal's data.
    pub samples: Option<usize>,
    /// Success over this number of episodes of each terminal, measured once per calibration interval.
    pub episodes: Option<usize>,
}

/// Hidden truth: the answer to a [`Question`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The round it holds for.
    pub round: u64,
    /// Hardware and fading.
    pub network: Option<NetworkTruth>,
    /// Loss of what is deployed, per terminal.
    pub losses: Option<Vec<f64>>,
    /// Success of the deployed policy, per terminal; `None` in rounds without a measurement.
    pub success: Option<Vec<SuccessCount>>,
}

/// The hidden part of radio and hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkTruth {
    /// True hardware per terminal.
    pub hardware: Vec<TrueHardware>,
    /// Fading powers by round, the present one first, and by terminal.
    pub fading_powers: Vec<Vec<f64>>,
}

/// Deviation of a terminal from its data sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrueHardware {
    /// Noise power spectral density of its link, W/Hz.
    pub noise_w_per_hz: f64,
    /// Operations per cycle.
    pub operations_per_cycle: f64,
    /// Energy coefficient.
    pub energy_coefficient: f64,
}

/// The way in for the truth: the references `oracle` and `clairvoyant` have it, and no other
/// method.
pub trait OracleAccess {
    /// Request before the next decision.
    fn question(&self) -> Question;
    /// Takes the answer.
    fn receive(&mut self, truth: &Truth);
}
