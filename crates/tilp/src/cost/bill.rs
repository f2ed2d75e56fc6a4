//! What a whole round costs every terminal, by the rule of its training.
//!
//! The world asks with true hardware, a guard with nominal values.

use super::{Accounting, Cost, Grant, Hardware, Job, Link, Profile, cost};
use crate::round::{Feasible, Limits, Observation};
use crate::split::rule::Rule;
use crate::units::{Bits, Bytes, Hertz, Seconds, Watts};
use crate::wireless::{self, RateModel};

/// Everything the cost of a round depends on besides the plan and the channel.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Limits of the problem.
    pub limits: &'a Limits,
    /// Sizes of the policy.
    pub profile: &'a Profile,
    /// How exchanges are billed.
    pub accounting: &'a Accounting,
    /// Hardware, one per terminal.
    pub hardware: &'a [Hardware],
    /// How fading enters the rate.
    pub rate_model: RateModel,
    /// How the round is trained.
    pub rule: Rule,
    /// When the round closes for those who have not finished.
    pub closes: Seconds,
}

/// What a round costs, uncut; one entry per terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Bill {
    /// Scheduled, or owing its copy in a round that aggregates.
    pub involved: Vec<bool>,
    /// Radio resources each really has.
    pub grants: Vec<Grant>,
    /// What each has to do.
    pub jobs: Vec<Job>,
    /// What that costs it.
    pub costs: Vec<Cost>,
    /// When each begins: in a relay after those before it, else at once.
    pub starts: Vec<Seconds>,
    /// When each is done; zero for those who are not involved.
    pub delays: Vec<Seconds>,
}

impl Terms<'_> {
    /// The bill of a plan.
    ///
    /// In a round that aggregates, a terminal that is not scheduled but owes its copy delivers it
    /// at full power over one N-th of the band; the scheduled share what is left.
    pub fn bill(&self, plan: &Feasible, seen: &Observation) -> Bill {
        let n_terminals = seen.terminals.len();
        let involved: Vec<bool> = (0..n_terminals)
            .map(|n| plan.decision().terminals[n].scheduled || owes(plan, seen, n))
            .collect();
        let grants = self.grants(plan, seen);
        let jobs: Vec<Job> = (0..n_terminals).map(|n| self.job(plan, seen, n)).collect();
        let costs = (0..n_terminals).map(|n| self.cost(seen, n, &jobs[n], grants[n])).collect();
        let starts = vec![Seconds(0.0); n_terminals];
        let delays = vec![Seconds(0.0); n_terminals];
        let mut bill = Bill { involved, grants, jobs, costs, starts, delays };
        match self.rule {
            Rule::Relay => bill.line_up(&plan.conduct().order),
            Rule::Broadcast => self.broadcast(plan, seen, &mut bill),
            _ => {}
        }
        for n in 0..n_terminals {
            if bill.involved[n] {
                bill.delays[n] = bill.starts[n] + bill.costs[n].delay();
            }
        }
        bill
    }

    /// Layers on the terminal.
    pub fn layers(&self, cut: usize) -> usize {
        if let Rule::Whole(_) = self.rule { self.profile.cuts.len() } else { cut }
    }

    /// Memory that a terminal needs at this cut.
    pub fn memory(&self, cut: usize) -> Bytes {
        self.profile.memory(self.layers(cut))
    }

    /// Bandwidth that counts against the band: in a relay only one terminal is on the air.
    pub fn asked(&self, plan: &Feasible) -> Hertz {
        let scheduled = plan.decision().terminals.iter().filter(|one| one.scheduled);
        match self.rule {
            Rule::Relay => scheduled.map(|one| one.bandwidth).fold(Hertz(0.0), Hertz::max),
            _ => plan.decision().bandwidth(),
        }
    }

    fn grants(&self, plan: &Feasible, seen: &Observation) -> Vec<Grant> {
        let n_terminals = seen.terminals.len();
        let slice = self.limits.bandwidth / n_terminals as f64;
        let reserved = slice * (0..n_terminals).filter(|&n| owes(plan, seen, n)).count() as f64;
        let asked = self.asked(plan);
        let free = self.limits.bandwidth - reserved;
        // D4: a base station cannot hand out more than it has.
        let scale = if asked > free { free.0 / asked.0 } else { 1.0 };
        let grant = |n: usize| {
            let one = &plan.decision().terminals[n];
            match (one.scheduled, owes(plan, seen, n)) {
                (true, _) => Grant { bandwidth: one.bandwidth * scale, power: one.power },
                (_, true) => Grant { bandwidth: slice, power: self.limits.power },
                _ => Grant { bandwidth: Hertz(0.0), power: Watts(0.0) },
            }
        };
        (0..n_terminals).map(grant).collect()
    }

    fn job(&self, plan: &Feasible, seen: &Observation, n: usize) -> Job {
        let (one, view) = (&plan.decision().terminals[n], &seen.terminals[n]);
        let (accounting, profile) = (self.accounting, self.profile);
        let aggregates = plan.aggregates(seen);
        match (one.scheduled, self.rule) {
            (true, Rule::Whole(local)) => {
                let samples = local.samples(profile.batch, view.n_samples);
                accounting.whole(profile, samples, one.compression)
            }
            (true, Rule::Relay) => {
                accounting.training(profile, one.cut, one.compression, 0, one.cut)
            }
            (true, _) => {
                let deliver = if aggregates { one.cut.max(view.owed_layers) } else { 0 };
                let held = view.held_layers;
                accounting.training(profile, one.cut, one.compression, held, deliver)
            }
            (false, _) => {
                accounting.delivery(profile, if aggregates { view.owed_layers } else { 0 })
            }
        }
    }

    fn link(&self, seen: &Observation, n: usize) -> Link {
        let view = &seen.terminals[n];
        Link { gain: view.gain, fading_power: view.fading_power, model: self.rate_model }
    }

    fn cost(&self, seen: &Observation, n: usize, job: &Job, grant: Grant) -> Cost {
        cost(job, &self.hardware[n], &self.link(seen, n), grant)
    }

    /// One gradient for all: sent once, over the whole band, at the rate of the worst of those
    /// whose activation is there before the round closes. It counts once on the air, with that
    /// worst one.
    fn broadcast(&self, plan: &Feasible, seen: &Observation, bill: &mut Bill) {
        let scheduled: Vec<usize> = plan.decision().scheduled().collect();
        let down = scheduled.iter().map(|&n| bill.jobs[n].down).max().unwrap_or_default();
        for &n in &scheduled {
            bill.jobs[n].down = Bytes(0);
            bill.costs[n] = self.cost(seen, n, &bill.jobs[n], bill.grants[n]);
        }
        let rate = |n: usize| {
            let (link, grant) = (self.link(seen, n), bill.grants[n]);
            let noise = self.hardware[n].noise_w_per_hz;
            let band = self.limits.bandwidth;
            wireless::rate(link.model, band, grant.power, link.gain, link.fading_power, noise)
        };
        let fits =
            |n: usize| self.memory(plan.decision().terminals[n].cut) <= seen.terminals[n].memory;
        let heard = scheduled.iter().copied();
        let heard = heard.filter(|&n| bill.costs[n].delay() <= self.closes && fits(n));
        let worst = heard.min_by(|&a, &b| rate(a).0.total_cmp(&rate(b).0));
        let Some(worst) = worst else { return };
        let time = wireless::transmission_delay(Bits::from_bytes(down), rate(worst));
        bill.jobs[worst].down = down;
        for n in scheduled {
            bill.costs[n].receiving += time;
        }
    }
}

impl Bill {
    /// One after another.
    fn line_up(&mut self, order: &[usize]) {
        let mut start = Seconds(0.0);
        for &n in order {
            self.starts[n] = start;
            start += self.costs[n].delay();
        }
    }
}

/// Not scheduled, but its copy is asked for in this round.
fn owes(plan: &Feasible, seen: &Observation, n: usize) -> bool {
    let owed = plan.aggregates(seen) && seen.terminals[n].owed_layers > 0;
    owed && !plan.decision().terminals[n].scheduled
}
