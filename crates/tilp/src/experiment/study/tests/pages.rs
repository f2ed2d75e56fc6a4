//! Pages, figures and files.

use super::made_up::{at, done, file, made_up, made_up_report, report_of, result};
use super::*;

#[test]
fn the_page_has_ours_the_papers_and_what_failed_and_needs_nothing_from_elsewhere() {
    let page = file(&made_up_report(), "report.html");
    // Wilson's interval of 600 of 800 episodes.
    assert!(page.contains("tilp ends at 75.0 [71.9, 77.9] % success over 2 seeds"), "{page}");
    assert!(page.contains("<td class=\"best\">75.0<br><small>[71.9, 77.9]</small></td>"));
    // A row with a failed run is not ranked.
    assert!(page.contains("<td>1 of 2, 1 failed</td><td>50.0<br>"));
    assert!(page.contains("</th><td>2</td><td class=\"best\">"));
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
fn of_many_methods_the_named_are_drawn_then_the_best_and_the_best_of_all_in_any_case() {
    let drawn = |methods: &[&str]| -> Vec<String> {
        let plan = comparison(&question(methods, &[0]));
        let success = |at: usize| done(0.5 + 0.01 * at as f64);
        let results: Vec<RunResult> =
            methods.iter().enumerate().map(|(at, name)| result(name, 0, success(at))).collect();
        let figure = report::figures::convergence(&Table::new(&plan, &results));
        let names = figure.panels[0].series.iter().map(|series| series.name.clone());
        names.filter(|name| !name.is_empty()).collect()
    };
    let few = ["tilp", "random", "greedy"];
    assert_eq!(drawn(&few), few);
    let many =
        ["random", "greedy", "fedavg", "splitnn", "asfl", "hsfl", "deficit", "tilp", "fedsl"];
    let expected = ["tilp", "deficit", "fedsl", "hsfl", "asfl", "splitnn", "fedavg"];
    assert_eq!(drawn(&many), expected);
    let named = ["tilp", "hsfl", "asfl", "fedsl", "splitnn", "splitfed"].map(|name| match name {
        "tilp" => name.to_owned(),
        _ => format!("{name}+guard"),
    });
    let mut all: Vec<&str> = named.iter().map(String::as_str).collect();
    all.extend(["deficit", "random", "splitnn+guard+q0.9"]);
    let found = drawn(&all);
    assert_eq!(found.len(), 7);
    assert_eq!(found[6], "splitnn+guard+q0.9", "{found:?}");
}

#[test]
fn a_method_with_compression_is_a_line_of_its_own_but_along_the_retention() {
    let lines = |axis: Axis, values: [&str; 2], methods: &[&str]| -> Vec<String> {
        let plan = sweep(axis, &values.map(str::to_owned), &question(methods, &[0])).unwrap();
        let run = |subject: Subject| at(&subject.point, &subject.method, 0, done(0.5));
        let results: Vec<RunResult> = plan.subjects().into_iter().map(run).collect();
        let figure = report::figures::swept(&plan, &Table::new(&plan, &results), axis);
        let names = figure.panels[0].series.iter().map(|series| series.name.clone());
        names.filter(|name| !name.is_empty()).collect()
    };
    let methods = ["tilp", "splitnn+guard+q0.9", "splitnn+guard"];
    assert_eq!(lines(Axis::Bandwidth, ["5", "10"], &methods), methods);
    let methods = ["tilp", "splitnn+guard"];
    assert_eq!(lines(Axis::Retention, ["0.1", "0.5"], &methods), methods);
}

#[test]
fn latex_is_escaped_and_marks_the_best() {
    let (plan, table) = made_up();
    let tex = report::latex::table(&plan, &table);
    assert!(tex.contains("Method & Seeds & Success, \\%"), "{tex}");
    assert!(tex.contains("asfl+guard & 1 of 2, 1 failed & 50.0"), "{tex}");
    assert!(tex.contains("\\textbf{75.0 [71.9, 77.9]}"), "{tex}");
    assert_eq!(tex.matches("\\\\\n").count(), 4);
}

#[test]
fn a_report_of_a_finished_study_draws_its_runs() {
    let scratch = Scratch::new("report");
    let whole = study(&scratch.path("whole"));
    execute(&executor(), &whole, Shard::WHOLE, &Silent::stopping_after(usize::MAX)).unwrap();
    let report = Report::of(std::slice::from_ref(&whole)).unwrap();
    let files = report.files(None);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let texts = [
        "report.html",
        "scenario.toml",
        "runs.jsonl",
        "study.json",
        "runs.csv",
        "table.csv",
        "table.md",
        "table.tex",
    ];
    let drawn = ["convergence", "profiles", "pareto", "latency", "participation"];
    let drawn = drawn
        .iter()
        .flat_map(|name| ["svg", "png", "pdf", "csv"].map(|end| format!("{name}.{end}")));
    let expected: Vec<String> = texts.iter().map(|&name| name.to_owned()).chain(drawn).collect();
    assert_eq!(names, expected);
    let svg = file(&report, "convergence.svg");
    // Two methods, in the legend and in each of six panels.
    assert_eq!(svg.matches("<path class=\"line").count(), 2 * (1 + 6), "{svg}");
    assert!(file(&report, "table.csv").contains(",wilson,"));
    let again = Report::of(&[whole]).unwrap();
    assert_eq!(files, again.files(None));
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
    for name in ["first", "second", "third"] {
        assert!(page.contains(&format!("<section id=\"{name}\">")), "{name}");
        assert!(page.contains(&format!("href=\"#{name}\"")), "{name}");
        assert!(page.contains(&format!("href=\"{name}/runs.csv\"")), "{name}");
        assert!(file(&report, &format!("{name}/runs.csv")).contains(",missing,"), "{name}");
    }
    assert!(file(&report, "third/sweep.svg").contains(">wait</text>"));
    // The texts that distinguish the two comparisons, and the headline of each.
    let apart = "set apart: <code>evaluation.measure_every = 2</code>, <code>rounds = 4</code>";
    let link = |name: &str| format!("<li><a href=\"#{name}\">compare on tiny</a>: ");
    for (name, rows) in [("first", "2 rows, seeds 0 to 1"), ("second", "1 row, seed 0")] {
        assert!(page.contains(&format!("{}{rows}; {apart}</li>", link(name))), "{name}");
    }
    let headline = "<p class=\"headline\"><a href=\"#second\">compare on tiny</a> (1 row; ";
    assert!(page.contains(&format!("{headline}{apart}): 0 of 1")), "{page}");
    assert!(!page.contains("sweep late on tiny</a> ("), "a sweep is no comparison");
}

#[test]
fn a_study_of_one_row_says_what_that_row_came_to() {
    let plan = comparison(&question(&["splitfed"], &[0, 1]));
    let results = [result("splitfed", 0, done(0.6)), result("splitfed", 1, done(0.7))];
    let table = Table::new(&plan, &results);
    let page = file(&report_of(plan, table), "report.html");
    assert!(page.contains("splitfed ends at 65.0 [61.6, 68.2] % success over 2 seeds."), "{page}");
    assert!(page.contains("<th>Energy / splitfed</th>"));
}

#[test]
fn the_differences_from_the_paper_are_those_of_the_scenarios() {
    let mut report = made_up_report();
    let cell = "[cell]\ntrace = \"\"\nouter_radius_m = 650.0\n";
    let mut page = |scenario: &str| {
        report.sections[0].scenario = scenario.to_owned();
        file(&report, "report.html")
    };
    let usual = page(cell);
    assert!(usual.contains("TR 38.901 with terminals up to 650 m away"), "{usual}");
    assert!(usual.contains("table-top tasks") && usual.contains("docs/equations.toml"));
    assert!(usual.contains("dropped at the deadline") && usual.contains("are billed"));
    let other = "[cell]\ntrace = \"builtin:factory-rt\"\n[tasks]\nsuite = \"libero-object\"\n\
                 [limits]\nlate = \"wait\"\n[learning]\nsync = \"free\"\n";
    let other = page(other);
    assert!(other.contains("a ray-traced channel (factory-rt)") && !other.contains("TR 38.901"));
    assert!(other.contains("tasks (libero-object) in MuJoCo") && !other.contains("table-top"));
    assert!(!other.contains("dropped at the deadline") && !other.contains("are billed"));
}

#[test]
fn on_a_narrow_screen_the_aims_have_their_titles_beside_them() {
    let page = file(&made_up_report(), "report.html");
    assert!(page.contains("<td data-label=\"best of the eight with guard\">asfl+guard</td>"));
    assert!(page.contains("content: attr(data-label)"));
}
