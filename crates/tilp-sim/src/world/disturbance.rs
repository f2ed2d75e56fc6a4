//! Disturbances of the radio over some rounds: blockages and interferers.

use crate::round::TerminalId;
use crate::units::from_db;

/// Something on the air that hits some terminals for some rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// The first round, counted from 1.
    pub first: u64,
    /// The last round.
    pub last: u64,
    /// The terminals that it hits.
    pub terminals: Vec<TerminalId>,
    /// Loss of large-scale gain in dB: a blockage. The terminals report the lower gain.
    pub loss_db: f64,
    /// Rise of the noise in dB: an interferer. No report contains it; delays show it.
    pub noise_db: f64,
}

impl Disturbance {
    fn hits(&self, id: TerminalId, round: u64) -> bool {
        (self.first..=self.last).contains(&round) && self.terminals.contains(&id)
    }
}

/// All disturbances of a run. Where several hit a terminal in a round, decibels add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbances(pub Vec<Disturbance>);

impl Disturbances {
    /// Factor on the large-scale gain of a terminal in a round.
    pub fn gain_factor(&self, id: TerminalId, round: u64) -> f64 {
        self.factor(id, round, |one| -one.loss_db)
    }

    /// Factor on the noise of a terminal's link in a round.
    pub fn noise_factor(&self, id: TerminalId, round: u64) -> f64 {
        self.factor(id, round, |one| one.noise_db)
    }

    /// Exactly one without a disturbance.
    fn factor(&self, id: TerminalId, round: u64, db: fn(&Disturbance) -> f64) -> f64 {
        let hits = self.0.iter().filter(|one| one.hits(id, round));
        let total: f64 = hits.map(db).sum();
        if total == 0.0 { 1.0 } else { from_db(total) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u32]) -> Vec<TerminalId> {
        ids.iter().copied().map(TerminalId).collect()
    }

    #[test]
    fn a_blockage_of_15_db_divides_the_gain_from_its_first_to_its_last_round() {
        let blockage = Disturbance {
            first: 3,
            last: 5,
            terminals: ids(&[1, 4]),
            loss_db: 15.0,
            ..Disturbance::default()
        };
        let all = Disturbances(vec![blockage]);
        for round in 1..8 {
            let expected =
                if (3..=5).contains(&round) { 1.0 / 31.622_776_601_683_793 } else { 1.0 };
            let factor = all.gain_factor(TerminalId(4), round);
            assert!((factor - expected).abs() < 1e-15, "round {round}");
            assert_eq!(all.gain_factor(TerminalId(0), round), 1.0);
            assert_eq!(all.noise_factor(TerminalId(4), round), 1.0);
        }
    }

    #[test]
    fn decibels_of_two_interferers_add_up() {
        let one = |terminals: &[u32], noise_db: f64| Disturbance {
            first: 1,
            last: 9,
            terminals: ids(terminals),
            noise_db,
            ..Disturbance::default()
        };
        let all = Disturbances(vec![one(&[0, 1], 3.0), one(&[1], 7.0)]);
        assert!((all.noise_factor(TerminalId(1), 2) - 10.0).abs() < 1e-12);
        assert!((all.noise_factor(TerminalId(0), 2) - 10f64.powf(0.3)).abs() < 1e-12);
        assert_eq!(all.gain_factor(TerminalId(1), 2), 1.0);
    }
}
