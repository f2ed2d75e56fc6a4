//! Statistics of a feature as LeRobot keeps them: for every number of it, over the frames.

use serde_json::{Value, json};

/// Names and shares of the quantiles.
const QUANTILES: [(&str, f64); 5] =
    [("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99)];

/// Statistics of a feature, each with one value for every number of it.
pub(super) struct Statistics {
    pub named: Vec<(&'static str, Vec<f64>)>,
    pub count: i64,
}

impl Statistics {
    /// Of frames with `width` numbers each; there is at least one frame.
    pub(super) fn of(values: &[f64], width: usize) -> Self {
        let n = values.len() / width;
        let column = |place: usize| values.iter().skip(place).step_by(width).copied();
        let each = |what: &dyn Fn(usize) -> f64| (0..width).map(what).collect::<Vec<f64>>();
        let mean = each(&|place| column(place).sum::<f64>() / n as f64);
        let deviation = each(&|place| {
            let squares = column(place).map(|value| (value - mean[place]).powi(2));
            (squares.sum::<f64>() / n as f64).sqrt()
        });
        let mut named = vec![
            ("min", each(&|place| column(place).fold(f64::INFINITY, f64::min))),
            ("max", each(&|place| column(place).fold(f64::NEG_INFINITY, f64::max))),
            ("mean", mean.clone()),
            ("std", deviation),
        ];
        let sorted: Vec<Vec<f64>> = (0..width)
            .map(|place| {
                let mut all: Vec<f64> = column(place).collect();
                all.sort_unstable_by(f64::total_cmp);
                all
            })
            .collect();
        for (name, share) in QUANTILES {
            named.push((name, sorted.iter().map(|all| quantile(all, share)).collect()));
        }
        Self { named, count: n as i64 }
    }

    /// As in `meta/stats.json`.
    pub(super) fn json(&self) -> Value {
        let mut all: serde_json::Map<String, Value> =
            self.named.iter().map(|(name, values)| ((*name).to_owned(), json!(values))).collect();
        all.insert("count".into(), json!([self.count]));
        Value::Object(all)
    }
}

/// Linear between the two neighbours of a sorted list.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + place.fract() * (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_by_number_over_the_frames() {
        let found = Statistics::of(&[1.0, 10.0, 2.0, 10.0, 6.0, 40.0], 2);
        let named = |name: &str| {
            found.named.iter().find(|(found, _)| *found == name).map(|(_, values)| values.clone())
        };
        assert_eq!(found.count, 3);
        assert_eq!(named("min"), Some(vec![1.0, 10.0]));
        assert_eq!(named("max"), Some(vec![6.0, 40.0]));
        assert_eq!(named("mean"), Some(vec![3.0, 20.0]));
        assert_eq!(named("std"), Some(vec![(14.0_f64 / 3.0).sqrt(), 200.0_f64.sqrt()]));
        assert_eq!(named("q50"), Some(vec![2.0, 10.0]));
        assert_eq!(named("q90"), Some(vec![2.0 + 0.8 * 4.0, 10.0 + 0.8 * 30.0]));
    }
}
