//! How much the terminals of a scenario differ: one knob. `docs/heterogeneity.md` has the mapping
//! and its reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wireless::Place;

/// A level of heterogeneity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Heterogeneity {
    /// Terminals with the same task are alike in everything but chance.
    Homogeneous,
    /// Half of the differences that the scenario writes down.
    Mild,
    /// What the scenario writes down.
    #[default]
    Default,
    /// Half as much again.
    Strong,
}

/// TR 38.901 has no smaller distances.
const LEAST_DISTANCE_M: f64 = 10.0;

impl Heterogeneity {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::Default
    }

    /// The name in scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Homogeneous => "homogeneous",
            Self::Mild => "mild",
            Self::Default => "default",
            Self::Strong => "strong",
        }
    }

    /// Share of all differences, s.
    pub(super) fn share(self) -> f64 {
        match self {
            Self::Homogeneous => 0.0,
            Self::Mild => 0.5,
            Self::Default => 1.0,
            Self::Strong => 1.5,
        }
    }

    /// A hidden error, or a share of what obstacles do to the radio: times h.
    pub(super) fn hidden(self, value: f64) -> f64 {
        value * self.share().min(1.0)
    }

    /// A range around its geometric mean.
    pub(super) fn range(self, [low, high]: [f64; 2]) -> [f64; 2] {
        if self.is_default() {
            return [low, high];
        }
        let middle = (low * high).sqrt();
        [low, high].map(|end| middle * (end / middle).powf(self.share()))
    }

    /// Share of the terminals that cannot hold the deepest cut.
    pub(super) fn short_memory_share(self, share: f64) -> f64 {
        (share * self.share()).min(1.0)
    }

    /// Largest factor between the usual number of demonstrations and that of a terminal.
    pub(super) fn data_spread(self, spread: f64) -> f64 {
        let factor = if self == Self::Strong { 2.0 } else { 1.0 };
        factor * spread.powf(self.share())
    }

    /// A place that was drawn on a ring, moved towards the median distance or away from it.
    pub(super) fn place(self, place: Place, inner_m: f64, outer_m: f64) -> Place {
        let distance = place.distance_m();
        if self.is_default() || distance == 0.0 {
            return place;
        }
        let median = (0.5 * (inner_m.powi(2) + outer_m.powi(2))).sqrt();
        let moved = median * (distance / median).powf(self.share());
        place.at_distance(moved.max(inner_m.min(LEAST_DISTANCE_M)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Heterogeneity::{Default as Usual, Homogeneous, Mild, Strong};

    #[test]
    fn the_default_level_changes_no_bit() {
        let range = [0.1, 1.0];
        assert_eq!(Usual.range(range), range);
        assert_eq!(Usual.hidden(0.3).to_bits(), 0.3f64.to_bits());
        assert_eq!(Usual.short_memory_share(0.25), 0.25);
        assert_eq!(Usual.data_spread(1.0), 1.0);
        let place = Place { x_m: 123.4, y_m: -56.7 };
        assert_eq!(Usual.place(place, 10.0, 650.0), place);
    }

    #[test]
    fn a_range_shrinks_and_grows_around_its_geometric_mean() {
        let near = |found: [f64; 2], expected: [f64; 2]| {
            found.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-12)
        };
        assert!(near(Homogeneous.range([0.1, 10.0]), [1.0, 1.0]));
        assert!(near(Mild.range([0.01, 100.0]), [0.1, 10.0]));
        assert!(near(Strong.range([0.01, 100.0]), [1e-3, 1e3]));
    }

    #[test]
    fn the_median_distance_is_the_same_at_every_level() {
        // Radii 100 and 700: half of the ring's area lies within 500 m.
        let at = |distance: f64| Place { x_m: 0.6 * distance, y_m: 0.8 * distance };
        let moved = |level: Heterogeneity, distance: f64| {
            let place = level.place(at(distance), 100.0, 700.0);
            assert!((place.y_m / place.x_m - 0.8 / 0.6).abs() < 1e-9, "the angle stays");
            place.distance_m()
        };
        for level in [Homogeneous, Mild, Usual, Strong] {
            assert!((moved(level, 500.0) - 500.0).abs() < 1e-9, "{level:?}");
        }
        assert!((moved(Homogeneous, 123.0) - 500.0).abs() < 1e-9);
        assert!((moved(Mild, 125.0) - 250.0).abs() < 1e-9);
        assert!((moved(Strong, 125.0) - 62.5).abs() < 1e-9);
        assert!((moved(Strong, 2.0) - 10.0).abs() < 1e-9, "no nearer than 10 m");
    }

    #[test]
    fn data_memory_and_hidden_errors_follow_the_level() {
        let levels = [Homogeneous, Mild, Usual, Strong];
        assert_eq!(levels.map(|level| level.data_spread(1.0)), [1.0, 1.0, 1.0, 2.0]);
        assert_eq!(levels.map(|level| level.data_spread(4.0)), [1.0, 2.0, 4.0, 16.0]);
        assert_eq!(levels.map(|level| level.short_memory_share(0.25)), [0.0, 0.125, 0.25, 0.375]);
        assert_eq!(levels.map(|level| level.hidden(0.5)), [0.0, 0.25, 0.5, 0.5]);
    }
}
