use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

mod aims;
mod equal_budget;
mod made_up;
mod own_methods;
mod pages;
mod plans;
mod tables;

use super::*;
use crate::experiment::Time;
use crate::record::{ProcessEvent, RunFolder, fingerprint};
use crate::round::{Allocator, DecideError, Decision, Observation};
use crate::run::Observer;
use crate::scenario::{Method, Registry};
use crate::snapshot::Persist;

/// A folder that is deleted with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilp-study-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Counts events and asks to stop after a number of rounds.
struct Silent {
    rounds_left: AtomicUsize,
    seen: Mutex<Vec<(usize, String)>>,
}

impl Silent {
    fn stopping_after(rounds: usize) -> Self {
        Self { rounds_left: AtomicUsize::new(rounds), seen: Mutex::default() }
    }

    fn saw(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|(_, seen)| seen == what).count()
    }
}

/// The observer of one job, which passes events on.
struct Listener<'a>(&'a Silent, usize);

impl Observer for Listener<'_> {
    fn process(&mut self, event: &ProcessEvent<'_>) {
        let what = match event {
            ProcessEvent::Kept => "kept",
            ProcessEvent::Started { .. } | ProcessEvent::Resumed { .. } => "begun",
            ProcessEvent::Finished { .. } => "done",
            ProcessEvent::Failed { .. } => "failed",
            ProcessEvent::Interrupted { .. } => "stopped",
            ProcessEvent::Locked => "locked",
            _ => return,
        };
        self.0.seen.lock().unwrap().push((self.1, what.to_owned()));
    }

    fn completed(&mut self, _round: u64) {
        let one_less = |left: usize| Some(left.saturating_sub(1));
        let _ = self.0.rounds_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    }

    fn asked_to_stop(&self) -> bool {
        self.0.rounds_left.load(Ordering::SeqCst) == 0
    }
}

/// Executes the jobs of a shard, observed by `watch`.
fn execute(
    executor: &Executor<'_>,
    study: &StudyFolder,
    shard: Shard,
    watch: &Silent,
) -> Result<Tally, StudyError> {
    let observers = |job| Box::new(Listener(watch, job)) as Box<dyn Observer + '_>;
    executor.execute(study, shard, &Frozen, &observers)
}

/// A clock that always reads zero.
struct Frozen;

impl Time for Frozen {
    fn seconds(&self) -> f64 {
        0.0
    }

    fn epoch_seconds(&self) -> f64 {
        0.0
    }
}

fn scenario() -> Scenario {
    let set = ["rounds=4", "evaluation.measure_every=2"].map(str::to_owned);
    Scenario::load("tiny", &set).unwrap()
}

fn question(methods: &[&str], seeds: &[u64]) -> Question {
    let methods = methods.iter().map(|&method| method.to_owned()).collect();
    Question { scenario: scenario(), methods, seeds: seeds.to_vec(), replicates: 1 }
}

fn executor() -> Executor<'static> {
    Executor {
        workers: 2,
        threads: 1,
        cache: None,
        about: serde_json::Value::Null,
        checkpoint_every: 1,
    }
}

fn study(path: &Path) -> StudyFolder {
    let plan = comparison(&question(&["random", "asfl+guard"], &[0, 1]));
    StudyFolder::create(path, plan, &scenario()).unwrap()
}

fn tables(folders: &[StudyFolder]) -> [String; 3] {
    let studies = by_study(folders);
    assert_eq!(studies.len(), 1);
    let table = Table::new(&folders[0].plan, &merged(&studies[0]).unwrap());
    [table.runs_csv(), table.table_csv(), table.markdown()]
}

#[test]
fn shards_share_the_jobs_out_and_put_together_are_the_whole_byte_for_byte() {
    let scratch = Scratch::new("shards");
    let whole = study(&scratch.path("whole"));
    let host = Silent::stopping_after(usize::MAX);
    let tally = execute(&executor(), &whole, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally, Tally { done: 4, failed: 0, left: 0 });
    let parts: Vec<StudyFolder> = (0..3)
        .map(|index| {
            let part = study(&scratch.path(&format!("part-{index}")));
            execute(&executor(), &part, Shard { index, count: 3 }, &host).unwrap();
            part
        })
        .collect();
    assert_eq!(tables(&parts), tables(std::slice::from_ref(&whole)));
    for (index, job) in whole.jobs.iter().enumerate() {
        let print = |study: &StudyFolder| fingerprint(&study.path().join(job.folder())).unwrap();
        assert_eq!(print(&whole), print(&parts[index % 3]), "{:?}", job.subject);
    }
}

#[test]
fn what_is_stopped_goes_on_and_what_is_done_is_kept() {
    let scratch = Scratch::new("stopped");
    let whole = study(&scratch.path("whole"));
    execute(&executor(), &whole, Shard::WHOLE, &Silent::stopping_after(usize::MAX)).unwrap();
    let path = scratch.path("stopped");
    let mut stops = 0;
    loop {
        let stopped = study(&path);
        let host = Silent::stopping_after(3);
        let tally = execute(&executor(), &stopped, Shard::WHOLE, &host).unwrap();
        if tally.left == 0 {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 2, "{stops}");
    let again = Silent::stopping_after(usize::MAX);
    execute(&executor(), &study(&path), Shard::WHOLE, &again).unwrap();
    assert_eq!((again.saw("kept"), again.saw("begun")), (4, 0));
    assert_eq!(tables(&[study(&path)]), tables(&[whole]));
}

/// A method that panics in its second round, or decides on values that are not numbers.
struct Broken {
    panics: bool,
    n_cuts: usize,
}

impl Persist for Broken {}

impl Allocator for Broken {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        assert!(!self.panics || seen.round < 2, "the method has lost its way\nand says why");
        let mut decision = Decision::idle(seen.terminals.len(), self.n_cuts);
        if !self.panics {
            decision.terminals[1].bandwidth.0 = f64::NAN;
        }
        Ok(decision)
    }
}

fn broken_method(name: &'static str, panics: bool) -> Method {
    Method::own(name, "fails", move |inputs| {
        Box::new(Broken { panics, n_cuts: inputs.problem.cost.limits.cuts[0] })
    })
}

#[test]
fn a_method_that_fails_is_shown_with_its_reason_and_the_rest_is_intact() {
    let scratch = Scratch::new("broken");
    let healthy = study(&scratch.path("healthy"));
    let host = Silent::stopping_after(usize::MAX);
    execute(&executor(), &healthy, Shard::WHOLE, &host).unwrap();
    // The same study with broken methods in two of its four runs.
    let mut broken = study(&scratch.path("broken"));
    broken.jobs[0].method = broken_method("panics", true);
    broken.jobs[1].method = broken_method("not-a-number", false);
    let tally = execute(&executor(), &broken, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally, Tally { done: 2, failed: 2, left: 0 });
    let results = merged(&[&broken]).unwrap();
    let reason = |index: usize| match &results[index].outcome {
        Outcome::Failed(reason) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(0), "panicked: the method has lost its way");
    assert!(reason(1).contains("NaN"), "{}", reason(1));
    let table = Table::new(&broken.plan, &results);
    assert!(table.markdown().contains("failed: random at tiny, seed 0: panicked: the method"));
    assert!(table.runs_csv().contains(",failed,"));
    let of = |results: &[RunResult]| results[2..].to_vec();
    assert_eq!(of(&results), of(&merged(&[&healthy]).unwrap()));
    // A copy from the report still has the failures.
    let again = handed_on(&broken, &scratch.path("again"));
    assert_eq!(tables(&[again]), tables(std::slice::from_ref(&broken)));
    // With the right methods the failed runs are tried again. They fail: their folders hold runs of
    // other methods.
    let mended = study(&scratch.path("broken"));
    let tally = execute(&executor(), &mended, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally.failed, 2, "a run is not mixed from two methods");
}

#[test]
fn a_folder_holds_one_study() {
    let scratch = Scratch::new("one");
    let first = study(&scratch.path("a"));
    let other = comparison(&question(&["random"], &[0]));
    let changed = scenario().varied(&["limits.deadline_s=4.0".to_owned()]).unwrap();
    let said = StudyFolder::create(first.path(), other.clone(), &changed).unwrap_err().to_string();
    let expected = "holds another study (limits.deadline_s is 5.0, not 4.0), expected an empty";
    assert!(said.contains(expected), "{said}");
    let asked = ablations(&question(&[], &[0]));
    let said = StudyFolder::create(first.path(), asked, &scenario()).unwrap_err().to_string();
    assert!(said.contains("(question is `compare`, not `ablate`)"), "{said}");
    let second = StudyFolder::create(&scratch.path("b"), other, &scenario()).unwrap();
    assert_eq!(by_study(&[first, second]).len(), 2, "what is asked differs");
    fs::create_dir_all(scratch.path("c")).unwrap();
    fs::write(scratch.path("c").join("mine"), "").unwrap();
    let plan = comparison(&question(&["random"], &[0]));
    let found = StudyFolder::create(&scratch.path("c"), plan, &scenario());
    assert!(matches!(found, Err(StudyError::Other { .. })));
    assert!(matches!(StudyFolder::open(&scratch.path("d")), Err(StudyError::Absent { .. })));
}

#[test]
fn a_study_grows_by_methods_and_seeds_and_keeps_its_runs() {
    let scratch = Scratch::new("grown");
    let path = scratch.path("s");
    let small = comparison(&question(&["random"], &[0]));
    let small = StudyFolder::create(&path, small, &scenario()).unwrap();
    let host = Silent::stopping_after(usize::MAX);
    execute(&executor(), &small, Shard::WHOLE, &host).unwrap();
    let more = comparison(&question(&["asfl+guard", "random"], &[1]));
    let grown = StudyFolder::create(&path, more, &scenario()).unwrap();
    assert_eq!(grown.plan.points[0].methods, ["random", "asfl+guard"]);
    assert_eq!((&grown.plan.seeds[..], grown.jobs.len()), (&[0, 1][..], 4));
    let tally = execute(&executor(), &grown, Shard::WHOLE, &host).unwrap();
    assert_eq!((tally.done, host.saw("kept"), host.saw("done")), (4, 1, 1 + 3));
    // The result is that of the whole plan executed at once.
    let whole = study(&scratch.path("whole"));
    execute(&executor(), &whole, Shard::WHOLE, &host).unwrap();
    assert_eq!(tables(&[grown]), tables(&[whole]));
    // A smaller plan leaves the study unchanged.
    let same = StudyFolder::create(&path, small.plan.clone(), &scenario()).unwrap();
    assert_eq!(same.jobs.len(), 4);
}

#[test]
fn somebodys_own_scenario_is_not_written_over_and_the_same_one_is_no_obstacle() {
    let scratch = Scratch::new("own");
    let file = scratch.path("a").join("scenario.toml");
    fs::create_dir_all(scratch.path("a")).unwrap();
    fs::write(&file, "extends = \"tiny\"\n").unwrap();
    let plan = || comparison(&question(&["random"], &[0]));
    let found = StudyFolder::create(&scratch.path("a"), plan(), &scenario());
    assert!(matches!(found, Err(StudyError::Other { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "extends = \"tiny\"\n");
    // The state that another shard may have reached when this one begins.
    fs::write(&file, scenario().to_toml()).unwrap();
    StudyFolder::create(&scratch.path("a"), plan(), &scenario()).unwrap();
}

#[test]
fn shards_that_begin_at_the_same_moment_all_begin_the_same_study() {
    let scratch = Scratch::new("together");
    for time in 0..20 {
        let path = scratch.path(&time.to_string());
        std::thread::scope(|scope| {
            let shards: Vec<_> = (0..4).map(|_| scope.spawn(|| study(&path))).collect();
            shards.into_iter().for_each(|shard| assert_eq!(shard.join().unwrap().jobs.len(), 4));
        });
    }
}

#[test]
fn a_copy_of_a_finished_run_does_not_count_for_another_seed() {
    let scratch = Scratch::new("copied");
    let whole = study(&scratch.path("whole"));
    execute(&executor(), &whole, Shard { index: 0, count: 4 }, &Silent::stopping_after(99))
        .unwrap();
    let same = |job: &&Job| job.subject == whole.jobs[0].subject && job.seed == 1.into();
    let other = whole.jobs.iter().find(same).unwrap();
    let [from, to] = [&whole.jobs[0], other].map(|job| whole.path().join(job.folder()));
    fs::rename(from, to).unwrap();
    let said = whole.outcome(other).unwrap_err().to_string();
    assert!(said.contains("manifest.json") && said.contains("seed is 0, expected 1"), "{said}");
}

#[test]
fn a_run_that_another_program_goes_on_with_names_both() {
    let scratch = Scratch::new("resumed");
    let whole = study(&scratch.path("whole"));
    let by = |commit: &str| Executor {
        workers: 1,
        about: serde_json::json!({ "commit": commit }),
        ..executor()
    };
    let only = Shard { index: 0, count: 4 };
    execute(&by("one"), &whole, only, &Silent::stopping_after(2)).unwrap();
    execute(&by("two"), &whole, only, &Silent::stopping_after(99)).unwrap();
    let Outcome::Done(finished) = whole.outcome(&whole.jobs[0]).unwrap() else { panic!() };
    assert_eq!(finished.commit.as_deref(), Some("one, then two"));
}

/// The same study in another folder without its run folders: the files of a report.
fn handed_on(study: &StudyFolder, path: &Path) -> StudyFolder {
    let report = Report::of(std::slice::from_ref(study)).unwrap();
    crate::record::write_beside(path, &report.files(None)).unwrap();
    StudyFolder::open(path).unwrap()
}

#[test]
fn a_report_is_a_study_that_can_be_shown_and_gone_on_with_without_the_run_folders() {
    let scratch = Scratch::new("handed-on");
    let whole = study(&scratch.path("whole"));
    let half = study(&scratch.path("half"));
    let host = Silent::stopping_after(usize::MAX);
    execute(&executor(), &whole, Shard::WHOLE, &host).unwrap();
    execute(&executor(), &half, Shard { index: 0, count: 2 }, &host).unwrap();
    let again = handed_on(&half, &scratch.path("again"));
    assert_eq!(tables(std::slice::from_ref(&again)), tables(std::slice::from_ref(&half)));
    // Executed again, the two known runs are kept and the two missing ones are run.
    let host = Silent::stopping_after(usize::MAX);
    let gone_on = study(again.path());
    execute(&executor(), &gone_on, Shard::WHOLE, &host).unwrap();
    assert_eq!((host.saw("kept"), host.saw("done")), (2, 2));
    let files = |study: StudyFolder| Report::of(&[study]).unwrap().files(None);
    assert_eq!(files(gone_on), files(whole), "page, pictures and all");
}

#[test]
fn what_is_kept_of_a_run_must_be_of_this_study() {
    let scratch = Scratch::new("kept");
    let whole = study(&scratch.path("whole"));
    let host = Silent::stopping_after(usize::MAX);
    execute(&executor(), &whole, Shard { index: 0, count: 4 }, &host).unwrap();
    let path = scratch.path("again");
    let file = path.join("runs.jsonl");
    handed_on(&whole, &path);
    let good = fs::read_to_string(&file).unwrap();
    let refusal = |text: &str| {
        fs::write(&file, text).unwrap();
        StudyFolder::open(&path).expect_err("a line that does not belong").to_string()
    };
    let hash = whole.jobs[0].scenario.hash();
    assert!(
        refusal(&good.replace(&hash, "0"))
            .contains("line 1: tiny, random, seed 0: scenario_hash is 0")
    );
    assert!(
        refusal(&good.replace("\"seed\":0", "\"seed\":7")).contains("seed 7: no run of this study")
    );
    assert!(
        refusal(&(good.clone() + &good)).contains("line 2: tiny, random, seed 0: a second time")
    );
    assert!(refusal("{").contains("line 1: EOF"));
    // Values that no run can have.
    let changed = |change: fn(&mut serde_json::Value)| {
        let mut line: serde_json::Value = serde_json::from_str(&good).unwrap();
        change(&mut line);
        refusal(&line.to_string())
    };
    let found = changed(|line| line["summary"]["success_final"] = 1.5.into());
    let expected = "line 1: tiny, random, seed 0: success_final is 1.5, expected 0 to 1";
    assert!(found.ends_with(expected) && found.lines().count() == 1, "{found}");
    let found = changed(|line| line["curve"][0]["energy_j"] = (-1.0).into());
    assert!(found.contains("curve.energy_j is -1, expected 0 or more"), "{found}");
    let found = changed(|line| line["summary"]["success_by_task"]["push"] = (-0.1).into());
    assert!(found.contains("success_by_task is -0.1, expected 0 to 1"), "{found}");
}

#[test]
fn replicates_of_a_seed_differ_in_minibatches_alone_and_lie_in_folders_of_their_own() {
    let scratch = Scratch::new("replicates");
    let asked = Question { replicates: 2, ..question(&["greedy"], &[3]) };
    let folder = StudyFolder::create(&scratch.path("a"), comparison(&asked), &scenario()).unwrap();
    let host = Silent::stopping_after(usize::MAX);
    let tally = execute(&executor(), &folder, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally.done, 2);
    let open = |name: &str| RunFolder::open(&folder.path().join("runs/tiny").join(name)).unwrap();
    let runs = [open("greedy-3"), open("greedy-3-r1")];
    let manifests = runs.each_ref().map(|run| run.read_manifest().unwrap());
    assert!(manifests[0].get("replicate").is_none());
    assert_eq!(manifests[1]["replicate"], 1);
    let [first, second] = runs.each_ref().map(|run| run.read_terminals().unwrap());
    // `greedy` uses channels only, so all physical values are the same.
    let physical = |rows: &[crate::record::TerminalRow]| -> Vec<String> {
        let text = |row: &crate::record::TerminalRow| {
            let (radio, compute) = (row.energy_radio_j, row.energy_compute_j);
            format!("{} {} {} {radio} {compute}", row.fading_power, row.cut, row.delay_s)
        };
        rows.iter().map(text).collect()
    };
    assert_eq!(physical(&first), physical(&second));
    let losses = |rows: &[crate::record::TerminalRow]| -> Vec<f64> {
        rows.iter().map(|row| row.loss).filter(|loss| !loss.is_nan()).collect()
    };
    let [one, other] = [losses(&first), losses(&second)];
    assert_eq!(one.len(), other.len());
    assert!(one.iter().zip(&other).all(|(a, b)| a != b), "every minibatch is another one");
    // A copy without run folders still has both.
    let again = handed_on(&folder, &scratch.path("again"));
    assert_eq!(tables(&[again]), tables(std::slice::from_ref(&folder)));
    // A replicate under the name of another is refused.
    let moved = folder.path().join("runs/tiny/greedy-3");
    fs::remove_dir_all(&moved).unwrap();
    fs::rename(folder.path().join("runs/tiny/greedy-3-r1"), &moved).unwrap();
    let error = folder.outcome(&folder.jobs[0]).unwrap_err().to_string();
    assert!(error.contains("replicate is 1, expected null"), "{error}");
}
