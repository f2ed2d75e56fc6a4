use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::experiment::Time;
use crate::record::fingerprint;
use crate::round::{Allocator, Decision, Observation};
use crate::scenario::Method;
use crate::snapshot::Persist;

/// A folder that is gone with its owner.
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

/// Counts what happens and asks to stop after so many rounds.
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

impl Host for Silent {
    fn happened(&self, job: usize, event: Event<'_>) {
        let what = match event {
            Event::Round(..) => {
                let one_less = |left: usize| Some(left.saturating_sub(1));
                let _ = self.rounds_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
                return;
            }
            Event::Kept => "kept",
            Event::Begun => "begun",
            Event::Done(_) => "done",
            Event::Failed(_) => "failed",
            Event::Stopped => "stopped",
        };
        self.seen.lock().unwrap().push((job, what.to_owned()));
    }

    fn asked_to_stop(&self) -> bool {
        self.rounds_left.load(Ordering::SeqCst) == 0
    }

    fn time(&self) -> &dyn Time {
        &Frozen
    }
}

/// Time that stands still.
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
    Question { scenario: scenario(), methods, seeds: seeds.to_vec() }
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
    let tally = executor().execute(&whole, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally, Tally { done: 4, failed: 0, left: 0 });
    let parts: Vec<StudyFolder> = (0..3)
        .map(|index| {
            let part = study(&scratch.path(&format!("part-{index}")));
            executor().execute(&part, Shard { index, count: 3 }, &host).unwrap();
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
    executor().execute(&whole, Shard::WHOLE, &Silent::stopping_after(usize::MAX)).unwrap();
    let path = scratch.path("stopped");
    let mut stops = 0;
    loop {
        let stopped = study(&path);
        let host = Silent::stopping_after(3);
        let tally = executor().execute(&stopped, Shard::WHOLE, &host).unwrap();
        if tally.left == 0 {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 2, "{stops}");
    let again = Silent::stopping_after(usize::MAX);
    executor().execute(&study(&path), Shard::WHOLE, &again).unwrap();
    assert_eq!((again.saw("kept"), again.saw("begun")), (4, 0));
    assert_eq!(tables(&[study(&path)]), tables(&[whole]));
}

/// A method that panics in its second round, or decides on numbers that are none.
struct Broken {
    panics: bool,
    n_cuts: usize,
}

impl Persist for Broken {}

impl Allocator for Broken {
    fn decide(&mut self, seen: &Observation) -> Decision {
        assert!(!self.panics || seen.round < 2, "the method has lost its way\nand says why");
        let mut decision = Decision::idle(seen.terminals.len(), self.n_cuts);
        if !self.panics {
            decision.terminals[1].bandwidth.0 = f64::NAN;
        }
        decision
    }
}

const PANICS: Method = Method::own("panics", "fails", |kit| {
    Box::new(Broken { panics: true, n_cuts: kit.problem.limits.cuts[0] })
});
const NOT_A_NUMBER: Method = Method::own("not-a-number", "fails", |kit| {
    Box::new(Broken { panics: false, n_cuts: kit.problem.limits.cuts[0] })
});

#[test]
fn a_method_that_fails_is_shown_with_its_reason_and_the_rest_is_intact() {
    let scratch = Scratch::new("broken");
    let healthy = study(&scratch.path("healthy"));
    let host = Silent::stopping_after(usize::MAX);
    executor().execute(&healthy, Shard::WHOLE, &host).unwrap();
    // The same study with two of its four runs by methods that are broken.
    let mut broken = study(&scratch.path("broken"));
    broken.jobs[0].method = PANICS;
    broken.jobs[1].method = NOT_A_NUMBER;
    let tally = executor().execute(&broken, Shard::WHOLE, &host).unwrap();
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
    // Mended, it is tried again, and nothing is left of the failure.
    let mended = study(&scratch.path("broken"));
    let tally = executor().execute(&mended, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally.failed, 2, "a run is not mixed from two methods");
}

#[test]
fn a_folder_holds_one_study() {
    let scratch = Scratch::new("one");
    let first = study(&scratch.path("a"));
    let other = comparison(&question(&["random"], &[0]));
    let found = StudyFolder::create(first.path(), other.clone(), &scenario());
    assert!(matches!(found, Err(StudyError::Other { .. })));
    let second = StudyFolder::create(&scratch.path("b"), other, &scenario()).unwrap();
    assert_eq!(by_study(&[first, second]).len(), 2, "what is asked differs");
    fs::create_dir_all(scratch.path("c")).unwrap();
    fs::write(scratch.path("c").join("mine"), "").unwrap();
    let plan = comparison(&question(&["random"], &[0]));
    let found = StudyFolder::create(&scratch.path("c"), plan, &scenario());
    assert!(matches!(found, Err(StudyError::Other { .. })));
    assert!(matches!(StudyFolder::open(&scratch.path("d")), Err(StudyError::Absent { .. })));
}

/// The same study in another folder, without its run folders: what a report of it leaves.
fn handed_on(study: &StudyFolder, path: &Path) -> StudyFolder {
    let report = Report::of(std::slice::from_ref(study)).unwrap();
    crate::record::write_beside(path, &report.files()).unwrap();
    StudyFolder::open(path).unwrap()
}

#[test]
fn a_report_is_a_study_that_can_be_shown_and_gone_on_with_without_the_run_folders() {
    let scratch = Scratch::new("handed-on");
    let whole = study(&scratch.path("whole"));
    let half = study(&scratch.path("half"));
    let host = Silent::stopping_after(usize::MAX);
    executor().execute(&whole, Shard::WHOLE, &host).unwrap();
    executor().execute(&half, Shard { index: 0, count: 2 }, &host).unwrap();
    let again = handed_on(&half, &scratch.path("again"));
    assert_eq!(tables(std::slice::from_ref(&again)), tables(std::slice::from_ref(&half)));
    // Asked for once more, the two that are known are kept and the two that are missing are run.
    let host = Silent::stopping_after(usize::MAX);
    let gone_on = study(again.path());
    executor().execute(&gone_on, Shard::WHOLE, &host).unwrap();
    assert_eq!((host.saw("kept"), host.saw("done")), (2, 2));
    let files = |study: StudyFolder| Report::of(&[study]).unwrap().files();
    assert_eq!(files(gone_on), files(whole), "page, pictures and all");
}

#[test]
fn what_is_kept_of_a_run_must_be_of_this_study() {
    let scratch = Scratch::new("kept");
    let whole = study(&scratch.path("whole"));
    let host = Silent::stopping_after(usize::MAX);
    executor().execute(&whole, Shard { index: 0, count: 4 }, &host).unwrap();
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
}

#[test]
fn a_shard_is_one_of_so_many() {
    assert_eq!(Shard::parse("1/3"), Ok(Shard { index: 1, count: 3 }));
    for wrong in ["3/3", "1", "1/0", "a/b", "-1/2", ""] {
        assert!(Shard::parse(wrong).unwrap_err().contains("expected i/N"), "{wrong}");
    }
}

#[test]
fn every_question_of_the_paper_is_a_plan_that_can_be_run() {
    let scratch = Scratch::new("questions");
    let base = Scenario::load("default", &[]).unwrap();
    let asked = || Question { scenario: base.clone(), methods: Vec::new(), seeds: vec![0, 1] };
    let mut plans = vec![("compare", comparison(&asked())), ("ablate", ablations(&asked()))];
    for (name, axis) in Axis::ALL {
        plans.push((name, sweep(axis, &[], &asked()).unwrap()));
    }
    for (name, plan) in plans {
        let n_rows = plan.subjects().len();
        let folder = StudyFolder::create(&scratch.path(name), plan, &base).unwrap();
        assert_eq!(folder.jobs.len(), 2 * n_rows, "{name}");
        let mut places: Vec<PathBuf> = folder.jobs.iter().map(Job::folder).collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), folder.jobs.len(), "{name}: one folder each");
        assert_eq!(folder.plan.reference.method, "tilp");
    }
}

#[test]
fn a_sweep_changes_what_it_says() {
    let base = Scenario::load("default", &[]).unwrap();
    let asked = || Question { scenario: base.clone(), methods: Vec::new(), seeds: vec![0] };
    let values = |axis, values: &[&str]| {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        sweep(axis, &values, &asked())
    };
    let plan = values(Axis::Retention, &["0.1", "1"]).unwrap();
    assert_eq!(plan.points[0].methods[2], "asfl+guard+q0.9");
    assert_eq!(plan.points[1].methods[2], "asfl+guard");
    assert_eq!(plan.points[0].methods[0], "tilp");
    let plan = values(Axis::Snr, &["-5"]).unwrap();
    assert_eq!(plan.points[0].overrides, ["cell.noise_figure_db=14"]);
    let plan = values(Axis::Split, &["deep", "any"]).unwrap();
    assert_eq!(plan.points[0].overrides, ["methods.cut=6", "model.cuts=[6]"]);
    assert_eq!(plan.points[1].overrides, ["model.cuts=[2, 3, 4, 5, 6]"]);
    let plan = values(Axis::Hidden, &["3"]).unwrap();
    assert_eq!(plan.points[0].overrides[1], "hardware.hidden_share=2");
    let plan = values(Axis::Late, &["wait"]).unwrap();
    assert_eq!(plan.points[0].overrides, ["limits.late=\"wait\""]);
    assert!(values(Axis::Payload, &["odd"]).unwrap_err().contains("expected encoded or nominal"));
    assert!(values(Axis::Split, &["odd"]).unwrap_err().contains("expected shallow"));
    assert!(values(Axis::Mass, &["heavy"]).unwrap_err().contains("expected a number"));
    assert!(Axis::named("colour").unwrap_err().contains("expected one of retention"));
}

/// A made-up result.
fn result(method: &str, seed: u64, outcome: Outcome) -> RunResult {
    let subject = Subject { point: "tiny".into(), method: method.into() };
    let episodes = Episodes { all: 400, far: 136 };
    RunResult { subject, seed, outcome, folder: PathBuf::new(), episodes }
}

#[test]
fn a_threshold_that_was_not_always_reached_has_no_mean() {
    let run = |success: f64, round: Option<u64>| {
        let mut summary =
            crate::record::Summary { success_final: Some(success), ..Default::default() };
        summary.rta.at_60 = round;
        Outcome::Done(Box::new(Finished { summary, ..Default::default() }))
    };
    let plan = comparison(&question(&["tilp", "random"], &[0, 1]));
    let results = [
        result("tilp", 0, run(0.8, Some(10))),
        result("tilp", 1, run(0.6, Some(20))),
        result("random", 0, run(0.5, Some(5))),
        result("random", 1, run(0.4, None)),
    ];
    let table = Table::new(&plan, &results);
    let metric = |name: &str| METRICS.iter().find(|metric| metric.name == name).unwrap();
    assert_eq!(table.rows[0].estimate(metric("rta_0.6")).unwrap().mean, 15.0);
    assert_eq!(table.rows[1].estimate(metric("rta_0.6")), None);
    let pairing = table.pairing(1, metric("success_final")).unwrap();
    assert!((pairing.difference.mean - 0.25).abs() < 1e-12);
    assert_eq!((pairing.pairs, pairing.p), (2, Some(0.5)));
    assert_eq!(table.pairing(0, metric("success_final")), None);
    assert_eq!(table.pairing(1, metric("rta_0.6")).unwrap().pairs, 1);
}

/// A study of three methods on two seeds with made-up results; one run failed.
fn made_up() -> (Plan, Table) {
    let plan = comparison(&question(&["tilp", "random", "asfl+guard"], &[0, 1]));
    let run = |success: f64| {
        let summary = crate::record::Summary { success_final: Some(success), ..Default::default() };
        Outcome::Done(Box::new(Finished { summary, ..Default::default() }))
    };
    let results = [
        result("tilp", 0, run(0.8)),
        result("tilp", 1, run(0.7)),
        result("random", 0, run(0.6)),
        result("random", 1, run(0.6)),
        result("asfl+guard", 0, run(0.5)),
        result("asfl+guard", 1, Outcome::Failed("a < b & \"c\"".into())),
    ];
    let table = Table::new(&plan, &results);
    (plan, table)
}

/// A report of made-up results.
fn made_up_report() -> Report {
    let (plan, table) = made_up();
    let scenario = "name = \"tiny\"".to_owned();
    let name = "compare-tiny".to_owned();
    let figures = Vec::new();
    let set_apart = vec!["rounds = 7".to_owned()];
    let finished = String::new();
    Report { sections: vec![Section { name, plan, table, figures, scenario, set_apart, finished }] }
}

fn file(report: &Report, wanted: &str) -> String {
    let files = report.files();
    let found = files.iter().find(|(name, _)| name == wanted);
    String::from_utf8(found.unwrap_or_else(|| panic!("{wanted}")).1.clone()).unwrap()
}

#[test]
fn the_page_has_ours_the_papers_and_what_failed_and_needs_nothing_from_elsewhere() {
    let page = file(&made_up_report(), "report.html");
    // Wilson's interval of 600 of 800 episodes.
    assert!(page.contains("tilp ends at 75.0 [71.9, 77.9] % success over 2 seeds"), "{page}");
    assert!(page.contains("<td class=\"best\">75.0<br><small>[71.9, 77.9]</small></td>"));
    // A row with a failed run is not ranked.
    assert!(page.contains("<td>50.0<br>"));
    assert!(page.contains("seed 1: a &lt; b &amp; &quot;c&quot;"));
    assert!(page.contains("<td class=\"paper\">87.5</td>"));
    assert!(page.contains("name = &quot;tiny&quot;"));
    assert!(page.contains("built-in <code>tiny</code>: <code>rounds = 7</code>."));
    for outside in ["http:", "https:", "src=", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_row_that_is_level_with_tilp_is_named_in_the_first_paragraph() {
    let mut report = made_up_report();
    assert!(!file(&report, "report.html").contains("No less success"));
    for (_, run) in &mut report.sections[0].table.rows[1].runs {
        run.summary.success_final = Some(0.75);
    }
    assert!(file(&report, "report.html").contains("No less success in the mean: random."));
}

#[test]
fn an_aim_is_met_where_the_whole_interval_says_so() {
    let mut report = made_up_report();
    let aims = |report: &Report| file(report, "aims.md");
    let line = |text: &str, title: &str| {
        text.lines().find(|line| line.contains(title)).unwrap_or_default().to_owned()
    };
    // One pair: 80 against 50 points; `random` is the strongest with 60, over two seeds.
    let success = line(&aims(&report), "final success");
    assert!(success.contains("asfl+guard | +30.0 points | met by the one pair"), "{success}");
    assert!(success.contains("random | +15.0 [+10.4, +19.6] points | met"), "{success}");
    // Half of the seconds is ahead of `random`, but no tenth of the best of the eight; one of the two
    // seeds on the other side cannot be told apart.
    let rows = &mut report.sections[0].table.rows;
    rows[0].runs.iter_mut().for_each(|(_, run)| run.summary.tta_s.at_60 = Some(10.0));
    rows[2].runs[0].1.summary.tta_s.at_60 = Some(20.0);
    rows[1].runs[0].1.summary.tta_s.at_60 = Some(20.0);
    rows[1].runs[1].1.summary.tta_s.at_60 = Some(9.0);
    let seconds = line(&aims(&report), "seconds to 60 %");
    assert!(seconds.contains("asfl+guard | 0.50 times | missed by the one pair"), "{seconds}");
    assert!(seconds.contains("] times | met in the mean, not told apart"), "{seconds}");
    // A threshold that the rival never reaches has nothing to be compared with.
    assert!(line(&aims(&report), "seconds to 80 %").contains("none"));
    let violations = line(&aims(&report), "without violation");
    assert!(violations.contains("100.00 %"), "{violations}");
}

#[test]
fn groups_of_methods_stand_for_the_rows_of_the_main_table() {
    let plan = comparison(&question(&["main"], &[0]));
    assert_eq!(plan, comparison(&question(&[], &[0])));
    assert_eq!(plan.points[0].methods.len(), 13);
    let plan = comparison(&question(&["tilp", "published", "compressed", "asfl"], &[0]));
    assert_eq!(plan.points[0].methods.len(), 1 + 8 + 16);
    assert!(plan.jobs(&scenario()).is_ok());
}

#[test]
fn latex_is_escaped_and_marks_the_best() {
    let (plan, table) = made_up();
    let tex = report::latex::table(&plan, &table);
    assert!(tex.contains("Success, \\%") && tex.contains("\\textbf{75.0 [71.9, 77.9]}"), "{tex}");
    assert_eq!(tex.matches("\\\\\n").count(), 4);
}

#[test]
fn a_report_of_a_finished_study_draws_its_runs() {
    let scratch = Scratch::new("report");
    let whole = study(&scratch.path("whole"));
    executor().execute(&whole, Shard::WHOLE, &Silent::stopping_after(usize::MAX)).unwrap();
    let report = Report::of(std::slice::from_ref(&whole)).unwrap();
    let files = report.files();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "report.html",
        "scenario.toml",
        "runs.jsonl",
        "study.json",
        "runs.csv",
        "table.csv",
        "table.md",
        "table.tex",
        "convergence.svg",
        "convergence.png",
        "profiles.svg",
        "profiles.png",
    ];
    assert_eq!(names, expected);
    let svg = file(&report, "convergence.svg");
    // Two methods, in the legend and in each of six panels.
    assert_eq!(svg.matches("<path class=\"line").count(), 2 * (1 + 6), "{svg}");
    assert!(file(&report, "table.csv").contains(",wilson,"));
    let again = Report::of(&[whole]).unwrap();
    assert_eq!(files, again.files());
}

#[test]
fn several_studies_share_a_page_and_have_a_folder_each() {
    let scratch = Scratch::new("several");
    let first = study(&scratch.path("first"));
    let asked = question(&["random"], &[0]);
    let second =
        StudyFolder::create(&scratch.path("second"), comparison(&asked), &scenario()).unwrap();
    let plan = sweep(Axis::Late, &[], &asked).unwrap();
    let third = StudyFolder::create(&scratch.path("third"), plan, &scenario()).unwrap();
    let report = Report::of(&[first, second, third]).unwrap();
    let page = file(&report, "report.html");
    for name in ["compare-tiny", "compare-tiny-2", "sweep-late-tiny"] {
        assert!(page.contains(&format!("<section id=\"{name}\">")), "{name}");
        assert!(page.contains(&format!("href=\"#{name}\"")), "{name}");
        assert!(page.contains(&format!("href=\"{name}/runs.csv\"")), "{name}");
        assert!(file(&report, &format!("{name}/runs.csv")).contains(",missing,"), "{name}");
    }
    assert!(file(&report, "sweep-late-tiny/sweep.svg").contains(">wait</text>"));
}
