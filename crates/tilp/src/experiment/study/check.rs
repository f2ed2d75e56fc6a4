//! Checks of a plan: `study.json` may come from any source, and names in it become folders.

use super::{Plan, PlannedPoint};
use crate::scenario::{Registry, Scenario, hexadecimal};

/// Largest number of replicates of a seed.
const MOST_REPLICATES: u64 = 1000;

impl Plan {
    /// Refuses an invalid plan, in one line: field, value, expectation.
    pub fn check(&self, scenario: &Scenario, registry: &Registry) -> Result<(), String> {
        if self.scenario != scenario.name() {
            let expected = scenario.name();
            return Err(format!("scenario is `{}`, expected `{expected}`", self.scenario));
        }
        self.check_seeds()?;
        self.check_points(registry)?;
        let reference = &self.reference;
        if !self.subjects().contains(reference) {
            let (point, method) = (&reference.point, &reference.method);
            return Err(format!("reference is `{method}` at `{point}`, expected one of the rows"));
        }
        Ok(())
    }

    fn check_seeds(&self) -> Result<(), String> {
        if self.seeds.is_empty() {
            return Err("seeds are none, expected at least one".to_owned());
        }
        if !(1..=MOST_REPLICATES).contains(&self.replicates) {
            let found = self.replicates;
            return Err(format!("replicates are {found}, expected 1 to {MOST_REPLICATES}"));
        }
        match repeated(self.seeds.iter()) {
            Some(seed) => Err(format!("seeds have {seed} twice, expected each once")),
            None => Ok(()),
        }
    }

    fn check_points(&self, registry: &Registry) -> Result<(), String> {
        if self.points.is_empty() {
            return Err("points are none, expected at least one".to_owned());
        }
        self.points.iter().try_for_each(|point| check_methods(point, registry))?;
        let folders = self.points.iter().map(|point| folder_name(&point.label));
        match repeated(folders) {
            Some(folder) => {
                Err(format!("points have two labels for the folder `{folder}`, expected one each"))
            }
            None => Ok(()),
        }
    }
}

fn check_methods(point: &PlannedPoint, registry: &Registry) -> Result<(), String> {
    let PlannedPoint { label, methods, .. } = point;
    if methods.is_empty() {
        return Err(format!("methods at `{label}` are none, expected at least one"));
    }
    for name in methods {
        let known = registry.method(name).map_err(|error| error.to_string())?;
        if known.name() != name {
            return Err(format!("method is `{name}`, expected `{}`", known.name()));
        }
    }
    if let Some(name) = repeated(methods.iter()) {
        return Err(format!("methods at `{label}` have `{name}` twice, expected each once"));
    }
    match repeated(methods.iter().map(|name| folder_name(name))) {
        Some(folder) => {
            Err(format!("methods at `{label}` have two names for the folder `{folder}-SEED`"))
        }
        None => Ok(()),
    }
}

/// An element that occurs twice.
fn repeated<T: Ord>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    let at = all.windows(2).position(|pair| pair[0] == pair[1])?;
    Some(all.swap_remove(at))
}

/// Largest number of characters in the name of a folder: file systems allow 255 bytes.
const MOST_CHARACTERS: usize = 80;

/// A name as a folder name: for any name, the folder lies in its parent and is not hidden.
pub fn folder_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_+.".contains(c) { c } else { '_' };
    let mut plain: String = name.chars().map(plain).collect();
    if plain.chars().count() > MOST_CHARACTERS {
        // The end of a long name is cut; a digest keeps two such names apart.
        let digest: String = hexadecimal(name).chars().take(12).collect();
        plain = plain.chars().take(MOST_CHARACTERS - 13).chain("-".chars()).collect();
        plain += &digest;
    }
    let name = plain;
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "_".to_owned(),
        None => name,
    }
}
