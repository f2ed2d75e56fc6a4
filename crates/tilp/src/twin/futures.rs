//! Sixteen futures at once: the same imagined rounds as [`Twin::step`], in single precision and in
//! vector lanes, for a planner that tries thousands of candidates.
//!
//! [`Field`] holds what all futures from one state have in common and is made once a plan.
//! [`Futures`] is what differs between candidates. The law is that of [`Twin::step`], and a test
//! holds both together.

use super::training::compression_noise;
use super::{N_SHARED, Scale, Twin, TwinState};
use crate::cost::Job;
use crate::lanes::{LANES, Lanes, exp2, ln, vectorised};
use crate::round::Limits;
use crate::units::{Gain, Seconds, Watts};
use crate::wireless::{RateModel, ergodic_efficiency};

/// Compression is decided on a grid from nothing to the most, so that sizes can be tabled.
pub const COMPRESSION_LEVELS: usize = 128;

/// The compression of a level.
pub fn compression_at(limits: &Limits, level: usize) -> f64 {
    limits.compression * level as f64 / (COMPRESSION_LEVELS - 1) as f64
}

/// The level nearest to a share of the most.
#[inline(always)]
pub fn compression_level(share: f32) -> usize {
    // Not `round`, which is a call on some processors.
    share.mul_add((COMPRESSION_LEVELS - 1) as f32, 0.5) as usize
}

/// What sixteen candidates would have one terminal do in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Moves {
    /// One or zero.
    pub scheduled: Lanes,
    /// b_n in hertz.
    pub bandwidth: Lanes,
    /// p_n in watts.
    pub power: Lanes,
    /// Index into the admissible cuts.
    pub cut: Lanes,
    /// Level of compression.
    pub level: Lanes,
    /// Bits to send, filled by [`Field::jobs`].
    pub sending: Lanes,
    /// Bits to receive, filled by [`Field::jobs`].
    pub receiving: Lanes,
}

impl Moves {
    /// Nothing.
    pub const ZERO: Self = Self {
        scheduled: [0.0; LANES],
        bandwidth: [0.0; LANES],
        power: [0.0; LANES],
        cut: [0.0; LANES],
        level: [0.0; LANES],
        sending: [0.0; LANES],
        receiving: [0.0; LANES],
    };
}

/// Constants of a terminal.
#[derive(Clone, Debug)]
struct Terminal {
    group: usize,
    samples: f32,
    push: f32,
    own_weight: f32,
    cuts: Vec<Cut>,
    radio_factor: f32,
    /// Success is the logistic of the first less the second times the log-loss, in powers of two.
    line: [f32; 2],
}

/// Constants of a cut on a terminal.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Computation in seconds, and the same to be sure.
    seconds: f32,
    safe_seconds: f32,
    joules: f32,
    /// Memory beyond the budget, relative to it.
    excess: f32,
    /// Share of the layers, less a half.
    depth: f32,
}

/// What all futures from one state have in common.
#[derive(Clone, Debug)]
pub struct Field {
    model: RateModel,
    deadline: f32,
    closes: f32,
    give_up: f32,
    band: f32,
    power: f32,
    round: u64,
    every: u64,
    drops_late: bool,
    task_driven: bool,
    terminals: Vec<Terminal>,
    /// Ratio of gain times fading to noise, per step and terminal; the first step also to be sure.
    snr: Vec<f32>,
    safe_snr: Vec<f32>,
    usual: Vec<f32>,
    /// Bits up and down per cut and level; bits of the model from one layer to another.
    up: Vec<f32>,
    down: Vec<f32>,
    sync: Vec<f32>,
    n_layers: usize,
    layers: Vec<f32>,
    noise: Vec<f32>,
    /// Weights of the training law and the bounds of a rate.
    weights: [f32; N_SHARED],
    rates: [f32; 2],
    caution: f32,
    /// Variance of a report, and of the drift of a level in a round.
    doubt: [f32; 2],
    reward: [f32; 4],
    scale: [f32; 2],
    start: Futures,
}

/// Where sixteen candidates stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Futures {
    /// Logarithm of each terminal's loss.
    pub log_loss: Vec<Lanes>,
    /// Its variance.
    pub variance: Vec<Lanes>,
    /// Front layers held in their current version.
    pub held: Vec<Lanes>,
    /// Front layers owed.
    pub owed: Vec<Lanes>,
    /// Success at the end, over all terminals.
    pub success: Lanes,
    /// Terminals that trained in the last round, one or zero.
    pub trained: Vec<Lanes>,
    shares: Vec<Lanes>,
    groups: Vec<Lanes>,
}

/// Sums over the terminals of a round.
#[derive(Clone, Copy)]
struct Sums {
    scale: Lanes,
    latency: Lanes,
    energy: Lanes,
    violation: Lanes,
    samples: Lanes,
    count: Lanes,
    noise: Lanes,
    depth: Lanes,
}

impl Field {
    /// What the futures from a state of the twin have in common, for `n_steps` rounds. If late ones
    /// are dropped, a terminal that would be late (in the first round: not surely in time) is
    /// treated as not scheduled.
    pub fn new(twin: &Twin, state: &TwinState, n_steps: usize, drops_late: bool) -> Self {
        let (nominal, options) = (twin.nominal(), twin.options());
        let (limits, profile) = (&nominal.limits, &nominal.profile);
        let n_layers = profile.cuts.len();
        let bits = |bytes: crate::units::Bytes| 8.0 * bytes.0 as f32;
        let job = |cut: usize, level: usize| -> Job {
            let q = compression_at(limits, level);
            nominal.accounting.training(profile, cut, q, n_layers, 0)
        };
        let grid = || {
            let levels = |&cut: &usize| (0..COMPRESSION_LEVELS).map(move |level| (cut, level));
            limits.cuts.iter().flat_map(levels)
        };
        let model = |from: usize, to: usize| {
            let job = nominal.accounting.training(profile, to.max(1), 0.0, from, 0);
            if to == 0 { 0.0 } else { bits(job.sync_down) }
        };
        let sync = (0..=n_layers).flat_map(|from| (0..=n_layers).map(move |to| (from, to)));
        let (snr, safe_snr) = signal_to_noise(twin, state, n_steps);
        let Scale { deadline, energy } = *twin.scale();
        let weights = &options.weights;
        let (least, most) = twin.training.bounds();
        let (minibatch, drift) = twin.training.noise();
        Self {
            model: nominal.rate_model,
            deadline: limits.deadline.0 as f32,
            closes: nominal.closes.0 as f32,
            give_up: nominal.give_up.0 as f32,
            band: limits.bandwidth.0 as f32,
            power: limits.power.0 as f32,
            round: state.round,
            every: nominal.aggregate_every,
            drops_late,
            task_driven: options.task_driven,
            terminals: (0..state.gain.len()).map(|n| terminal(twin, state, n)).collect(),
            snr,
            safe_snr,
            usual: (0..state.gain.len())
                .map(|n| (state.gain[n] / twin.network.hardware(n).noise_w_per_hz) as f32)
                .collect(),
            up: grid().map(|(cut, level)| bits(job(cut, level).up)).collect(),
            down: grid().map(|(cut, level)| bits(job(cut, level).down)).collect(),
            sync: sync.map(|(from, to)| model(from, to)).collect(),
            n_layers,
            layers: limits.cuts.iter().map(|&cut| cut as f32).collect(),
            noise: (0..COMPRESSION_LEVELS)
                .map(|level| compression_noise(compression_at(limits, level)) as f32)
                .collect(),
            weights: std::array::from_fn(|i| twin.training.weights()[i] as f32),
            rates: [least as f32, most as f32],
            caution: options.caution as f32,
            doubt: [minibatch as f32, drift as f32],
            reward: [weights.task, weights.delay, weights.energy, weights.penalty]
                .map(|weight| weight as f32),
            scale: [deadline.0, energy.0].map(|one| one as f32),
            start: Futures::new(state, nominal.n_tasks),
        }
    }

    /// Ratio of received power to noise density of a terminal, per watt, some rounds ahead.
    pub fn signal(&self, step: usize, n: usize) -> f32 {
        self.snr[step * self.terminals.len() + n]
    }

    /// The same at the mean fade.
    pub fn usual_signal(&self, n: usize) -> f32 {
        self.usual[n]
    }

    /// Rounds that can be imagined.
    pub fn n_steps(&self) -> usize {
        self.snr.len() / self.terminals.len()
    }

    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.terminals.len()
    }

    /// The state that all start from.
    pub fn start(&self) -> &Futures {
        &self.start
    }

    /// The last of the cuts that fit a terminal's memory, else the first.
    pub fn deepest_fitting(&self, terminal: usize) -> usize {
        self.terminals[terminal].cuts.iter().rposition(|cut| cut.excess <= 0.0).unwrap_or(0)
    }

    /// Whether a round of the future aggregates.
    pub fn aggregates(&self, step: usize) -> bool {
        (self.round + step as u64).is_multiple_of(self.every)
    }

    /// Fills in what everybody scheduled has to send and to receive.
    pub fn jobs(&self, futures: &Futures, step: usize, moves: &mut [Moves]) {
        fill_jobs(self, futures, self.aggregates(step), moves);
    }

    /// Time on the air of a terminal's job, in seconds, on this bandwidth at its power.
    #[inline(always)]
    pub fn air_seconds(&self, step: usize, n: usize, bandwidth: f32, moves: &Moves) -> Lanes {
        let snr = self.snr[step * self.terminals.len() + n];
        match self.model {
            RateModel::Held => air_seconds::<true>(snr, bandwidth, moves),
            RateModel::Averaged => air_seconds::<false>(snr, bandwidth, moves),
        }
    }

    /// How long a terminal would take now, to be sure, with a tenth of the band, full power, the
    /// first cut and the most compression.
    pub fn delay_of_a_tenth(&self, n: usize) -> f64 {
        let (held, owed) = (self.start.held[n][0], self.start.owed[n][0]);
        let layer = self.layers[0];
        let size = COMPRESSION_LEVELS - 1;
        let fetch = held as usize * (self.n_layers + 1) + layer as usize;
        let delivery = self.sync[layer.max(owed) as usize];
        let delivery = if self.aggregates(0) { delivery } else { 0.0 };
        let bits = self.up[size] + self.down[size] + self.sync[fetch] + delivery;
        let signal = self.power * self.safe_snr[n];
        let speed = match self.model {
            RateModel::Held => speed::<true>(0.1 * self.band, signal),
            RateModel::Averaged => speed::<false>(0.1 * self.band, signal),
        };
        f64::from(self.terminals[n].cuts[0].safe_seconds + bits / speed)
    }

    /// The band that is left for the scheduled: in a round that aggregates, who owes its copy and
    /// is not scheduled holds one N-th of it.
    pub fn free_band(&self, futures: &Futures, step: usize, moves: &[Moves]) -> Lanes {
        let mut holders = [0.0; LANES];
        if self.aggregates(step) {
            for (owed, one) in futures.owed.iter().zip(moves) {
                for lane in 0..LANES {
                    let owes = if owed[lane] > 0.0 { 1.0 } else { 0.0 };
                    holders[lane] += owes * (1.0 - one.scheduled[lane]);
                }
            }
        }
        holders.map(|n| self.band * (1.0 - n / self.terminals.len() as f32))
    }

    /// Imagines one round: predicts its reward and moves the futures on. The jobs of the moves must
    /// be filled in.
    pub fn step(&self, futures: &mut Futures, step: usize, moves: &[Moves], reward: &mut Lanes) {
        let free = self.free_band(futures, step, moves);
        roll_out(self, futures, step, moves, &free, reward);
    }
}

/// Bits a second on a bandwidth with this ratio of received power to noise density. Never zero, so
/// that an empty grant is a very long delay and not a division by zero.
#[inline(always)]
fn speed<const HELD: bool>(bandwidth: f32, signal: f32) -> f32 {
    let bandwidth = if bandwidth > 1e-3 { bandwidth } else { 1e-3 };
    let snr = signal / bandwidth;
    let efficiency = if HELD {
        // The logarithm loses its digits near one, the series does not.
        let small = snr * (1.0 - 0.5 * snr);
        let large = ln(1.0 + snr);
        (if snr < 1e-3 { small } else { large }) * std::f32::consts::LOG2_E
    } else {
        ergodic_efficiency(f64::from(snr)) as f32
    };
    let rate = bandwidth * efficiency;
    if rate > 1e-6 { rate } else { 1e-6 }
}

fn terminal(twin: &Twin, state: &TwinState, n: usize) -> Terminal {
    let nominal = twin.nominal();
    let (limits, profile) = (&nominal.limits, &nominal.profile);
    // Sure even if everybody is scheduled.
    let doubtful = twin.network.doubtful_hardware(n, twin.sure_z(state.gain.len()));
    let likely = twin.network.hardware(n);
    let seconds = |hardware: &crate::cost::Hardware, cut: usize| {
        let (speed, clock) = (hardware.operations_per_cycle, hardware.clock);
        crate::wireless::computation_delay(profile.work(cut), speed, clock).0
    };
    let joules = |cut: usize| {
        let (work, hungry) = (profile.work(cut), likely.energy_coefficient);
        crate::wireless::energy(work, hungry, likely.clock, Watts(0.0), Seconds(0.0)).0.0
    };
    let excess = |cut: usize| {
        let (need, budget) = (profile.memory(cut).0, state.memory[n].0);
        need.saturating_sub(budget) as f64 / budget as f64
    };
    let cut_of = |cut: usize| Cut {
        seconds: seconds(likely, cut) as f32,
        safe_seconds: seconds(&doubtful, cut) as f32,
        joules: joules(cut) as f32,
        excess: excess(cut) as f32,
        depth: cut as f32 / profile.cuts.len() as f32 - 0.5,
    };
    let (start, slope) = twin.task.line_ahead(n, state.outlook);
    Terminal {
        group: nominal.tasks[n],
        samples: state.samples[n] as f32,
        push: state.push[n] as f32,
        own_weight: twin.training.own_weight(nominal.tasks[n]) as f32,
        cuts: limits.cuts.iter().map(|&cut| cut_of(cut)).collect(),
        radio_factor: twin.network.radio_factor(n) as f32,
        line: [start, slope].map(|one| (one * std::f64::consts::LOG2_E) as f32),
    }
}

fn signal_to_noise(twin: &Twin, state: &TwinState, n_steps: usize) -> (Vec<f32>, Vec<f32>) {
    let n = state.gain.len();
    let kept = twin.nominal().rho * twin.nominal().rho;
    let power = |n: usize, step: usize| twin.fading_power(state.fading_after(n, step, kept));
    // The averaged model has the fading in its expectation.
    let power = |n: usize, step: usize| match twin.nominal().rate_model {
        RateModel::Held => power(n, step),
        RateModel::Averaged => 1.0,
    };
    let of =
        |noise: f64, n: usize, step: usize| (Gain(state.gain[n]).0 * power(n, step) / noise) as f32;
    let likely = |n: usize| twin.network.hardware(n).noise_w_per_hz;
    let z = twin.sure_z(n);
    let safe = |n: usize| twin.network.doubtful_hardware(n, z).noise_w_per_hz;
    let steps = (0..n_steps).flat_map(|step| (0..n).map(move |n| (step, n)));
    (
        steps.map(|(step, n)| of(likely(n), n, step)).collect(),
        (0..n).map(|n| of(safe(n), n, 0)).collect(),
    )
}

impl Futures {
    fn new(state: &TwinState, n_groups: usize) -> Self {
        let lanes = |value: f64| [value as f32; LANES];
        let n = state.gain.len();
        Self {
            log_loss: state.log_loss.iter().map(|&one| lanes(one)).collect(),
            variance: state.variance.iter().map(|&one| lanes(one)).collect(),
            held: state.held.iter().map(|&one| lanes(one as f64)).collect(),
            owed: state.owed.iter().map(|&one| lanes(one as f64)).collect(),
            success: lanes(state.success),
            trained: vec![[0.0; LANES]; n],
            shares: vec![[0.0; LANES]; n],
            groups: vec![[0.0; LANES]; n_groups],
        }
    }
}

#[inline(always)]
fn air_seconds<const HELD: bool>(snr: f32, bandwidth: f32, moves: &Moves) -> Lanes {
    let mut seconds = [0.0; LANES];
    for lane in 0..LANES {
        let rate = speed::<HELD>(bandwidth, moves.power[lane] * snr);
        seconds[lane] = (moves.sending[lane] + moves.receiving[lane]) / rate;
    }
    seconds
}

vectorised! {
    fn fill_jobs(field: &Field, futures: &Futures, aggregates: bool, moves: &mut [Moves]) {
        let width = field.n_layers + 1;
        for (n, one) in moves.iter_mut().enumerate() {
            let (held, owed) = (&futures.held[n], &futures.owed[n]);
            for lane in 0..LANES {
                let cut = one.cut[lane] as usize;
                let size = cut * COMPRESSION_LEVELS + one.level[lane] as usize;
                let layer = field.layers[cut];
                let fetch = held[lane] as usize * width + layer as usize;
                let deliver = if layer > owed[lane] { layer } else { owed[lane] };
                let delivery = if aggregates { field.sync[deliver as usize] } else { 0.0 };
                one.sending[lane] = field.up[size] + delivery;
                one.receiving[lane] = field.down[size] + field.sync[fetch];
            }
        }
    }
}

vectorised! {
    fn roll_out(
        field: &Field,
        futures: &mut Futures,
        step: usize,
        moves: &[Moves],
        free: &Lanes,
        reward: &mut Lanes,
    ) {
        let mut sums = asked(field, moves, free);
        futures.groups.fill([0.0; LANES]);
        match (field.model, step) {
            (RateModel::Held, 0) => everybody::<true, true>(field, futures, step, moves, &mut sums),
            (RateModel::Held, _) => everybody::<true, false>(field, futures, step, moves, &mut sums),
            (RateModel::Averaged, 0) => everybody::<false, true>(field, futures, step, moves, &mut sums),
            (RateModel::Averaged, _) => everybody::<false, false>(field, futures, step, moves, &mut sums),
        }
        let before = futures.success;
        let fall = learning(field, futures, &sums);
        let [task, delay, energy, penalty] = field.reward;
        let [deadline, most] = field.scale;
        for lane in 0..LANES {
            let gain = if field.task_driven { futures.success[lane] - before[lane] } else { fall[lane] };
            let latency = if sums.latency[lane] < field.give_up { sums.latency[lane] } else { field.give_up };
            reward[lane] = task * gain
                + delay * (1.0 - latency / deadline)
                + energy * (1.0 - sums.energy[lane] / most)
                - penalty * sums.violation[lane];
        }
        copies(field, futures, field.aggregates(step), moves);
    }
}

/// What is asked of the band: how much a grant is scaled down, and the violation of the spectrum.
#[inline(always)]
fn asked(field: &Field, moves: &[Moves], free: &Lanes) -> Sums {
    let zero = [0.0; LANES];
    let mut sums = Sums {
        scale: [1.0; LANES],
        latency: zero,
        energy: zero,
        violation: zero,
        samples: zero,
        count: zero,
        noise: zero,
        depth: zero,
    };
    let mut asked = zero;
    for one in moves {
        for lane in 0..LANES {
            asked[lane] += one.scheduled[lane] * one.bandwidth[lane];
        }
    }
    for lane in 0..LANES {
        let (asked, free) = (asked[lane], free[lane]);
        sums.scale[lane] = if asked > free { free / asked } else { 1.0 };
        let over = asked / field.band - 1.0;
        // The last bits of a sum of bandwidths are no violation.
        sums.violation[lane] = if over > 1e-5 { over } else { 0.0 };
    }
    sums
}

#[inline(always)]
fn everybody<const HELD: bool, const FIRST: bool>(
    field: &Field,
    futures: &mut Futures,
    step: usize,
    moves: &[Moves],
    sums: &mut Sums,
) {
    for (n, one) in moves.iter().enumerate() {
        network::<HELD, FIRST>(field, futures, step, n, one, sums);
    }
}

/// What the tables say of sixteen moves of one terminal.
struct Looked {
    seconds: Lanes,
    safe: Lanes,
    joules: Lanes,
    excess: Lanes,
    depth: Lanes,
    noise: Lanes,
}

#[inline(always)]
fn look_up(field: &Field, terminal: &Terminal, one: &Moves) -> Looked {
    let zero = [0.0; LANES];
    let mut looked =
        Looked { seconds: zero, safe: zero, joules: zero, excess: zero, depth: zero, noise: zero };
    for lane in 0..LANES {
        let cut = &terminal.cuts[one.cut[lane] as usize];
        looked.seconds[lane] = cut.seconds;
        looked.safe[lane] = cut.safe_seconds;
        looked.joules[lane] = cut.joules;
        looked.excess[lane] = cut.excess;
        looked.depth[lane] = cut.depth;
        looked.noise[lane] = field.noise[one.level[lane] as usize];
    }
    looked
}

/// One terminal's part of the round: delay, energy, violation, and whether it trains. Everything
/// is taken into local arrays first: loops that write through references do not vectorise.
#[inline(always)]
fn network<const HELD: bool, const FIRST: bool>(
    field: &Field,
    futures: &mut Futures,
    step: usize,
    n: usize,
    one: &Moves,
    sums: &mut Sums,
) {
    let terminal = &field.terminals[n];
    let snr = field.snr[step * field.terminals.len() + n];
    let safe_snr = field.safe_snr[n];
    let drops = if field.drops_late { 1.0 } else { 0.0 };
    let (deadline, closes, give_up) = (field.deadline, field.closes, field.give_up);
    let (radio, batch) = (terminal.radio_factor, terminal.samples);
    let (one, looked, mut local) = (*one, look_up(field, terminal, one), *sums);
    let (mut samples, mut trained) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let bandwidth = one.bandwidth[lane] * local.scale[lane];
        let power = one.power[lane];
        let per_bit = 1.0 / speed::<HELD>(bandwidth, power * snr);
        let (seconds, excess) = (looked.seconds[lane], looked.excess[lane]);
        let sending = one.sending[lane] * per_bit;
        let on_air = sending + one.receiving[lane] * per_bit;
        let delay = seconds + on_air;
        // Later rounds are judged by what is likely: only the first is executed.
        let sure = if FIRST {
            let bits = one.sending[lane] + one.receiving[lane];
            looked.safe[lane] + bits / speed::<HELD>(bandwidth, power * safe_snr)
        } else {
            delay
        };
        let fits = if excess <= 0.0 { 1.0 } else { 0.0 };
        let in_time = if sure <= deadline { fits } else { 0.0 };
        let scheduled = one.scheduled[lane] * (1.0 - drops * (1.0 - in_time));
        let trains = if delay <= closes { scheduled * fits } else { 0.0 };
        // Cut off at the end: computed first, sent and received in proportion until then.
        let left = if closes > seconds { closes - seconds } else { 0.0 };
        let part = if on_air > left { left / on_air } else { 1.0 };
        let done = if seconds > closes { closes / seconds } else { 1.0 };
        let spent = looked.joules[lane] * done + power * sending * part * radio;
        local.energy[lane] += scheduled * spent;
        let latency = scheduled * delay;
        local.latency[lane] =
            if latency > local.latency[lane] { latency } else { local.latency[lane] };
        let sure = if sure < give_up { sure } else { give_up };
        let late = sure / deadline - 1.0;
        let late = if late > 0.0 { late } else { 0.0 };
        local.violation[lane] += scheduled * (late + excess);
        let own = trains * batch;
        local.samples[lane] += own;
        local.count[lane] += trains;
        local.noise[lane] += own * looked.noise[lane];
        local.depth[lane] += own * looked.depth[lane];
        samples[lane] = own;
        trained[lane] = trains;
    }
    *sums = local;
    let group = &mut futures.groups[terminal.group];
    for lane in 0..LANES {
        group[lane] += samples[lane];
    }
    (futures.shares[n], futures.trained[n]) = (samples, trained);
    if field.aggregates(step) {
        deliver::<HELD>(field, futures, n, snr, &one, sums);
    }
}

/// A terminal that owes its copy and is not scheduled sends it over its N-th of the band.
#[inline(always)]
fn deliver<const HELD: bool>(
    field: &Field,
    futures: &Futures,
    n: usize,
    snr: f32,
    one: &Moves,
    sums: &mut Sums,
) {
    let slice = field.band / field.terminals.len() as f32;
    let rate = speed::<HELD>(slice, field.power * snr);
    for lane in 0..LANES {
        let owed = futures.owed[n][lane];
        let sending = field.sync[owed as usize] / rate;
        let sending = if sending < field.closes { sending } else { field.closes };
        let joules = field.power * sending * field.terminals[n].radio_factor;
        sums.energy[lane] += (1.0 - one.scheduled[lane]) * joules;
    }
}

/// Losses after the round and the success they promise; returns the fall of the mean loss.
#[inline(always)]
fn learning(field: &Field, futures: &mut Futures, sums: &Sums) -> Lanes {
    let [_, kin, any, push, scatter, noise, depth, ..] = field.weights;
    let ([least, most], caution) = (field.rates, field.caution);
    let [minibatch, drift] = field.doubt;
    let (mut share, mut common) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let trained = sums.samples[lane] > 0.0;
        let samples = if trained { sums.samples[lane] } else { 1.0 };
        let count = if trained { sums.count[lane] } else { 1.0 };
        share[lane] = if trained { 1.0 / samples } else { 0.0 };
        let all = any - scatter / count - noise * sums.noise[lane] / samples
            + depth * sums.depth[lane] / samples;
        common[lane] = if trained { all } else { 0.0 };
    }
    let (mut success, mut fall) = ([0.0; LANES], [0.0; LANES]);
    for (n, terminal) in field.terminals.iter().enumerate() {
        let [start, slope] = terminal.line;
        let own_weight = terminal.own_weight + push * terminal.push - kin;
        let (own, group) = (futures.shares[n], futures.groups[terminal.group]);
        let (mut log_loss, mut variance) = (futures.log_loss[n], futures.variance[n]);
        let trained = futures.trained[n];
        for lane in 0..LANES {
            let rate = common[lane] + share[lane] * (own_weight * own[lane] + kin * group[lane]);
            let rate = if rate < least { least } else { rate };
            let rate = if rate > most { most } else { rate };
            let after = log_loss[lane] - rate;
            // A report narrows the doubt about a level, time widens it.
            let known = variance[lane];
            let told = known * minibatch / (known + minibatch);
            let left = if trained[lane] > 0.5 { told } else { known };
            variance[lane] = left + drift;
            let cautious = after + caution * variance[lane].sqrt();
            success[lane] += 1.0 / (1.0 + exp2(slope * cautious - start));
            log_loss[lane] = after;
        }
        if !field.task_driven {
            let before = futures.log_loss[n];
            let e = std::f32::consts::LOG2_E;
            for lane in 0..LANES {
                fall[lane] += exp2(e * before[lane]) - exp2(e * log_loss[lane]);
            }
        }
        (futures.log_loss[n], futures.variance[n]) = (log_loss, variance);
    }
    let one = 1.0 / field.terminals.len() as f32;
    futures.success = success.map(|sum| sum * one);
    fall.map(|sum| sum * one)
}

/// Who holds and owes what after the round.
#[inline(always)]
fn copies(field: &Field, futures: &mut Futures, aggregates: bool, moves: &[Moves]) {
    if aggregates {
        // After an aggregation nothing held is current.
        futures.held.fill([0.0; LANES]);
        futures.owed.fill([0.0; LANES]);
        return;
    }
    for (n, one) in moves.iter().enumerate() {
        let (held, owed) = (&mut futures.held[n], &mut futures.owed[n]);
        let trained = &futures.trained[n];
        for lane in 0..LANES {
            let layer = field.layers[one.cut[lane] as usize] * trained[lane];
            held[lane] = if layer > held[lane] { layer } else { held[lane] };
            owed[lane] = if layer > owed[lane] { layer } else { owed[lane] };
        }
    }
}
