//! GA-SFL: one common cut and bandwidths for the least sum of bound and latency; one averaged
//! gradient is broadcast.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::published::{Planner, Setup};
use super::solve::{Need, finish_together};
use crate::cost::Job;
use crate::round::{Decision, Observation};
use crate::snapshot::Persist;
use crate::units::{Bits, Hertz, Seconds};

/// Knobs of GA-SFL.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GaSflKnobs {
    /// Increase of the bound, in seconds, if the whole model were on the terminal.
    pub bound_weight_s: f64,
    /// Least log2(1 + share of the model on the terminal), the privacy constraint.
    pub privacy: f64,
}

/// GA-SFL (Liang et al. 2025): every cut is tried. The published method learns the cut by a deep
/// Q-network; rounds are not coupled in its objective, so trying all can only be better.
pub struct GaSfl {
    setup: Setup,
    knobs: GaSflKnobs,
}

/// The band shared for one common cut.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Common {
    /// The cut.
    pub cut: usize,
    /// Bound and latency together.
    pub value: f64,
    /// Bandwidths in the order of the terminals.
    pub bandwidths: Vec<Hertz>,
}

impl GaSfl {
    /// GA-SFL on a problem.
    pub fn new(setup: Setup, knobs: GaSflKnobs) -> Self {
        Self { setup, knobs }
    }

    /// Bandwidths and value of a cut; `None` if a link has no capacity.
    fn common(&self, seen: &Observation, among: &[usize], cut: usize) -> Option<Common> {
        let setup = &self.setup;
        let jobs: Vec<Job> =
            among.iter().map(|&n| setup.job(seen, n, cut, seen.aggregates)).collect();
        // A third of the work is the forward pass, which comes before sending.
        let need = |(&n, job): (&usize, &Job)| {
            let all = job.up + job.sync_up + job.sync_down;
            let forward_s = setup.computation_s(seen, n, job) / 3.0;
            setup.need_of(seen, n, all, job.sync_down, forward_s)
        };
        let needs: Vec<Need> = among.iter().zip(&jobs).map(need).collect();
        let band = setup.band(seen, among, seen.aggregates);
        let (Seconds(up), bandwidths) = finish_together(&needs, band)?;
        let whole = setup.problem.cost.limits.bandwidth;
        let rates = among.iter().map(|&n| setup.channel_down(seen, n).rate(whole).0);
        let worst = rates.fold(f64::MAX, f64::min);
        let down = jobs.iter().map(|job| Bits::from_bytes(job.down).0).fold(0.0, f64::max) / worst;
        let back =
            among.iter().zip(&jobs).map(|(&n, job)| setup.computation_s(seen, n, job) * 2.0 / 3.0);
        let value = self.bound(cut) + up + down + back.fold(0.0, f64::max);
        Some(Common { cut, value, bandwidths })
    }

    /// The part of the model on the terminals, weighed.
    fn bound(&self, cut: usize) -> f64 {
        self.knobs.bound_weight_s * self.share(cut)
    }

    fn share(&self, cut: usize) -> f64 {
        let profile = &self.setup.problem.cost.profile;
        profile.parameters(0, cut).0 as f64 / profile.parameters(0, profile.cuts.len()).0 as f64
    }

    /// Cuts that meet the privacy limit and fit every terminal, otherwise the shallowest; and whether there are any.
    fn cuts(&self, seen: &Observation, among: &[usize]) -> (Vec<usize>, bool) {
        let (problem, all) = (&self.setup.problem, &self.setup.problem.cost.limits.cuts);
        let least =
            among.iter().map(|&n| seen.terminals[n].report.memory).min().unwrap_or_default();
        let fits = |cut: &usize| problem.cost.profile.memory(*cut) <= least;
        let private = |cut: &usize| (1.0 + self.share(*cut)).log2() >= self.knobs.privacy;
        let cuts: Vec<usize> = all.iter().copied().filter(|c| fits(c) && private(c)).collect();
        if cuts.is_empty() { (vec![all[0]], true) } else { (cuts, false) }
    }
}

impl Persist for GaSfl {}

impl Planner for GaSfl {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let setup = &self.setup;
        let mut alive: Vec<usize> =
            among.iter().copied().filter(|&n| !setup.dead(seen, n)).collect();
        let dead = alive.len() < among.len();
        if alive.is_empty() {
            alive.push(setup.fastest(seen, among));
        }
        let (cuts, unfit) = self.cuts(seen, &alive);
        let tried = cuts.iter().filter_map(|&cut| self.common(seen, &alive, cut));
        let best = tried.min_by(|a, b| a.value.total_cmp(&b.value).then(a.cut.cmp(&b.cut)));
        let best = best.unwrap_or_else(|| {
            let even = setup.problem.cost.limits.bandwidth / alive.len() as f64;
            Common { cut: cuts[0], value: f64::INFINITY, bandwidths: vec![even; alive.len()] }
        });
        let chosen = alive.iter().zip(&best.bandwidths).map(|(&n, &b)| (n, b, best.cut));
        let mut decision = setup.decision(seen, chosen);
        decision.fallback = dead || unfit || !best.value.is_finite();
        decision
    }
}
