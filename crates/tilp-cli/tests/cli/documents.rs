//! What the documents name exists: paths, links, commands and their flags, and the numbers of the
//! README. `UPDATE_EXPECT=1` rewrites what is generated.

mod commands;
mod generated;
mod markdown;
mod mistakes;
mod paths;
mod reference;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};

use markdown::{Piece, pieces};

/// The definition that the program itself parses with.
#[path = "../../src/arguments/mod.rs"]
#[allow(dead_code, unused_imports)]
mod arguments;

/// Folders that hold no documents of the repository.
const SKIPPED: [&str; 5] = ["target", "runs", "studies", "lib", "node_modules"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the crate lies in its workspace")
}

/// Every file below a folder whose name ends like this, in the order of their paths.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A document of the repository.
struct Document {
    /// Where it is, seen from the root.
    name: String,
    path: PathBuf,
    pieces: Vec<Piece>,
}

fn documents() -> Vec<Document> {
    let root = root();
    let read = |path: PathBuf| Document {
        name: path.strip_prefix(&root).unwrap().display().to_string(),
        pieces: pieces(&fs::read_to_string(&path).unwrap()),
        path,
    };
    let found: Vec<Document> = files(&root, &[".md"]).into_iter().map(read).collect();
    assert!(found.iter().any(|one| one.name == "README.md") && found.len() > 20);
    found
}

/// Fails with one line for every piece of every document that `wrong` objects to.
fn check(wrong: impl Fn(&Document, &Piece) -> Vec<String>) {
    let documents = documents();
    let problems = documents.iter().flat_map(|document| {
        let of_piece = |piece| {
            let found: Vec<String> = wrong(document, piece);
            found.into_iter().map(|what| format!("{}:{}: {what}", document.name, piece.line))
        };
        document.pieces.iter().flat_map(of_piece).collect::<Vec<_>>()
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "in the documents:\n{}", problems.join("\n"));
}
