//! The learning side of a cell whose terminals are processes, all or some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tilp::round::{CellError, RoundOrder, TerminalId, TerminalSuccess};
use tilp::snapshot::{Persist, Snapshot, SnapshotError};
use tilp::split::data::Dataset;
use tilp::split::engine::{Copies, Engine, Outcome, Participant, RoundError};
use tilp::split::link::LocalLink;
use tilp::split::policy::Policy;
use tilp::split::rates::Rates;
use tilp::split::rule::Rule;
use tilp::split::terminal_state::TerminalState;
use tilp::tasks::EpisodeSet;
use tilp::units::{Gain, Hertz, Seconds, from_db};
use tilp::world::{
    DataSets, Examiner, Halves, Learner, Live, Measured, Robots, Schedule, model_message,
};

use super::link::{HybridLink, RemoteLink, WallRound};
use crate::contract::v1::Grant;
use crate::hold::hold;
use crate::proxy::{Command, ask_proxy};
use crate::station::{Hub, Party, SeatState};

/// The halves of a policy, with front halves in other processes.
pub struct RemoteHalves {
    engine: Engine<Policy, HybridLink>,
    data: DataSets,
    hub: Arc<Hub>,
    real: BTreeSet<TerminalId>,
    /// As many threads as terminals: each waits for one of them.
    threads: rayon::ThreadPool,
    wall: Option<Arc<Mutex<WallRound>>>,
    /// Control socket of the proxy that the links pass through.
    proxy: Option<PathBuf>,
    round: u64,
}

impl RemoteHalves {
    /// Puts processes in the place of these terminals.
    pub fn new(
        halves: Halves,
        hub: Arc<Hub>,
        real: BTreeSet<TerminalId>,
        has_wall_clock: bool,
    ) -> Result<Self, rayon::ThreadPoolBuildError> {
        let Halves { engine, data } = halves;
        let wall = has_wall_clock.then(|| Arc::new(Mutex::new(WallRound::default())));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads((real.len() + cores).min(1024))
            .thread_name(|n| format!("round-{n}"))
            .build()?;
        let engine = engine.map_links(|id, local| match real.contains(&id) {
            true => HybridLink::Remote(RemoteLink::new(hub.clone(), id, wall.clone())),
            false => HybridLink::Local(Box::new(local)),
        });
        Ok(Self { engine, data, hub, real, threads, wall, proxy: None, round: 0 })
    }

    /// The same with links that pass through a proxy, which follows rounds and grants.
    pub fn behind(self, proxy: Option<PathBuf>) -> Self {
        Self { proxy, ..self }
    }

    /// Tells the proxy the round, and what each process is granted in it. One that does not answer
    /// is named in the log: the links keep the rates that they have.
    fn instruct(&self, round: u64, grants: &BTreeMap<TerminalId, Grant>) {
        let Some(socket) = &self.proxy else { return };
        let of = |id: &TerminalId| {
            let terminal = id.0;
            match grants.get(id).filter(|grant| grant.bandwidth_hz > 0.0) {
                Some(&Grant { bandwidth_hz, power_w }) => {
                    Command::Grant { version: 1, terminal, bandwidth_hz, power_w }
                }
                None => Command::Release { version: 1, terminal },
            }
        };
        let commands = std::iter::once(Command::Round { version: 1, round });
        for command in commands.chain(self.real.iter().map(of)) {
            if let Err(error) = ask_proxy(socket, &command) {
                tracing::warn!(round, %error, "the proxy was not told");
                return;
            }
        }
    }

    /// Whether a terminal can take part: simulated ones can, processes if they have not left.
    fn is_there(&self, id: TerminalId) -> bool {
        let is_process = self.wall.is_some() && self.real.contains(&id);
        !is_process || self.hub.is_attached(Party::Terminal(id.0))
    }

    fn admit(&mut self, id: TerminalId, data: Arc<Dataset>) -> Result<(), RoundError> {
        let link = if self.real.contains(&id) {
            self.hub.rejoin(Party::Terminal(id.0));
            HybridLink::Remote(RemoteLink::new(self.hub.clone(), id, self.wall.clone()))
        } else {
            let half = self.engine.local_terminal(id, data);
            HybridLink::Local(Box::new(LocalLink::new(half)))
        };
        self.engine.attach(id, link)
    }

    /// Lets all processes leave. Under the wall clock rounds since the checkpoint are done again,
    /// but processes are ahead of it: they join anew.
    fn expel(&mut self) {
        for id in self.real.iter().copied() {
            // One that is not a member has left already.
            let _ = self.engine.leave(id);
        }
    }

    /// The data of the terminals that are there: for the experimenter.
    fn data_sets(&self) -> BTreeMap<TerminalId, Arc<Dataset>> {
        let of = |id: TerminalId| (id, self.data.at(id, self.round.max(1)).clone());
        self.engine.ids().into_iter().map(of).collect()
    }
}

impl Learner for RemoteHalves {
    fn ids(&self) -> Vec<TerminalId> {
        self.engine.ids()
    }

    fn gather(&mut self, wanted: &BTreeSet<TerminalId>, round: u64) -> Result<(), RoundError> {
        self.round = round;
        self.hub.begin_round(round);
        let wanted: BTreeSet<TerminalId> =
            wanted.iter().copied().filter(|id| self.is_there(*id)).collect();
        for id in self.engine.ids() {
            if !wanted.contains(&id) {
                self.engine.leave(id)?;
            }
        }
        let members: BTreeSet<TerminalId> = self.engine.ids().into_iter().collect();
        for id in wanted.difference(&members) {
            self.admit(*id, self.data.at(*id, round).clone())?;
        }
        let data = &self.data;
        self.engine.for_each_link(|id, link| {
            if let HybridLink::Local(link) = link
                && !Arc::ptr_eq(link.terminal().data(), data.at(id, round))
            {
                link.terminal_mut().replace_data(data.at(id, round).clone());
            }
        });
        Ok(())
    }

    fn n_samples(&self, id: TerminalId, round: u64) -> usize {
        self.data.at(id, round).len()
    }

    fn held_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::held)
    }

    fn owed_layers(&self, id: TerminalId) -> usize {
        self.engine.terminal(id).map_or(0, TerminalState::deepest_trained)
    }

    fn train(
        &mut self,
        rule: Rule,
        round: u64,
        rates: Rates,
        participants: &[Participant],
        copies: Copies,
    ) -> Result<Vec<Outcome>, RoundError> {
        self.engine.settings_mut().server_rate = rates.server;
        self.engine.settings_mut().client_rate = rates.terminal;
        let Self { engine, threads, .. } = self;
        threads.install(|| engine.train(rule, round, participants, copies))
    }

    fn aggregate(&mut self, arrived: &[TerminalId]) -> Result<(), RoundError> {
        hold(|| "aggregating".into());
        let Self { engine, threads, .. } = self;
        threads.install(|| engine.aggregate(arrived))
    }

    fn aggregate_front(&mut self, last: usize, arrived: &[TerminalId]) -> Result<(), RoundError> {
        let Self { engine, threads, .. } = self;
        threads.install(|| engine.aggregate_front(last, arrived))
    }

    fn aggregate_edges(&mut self, copies: Copies) -> Result<(), RoundError> {
        let Self { engine, threads, .. } = self;
        threads.install(|| engine.aggregate_edges(copies))
    }

    fn model(&self, round: u64) -> Result<Vec<u8>, RoundError> {
        // On real machines some terminal may always be absent; the model is that of the others.
        let mean = self.threads.install(|| match self.wall {
            Some(_) => Ok(self.engine.reachable_mean().0),
            None => self.engine.try_virtual_mean(),
        })?;
        Ok(model_message(round, &self.engine.model().deployed(&mean)))
    }

    fn probed(&self, id: TerminalId) -> Option<Gain> {
        let gain_db = self.hub.gain_db(Party::Terminal(id.0)).filter(|_| self.wall.is_some())?;
        Some(Gain(from_db(gain_db)))
    }

    fn live(&mut self) -> Option<&mut dyn Live> {
        self.wall.is_some().then_some(self as &mut dyn Live)
    }
}

impl Live for RemoteHalves {
    fn is_real(&self, id: TerminalId) -> bool {
        self.real.contains(&id)
    }

    fn open(&mut self, order: &RoundOrder, closes: Seconds, bandwidths: &[Hertz]) {
        let Some(wall) = &self.wall else { return };
        let decisions = order.plan.decision().terminals.iter();
        let grants = order.terminals.iter().zip(bandwidths.iter().zip(decisions));
        let grants = grants.map(|(id, (bandwidth, decision))| {
            (*id, Grant { bandwidth_hz: bandwidth.0, power_w: decision.power.0 })
        });
        let grants: BTreeMap<TerminalId, Grant> = grants.collect();
        self.instruct(order.round, &grants);
        let until = self.hub.now() + Duration::from_secs_f64(closes.0);
        *wall.lock().unwrap_or_else(PoisonError::into_inner) =
            WallRound { until: Some(until), grants, measured: BTreeMap::new() };
    }

    fn close(&mut self) -> Vec<(TerminalId, Measured)> {
        let Some(wall) = &self.wall else { return Vec::new() };
        let mut wall = wall.lock().unwrap_or_else(PoisonError::into_inner);
        wall.until = None;
        std::mem::take(&mut wall.measured).into_iter().collect()
    }
}

/// All seats, also of absent terminals: a terminal that left may return.
fn seats(real: &BTreeSet<TerminalId>) -> impl Iterator<Item = Party> {
    real.iter().map(|id| Party::Terminal(id.0)).chain([Party::Evaluator])
}

fn seat_name(party: Party) -> String {
    format!("testbed/seat/{}", party.number())
}

impl Persist for RemoteHalves {
    /// The server half, simulated terminals, and which request each process had last. What
    /// processes hold is in their own journals.
    fn save(&self, snapshot: &mut Snapshot) {
        hold(|| "checkpointing".into());
        self.engine.server().save(snapshot);
        self.engine.for_each_link(|_, link| {
            if let HybridLink::Local(link) = link {
                link.terminal().save(snapshot);
            }
        });
        for party in seats(&self.real) {
            if let Some(SeatState { round, step, membership, continues }) =
                self.hub.seat_state(party)
            {
                let values = vec![round, step.into(), membership, continues.into()];
                snapshot.put_u64(&seat_name(party), values);
            }
        }
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.engine.restore_server(snapshot)?;
        let mut failed = Ok(());
        self.engine.for_each_link(|_, link| {
            if let (HybridLink::Local(link), true) = (link, failed.is_ok()) {
                failed = link.terminal_mut().restore(snapshot);
            }
        });
        failed?;
        for party in seats(&self.real).filter(|party| self.hub.knows(*party)) {
            let name = seat_name(party);
            let &[round, step, membership, continues] = snapshot.u64(&name, 4)? else {
                return Err(SnapshotError::value(&name, "a list", "4 numbers"));
            };
            let step = u32::try_from(step);
            let step = step.map_err(|error| SnapshotError::value(&name, error, "a step"))?;
            let state = SeatState { round, step, membership, continues: continues == 1 };
            self.hub.restore_seat(party, state);
        }
        if self.wall.is_some() {
            self.expel();
        }
        Ok(())
    }
}

/// The experimenter measures a model of a testbed like any other. Data sets are drawn again from
/// the seed: no terminal is asked for its own.
impl Examiner<RemoteHalves> for Robots {
    fn tasks(&self) -> &'static [&'static str] {
        Examiner::<Halves>::tasks(self)
    }

    fn schedule(&self) -> &Schedule {
        Examiner::<Halves>::schedule(self)
    }

    fn success(
        &self,
        round: u64,
        set: EpisodeSet,
        first: u64,
        per_terminal: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        Examiner::<Halves>::success(self, round, set, first, per_terminal, terminals, model)
    }

    fn losses(
        &self,
        learner: &RemoteHalves,
        samples: usize,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<f64>, CellError> {
        self.losses_on(&learner.data_sets(), samples, terminals, model)
    }

    fn model_file(&self, model: &[u8]) -> Result<Option<Vec<u8>>, CellError> {
        Examiner::<Halves>::model_file(self, model)
    }
}
