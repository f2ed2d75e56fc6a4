//! Dinkelbach: the least ratio by a sequence of differences.

/// A candidate with its ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Fraction<T> {
    /// The candidate.
    pub choice: T,
    /// Numerator.
    pub over: f64,
    /// Denominator, positive.
    pub under: f64,
}

impl<T> Fraction<T> {
    /// The ratio.
    pub fn ratio(&self) -> f64 {
        self.over / self.under
    }
}

/// Minimises `over / under` from a first candidate. `least(lambda)` gives the candidate with the
/// least `over - lambda under`. The ratio falls with every step; it ends when it no longer does.
pub fn dinkelbach<T>(
    first: Fraction<T>,
    mut least: impl FnMut(f64) -> Fraction<T>,
) -> (Fraction<T>, Vec<f64>) {
    let mut best = first;
    let mut ratios = vec![best.ratio()];
    // Convergence is superlinear: a handful of steps; the bound is for broken numbers.
    for _ in 0..50 {
        let next = least(best.ratio());
        if !(next.under > 0.0 && next.ratio() < best.ratio()) {
            break;
        }
        best = next;
        ratios.push(best.ratio());
    }
    (best, ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_falls_to_the_least_of_all() {
        let pairs = [(5.0, 2.0), (3.0, 1.0), (9.0, 8.0), (1.0, 0.7), (2.0, 1.9), (4.0, 4.1)];
        let fraction = |&(over, under): &(f64, f64)| Fraction { choice: (), over, under };
        let (best, ratios) = dinkelbach(fraction(&pairs[1]), |lambda| {
            let value = |pair: &&(f64, f64)| pair.0 - lambda * pair.1;
            fraction(pairs.iter().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap())
        });
        let least = pairs.iter().map(|(over, under)| over / under).fold(f64::INFINITY, f64::min);
        assert_eq!(best.ratio(), least);
        assert!(ratios.len() > 1 && ratios.windows(2).all(|pair| pair[1] < pair[0]));
    }
}
