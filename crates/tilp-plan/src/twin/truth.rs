//! A twin with access to parts of the truth: the twin of the reference `oracle`.
//!
//! Truth enters through [`Twin::be_told`] only, and only the oracle calls it. A twin without it
//! is the twin of TiLP to the last bit.

use std::sync::Arc;

use super::Twin;
use super::fading::FadingAhead;
use crate::cost::Hardware;
use crate::round::{NetworkTruth, SuccessCount, TrueHardware, Truth};
use crate::snapshot::{Snapshot, SnapshotError};

/// Episodes of a count, at most.
const MOST_EPISODES: u64 = 1 << 40;

/// Variance of a known value: not zero, so that rounding is no violation.
pub(super) const CERTAIN: f64 = 1e-18;

/// Fading powers of rounds to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Foresight {
    first: u64,
    powers: Vec<Vec<f64>>,
}

impl Foresight {
    /// The fading of a terminal in a round, if it was received.
    pub(super) fn at(&self, round: u64, terminal: usize) -> Option<FadingAhead> {
        let powers = self.powers.get(round.checked_sub(self.first)? as usize)?;
        Some(FadingAhead { known: powers[terminal], fresh: 0.0 })
    }
}

/// The received truth.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// The fading of future rounds.
    pub foresight: Option<Arc<Foresight>>,
    /// The losses are received: reports of them are ignored.
    pub losses: bool,
    /// Last received success, per terminal, until the terminal has a loss.
    waiting: Vec<Option<SuccessCount>>,
}

impl Told {
    pub(super) fn waiting_of(&self, n: usize) -> Option<SuccessCount> {
        self.waiting.get(n).copied().flatten()
    }

    /// Success that waits belongs to these terminals; future fading was received for others.
    pub(super) fn set_waiting(&mut self, waiting: Vec<Option<SuccessCount>>) {
        self.foresight = None;
        self.waiting = if waiting.iter().any(Option::is_some) { waiting } else { Vec::new() };
    }
}

impl Twin {
    /// Replaces estimates of the twin by received true values.
    pub fn be_told(&mut self, truth: &Truth) {
        if let Some(network) = &truth.network {
            self.be_told_network(truth.round, network);
        }
        if let Some(losses) = &truth.losses {
            self.told.losses = true;
            self.training.be_told(truth.round, losses);
            let training = &self.training;
            self.task.centre(|terminal| training.known_log_loss(terminal));
        }
        if let Some(success) = &truth.success {
            self.told.waiting = success.iter().copied().map(Some).collect();
        }
        self.anchor();
    }

    fn be_told_network(&mut self, round: u64, truth: &NetworkTruth) {
        let exact = |(told, nominal): (&TrueHardware, &Hardware)| Hardware {
            noise_w_per_hz: told.noise_w_per_hz,
            operations_per_cycle: told.operations_per_cycle,
            energy_coefficient: told.energy_coefficient,
            ..*nominal
        };
        let hardware = truth.hardware.iter().zip(&self.nominal.hardware).map(exact);
        self.network.be_told(hardware.collect());
        let powers = truth.fading_powers.clone();
        self.told.foresight = Some(Arc::new(Foresight { first: round, powers }));
    }

    /// A received success belongs to the loss of that moment, or to the first later one.
    fn anchor(&mut self) {
        let mut told = Vec::new();
        for (n, waiting) in self.told.waiting.iter_mut().enumerate() {
            let Some(log_loss) = self.training.known_log_loss(n) else { continue };
            told.extend(waiting.take().map(|count| (n, log_loss, count)));
        }
        self.task.be_told(&told);
    }

    /// Writes received truth that is not received again soon. Fading and losses are received before
    /// every decision.
    pub fn save_told(&self, snapshot: &mut Snapshot) {
        let anchors = self.task.anchors().flat_map(|one| one.unwrap_or([f64::NAN; 2]));
        snapshot.put_f64("oracle/anchors", anchors.collect());
        let count = |one: &Option<SuccessCount>| {
            one.map_or([0, 0], |count| [count.successes, count.episodes])
        };
        snapshot.put_u64("oracle/waiting", self.told.waiting.iter().flat_map(count).collect());
    }

    /// Restores it.
    pub fn restore_told(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        const ANCHORS: &str = "oracle/anchors";
        let anchors = snapshot.known_f64(ANCHORS, 2 * self.nominal.hardware.len(), f64::MAX)?;
        let is_half = |one: &&[f64; 2]| one[0].is_nan() != one[1].is_nan();
        if let Some(one) = anchors.as_chunks::<2>().0.iter().find(is_half) {
            return Err(SnapshotError::value(ANCHORS, format!("{one:?}"), "both numbers or none"));
        }
        let anchor = |one: &[f64; 2]| (!one[0].is_nan()).then_some(*one);
        self.task.set_anchors(anchors.as_chunks::<2>().0.iter().map(anchor).collect());
        const WAITING: &str = "oracle/waiting";
        let length = match snapshot.len_of(WAITING) {
            0 => 0, // no received success waits for a loss
            _ => 2 * self.nominal.hardware.len(),
        };
        let waiting = snapshot.u64_up_to(WAITING, length, MOST_EPISODES)?;
        if let Some(one) = waiting.as_chunks::<2>().0.iter().find(|one| one[0] > one[1]) {
            let expected = "no more successes than episodes";
            return Err(SnapshotError::value(WAITING, format!("{one:?}"), expected));
        }
        let count = |&[successes, episodes]: &[u64; 2]| {
            (episodes > 0).then_some(SuccessCount { successes, episodes })
        };
        self.told.waiting = waiting.as_chunks::<2>().0.iter().map(count).collect();
        Ok(())
    }
}
