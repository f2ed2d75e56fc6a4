//! Learning rates over the rounds.

/// Learning rates of the two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// eta^s.
    pub server: f32,
    /// eta^c.
    pub terminal: f32,
}

/// How the learning rates go over the rounds: a cosine from their start to a share of it, times a
/// linear warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSchedule {
    /// Rates of the first round.
    pub start: Rates,
    /// Share of them at the last round.
    pub final_share: f64,
    /// Number of rounds.
    pub rounds: u64,
    /// In round `t` the rates are multiplied by `t / warm_up` until that is 1; zero for none.
    pub warm_up: u64,
}

impl RateSchedule {
    /// The rates of a round counted from 1.
    pub fn at(&self, round: u64) -> Rates {
        self.at_share(round, (round.max(1) - 1) as f64 / self.rounds.max(1) as f64)
    }

    /// The rates of a round before which this share of the run is done: of its rounds, or of its
    /// budget. The warm-up counts rounds in both cases.
    pub fn at_share(&self, round: u64, progress: f64) -> Rates {
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos());
        let share = self.final_share + (1.0 - self.final_share) * cosine;
        let share = (share * self.warmth(round)) as f32;
        Rates { server: self.start.server * share, terminal: self.start.terminal * share }
    }

    /// The factor of the warm-up.
    fn warmth(&self, round: u64) -> f64 {
        if round >= self.warm_up { 1.0 } else { round.max(1) as f64 / self.warm_up as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(warm_up: u64) -> RateSchedule {
        let start = Rates { server: 0.5, terminal: 0.25 };
        RateSchedule { start, final_share: 0.1, rounds: 100, warm_up }
    }

    #[test]
    fn rates_fall_along_a_cosine_to_their_share() {
        let schedule = schedule(0);
        assert_eq!(schedule.at(1), schedule.start);
        let middle = schedule.at(51).server;
        assert!((middle - 0.5 * 0.55).abs() < 1e-6, "{middle}");
        assert!((schedule.at(101).terminal - 0.025).abs() < 1e-6);
        assert_eq!(schedule.at(1000), schedule.at(101));
    }

    #[test]
    fn by_the_used_share_of_a_budget_rates_fall_as_by_rounds() {
        let schedule = schedule(4);
        for round in [1, 2, 50, 100] {
            assert_eq!(schedule.at_share(round, (round - 1) as f64 / 100.0), schedule.at(round));
        }
        // Half of the budget is used after ten rounds.
        assert_eq!(schedule.at_share(11, 0.5), schedule.at(51));
        assert_eq!(schedule.at_share(1000, 1.5), schedule.at(101));
    }

    #[test]
    fn warm_up_multiplies_the_cosine_in_equal_steps() {
        let (plain, warm) = (schedule(0), schedule(4));
        for (round, factor) in [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0), (5, 1.0), (60, 1.0)] {
            let (expected, found) = (factor * plain.at(round).server, warm.at(round).server);
            assert!((expected - found).abs() < 1e-7, "round {round}: {found}");
        }
        assert!((1..=100).all(|round| schedule(1).at(round) == plain.at(round)));
    }
}
