//! The words of one round, and the two traits that exchange them.
//!
//! A [`World`] shows an [`Observation`]; an [`Allocator`] answers with a [`Decision`];
//! [`Limits::project`] makes it [`Feasible`]; the world executes it and shows an [`Outcome`].
//! What really happened, measurement noise aside, goes into the [`Ledger`], which only the
//! experimenter reads.

use crate::snapshot::Persist;
use crate::units::{Bytes, Gain, Hertz, Joules, Seconds, Watts};

/// What the base station knows before a round: the paper's state and what a base station
/// naturally has besides (D6 of the specification).
///
/// $$ s\[t\] = (o^{net}\[t\], o^{tr}\[t\], o^{task}\[t\]) $$
///
/// Eq. `method-state`
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The round to decide, counted from 1.
    pub round: u64,
    /// Simulated time since the start.
    pub clock: Seconds,
    /// Whether copies are aggregated at the end of this round.
    pub aggregates: bool,
    /// Training loss J[t-1]; none before the first trained round.
    pub loss: Option<f64>,
    /// Success per task as last measured for calibration; none before the first measurement.
    pub success: Option<Vec<SuccessCount>>,
    /// One view per terminal.
    pub terminals: Vec<TerminalView>,
}

/// What the base station knows of one terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalView {
    /// Large-scale channel gain G_n.
    pub gain: Gain,
    /// Small-scale fading power |H_n|^2, held during the round.
    pub fading_power: f64,
    /// Bandwidth b_n[t-1] of the previous round.
    pub previous_bandwidth: Hertz,
    /// Norm of the client-side gradient when the terminal last trained.
    pub gradient_norm: Option<f64>,
    /// Loss when the terminal last trained.
    pub loss: Option<f64>,
    /// Rounds since the terminal was last scheduled.
    pub rounds_since_scheduled: Option<u64>,
    /// Samples in its private data set.
    pub n_samples: usize,
    /// Memory budget M_n^max.
    pub memory: Bytes,
    /// Index of its task into the list of tasks.
    pub task: usize,
    /// How many front layers it holds in their current version.
    pub held_layers: usize,
    /// How many front layers it has trained since the last aggregation and owes at the next.
    pub owed_layers: usize,
}

/// Successes among episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuccessCount {
    /// Episodes that ended in success.
    pub successes: u64,
    /// Episodes run.
    pub episodes: u64,
}

impl SuccessCount {
    /// Share of successes; none without an episode.
    pub fn rate(self) -> Option<f64> {
        (self.episodes > 0).then(|| self.successes as f64 / self.episodes as f64)
    }

    /// Both counts together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            successes: self.successes + other.successes,
            episodes: self.episodes + other.episodes,
        }
    }
}

/// What the base station decides for one terminal, a_n of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalDecision {
    /// x_n: takes part in the round.
    pub scheduled: bool,
    /// b_n: bandwidth.
    pub bandwidth: Hertz,
    /// p_n: transmit power.
    pub power: Watts,
    /// l_n: the terminal runs layers 1..=cut.
    pub cut: usize,
    /// q_n: share of the payload that is not sent.
    pub compression: f64,
}

/// The decision for a round, one entry per terminal, a of the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// One decision per terminal.
    pub terminals: Vec<TerminalDecision>,
    /// The method found nothing it believes feasible and fell back to the least bad.
    pub fallback: bool,
}

impl Decision {
    /// Nobody scheduled; every terminal at `cut`.
    pub fn idle(n_terminals: usize, cut: usize) -> Self {
        let nobody = TerminalDecision {
            scheduled: false,
            bandwidth: Hertz(0.0),
            power: Watts(0.0),
            cut,
            compression: 0.0,
        };
        Self { terminals: vec![nobody; n_terminals], fallback: false }
    }

    /// What is no number, if anything is: terminal, what, and its value. Limits could make a decision
    /// of an idle terminal out of it, but a method that says so is broken.
    pub fn not_a_number(&self) -> Option<(usize, &'static str, f64)> {
        self.terminals.iter().enumerate().find_map(|(terminal, one)| {
            let values = [
                ("bandwidth", one.bandwidth.0),
                ("power", one.power.0),
                ("compression", one.compression),
            ];
            let (what, value) = values.into_iter().find(|(_, value)| !value.is_finite())?;
            Some((terminal, what, value))
        })
    }

    /// The set of scheduled terminals.
    ///
    /// $$ \mathcal{S}\[t\] = \\{n : x_n\[t\] = 1\\} $$
    ///
    /// Eq. `scheduled-set`
    pub fn scheduled(&self) -> impl Iterator<Item = usize> + '_ {
        self.terminals.iter().enumerate().filter(|(_, one)| one.scheduled).map(|(n, _)| n)
    }

    /// Bandwidth asked for by all scheduled terminals together.
    pub fn bandwidth(&self) -> Hertz {
        self.terminals.iter().filter(|one| one.scheduled).map(|one| one.bandwidth).sum()
    }
}

/// How a round is to be trained, where a method decides that besides the paper's five variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conduct {
    /// The order of the terminals, where they train one after another.
    pub order: Vec<usize>,
    /// Which layers have copies of their own and which are averaged; none leaves it to the
    /// scenario.
    pub tiers: Option<Tiers>,
}

/// Layers by where their copies live, and whose turn it is to be averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Up to this layer every terminal has a copy of its own; what lies behind its cut the server
    /// keeps for it.
    pub own: usize,
    /// The copies of the terminals are averaged at the end of this round.
    pub average_own: bool,
    /// From there up to this layer every edge server has a copy for its group.
    pub edge: usize,
    /// The copies of the edge servers are averaged at the end of this round.
    pub average_edge: bool,
}

/// The limits of the problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Per-round deadline, C1.
    pub deadline: Seconds,
    /// Total bandwidth B^max, C3.
    pub bandwidth: Hertz,
    /// Largest transmit power P^max, C4.
    pub power: Watts,
    /// Largest compression level q^max, C6.
    pub compression: f64,
    /// Admissible cuts in ascending order, C7.
    pub cuts: Vec<usize>,
}

/// A decision inside the hard domain. Only [`Limits::project`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Feasible {
    decision: Decision,
    conduct: Conduct,
}

impl Feasible {
    /// The decision itself.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// How the round is to be trained.
    pub fn conduct(&self) -> &Conduct {
        &self.conduct
    }

    /// The same decision, trained in this way. The order becomes one of all scheduled terminals:
    /// whom it does not name comes last.
    pub fn conducted(mut self, mut conduct: Conduct) -> Self {
        let mut waiting: Vec<usize> = self.decision.scheduled().collect();
        conduct.order.retain(|n| {
            let place = waiting.iter().position(|other| other == n);
            place.map(|index| waiting.remove(index)).is_some()
        });
        conduct.order.extend(waiting);
        self.conduct = conduct;
        self
    }

    /// Whether the terminals' copies are averaged at the end of the round.
    pub fn aggregates(&self, seen: &Observation) -> bool {
        self.conduct.tiers.map_or(seen.aggregates, |tiers| tiers.average_own)
    }
}

impl Limits {
    /// The nearest decision inside the hard domain, C4 to C8.
    ///
    /// Deadline, memory and spectrum, C1 to C3, are never repaired behind a method's back: they
    /// are executed as they are and counted as violation.
    pub fn project(&self, mut wanted: Decision) -> Feasible {
        if wanted.scheduled().next().is_none() {
            self.schedule_one(&mut wanted);
        }
        for one in &mut wanted.terminals {
            *one = self.project_terminal(*one);
        }
        let order = wanted.scheduled().collect();
        Feasible { decision: wanted, conduct: Conduct { order, tiers: None } }
    }

    fn project_terminal(&self, one: TerminalDecision) -> TerminalDecision {
        let share = if one.scheduled { 1.0 } else { 0.0 };
        TerminalDecision {
            scheduled: one.scheduled,
            bandwidth: Hertz(clip(one.bandwidth.0, self.bandwidth.0) * share),
            power: Watts(clip(one.power.0, self.power.0) * share),
            cut: self.nearest_cut(one.cut),
            compression: clip(one.compression, self.compression),
        }
    }

    /// C8: somebody takes part. The terminal that was given most bandwidth, else the first.
    fn schedule_one(&self, wanted: &mut Decision) {
        let most = wanted
            .terminals
            .iter()
            .enumerate()
            .max_by(|a, b| {
                clip(a.1.bandwidth.0, 1e300)
                    .total_cmp(&clip(b.1.bandwidth.0, 1e300))
                    .then(b.0.cmp(&a.0))
            })
            .map(|(n, _)| n);
        let Some(n) = most else { return };
        let one = &mut wanted.terminals[n];
        one.scheduled = true;
        if clip(one.bandwidth.0, self.bandwidth.0) == 0.0 {
            one.bandwidth = self.bandwidth;
        }
        if clip(one.power.0, self.power.0) == 0.0 {
            one.power = self.power;
        }
    }

    fn nearest_cut(&self, cut: usize) -> usize {
        let distance = |candidate: usize| candidate.abs_diff(cut);
        self.cuts.iter().copied().min_by_key(|&c| distance(c)).unwrap_or(cut)
    }
}

/// Into `0..=most`; what is not a number becomes zero.
fn clip(value: f64, most: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, most) }
}

/// What the base station observes of an executed round. Delays and energies carry measurement
/// noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The round that was executed.
    pub round: u64,
    /// J of the round: weighted loss over the terminals that took part; none if nobody did.
    pub loss: Option<f64>,
    /// One entry per terminal.
    pub terminals: Vec<TerminalOutcome>,
    /// Success per task, if this round ended with a calibration.
    pub success: Option<Vec<SuccessCount>>,
}

/// What the base station observes of one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalOutcome {
    /// It was scheduled and finished in time, so it counted in learning.
    pub took_part: bool,
    /// It was scheduled and did not make it.
    pub late: bool,
    /// The round closed before it had finished what it had to do.
    pub unfinished: bool,
    /// Measured delay of the round, zero if it had nothing to do; of who is unfinished only that it
    /// takes longer than the round was open, which is what stands here then.
    pub delay: Seconds,
    /// Measured part of the delay that was computation.
    pub computation: Seconds,
    /// Measured energy.
    pub energy: Joules,
    /// Loss on its minibatch, if it took part.
    pub loss: Option<f64>,
    /// Norm of its client-side gradient, if it took part.
    pub gradient_norm: Option<f64>,
}

/// The experimenter's books of a round: what really happened. No method ever sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// One entry per terminal.
    pub terminals: Vec<TerminalLedger>,
    /// Slowest scheduled terminal, uncut up to the give-up time.
    pub latency: Seconds,
    /// By how much the clock advanced.
    pub duration: Seconds,
    /// The three parts of the violation.
    pub violation: Violation,
    /// Success per terminal on report episodes, if this round was measured.
    pub report: Option<Vec<SuccessCount>>,
    /// Loss of the deployed policy on each terminal's data, in the rounds in which it is looked at.
    pub losses: Option<Vec<LossChange>>,
    /// Episodes run in this round for calibration and report.
    pub episodes: u64,
}

/// A loss before and after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossChange {
    /// Before the round.
    pub before: f64,
    /// After it.
    pub after: f64,
}

/// What really happened to one terminal in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TerminalLedger {
    /// True delay.
    pub delay: Seconds,
    /// True energy spent on computation.
    pub energy_compute: Joules,
    /// True energy spent on transmission.
    pub energy_radio: Joules,
    /// Bandwidth it really had.
    pub bandwidth: Hertz,
    /// Activation bytes sent up (for full-model methods, the model).
    pub bytes_up: Bytes,
    /// Gradient bytes sent down.
    pub bytes_down: Bytes,
    /// Bytes of model exchange, both ways.
    pub bytes_sync: Bytes,
}

/// By how much the softened constraints were broken, raw, and relative to each limit (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Violation {
    /// Seconds beyond the deadline, summed over the terminals.
    pub deadline: Seconds,
    /// Bytes beyond the memory budgets, summed.
    pub memory: Bytes,
    /// Hertz asked for beyond the band.
    pub spectrum: Hertz,
    /// The sum of the three, each divided by its own limit.
    pub relative: f64,
}

impl Violation {
    /// Aggregate constraint violation of a round; each part is divided by its own limit.
    ///
    /// `delays` are those of the scheduled terminals; `memories` pairs need and budget of each.
    ///
    /// Eq. `method-violation`
    pub fn of(
        limits: &Limits,
        delays: impl Iterator<Item = Seconds>,
        memories: impl Iterator<Item = (Bytes, Bytes)>,
        asked: Hertz,
    ) -> Self {
        let deadline: f64 = delays.map(|delay| (delay.0 - limits.deadline.0).max(0.0)).sum();
        let spectrum = (asked.0 - limits.bandwidth.0).max(0.0);
        let (mut memory, mut memory_relative) = (0, 0.0);
        for (need, budget) in memories {
            let excess = need.0.saturating_sub(budget.0);
            memory += excess;
            memory_relative += excess as f64 / budget.0 as f64;
        }
        // The last bits of a sum of bandwidths are no violation.
        let spectrum = if spectrum < 1e-9 * limits.bandwidth.0 { 0.0 } else { spectrum };
        Self {
            deadline: Seconds(deadline),
            memory: Bytes(memory),
            spectrum: Hertz(spectrum),
            relative: deadline / limits.deadline.0
                + memory_relative
                + spectrum / limits.bandwidth.0,
        }
    }
}

/// What a world gives back for an executed decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Executed {
    /// For the allocator.
    pub outcome: Outcome,
    /// For the experimenter only.
    pub ledger: Ledger,
}

/// What a [`Confidant`] wants to be told; nothing unless asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// True hardware, and the fading powers of so many rounds from the one at hand on.
    pub rounds: Option<usize>,
    /// The loss of what is deployed, over so many fixed samples of each terminal's data.
    pub samples: Option<usize>,
    /// Success over so many episodes of each terminal, answered once per calibration interval.
    pub episodes: Option<usize>,
}

/// What no method may know: the answer to a [`Question`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The round it holds for.
    pub round: u64,
    /// Hardware and fading.
    pub network: Option<NetworkTruth>,
    /// Loss of what is deployed, per terminal.
    pub losses: Option<Vec<f64>>,
    /// Success of what is deployed, per terminal; none in rounds in which it is not measured.
    pub success: Option<Vec<SuccessCount>>,
}

/// The hidden part of radio and hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkTruth {
    /// True hardware per terminal.
    pub hardware: Vec<TrueHardware>,
    /// Fading powers per round, the one at hand first, and terminal.
    pub fading_powers: Vec<Vec<f64>>,
}

/// Where a terminal differs from its data sheet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrueHardware {
    /// Noise power spectral density of its link, W/Hz.
    pub noise_w_per_hz: f64,
    /// Operations per cycle.
    pub operations_per_cycle: f64,
    /// Energy coefficient.
    pub energy_coefficient: f64,
}

/// The physical system: the only thing that knows the truth.
pub trait World: Persist {
    /// What the base station sees before the next round.
    fn observe(&self) -> Observation;
    /// Executes one round.
    fn execute(&mut self, plan: &Feasible) -> Executed;
    /// What is hidden before the next round. The loop asks on behalf of a [`Confidant`] only; the
    /// answer depends on seed and state alone, and asking leaves no trace in the world.
    fn reveal(&self, question: &Question) -> Truth;
}

/// Who is told the truth before each decision: the reference `oracle`, and no method else.
pub trait Confidant {
    /// What it wants to be told.
    fn question(&self) -> Question;
    /// Is told.
    fn hear(&mut self, truth: &Truth);
}

/// A method that decides.
pub trait Allocator: Persist {
    /// The decision for the round seen.
    fn decide(&mut self, seen: &Observation) -> Decision;
    /// How the round decided last is to be trained, where the method decides that too.
    fn conduct(&self) -> Conduct {
        Conduct::default()
    }
    /// Learns from what was observed of the executed round.
    fn learn(&mut self, _seen: &Observation, _plan: &Feasible, _outcome: &Outcome) {}
    /// The way in for the truth. Every method but `oracle` leaves it closed, which a test of the
    /// source text checks.
    fn confidant(&mut self) -> Option<&mut dyn Confidant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            deadline: Seconds(5.0),
            bandwidth: Hertz(100.0),
            power: Watts(0.2),
            compression: 0.9,
            cuts: vec![2, 4, 6],
        }
    }

    fn wanted() -> Decision {
        let mut decision = Decision::idle(3, 2);
        decision.terminals[1] = TerminalDecision {
            scheduled: true,
            bandwidth: Hertz(300.0),
            power: Watts(-1.0),
            cut: 9,
            compression: f64::NAN,
        };
        decision.terminals[2].bandwidth = Hertz(7.0);
        decision
    }

    #[test]
    fn a_projected_decision_is_inside_the_hard_domain() {
        let feasible = limits().project(wanted());
        let [idle, busy, unscheduled] = feasible.decision().terminals[..] else { panic!() };
        assert!(!idle.scheduled);
        assert_eq!((busy.bandwidth, busy.power), (Hertz(100.0), Watts(0.0)));
        assert_eq!((busy.cut, busy.compression), (6, 0.0));
        assert_eq!(unscheduled.bandwidth, Hertz(0.0));
    }

    #[test]
    fn projecting_twice_changes_nothing() {
        let once = limits().project(wanted());
        assert_eq!(limits().project(once.decision().clone()), once);
    }

    #[test]
    fn somebody_always_takes_part() {
        let feasible = limits().project(Decision::idle(3, 2));
        assert_eq!(feasible.decision().scheduled().collect::<Vec<_>>(), [0]);
        assert_eq!(feasible.decision().terminals[0].bandwidth, Hertz(100.0));
    }

    #[test]
    fn an_order_names_every_scheduled_terminal_once() {
        let mut decision = Decision::idle(5, 2);
        for n in [0, 1, 3, 4] {
            decision.terminals[n].scheduled = true;
        }
        let plan = limits().project(decision);
        assert_eq!(plan.conduct().order, [0, 1, 3, 4]);
        let conduct = Conduct { order: vec![4, 9, 2, 0, 4], tiers: None };
        assert_eq!(plan.conducted(conduct).conduct().order, [4, 0, 1, 3]);
    }

    #[test]
    fn eq_scheduled_set_holds_the_terminals_with_x_one() {
        assert_eq!(wanted().scheduled().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn eq_method_violation_divides_each_part_by_its_own_limit() {
        let violation = Violation::of(
            &limits(),
            [Seconds(7.5), Seconds(4.0)].into_iter(),
            [(Bytes(30), Bytes(20)), (Bytes(5), Bytes(20))].into_iter(),
            Hertz(120.0),
        );
        assert_eq!(violation.deadline, Seconds(2.5));
        assert_eq!(violation.memory, Bytes(10));
        assert_eq!(violation.spectrum, Hertz(20.0));
        assert!((violation.relative - (0.5 + 0.5 + 0.2)).abs() < 1e-12);
    }

    #[test]
    fn eq_method_violation_is_zero_inside_the_limits() {
        let violation =
            Violation::of(&limits(), [Seconds(5.0)].into_iter(), std::iter::empty(), Hertz(100.0));
        assert_eq!(violation, Violation::default());
    }
}
