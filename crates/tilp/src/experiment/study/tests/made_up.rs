//! Made-up results.

use super::*;
use crate::record::Summary;

/// A finished run with this summary.
pub fn ended(summary: Summary) -> Outcome {
    Outcome::Done(Box::new(Finished { summary, ..Default::default() }))
}

/// A finished run with this success.
pub fn done(success: f64) -> Outcome {
    ended(Summary { success_final: Some(success), ..Default::default() })
}

/// A made-up result at a point.
pub fn at(point: &str, method: &str, seed: u64, outcome: Outcome) -> RunResult {
    let subject = Subject { point: point.into(), method: method.into() };
    let episodes = Episodes { all: 400, far: 136 };
    let folder = PathBuf::from(format!("runs/{point}/{method}-{seed}"));
    RunResult { subject, seed: seed.into(), outcome, folder, episodes }
}

/// A made-up result at the only point.
pub fn result(method: &str, seed: u64, outcome: Outcome) -> RunResult {
    at("tiny", method, seed, outcome)
}

/// A study of three methods on two seeds with made-up results; one run failed.
pub fn made_up() -> (Plan, Table) {
    let plan = comparison(&question(&["tilp", "random", "asfl+guard"], &[0, 1]));
    let results = [
        result("tilp", 0, done(0.8)),
        result("tilp", 1, done(0.7)),
        result("random", 0, done(0.6)),
        result("random", 1, done(0.6)),
        result("asfl+guard", 0, done(0.5)),
        result("asfl+guard", 1, Outcome::Failed("a < b & \"c\"".into())),
    ];
    let table = Table::new(&plan, &results);
    (plan, table)
}

/// A report of these results.
pub fn report_of(plan: Plan, table: Table) -> Report {
    let section = Section {
        name: "compare-tiny".to_owned(),
        plan,
        table,
        figures: Vec::new(),
        scenario: "name = \"tiny\"".to_owned(),
        set_apart: vec!["rounds = 7".to_owned()],
        caution: Some("short < long".to_owned()),
        finished: String::new(),
        failures: Vec::new(),
    };
    Report { sections: vec![section] }
}

/// A report of made-up results.
pub fn made_up_report() -> Report {
    let (plan, table) = made_up();
    report_of(plan, table)
}

/// The text of a file of a report.
pub fn file(report: &Report, wanted: &str) -> String {
    let files = report.files(None);
    let found = files.iter().find(|(name, _)| name == wanted);
    String::from_utf8(found.unwrap_or_else(|| panic!("{wanted}")).1.clone()).unwrap()
}
