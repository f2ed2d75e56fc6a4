//! Sixteen futures at once: the same imagined rounds as [`Twin::step`], in single precision and in
//! vector lanes, for a planner that tries thousands of candidates.
//!
//! [`RolloutTables`] contains what all futures from one state have in common and is computed once
//! per plan. [`Futures`] is what differs between candidates. The law is that of [`Twin::step`]; a
//! test compares the two.

mod fades;
mod numbers;
mod step;
mod worth;

use super::training::compression_noise;
use super::{N_SHARED, Scale, Twin, TwinState};
use crate::cost::Downlink;
use crate::lanes::{LANES, Lanes, Row, TABLE};
use crate::round::Limits;
use crate::split::message::MESSAGE_HEADER_BYTES;
use crate::units::{Bytes, Gain, Seconds, Watts};
use crate::wireless::RateModel;
use step::{air_seconds, fill_job, model_bits, roll_out, speed};
pub use worth::WorthLanes;

/// Compression is decided on a grid from zero to the maximum, so that sizes can be tabulated.
pub const COMPRESSION_LEVELS: usize = 128;

/// The compression of a level.
pub fn compression_at(limits: &Limits, level: usize) -> f64 {
    limits.compression * level as f64 / (COMPRESSION_LEVELS - 1) as f64
}

/// The level nearest to a share of the maximum.
#[inline(always)]
pub fn compression_level(share: f32) -> f32 {
    // Neither `round` nor a conversion to an integer: neither is vectorised.
    let exact = share.mul_add((COMPRESSION_LEVELS - 1) as f32, 0.5);
    // From this number on, single precision has whole numbers only.
    const WHOLE: f32 = 8_388_608.0;
    let near = (exact + WHOLE) - WHOLE;
    if near > exact { near - 1.0 } else { near }
}

/// Actions of one terminal in one round, for sixteen candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct ActionLanes {
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
    /// Layers in front of the cut, filled by [`RolloutTables::job`] like everything below.
    pub layer: Lanes,
    /// Noise of the compression.
    pub noise: Lanes,
    /// Bits to send.
    pub sending: Lanes,
    /// Bits to receive.
    pub receiving: Lanes,
}

impl ActionLanes {
    /// All zero.
    pub const ZERO: Self = Self {
        scheduled: [0.0; LANES],
        bandwidth: [0.0; LANES],
        power: [0.0; LANES],
        cut: [0.0; LANES],
        level: [0.0; LANES],
        layer: [0.0; LANES],
        noise: [0.0; LANES],
        sending: [0.0; LANES],
        receiving: [0.0; LANES],
    };
}

/// Constants of a terminal.
#[derive(Clone, Debug)]
struct Terminal {
    group: usize,
    samples: f32,
    /// First row of its table in [`RolloutTables::sizes`].
    sizes: usize,
    push: f32,
    own_weight: f32,
    /// The same at the pace of the first round.
    raw_own_weight: f32,
    cuts: CutTables,
    /// The last of the cuts that fit the memory, else the first.
    deepest: usize,
    radio_factor: f32,
    /// Price of its joules over the common one.
    joule_factor: f32,
    /// Success is the logistic of the first minus the second times the log-loss, in powers of two.
    line: [f32; 2],
}

/// Largest number of cuts.
pub const MAX_CUTS: usize = TABLE;

/// Constants of a terminal's cuts; after the last cut its values are repeated.
#[derive(Clone, Debug)]
pub struct CutTables {
    /// Computation in seconds.
    pub seconds: [f32; MAX_CUTS],
    /// Upper bound of the computation in seconds, with the safety margin.
    pub safe_seconds: [f32; MAX_CUTS],
    /// Energy of the computation until the round closes.
    pub joules: [f32; MAX_CUTS],
    /// Memory beyond the budget, relative to it.
    pub excess: [f32; MAX_CUTS],
    /// Share of the layers, less a half.
    pub depth: [f32; MAX_CUTS],
}

/// What all futures from one state have in common.
#[derive(Clone, Debug)]
pub struct RolloutTables {
    model: RateModel,
    /// Power of the downlink, if it has its own.
    down_power: Option<f32>,
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
    /// Ratio of gain times fading to noise, per step and terminal; the first step also with margin.
    snr: Vec<f32>,
    safe_snr: Vec<f32>,
    usual: Vec<f32>,
    /// Bits up, bits down and noise of the compression, per cut and level. One table for each number
    /// of samples in a minibatch that occurs; [`Terminal::sizes`] says where it starts.
    sizes: Vec<Row>,
    /// Layers in front of a cut, and their bits.
    layers: [f32; MAX_CUTS],
    models: [f32; MAX_CUTS],
    /// Bits of the first n layers of the model, at index n; at least as many entries as a short table has.
    model_bits: Vec<f32>,
    /// Bits of a message that carries layers, beside theirs.
    header: f32,
    /// Weights of the training law at the tempo of the state, and the bounds of a rate.
    weights: [f32; N_SHARED],
    /// Factor on the samples of an advantage, and the share of it that a round forgets.
    tempo: [f32; 2],
    /// Power of the number of participants by which the scatter of a round falls.
    scatter_power: u32,
    rates: [f32; 2],
    caution: f32,
    /// Variance of a report, and of the drift of a level in a round.
    doubt: [f32; 2],
    reward: [f32; 4],
    scale: [f32; 2],
    /// Reward that a bit on the air costs.
    bit_price: f32,
    /// Whether the wait for pending uploads counts in the time of a round.
    counts_waiting: bool,
    start: Futures,
}

/// State of sixteen candidates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Futures {
    /// Logarithm of each terminal's loss.
    pub log_loss: Vec<Lanes>,
    /// Its variance.
    pub variance: Vec<Lanes>,
    /// Advantage of each terminal from its own samples; constant without forgetting.
    pub advantage: Vec<Lanes>,
    /// Front layers held in their current version.
    pub held: Vec<Lanes>,
    /// Front layers trained since the last aggregation.
    pub pending: Vec<Lanes>,
    /// Success at the end, over all terminals.
    pub success: Lanes,
    /// Terminals that trained in the last round, one or zero.
    pub trained: Vec<Lanes>,
    /// Number of these terminals.
    pub n_trained: Lanes,
    groups: Vec<Lanes>,
    /// One number per terminal, passed from one loop of a round to the next.
    scratch: Vec<Lanes>,
}

impl RolloutTables {
    /// What the futures from a state of the twin have in common, for `n_steps` rounds. If late
    /// terminals are dropped, a terminal that would be late (in the first round: not surely in
    /// time) is treated as not scheduled.
    pub fn new(twin: &Twin, state: &TwinState, n_steps: usize, drops_late: bool) -> Self {
        let (nominal, options) = (twin.nominal(), twin.options());
        let (limits, profile) = (&nominal.cost.limits, &nominal.cost.profile);
        let n_layers = profile.cuts.len();
        let bits = |bytes: Bytes| 8.0 * bytes.0 as f32;
        let size = |samples: usize, cut: usize, level: usize| -> Row {
            let q = compression_at(limits, level);
            let job = nominal.cost.accounting.training(profile, samples, cut, q, n_layers, 0);
            [bits(job.up), bits(job.down), compression_noise(q) as f32, 0.0]
        };
        let mut minibatches: Vec<usize> = state.samples.iter().map(|one| *one as usize).collect();
        minibatches.sort_unstable();
        minibatches.dedup();
        let table = |&samples: &usize| -> Vec<Row> {
            let levels = |&cut| (0..COMPRESSION_LEVELS).map(move |level| size(samples, cut, level));
            limits.cuts.iter().flat_map(levels).collect()
        };
        let start = |n: usize| {
            let place = minibatches.partition_point(|one| *one < state.samples[n] as usize);
            place * limits.cuts.len() * COMPRESSION_LEVELS
        };
        let message =
            |layers: usize| bits(nominal.cost.accounting.delivery(profile, layers).sync_up);
        let is_billed = message(n_layers) > 0.0;
        let header = if is_billed { bits(Bytes(MESSAGE_HEADER_BYTES as u64)) } else { 0.0 };
        let model = |layers: usize| (message(layers) - header).max(0.0);
        let (snr, safe_snr) = signal_to_noise(twin, state, n_steps);
        let Scale { deadline, energy } = *twin.scale();
        let weights = &options.weights;
        let (least, most) = twin.training.bounds();
        let (minibatch, drift) = twin.training.noise();
        Self {
            model: nominal.cost.rate_model,
            down_power: match nominal.cost.downlink {
                Downlink::Shared => None,
                Downlink::Own(power) => Some(power.0 as f32),
            },
            deadline: limits.deadline.0 as f32,
            closes: nominal.closes.0 as f32,
            give_up: nominal.give_up.0 as f32,
            band: limits.bandwidth.0 as f32,
            power: limits.power.0 as f32,
            round: state.round,
            every: nominal.aggregate_every,
            drops_late,
            task_driven: options.task_driven,
            terminals: (0..state.gain.len()).map(|n| terminal(twin, state, n, start(n))).collect(),
            snr,
            safe_snr,
            usual: (0..state.gain.len())
                .map(|n| (state.gain[n] / twin.network.hardware(n).noise_w_per_hz) as f32)
                .collect(),
            sizes: minibatches.iter().flat_map(table).collect(),
            layers: each_cut(&limits.cuts, &|cut| cut as f32),
            models: each_cut(&limits.cuts, &model),
            header,
            model_bits: (0..TABLE.max(n_layers + 1))
                .map(|layers| model(layers.min(n_layers)))
                .collect(),
            weights: twin.training.weights_at(state.tempo).map(|weight| weight as f32),
            tempo: [state.tempo.rate, state.tempo.forgetting].map(|one| one as f32),
            scatter_power: state.tempo.scatter_power,
            rates: [least as f32, most as f32],
            caution: options.caution as f32,
            doubt: [minibatch as f32, drift as f32],
            reward: [weights.task, weights.delay, weights.energy, weights.penalty]
                .map(|weight| weight as f32),
            scale: [deadline.0, energy.0].map(|one| one as f32),
            bit_price: 0.0,
            counts_waiting: false,
            start: Futures::new(state, nominal.n_tasks),
        }
    }

    /// Bits of a message with this number of bits of layers; zero without layers.
    #[inline(always)]
    pub fn message(&self, layers: f32) -> f32 {
        if layers > 0.0 { layers + self.header } else { 0.0 }
    }

    /// Ratio of received power to noise density of a terminal, per watt, some rounds ahead.
    #[inline(always)]
    pub fn signal(&self, step: usize, n: usize) -> f32 {
        self.snr[step * self.terminals.len() + n]
    }

    /// The same at the mean fade.
    pub fn usual_signal(&self, n: usize) -> f32 {
        self.usual[n]
    }

    /// Number of rounds that can be imagined.
    pub fn n_steps(&self) -> usize {
        self.snr.len() / self.terminals.len()
    }

    /// Number of terminals.
    pub fn n_terminals(&self) -> usize {
        self.terminals.len()
    }

    /// The common initial state.
    pub fn start(&self) -> &Futures {
        &self.start
    }

    /// The last of the cuts that fit a terminal's memory; the first cut if none fits.
    pub fn deepest_fitting(&self, terminal: usize) -> usize {
        self.terminals[terminal].deepest
    }

    /// Tables of a terminal's cuts.
    pub fn cut_tables(&self, terminal: usize) -> &CutTables {
        &self.terminals[terminal].cuts
    }

    /// Ratio of received power to noise density of a terminal now, per watt, with the safety margin.
    pub fn safe_signal(&self, terminal: usize) -> f32 {
        self.safe_snr[terminal]
    }

    /// Energy of sending over transmit power times sending time.
    pub fn radio_factor(&self, terminal: usize) -> f32 {
        self.terminals[terminal].radio_factor
    }

    /// Bits up, bits down and noise of the compression at a cut and a level.
    pub fn sizes(&self, cut: usize, level: usize) -> [f32; 3] {
        let [up, down, noise, _] = self.sizes[cut * COMPRESSION_LEVELS + level];
        [up, down, noise]
    }

    /// Bits of the layers in front of a cut.
    pub fn cut_bits(&self, cut: usize) -> f32 {
        self.models[cut]
    }

    /// Bits of the first n layers.
    #[inline(always)]
    pub fn layer_bits(&self, layers: &Lanes) -> Lanes {
        model_bits(self, layers)
    }

    /// Energy for a bit of a pending upload at the mean fade.
    pub fn upload_joules(&self, terminal: usize) -> f32 {
        let seconds = self.upload_seconds(self.usual[terminal]);
        self.power * self.terminals[terminal].radio_factor * seconds
    }

    /// Time for a bit of a pending upload, over one N-th of the band at full power.
    pub fn upload_seconds(&self, signal: f32) -> f32 {
        let slice = self.band / self.terminals.len() as f32;
        let rate = match self.model {
            RateModel::Held => speed::<true>(slice, self.power * signal),
            RateModel::Averaged => speed::<false>(slice, self.power * signal),
        };
        1.0 / rate
    }

    /// When a round closes for terminals that have not finished, in seconds.
    pub fn closes(&self) -> f32 {
        self.closes
    }

    /// Whether the time of a round includes the wait for pending uploads of terminals that are not
    /// scheduled.
    pub fn count_waiting(&mut self, counts: bool) {
        self.counts_waiting = counts;
    }

    /// Reward that a second of waiting for a pending upload costs.
    pub fn waiting_price(&self) -> f32 {
        if self.counts_waiting { self.reward[1] / self.scale[0] } else { 0.0 }
    }

    /// Reward that a joule of most terminals costs.
    pub fn joule_price(&self) -> f32 {
        self.reward[2] / self.scale[1]
    }

    /// Price of a terminal's joules over that of most.
    pub fn joule_factor(&self, terminal: usize) -> f32 {
        self.terminals[terminal].joule_factor
    }

    /// Reward that a bit on the air costs.
    pub fn bit_price(&self) -> f32 {
        self.bit_price
    }

    /// Sets the price of a bit, and of each terminal's joules over the common price.
    pub fn set_prices(&mut self, bit: f64, joules: &[f64]) {
        self.bit_price = bit as f32;
        for (terminal, factor) in self.terminals.iter_mut().zip(joules) {
            terminal.joule_factor = *factor as f32;
        }
    }

    /// The deadline in seconds, the band in hertz and the largest power in watts.
    pub fn most(&self) -> [f32; 3] {
        [self.deadline, self.band, self.power]
    }

    /// Whether a round of the future aggregates.
    pub fn aggregates(&self, step: usize) -> bool {
        (self.round + step as u64).is_multiple_of(self.every)
    }

    /// Fills in the bits that a terminal sends and receives if it is scheduled.
    #[inline(always)]
    pub fn job(&self, futures: &Futures, step: usize, n: usize, actions: &mut ActionLanes) {
        fill_job(self, futures, self.aggregates(step), n, actions);
    }

    /// Time on the air of a terminal's job, in seconds, on this bandwidth at its power.
    #[inline(always)]
    pub fn air_seconds(
        &self,
        step: usize,
        n: usize,
        bandwidth: f32,
        actions: &ActionLanes,
    ) -> Lanes {
        let snr = self.snr[step * self.terminals.len() + n];
        match self.model {
            RateModel::Held => air_seconds::<true>(snr, bandwidth, actions, self.down_power),
            RateModel::Averaged => air_seconds::<false>(snr, bandwidth, actions, self.down_power),
        }
    }

    /// Time that a terminal needs now, with the safety margin, with this share of the band, full
    /// power, the first cut and the strongest compression.
    pub fn delay_of_a_share(&self, n: usize, share: f32) -> f64 {
        let (held, pending) = (self.start.held[n][0], self.start.pending[n][0]);
        let (layer, size) = (self.layers[0], COMPRESSION_LEVELS - 1);
        let bits_of = |layers: f32| self.model_bits[layers as usize];
        let fetch = self.message(bits_of(layer) - bits_of(held));
        let delivery =
            if self.aggregates(0) { self.message(bits_of(layer.max(pending))) } else { 0.0 };
        let [up, down, ..] = self.sizes[self.terminals[n].sizes + size];
        let speed = |power: f32| {
            let signal = power * self.safe_snr[n];
            match self.model {
                RateModel::Held => speed::<true>(share * self.band, signal),
                RateModel::Averaged => speed::<false>(share * self.band, signal),
            }
        };
        let on_air = match self.down_power {
            None => (up + down + fetch + delivery) / speed(self.power),
            Some(power) => (up + delivery) / speed(self.power) + (down + fetch) / speed(power),
        };
        f64::from(self.terminals[n].cuts.safe_seconds[0] + on_air)
    }

    /// The band that pending uploads leave for the scheduled: see [`crate::cost::FrontCopies`].
    pub fn free_band(&self, futures: &Futures, step: usize, actions: &[ActionLanes]) -> Lanes {
        let mut slices = [0.0; LANES];
        if self.aggregates(step) {
            for (pending, one) in futures.pending.iter().zip(actions) {
                for lane in 0..LANES {
                    let uploads = if pending[lane] > 0.0 { 1.0 } else { 0.0 };
                    slices[lane] += uploads * (1.0 - one.scheduled[lane]);
                }
            }
        }
        slices.map(|n| self.band * (1.0 - n / self.terminals.len() as f32))
    }

    /// Imagines one round: predicts its reward and advances the futures. The jobs of the actions
    /// must be filled in.
    pub fn step(
        &self,
        futures: &mut Futures,
        step: usize,
        actions: &[ActionLanes],
        reward: &mut Lanes,
    ) {
        let free = self.free_band(futures, step, actions);
        roll_out(self, futures, step, actions, &free, reward);
    }
}

/// A value for each of the cuts; after the last cut its value is repeated.
fn each_cut(cuts: &[usize], value: &dyn Fn(usize) -> f32) -> [f32; MAX_CUTS] {
    std::array::from_fn(|index| value(cuts[index.min(cuts.len() - 1)]))
}

fn terminal(twin: &Twin, state: &TwinState, n: usize, sizes: usize) -> Terminal {
    let nominal = twin.nominal();
    let (limits, profile) = (&nominal.cost.limits, &nominal.cost.profile);
    let minibatch = state.samples[n] as usize;
    // Valid even if all terminals are scheduled.
    let doubtful = twin.network.doubtful_hardware(n, twin.sure_z(state.gain.len()));
    let likely = twin.network.hardware(n);
    let seconds = |hardware: &crate::cost::Hardware, cut: usize| {
        let (speed, clock) = (hardware.operations_per_cycle, hardware.clock);
        crate::wireless::computation_delay(profile.work(cut, minibatch), speed, clock).0
    };
    let joules = |cut: usize| {
        let (work, hungry) = (profile.work(cut, minibatch), likely.energy_coefficient);
        crate::wireless::energy(work, hungry, likely.clock, Watts(0.0), Seconds(0.0)).0.0
    };
    let excess = |cut: usize| {
        let (need, budget) = (profile.memory(cut).0, state.memory[n].0);
        need.saturating_sub(budget) as f64 / budget as f64
    };
    let joules = |cut: usize| {
        let (seconds, closes) = (seconds(likely, cut) as f32, nominal.closes.0 as f32);
        joules(cut) as f32 * if seconds > closes { closes / seconds } else { 1.0 }
    };
    let each = |value: &dyn Fn(usize) -> f32| each_cut(&limits.cuts, value);
    let cuts = CutTables {
        seconds: each(&|cut| seconds(likely, cut) as f32),
        safe_seconds: each(&|cut| seconds(&doubtful, cut) as f32),
        joules: each(&joules),
        excess: each(&|cut| excess(cut) as f32),
        depth: each(&|cut| cut as f32 / profile.cuts.len() as f32 - 0.5),
    };
    let (start, slope) = twin.task.line_ahead(n, state.outlook);
    Terminal {
        group: nominal.tasks[n],
        samples: state.samples[n] as f32,
        sizes,
        push: state.push[n] as f32,
        own_weight: (state.tempo.rate * twin.training.own_weight(nominal.tasks[n])) as f32,
        raw_own_weight: twin.training.own_weight(nominal.tasks[n]) as f32,
        deepest: cuts.excess[..limits.cuts.len()]
            .iter()
            .rposition(|excess| *excess <= 0.0)
            .unwrap_or(0),
        cuts,
        radio_factor: twin.network.radio_factor(n) as f32,
        joule_factor: 1.0,
        line: [start, slope].map(|one| (one * std::f64::consts::LOG2_E) as f32),
    }
}

fn signal_to_noise(twin: &Twin, state: &TwinState, n_steps: usize) -> (Vec<f32>, Vec<f32>) {
    let n = state.gain.len();
    let kept = twin.rho() * twin.rho();
    let power = |n: usize, step: usize| state.fading_after(n, step, kept).mean();
    // The expected fading is already contained in the averaged model.
    let power = |n: usize, step: usize| match twin.nominal().cost.rate_model {
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
    /// Returns to a start, in the memory that it has.
    pub fn restart(&mut self, start: &Self) {
        // A derived `clone_from` would ask for new memory.
        let Self {
            log_loss,
            variance,
            advantage,
            held,
            pending,
            success,
            trained,
            n_trained,
            groups,
            scratch,
        } = start;
        self.log_loss.clone_from(log_loss);
        self.variance.clone_from(variance);
        self.advantage.clone_from(advantage);
        self.held.clone_from(held);
        self.pending.clone_from(pending);
        (self.success, self.n_trained) = (*success, *n_trained);
        self.trained.clone_from(trained);
        self.groups.clone_from(groups);
        self.scratch.resize(scratch.len(), [0.0; LANES]);
    }

    fn new(state: &TwinState, n_groups: usize) -> Self {
        let lanes = |value: f64| [value as f32; LANES];
        let n = state.gain.len();
        Self {
            log_loss: state.log_loss.iter().map(|&one| lanes(one)).collect(),
            variance: state.variance.iter().map(|&one| lanes(one)).collect(),
            advantage: state.advantage.iter().map(|&one| lanes(one)).collect(),
            held: state.copies.iter().map(|one| lanes(one.held as f64)).collect(),
            pending: state.copies.iter().map(|one| lanes(one.pending as f64)).collect(),
            success: lanes(state.success),
            trained: vec![[0.0; LANES]; n],
            n_trained: [0.0; LANES],
            groups: vec![[0.0; LANES]; n_groups],
            scratch: vec![[0.0; LANES]; n],
        }
    }
}
