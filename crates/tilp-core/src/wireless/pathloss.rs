//! Path loss and line-of-sight probability of 3GPP TR 38.901.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether there is a line of sight to the base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Line of sight.
    Los,
    /// No line of sight.
    Nlos,
}

/// A propagation environment of TR 38.901.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Environment {
    /// Urban micro, street canyon.
    UrbanMicro,
    /// Indoor factory, sparse clutter, low base station.
    FactorySparseLow,
    /// Indoor factory, dense clutter, low base station.
    FactoryDenseLow,
    /// Indoor factory, sparse clutter, high base station.
    FactorySparseHigh,
    /// Indoor factory, dense clutter, high base station.
    FactoryDenseHigh,
}

/// Positions of the two ends of a link, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Geometry {
    pub distance_2d_m: f64,
    pub station_height_m: f64,
    pub terminal_height_m: f64,
}

impl Geometry {
    pub(crate) fn distance_3d_m(&self) -> f64 {
        self.distance_2d_m.hypot(self.station_height_m - self.terminal_height_m)
    }
}

impl Environment {
    /// Probability of line of sight, TR 38.901 table 7.4.2-1.
    pub(crate) fn los_probability(self, geometry: &Geometry) -> f64 {
        let d = geometry.distance_2d_m;
        if self == Self::UrbanMicro {
            return if d <= 18.0 { 1.0 } else { 18.0 / d + (-d / 36.0).exp() * (1.0 - 18.0 / d) };
        }
        let clutter = self.clutter();
        let mut reach_m = -clutter.size_m / (1.0 - clutter.density).ln();
        if matches!(self, Self::FactorySparseHigh | Self::FactoryDenseHigh) {
            let above = geometry.station_height_m - geometry.terminal_height_m;
            reach_m *= above / (clutter.height_m - geometry.terminal_height_m);
        }
        if reach_m <= 0.0 { 1.0 } else { (-d / reach_m).exp() }
    }

    /// Median path loss in dB at a carrier in GHz, TR 38.901 table 7.4.1-1.
    pub(crate) fn loss_db(self, sight: Sight, geometry: &Geometry, carrier_ghz: f64) -> f64 {
        let distance = geometry.distance_3d_m().max(1.0).log10();
        let carrier = carrier_ghz.log10();
        let los = match self {
            Self::UrbanMicro => 32.4 + 21.0 * distance + 20.0 * carrier,
            _ => 31.84 + 21.5 * distance + 19.0 * carrier,
        };
        if sight == Sight::Los {
            return los;
        }
        let sparse_low = 33.0 + 25.5 * distance + 20.0 * carrier;
        let nlos = match self {
            Self::UrbanMicro => {
                22.4 + 35.3 * distance + 21.3 * carrier - 0.3 * (geometry.terminal_height_m - 1.5)
            }
            Self::FactorySparseLow => sparse_low,
            Self::FactoryDenseLow => sparse_low.max(18.6 + 35.7 * distance + 20.0 * carrier),
            Self::FactorySparseHigh => 32.4 + 23.0 * distance + 20.0 * carrier,
            Self::FactoryDenseHigh => 33.63 + 21.9 * distance + 20.0 * carrier,
        };
        nlos.max(los)
    }

    /// Standard deviation of the shadowing in dB.
    pub(crate) fn shadowing_db(self, sight: Sight) -> f64 {
        match (self, sight) {
            (Self::UrbanMicro, Sight::Los) => 4.0,
            (Self::UrbanMicro, Sight::Nlos) => 7.82,
            (_, Sight::Los) => 4.3,
            (Self::FactorySparseLow, Sight::Nlos) => 5.7,
            (Self::FactoryDenseLow, Sight::Nlos) => 7.2,
            (Self::FactorySparseHigh, Sight::Nlos) => 5.9,
            (Self::FactoryDenseHigh, Sight::Nlos) => 4.0,
        }
    }

    fn clutter(self) -> Clutter {
        match self {
            Self::FactorySparseLow | Self::FactorySparseHigh => {
                Clutter { density: 0.2, size_m: 10.0, height_m: 2.0 }
            }
            _ => Clutter { density: 0.6, size_m: 2.0, height_m: 6.0 },
        }
    }
}

struct Clutter {
    density: f64,
    size_m: f64,
    height_m: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(distance_m: f64) -> Geometry {
        Geometry { distance_2d_m: distance_m, station_height_m: 1.5, terminal_height_m: 1.5 }
    }

    #[test]
    fn factory_losses_at_20_m_equal_the_golden_values() {
        // Golden values of the 38.901 models at 20 m and 3.5 GHz, read off the `sionna` package.
        let loss = |environment: Environment, sight| environment.loss_db(sight, &at(20.0), 3.5);
        assert!((loss(Environment::FactoryDenseHigh, Sight::Los) - 70.149).abs() < 5e-4);
        assert!((loss(Environment::FactoryDenseHigh, Sight::Nlos) - 73.004).abs() < 5e-4);
        assert!((loss(Environment::FactorySparseLow, Sight::Nlos) - 77.058).abs() < 5e-4);
    }

    #[test]
    fn an_obstructed_link_never_loses_less_than_a_clear_one() {
        for distance in [1.0, 5.0, 18.0, 50.0, 300.0, 2000.0] {
            for environment in [Environment::UrbanMicro, Environment::FactoryDenseLow] {
                let los = environment.loss_db(Sight::Los, &at(distance), 3.5);
                assert!(environment.loss_db(Sight::Nlos, &at(distance), 3.5) >= los);
            }
        }
    }

    #[test]
    fn the_station_is_always_in_sight_close_by_and_hardly_ever_far_away() {
        let micro = Environment::UrbanMicro;
        assert_eq!(micro.los_probability(&at(10.0)), 1.0);
        assert!((micro.los_probability(&at(18.0)) - 1.0).abs() < 1e-12);
        assert!((micro.los_probability(&at(1000.0)) - 0.018).abs() < 1e-6);
        let factory = Environment::FactoryDenseLow;
        let reach = -2.0 / 0.4f64.ln();
        assert!((factory.los_probability(&at(reach)) - (-1.0f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn a_raised_station_sees_further_over_the_clutter() {
        let low = at(20.0);
        let high = Geometry { station_height_m: 8.0, ..low };
        let reach = -2.0 / 0.4f64.ln() * (8.0 - 1.5) / (6.0 - 1.5);
        let seen = Environment::FactoryDenseHigh.los_probability(&high);
        assert!((seen - (-20.0 / reach).exp()).abs() < 1e-12);
        assert!(seen > Environment::FactoryDenseLow.los_probability(&low));
    }
}
