//! Sources of the channel of a round: drawn, or recorded.

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
    /// Large-scale gain of a terminal as known in a round. Of a recorded channel it is the mean up to
    /// that round.
    pub fn gain(&self, n: usize, round: u64) -> Gain {
        match self {
            Self::Drawn { gains, .. } => gains[n],
            Self::Recorded(trace) => trace.gain(n, round),
        }
    }

    /// Large-scale gain of a terminal over the whole run or recording, for measurements of a scenario
    /// only: no base station knows a recording before its end.
    pub fn mean_gain(&self, n: usize) -> Gain {
        match self {
            Self::Drawn { gains, .. } => gains[n],
            Self::Recorded(trace) => trace.mean_gain(n),
        }
    }

    /// Fading power of a terminal in the given round, which must be the current one.
    pub fn fading_power(&self, n: usize, round: u64) -> f64 {
        match self {
            Self::Drawn { fading, .. } => fading.values()[n].power(),
            Self::Recorded(trace) => trace.fading_power(n, round),
        }
    }

    /// Fading powers of this many rounds relative to the gain of the given one, which comes first and
    /// must be the current one.
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
                let power = |n: usize, k: u64| trace.total(n, round + k).0 / trace.gain(n, round).0;
                let all = |k: u64| (0..trace.n_terminals()).map(|n| power(n, k)).collect();
                (0..rounds as u64).map(all).collect()
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
