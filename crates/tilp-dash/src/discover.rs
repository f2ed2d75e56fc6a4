//! Run folders and studies below the directories that were asked for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bounded;

/// Levels below a root that are looked at.
const MOST_LEVELS: usize = 8;
/// Folders that are looked at in all. A root such as `/` must not occupy the machine.
const MOST_FOLDERS: usize = 50_000;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Run folders, sorted by id.
    pub runs: Vec<Place>,
    /// Folders of studies, sorted by id.
    pub studies: Vec<Place>,
    /// There was more to look at than is looked at.
    pub is_cut: bool,
}

/// A folder that is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the root, and the path below it. Requests name places by this id, never by a path.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// Id of the study that contains it.
    pub study: Option<String>,
}

impl Place {
    /// The name of its folder; of a root without one, its id.
    pub fn name(&self) -> String {
        self.path.file_name().map_or(self.id.clone(), |name| name.to_string_lossy().into_owned())
    }
}

/// Looks for runs and studies. Links are not followed: nothing outside the roots is shown.
pub(crate) fn discover(roots: &[PathBuf]) -> Found {
    let mut found = Found::default();
    let mut n_folders = 0;
    for (n, root) in roots.iter().enumerate() {
        let mut open = vec![(root.clone(), n.to_string(), None::<String>, 0)];
        while let Some((path, id, study, level)) = open.pop() {
            n_folders += 1;
            if n_folders > MOST_FOLDERS {
                found.is_cut = true;
                break;
            }
            let place = Place { id: id.clone(), path: path.clone(), study: study.clone() };
            if is_run(&path) {
                found.runs.push(place);
                continue;
            }
            let mut study = study;
            if bounded::about(&path.join("study.json")).is_some() {
                study = Some(id.clone());
                found.studies.push(place);
            }
            if level < MOST_LEVELS {
                let below = folders(&path).into_iter();
                open.extend(
                    below.map(|(name, path)| {
                        (path, format!("{id}/{name}"), study.clone(), level + 1)
                    }),
                );
            }
        }
    }
    found.runs.sort();
    found.studies.sort();
    found
}

/// A run has said which one it is, or left rows.
fn is_run(path: &Path) -> bool {
    let names = ["manifest.json", "events.jsonl", "rounds.csv"];
    names.iter().any(|name| bounded::about(&path.join(name)).is_some())
}

/// Folders in a folder, with their names. Hidden ones and those of build tools hold no runs.
fn folders(path: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let folder = |entry: fs::DirEntry| {
        let name = entry.file_name().to_str()?.to_owned();
        let is_folder = entry.file_type().ok()?.is_dir();
        let is_other = name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str());
        (is_folder && !is_other).then(|| (name, entry.path()))
    };
    entries.filter_map(Result::ok).filter_map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Scratch;

    fn ids(places: &[Place]) -> Vec<&str> {
        places.iter().map(|place| place.id.as_str()).collect()
    }

    #[test]
    fn runs_and_studies_are_found_below_every_root() {
        let scratch = Scratch::new("discover");
        for file in [
            "a/one/manifest.json",
            "a/two/events.jsonl",
            "a/study/study.json",
            "a/study/runs/default/tilp-0/manifest.json",
            "a/.hidden/run/manifest.json",
            "a/target/run/manifest.json",
            "a/nothing/readme.txt",
            "b/manifest.json",
            "b/checkpoint/inner/manifest.json",
        ] {
            scratch.put(file, "{}");
        }
        let found = discover(&[scratch.path().join("a"), scratch.path().join("b")]);
        assert_eq!(ids(&found.runs), ["0/one", "0/study/runs/default/tilp-0", "0/two", "1"]);
        assert_eq!(ids(&found.studies), ["0/study"]);
        assert_eq!(found.runs[1].study.as_deref(), Some("0/study"));
        assert!(!found.is_cut);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_root_leads_nowhere() {
        let scratch = Scratch::new("discover-link");
        scratch.put("outside/run/manifest.json", "{}");
        scratch.put("inside/own/manifest.json", "{}");
        let (from, to) = (scratch.path().join("outside"), scratch.path().join("inside/link"));
        std::os::unix::fs::symlink(from, to).unwrap();
        let manifest = scratch.path().join("outside/run/manifest.json");
        std::fs::create_dir(scratch.path().join("inside/other")).unwrap();
        let linked = scratch.path().join("inside/other/manifest.json");
        std::os::unix::fs::symlink(manifest, linked).unwrap();
        let found = discover(&[scratch.path().join("inside")]);
        assert_eq!(ids(&found.runs), ["0/own"]);
    }

    #[test]
    fn a_root_that_is_not_there_has_no_runs() {
        assert_eq!(discover(&[PathBuf::from("/no/such/folder")]), Found::default());
    }
}
