//! The network sub-twin: delay and energy from nominal models times calibration parameters.
//!
//! Each terminal has four logarithmic factors on its data sheet: noise of the link, speed of the
//! processor, energy of computation, energy of the radio. Each starts at zero with the tolerance of
//! a data sheet, drifts a little every round (so old data loses weight), and is corrected by an
//! extended Kalman filter when the terminal reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::channel::ChannelOptions;
use super::normal::Z_90;
use super::track::Track;
use super::truth::CERTAIN;
use crate::cost::{self, Cost, Grant, Hardware, Job, Link};
use crate::round::TerminalOutcome;
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::Seconds;

/// Prior of a logarithmic factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// Standard deviation.
    pub sd: f64,
    /// No data sheet is wrong by more than this; safety margins never exceed it.
    pub limit: f64,
}

/// Assumptions of the network sub-twin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkOptions {
    /// Factor on the noise.
    pub noise: Prior,
    /// Factor on the operations per cycle.
    pub speed: Prior,
    /// Factor on the energy of computing.
    pub compute: Prior,
    /// Factor on the energy of sending.
    pub radio: Prior,
    /// Standard deviation by which each factor drifts in a round.
    pub drift: f64,
    /// A measurement further off than this many standard deviations means that a factor has jumped.
    pub surprise: f64,
    /// Computation of an unfinished terminal is a lower bound if it takes more than this share of
    /// the time until the round closes.
    pub closing_share: f64,
    /// Number of linearisations of the correction of the noise factor by one delay.
    pub corrections: usize,
    /// Least standard deviation that is assumed for meters, in logarithms.
    pub least_measurement: f64,
    /// How mean gains and the correlation of the fading are estimated.
    #[serde(default, skip_serializing_if = "ChannelOptions::is_default")]
    pub channel: ChannelOptions,
}

/// Normal belief about a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Mean of the logarithmic factor.
    pub mean: f64,
    /// Its variance.
    pub variance: f64,
}

impl Belief {
    fn new(prior: Prior) -> Self {
        Self { mean: 0.0, variance: prior.sd * prior.sd }
    }

    /// Standard deviation.
    pub fn sd(&self) -> f64 {
        self.variance.sqrt()
    }

    /// The value `z` standard deviations up, at most the largest error of a data sheet.
    fn up(&self, z: f64, prior: Prior) -> f64 {
        let reach = self.mean + z * self.sd();
        reach.min(prior.limit.max(self.mean + self.sd()))
    }

    /// The value `z` standard deviations down.
    fn down(&self, z: f64, prior: Prior) -> f64 {
        -Self { mean: -self.mean, ..*self }.up(z, prior)
    }

    /// If the measurement is improbable, the variance is increased first.
    fn admit(&mut self, innovation: f64, slope: f64, noise: f64, surprise: f64) {
        let variance = slope * slope * self.variance + noise;
        if innovation * innovation > surprise * surprise * variance {
            self.variance += innovation * innovation / (slope * slope).max(1e-3);
        }
    }
}

/// State of one terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Factor on the noise.
    pub noise: Belief,
    /// Factor on the operations per cycle.
    pub speed: Belief,
    /// Factor on the energy of computing.
    pub compute: Belief,
    /// Factor on the energy of sending.
    pub radio: Belief,
    /// Covariance of the last two: only their sum is measured.
    pub shared: f64,
    /// Number of rounds with a measurement of it.
    pub n_seen: u64,
}

impl Calibration {
    /// Before anything was measured.
    fn start(options: &NetworkOptions) -> Self {
        Self {
            noise: Belief::new(options.noise),
            speed: Belief::new(options.speed),
            compute: Belief::new(options.compute),
            radio: Belief::new(options.radio),
            shared: 0.0,
            n_seen: 0,
        }
    }

    /// Time has increased the variance by this much. The variance does not exceed that of the data
    /// sheet.
    fn widen(&mut self, options: &NetworkOptions, drift: f64) {
        let beliefs = [
            (&mut self.noise, options.noise),
            (&mut self.speed, options.speed),
            (&mut self.compute, options.compute),
            (&mut self.radio, options.radio),
        ];
        for (belief, prior) in beliefs {
            let most = (prior.sd * prior.sd).max(belief.variance);
            belief.variance = (belief.variance + drift).min(most);
        }
    }

    /// As numbers, the count of rounds aside.
    pub(super) fn to_array(self) -> [f64; KEPT] {
        let pair = |belief: Belief| [belief.mean, belief.variance];
        let [a, b, c, d] = [self.noise, self.speed, self.compute, self.radio].map(pair);
        [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1], self.shared]
    }

    /// Back from numbers.
    pub(super) fn from_slice(v: &[f64], n_seen: u64) -> Self {
        let belief = |at: usize| Belief { mean: v[at], variance: v[at + 1] };
        Self {
            noise: belief(0),
            speed: belief(2),
            compute: belief(4),
            radio: belief(6),
            shared: v[8],
            n_seen,
        }
    }
}

/// One terminal's part of a round, as planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Its work in the round.
    pub job: Job,
    /// Its channel.
    pub link: Link,
    /// Its share of the radio.
    pub grant: Grant,
}

/// The network sub-twin.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkTwin {
    options: NetworkOptions,
    /// Standard deviation of the log-normal measurement error.
    measurement: f64,
    nominal: Vec<Hardware>,
    closes: Seconds,
    beliefs: Vec<Calibration>,
    /// Nominal values times the mean factors, cached for the planner.
    hardware: Vec<Hardware>,
    radio_factor: Vec<f64>,
    delay_track: Track,
    energy_track: Track,
    /// The factors are known, not estimated.
    is_told: bool,
}

impl NetworkTwin {
    /// The twin of terminals with this data sheet. Rounds end for all terminals after `closes`.
    /// `measurement` is the standard deviation of measurement errors, in logarithms.
    pub fn new(
        nominal: Vec<Hardware>,
        closes: Seconds,
        measurement: f64,
        options: NetworkOptions,
    ) -> Self {
        Self {
            beliefs: vec![Calibration::start(&options); nominal.len()],
            hardware: nominal.clone(),
            radio_factor: vec![1.0; nominal.len()],
            measurement: measurement.max(options.least_measurement),
            options,
            nominal,
            closes,
            delay_track: Track::default(),
            energy_track: Track::default(),
            is_told: false,
        }
    }

    /// True hardware, in place of the estimates.
    pub(super) fn be_told(&mut self, hardware: Vec<Hardware>) {
        let certain = |truth: f64, nominal: f64| Belief {
            mean: if truth > 0.0 { (truth / nominal).ln() } else { 0.0 },
            variance: CERTAIN,
        };
        for (n, truth) in hardware.iter().enumerate() {
            let nominal = &self.nominal[n];
            self.beliefs[n] = Calibration {
                noise: certain(truth.noise_w_per_hz, nominal.noise_w_per_hz),
                speed: certain(truth.operations_per_cycle, nominal.operations_per_cycle),
                compute: certain(truth.energy_coefficient, nominal.energy_coefficient),
                radio: certain(1.0, 1.0),
                shared: 0.0,
                n_seen: self.beliefs[n].n_seen,
            };
        }
        self.radio_factor.fill(1.0);
        self.hardware = hardware;
        self.is_told = true;
    }

    /// State of each terminal.
    pub fn calibrations(&self) -> &[Calibration] {
        &self.beliefs
    }

    /// Calibrated hardware of a terminal.
    pub fn hardware(&self, n: usize) -> &Hardware {
        &self.hardware[n]
    }

    /// Calibrated factor on the energy of sending.
    pub fn radio_factor(&self, n: usize) -> f64 {
        self.radio_factor[n]
    }

    /// Uncut cost of a terminal's part of a round.
    #[inline]
    pub fn predict(&self, n: usize, exchange: &Exchange) -> Cost {
        let Exchange { job, link, grant } = exchange;
        let mut cost = cost::cost(job, &self.hardware[n], link, *grant);
        cost.energy_radio = cost.energy_radio * self.radio_factor[n];
        cost
    }

    /// Hardware `z` standard deviations worse in noise and speed together: slow and noisy at once,
    /// since an error of one clock may affect both estimates.
    #[inline]
    pub fn doubtful_hardware(&self, n: usize, z: f64) -> Hardware {
        let (belief, nominal) = (&self.beliefs[n], &self.nominal[n]);
        Hardware {
            noise_w_per_hz: nominal.noise_w_per_hz * belief.noise.up(z, self.options.noise).exp(),
            operations_per_cycle: nominal.operations_per_cycle
                * belief.speed.down(z, self.options.speed).exp(),
            ..self.hardware[n]
        }
    }

    /// The delay that is not exceeded with the probability of a normal variable below `z`.
    #[inline]
    pub fn safe_delay(&self, n: usize, exchange: &Exchange, z: f64) -> Seconds {
        let hardware = self.doubtful_hardware(n, z);
        cost::cost(&exchange.job, &hardware, &exchange.link, exchange.grant).delay()
    }

    /// Standard deviation of the logarithm of the true delay.
    pub fn log_delay_sd(&self, n: usize, exchange: &Exchange) -> f64 {
        let (safe, likely) = (self.safe_delay(n, exchange, 1.0), self.predict(n, exchange).delay());
        if likely.0 > 0.0 && safe.0.is_finite() { (safe.0 / likely.0).ln() } else { 0.0 }
    }

    /// 90 % interval of the delay as it will be measured.
    pub fn delay_interval(&self, n: usize, exchange: &Exchange) -> (Seconds, Seconds) {
        let sd = self.measured_delay_sd(n, exchange);
        let likely = self.predict(n, exchange).delay();
        (likely * (-Z_90 * sd).exp(), likely * (Z_90 * sd).exp())
    }

    /// 90 % interval of the energy as it will be measured.
    pub fn energy_interval(&self, n: usize, exchange: &Exchange) -> (f64, f64) {
        let (joules, sd) = self.energy(n, exchange);
        let sd = (sd * sd + self.measurement * self.measurement).sqrt();
        (joules * (-Z_90 * sd).exp(), joules * (Z_90 * sd).exp())
    }

    /// Errors of the logarithm of the delay, each made before learning from the round.
    pub fn delay_track(&self) -> &Track {
        &self.delay_track
    }

    /// Errors of the logarithm of the energy, each made before learning from the round.
    pub fn energy_track(&self) -> &Track {
        &self.energy_track
    }

    /// Advances one round: every factor drifts a little.
    pub fn pass_round(&mut self) {
        if self.is_told {
            return;
        }
        let drift = self.options.drift * self.options.drift;
        self.beliefs.iter_mut().for_each(|one| one.widen(&self.options, drift));
    }

    /// Prior state of a terminal.
    pub(super) fn start(&self) -> Calibration {
        Calibration::start(&self.options)
    }

    /// State of a terminal after this number of rounds without it.
    pub(super) fn aged(&self, mut one: Calibration, rounds: f64) -> Calibration {
        if !self.is_told {
            one.widen(&self.options, rounds * self.options.drift * self.options.drift);
        }
        one
    }

    /// Replaces the terminals, each with its estimates.
    pub(super) fn set_terminals(&mut self, nominal: Vec<Hardware>, beliefs: Vec<Calibration>) {
        self.hardware.clone_from(&nominal);
        self.radio_factor = vec![1.0; nominal.len()];
        (self.nominal, self.beliefs) = (nominal, beliefs);
        (0..self.nominal.len()).for_each(|n| self.refresh(n));
    }

    /// Learns from the measurements of one terminal that was involved in a round.
    pub fn calibrate(&mut self, n: usize, exchange: &Exchange, seen: &TerminalOutcome) {
        self.keep_track(n, exchange, seen);
        self.beliefs[n].n_seen += 1;
        if self.is_told {
            return;
        }
        self.learn_speed(n, exchange, seen);
        self.refresh(n);
        self.learn_noise(n, exchange, seen);
        self.refresh(n);
        self.learn_energy(n, exchange, seen);
        self.refresh(n);
    }

    fn refresh(&mut self, n: usize) {
        let (belief, nominal) = (&self.beliefs[n], &self.nominal[n]);
        self.hardware[n] = Hardware {
            operations_per_cycle: nominal.operations_per_cycle * belief.speed.mean.exp(),
            energy_coefficient: nominal.energy_coefficient * belief.compute.mean.exp(),
            noise_w_per_hz: nominal.noise_w_per_hz * belief.noise.mean.exp(),
            ..*nominal
        };
        self.radio_factor[n] = belief.radio.mean.exp();
    }

    fn keep_track(&mut self, n: usize, exchange: &Exchange, seen: &TerminalOutcome) {
        let likely = self.predict(n, exchange).delay().0;
        if !seen.unfinished && is_positive(seen.delay.0) && is_positive(likely) {
            let sd = self.measured_delay_sd(n, exchange);
            self.delay_track.add((seen.delay.0 / likely).ln(), sd);
        }
        let (joules, sd) = self.energy(n, exchange);
        if is_positive(seen.energy.0) && is_positive(joules) {
            let noise = self.measurement;
            let sd = (sd * sd + noise * noise).sqrt();
            self.energy_track.add((seen.energy.0 / joules).ln(), sd);
        }
    }

    fn measured_delay_sd(&self, n: usize, exchange: &Exchange) -> f64 {
        let (own, noise) = (self.log_delay_sd(n, exchange), self.measurement);
        (own * own + noise * noise).sqrt()
    }

    /// Computation takes work over speed: linear in the logarithm.
    fn learn_speed(&mut self, n: usize, exchange: &Exchange, seen: &TerminalOutcome) {
        let likely = self.predict(n, exchange).computation;
        // If the round closed during computation, only a lower bound of its time is known.
        let is_cut = seen.unfinished
            && likely.max(seen.computation) > self.closes * self.options.closing_share;
        if !is_positive(likely.0) || !is_positive(seen.computation.0) || is_cut {
            return;
        }
        let noise = self.measurement * self.measurement;
        let innovation = -(seen.computation.0 / likely.0).ln();
        let belief = &mut self.beliefs[n].speed;
        belief.admit(innovation, 1.0, noise, self.options.surprise);
        let gain = belief.variance / (belief.variance + noise);
        belief.mean += gain * innovation;
        belief.variance *= 1.0 - gain;
    }

    /// A delay is computation plus bits over a rate that falls with the noise; each correction by
    /// the same measurement linearises anew. The whole delay is used, not its difference from the
    /// computation: the difference is imprecise where computation dominates and the errors differ.
    fn learn_noise(&mut self, n: usize, exchange: &Exchange, seen: &TerminalOutcome) {
        let mut before = self.beliefs[n].noise;
        let (likely, slope, doubt) = self.log_delay(n, exchange, before.mean);
        if !is_positive(seen.delay.0) || !likely.is_finite() || !is_positive(slope) {
            return;
        }
        // The round closed first. The delay is longer than that, which is no information if it was
        // expected.
        if seen.unfinished && likely >= seen.delay.0.ln() {
            return;
        }
        let noise = self.measurement * self.measurement + doubt;
        before.admit(seen.delay.0.ln() - likely, slope, noise, self.options.surprise);
        let Belief { mut mean, mut variance } = before;
        for _ in 0..self.options.corrections {
            let (likely, slope, doubt) = self.log_delay(n, exchange, mean);
            let noise = self.measurement * self.measurement + doubt;
            let gain = before.variance * slope / (slope * slope * before.variance + noise);
            let innovation = seen.delay.0.ln() - likely - slope * (before.mean - mean);
            mean = before.mean + gain * innovation;
            variance = (1.0 - gain * slope) * before.variance;
        }
        self.beliefs[n].noise = Belief { mean, variance };
    }

    /// For a value of the noise factor: the logarithm of the delay, its derivative with respect to
    /// that factor, and the variance from the uncertainty of the speed.
    fn log_delay(&self, n: usize, exchange: &Exchange, log_factor: f64) -> (f64, f64, f64) {
        let computation = self.predict(n, exchange).computation.0;
        let (log_air, slope) = self.log_air(n, exchange, log_factor);
        let delay = computation + log_air.exp();
        let computing = computation / delay;
        let doubt = computing * computing * self.beliefs[n].speed.variance;
        (delay.ln(), slope * log_air.exp() / delay, doubt)
    }

    /// Logarithm of the time on the air for a value of the noise factor, and its derivative.
    fn log_air(&self, n: usize, exchange: &Exchange, log_factor: f64) -> (f64, f64) {
        const STEP: f64 = 1e-3;
        let at = |log_factor: f64| {
            let noise_w_per_hz = self.nominal[n].noise_w_per_hz * log_factor.exp();
            let hardware = Hardware { noise_w_per_hz, ..self.nominal[n] };
            let cost = cost::cost(&exchange.job, &hardware, &exchange.link, exchange.grant);
            (cost.sending + cost.receiving).0.ln()
        };
        let slope = (at(log_factor + STEP) - at(log_factor - STEP)) / (2.0 * STEP);
        (at(log_factor), slope)
    }

    /// Energy until the round closes, and the standard deviation of its logarithm.
    fn energy(&self, n: usize, exchange: &Exchange) -> (f64, f64) {
        let cost = self.predict(n, exchange);
        let spent = self.spent(n, exchange, &cost);
        let joules = (spent.energy_compute + spent.energy_radio).0;
        if !is_positive(joules) {
            return (joules, 0.0);
        }
        let (compute, radio) = (spent.energy_compute.0 / joules, spent.energy_radio.0 / joules);
        let belief = &self.beliefs[n];
        let own = compute * compute * belief.compute.variance
            + 2.0 * compute * radio * belief.shared
            + radio * radio * (belief.radio.variance + self.air_variance(n, exchange));
        (joules, own.max(0.0).sqrt())
    }

    /// Part of a cost that is spent until the round closes.
    #[inline]
    pub fn spent(&self, n: usize, exchange: &Exchange, cost: &Cost) -> Cost {
        let mut spent = cost.until(self.closes, exchange.grant.power);
        if cost.delay() > self.closes {
            // `until` computes the radio's part again, with its nominal energy.
            spent.energy_radio = spent.energy_radio * self.radio_factor[n];
        }
        spent
    }

    /// Variance of the logarithm of the time on the air from the noise factor.
    fn air_variance(&self, n: usize, exchange: &Exchange) -> f64 {
        let belief = &self.beliefs[n].noise;
        let (_, slope) = self.log_air(n, exchange, belief.mean);
        if slope.is_finite() { slope * slope * belief.variance } else { 0.0 }
    }

    /// One measurement corrects two factors, each in proportion to its part of the energy.
    fn learn_energy(&mut self, n: usize, exchange: &Exchange, seen: &TerminalOutcome) {
        let cost = self.predict(n, exchange);
        let spent = self.spent(n, exchange, &cost);
        let joules = (spent.energy_compute + spent.energy_radio).0;
        if !is_positive(joules) || !is_positive(seen.energy.0) {
            return;
        }
        let (c, r) = (spent.energy_compute.0 / joules, spent.energy_radio.0 / joules);
        let noise = self.measurement * self.measurement + r * r * self.air_variance(n, exchange);
        let innovation = (seen.energy.0 / joules).ln();
        let one = &mut self.beliefs[n];
        let apart = noise + r * r * one.radio.variance;
        one.compute.admit(innovation, c, apart, self.options.surprise);
        let with_compute = c * one.compute.variance + r * one.shared;
        let with_radio = c * one.shared + r * one.radio.variance;
        let variance = c * with_compute + r * with_radio + noise;
        one.compute.mean += with_compute / variance * innovation;
        one.radio.mean += with_radio / variance * innovation;
        one.compute.variance -= with_compute * with_compute / variance;
        one.radio.variance -= with_radio * with_radio / variance;
        one.shared -= with_compute * with_radio / variance;
    }
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Numbers kept of a terminal.
const KEPT: usize = 9;
/// No number that is kept has a larger magnitude.
const MOST: f64 = 1e12;

impl Persist for NetworkTwin {
    fn save(&self, snapshot: &mut Snapshot) {
        let numbers = self.beliefs.iter().flat_map(|one| one.to_array());
        snapshot.put_f64("twin/network/beliefs", numbers.collect());
        let seen = self.beliefs.iter().map(|one| one.n_seen).collect();
        snapshot.put_u64("twin/network/seen", seen);
        let tracks = [self.delay_track.to_array(), self.energy_track.to_array()].concat();
        snapshot.put_f64("twin/network/tracks", tracks);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let n_terminals = self.beliefs.len();
        const BELIEFS: &str = "twin/network/beliefs";
        let numbers = snapshot.bounded_f64(BELIEFS, KEPT * n_terminals, MOST)?;
        let seen = snapshot.u64_up_to("twin/network/seen", n_terminals, MOST as u64)?;
        let tracks = snapshot.bounded_f64("twin/network/tracks", 8, MOST)?;
        let variances = numbers.as_chunks::<KEPT>().0.iter().flat_map(|v| [v[1], v[3], v[5], v[7]]);
        if let Some(variance) = variances.into_iter().find(|variance| *variance < 0.0) {
            return Err(SnapshotError::value(BELIEFS, variance, "no negative variance"));
        }
        for (n, v) in numbers.as_chunks::<KEPT>().0.iter().enumerate() {
            self.beliefs[n] = Calibration::from_slice(v, seen[n]);
            self.refresh(n);
        }
        self.delay_track = Track::from_slice(&tracks[..4]);
        self.energy_track = Track::from_slice(&tracks[4..]);
        Ok(())
    }
}
