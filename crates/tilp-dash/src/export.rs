//! One run as one file: the page with its scripts and the numbers inside, for mail and archives.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::assets::FILES;
use crate::compare::compare;
use crate::discover::Place;
use crate::hub::Hub;
use crate::map::map;
use crate::run::Run;
use crate::samples::samples;

/// Rounds whose terminals are in the file. Every other number is there of all rounds.
const MOST_ROUNDS: u64 = 60;
/// Bytes of rounds, and of histories of terminals.
const MOST_BYTES: usize = 6 << 20;

/// Id of a study that is a root itself.
const ROOT: &str = "0";

/// Modules in the order in which they need each other.
const MODULES: [&str; 21] = [
    "dom", "format", "colour", "data", "chart", "timeline", "picker", "terminal", "map", "cell",
    "learning", "round", "scene", "robots", "why", "twin", "compare", "edits", "samples", "whatif",
    "main",
];

/// The page of the run in a folder.
pub fn export(folder: &Path) -> String {
    let name = folder.file_name().map_or("run".into(), |name| name.to_string_lossy());
    let id = format!("0/{name}");
    let run = Run::new(Place { id, path: folder.to_owned(), study: None });
    let list = json!({ "runs": [run.about().entry(&run.place)], "studies": [], "roots": [], "is_cut": false });
    let state = run.message(None).map_or("null".into(), |(_, text)| text);
    let state: Value = serde_json::from_str(&state).unwrap_or_default();
    let answers = answers(&run, &state);
    let data = json!({ "list": list, "state": state, "answers": answers });
    // In a script an element could end, so no text of a file may contain its sign.
    let data = data.to_string().replace('<', "\\u003c");
    page(&data)
}

/// The comparison of the study in a folder; none if there is no study.
pub fn export_study(folder: &Path) -> Option<String> {
    let hub = Hub::new(vec![folder.to_owned()]);
    let study = hub.study(ROOT)?;
    let mut found = compare(&hub, Some(ROOT), None)?;
    // The runs themselves are not in the file.
    for run in found["runs"].as_array_mut().into_iter().flatten() {
        run["id"] = Value::Null;
    }
    let studies = json!([{ "id": ROOT, "name": study.name() }]);
    let list = json!({ "runs": [], "studies": studies, "roots": [], "is_cut": false });
    let answers = json!({ format!("compare {ROOT}"): found });
    let data = json!({ "list": list, "state": null, "answers": answers });
    Some(page(&data.to_string().replace('<', "\\u003c")))
}

/// What the page would ask a server for, as far as it fits.
fn answers(run: &Run, state: &Value) -> Map<String, Value> {
    let mut answers = Map::new();
    let last = state["decided"].as_u64().unwrap_or_default();
    let step = last.div_ceil(MOST_ROUNDS).max(1);
    let mut n_bytes = 0;
    for round in (1..=last).filter(|round| round % step == 0 || *round == last || *round == 1) {
        let Ok(text) = run.round(round) else { continue };
        n_bytes += text.len();
        if n_bytes > MOST_BYTES {
            break;
        }
        let Ok(answer) = serde_json::from_str(&text) else { continue };
        answers.insert(format!("round {round}"), answer);
        answers.insert(format!("spent {round}"), run.spent(round));
    }
    let ids = run.spent(u64::MAX)["terminal"].as_array().cloned().unwrap_or_default();
    n_bytes = 0;
    for id in ids.iter().filter_map(Value::as_u64) {
        let Ok(track) = run.terminal(id as u32) else { continue };
        n_bytes += track.to_string().len();
        if n_bytes > MOST_BYTES {
            break;
        }
        answers.insert(format!("terminal {id}"), track);
    }
    answers.insert("predictions".into(), run.predictions());
    answers.insert("map".into(), map(run).unwrap_or_default());
    answers.extend(samples(run, state));
    answers
}

fn file(path: &str) -> &'static str {
    FILES.iter().find(|(own, _, _)| *own == path).map_or("", |(_, _, text)| text)
}

fn page(data: &str) -> String {
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                  img-src data:; base-uri 'none'; form-action 'none'";
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    file("/index.html")
        .replace("<meta charset=\"utf-8\">", &format!("<meta charset=\"utf-8\">\n{policy}"))
        .replace("<link rel=\"icon\" href=\"icon.svg\" type=\"image/svg+xml\">\n", "")
        .replace(
            "<link rel=\"stylesheet\" href=\"style.css\">",
            &format!("<style>\n{}</style>", file("/style.css")),
        )
        .replace(
            "<script src=\"theme.js\"></script>",
            &format!("<script>\n{}</script>", file("/theme.js")),
        )
        .replace(
            "<script type=\"module\" src=\"js/main.js\"></script>",
            &format!(
                "<script type=\"application/json\" id=\"export\">{data}</script>\n\
                 <script type=\"module\">\n{}</script>",
                bundle()
            ),
        )
}

/// All modules as one script: each a function that returns what it exports.
fn bundle() -> String {
    let mut script = String::new();
    for name in MODULES {
        let mut names = Vec::new();
        script += &format!("const _{name} = (() => {{\n");
        for line in file(&format!("/js/{name}.js")).lines() {
            if let Some((what, from)) =
                line.strip_prefix("import ").and_then(|rest| rest.split_once(" from "))
            {
                let from =
                    from.trim_matches(['"', ';']).trim_start_matches("./").trim_end_matches(".js");
                script += &format!("const {what} = _{from};\n");
            } else if let Some(rest) = line.strip_prefix("export ") {
                let words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
                let keyword =
                    |word: &&str| !["", "const", "function", "class", "async"].contains(word);
                names.extend(words.into_iter().find(keyword));
                script += &format!("{rest}\n");
            } else {
                script += &format!("{line}\n");
            }
        }
        script += &format!("return {{ {} }};\n}})();\n", names.join(", "));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Scratch, lines, rows};

    #[test]
    fn every_module_of_the_page_is_in_the_file_after_those_it_needs() {
        let scripts = FILES.iter().filter(|(path, _, _)| path.starts_with("/js/")).count();
        assert_eq!(scripts, MODULES.len());
        let script = bundle();
        for (n, name) in MODULES.iter().enumerate() {
            let own = script.find(&format!("const _{name} = (")).unwrap();
            for other in &MODULES[n + 1..] {
                let used = format!("= _{other};");
                let first = script.find(&used).unwrap_or(usize::MAX);
                assert!(first > own, "{name} comes before {other}, which it needs");
            }
        }
        assert!(!script.contains("\nimport ") && !script.contains("\nexport "));
    }

    #[test]
    fn a_file_of_a_study_holds_its_comparison() {
        let scratch = Scratch::new("export-study");
        assert_eq!(export_study(scratch.path()), None);
        scratch.put("study/study.json", "{}");
        let line = json!({ "point": "default", "method": "</script><b>", "seed": 1, "curve": [],
                           "summary": { "success_final": 0.5, "success_curve": [[0, 0.1]] } });
        scratch.put("study/runs.jsonl", format!("{line}\n"));
        let page = export_study(&scratch.path().join("study")).unwrap();
        assert_eq!(page.matches("</script>").count(), 3);
        let data = page.split("id=\"export\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["list"]["studies"][0]["name"], "study");
        let found = &data["answers"]["compare 0"];
        assert_eq!(found["rows"][0]["metrics"]["success_final"]["mean"], 0.5);
        assert_eq!(found["runs"][0]["method"], "</script><b>");
    }

    #[test]
    fn a_file_holds_the_run_and_no_text_of_it_ends_the_script() {
        let scratch = Scratch::new("export");
        let lines: Vec<String> = lines(6)
            .into_iter()
            .map(|line| line.replace("<b>peg</b>", "</script><script>x"))
            .collect();
        scratch.put("run/events.jsonl", lines.concat());
        scratch.put("run/rounds.csv", rows(&lines));
        let page = export(&scratch.path().join("run"));
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(!page.contains("<script>x") && page.contains("\\u003cscript>x"));
        assert!(!page.contains("src=\"") && !page.contains("href=\"style.css"));
        let data = page.split("id=\"export\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["state"]["rows"]["round"].as_array().unwrap().len(), 6);
        assert_eq!(data["answers"]["round 6"]["decided"]["id"][0], 6);
        assert_eq!(data["answers"]["terminal 9"]["round"].as_array().unwrap().len(), 6);
        assert_eq!(data["answers"]["spent 6"]["turns"], json!([6, 0, 6]));
    }
}
