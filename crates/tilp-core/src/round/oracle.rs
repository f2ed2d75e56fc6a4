//! What the references `oracle` and `clairvoyant` are told of the hidden truth. No other method
//! receives any of it.

use super::SuccessCount;

/// What an [`OracleAccess`] asks for; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// True hardware, and the fading powers of so many rounds from the one at hand on.
    pub rounds: Option<usize>,
    /// The loss of what is deployed, over so many fixed samples of each terminal's data.
    pub samples: Option<usize>,
    /// Success over so many episodes of each terminal, answered once per calibration interval.
    pub episodes: Option<usize>,
}

/// What no method may know: the answer to a [`Question`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The round it holds for.
    pub round: u64,
    /// Hardware and fading.
    pub network: Option<NetworkTruth>,
    /// Loss of what is deployed, per terminal.
    pub losses: Option<Vec<f64>>,
    /// Success of what is deployed, per terminal; none in rounds in which it is not measured.
    pub success: Option<Vec<SuccessCount>>,
}

/// The hidden part of radio and hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkTruth {
    /// True hardware per terminal.
    pub hardware: Vec<TrueHardware>,
    /// Fading powers per round, the one at hand first, and terminal.
    pub fading_powers: Vec<Vec<f64>>,
}

/// Where a terminal differs from its data sheet.
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
    /// What is asked before the next decision.
    fn question(&self) -> Question;
    /// Takes the answer.
    fn receive(&mut self, truth: &Truth);
}
