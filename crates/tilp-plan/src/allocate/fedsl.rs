//! FedSL: cuts and bandwidths in turns under an energy budget, stragglers dropped to a threshold.

use super::asfl::options;
use super::published::{Planner, Setup};
use super::solve::{EnergyQueue, Need, Tradeoff, share_by_energy};
use crate::round::{Decision, Observation, Outcome, ProjectedDecision};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::{Bits, Hertz};

/// Knobs of FedSL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FedSlKnobs {
    /// Allowed energy of all terminals per round in the long run; `None` for no budget.
    pub budget_j: Option<f64>,
    /// V: weight of a second against a joule of backlog times a joule.
    pub time_weight: f64,
    /// Least share of the terminals that takes part.
    pub threshold: f64,
    /// Largest number of alternations of cuts and bandwidths in a plan.
    pub turns: usize,
    /// The same while energy has a price, when the alternation takes longer to converge.
    pub priced_turns: usize,
}

/// FedSL (Ao et al. 2025), reconstructed: minimises V T + Q E with a virtual energy queue Q, and
/// drops the slowest while the deadline is missed and enough are left.
pub struct FedSl {
    setup: Setup,
    knobs: FedSlKnobs,
    queue: EnergyQueue,
}

impl FedSl {
    /// FedSL on a problem.
    pub fn new(setup: Setup, knobs: FedSlKnobs) -> Self {
        Self { setup, knobs, queue: EnergyQueue::new(knobs.budget_j) }
    }

    /// Cuts and bandwidths for these terminals, and the time at which the slowest is done; `None` if a
    /// link has no capacity.
    fn share(&self, seen: &Observation, chosen: &[usize]) -> Option<(f64, Vec<usize>, Vec<Hertz>)> {
        let setup = &self.setup;
        let deadline = setup.problem.cost.limits.deadline;
        let band = setup.band(seen, chosen, seen.aggregates);
        let options = options(setup, seen, chosen, seen.aggregates);
        let mut bandwidths = vec![band / chosen.len() as f64; chosen.len()];
        let mut best: Option<(f64, f64, Vec<usize>, Vec<Hertz>)> = None;
        let FedSlKnobs { turns, priced_turns, .. } = self.knobs;
        for _ in 0..if self.queue.backlog_j > 0.0 { priced_turns } else { turns } {
            let picks: Vec<usize> = (0..chosen.len())
                .map(|index| self.cut(seen, chosen[index], &options[index], bandwidths[index]))
                .collect();
            let needs: Vec<Need> =
                options.iter().zip(&picks).map(|(options, &pick)| options[pick].1).collect();
            let cuts: Vec<usize> =
                options.iter().zip(&picks).map(|(options, &pick)| options[pick].0).collect();
            let sent = |(&n, &cut): (&usize, &usize)| self.sent(seen, n, cut);
            let sent: Vec<f64> = chosen.iter().zip(&cuts).map(sent).collect();
            let (_, split) = share_by_energy(&needs, &sent, band, self.tradeoff(), deadline)?;
            let time = |(need, b): (&Need, &Hertz)| need.finish(*b);
            let slowest = needs.iter().zip(&split).map(time).fold(0.0, f64::max);
            let value = self.value(seen, chosen, &cuts, &split, slowest);
            if best.as_ref().is_some_and(|best| value >= best.0 * (1.0 - 1e-9)) {
                break;
            }
            bandwidths.clone_from(&split);
            best = Some((value, slowest, cuts, split));
        }
        best.map(|(_, slowest, cuts, split)| (slowest, cuts, split))
    }

    /// Drops the last while these cannot make the deadline together and enough are left.
    fn drop_stragglers(&self, seen: &Observation, chosen: &mut Vec<usize>) {
        let limits = &self.setup.problem.cost.limits;
        let least = self.knobs.threshold * seen.terminals.len() as f64;
        let options = options(&self.setup, seen, chosen, seen.aggregates);
        let need = |options: &Vec<(usize, Need)>| {
            let by = |(_, need): &(usize, Need)| need.by(limits.deadline.0, limits.bandwidth);
            options.iter().filter_map(by).map(|b| b.0).fold(f64::INFINITY, f64::min)
        };
        let needs: Vec<f64> = options.iter().map(need).collect();
        while chosen.len() > (least.ceil() as usize).max(1) {
            let band = self.setup.band(seen, chosen, seen.aggregates);
            if needs[..chosen.len()].iter().sum::<f64>() <= band.0 {
                return;
            }
            chosen.pop();
        }
    }

    fn tradeoff(&self) -> Tradeoff {
        let power_w = self.setup.problem.cost.limits.power.0;
        Tradeoff { time: self.knobs.time_weight, energy: self.queue.backlog_j, power_w }
    }

    /// Bits that a terminal sends, which is what its radio spends energy on.
    fn sent(&self, seen: &Observation, n: usize, cut: usize) -> f64 {
        let job = self.setup.job(seen, n, cut, seen.aggregates);
        Bits::from_bytes(job.up + job.sync_up).0
    }

    /// The option with the least V T_n + Q E_n at this bandwidth.
    fn cut(&self, seen: &Observation, n: usize, options: &[(usize, Need)], b: Hertz) -> usize {
        let value = |pick: usize| {
            let (cut, need) = options[pick];
            self.knobs.time_weight * need.finish(b) + self.priced(seen, n, cut, b)
        };
        (0..options.len()).min_by(|&a, &b| value(a).total_cmp(&value(b))).unwrap_or(0)
    }

    /// Q E_n.
    fn priced(&self, seen: &Observation, n: usize, cut: usize, bandwidth: Hertz) -> f64 {
        if self.queue.backlog_j == 0.0 {
            return 0.0; // even where the energy is infinite
        }
        let job = self.setup.job(seen, n, cut, seen.aggregates);
        let cost = self.setup.cost(seen, n, &job, bandwidth);
        self.queue.backlog_j * (cost.energy_compute + cost.energy_radio).0
    }

    fn value(
        &self,
        seen: &Observation,
        chosen: &[usize],
        cuts: &[usize],
        split: &[Hertz],
        slowest: f64,
    ) -> f64 {
        let each = chosen.iter().zip(cuts).zip(split);
        let priced = each.map(|((&n, &cut), &b)| self.priced(seen, n, cut, b)).sum::<f64>();
        self.knobs.time_weight * slowest + priced
    }
}

impl Persist for FedSl {
    fn save(&self, snapshot: &mut Snapshot) {
        snapshot.put_f64("fedsl/backlog_j", vec![self.queue.backlog_j]);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let backlog = snapshot.finite_f64("fedsl/backlog_j", 1)?[0];
        if backlog < 0.0 {
            return Err(SnapshotError::value("fedsl/backlog_j", backlog, "at least 0"));
        }
        self.queue.backlog_j = backlog;
        Ok(())
    }
}

impl Planner for FedSl {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let setup = &self.setup;
        let mut chosen: Vec<usize> =
            among.iter().copied().filter(|&n| !setup.dead(seen, n)).collect();
        let slow = |n: usize| setup.even_delay(seen, n, among.len());
        chosen.sort_by(|&a, &b| slow(a).total_cmp(&slow(b)).then(a.cmp(&b)));
        self.drop_stragglers(seen, &mut chosen);
        let found = self.share(seen, &chosen).filter(|_| !chosen.is_empty());
        let Some((slowest, cuts, split)) = found else {
            let first = setup.fastest(seen, among);
            let cut = setup.fitting_cuts(seen, first)[0];
            let mut decision =
                setup.decision(seen, [(first, setup.problem.cost.limits.bandwidth, cut)]);
            decision.fallback = true;
            return decision;
        };
        let shares = chosen.iter().zip(split).zip(&cuts).map(|((&n, b), &cut)| (n, b, cut));
        let mut decision = setup.decision(seen, shares);
        decision.fallback = slowest > setup.problem.cost.limits.deadline.0
            || chosen.iter().any(|&n| !setup.fits(seen, n));
        decision
    }

    fn learn(&mut self, _seen: &Observation, _plan: &ProjectedDecision, outcome: &Outcome) {
        self.queue.spend(outcome.terminals.iter().map(|one| one.energy.0).sum());
    }
}
