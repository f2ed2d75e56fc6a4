//! Lambert's W, as the price of bandwidth needs it.

use std::f64::consts::E;

/// The x of (x - 1) e^x + 1 = `price`: 1 + W((price - 1) / e), by its series near zero.
pub(super) fn exponent(price: f64) -> f64 {
    if price < 1e-6 {
        let root = (2.0 * price.max(0.0)).sqrt();
        return root - root * root / 3.0;
    }
    1.0 + lambert_0((price - 1.0) / E)
}

/// Lambert's W on its upper branch, for x of at least -1/e.
fn lambert_0(x: f64) -> f64 {
    // Near the branch point its series; else the logarithm, which is above the root, as Halley likes.
    let start = match x {
        _ if x < -0.3 => {
            let root = (2.0 * (E * x + 1.0).max(0.0)).sqrt();
            -1.0 + root - root * root / 3.0 + 11.0 / 72.0 * root.powi(3)
        }
        _ if x < 2.0 => x.ln_1p() * (1.0 - 0.3 * x.ln_1p() / (1.0 + x.ln_1p().abs())),
        _ => x.ln() - x.ln().ln().max(0.0) * 0.8,
    };
    halley(start, x)
}

/// The w near `start` with w e^w = x.
fn halley(start: f64, x: f64) -> f64 {
    let mut w = start;
    for _ in 0..40 {
        let error = w * w.exp() - x;
        let slope = w.exp() * (w + 1.0) - (w + 2.0) * error / (2.0 * w + 2.0);
        if slope == 0.0 || !slope.is_finite() {
            break;
        }
        let step = error / slope;
        w -= step;
        if step.abs() <= 1e-15 * w.abs().max(1e-300) {
            break;
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lamberts_w_undoes_w_times_e_to_the_w() {
        for w in [-0.999f64, -0.9, -0.5, -1e-3, 1e-6, 0.3, 1.0, 5.0, 40.0, 300.0] {
            let found = lambert_0(w * w.exp());
            assert!((found - w).abs() < 1e-7 * w.abs().max(1.0), "{w} {found}");
        }
        for price in [1e-12, 1e-7, 1e-5, 0.1, 1.0, 10.0, 1e6] {
            let x = exponent(price);
            let back =
                if x < 1e-3 { x * x / 2.0 + x.powi(3) / 3.0 } else { (x - 1.0) * x.exp() + 1.0 };
            assert!((back / price - 1.0).abs() < 1e-3, "{price} {x}");
        }
    }
}
