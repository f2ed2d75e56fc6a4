//! Paths and links.

use std::fs;
use std::path::Path;

use super::markdown::{Kind, Piece, anchor, pieces};
use super::{Document, check, root};

/// What paths of the repository begin with.
const FOLDERS: [&str; 7] =
    ["crates/", "bindings/", "docs/", "configs/", "tools/", "cluster/", ".ci/"];

/// Parts of the repository that are made by a command of the page, not kept.
const MADE: [&str; 2] = ["tools/mujoco/lib", "tools/sionna/.venv"];

#[test]
fn every_path_that_a_document_names_exists() {
    check(|document, piece| match piece.kind {
        Kind::Link | Kind::Heading => Vec::new(),
        _ => named_paths(&piece.text)
            .into_iter()
            .filter_map(|path| missing(document, path))
            .collect(),
    });
}

/// The words of some code that look like paths of the repository.
fn named_paths(code: &str) -> Vec<&str> {
    let words = code.split([' ', '"', '(', ')', ',', ';', '<', '>', '=', '\'']);
    let words = words.map(|word| word.trim_start_matches("./").trim_end_matches(['.', ':', ']']));
    let is_path = |word: &&str| {
        let is_capital = |name: &str| !name.is_empty() && name.chars().all(char::is_uppercase);
        word.strip_suffix(".md").is_some_and(is_capital)
            || FOLDERS.iter().any(|folder| word.starts_with(folder))
    };
    words.filter(is_path).collect()
}

fn missing(document: &Document, path: &str) -> Option<String> {
    if MADE.iter().any(|made| path.starts_with(made)) {
        return None;
    }
    // Of a pattern the folder in front of it is checked; of a placeholder, too.
    let is_fixed = |part: &&str| {
        !part.contains(['*', '{', '$']) && !part.chars().all(|c| c.is_ascii_uppercase())
    };
    let fixed: Vec<&str> = path.split('/').take_while(is_fixed).collect();
    let fixed = fixed.join("/");
    let beside = document.path.parent().unwrap().join(&fixed);
    match root().join(&fixed).exists() || beside.exists() {
        true => None,
        false => Some(format!("there is no `{path}`")),
    }
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading_that_exist() {
    check(|document, piece| match piece.kind {
        Kind::Link => broken(document, piece).into_iter().collect(),
        _ => Vec::new(),
    });
}

fn broken(document: &Document, link: &Piece) -> Option<String> {
    let target = link.text.as_str();
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => document.path.clone(),
        file => document.path.parent().unwrap().join(file),
    };
    if !path.exists() {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    (!heading.is_empty() && !has_heading(&path, heading))
        .then(|| format!("the link `{target}` leads to a heading that is not there"))
}

fn has_heading(path: &Path, wanted: &str) -> bool {
    let Ok(text) = fs::read_to_string(path) else { return false };
    pieces(&text).iter().any(|one| one.kind == Kind::Heading && anchor(&one.text) == wanted)
}

#[test]
fn paths_are_recognised_in_sentences_and_in_commands() {
    assert_eq!(named_paths("docs/x.md"), ["docs/x.md"]);
    assert_eq!(named_paths("README.md"), ["README.md"]);
    assert_eq!(named_paths("cluster/slurm/submit 8 /scratch/x"), ["cluster/slurm/submit"]);
    assert_eq!(named_paths("tilp run --out runs/a"), [""; 0]);
}
