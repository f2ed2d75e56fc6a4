//! Random instances for the tests of solvers.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// This number of instances, the same in every run of the tests.
pub(in crate::allocate) fn repeatable(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// A number between these powers of ten, log-uniform.
pub(in crate::allocate) fn power_of_ten(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low..high).prop_map(|power| 10f64.powf(power))
}
