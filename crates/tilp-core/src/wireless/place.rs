//! Positions of terminals and their large-scale gains.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::pathloss::{Environment, Geometry, Sight};
use crate::rng::Seed;
use crate::units::{Gain, Hertz};

/// A position in metres; the base station is at the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// East.
    pub x_m: f64,
    /// North.
    pub y_m: f64,
}

impl Place {
    /// Horizontal distance to the base station.
    pub fn distance_m(self) -> f64 {
        self.x_m.hypot(self.y_m)
    }

    /// The place in the same direction at another distance.
    pub fn at_distance(self, distance_m: f64) -> Self {
        let factor = distance_m / self.distance_m();
        Self { x_m: self.x_m * factor, y_m: self.y_m * factor }
    }

    fn distance_to_m(self, other: Self) -> f64 {
        (self.x_m - other.x_m).hypot(self.y_m - other.y_m)
    }
}

/// Terminals uniform over a ring around the base station.
pub fn draw_places(n_terminals: usize, inner_m: f64, outer_m: f64, seed: Seed) -> Vec<Place> {
    let one = |n: usize| {
        let mut rng = seed.at(n as u64).rng();
        let share: f64 = rng.random();
        let radius = (inner_m.powi(2) + share * (outer_m.powi(2) - inner_m.powi(2))).sqrt();
        let angle = rng.random::<f64>() * std::f64::consts::TAU;
        Place { x_m: radius * angle.cos(), y_m: radius * angle.sin() }
    };
    (0..n_terminals).map(one).collect()
}

/// Inputs of the large-scale gain of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surroundings {
    /// Propagation environment.
    pub environment: Environment,
    /// Carrier frequency.
    pub carrier: Hertz,
    /// Height of the base station's antenna.
    pub station_height_m: f64,
    /// Height of the terminals' antennas.
    pub terminal_height_m: f64,
    /// Distance over which shadowing decorrelates to 1/e.
    pub shadowing_distance_m: f64,
    /// Share of what is drawn by which the loss of a terminal deviates from the usual one at its
    /// distance: the loss without shadowing in the more probable of sight and no sight.
    pub deviation: f64,
}

/// Large-scale gains G_n: path loss with random line of sight, and correlated log-normal
/// shadowing.
pub fn large_scale_gains(places: &[Place], around: &Surroundings, seed: Seed) -> Vec<Gain> {
    let shadowing = correlated_normals(places, around.shadowing_distance_m, seed.named("shadow"));
    let gain = |(n, place): (usize, &Place)| {
        let geometry = Geometry {
            distance_2d_m: place.distance_m(),
            station_height_m: around.station_height_m,
            terminal_height_m: around.terminal_height_m,
        };
        let dice: f64 = seed.named("sight").at(n as u64).rng().random();
        let in_sight = dice < around.environment.los_probability(&geometry);
        let sight = if in_sight { Sight::Los } else { Sight::Nlos };
        let loss_db =
            |sight: Sight| around.environment.loss_db(sight, &geometry, around.carrier.0 / 1e9);
        let drawn_db = loss_db(sight) + around.environment.shadowing_db(sight) * shadowing[n];
        if around.deviation == 1.0 {
            return Gain::from_loss_db(drawn_db);
        }
        let likely = around.environment.los_probability(&geometry) >= 0.5;
        let usual_db = loss_db(if likely { Sight::Los } else { Sight::Nlos });
        Gain::from_loss_db(usual_db + around.deviation * (drawn_db - usual_db))
    };
    places.iter().enumerate().map(gain).collect()
}

/// Standard normals with correlation exp(-distance / `decay_m`), by Cholesky factorisation.
fn correlated_normals(places: &[Place], decay_m: f64, seed: Seed) -> Vec<f64> {
    let n = places.len();
    let mut factor = vec![0.0; n * n];
    let mut values: Vec<f64> = Vec::with_capacity(n);
    for i in 0..n {
        for j in 0..=i {
            // The tiny diagonal load keeps two terminals at the same spot factorisable.
            let load = if i == j { 1e-9 } else { 0.0 };
            let target = (-places[i].distance_to_m(places[j]) / decay_m).exp() + load;
            let dot: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
            let rest = target - dot;
            factor[i * n + j] = if i == j { rest.sqrt() } else { rest / factor[j * n + j] };
        }
        values.push(StandardNormal.sample(&mut seed.at(i as u64).rng()));
    }
    (0..n).map(|i| (0..=i).map(|k| factor[i * n + k] * values[k]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_uniform_over_the_ring() {
        let places = draw_places(4000, 10.0, 100.0, Seed::new(1));
        assert!(places.iter().all(|place| (10.0..=100.0).contains(&place.distance_m())));
        // Half of the area lies outside sqrt((10^2 + 100^2) / 2) m.
        let median = ((100.0 + 10_000.0) / 2.0f64).sqrt();
        let outside = places.iter().filter(|place| place.distance_m() > median).count();
        assert!((outside as f64 / 4000.0 - 0.5).abs() < 4.0 * (0.25f64 / 4000.0).sqrt());
    }

    #[test]
    fn shadowing_decorrelates_to_one_over_e_at_the_correlation_distance() {
        let pair = [Place { x_m: 0.0, y_m: 0.0 }, Place { x_m: 10.0, y_m: 0.0 }];
        let n = 20_000;
        let draws = (0..n).map(|i| correlated_normals(&pair, 10.0, Seed::new(i)));
        let (mut product, mut square) = (0.0, 0.0);
        for draw in draws {
            product += draw[0] * draw[1];
            square += draw[1] * draw[1];
        }
        let bound = 5.0 / (n as f64).sqrt();
        assert!((product / n as f64 - (-1.0f64).exp()).abs() < bound);
        assert!((square / n as f64 - 1.0).abs() < 1.5 * bound);
    }

    #[test]
    fn two_terminals_at_one_spot_share_their_shadowing() {
        let spot = Place { x_m: 3.0, y_m: 4.0 };
        let values = correlated_normals(&[spot, spot], 10.0, Seed::new(3));
        assert!((values[0] - values[1]).abs() < 1e-3);
    }

    #[test]
    fn the_gain_of_a_terminal_depends_on_the_seed_only() {
        let around = Surroundings {
            environment: Environment::UrbanMicro,
            carrier: Hertz(3.5e9),
            station_height_m: 10.0,
            terminal_height_m: 1.5,
            shadowing_distance_m: 10.0,
            deviation: 1.0,
        };
        let places = draw_places(20, 10.0, 500.0, Seed::new(5));
        let gains = large_scale_gains(&places, &around, Seed::new(5));
        assert_eq!(gains, large_scale_gains(&places, &around, Seed::new(5)));
        assert_ne!(gains, large_scale_gains(&places, &around, Seed::new(6)));
        assert!(gains.iter().all(|gain| (40.0..200.0).contains(&gain.loss_db())));
    }

    #[test]
    fn the_deviation_from_the_usual_loss_is_scaled_in_decibels() {
        let losses = |deviation: f64| -> Vec<f64> {
            let around = Surroundings {
                environment: Environment::UrbanMicro,
                carrier: Hertz(3.5e9),
                station_height_m: 10.0,
                terminal_height_m: 1.5,
                shadowing_distance_m: 10.0,
                deviation,
            };
            let places = draw_places(60, 10.0, 650.0, Seed::new(5));
            let gains = large_scale_gains(&places, &around, Seed::new(5));
            gains.iter().map(|gain| gain.loss_db()).collect()
        };
        let (usual, half, drawn) = (losses(0.0), losses(0.5), losses(1.0));
        for n in 0..60 {
            assert!((half[n] - 0.5 * (usual[n] + drawn[n])).abs() < 1e-9, "terminal {n}");
        }
        let spread = usual.iter().zip(&drawn).map(|(usual, drawn)| (usual - drawn).abs());
        assert!(spread.fold(0.0, f64::max) > 10.0);
    }

    #[test]
    fn a_place_at_another_distance_has_the_same_direction() {
        let place = Place { x_m: 3.0, y_m: -4.0 }.at_distance(10.0);
        assert!((place.x_m - 6.0).abs() < 1e-12 && (place.y_m + 8.0).abs() < 1e-12);
    }
}
