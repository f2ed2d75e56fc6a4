//! Whether a run was stable: its policy never fell far below the base policy, and did not end far
//! below its best.

use std::ops::RangeInclusive;

use super::study::Finished;

/// Rounds whose measurements are compared with the base policy.
const EARLY: RangeInclusive<u64> = 50..=200;
/// Points of success by which a stable run may be below the base policy in these rounds.
pub(super) const MOST_BELOW_BASE: f64 = 5.0;
/// Points of success by which the end of a stable run may be below its own best measurement.
pub(super) const MOST_BELOW_BEST: f64 = 15.0;

/// By how many points a run was below the base policy at worst, early on; `None` if it has no
/// measurement there.
pub(super) fn below_base(run: &Finished) -> Option<f64> {
    let curve = &run.summary.success_curve;
    let base = curve.iter().find(|(round, _)| *round == 0)?.1;
    let early = curve.iter().filter(|(round, _)| EARLY.contains(round));
    early.map(|(_, success)| 100.0 * (base - success)).reduce(f64::max)
}

/// By how many points a run ended below its own best.
pub(super) fn below_best(run: &Finished) -> Option<f64> {
    let best = run.summary.success_curve.iter().map(|(_, success)| *success).reduce(f64::max)?;
    Some(100.0 * (best - run.summary.success_final?))
}

/// The largest value over runs; `None` if no run has one.
pub(super) fn worst<'a>(
    runs: impl Iterator<Item = &'a Finished>,
    of: fn(&Finished) -> Option<f64>,
) -> Option<f64> {
    runs.filter_map(of).reduce(f64::max)
}
