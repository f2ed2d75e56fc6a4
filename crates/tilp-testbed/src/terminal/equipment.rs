//! The equipment of a terminal: its clock, and the adapters that its operator has named.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tilp_core::round::TerminalId;

use crate::adapters::{Actuator, ActuatorAsk, Adapter, AdapterError, Kind, Meter, MeterAsk};
use crate::adapters::{Probe, ProbeAsk, Program};
use crate::contract::v1::Grant;
use crate::description::{Adapters, program_of};

/// What a meter says: joules since some fixed moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Of computation.
    pub compute_j: f64,
    /// Of the radio; zero if the meter does not see it.
    pub radio_j: f64,
}

/// The equipment of a terminal.
pub trait Equipment: Send {
    /// Time since some fixed moment.
    fn now(&mut self) -> Duration;
    /// Sets the band and the power of a round.
    fn apply(&mut self, _round: u64, _grant: &Grant) {}
    /// The meter after so many operations more; none without a meter.
    fn read(&mut self, _operations: f64) -> Option<Reading> {
        None
    }
}

/// Equipment behind adapters. One that fails is named in the log, and the terminal goes on without
/// its answer.
pub struct Attached {
    start: Instant,
    probed: Probed,
    actuator: Option<Adapter<Actuator>>,
    meter: Option<Adapter<Meter>>,
}

fn start<K: Kind>(
    program: Option<&Program>,
    id: TerminalId,
) -> Result<Option<Adapter<K>>, AdapterError> {
    let program = program.map(|program| program_of(program, id.0));
    let adapter = program.map(Adapter::<K>::start).transpose()?;
    if let Some(hello) = adapter.as_ref().and_then(Adapter::hello) {
        tracing::info!(adapter = K::NAME, name = hello.name, modelled = hello.modelled, "started");
    }
    Ok(adapter)
}

fn answer<K: Kind>(adapter: Option<&mut Adapter<K>>, ask: &K::Ask) -> Option<K::Answer> {
    let failed = |error: &AdapterError| tracing::warn!(%error, "an adapter has no answer");
    adapter?.ask(ask).inspect_err(failed).ok()
}

impl Attached {
    /// Starts the adapters of a terminal.
    pub fn start(adapters: &Adapters, id: TerminalId) -> Result<Self, AdapterError> {
        let actuator = start(adapters.actuator.as_ref(), id)?;
        let meter = start(adapters.meter.as_ref(), id)?;
        let probed = Probed::start(adapters, id)?;
        Ok(Self { start: Instant::now(), probed, actuator, meter })
    }

    /// What the probe measures.
    pub fn probed(&self) -> Probed {
        self.probed.clone()
    }
}

impl Equipment for Attached {
    fn now(&mut self) -> Duration {
        self.start.elapsed()
    }

    fn apply(&mut self, round: u64, grant: &Grant) {
        self.probed.0.round.store(round + 1, Ordering::Relaxed);
        let Grant { bandwidth_hz, power_w } = *grant;
        let ask = ActuatorAsk { round, bandwidth_hz, power_w };
        if let Some(set) = answer(self.actuator.as_mut(), &ask)
            && (set.bandwidth_hz, set.power_w) != (bandwidth_hz, power_w)
        {
            tracing::warn!(?ask, ?set, "the equipment has set other values");
        }
    }

    fn read(&mut self, operations: f64) -> Option<Reading> {
        let ask = MeterAsk { operations, ..MeterAsk::default() };
        let read = answer(self.meter.as_mut(), &ask)?;
        Some(Reading { compute_j: read.compute_j, radio_j: read.radio_j.unwrap_or(0.0) })
    }
}

/// How often a probe is asked.
pub const PROBE_EVERY: Duration = Duration::from_millis(500);

/// The gain that a probe measured last. It travels with heartbeats.
#[derive(Clone, Debug, Default)]
pub struct Probed(Arc<Gains>);

#[derive(Debug, Default)]
struct Gains {
    /// The round that begins next.
    round: AtomicU64,
    gain_db: Mutex<Option<f64>>,
}

impl Probed {
    /// Starts the probe of a terminal, if there is one, and asks it again and again.
    fn start(adapters: &Adapters, id: TerminalId) -> Result<Self, AdapterError> {
        let probed = Self::default();
        let Some(mut probe) = start::<Probe>(adapters.probe.as_ref(), id)? else {
            return Ok(probed);
        };
        probed.0.round.store(1, Ordering::Relaxed);
        let gains = Arc::downgrade(&probed.0);
        std::thread::spawn(move || {
            while let Some(gains) = gains.upgrade() {
                let ask = ProbeAsk { round: gains.round.load(Ordering::Relaxed) };
                let found = answer(Some(&mut probe), &ask);
                *gains.gain_db.lock().unwrap_or_else(PoisonError::into_inner) =
                    found.map(|found| found.gain_db);
                drop(gains);
                std::thread::sleep(PROBE_EVERY);
            }
        });
        Ok(probed)
    }

    /// The gain in dB; none without a probe that has an answer.
    pub fn gain_db(&self) -> Option<f64> {
        *self.0.gain_db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
