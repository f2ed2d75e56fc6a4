//! Learning rates over the rounds.

/// Learning rates of the two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// eta^s.
    pub server: f32,
    /// eta^c.
    pub terminal: f32,
}

/// How the learning rates go over the rounds: a cosine from their start to a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSchedule {
    /// Rates of the first round.
    pub start: Rates,
    /// Share of them at the last round.
    pub final_share: f64,
    /// Number of rounds.
    pub rounds: u64,
}

impl RateSchedule {
    /// The rates of a round counted from 1.
    pub fn at(&self, round: u64) -> Rates {
        self.at_share((round.max(1) - 1) as f64 / self.rounds.max(1) as f64)
    }

    /// The rates of the next round, or of one for which a budget of this share is used.
    pub fn at_share(&self, progress: f64) -> Rates {
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos());
        let share = (self.final_share + (1.0 - self.final_share) * cosine) as f32;
        Rates { server: self.start.server * share, terminal: self.start.terminal * share }
    }
}
