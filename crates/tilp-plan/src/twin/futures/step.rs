//! The law of an imagined round, for sixteen candidates at once.

use super::{ActionLanes, COMPRESSION_LEVELS, CutTables, Futures, RolloutTables};
use crate::lanes::{LANES, Lanes, TABLE, all_zero, exp2, ln, look_up, rows, vectorised};
use crate::wireless::{RateModel, ergodic_efficiency};

/// Sums over the terminals of a round.
#[derive(Clone, Copy)]
struct Sums {
    scale: Lanes,
    latency: Lanes,
    /// Energy; that of terminals with a higher price times their factor.
    energy: Lanes,
    bits: Lanes,
    /// Time until the last pending upload has arrived.
    waiting: Lanes,
    violation: Lanes,
    samples: Lanes,
    count: Lanes,
    noise: Lanes,
    depth: Lanes,
}

/// Bits a second on a bandwidth with this ratio of received power to noise density. Never zero, so
/// that an empty grant is a very long delay and not a division by zero.
#[inline(always)]
pub(super) fn speed<const HELD: bool>(bandwidth: f32, signal: f32) -> f32 {
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

/// Seconds on the air at this ratio of received power to noise density per watt. `down` is the power of
/// the way down if it has one of its own.
#[inline(always)]
pub(super) fn air_seconds<const HELD: bool>(
    snr: f32,
    bandwidth: f32,
    actions: &ActionLanes,
    down: Option<f32>,
) -> Lanes {
    let mut seconds = [0.0; LANES];
    let down = down.map(|power| speed::<HELD>(bandwidth, power * snr));
    for (lane, seconds) in seconds.iter_mut().enumerate() {
        let rate = speed::<HELD>(bandwidth, actions.power[lane] * snr);
        *seconds = match down {
            None => (actions.sending[lane] + actions.receiving[lane]) / rate,
            Some(down) => actions.sending[lane] / rate + actions.receiving[lane] / down,
        };
    }
    seconds
}

/// Fills in what one terminal sends and receives if it is scheduled.
#[inline(always)]
pub(super) fn fill_job(
    rollout: &RolloutTables,
    futures: &Futures,
    aggregates: bool,
    n: usize,
    one: &mut ActionLanes,
) {
    let [layer, model] = look_up([&rollout.layers, &rollout.models], &one.cut);
    let held = model_bits(rollout, &futures.held[n]);
    let (mut sizes, start) = ([0.0; LANES], rollout.terminals[n].sizes as f32);
    for (lane, size) in sizes.iter_mut().enumerate() {
        *size = start + one.cut[lane] * COMPRESSION_LEVELS as f32 + one.level[lane];
    }
    let [up, down, noise] = rows(&rollout.sizes, &sizes);
    for lane in 0..LANES {
        one.receiving[lane] = down[lane] + rollout.message(model[lane] - held[lane]);
    }
    (one.sending, one.noise) = (up, noise);
    one.layer = layer;
    if aggregates {
        let pending = model_bits(rollout, &futures.pending[n]);
        for lane in 0..LANES {
            let deliver = if model[lane] > pending[lane] { model[lane] } else { pending[lane] };
            one.sending[lane] += rollout.message(deliver);
        }
    }
}

/// Bits of the first n layers of the model.
#[inline(always)]
pub(super) fn model_bits(rollout: &RolloutTables, layers: &Lanes) -> Lanes {
    match <&[f32; TABLE]>::try_from(&rollout.model_bits[..]) {
        Ok(few) => look_up([few], layers)[0],
        Err(_) => layers.map(|count| rollout.model_bits[count as usize]),
    }
}

vectorised! {
    pub(super) fn roll_out(
        rollout: &RolloutTables,
        futures: &mut Futures,
        step: usize,
        actions: &[ActionLanes],
        free: &Lanes,
        reward: &mut Lanes,
    ) {
        let mut sums = asked(rollout, actions, free);
        futures.groups.fill([0.0; LANES]);
        let is_strict = rollout.drops_late && rollout.closes >= rollout.deadline;
        let is_own = rollout.down_power.is_some();
        match (rollout.model, step, is_strict && !is_own) {
            (RateModel::Held, 0, _) if is_own => everybody::<true, true, false, true>(rollout, futures, step, actions, &mut sums),
            (RateModel::Held, _, _) if is_own => everybody::<true, false, false, true>(rollout, futures, step, actions, &mut sums),
            (RateModel::Averaged, 0, _) if is_own => everybody::<false, true, false, true>(rollout, futures, step, actions, &mut sums),
            (RateModel::Averaged, _, _) if is_own => everybody::<false, false, false, true>(rollout, futures, step, actions, &mut sums),
            (RateModel::Held, 0, _) => everybody::<true, true, false, false>(rollout, futures, step, actions, &mut sums),
            (RateModel::Held, _, true) => everybody::<true, false, true, false>(rollout, futures, step, actions, &mut sums),
            (RateModel::Held, _, false) => everybody::<true, false, false, false>(rollout, futures, step, actions, &mut sums),
            (RateModel::Averaged, 0, _) => everybody::<false, true, false, false>(rollout, futures, step, actions, &mut sums),
            (RateModel::Averaged, _, _) => everybody::<false, false, false, false>(rollout, futures, step, actions, &mut sums),
        }
        let before = futures.success;
        let fall = learning(rollout, futures, &sums);
        let [task, delay, energy, penalty] = rollout.reward;
        let [deadline, most] = rollout.scale;
        for lane in 0..LANES {
            let gain = if rollout.task_driven { futures.success[lane] - before[lane] } else { fall[lane] };
            let waiting = if rollout.counts_waiting { sums.waiting[lane] } else { 0.0 };
            let slowest = if sums.latency[lane] > waiting { sums.latency[lane] } else { waiting };
            let latency = if slowest < rollout.give_up { slowest } else { rollout.give_up };
            // A round without training is a lost round, not a fast one.
            let lost = if sums.count[lane] > 0.0 { 0.0 } else { deadline };
            let latency = if latency > lost { latency } else { lost };
            reward[lane] = task * gain
                + delay * (1.0 - latency / deadline)
                + energy * (1.0 - sums.energy[lane] / most)
                - penalty * sums.violation[lane]
                - rollout.bit_price * sums.bits[lane];
        }
        futures.n_trained = sums.count;
        copies(futures, rollout.aggregates(step), actions);
    }
}

/// Demand on the band: the factor by which grants are scaled down, and the violation of the
/// spectrum.
#[inline(always)]
fn asked(rollout: &RolloutTables, actions: &[ActionLanes], free: &Lanes) -> Sums {
    let zero = [0.0; LANES];
    let mut sums = Sums {
        scale: [1.0; LANES],
        latency: zero,
        energy: zero,
        bits: zero,
        waiting: zero,
        violation: zero,
        samples: zero,
        count: zero,
        noise: zero,
        depth: zero,
    };
    let mut asked = zero;
    for one in actions {
        for (lane, asked) in asked.iter_mut().enumerate() {
            *asked += one.scheduled[lane] * one.bandwidth[lane];
        }
    }
    for lane in 0..LANES {
        let (asked, free) = (asked[lane], free[lane]);
        sums.scale[lane] = if asked > free { free / asked } else { 1.0 };
        let over = asked / rollout.band - 1.0;
        // Rounding in the sum of bandwidths is no violation.
        sums.violation[lane] = if over > 1e-5 { over } else { 0.0 };
    }
    sums
}

#[inline(always)]
fn everybody<const HELD: bool, const FIRST: bool, const STRICT: bool, const OWN: bool>(
    rollout: &RolloutTables,
    futures: &mut Futures,
    step: usize,
    actions: &[ActionLanes],
    sums: &mut Sums,
) {
    seconds_per_bit::<HELD>(rollout, futures, step, actions, &sums.scale);
    for (n, one) in actions.iter().enumerate() {
        // Skip terminals that no candidate schedules.
        if all_zero(&one.scheduled) {
            futures.trained[n] = [0.0; LANES];
        } else {
            network::<HELD, FIRST, STRICT, OWN>(rollout, futures, step, n, one, sums);
        }
        if rollout.aggregates(step) {
            deliver::<HELD>(rollout, futures, step, n, one, sums);
        }
    }
}

/// Time of a bit on the air. In a loop of its own: divisions and logarithms depend on each other,
/// and a processor overlaps iterations only of a short loop.
#[inline(always)]
fn seconds_per_bit<const HELD: bool>(
    rollout: &RolloutTables,
    futures: &mut Futures,
    step: usize,
    actions: &[ActionLanes],
    scale: &Lanes,
) {
    for (n, (one, found)) in actions.iter().zip(&mut futures.scratch).enumerate() {
        if all_zero(&one.scheduled) {
            continue;
        }
        let snr = rollout.signal(step, n);
        let mut per_bit = [0.0; LANES];
        for lane in 0..LANES {
            let bandwidth = one.bandwidth[lane] * scale[lane];
            per_bit[lane] = 1.0 / speed::<HELD>(bandwidth, one.power[lane] * snr);
        }
        *found = per_bit;
    }
}

/// One terminal's part of the round: delay, energy, violation, and whether it trains. All inputs
/// are copied into local arrays first: loops that write through references do not vectorise.
///
/// `STRICT`: after the first round and with late terminals dropped, no remaining terminal is late, is cut
/// off or has too little memory. `OWN`: the downlink has its own power.
#[inline(always)]
fn network<const HELD: bool, const FIRST: bool, const STRICT: bool, const OWN: bool>(
    rollout: &RolloutTables,
    futures: &mut Futures,
    step: usize,
    n: usize,
    one: &ActionLanes,
    sums: &mut Sums,
) {
    let terminal = &rollout.terminals[n];
    let safe_snr = rollout.safe_snr[n];
    let (snr, down_power) = (rollout.signal(step, n), rollout.down_power.unwrap_or(0.0));
    let drops = if rollout.drops_late { 1.0 } else { 0.0 };
    let (deadline, closes, give_up) = (rollout.deadline, rollout.closes, rollout.give_up);
    let (radio, batch) = (terminal.radio_factor, terminal.samples);
    let factor = terminal.joule_factor;
    let CutTables { seconds, safe_seconds, joules, excess, depth } = &terminal.cuts;
    let [computing, safe, joules, excess, depth] =
        look_up([seconds, safe_seconds, joules, excess, depth], &one.cut);
    let (bandwidth, power, noise) = (one.bandwidth, one.power, one.noise);
    let (sending, receiving, wanted) = (one.sending, one.receiving, one.scheduled);
    let per_bit = futures.scratch[n];
    let mut local = *sums;
    let (mut samples, mut trained) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let bandwidth = bandwidth[lane] * local.scale[lane];
        let power = power[lane];
        let per_bit = per_bit[lane];
        let (seconds, excess) = (computing[lane], excess[lane]);
        let (sent, received) = (sending[lane], receiving[lane]);
        let sending = sent * per_bit;
        let on_air = if OWN {
            sending + received / speed::<HELD>(bandwidth, down_power * snr)
        } else {
            sending + received * per_bit
        };
        let delay = seconds + on_air;
        // Later rounds are judged by expected delays: only the first round is executed.
        let sure = if FIRST && OWN {
            safe[lane]
                + sent / speed::<HELD>(bandwidth, power * safe_snr)
                + received / speed::<HELD>(bandwidth, down_power * safe_snr)
        } else if FIRST {
            safe[lane] + (sent + received) / speed::<HELD>(bandwidth, power * safe_snr)
        } else {
            delay
        };
        let fits = if excess <= 0.0 { 1.0 } else { 0.0 };
        let in_time = if sure <= deadline { fits } else { 0.0 };
        let (scheduled, trains) = if STRICT {
            (wanted[lane] * in_time, wanted[lane] * in_time)
        } else {
            let scheduled = wanted[lane] * (1.0 - drops * (1.0 - in_time));
            (scheduled, if delay <= closes { scheduled * fits } else { 0.0 })
        };
        // Cut off at the end: computed first, sent and received in proportion until then.
        let left = if closes > seconds { closes - seconds } else { 0.0 };
        let part = if !STRICT && on_air > left { left / on_air } else { 1.0 };
        let spent = joules[lane] + power * sending * part * radio;
        local.energy[lane] += scheduled * spent * factor;
        local.bits[lane] += scheduled * (sent + received);
        let latency = scheduled * delay;
        local.latency[lane] =
            if latency > local.latency[lane] { latency } else { local.latency[lane] };
        if !STRICT {
            let sure = if sure < give_up { sure } else { give_up };
            let late = sure / deadline - 1.0;
            let late = if late > 0.0 { late } else { 0.0 };
            local.violation[lane] += scheduled * (late + excess);
        }
        let own = trains * batch;
        local.samples[lane] += own;
        local.count[lane] += trains;
        local.noise[lane] += own * noise[lane];
        local.depth[lane] += own * depth[lane];
        samples[lane] = own;
        trained[lane] = trains;
    }
    *sums = local;
    let group = &mut futures.groups[terminal.group];
    for lane in 0..LANES {
        group[lane] += samples[lane];
    }
    futures.trained[n] = trained;
}

/// A terminal that is not scheduled sends its pending upload over one N-th of the band.
#[inline(always)]
fn deliver<const HELD: bool>(
    rollout: &RolloutTables,
    futures: &Futures,
    step: usize,
    n: usize,
    one: &ActionLanes,
    sums: &mut Sums,
) {
    let snr = rollout.signal(step, n);
    let slice = rollout.band / rollout.terminals.len() as f32;
    let rate = speed::<HELD>(slice, rollout.power * snr);
    let pending = model_bits(rollout, &futures.pending[n]);
    for (lane, bits) in pending.into_iter().enumerate() {
        let bits = rollout.message(bits);
        let sending = bits / rate;
        let sending = if sending < rollout.closes { sending } else { rollout.closes };
        let joules = rollout.power * sending * rollout.terminals[n].radio_factor;
        let idle = 1.0 - one.scheduled[lane];
        sums.energy[lane] += idle * joules * rollout.terminals[n].joule_factor;
        sums.bits[lane] += idle * bits;
        let wait = idle * sending;
        sums.waiting[lane] = if wait > sums.waiting[lane] { wait } else { sums.waiting[lane] };
    }
}

/// Losses after the round and the predicted success; returns the decrease of the mean loss.
#[inline(always)]
fn learning(rollout: &RolloutTables, futures: &mut Futures, sums: &Sums) -> Lanes {
    let [_, kin, any, push, scatter, noise, depth, ..] = rollout.weights;
    let ([least, most], caution) = (rollout.rates, rollout.caution);
    let [minibatch, drift] = rollout.doubt;
    let [pace, forgetting] = rollout.tempo;
    let (mut share, mut common) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let trained = sums.samples[lane] > 0.0;
        let samples = if trained { sums.samples[lane] } else { 1.0 };
        let count = if trained { sums.count[lane] } else { 1.0 };
        share[lane] = if trained { 1.0 / samples } else { 0.0 };
        let scatter = (0..rollout.scatter_power).fold(scatter, |left, _| left / count);
        let all =
            any - scatter - noise * sums.noise[lane] / samples + depth * sums.depth[lane] / samples;
        common[lane] = if trained { all } else { 0.0 };
    }
    let mut fall = [0.0; LANES];
    for (n, terminal) in rollout.terminals.iter().enumerate() {
        let own_weight = terminal.own_weight + push * terminal.push - kin;
        let group = futures.groups[terminal.group];
        let (mut log_loss, mut variance) = (futures.log_loss[n], futures.variance[n]);
        let trained = futures.trained[n];
        let mut cautious = [0.0; LANES];
        let mut forgotten = [0.0; LANES];
        if forgetting > 0.0 {
            let mut advantage = futures.advantage[n];
            for lane in 0..LANES {
                let lost = if share[lane] > 0.0 { forgetting * advantage[lane] } else { 0.0 };
                let own = pace * trained[lane] * terminal.samples * share[lane];
                advantage[lane] += own - lost;
                forgotten[lane] = terminal.raw_own_weight * lost;
            }
            futures.advantage[n] = advantage;
        }
        for lane in 0..LANES {
            let own = trained[lane] * terminal.samples;
            let rate = common[lane] + share[lane] * (own_weight * own + kin * group[lane])
                - forgotten[lane];
            let rate = if rate < least { least } else { rate };
            let rate = if rate > most { most } else { rate };
            let after = log_loss[lane] - rate;
            // A report reduces the uncertainty of a level, time increases it.
            let known = variance[lane];
            let told = known * minibatch / (known + minibatch);
            let left = if trained[lane] > 0.5 { told } else { known };
            variance[lane] = left + drift;
            cautious[lane] = after + caution * variance[lane].sqrt();
            log_loss[lane] = after;
        }
        if !rollout.task_driven {
            let before = futures.log_loss[n];
            let e = std::f32::consts::LOG2_E;
            for lane in 0..LANES {
                fall[lane] += exp2(e * before[lane]) - exp2(e * log_loss[lane]);
            }
        }
        (futures.log_loss[n], futures.variance[n]) = (log_loss, variance);
        futures.scratch[n] = cautious;
    }
    let success = promised(rollout, &futures.scratch);
    let one = 1.0 / rollout.terminals.len() as f32;
    futures.success = success.map(|sum| sum * one);
    fall.map(|sum| sum * one)
}

/// The sum of all terminals' success at these log-losses.
#[inline(always)]
fn promised(rollout: &RolloutTables, log_losses: &[Lanes]) -> Lanes {
    let mut success = [0.0; LANES];
    for (terminal, log_loss) in rollout.terminals.iter().zip(log_losses) {
        let [start, slope] = terminal.line;
        for lane in 0..LANES {
            success[lane] += 1.0 / (1.0 + exp2(slope * log_loss[lane] - start));
        }
    }
    success
}

/// Which copies are held and which uploads are pending after the round.
#[inline(always)]
fn copies(futures: &mut Futures, aggregates: bool, actions: &[ActionLanes]) {
    if aggregates {
        // After an aggregation no held copy is current.
        futures.held.fill([0.0; LANES]);
        futures.pending.fill([0.0; LANES]);
        return;
    }
    for (n, one) in actions.iter().enumerate() {
        let (mut held, mut pending) = (futures.held[n], futures.pending[n]);
        let trained = futures.trained[n];
        for lane in 0..LANES {
            let layer = one.layer[lane] * trained[lane];
            held[lane] = if layer > held[lane] { layer } else { held[lane] };
            pending[lane] = if layer > pending[lane] { layer } else { pending[lane] };
        }
        (futures.held[n], futures.pending[n]) = (held, pending);
    }
}
