//! Methods by name: TiLP, the published methods with their variants, and the reference rules.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::knobs::Baselines;
use super::raw::Server;
use super::{Scenario, ScenarioError};
use crate::allocate::{
    AdaptSfl, Asfl, Clock, Deficit, FedAvg, FedSl, FullRoster, GaSfl, Greedy, Hsfl, Oracle,
    OracleOptions, Planner, Problem, Published, Random, ReferenceKnobs, Setup, SplitFed, SplitNn,
    Tilp, TilpOptions,
};
use crate::rng::Seed;
use crate::round::Allocator;
use crate::split::rule::Rule;
use crate::twin::Nominal;

/// Every method there is, without the variants of the published ones. Adding a method is adding
/// an entry here.
const METHODS: [Method; 13] = [
    Method::own(
        "tilp",
        "search in a calibrated digital twin, guided by an actor and a critic",
        |inputs| {
            let known = inputs.nominal.clone();
            let tilp = Tilp::new(inputs.nominal, inputs.tilp, inputs.seed).with_clock(inputs.clock);
            Box::new(FullRoster::new(tilp, known.cost.limits, known.hardware, known.tasks))
        },
    ),
    Method {
        name: "fedavg",
        about: "a random fraction trains the whole model; models averaged",
        aggregate_every: Some(1),
        ..published(
            |knobs| Rule::Whole(knobs.fedavg.local),
            |inputs| {
                publish(inputs, |setup, knobs| Box::new(FedAvg::new(setup, knobs.fedavg.fraction)))
            },
        )
    },
    Method {
        name: "splitnn",
        about: "one terminal after another, the front handed on",
        aggregate_every: Some(1),
        ..published(
            |_| Rule::Relay,
            |inputs| publish(inputs, |setup, _| Box::new(SplitNn::new(setup))),
        )
    },
    Method {
        name: "splitfed",
        about: "everybody, even shares, fixed cut, averaged every round",
        aggregate_every: Some(1),
        ..published(
            |knobs| if knobs.splitfed.version == 2 { Rule::Sequential } else { Rule::Parallel },
            |inputs| publish(inputs, |setup, _| Box::new(SplitFed::new(setup))),
        )
    },
    Method {
        name: "adaptsfl",
        about: "cuts and averaging interval for the least time to a bound",
        aggregate_every: Some(NEVER),
        ..published(
            |_| Rule::Tiered { edges: 1 },
            |inputs| publish(inputs, |setup, knobs| Box::new(AdaptSfl::new(setup, knobs.tiers))),
        )
    },
    Method {
        name: "ga-sfl",
        about: "one common cut, shared band, one averaged gradient for all",
        ..published(
            |_| Rule::Broadcast,
            |inputs| publish(inputs, |setup, knobs| Box::new(GaSfl::new(setup, knobs.ga_sfl))),
        )
    },
    Method {
        name: "hsfl",
        about: "adaptsfl with edge servers between terminals and cloud",
        aggregate_every: Some(NEVER),
        ..published(
            |knobs| Rule::Tiered { edges: knobs.hsfl.edges },
            |inputs| {
                publish(inputs, |setup, knobs| {
                    Box::new(Hsfl::new(setup, knobs.hierarchy(), knobs.tiers))
                })
            },
        )
    },
    Method {
        name: "asfl",
        about: "cuts and bandwidths for equal finishing time, everybody",
        aggregate_every: Some(1),
        ..published(
            |_| Rule::Parallel,
            |inputs| publish(inputs, |setup, _| Box::new(Asfl::new(setup))),
        )
    },
    Method {
        name: "fedsl",
        about: "asfl with an energy queue, stragglers dropped to a threshold",
        aggregate_every: Some(1),
        ..published(
            |_| Rule::Parallel,
            |inputs| publish(inputs, |setup, knobs| Box::new(FedSl::new(setup, knobs.fedsl()))),
        )
    },
    Method::own("random", "random terminals that can make the deadline together", |inputs| {
        Box::new(Random::new(inputs.problem, inputs.knobs, inputs.seed))
    }),
    Method::own("greedy", "best channels first, equal finishing time", |inputs| {
        Box::new(Greedy::new(inputs.problem, inputs.knobs))
    }),
    Method::own(
        "deficit",
        "terminals of failing tasks drawn more often, equal finishing time",
        |inputs| Box::new(Deficit::new(inputs.problem, inputs.knobs, inputs.seed)),
    ),
    Method {
        rates_of: Some("tilp"),
        ..Method::own(
            "oracle",
            "tilp told the true world model: no method, a reference",
            |inputs| Box::new(Oracle::new(inputs.nominal, inputs.tilp, inputs.oracle, inputs.seed)),
        )
    },
];

/// The scenario's own schedule of averaging never comes: the method says when.
const NEVER: u64 = u64::MAX;

/// An allocation method by name.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Rounds between aggregations, if the method has its own rule.
    pub(super) aggregate_every: Option<u64>,
    /// The method whose learning rates it shares unless it has its own.
    pub(super) rates_of: Option<&'static str>,
    /// Rule and variant of a published method; none for all others, which train in parallel.
    pub(super) published: Option<Variant>,
    pub(super) build: fn(MethodInputs) -> Box<dyn Allocator>,
}

/// What a method may be built from: what a base station knows, and the method's own knobs.
pub struct MethodInputs {
    /// Limits, sizes and nominal hardware.
    pub problem: Problem,
    /// The same for a twin.
    pub nominal: Nominal,
    /// Knobs of the reference methods.
    pub knobs: ReferenceKnobs,
    /// Knobs of TiLP.
    pub tilp: TilpOptions,
    /// What the oracle is told.
    pub oracle: OracleOptions,
    /// A clock for methods that plan within a budget.
    pub clock: Option<Clock>,
    /// Knobs of the published methods.
    pub baselines: Baselines,
    /// Training rounds.
    pub rounds: u64,
    /// Learning rate of the terminals at the start.
    pub terminal_rate: f64,
    /// Seed of the method's own draws.
    pub seed: Seed,
    pub(super) variant: Option<Variant>,
}

/// What makes a published method: its training rule, and which variant of it this is.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    rule: fn(&Baselines) -> Rule,
    /// Terminals predicted late are not scheduled.
    guard: bool,
    /// Fixed compression; zero as published.
    compression: f64,
}

/// A published method without its name, averaged as the scenario says.
const fn published(
    rule: fn(&Baselines) -> Rule,
    build: fn(MethodInputs) -> Box<dyn Allocator>,
) -> Method {
    let variant = Variant { rule, guard: false, compression: 0.0 };
    Method { published: Some(variant), ..Method::own("", "", build) }
}

/// A planner with what its variant puts around it.
fn publish(
    inputs: MethodInputs,
    planner: fn(Setup, &Baselines) -> Box<dyn Planner>,
) -> Box<dyn Allocator> {
    let variant = inputs.variant.expect("a published method has a variant");
    let setup = Setup {
        problem: inputs.problem,
        rule: (variant.rule)(&inputs.baselines),
        compression: variant.compression,
        rounds: inputs.rounds,
        terminal_rate: inputs.terminal_rate,
        seed: inputs.seed,
    };
    let guard = variant.guard.then_some(inputs.baselines.guard.margin);
    let planner = planner(setup.clone(), &inputs.baselines);
    Box::new(Published::new(setup, planner, guard))
}

impl Method {
    /// A method of one's own: averaged as the scenario says, trained in parallel.
    pub const fn own(
        name: &'static str,
        about: &'static str,
        build: fn(MethodInputs) -> Box<dyn Allocator>,
    ) -> Self {
        Self { name, about, aggregate_every: None, rates_of: None, published: None, build }
    }

    /// How it trains; its fixed compression must be within the limit.
    pub(crate) fn training(&self, scenario: &Scenario) -> Result<Rule, ScenarioError> {
        let raw = &scenario.raw;
        let rule = |rule| match (rule, raw.learning.server) {
            (Rule::Parallel, Server::Sequential) => Rule::Sequential,
            (rule, _) => rule,
        };
        let Some(variant) = self.published else { return Ok(rule(Rule::Parallel)) };
        if variant.compression > raw.limits.compression {
            return Err(ScenarioError::Range {
                field: "method".into(),
                value: self.name.into(),
                expected: format!("q up to limits.compression = {}", raw.limits.compression),
                place: scenario.place.clone(),
            });
        }
        Ok(rule((variant.rule)(&raw.methods.baselines)))
    }
}

/// Every method there is, without the variants of the published ones.
pub fn methods() -> &'static [Method] {
    &METHODS
}

/// The method of that name. A published method takes `+guard` and then `+qX`, where X is the share
/// of the payload that is left out: `asfl+guard+q0.9`.
pub fn method(name: &str) -> Result<Method, ScenarioError> {
    let mut parts = name.split('+');
    let base = parts.next().unwrap_or_default();
    let Some(method) = METHODS.iter().copied().find(|method| method.name == base) else {
        return Err(wrong(name, &format!("one of {}", names(|_| true))));
    };
    match parts.collect::<Vec<_>>()[..] {
        [] => Ok(method),
        ref suffixes => variant(name, method, suffixes),
    }
}

/// A variant of a published method; it has that method's learning rates unless it has its own.
fn variant(name: &str, base: Method, suffixes: &[&str]) -> Result<Method, ScenarioError> {
    let Some(variant) = base.published else {
        let known = names(|method| method.published.is_some());
        return Err(wrong(name, &format!("+guard and +qX only after one of {known}")));
    };
    let q = |text| {
        let expected = "after the name +guard, +qX or +guard+qX with 0 < X < 1, as in +guard+q0.9";
        share(text).ok_or_else(|| wrong(name, expected))
    };
    let (guard, compression) = match *suffixes {
        ["guard"] => (true, 0.0),
        ["guard", last] => (true, q(last)?),
        [only] => (false, q(only)?),
        _ => (false, q("")?),
    };
    Ok(Method {
        name: interned(&label(base.name, guard, compression)),
        rates_of: Some(base.name),
        published: Some(Variant { guard, compression, ..variant }),
        ..base
    })
}

fn names(among: fn(&Method) -> bool) -> String {
    let known: Vec<&str> = METHODS.iter().filter(|one| among(one)).map(|one| one.name).collect();
    known.join(", ")
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
        for base in METHODS.iter().filter(|method| method.published.is_some()) {
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
        assert!(refusal("magic+guard").contains("one of tilp, fedavg, splitnn"));
        assert!(refusal("random+guard").contains("only after one of fedavg, splitnn"));
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
