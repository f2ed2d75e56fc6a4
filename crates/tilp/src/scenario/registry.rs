//! Methods by name: the published ones with their variants, and all others.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex};

use super::assemble::{Kit, METHODS, Method};
use super::knobs::Baselines;
use super::{Scenario, ScenarioError};
use crate::allocate::{
    AdaptSfl, Asfl, FedAvg, FedSl, GaSfl, Hsfl, Planner, Published, Setup, SplitFed, SplitNn,
};
use crate::round::Allocator;
use crate::split::rule::Rule;

/// What makes a published method: its training rule, and which variant of it this is.
#[derive(Clone, Copy, Debug)]
pub struct Edition {
    /// Its training rule.
    pub(super) rule: fn(&Baselines) -> Rule,
    /// Terminals predicted late are not scheduled.
    pub(super) guard: bool,
    /// Fixed compression; zero as published.
    pub(super) compression: f64,
}

impl Edition {
    const fn published(rule: fn(&Baselines) -> Rule) -> Option<Self> {
        Some(Self { rule, guard: false, compression: 0.0 })
    }
}

/// The published methods. Adding one is adding an entry here (or, for a method without variants,
/// in `METHODS`).
pub(super) const BASELINES: [Method; 8] = [
    Method {
        name: "splitfed",
        about: "everybody, even shares, fixed cut, averaged every round",
        aggregate_every: Some(1),
        published: Edition::published(|knobs| match knobs.splitfed.version {
            2 => Rule::Sequential,
            _ => Rule::Parallel,
        }),
        build: |kit| publish(kit, |setup, _| Box::new(SplitFed::new(setup))),
    },
    Method {
        name: "fedavg",
        about: "a random fraction trains the whole model; models averaged",
        aggregate_every: Some(1),
        published: Edition::published(|knobs| Rule::Whole(knobs.local())),
        build: |kit| {
            publish(kit, |setup, knobs| Box::new(FedAvg::new(setup, knobs.fedavg.fraction)))
        },
    },
    Method {
        name: "splitnn",
        about: "one terminal after another, the front handed on",
        aggregate_every: Some(1),
        published: Edition::published(|_| Rule::Relay),
        build: |kit| publish(kit, |setup, _| Box::new(SplitNn::new(setup))),
    },
    Method {
        name: "adaptsfl",
        about: "cuts and averaging interval for the least time to a bound",
        aggregate_every: Some(NEVER),
        published: Edition::published(|_| Rule::Tiered { edges: 1 }),
        build: |kit| publish(kit, |setup, _| Box::new(AdaptSfl::new(setup))),
    },
    Method {
        name: "ga-sfl",
        about: "one common cut, shared band, one averaged gradient for all",
        aggregate_every: None,
        published: Edition::published(|_| Rule::Broadcast),
        build: |kit| publish(kit, |setup, knobs| Box::new(GaSfl::new(setup, knobs.ga_sfl()))),
    },
    Method {
        name: "hsfl",
        about: "adaptsfl with edge servers between terminals and cloud",
        aggregate_every: Some(NEVER),
        published: Edition::published(|knobs| Rule::Tiered { edges: knobs.hsfl.edges }),
        build: |kit| publish(kit, |setup, knobs| Box::new(Hsfl::new(setup, knobs.hierarchy()))),
    },
    Method {
        name: "asfl",
        about: "cuts and bandwidths for equal finishing time, everybody",
        aggregate_every: Some(1),
        published: Edition::published(|_| Rule::Parallel),
        build: |kit| publish(kit, |setup, _| Box::new(Asfl::new(setup))),
    },
    Method {
        name: "fedsl",
        about: "asfl with an energy queue, stragglers dropped to a threshold",
        aggregate_every: Some(1),
        published: Edition::published(|_| Rule::Parallel),
        build: |kit| publish(kit, |setup, knobs| Box::new(FedSl::new(setup, knobs.fedsl()))),
    },
];

/// The scenario's own schedule of averaging never comes: the method says when.
const NEVER: u64 = u64::MAX;

/// A planner with what its variant puts around it.
fn publish(kit: Kit, planner: fn(Setup, &Baselines) -> Box<dyn Planner>) -> Box<dyn Allocator> {
    let edition = kit.edition.expect("a published method has an edition");
    let setup = Setup {
        problem: kit.problem,
        rule: (edition.rule)(&kit.baselines),
        compression: edition.compression,
        rounds: kit.rounds,
        terminal_rate: kit.terminal_rate,
        seed: kit.seed,
    };
    let guard = edition.guard.then_some(kit.baselines.guard.margin);
    let planner = planner(setup.clone(), &kit.baselines);
    Box::new(Published::new(setup, planner, guard))
}

impl Method {
    /// A method of one's own: averaged as the scenario says, trained in parallel.
    pub const fn own(
        name: &'static str,
        about: &'static str,
        build: fn(Kit) -> Box<dyn Allocator>,
    ) -> Self {
        Self { name, about, aggregate_every: None, published: None, build }
    }
}

/// How a method trains; its fixed compression must be within the limit.
pub(super) fn training(scenario: &Scenario, method: Method) -> Result<Rule, ScenarioError> {
    let raw = &scenario.raw;
    let Some(edition) = method.published else { return Ok(Rule::Parallel) };
    if edition.compression > raw.limits.compression {
        return Err(ScenarioError::Range {
            field: "method".into(),
            value: method.name.into(),
            expected: format!("q up to limits.compression = {}", raw.limits.compression),
            place: scenario.place.clone(),
        });
    }
    Ok((edition.rule)(&raw.methods.baselines))
}

/// Every method there is, without the variants of the published ones.
pub fn methods() -> &'static [Method] {
    static ALL: LazyLock<Vec<Method>> = LazyLock::new(|| {
        // TiLP, then the published, then the reference rules.
        let (first, rest) = METHODS.split_at(1);
        [first, &BASELINES[..1], rest, &BASELINES[1..]].concat()
    });
    &ALL
}

/// The method of that name. A published method takes `+guard` and then `+qX`, where X is the share
/// of the payload that is left out: `asfl+guard+q0.9`.
pub fn method(name: &str) -> Result<Method, ScenarioError> {
    let mut parts = name.split('+');
    let base = parts.next().unwrap_or_default();
    let Some(mut method) = methods().iter().copied().find(|method| method.name == base) else {
        let known: Vec<&str> = methods().iter().map(|method| method.name).collect();
        return Err(wrong(name, &format!("one of {}", known.join(", "))));
    };
    let suffixes: Vec<&str> = parts.collect();
    if suffixes.is_empty() {
        return Ok(method);
    }
    let Some(edition) = &mut method.published else {
        let known: Vec<&str> = BASELINES.iter().map(|method| method.name).collect();
        let expected = format!("+guard and +qX only after one of {}", known.join(", "));
        return Err(wrong(name, &expected));
    };
    let expected = "after the name +guard, +qX or +guard+qX with 0 < X < 1, as in +guard+q0.9";
    let (guard, compression) = match suffixes[..] {
        ["guard"] => (true, 0.0),
        ["guard", q] => (true, share(q).ok_or_else(|| wrong(name, expected))?),
        [q] => (false, share(q).ok_or_else(|| wrong(name, expected))?),
        _ => return Err(wrong(name, expected)),
    };
    (edition.guard, edition.compression) = (guard, compression);
    method.name = interned(&label(base, guard, compression));
    Ok(method)
}

fn wrong(name: &str, expected: &str) -> ScenarioError {
    ScenarioError::Range {
        field: "method".into(),
        value: name.into(),
        expected: expected.into(),
        place: "--method".into(),
    }
}

/// The X of `qX`.
fn share(text: &str) -> Option<f64> {
    let number = text.strip_prefix('q')?;
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    number.parse().ok().filter(|share| plain && *share > 0.0 && *share < 1.0)
}

fn label(base: &str, guard: bool, compression: f64) -> String {
    let guard = if guard { "+guard" } else { "" };
    let q = if compression > 0.0 { format!("+q{compression}") } else { String::new() };
    format!("{base}{guard}{q}")
}

/// The same text for as long as the program runs; there are as many as variants were asked for.
fn interned(text: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(name) = names.get(text) {
        return name;
    }
    let name: &'static str = String::leak(text.to_owned());
    names.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        let said = method(name).expect_err(name).to_string();
        assert!(!said.contains('\n'), "{said}");
        said
    }

    #[test]
    fn every_published_method_has_its_variants() {
        for base in BASELINES {
            for (suffix, guard, q) in
                [("+guard", true, 0.0), ("+q0.75", false, 0.75), ("+guard+q0.9", true, 0.9)]
            {
                let name = format!("{}{suffix}", base.name);
                let found = method(&name).unwrap();
                assert_eq!(found.name, name);
                let variant = found.published.unwrap();
                assert_eq!((variant.guard, variant.compression), (guard, q));
            }
        }
        assert_eq!(method("asfl+q0.90").unwrap().name, "asfl+q0.9");
    }

    #[test]
    fn a_bad_name_is_refused_with_what_would_be_right() {
        assert!(refusal("magic+guard").contains("one of tilp, splitfed, random"));
        assert!(refusal("random+guard").contains("only after one of splitfed, fedavg"));
        for name in [
            "asfl+",
            "asfl+q",
            "asfl+q1",
            "asfl+q0",
            "asfl+qx",
            "asfl+q-0.5",
            "asfl+q0.9+guard",
            "asfl+guard+guard",
            "asfl+guard+q0.5+q0.5",
            "asfl+qnan",
            "asfl+late",
            "asfl+q1e-1",
        ] {
            assert!(refusal(name).contains("+guard+q0.9"), "{name}");
        }
    }
}
