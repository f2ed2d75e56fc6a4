//! Episodes in the simulated cell.

use std::sync::{Arc, Mutex, PoisonError};

use tilp::round::{
    Allocator, Cell, DecideError, Decision, Evaluator, Limits, Observation, TerminalId,
};
use tilp::run::{RoundRecord, round};
use tilp::scenario::{Method, Parts, Scenario, World, assemble_world};
use tilp::snapshot::{Persist, Snapshot};
use tilp::twin::{Nominal, Twin, TwinOptions, TwinState};
use tilp::units::Seconds;
use tilp::world::{Examiner, Learner};
use tilp_cli::host;

use super::simulator::{Simulator, Step};
use super::view;
use crate::errors::Failure;

/// State shared by an environment and its method.
#[derive(Default)]
struct Shared {
    /// The decision of the present round.
    decision: Option<Decision>,
    /// Initial state of a twin of the cell.
    twin: Option<(Nominal, TwinOptions)>,
}

/// A method that returns the decision it was given.
struct Told(Arc<Mutex<Shared>>);

impl Persist for Told {}

impl Allocator for Told {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).decision.take();
        let reason = || "no action was given".to_owned();
        told.ok_or_else(|| DecideError::Failed { round: seen.round, reason: reason() })
    }
}

/// The simulated cell of a scenario, drawn by the seed of the episode. Episodes of the same seed
/// start from a copy.
pub(crate) struct Executed {
    scenario: Scenario,
    running: Option<Running>,
}

/// A cell that was put together.
struct Running {
    seed: u64,
    shared: Arc<Mutex<Shared>>,
    world: Box<dyn Rounds>,
    start: Snapshot,
    twin: Twin,
    seen: Observation,
    state: TwinState,
}

/// The rounds of a cell with any kind of learner.
trait Rounds {
    fn observe(&mut self) -> Result<Observation, Failure>;
    /// Executes a round; none if the budget does not allow it.
    fn execute(&mut self) -> Result<Option<RoundRecord>, Failure>;
    fn save(&self) -> Snapshot;
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure>;
}

impl<L: Learner, X: Examiner<L>, V: Evaluator> Rounds for Parts<L, X, V> {
    fn observe(&mut self) -> Result<Observation, Failure> {
        Ok(self.station.observe(&self.cell.sense()?))
    }

    fn execute(&mut self) -> Result<Option<RoundRecord>, Failure> {
        let Self { cell, station, evaluator, laboratory, .. } = self;
        Ok(round(cell, station, evaluator, laboratory, &mut ())?)
    }

    fn save(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.cell.save(&mut snapshot);
        self.station.save(&mut snapshot);
        snapshot
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.cell.restore(snapshot).map_err(Failure::input)?;
        self.station.restore(snapshot).map_err(Failure::input)
    }
}

impl Running {
    fn new(scenario: &Scenario, seed: u64) -> Result<Self, Failure> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let inner = shared.clone();
        let method = Method::own("environment", "what an agent does", move |inputs| {
            let mut shared = inner.lock().unwrap_or_else(PoisonError::into_inner);
            shared.twin = Some((inputs.nominal, inputs.tilp.twin));
            Box::new(Told(inner.clone()))
        });
        let cache = host::cache();
        let made = assemble_world(scenario, method, seed.into(), None, cache.as_ref(), &|_, _| {})?;
        let mut world: Box<dyn Rounds> = match made {
            World::Robots(parts) => parts,
            World::Profile(parts) => parts,
        };
        let start = world.save();
        let (seen, twin) = (world.observe()?, twin_of(&shared)?);
        let state = TwinState::default();
        let mut running = Self { seed, shared, world, start, twin, seen, state };
        running.attend();
        Ok(running)
    }

    fn attend(&mut self) {
        self.twin.attend(&self.seen);
        self.state = self.twin.state(&self.seen);
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.world.restore(&self.start)?;
        self.twin = twin_of(&self.shared)?;
        self.seen = self.world.observe()?;
        self.attend();
        Ok(())
    }
}

/// A twin without calibration, from the inputs of the method.
fn twin_of(shared: &Mutex<Shared>) -> Result<Twin, Failure> {
    let known = shared.lock().unwrap_or_else(PoisonError::into_inner).twin.clone();
    let missing = || Failure::Run("the method of the environment was not built".to_owned());
    let (nominal, options) = known.ok_or_else(missing)?;
    Ok(Twin::new(nominal, options))
}

impl Executed {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, running: None }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("callers reset first")
    }
}

/// Reward and costs of a round, after the twin was calibrated with it.
fn learn(running: &mut Running, record: &RoundRecord) -> Step {
    let RoundRecord { seen, order, outcome, books, .. } = record;
    let before = running.state.clone();
    running.twin.calibrate_from(&before, seen, &order.plan, outcome);
    let after = running.twin.state(seen);
    let states = [&before, &after];
    let twin = &running.twin;
    let reward = twin.realised_reward(seen, &order.plan, outcome, states, Seconds(0.0));
    let decision = order.plan.decision();
    let delays = decision.scheduled().map(|n| outcome.terminals[n].delay.0);
    let report = books.as_ref().and_then(|books| books.report.as_deref());
    let counts = report.map(|all| {
        let pair = |n: (u64, u64), one: &tilp::round::TerminalSuccess| {
            (n.0 + one.count.successes, n.1 + one.count.episodes)
        };
        all.iter().fold((0, 0), pair)
    });
    Step {
        reward,
        latency_s: delays.fold(0.0, f64::max),
        duration_s: outcome.duration.0,
        energy_j: outcome.terminals.iter().map(|one| one.energy.0).sum(),
        violation: books.as_ref().map_or(0.0, |books| books.violation.relative),
        n_scheduled: decision.scheduled().count() as f64,
        n_late: outcome.terminals.iter().filter(|one| one.late || one.unfit).count() as f64,
        success: after.success,
        success_gain: after.success - before.success,
        report_success: counts.map_or(f64::NAN, |(good, all)| good as f64 / all.max(1) as f64),
        ended: false,
    }
}

impl Simulator for Executed {
    fn reset(&mut self, seed: u64) -> Result<(), Failure> {
        match &mut self.running {
            Some(running) if running.seed == seed => running.restart(),
            running => {
                *running = None;
                *running = Some(Running::new(&self.scenario, seed)?);
                Ok(())
            }
        }
    }

    fn step(&mut self, decision: Decision) -> Result<Step, Failure> {
        let last = self.scenario.rounds();
        let running = self.running.as_mut().expect("callers reset first");
        running.shared.lock().unwrap_or_else(PoisonError::into_inner).decision = Some(decision);
        let Some(record) = running.world.execute()? else {
            return Ok(Step { report_success: f64::NAN, ended: true, ..Step::default() });
        };
        let step = learn(running, &record);
        let ended = record.order.round >= last;
        if !ended {
            running.seen = running.world.observe()?;
            running.attend();
        }
        Ok(Step { ended, ..step })
    }

    fn ids(&self) -> Vec<TerminalId> {
        self.running().seen.ids()
    }

    fn limits(&self) -> &Limits {
        &self.running().twin.nominal().cost.limits
    }

    fn look(&self, out: &mut [f32]) {
        let running = self.running();
        view::look(&running.twin, &running.state, out);
    }
}

/// Observation of the first round of a scenario.
pub(crate) fn first_observation(scenario: &Scenario, seed: u64) -> Result<Observation, Failure> {
    Ok(Running::new(scenario, seed)?.seen)
}
