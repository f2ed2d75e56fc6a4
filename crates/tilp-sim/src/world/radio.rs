//! The true radio and hardware: which terminals are in time, and what it costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, Disturbances, Measured};
use crate::cost::{Cost, CostModel, Hardware, Job, RoundCosts, RoundInputs};
use crate::round::{RoundOrder, TerminalId, TerminalReport};
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds};
use crate::wireless::round_delay;

/// Treatment of a terminal that misses the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// The round closes at the deadline; the terminal contributes nothing.
    Drop,
    /// The round waits for all terminals.
    Wait,
}

/// The true radio and hardware of a cell. Lists have one entry for each terminal that is ever
/// there, by id.
pub struct Radio {
    /// Limits, sizes, billing and the rate formula.
    pub cost: CostModel,
    /// Source of the channels.
    pub channel: Channel,
    /// Blockages and interferers.
    pub disturbances: Disturbances,
    /// Hardware by data sheet.
    pub nominal: Vec<Hardware>,
    /// True hardware, without interferers.
    pub truth: Vec<Hardware>,
    /// Memory budgets.
    pub memory: Vec<Bytes>,
    /// Treatment of late terminals.
    pub late: Late,
    /// No latency counts above this.
    pub give_up: Seconds,
}

/// How a round went in time, energy and bytes; one entry per terminal of the order.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTiming {
    /// Scheduled, or with a pending upload in a round that aggregates.
    pub involved: Vec<bool>,
    /// Its decision fits its memory.
    pub fits: Vec<bool>,
    /// Involved, fits its memory, and finished before the round closed.
    pub in_time: Vec<bool>,
    /// Its energy ended before its job did.
    pub out_of_energy: Vec<bool>,
    /// The part of its job on the air that each got done.
    pub jobs: Vec<Job>,
    /// Bandwidth each really had.
    pub bandwidths: Vec<Hertz>,
    /// Uncut delay.
    pub delays: Vec<Seconds>,
    /// True costs, cut at the deadline if the round closes there.
    pub costs: Vec<Cost>,
    /// Slowest scheduled terminal, at most the give-up time.
    pub latency: Seconds,
    /// Advance of the clock.
    pub duration: Seconds,
    /// Whether a terminal's delay and energy were measured on a real machine.
    pub measured: Vec<bool>,
}

impl Radio {
    /// Large-scale gain of a terminal in a round, true and measured.
    pub fn gain(&self, id: TerminalId, round: u64) -> Gain {
        let Gain(usual) = self.channel.gain(id.0 as usize, round);
        Gain(usual * self.disturbances.gain_factor(id, round))
    }

    /// True hardware of a terminal in a round: its noise includes interferers.
    pub fn true_hardware(&self, id: TerminalId, round: u64) -> Hardware {
        let hardware = self.truth[id.0 as usize];
        let noise_w_per_hz = hardware.noise_w_per_hz * self.disturbances.noise_factor(id, round);
        Hardware { noise_w_per_hz, ..hardware }
    }

    /// Executes an order on the true channel and hardware.
    ///
    /// The round waits until the deadline for pending uploads. One that does not arrive is lost:
    /// that costs learning, but it is no violation, since that terminal was not scheduled.
    pub fn timing(&self, order: &RoundOrder, reports: &[TerminalReport]) -> RoundTiming {
        let RoundOrder { plan, rule, aggregates, .. } = order;
        let hardware: Vec<Hardware> =
            reports.iter().map(|report| self.true_hardware(report.id, order.round)).collect();
        let (rule, aggregates, closes) = (*rule, *aggregates, self.closes());
        let round = RoundInputs { reports, hardware: &hardware, aggregates, rule, closes };
        let whole = self.cost.round_costs(plan, &round);
        let RoundCosts { involved, grants, jobs, costs: full, starts, delays } = whole;
        let all = 0..reports.len();
        let fits = |n: usize| {
            let one = &plan.decision().terminals[n];
            !one.scheduled || self.cost.memory(rule, one.cut) <= reports[n].memory
        };
        let fits: Vec<bool> = all.clone().map(fits).collect();
        let in_time: Vec<bool> =
            all.clone().map(|n| involved[n] && fits[n] && delays[n] <= closes).collect();
        let left = |n: usize| (closes - starts[n]).max(Seconds(0.0));
        let costs: Vec<Cost> =
            all.clone().map(|n| full[n].until(left(n), grants[n].power)).collect();
        let jobs = all.map(|n| jobs[n].part(on_air_share(&full[n], &costs[n]))).collect();
        let scheduled = plan.decision().scheduled().map(|n| delays[n]);
        RoundTiming {
            latency: round_delay(scheduled).min(self.give_up),
            duration: round_delay(delays.iter().copied()).min(closes),
            bandwidths: grants.iter().map(|grant| grant.bandwidth).collect(),
            out_of_energy: vec![false; involved.len()],
            measured: vec![false; involved.len()],
            involved,
            fits,
            in_time,
            jobs,
            delays,
            costs,
        }
    }

    /// When a round ends for terminals that have not finished.
    pub fn closes(&self) -> Seconds {
        match self.late {
            Late::Drop => self.cost.limits.deadline,
            // Under Rayleigh fading a wait has no mean, so it ends at the give-up time.
            Late::Wait => self.give_up,
        }
    }
}

impl RoundTiming {
    /// Use of each terminal in the round.
    pub fn used<'a>(
        &'a self,
        ids: &'a [TerminalId],
    ) -> impl Iterator<Item = (TerminalId, Joules, Bytes)> + 'a {
        let one = |(&id, (cost, job)): (&TerminalId, (&Cost, &Job))| {
            (id, cost.energy_compute + cost.energy_radio, job.air())
        };
        ids.iter().zip(self.costs.iter().zip(&self.jobs)).map(one)
    }

    /// Takes over what was measured of a real terminal. A terminal that had not finished took
    /// longer than the round was open; nothing more is known of its delay.
    pub(super) fn measure(&mut self, n: usize, closes: Seconds, give_up: Seconds, one: Measured) {
        let cost = &mut self.costs[n];
        cost.computation = one.computation;
        if let Some(metered) = one.energy {
            let radio = cost.energy_radio.min(metered);
            (cost.energy_compute, cost.energy_radio) = (metered - radio, radio);
        }
        self.measured[n] = true;
        self.in_time[n] = one.finished;
        self.delays[n] = if one.finished { one.delay } else { give_up.max(closes * 2.0) };
    }

    /// Cuts a terminal off where its energy ends: it computes first, then sends. It contributes
    /// nothing to the round.
    pub fn stop_without_energy(&mut self, n: usize, left: Joules) {
        let full = self.costs[n];
        if full.energy_compute + full.energy_radio <= left {
            return;
        }
        let share = |part: Joules, of: Joules| if of.0 > 0.0 { part.0 / of.0 } else { 1.0 };
        let compute = full.energy_compute.min(left);
        let radio = left - compute;
        let (computed, sent) =
            (share(compute, full.energy_compute), share(radio, full.energy_radio));
        let spent = Cost {
            computation: full.computation * computed,
            sending: full.sending * sent,
            receiving: full.receiving * sent,
            energy_compute: compute,
            energy_radio: radio,
        };
        self.jobs[n] = self.jobs[n].part(on_air_share(&full, &spent));
        self.costs[n] = spent;
        self.in_time[n] = false;
        self.out_of_energy[n] = true;
    }
}

/// Share of its time on the air that a terminal had before it was cut off.
fn on_air_share(full: &Cost, spent: &Cost) -> f64 {
    let wanted = full.sending + full.receiving;
    if wanted.0 > 0.0 { (spent.sending + spent.receiving).0 / wanted.0 } else { 1.0 }
}
