//! The promises of ARCHITECTURE.md, read off the source text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which room may name which. `scenario` and `experiment` put everything together.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("rng", &[]),
    ("snapshot", &[]),
    ("statistics", &["rng"]),
    ("lanes", &["rng", "vectorised"]), // its own macro, exported at the root
    ("nn", &["lanes"]),
    ("plot", &[]),
    ("exchange", &["cost", "round", "rule", "tasks", "units"]),
    ("wire", &[]),
    ("rule", &[]),
    ("rates", &[]),
    ("compress", &["lanes", "rng", "wire"]),
    ("message", &["compress", "rng", "round", "wire"]),
    ("round", &["cost", "message", "rates", "rule", "snapshot", "units"]),
    ("run", &["record", "round", "station"]), // names no cell, no method, no experimenter
    ("wireless", &["rng", "units"]),
    ("datasheet", &["cost", "rng", "units"]),
    (
        "split",
        &[
            "compress", "cost", "message", "nn", "rates", "rng", "round", "rule", "snapshot",
            "units", "wire",
        ],
    ),
    ("tasks", &["rng", "units"]),
    ("cost", &["compress", "message", "round", "rule", "units", "wireless"]),
    // Never `world`: base station and method know only what was observed.
    ("station", &["round", "snapshot", "split", "units"]),
    (
        "allocate",
        &[
            "cost", "lanes", "rl", "rng", "round", "search", "snapshot", "split", "twin", "units",
            "wireless",
        ],
    ),
    // Makes a base station for a cell that its user describes.
    (
        "setup",
        &["allocate", "cost", "rng", "round", "split", "station", "twin", "units", "wireless"],
    ),
    ("twin", &["cost", "lanes", "rng", "round", "snapshot", "split", "units", "wireless"]),
    (
        "world",
        &[
            "cost",
            "datasheet",
            "message",
            "rng",
            "round",
            "snapshot",
            "split",
            "tasks",
            "units",
            "wireless",
        ],
    ),
    (
        "profile",
        &["compress", "message", "rng", "round", "snapshot", "split", "tasks", "units", "world"],
    ),
    ("search", &["lanes", "rng"]),
    ("rl", &["nn", "rng", "snapshot"]),
    ("record", &["round", "rule", "snapshot", "statistics", "units"]),
];

/// Rooms that put the others together.
const ASSEMBLERS: &[&str] = &["scenario", "experiment", "prelude"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The crates of the library, from the words up to the facade.
const CRATES: [&str; 5] = ["tilp-core", "tilp-split", "tilp-plan", "tilp-sim", "tilp"];

/// Every source file of the library with its room: the module below the crate's root.
fn source_files() -> Vec<(String, PathBuf, String)> {
    source_files_of(&CRATES)
}

fn source_files_of(crates: &[&str]) -> Vec<(String, PathBuf, String)> {
    let mut files = Vec::new();
    for name in crates {
        let source = root().join("..").join(name).join("src");
        let mut folders = vec![source.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let room = path.strip_prefix(&source).unwrap().iter().next().unwrap();
                    let room = room.to_str().unwrap().trim_end_matches(".rs").to_owned();
                    let text = fs::read_to_string(&path).unwrap();
                    files.push((room, path, text));
                }
            }
        }
    }
    files.sort();
    files
}

/// Packages that a package links, build and test dependencies aside.
fn linked(package: &str) -> BTreeSet<String> {
    let manifest = root().join("../../Cargo.toml");
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", package])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// What planner and terminals must do without, by the beginning of a package's name.
const HEAVY: [(&str, &[&str]); 5] = [
    ("physics", &["rapier", "parry", "mujoco", "tilp-mujoco", "tilp-sim"]),
    ("Parquet", &["parquet", "arrow", "thrift"]),
    ("figures", &["resvg", "usvg", "tiny-skia", "dejavu", "png"]),
    ("the command line", &["clap", "indicatif", "signal-hook", "tungstenite", "tilp-cli"]),
    ("scenarios and records", &["csv", "tilp v"]),
];

#[test]
fn planner_and_terminal_half_link_no_physics_parquet_svg_or_command_line() {
    let links = |linked: &BTreeSet<String>, start: &str| {
        linked.iter().find(|name| format!("{name} v").starts_with(start)).cloned()
    };
    for package in ["tilp-core", "tilp-split", "tilp-plan", "tilp-testbed"] {
        let linked = linked(package);
        assert!(linked.contains(package), "cargo tree names the package itself");
        for (what, starts) in HEAVY {
            let found: Vec<_> = starts.iter().filter_map(|start| links(&linked, start)).collect();
            assert!(found.is_empty(), "{package} links {found:?}: {what}");
        }
    }
    // The names are right: the program links all of them, MuJoCo aside, which is off by default.
    let whole = linked("tilp-cli");
    for start in ["rapier", "parry", "tilp-sim", "parquet", "resvg", "usvg", "tiny-skia", "clap"] {
        assert!(links(&whole, start).is_some(), "the program links no {start}");
    }
    for start in ["dejavu", "png", "indicatif", "signal-hook", "tungstenite", "csv", "tilp v"] {
        assert!(links(&whole, start).is_some(), "the program links no {start}");
    }
}

#[test]
fn the_terminal_half_links_no_planner() {
    assert!(!linked("tilp-split").contains("tilp-plan"));
    assert!(!linked("tilp-sim").contains("tilp-plan"));
    assert!(!linked("tilp-testbed").contains("tilp-plan"));
}

/// A file of tests only. Tests may borrow from anywhere.
fn is_test(path: &Path) -> bool {
    let name = |part: &std::ffi::OsStr| {
        ["tests", "tests.rs", "fixture.rs"].contains(&part.to_str().unwrap())
    };
    path.components().any(|part| name(part.as_os_str()))
}

/// A file without its tests, which come last.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// Names that follow `crate::`, or another crate of the library, in a text.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| -> Vec<String> {
        let (list, is_word) = (rest.strip_prefix('{'), |c: char| c.is_alphanumeric() || c == '_');
        let words = list.map_or(rest, |list| list.split('}').next().unwrap_or_default());
        let words = words.split(|c| !is_word(c)).map(str::to_owned);
        if list.is_some() { words.collect() } else { words.take(1).collect() }
    };
    let crates = ["crate::", "tilp_core::", "tilp_split::", "tilp_plan::", "tilp_sim::"];
    let after = crates.into_iter().flat_map(|from| text.split(from).skip(1));
    after.flat_map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn a_room_uses_only_the_rooms_it_may() {
    let mut wrong = Vec::new();
    for (room, path, text) in source_files() {
        if room == "lib" || ASSEMBLERS.contains(&room.as_str()) || is_test(&path) {
            continue;
        }
        let allowed = MAY_USE.iter().find(|(name, _)| *name == room);
        let Some((_, allowed)) = allowed else {
            wrong.push(format!("{}: room `{room}` is not in MAY_USE", path.display()));
            continue;
        };
        for used in rooms_named(code(&text)) {
            if used != room && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: `{room}` may not use `{used}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `oracle` and `clairvoyant` are the exceptions to the rule that no method reads the
/// world: only these files may speak of the truth, and only the loop hands it over.
#[test]
fn only_oracle_and_clairvoyant_are_told_the_truth() {
    let may = |word: &str| -> &[&str] {
        match word {
            "Truth" => &["clairvoyant.rs", "oracle.rs", "truth.rs"],
            "be_told" => &["oracle.rs", "truth.rs", "network.rs", "training.rs", "task.rs"],
            _ => &["clairvoyant.rs", "oracle.rs"],
        }
    };
    for (room, path, text) in source_files() {
        let code = code(&text);
        let file = path.file_name().unwrap().to_str().unwrap();
        // The base station hands the way in on, and nothing else.
        let secret = ["Truth", "be_told", "reveal", "Question", "OracleAccess", "oracle_access"];
        let words = match room.as_str() {
            "allocate" | "twin" | "search" | "rl" => &secret[..],
            "station" => &secret[..4],
            _ => &[],
        };
        if !is_test(&path) {
            for &word in words {
                let said = code.contains(word) && !may(word).contains(&file);
                assert!(!said, "{} says `{word}`", path.display());
            }
        }
        if !["run", "world"].contains(&room.as_str()) {
            assert!(!code.contains(".reveal("), "{} asks for the truth", path.display());
        }
    }
}

#[test]
fn rooms_are_named_in_full_so_that_the_check_sees_them() {
    for (_, path, text) in source_files() {
        for hidden in ["super::super", "use crate::{", "use crate::*"] {
            assert!(!text.contains(hidden), "{} says `{hidden}`", path.display());
        }
        // In the root of a room `super` is the root of the crate.
        let depth = path.iter().rev().position(|part| part == "src").unwrap();
        let is_root = depth == 1 || (depth == 2 && path.ends_with("mod.rs"));
        let hidden = is_root && code(&text).contains("use super::");
        assert!(!hidden, "{} says `use super::`", path.display());
    }
}

#[test]
fn only_scenario_record_and_experiment_touch_files() {
    for (room, path, text) in source_files() {
        if !["scenario", "record", "experiment"].contains(&room.as_str()) {
            let touches = code(&text).contains("std::fs");
            assert!(is_test(&path) || !touches, "{} touches files", path.display());
        }
    }
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let shells = ["tilp-testbed", "tilp-mujoco", "tilp-dash", "tilp-cli"];
    for (_, path, text) in source_files_of(&[&CRATES[..], &shells].concat()) {
        assert!(text.lines().count() <= 600, "{} is too long", path.display());
    }
}

/// One row of docs/equations.toml.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Equation {
    label: String,
    status: String,
    #[serde(default)]
    home: String,
    #[serde(default)]
    why: String,
}

fn equations() -> Vec<Equation> {
    #[derive(serde::Deserialize)]
    struct Table {
        equation: Vec<Equation>,
    }
    let text = fs::read_to_string(root().join("docs/equations.toml")).unwrap();
    toml::from_str::<Table>(&text).unwrap().equation
}

#[test]
fn every_equation_has_its_home_and_a_test() {
    let files = source_files();
    for equation in equations() {
        let Equation { label, status, home, why } = &equation;
        match status.as_str() {
            "exact" => {}
            "deviates" => assert!(!why.is_empty(), "{label}: a deviation needs its reason"),
            "definition" | "planned" => {
                assert!(!why.is_empty() && home.is_empty(), "{label}: say why, and no home");
                continue;
            }
            other => panic!("{label}: status `{other}`"),
        }
        let (path, item) = home.split_once("::").expect("home is path::item");
        let (_, _, text) = (files.iter())
            .find(|(_, file, _)| file.ends_with(path))
            .unwrap_or_else(|| panic!("{label}: no file {path}"));
        let mark = format!("Eq. `{label}`");
        assert!(text.contains(&mark), "{label}: {path} has no mark {mark}");
        let after = text.split(&mark).nth(1).unwrap();
        let declared: String = after.lines().skip(1).take(12).collect::<Vec<_>>().join(" ");
        let is_item = [format!("fn {item}"), format!("struct {item}")];
        assert!(
            is_item.iter().any(|found| declared.contains(found)),
            "{label}: `{item}` does not follow the mark in {path}"
        );
        let test = format!("fn eq_{}_", label.replace('-', "_").to_lowercase());
        let worlds = include_str!("worlds.rs");
        let found = files.iter().any(|(_, _, text)| text.contains(&test)) || worlds.contains(&test);
        assert!(found, "{label}: no test {test}");
    }
}

#[test]
fn every_mark_in_the_source_has_a_row() {
    let labels: BTreeSet<String> = equations().into_iter().map(|row| row.label).collect();
    for (_, path, text) in source_files() {
        for mark in text.split("Eq. `").skip(1) {
            let label = mark.split('`').next().unwrap();
            assert!(labels.contains(label), "{}: `{label}` has no row", path.display());
        }
    }
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let workspace = root().join("../..");
    let text = fs::read_to_string(workspace.join("ARCHITECTURE.md")).unwrap();
    let mut checked = 0;
    for word in text.split('`').skip(1).step_by(2) {
        let is_path = word.contains('/') && !word.contains(' ') && !word.contains("::");
        if is_path {
            assert!(workspace.join(word).exists(), "ARCHITECTURE.md names {word}");
            checked += 1;
        }
    }
    assert!(checked > 20, "the map names {checked} paths only");
}

#[test]
fn the_map_of_the_architecture_says_what_a_room_may_use() {
    let text = fs::read_to_string(root().join("../../ARCHITECTURE.md")).unwrap();
    let row = |room: &str| {
        let is_of = |line: &&str| {
            let path = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
            // The testbed has a table of its own, with names that the library has too.
            let path = path.filter(|path| !path.starts_with("crates/tilp-testbed/"));
            let name = path.and_then(|path| path.split("/src/").nth(1));
            name.is_some_and(|name| name.trim_end_matches(".rs") == room)
        };
        let mut rows = text.lines().filter(is_of);
        let row = rows.next().unwrap_or_else(|| panic!("the map has no room `{room}`"));
        assert!(rows.next().is_none(), "the map has `{room}` twice");
        row.split('|').nth(3).unwrap().trim().to_owned()
    };
    for (room, may_use) in MAY_USE {
        let mut names: Vec<&str> = may_use.to_vec();
        names.retain(|name| *name != "vectorised");
        names.sort_unstable();
        assert_eq!(row(room), names.join(", "), "{room}");
    }
    for room in ASSEMBLERS {
        assert_eq!(row(room), "everything", "{room}");
    }
}

#[test]
fn every_invariant_of_the_published_methods_names_tests_that_exist() {
    let docs = include_str!("../../../../docs/explain/methods.md");
    let table = docs.split("## What holds them").nth(1).expect("the table of invariants");
    let own = fs::read_dir(root().join("tests/it")).unwrap();
    let own = own.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
    let source: String = source_files().into_iter().map(|(_, _, text)| text).chain(own).collect();
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #"));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 19);
    for row in rows {
        let tests: Vec<&str> =
            row.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).collect();
        assert!(!tests.is_empty(), "{row}");
        for name in tests {
            // In a file of tests, in a module, in a block of `proptest!`.
            let stands =
                |indent: usize| source.contains(&format!("#[test]\n{:indent$}fn {name}(", ""));
            assert!([0, 4, 8].into_iter().any(stands), "no test {name}");
        }
    }
}
