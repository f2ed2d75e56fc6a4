//! Plans that are valid, and plans that are not.

use super::*;

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
    let asked = || Question {
        scenario: base.clone(),
        methods: Vec::new(),
        seeds: vec![0, 1],
        replicates: 1,
    };
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
fn a_fixed_compression_beyond_the_limit_is_refused_before_anything_is_written() {
    let scratch = Scratch::new("beyond");
    let plan = comparison(&question(&["tilp", "asfl+guard+q0.95"], &[0]));
    let said = StudyFolder::create(&scratch.path("a"), plan, &scenario()).unwrap_err().to_string();
    assert!(said.contains("q0.95") && said.contains("limits.compression"), "{said}");
    assert!(!scratch.path("a").exists());
}

#[test]
fn a_sweep_changes_what_it_says() {
    let base = Scenario::load("default", &[]).unwrap();
    let asked =
        || Question { scenario: base.clone(), methods: Vec::new(), seeds: vec![0], replicates: 1 };
    let values = |axis, values: &[&str]| {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        sweep(axis, &values, &asked())
    };
    let plan = values(Axis::Retention, &["0.1", "1"]).unwrap();
    assert_eq!(plan.points[0].methods[2], "asfl+guard+q0.9");
    assert_eq!(plan.points[1].methods[2], "asfl+guard");
    assert_eq!(plan.points[0].methods[0], "tilp");
    // In floating point 1 - 0.8 is below 0.2; the given q is still within the bound.
    let plan = values(Axis::Retention, &["0.8", "0.9", "0.7"]).unwrap();
    assert_eq!(plan.points[0].methods[2], "asfl+guard+q0.2");
    assert_eq!(plan.points[2].overrides[1], "limits.compression=0.30000000000000004");
    plan.jobs(&base, &Registry::builtin()).unwrap();
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

#[test]
fn groups_of_methods_stand_for_the_rows_of_the_main_table() {
    let plan = comparison(&question(&["main"], &[0]));
    assert_eq!(plan, comparison(&question(&[], &[0])));
    assert_eq!(plan.points[0].methods.len(), 14);
    let plan = comparison(&question(&["tilp", "published", "compressed", "asfl"], &[0]));
    assert_eq!(plan.points[0].methods.len(), 1 + 8 + 16);
    assert!(plan.jobs(&scenario(), &Registry::builtin()).is_ok());
}

#[test]
fn a_plan_that_cannot_be_is_refused_with_field_value_and_expectation() {
    type Change = fn(&mut serde_json::Value);
    let cases: [(Change, &str); 13] = [
        (|plan| plan["question"] = "../../x".into(), "question is `../../x`, expected compare"),
        (|plan| plan["question"] = "sweep colour".into(), "question is `sweep colour`: axis is"),
        (|plan| plan["points"] = [(); 0].map(|()| "").as_slice().into(), "points are none"),
        (|plan| plan["points"][0]["methods"] = [""; 0].as_slice().into(), "at `tiny` are none"),
        (|plan| plan["points"][0]["methods"][1] = "random".into(), "have `random` twice"),
        (|plan| plan["points"][0]["methods"][1] = "magic".into(), "magic"),
        (|plan| plan["points"][0]["methods"][1] = "asfl+guard+q0.90".into(), "asfl+guard+q0.9`"),
        (|plan| plan["points"][0]["label"] = "other".into(), "reference is `random` at `tiny`"),
        (|plan| plan["seeds"] = [0; 0].as_slice().into(), "seeds are none"),
        (|plan| plan["seeds"] = [1, 1].as_slice().into(), "seeds have 1 twice"),
        (|plan| plan["scenario"] = "../x".into(), "scenario is `../x`, expected `tiny`"),
        (|plan| plan["reference"]["method"] = "tilp".into(), "reference is `tilp` at `tiny`"),
        (
            |plan| {
                let mut other = plan["points"][0].clone();
                plan["points"][0]["label"] = "a/b".into();
                other["label"] = "a:b".into();
                plan["points"].as_array_mut().unwrap().push(other);
            },
            "two labels for the folder `a_b`",
        ),
    ];
    let scratch = Scratch::new("plans");
    let path = scratch.path("study");
    study(&path);
    let file = path.join("study.json");
    let good = fs::read_to_string(&file).unwrap();
    for (change, expected) in cases {
        let mut plan = serde_json::from_str(&good).unwrap();
        change(&mut plan);
        fs::write(&file, plan.to_string()).unwrap();
        let found = StudyFolder::open(&path).expect_err(expected).to_string();
        assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
        assert!(found.contains("study.json"), "{found}");
    }
}

#[test]
fn the_same_value_twice_is_no_sweep() {
    let scratch = Scratch::new("twice");
    let values = ["0.5", "0.5"].map(str::to_owned);
    let plan = sweep(Axis::Retention, &values, &question(&["tilp"], &[0])).unwrap();
    let found = StudyFolder::create(&scratch.path("study"), plan, &scenario());
    assert!(matches!(found, Err(StudyError::Plan(reason)) if reason.contains("`0.5`")));
    assert!(!scratch.path("study").exists());
}

#[test]
fn whatever_it_is_called_a_folder_lies_in_its_parent() {
    for (name, folder) in
        [("..", "_."), ("", "_"), (".x", "_x"), ("a/../b", "a_.._b"), ("-5 dB", "-5_dB")]
    {
        assert_eq!(check::folder_name(name), folder);
    }
}
