//! `tilp report` with the folder of a run, and figures for a paper.

use std::fs;

use crate::bad_input::refused;
use crate::scratch::SHORT;
use crate::{Scratch, succeed};

#[test]
fn the_page_of_a_run_has_every_figure_inside_and_beside_it() {
    let scratch = Scratch::with_run("page");
    let said = succeed(scratch.path(), &["report", "done"]);
    assert!(said.contains("page in done/report/report.html"), "{said}");
    let folder = scratch.path().join("done/report");
    let views = fs::read_to_string(folder.join("views.html")).unwrap();
    assert!(views.contains("id=\"export\"") && !views.contains("src=\""));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<table class=\"facts\">"), "names and values wrap on narrow screens");
    let titles = [
        "Success",
        "Latency of the rounds",
        "Participation",
        "Violations by kind",
        "Decisions for",
        "Decisions and what sets robots apart",
    ];
    for title in titles {
        assert!(page.contains(&format!(">{title}")), "no figure {title}");
    }
    assert!(page.contains("makes no predictions"), "deficit has no twin");
    assert!(page.contains("had its mean of one decision"), "the worth of differences");
    assert!(
        !page.contains("src=\"http") && !page.contains("<script"),
        "the page is self-contained"
    );
    for name in ["success", "latency", "participation", "violations", "decisions", "causes"] {
        for end in ["svg", "png", "pdf", "csv"] {
            assert!(folder.join(format!("{name}.{end}")).exists(), "{name}.{end}");
        }
    }
    let robots = fs::read_to_string(folder.join("robots.csv")).unwrap();
    assert_eq!(robots.lines().count(), 1 + 6, "a line for every robot of tiny");
    // The run is unchanged: a page is not a result.
    succeed(scratch.path(), &["verify", "done"]);
}

#[test]
fn a_run_of_tilp_shows_its_twin_and_an_unfinished_one_says_so() {
    let scratch = Scratch::new("page-tilp");
    succeed(scratch.path(), &[&SHORT[..], &["--quiet", "--out", "run"]].concat());
    succeed(scratch.path(), &["report", "run", "--out", "page", "--width", "3.5in"]);
    let page = fs::read_to_string(scratch.path().join("page/report.html")).unwrap();
    assert!(page.contains("Twin against outcome") && !page.contains("makes no predictions"));
    let paper = scratch.path().join("page/paper");
    let figure = fs::read_to_string(paper.join("success-success-over-rounds.svg")).unwrap();
    assert!(figure.contains("width=\"3.5in\""), "{figure}");
    assert!(paper.join("twin-latency.pdf").exists());
    fs::remove_file(scratch.path().join("run/summary.json")).unwrap();
    succeed(scratch.path(), &["report", "run", "--out", "again"]);
    let page = fs::read_to_string(scratch.path().join("again/report.html")).unwrap();
    assert!(page.contains("The run is not complete: 12 rounds."));
}

#[test]
fn after_a_run_one_line_says_what_to_do_next() {
    let scratch = Scratch::new("next");
    let said =
        succeed(scratch.path(), &[&SHORT[..], &["--method", "random", "--out", "a b"]].concat());
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("next: tilp report 'a b'"), "{said}");
}

#[test]
fn a_channel_is_shown_for_a_seed_and_never_written_over_silently() {
    let scratch = Scratch::new("channel-seed");
    let said = succeed(scratch.path(), &["channel", "tiny", "--seed", "3"]);
    assert!(said.starts_with("tiny, seed 3: 6 terminals, 200 rounds"), "{said}");
    assert!(scratch.path().join("channel/gains.pdf").exists());
    let line = refused(&scratch, &["channel", "tiny"]);
    assert!(line.contains("channel/gains.svg: exists, expected another --out"), "{line}");
    succeed(scratch.path(), &["channel", "tiny", "--replace"]);
}

#[test]
fn a_scenario_that_is_checked_is_opened_and_described() {
    let scratch = Scratch::new("check");
    scratch.put("own.toml", "extends = \"tiny\"\nname = \"own\"\n[tasks.shares]\nbin = 3\n");
    let said =
        succeed(scratch.path(), &["scenario", "check", "own.toml", "--set", "limits.deadline_s=2"]);
    assert!(said.contains("opened model.base = builtin"), "{said}");
    assert!(said.contains("terminals: 6 (bin "), "{said}");
    assert!(said.contains("miss the deadline of 2 s"), "{said}");
    assert!(said.contains("warning: tasks.shares sets bin and keeps "), "{said}");
    assert!(
        said.lines().skip(3).all(|line| line.len() <= 80 || line.starts_with("warning")),
        "{said}"
    );
    let check = ["scenario", "check", "tiny", "--set", "cell.trace=nowhere.csv"];
    assert!(refused(&scratch, &check).contains("cell.trace: "), "traces are opened");
    let check = ["scenario", "check", "tiny", "--set", "model.base=nowhere.safetensors"];
    assert!(refused(&scratch, &check).contains("model.base: "), "the base policy is opened");
}

#[test]
fn knobs_that_a_method_does_not_use_do_not_refuse_its_run() {
    let scratch = Scratch::new("knobs");
    let knobs = ["--set", "model.cuts=[3]", "--set", "limits.compression=0.5", "--quiet"];
    succeed(scratch.path(), &[&SHORT[..], &knobs, &["--out", "tilp"]].concat());
    let random = [&SHORT[..], &knobs, &["--method", "random", "--out", "random"]].concat();
    let line = refused(&scratch, &random);
    assert!(line.contains("methods.cut = 2, expected one of model.cuts [3]"), "{line}");
}

#[test]
fn a_search_that_does_not_fit_together_refuses_only_methods_that_search() {
    let scratch = Scratch::new("search-knobs");
    let knobs = ["--set", "methods.tilp.samples=16", "--quiet"];
    let expected = "methods.tilp.elites = 25, expected 1 to 16";
    let line = refused(&scratch, &[&SHORT[..], &knobs].concat());
    assert!(line.contains(expected), "{line}");
    let check = ["scenario", "check", "tiny", "--set", "methods.tilp.samples=16"];
    assert!(refused(&scratch, &check).contains(expected), "a check looks at all knobs");
    succeed(scratch.path(), &[&SHORT[..], &knobs, &["--method", "random"]].concat());
}

#[test]
fn other_sizes_of_the_policy_need_one_step() {
    let scratch = Scratch::new("sizes");
    let size = ["--set", "model.width=16"];
    let line = refused(&scratch, &[&SHORT[..], &size].concat());
    assert!(line.contains("tilp policy pretrain SCENARIO --set ... --out FILE"), "{line}");
    let made = ["policy", "pretrain", "tiny", "--steps", "2", "--out", "small.safetensors"];
    succeed(scratch.path(), &[&made[..], &size].concat());
    let base = ["--set", "model.base=small.safetensors", "--method", "random", "--quiet"];
    succeed(scratch.path(), &[&SHORT[..], &size, &base].concat());
}

#[test]
fn help_lists_the_methods_and_slips_are_answered_with_what_was_meant() {
    let scratch = Scratch::new("help");
    let help = succeed(scratch.path(), &["run", "--help"]);
    for method in ["tilp", "fedsl", "clairvoyant"] {
        assert!(help.contains(&format!("  {method} ")), "{help}");
    }
    assert!(refused(&scratch, &["run", "tiny", "--sed", "3"]).contains("'--seed'"));
    let line = refused(&scratch, &["run", "tiny", "--set", "limits.dedline_s=3"]);
    assert!(line.contains("did you mean limits.deadline_s?"), "{line}");
    let line = refused(&scratch, &["run", "tiny", "--set", "cell.n_terminals=2.5"]);
    assert!(line.contains("expected a whole number from 0 on"), "{line}");
    for shell in ["bash", "zsh", "fish"] {
        let script = succeed(scratch.path(), &["completions", shell]);
        assert!(script.contains("compare") && script.contains("checkpoint-every"), "{shell}");
    }
}

#[test]
fn a_plan_marks_what_rests_on_priors_alone() {
    let scratch = Scratch::new("priors");
    let example = succeed(scratch.path(), &["plan", "tiny", "--example"]);
    scratch.put("seen.json", example);
    let input = fs::File::open(scratch.path().join("seen.json")).unwrap();
    let output = crate::tilp(scratch.path()).args(["plan", "tiny"]).stdin(input).output().unwrap();
    let said = crate::text(&output.stdout);
    assert!(
        said.contains("on priors alone") && said.contains("delay, energy, loss, success"),
        "{said}"
    );
}
