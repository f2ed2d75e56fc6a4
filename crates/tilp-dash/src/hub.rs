//! All runs and studies that are shown, and the thread that looks for changes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::discover::{Found, Place, discover};
use crate::remote::Remote;
use crate::run::Run;
use crate::turns::Turns;
use crate::twin::Reported;
use crate::whatif::Repeated;

/// How often the files of runs that a page shows are read.
const TICK: Duration = Duration::from_millis(250);
/// How often folders are looked for.
const SCAN: Duration = Duration::from_secs(2);
/// A scan takes at most this share of the time.
const SCAN_SHARE: u32 = 20;

/// What the server knows.
#[derive(Debug)]
pub struct Hub {
    /// Answers that take computing.
    pub(crate) turns: Turns,
    /// Planners that were repeated from a record.
    pub(crate) repeated: Repeated,
    /// What twins say of a run.
    pub(crate) reported: Reported,
    /// Dashboards elsewhere.
    pub(crate) remotes: Vec<Remote>,
    roots: Vec<PathBuf>,
    state: Mutex<HubState>,
    changed: Condvar,
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct HubState {
    runs: BTreeMap<String, Arc<Run>>,
    studies: BTreeMap<String, Place>,
    list: Arc<str>,
    /// Rises with every change of the list.
    version: u64,
    /// Rises with every change of a run that a page shows.
    tick: u64,
}

impl Hub {
    /// Looks for runs below these folders.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self::with_remotes(roots, Vec::new())
    }

    /// The same, and shows the runs of dashboards elsewhere.
    pub fn with_remotes(roots: Vec<PathBuf>, remotes: Vec<Remote>) -> Self {
        let hub = Self {
            turns: Turns::default(),
            repeated: Repeated::default(),
            reported: Reported::default(),
            remotes,
            roots,
            state: Mutex::default(),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
        };
        hub.scan();
        hub
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run of this id.
    pub fn run(&self, id: &str) -> Option<Arc<Run>> {
        self.state().runs.get(id).cloned()
    }

    /// All runs.
    pub fn runs(&self) -> Vec<Arc<Run>> {
        self.state().runs.values().cloned().collect()
    }

    /// The study of this id.
    pub fn study(&self, id: &str) -> Option<Place> {
        self.state().studies.get(id).cloned()
    }

    /// Version and text of the list of runs and studies.
    pub fn list(&self) -> (u64, Arc<str>) {
        let state = self.state();
        (state.version, Arc::clone(&state.list))
    }

    /// Looks for runs and studies.
    pub fn scan(&self) {
        let Found { runs, studies, is_cut } = discover(&self.roots);
        let mut kept = self.state().runs.clone();
        let runs: BTreeMap<String, Arc<Run>> = runs
            .into_iter()
            .map(|place| {
                let old = kept.remove(&place.id).filter(|run| run.place == place);
                (place.id.clone(), old.unwrap_or_else(|| Arc::new(Run::new(place))))
            })
            .collect();
        let mut entries: Vec<Value> =
            runs.values().map(|run| run.about().entry(&run.place)).collect();
        let mut shown: Vec<Value> =
            studies.iter().map(|one| json!({ "id": one.id, "name": one.name() })).collect();
        let elsewhere: Vec<Value> = self.remotes.iter().map(|one| {
            let list = one.list();
            let part = |name: &str| list[name].as_array().cloned().unwrap_or_default();
            entries.extend(part("runs"));
            shown.extend(part("studies"));
            json!({ "at": one.authority(), "roots": list["roots"], "answers": list.is_object() })
        }).collect();
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        let list = json!({ "runs": entries, "studies": shown, "roots": roots, "is_cut": is_cut, "elsewhere": elsewhere });
        let list: Arc<str> = list.to_string().into();
        let mut state = self.state();
        state.runs = runs;
        state.studies = studies.into_iter().map(|place| (place.id.clone(), place)).collect();
        if state.list != list {
            state.list = list;
            state.version += 1;
            self.changed.notify_all();
        }
    }

    /// Follows everything until the hub is closed.
    pub fn follow(&self) {
        let mut next = Instant::now() + SCAN;
        while !self.is_over() {
            std::thread::sleep(TICK);
            let watched: Vec<_> = self.runs().into_iter().filter(|run| run.is_watched()).collect();
            if watched.iter().filter(|run| run.poll()).count() > 0 {
                self.state().tick += 1;
                self.changed.notify_all();
            }
            if Instant::now() >= next {
                let start = Instant::now();
                self.scan();
                next = Instant::now() + SCAN.max(start.elapsed() * SCAN_SHARE);
            }
        }
    }

    /// Asks a dashboard elsewhere for its runs until the hub is closed.
    pub fn follow_remote(&self, place: usize) {
        while let Some(remote) = self.remotes.get(place).filter(|_| !self.is_over()) {
            if remote.refresh(place) {
                self.scan();
            }
            let end = Instant::now() + SCAN;
            while Instant::now() < end && !self.is_over() {
                std::thread::sleep(TICK);
            }
        }
    }

    /// Waits for a change, at most so long.
    pub fn wait(&self, most: Duration, seen: &mut (u64, u64)) {
        let state = self.state();
        let is_old = |state: &mut HubState| (state.version, state.tick) == *seen && !self.is_over();
        let waited = self.changed.wait_timeout_while(state, most, is_old);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        *seen = (state.version, state.tick);
    }

    /// Ends the thread that follows, and all streams.
    pub fn close(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Whether it was closed.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
