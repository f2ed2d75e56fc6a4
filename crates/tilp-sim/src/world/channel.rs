//! Where the channel of a round comes from: drawn, or recorded.

use crate::snapshot::{Snapshot, SnapshotError};
use crate::units::Gain;
use crate::wireless::{Complex, Fading, Trace};

/// Name of the fading in a snapshot.
const FADING: &str = "cell/fading";

/// A source of channels.
pub enum Channel {
    /// Large-scale gains and an auto-regressive fading process.
    Drawn {
        /// G_n.
        gains: Vec<Gain>,
        /// H_n of the current round.
        fading: Fading,
    },
    /// A recorded channel.
    Recorded(Trace),
}

impl Channel {
    /// Large-scale gain of every terminal.
    pub fn gains(&self) -> &[Gain] {
        match self {
            Self::Drawn { gains, .. } => gains,
            Self::Recorded(trace) => trace.gains(),
        }
    }

    /// Fading power of a terminal in the given round, which must be the current one.
    pub fn fading_power(&self, n: usize, round: u64) -> f64 {
        match self {
            Self::Drawn { fading, .. } => fading.values()[n].power(),
            Self::Recorded(trace) => trace.fading_powers(round)[n],
        }
    }

    /// Fading powers of this many rounds, the given one first, which must be the current one.
    pub fn fading_powers_ahead(&self, round: u64, rounds: usize) -> Vec<Vec<f64>> {
        match self {
            Self::Drawn { fading, .. } => {
                let mut fading = fading.clone();
                let mut next = || {
                    let powers = fading.values().iter().map(|value| value.power()).collect();
                    fading.advance();
                    powers
                };
                (0..rounds).map(|_| next()).collect()
            }
            Self::Recorded(trace) => {
                (0..rounds as u64).map(|k| trace.fading_powers(round + k).to_vec()).collect()
            }
        }
    }

    /// Writes what cannot be drawn again: the fading of the current round.
    pub fn save(&self, snapshot: &mut Snapshot) {
        if let Self::Drawn { fading, .. } = self {
            let values = fading.values().iter().flat_map(|value| [value.re, value.im]);
            snapshot.put_f64(FADING, values.collect());
        }
    }

    /// Takes the fading of a round back.
    pub fn restore(&mut self, round: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        if let Self::Drawn { fading, .. } = self {
            let values = snapshot.finite_f64(FADING, 2 * fading.values().len())?;
            let values = values.as_chunks::<2>().0.iter().map(|&[re, im]| Complex { re, im });
            *fading = fading.at(round, values.collect());
        }
        Ok(())
    }

    /// Moves on to the next round.
    pub fn advance(&mut self) {
        if let Self::Drawn { fading, .. } = self {
            fading.advance();
        }
    }
}
