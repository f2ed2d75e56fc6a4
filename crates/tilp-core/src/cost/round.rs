//! Costs of a whole round for every terminal, by its training rule.
//!
//! The simulated cell asks with true hardware, a method with nominal values: one formula for both.

use super::{Accounting, Cost, Downlink, FrontCopies, Grant, Hardware, Job, Link, Profile, cost};
use crate::round::{Limits, ProjectedDecision, RoundOrder, TerminalDecision, TerminalReport};
use crate::rule::Rule;
use crate::units::{Bits, Bytes, Gain, Hertz, Seconds, Watts};
use crate::wireless::{self, RateModel};

/// Common inputs of the costs of all rounds: limits, sizes, billing, and the rate formula.
#[derive(Clone, Debug, PartialEq)]
pub struct CostModel {
    /// Limits of the problem.
    pub limits: Limits,
    /// Sizes of the policy per layer.
    pub profile: Profile,
    /// How exchanges are billed.
    pub accounting: Accounting,
    /// How fading enters the rate.
    pub rate_model: RateModel,
    /// At which rate the way down goes.
    pub downlink: Downlink,
}

/// The round whose cost is asked for, apart from the decision.
#[derive(Clone, Copy, Debug)]
pub struct RoundInputs<'a> {
    /// Reports of the terminals, in the order of the decision.
    pub reports: &'a [TerminalReport],
    /// Their hardware, nominal or true.
    pub hardware: &'a [Hardware],
    /// Whether the schedule aggregates at the end of the round.
    pub aggregates: bool,
    /// How the round is trained.
    pub rule: Rule,
    /// When the round closes for terminals that have not finished.
    pub closes: Seconds,
}

impl<'a> RoundInputs<'a> {
    /// An order that is executed on this hardware, for terminals with these reports.
    pub fn of(
        order: &RoundOrder,
        reports: &'a [TerminalReport],
        hardware: &'a [Hardware],
        closes: Seconds,
    ) -> Self {
        Self { reports, hardware, aggregates: order.aggregates, rule: order.rule, closes }
    }
}

/// Uncut costs of a round; one entry per terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundCosts {
    /// Scheduled, or with a pending upload in a round that aggregates.
    pub involved: Vec<bool>,
    /// Radio resources each really has.
    pub grants: Vec<Grant>,
    /// Work of each terminal.
    pub jobs: Vec<Job>,
    /// Costs of that work.
    pub costs: Vec<Cost>,
    /// When each begins: in sequential split learning after those before it, else at once.
    pub starts: Vec<Seconds>,
    /// When each is done; zero for those that are not involved.
    pub delays: Vec<Seconds>,
}

impl CostModel {
    /// The costs of a plan.
    ///
    /// In a round that aggregates, a terminal that is not scheduled but has a pending upload sends
    /// it at full power over one N-th of the band; the scheduled terminals share what is left.
    pub fn round_costs(&self, plan: &ProjectedDecision, round: &RoundInputs<'_>) -> RoundCosts {
        let n_terminals = round.reports.len();
        let pending = pending_uploads(plan, round);
        let involved: Vec<bool> = (0..n_terminals)
            .map(|n| plan.decision().terminals[n].scheduled || pending[n])
            .collect();
        let grants = self.grants(plan, round.rule, &pending);
        let jobs: Vec<Job> = (0..n_terminals).map(|n| self.job(plan, round, n)).collect();
        let costs = (0..n_terminals).map(|n| self.cost(round, n, &jobs[n], grants[n])).collect();
        let starts = vec![Seconds(0.0); n_terminals];
        let delays = vec![Seconds(0.0); n_terminals];
        let mut whole = RoundCosts { involved, grants, jobs, costs, starts, delays };
        match round.rule {
            Rule::Relay => whole.line_up(&plan.training().order),
            Rule::Broadcast => self.broadcast(plan, round, &mut whole),
            _ => {}
        }
        for n in 0..n_terminals {
            if whole.involved[n] {
                whole.delays[n] = whole.starts[n] + whole.costs[n].delay();
            }
        }
        whole
    }

    /// Layers on the terminal.
    pub fn layers(&self, rule: Rule, cut: usize) -> usize {
        if let Rule::Whole(_) = rule { self.profile.cuts.len() } else { cut }
    }

    /// Memory that a terminal needs at this cut.
    pub fn memory(&self, rule: Rule, cut: usize) -> Bytes {
        self.profile.memory(self.layers(rule, cut))
    }

    /// Bandwidth that counts against the band: in sequential split learning only one terminal is
    /// on the air.
    pub fn asked(&self, rule: Rule, plan: &ProjectedDecision) -> Hertz {
        let scheduled = plan.decision().terminals.iter().filter(|one| one.scheduled);
        match rule {
            Rule::Relay => scheduled.map(|one| one.bandwidth).fold(Hertz(0.0), Hertz::max),
            _ => plan.decision().bandwidth(),
        }
    }

    /// Work of a terminal with these copies and this number of samples in all that trains at this
    /// cut beside others and keeps its copy until the next aggregation.
    pub fn training_job(
        &self,
        copies: FrontCopies,
        n_samples: usize,
        cut: usize,
        compression: f64,
        aggregates: bool,
    ) -> Job {
        let deliver = copies.delivered(aggregates, Some(cut));
        let samples = self.profile.samples(n_samples);
        self.accounting.training(&self.profile, samples, cut, compression, copies.held, deliver)
    }

    /// Work of an unscheduled terminal with these copies.
    pub fn delivery_job(&self, copies: FrontCopies, aggregates: bool) -> Job {
        self.accounting.delivery(&self.profile, copies.delivered(aggregates, None))
    }

    /// The band that is left for scheduled terminals if exactly those are scheduled for which
    /// `is_scheduled` holds: in a round that aggregates every other terminal with a pending upload
    /// has one N-th of the band.
    pub fn free_band(
        &self,
        copies: impl ExactSizeIterator<Item = FrontCopies>,
        aggregates: bool,
        is_scheduled: impl Fn(usize) -> bool,
    ) -> Hertz {
        let n_terminals = copies.len();
        let needs =
            |(n, copies): &(usize, FrontCopies)| copies.needs_slice(aggregates, is_scheduled(*n));
        let n_slices = copies.enumerate().filter(needs).count();
        self.limits.bandwidth * (1.0 - n_slices as f64 / n_terminals as f64)
    }

    fn grants(&self, plan: &ProjectedDecision, rule: Rule, pending: &[bool]) -> Vec<Grant> {
        let slice = self.limits.bandwidth / pending.len() as f64;
        let reserved = slice * pending.iter().filter(|pending| **pending).count() as f64;
        let asked = self.asked(rule, plan);
        let free = self.limits.bandwidth - reserved;
        // A base station cannot hand out more than it has.
        let scale = if asked > free { free.0 / asked.0 } else { 1.0 };
        let grant = |(one, pending): (&TerminalDecision, &bool)| match (one.scheduled, *pending) {
            (true, _) => Grant { bandwidth: one.bandwidth * scale, power: one.power },
            (_, true) => Grant { bandwidth: slice, power: self.limits.power },
            _ => Grant { bandwidth: Hertz(0.0), power: Watts(0.0) },
        };
        plan.decision().terminals.iter().zip(pending).map(grant).collect()
    }

    fn job(&self, plan: &ProjectedDecision, round: &RoundInputs<'_>, n: usize) -> Job {
        let (one, report) = (&plan.decision().terminals[n], &round.reports[n]);
        let (accounting, profile) = (&self.accounting, &self.profile);
        let aggregates = plan.aggregates(round.aggregates);
        match (one.scheduled, round.rule) {
            (true, Rule::Whole(local)) => {
                let samples = local.samples(profile.batch, report.n_samples);
                accounting.whole(profile, samples, one.compression)
            }
            (true, Rule::Relay) => {
                let samples = profile.samples(report.n_samples);
                accounting.training(profile, samples, one.cut, one.compression, 0, one.cut)
            }
            (true, _) => {
                let (copies, n_samples) = (report.into(), report.n_samples);
                self.training_job(copies, n_samples, one.cut, one.compression, aggregates)
            }
            (false, _) => self.delivery_job(report.into(), aggregates),
        }
    }

    /// The channel of a terminal with this gain and fading.
    pub fn link(&self, gain: Gain, fading_power: f64) -> Link {
        let Self { rate_model: model, downlink, .. } = *self;
        Link { gain, fading_power, model, downlink }
    }

    fn cost(&self, round: &RoundInputs<'_>, n: usize, job: &Job, grant: Grant) -> Cost {
        let report = &round.reports[n];
        let link = self.link(report.gain, report.fading_power);
        cost(job, &round.hardware[n], &link, grant)
    }

    /// One gradient for all: sent once, over the whole band, at the rate of the worst of those
    /// whose activation arrives before the round closes. It counts once on the air, with that
    /// worst one.
    fn broadcast(&self, plan: &ProjectedDecision, round: &RoundInputs<'_>, whole: &mut RoundCosts) {
        let scheduled: Vec<usize> = plan.decision().scheduled().collect();
        let down = scheduled.iter().map(|&n| whole.jobs[n].down).max().unwrap_or_default();
        for &n in &scheduled {
            whole.jobs[n].down = Bytes(0);
            whole.costs[n] = self.cost(round, n, &whole.jobs[n], whole.grants[n]);
        }
        let rate = |n: usize| {
            let TerminalReport { gain, fading_power, .. } = round.reports[n];
            let noise = round.hardware[n].noise_w_per_hz;
            let band = self.limits.bandwidth;
            let power = match self.downlink {
                Downlink::Shared => whole.grants[n].power,
                Downlink::Own(power) => power,
            };
            wireless::rate(self.rate_model, band, power, gain, fading_power, noise)
        };
        let need = |n: usize| self.memory(round.rule, plan.decision().terminals[n].cut);
        let fits = |n: usize| need(n) <= round.reports[n].memory;
        let arrived = scheduled.iter().copied();
        let arrived = arrived.filter(|&n| whole.costs[n].delay() <= round.closes && fits(n));
        let worst = arrived.min_by(|&a, &b| rate(a).0.total_cmp(&rate(b).0));
        let Some(worst) = worst else { return };
        let time = wireless::transmission_delay(Bits::from_bytes(down), rate(worst));
        whole.jobs[worst].down = down;
        for n in scheduled {
            whole.costs[n].receiving += time;
        }
    }
}

impl RoundCosts {
    /// One after another.
    fn line_up(&mut self, order: &[usize]) {
        let mut start = Seconds(0.0);
        for &n in order {
            self.starts[n] = start;
            start += self.costs[n].delay();
        }
    }
}

/// Terminals that are not scheduled but upload their copies in this round.
fn pending_uploads(plan: &ProjectedDecision, round: &RoundInputs<'_>) -> Vec<bool> {
    let aggregates = plan.aggregates(round.aggregates);
    let decided = plan.decision().terminals.iter().zip(round.reports);
    let needs = |(one, report): (&TerminalDecision, &TerminalReport)| {
        FrontCopies::from(report).needs_slice(aggregates, one.scheduled)
    };
    decided.map(needs).collect()
}
