//! Contents of tables.

use expect_test::expect;
use proptest::prelude::*;

use super::made_up::{at, done, ended, file, made_up, report_of, result};
use super::*;
use crate::record::Summary;

#[test]
fn a_threshold_that_was_not_always_reached_has_no_mean() {
    let run = |success: f64, round: Option<u64>| {
        let mut summary =
            crate::record::Summary { success_final: Some(success), ..Default::default() };
        summary.rta.at_60 = round;
        ended(summary)
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
    // Student's interval of 0.3 and 0.2: 12.706 times 0.05 on either side.
    let [low, high] = pairing.difference.interval.unwrap();
    assert!((low - 0.25 + 0.635310).abs() < 1e-5 && (high - 0.25 - 0.635310).abs() < 1e-5);
    assert_eq!(pairing.effect, None, "two pairs have no effect size");
    assert_eq!((pairing.pairs, pairing.p), (2, None), "nor a p-value");
    assert_eq!(table.pairing(0, metric("success_final")), None);
    assert_eq!(table.pairing(1, metric("rta_0.6")).unwrap().pairs, 1);
}

/// The table for a terminal of a method with these numbers beside one with a missing run.
fn compact(latency_p50_s: f64, air_total_bytes: u64) -> String {
    let plan = comparison(&question(&["tilp", "splitfed+guard+q0.9"], &[0, 1]));
    let success_final = Some(1.0);
    let latency_p50_s = Some(latency_p50_s);
    let one = Summary { success_final, latency_p50_s, air_total_bytes, ..Default::default() };
    let results = [
        result("tilp", 0, ended(one.clone())),
        result("tilp", 1, ended(one)),
        result("splitfed+guard+q0.9", 0, done(0.5)),
    ];
    Table::new(&plan, &results).compact()
}

#[test]
fn huge_numbers_are_printed_in_powers_of_ten() {
    expect![[r#"
                                  seeds  succ %   far % s to 70 J to 70   p50 s  air MB
        tilp                          2     100       -       -       -   1.2e9  1.8e13
        splitfed+guard+q0.9           1    50.0       -       -       -       -    0.00
        means over seeds; - if not every seed has a value. Intervals: table.md
    "#]]
    .assert_eq(&compact(1.23456e9, u64::MAX));
}

proptest! {
    #[test]
    fn the_table_for_a_terminal_fits_80_letters_whatever_the_numbers(
        exponent in -9.0..18.0f64,
        bytes in any::<u64>(),
    ) {
        let text = compact(10f64.powf(exponent), bytes);
        prop_assert!(text.lines().take(3).all(|line| line.chars().count() <= 80), "{text}");
        prop_assert!(text.lines().take(3).skip(1).all(|line| line.len() > 70), "{text}");
    }
}

#[test]
fn a_row_says_of_how_many_seeds_it_is() {
    let (_, table) = made_up();
    let text = table.markdown();
    assert!(text.contains("| tilp | 2 | 75.0"), "{text}");
    assert!(text.contains("| asfl+guard | 1 of 2, 1 failed | 50.0"), "{text}");
    let plan = comparison(&question(&["tilp", "random"], &[0, 1]));
    let results = [result("tilp", 0, done(0.8)), result("tilp", 1, Outcome::Missing)];
    let text = Table::new(&plan, &results).markdown();
    assert!(text.contains("| tilp | 1 of 2 | 80.0"), "{text}");
}

/// A sweep of two points and two methods: TiLP is ahead at the first and behind at the second.
fn swept() -> (Plan, Table) {
    let plan = sweep(Axis::Late, &[], &question(&["tilp", "random"], &[0, 1])).unwrap();
    let mut results = Vec::new();
    for seed in [0, 1] {
        let more = 0.1 * seed as f64;
        results.push(at("drop", "tilp", seed, done(0.6 + more)));
        results.push(at("drop", "random", seed, done(0.5 + more)));
        results.push(at("wait", "tilp", seed, done(0.3)));
        results.push(at("wait", "random", seed, done(0.4)));
    }
    let table = Table::new(&plan, &results);
    (plan, table)
}

#[test]
fn a_row_of_a_sweep_is_compared_and_ranked_at_its_own_point() {
    let (plan, table) = swept();
    let metric = |name: &str| METRICS.iter().find(|metric| metric.name == name).unwrap();
    let difference = |row: usize| table.pairing(row, metric("success_final"));
    assert_eq!((difference(0), difference(2)), (None, None), "tilp is the reference at each point");
    assert!((difference(1).unwrap().difference.mean - 0.1).abs() < 1e-12);
    assert!((difference(3).unwrap().difference.mean + 0.1).abs() < 1e-12);
    let page = file(&report_of(plan, table), "report.html");
    assert!(
        page.contains(
            "tilp has the highest success at 1 of 2 points; level or ahead at wait: random."
        ),
        "{page}"
    );
    assert!(page.contains("tilp at the same point less each row"));
    // 40 % is the best at the point `wait`.
    assert!(page.contains("<td class=\"best\">40.0<br>") && page.contains("best at each point"));
    assert!(page.contains("<td class=\"best\">65.0<br>"));
}

#[test]
fn along_retention_a_method_is_found_whatever_its_compression() {
    let values = ["0.5", "1"].map(str::to_owned);
    let plan = sweep(Axis::Retention, &values, &question(&["asfl+guard", "hsfl+guard"], &[0]));
    let plan = plan.unwrap();
    let results = [
        at("0.5", "asfl+guard+q0.5", 0, done(0.6)),
        at("0.5", "hsfl+guard+q0.5", 0, done(0.5)),
        at("1", "asfl+guard", 0, done(0.6)),
        at("1", "hsfl+guard", 0, done(0.5)),
    ];
    let table = Table::new(&plan, &results);
    let found: Vec<Option<usize>> = (0..4).map(|row| table.compared_with(row)).collect();
    assert_eq!(found, [None, Some(0), None, Some(2)]);
}

#[test]
fn replicates_are_pooled_within_their_seed_before_anything_is_compared_over_seeds() {
    let asked = Question { replicates: 2, ..question(&["tilp", "random"], &[0, 1]) };
    let plan = comparison(&asked);
    let replicate = |method: &str, seed, replicate, success| RunResult {
        seed: Seeds { seed, replicate },
        ..result(method, seed, done(success))
    };
    let mut results = vec![
        replicate("tilp", 0, 0, 0.8),
        replicate("tilp", 0, 1, 0.6),
        replicate("tilp", 1, 0, 0.9),
        replicate("tilp", 1, 1, 0.9),
        replicate("random", 0, 0, 0.5),
        replicate("random", 0, 1, 0.7),
        replicate("random", 1, 0, 0.6),
    ];
    results.push(RunResult {
        seed: Seeds { seed: 1, replicate: 1 },
        ..result("random", 1, Outcome::Missing)
    });
    let table = Table::new(&plan, &results);
    let metric = METRICS.iter().find(|metric| metric.name == "success_final").unwrap();
    let values = table.rows[0].values(metric);
    assert_eq!(values.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), [0, 1]);
    assert!((values[0].1 - 0.7).abs() < 1e-12 && (values[1].1 - 0.9).abs() < 1e-12);
    let estimate = table.rows[0].estimate(metric).unwrap();
    // Wilson's interval is over the episodes of all four runs.
    let all = crate::round::SuccessCount { successes: 1280, episodes: 1600 };
    assert_eq!(estimate.interval, crate::record::wilson_95(all));
    let pairing = table.pairing(1, metric).unwrap();
    assert_eq!(pairing.pairs, 2, "a pair is a seed");
    assert!((pairing.difference.mean - 0.2).abs() < 1e-12);
    let text = table.markdown();
    assert!(text.contains("| tilp | 2 x 2 |"), "{text}");
    assert!(text.contains("| random | 3 of 2 x 2 |"), "{text}");
    assert!(text.contains("missing: random at tiny, seeds 1-r1"), "{text}");
    let csv = table.runs_csv();
    assert!(csv.starts_with("point,method,seed,replicate,status,success_final"), "{csv}");
    assert!(csv.contains("tiny,tilp,0,1,done,0.6"), "{csv}");
}

#[test]
fn a_study_with_events_has_a_table_of_what_they_cost_and_when_it_was_back() {
    let run = |area: f64, lowest: f64, recovery_s: Option<f64>| {
        let event = crate::record::EventSummary {
            name: "a < b".into(),
            round: 8,
            success_before: Some(0.5),
            success_lowest: Some(lowest),
            recovery_s,
        };
        ended(crate::record::Summary {
            success_final: Some(0.5),
            success_area: Some(area),
            events: vec![event],
            ..Default::default()
        })
    };
    let plan = comparison(&question(&["tilp", "random", "greedy"], &[0, 1]));
    let results = [
        result("tilp", 0, run(0.4, 0.3, Some(30.0))),
        result("tilp", 1, run(0.5, 0.1, Some(50.0))),
        result("random", 0, run(0.3, 0.2, Some(60.0))),
        result("random", 1, run(0.3, 0.4, None)),
        result("greedy", 0, run(0.3, 0.6, None)),
        result("greedy", 1, run(0.3, 0.5, None)),
    ];
    let report = report_of(plan.clone(), Table::new(&plan, &results));
    let page = file(&report, "report.html");
    let table = page.split("<h3>Events</h3>").nth(1).expect("a table of events");
    let row = |method: &str| {
        let rest = table.split(&format!(">{method}</th>")).nth(1).expect("a row");
        let cells = rest.split("</tr>").next().unwrap().split("<td>").skip(1);
        let plain = |cell: &str| cell.split('<').next().unwrap().to_owned();
        cells.map(plain).collect::<Vec<_>>()
    };
    assert!(table.contains("a &lt; b, round 8: lost, points"));
    assert_eq!(row("tilp"), ["45.0", "30.0", "40"]);
    assert_eq!(row("random"), ["30.0", "20.0", "1 of 2"]);
    assert_eq!(row("greedy"), ["30.0", "0.0", "-"], "nothing was lost");
    let lines = file(&report, "events.csv");
    assert!(lines.contains("\ntiny,random,1,0.3,8,a < b,0.5,0.4,\n"), "{lines}");
    let (plan, table) = made_up();
    let calm = report_of(plan, table);
    assert!(!file(&calm, "report.html").contains("<h3>Events</h3>"));
    assert!(calm.files(None).iter().all(|(name, _)| name != "events.csv"));
}
