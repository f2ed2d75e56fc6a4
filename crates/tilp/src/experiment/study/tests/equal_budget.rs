//! Comparisons on equal budgets.

use std::collections::BTreeMap;

use super::made_up::{at, ended, file, report_of, result};
use super::*;
use crate::record::Summary;

/// A finished run with this success and this use.
fn used(success: f64, seconds: f64, joules: f64) -> Outcome {
    ended(Summary {
        success_final: Some(success),
        clock_total_s: seconds,
        energy_total_j: joules,
        air_total_bytes: 1000,
        ..Default::default()
    })
}

fn base() -> (Plan, Vec<RunResult>) {
    let plan = comparison(&question(&["tilp", "random"], &[0, 1]));
    let results = vec![
        result("tilp", 0, used(0.8, 10.0, 5.0)),
        result("tilp", 1, used(0.7, 11.0, 6.0)),
        result("random", 0, used(0.6, 40.0, 20.0)),
        result("random", 1, used(0.5, 44.0, 24.0)),
    ];
    (plan, results)
}

fn rivals() -> Vec<String> {
    vec!["random".to_owned()]
}

#[test]
fn each_seed_has_the_budget_that_the_other_method_used_on_it() {
    let (plan, results) = base();
    let kinds = [BudgetKind::Seconds, BudgetKind::All];
    let equal = equal_budgets(&plan, &results, &rivals(), &kinds).unwrap();
    let labels: Vec<&str> = equal.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["seconds of random", "seconds of tilp", "all of random", "all of tilp"]);
    let jobs = equal.jobs(&scenario(), &Registry::builtin()).unwrap();
    assert_eq!(jobs.len(), 8);
    let budget = |point: &str, method: &str, seed: u64| {
        let is_it = |job: &&Job| {
            let Subject { point: at, method: by } = &job.subject;
            at == point && by == method && job.seed.seed == seed
        };
        jobs.iter().find(is_it).unwrap().scenario.budget()
    };
    let of = |point: &str, method: &str, seed: u64| {
        let found = budget(point, method, seed);
        [found.seconds.map(|one| one.0), found.joules.map(|one| one.0)]
    };
    assert_eq!(of("seconds of random", "tilp", 1), [Some(44.0), None]);
    assert_eq!(of("seconds of tilp", "random", 0), [Some(10.0), None]);
    assert_eq!(of("all of tilp", "random", 1), [Some(11.0), Some(6.0)]);
    assert!(budget("all of tilp", "random", 1).bytes.is_some());
}

#[test]
fn a_run_that_is_missing_is_named() {
    let (plan, mut results) = base();
    results.pop();
    let said = equal_budgets(&plan, &results, &rivals(), &[BudgetKind::Joules]).unwrap_err();
    assert!(said.contains("random, seed 1"), "{said}");
    assert!(BudgetKind::named("hours").unwrap_err().contains("expected seconds, joules or all"));
}

#[test]
fn the_table_pairs_the_bounded_run_with_the_one_whose_budget_it_had() {
    let (plan, results) = base();
    let equal = equal_budgets(&plan, &results, &rivals(), &[BudgetKind::Seconds]).unwrap();
    let bounded = |success: f64| {
        ended(Summary {
            success_final: Some(success),
            budget_used: BTreeMap::from([("seconds".to_owned(), 0.98)]),
            ..Default::default()
        })
    };
    let found = [
        at("seconds of random", "tilp", 0, bounded(0.9)),
        at("seconds of random", "tilp", 1, bounded(0.8)),
        at("seconds of tilp", "random", 0, bounded(0.4)),
        at("seconds of tilp", "random", 1, bounded(0.3)),
    ];
    let table = Table::new(&equal, &found);
    let report = report_of(equal, table);
    let text = file(&report, "equal-budget.md");
    // 90 and 80 % against 60 and 50 %; 80 and 70 % against 40 and 30 %.
    assert!(
        text.contains("| seconds | random | random | 2 | 85.0 | 55.0 | +30.0 | 98 |"),
        "{text}"
    );
    assert!(text.contains("| seconds | tilp | random | 2 | 75.0 | 35.0 | +40.0 | 98 |"), "{text}");
    let page = file(&report, "report.html");
    assert!(page.contains("ahead in 2 of 2 comparisons"), "{page}");
}

#[test]
fn a_study_on_equal_budgets_grows_and_keeps_its_budgets() {
    let scratch = Scratch::new("equal-budgets");
    let (plan, mut results) = base();
    let first = Plan { seeds: vec![0], ..plan.clone() };
    let kinds = [BudgetKind::Joules];
    let small = equal_budgets(&first, &results, &rivals(), &kinds).unwrap();
    let whole = equal_budgets(&plan, &results, &rivals(), &kinds).unwrap();
    let path = scratch.path("equal");
    assert_eq!(StudyFolder::create(&path, small, &scenario()).unwrap().jobs.len(), 2);
    assert_eq!(StudyFolder::create(&path, whole.clone(), &scenario()).unwrap().jobs.len(), 4);
    assert_eq!(StudyFolder::open(&path).unwrap().plan.points, whole.points);
    results[2] = result("random", 0, used(0.6, 41.0, 21.0));
    let other = equal_budgets(&plan, &results, &rivals(), &kinds).unwrap();
    let said = StudyFolder::create(&path, other, &scenario()).unwrap_err().to_string();
    assert!(said.contains("budget of seed 0"), "{said}");
}
