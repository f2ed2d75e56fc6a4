use std::path::{Path, PathBuf};

use super::*;
use crate::experiment::{Branch, Ended, PlanSpec, RunSpec, Time, run_single};
use crate::record::{Event, RunFolder, kept_round};
use crate::round::TerminalId;
use crate::run::Observer;

const SHORT: [&str; 4] = [
    "rounds=6",
    "tasks.episode_steps=10",
    "evaluation.final_episodes=1",
    "methods.tilp.iterations=2",
];

struct NoTime;

impl Time for NoTime {
    fn seconds(&self) -> f64 {
        0.0
    }

    fn epoch_seconds(&self) -> f64 {
        0.0
    }
}

/// Stops after a round.
struct Until(u64, u64);

impl Observer for Until {
    fn completed(&mut self, round: u64) {
        self.1 = round;
    }

    fn asked_to_stop(&self) -> bool {
        self.1 >= self.0
    }
}

fn scenario(more: &[&str]) -> Scenario {
    let all: Vec<String> = SHORT.iter().chain(more).map(|&one| one.to_owned()).collect();
    Scenario::load("tiny", &all).unwrap()
}

fn spec(scenario: &Scenario) -> RunSpec {
    RunSpec {
        scenario: scenario.clone(),
        method: method("tilp").unwrap(),
        seed: 2,
        replicate: 0,
        checkpoint_every: u64::MAX,
        planner_states: 2,
        about: serde_json::Value::Null,
    }
}

/// A folder of one test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilp-what-if-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn run(&self, name: &str, scenario: &Scenario, rounds: u64) -> PathBuf {
        let path = self.0.join(name);
        let folder = RunFolder::create(&path).unwrap();
        let mut until = Until(rounds, 0);
        run_single(&spec(scenario), folder, false, None, &NoTime, &mut until).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn history(path: &Path) -> History {
    RunFolder::open(path).unwrap().read_history().unwrap()
}

fn recorded(path: &Path, scenario: &Scenario) -> RecordedPlanner {
    RecordedPlanner::new(scenario.clone(), 2, history(path)).unwrap()
}

fn after(record: &RecordedPlanner, round: u64) -> PlannerState {
    record.advance(&record.start().unwrap(), round, &|| true).unwrap()
}

/// The rationale of a round: what the record has of the plan.
fn rationale(path: &Path, round: u64) -> crate::record::event::RationaleLine {
    let bytes = std::fs::read(path.join("events.jsonl")).unwrap();
    let lines = std::str::from_utf8(&bytes).unwrap().lines();
    let mut found = lines.filter_map(|line| match Event::from_line(line).unwrap() {
        Event::Decided(decided) if decided.id.0 == round => decided.rationale,
        _ => None,
    });
    found.next().unwrap()
}

fn assert_is(prospect: &Prospect, recorded: &crate::record::event::RationaleLine) {
    let found = &prospect.predicted;
    for (name, found, recorded) in [
        ("latency", found.latency_s, recorded.latency_s),
        ("duration", found.duration_s, recorded.duration_s),
        ("energy", found.energy_j, recorded.energy_j),
        ("decrease", found.loss_decrease, recorded.loss_decrease),
        ("before", found.success_before, recorded.success_before),
        ("after", found.success_after, recorded.success_after),
        ("violation", found.violation, recorded.violation),
        ("task", found.reward_task, recorded.reward_task),
        ("communication", found.reward_communication, recorded.reward_communication),
        ("penalty", found.reward_penalty, recorded.reward_penalty),
    ] {
        assert_eq!(found, recorded.value(), "{name}");
    }
    let planned = recorded.planned_return.map(|value| value.value());
    assert_eq!(found.planned_return, planned);
    let sure: Vec<f64> = recorded.terminals.sure_delay_s.iter().map(|one| one.value()).collect();
    let found: Vec<f64> = prospect.terminals.iter().map(|one| one.sure_delay_s).collect();
    assert_eq!(found, sure);
}

#[test]
fn without_a_change_every_round_is_planned_as_recorded_from_the_start_or_a_checkpoint() {
    for more in [&[][..], &["limits.budget.joules=40.0"]] {
        let scenario = scenario(more);
        let scratch = Scratch::new("same");
        let path = scratch.run("run", &scenario, 6);
        let record = recorded(&path, &scenario);
        for round in [1, 4, 6] {
            let state = after(&record, round - 1);
            assert_eq!((state.done, state.differing), (round - 1, 0));
            let found = record.prospects(&state, &Change::default(), 3).unwrap();
            assert_eq!(found.plan, found.changed);
            assert_eq!(found.round, round);
            assert_is(&found.plan, &rationale(&path, round));
        }
        // From the checkpoint of the run as it was after three rounds.
        let stopped = scratch.run("stopped", &scenario, 3);
        let folder = RunFolder::open(&stopped).unwrap();
        let kept = folder.read_planner(&spec(&scenario).identity()).unwrap();
        let from_kept = record.advance(&record.at(kept), 4, &|| true).unwrap();
        let found = |state| record.prospects(state, &Change::default(), 3).unwrap();
        assert_eq!(found(&from_kept), found(&after(&record, 4)));
    }
}

#[test]
fn a_run_keeps_the_states_that_a_repetition_comes_to_at_equal_distances() {
    let scenario = scenario(&[]);
    let scratch = Scratch::new("kept");
    let path = scratch.run("run", &scenario, 6);
    let files = std::fs::read_dir(path.join("checkpoint")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut rounds: Vec<u64> = names.filter_map(|name| kept_round(&name)).collect();
    rounds.sort_unstable();
    assert_eq!(rounds, [2, 4]);
    let record = recorded(&path, &scenario);
    for round in rounds {
        let name = path.join(format!("checkpoint/planner-{round}.safetensors.gz"));
        let kept = Checkpoint::from_kept_bytes(&std::fs::read(&name).unwrap(), &name).unwrap();
        kept.check(&spec(&scenario).identity(), &name).unwrap();
        let found = |state| record.prospects(state, &Change::default(), 3).unwrap();
        assert_eq!(found(&record.at(kept)), found(&after(&record, round)));
    }
}

#[test]
fn the_plan_is_that_of_tilp_plan_on_the_same_state() {
    let scenario = scenario(&[]);
    let scratch = Scratch::new("plan");
    let path = scratch.run("run", &scenario, 6);
    let stopped = scratch.run("stopped", &scenario, 3);
    let folder = RunFolder::open(&stopped).unwrap();
    let learned = folder.read_planner(&spec(&scenario).identity()).unwrap();
    let plan = PlanSpec { scenario: scenario.clone(), seed: 2, learned: Some(learned) };
    let observation = plan.example(None, &|_, _| ()).unwrap();
    let report = plan.plan(observation.as_bytes(), None).unwrap();
    let record = recorded(&path, &scenario);
    let found = record.prospects(&after(&record, 3), &Change::default(), 1).unwrap();
    assert_eq!(found.plan.predicted, report.predicted);
    for (found, row) in found.plan.terminals.iter().zip(&report.terminals) {
        assert_eq!((found.scheduled, found.cut), (row.scheduled, row.cut));
        assert_eq!(found.bandwidth_hz, row.bandwidth_hz);
        assert_eq!([found.delay_s, found.energy_j], [row.delay_s, row.energy_j]);
    }
    let found: Vec<f64> = found.plan.runner_ups.iter().map(|one| one.score).collect();
    let expected: Vec<f64> = report.runner_ups.iter().map(|one| one.score).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_changed_limit_is_planned_as_the_branch_plans_it() {
    let scenario = scenario(&[]);
    let scratch = Scratch::new("branch");
    let path = scratch.run("run", &scenario, 6);
    let overrides = vec!["limits.deadline_s=0.6".to_owned(), "limits.bandwidth_hz=6e5".to_owned()];
    let record = recorded(&path, &scenario);
    let change = Change { overrides: overrides.clone(), ..Change::default() };
    let found = record.prospects(&after(&record, 3), &change, 4).unwrap();
    let child = RunSpec { scenario: scenario.varied(&overrides).unwrap(), ..spec(&scenario) };
    let out = scratch.0.join("child");
    let branch = Branch { parent: spec(&scenario), folder: path, round: 3, child, overrides };
    let ended = branch.run(&out, None, &NoTime, &mut ()).unwrap();
    assert!(matches!(ended, Ended::Finished(_)));
    // The rounds before the branch cannot be repeated with its limits: their end is kept.
    let kept = out.join("checkpoint/planner-3.safetensors.gz");
    let kept = Checkpoint::from_kept_bytes(&std::fs::read(&kept).unwrap(), &kept).unwrap();
    let own = recorded(&out, &branch.child.scenario);
    let from_kept = own.prospects(&own.at(kept), &Change::default(), 4).unwrap();
    assert_is(&from_kept.plan, &rationale(&out, 4));
    assert_is(&found.changed, &rationale(&out, 4));
    assert_ne!(found.plan.predicted, found.changed.predicted);
    assert_eq!(found.changed.ahead.iter().map(|one| one.round).collect::<Vec<_>>(), [4, 5, 6, 7]);
}

#[test]
fn edits_and_removals_change_what_they_name() {
    let scenario = scenario(&[]);
    let scratch = Scratch::new("edits");
    let path = scratch.run("run", &scenario, 6);
    let record = recorded(&path, &scenario);
    let state = after(&record, 2);
    let own = record.prospects(&state, &Change::default(), 2).unwrap().plan;
    let first = own.terminals.iter().find(|one| one.scheduled).unwrap();
    let edit = Edit {
        terminal: TerminalId(first.terminal),
        scheduled: None,
        cut: None,
        power_w: None,
        compression: None,
    };
    let changed = |edit: Edit| {
        let change = Change { edits: vec![edit], ..Change::default() };
        record.prospects(&state, &change, 2).unwrap().changed
    };
    let same = changed(edit);
    assert_eq!(same.terminals, own.terminals);
    assert_eq!(same.predicted.planned_return, None, "no search has scored it");
    let of = |found: &Prospect| {
        *found.terminals.iter().find(|one| one.terminal == first.terminal).unwrap()
    };
    let slow = of(&changed(Edit { power_w: Some(first.power_w / 4.0), ..edit }));
    assert!(slow.delay_s > first.delay_s && slow.power_w == first.power_w / 4.0);
    let sparse = of(&changed(Edit { compression: Some(0.0), ..edit }));
    assert!(sparse.delay_s > first.delay_s || first.compression == 0.0);
    let out = changed(Edit { scheduled: Some(false), ..edit });
    assert!(!of(&out).scheduled && of(&out).energy_j <= first.energy_j);
    let change = Change { removed: vec![TerminalId(first.terminal)], ..Change::default() };
    let gone = record.prospects(&state, &change, 2).unwrap().changed;
    assert_eq!(gone.terminals.len(), own.terminals.len() - 1);
    assert!(gone.terminals.iter().all(|one| one.terminal != first.terminal));
}

#[test]
fn what_is_impossible_is_refused_in_one_line() {
    let scenario = scenario(&[]);
    let scratch = Scratch::new("refused");
    let path = scratch.run("run", &scenario, 3);
    let record = recorded(&path, &scenario);
    let state = after(&record, 1);
    let refused = |change: Change, part: &str| {
        let line = record.prospects(&state, &change, 1).unwrap_err().to_string();
        assert!(line.contains(part) && !line.contains('\n'), "{line}");
    };
    let set = |text: &str| Change { overrides: vec![text.into()], ..Change::default() };
    refused(set("cell.n_terminals=3"), "limits. or methods.tilp.");
    refused(set("model.base=\"/etc/passwd\""), "limits. or methods.tilp.");
    refused(set("limits.deadline_s=-1"), "limits.deadline_s");
    refused(set("limits.other=1"), "limits.other");
    refused(set("limits.budget.joules=5"), "limits.budget");
    let ids: Vec<TerminalId> = (0..6).map(TerminalId).collect();
    refused(Change { removed: ids, ..Change::default() }, "one that is left");
    refused(Change { removed: vec![TerminalId(77)], ..Change::default() }, "terminal = 77");
    let none = Edit {
        terminal: TerminalId(0),
        scheduled: None,
        cut: None,
        power_w: None,
        compression: None,
    };
    for (edit, part) in [
        (Edit { terminal: TerminalId(9), ..none }, "terminal = 9"),
        (Edit { cut: Some(99), ..none }, "cut = 99"),
        (Edit { power_w: Some(f64::NAN), ..none }, "power_w"),
        (Edit { power_w: Some(1e9), ..none }, "power_w"),
        (Edit { compression: Some(1.5), ..none }, "compression"),
    ] {
        refused(Change { edits: vec![edit], ..Change::default() }, part);
    }
    let last = after(&record, 9);
    assert_eq!(last.done, 3);
    let line = record.prospects(&last, &Change::default(), 1).unwrap_err().to_string();
    assert!(line.contains("round 4 is not there"), "{line}");
    // Rows of another run.
    let other = Scenario::load("quick", &[]).unwrap();
    assert!(RecordedPlanner::new(other, 2, history(&path)).is_err());
    assert!(RecordedPlanner::new(scenario, 2, History::default()).is_err());
}
