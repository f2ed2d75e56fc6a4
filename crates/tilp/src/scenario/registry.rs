//! Methods by name: TiLP, the published methods with their variants, and the reference rules.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use super::check::{Uses, knobs_of};
use super::knobs::Baselines;
use super::learning::Server;
use super::program::{Outside, PREFIX, seed_number};
use super::{Scenario, ScenarioError};
use crate::allocate::{
    AdaptSfl, Asfl, Clairvoyant, Clock, Deficit, FedAvg, FedSl, GaSfl, Greedy, Hsfl, Oracle,
    OracleOptions, Planner, Problem, Published, Random, ReferenceKnobs, Setup, SplitFed, SplitNn,
    Tilp, TilpOptions,
};
use crate::exchange::Declaration;
use crate::rng::Seed;
use crate::round::{Allocator, DecideError, Decision, Observation};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::split::rule::Rule;
use crate::twin::Nominal;

/// The methods that come with the library, in the order of the paper's tables.
static BUILTIN: LazyLock<Registry> = LazyLock::new(|| {
    let tilp = Method::own(
        "tilp",
        "search in a calibrated digital twin, guided by an actor and a critic",
        |inputs| {
            let tilp = Tilp::new(inputs.nominal, inputs.tilp, inputs.seed);
            Box::new(tilp.with_clock(inputs.clock))
        },
    );
    let methods = [tilp].into_iter().chain(published_methods()).chain(reference_methods());
    Registry { methods: methods.collect() }
});

/// The eight published methods.
fn published_methods() -> [Method; 8] {
    let fedavg = "a random fraction trains the whole model; models averaged";
    let splitnn = "one terminal after another, the front handed on";
    let splitfed = "all terminals, even shares, fixed cut, averaged every round";
    let adaptsfl = "cuts and averaging interval for the least time to a bound";
    let ga_sfl = "one common cut, shared band, one averaged gradient for all";
    let hsfl = "adaptsfl with edge servers between terminals and cloud";
    let asfl = "cuts and bandwidths for equal finishing time, all terminals";
    let fedsl = "asfl with an energy queue, stragglers dropped to a threshold";
    let version = |knobs: &Baselines| match knobs.splitfed.version {
        2 => Rule::Sequential,
        _ => Rule::Parallel,
    };
    [
        published(
            "fedavg",
            fedavg,
            |knobs| Rule::Whole(knobs.fedavg.local),
            |setup, knobs| Box::new(FedAvg::new(setup, knobs.fedavg.fraction)),
        )
        .aggregating(1),
        published("splitnn", splitnn, |_| Rule::Relay, |setup, _| Box::new(SplitNn::new(setup)))
            .aggregating(1),
        published("splitfed", splitfed, version, |setup, _| Box::new(SplitFed::new(setup)))
            .aggregating(1),
        published(
            "adaptsfl",
            adaptsfl,
            |_| Rule::Tiered { edges: 1 },
            |setup, knobs| Box::new(AdaptSfl::new(setup, knobs.tiers)),
        )
        .aggregating(NEVER),
        published(
            "ga-sfl",
            ga_sfl,
            |_| Rule::Broadcast,
            |setup, knobs| Box::new(GaSfl::new(setup, knobs.ga_sfl)),
        ),
        published(
            "hsfl",
            hsfl,
            |knobs| Rule::Tiered { edges: knobs.hsfl.edges },
            |setup, knobs| Box::new(Hsfl::new(setup, knobs.hierarchy(), knobs.tiers)),
        )
        .aggregating(NEVER),
        published("asfl", asfl, |_| Rule::Parallel, |setup, _| Box::new(Asfl::new(setup)))
            .aggregating(1),
        published(
            "fedsl",
            fedsl,
            |_| Rule::Parallel,
            |setup, knobs| Box::new(FedSl::new(setup, knobs.fedsl())),
        )
        .aggregating(1),
    ]
}

/// The reference rules.
fn reference_methods() -> [Method; 5] {
    [
        Method::own("random", "random terminals that can make the deadline together", |inputs| {
            Box::new(Random::new(inputs.problem, inputs.knobs, inputs.seed))
        }),
        Method::own("greedy", "best channels first, equal finishing time", |inputs| {
            Box::new(Greedy::new(inputs.problem, inputs.knobs))
        }),
        Method::own(
            "deficit",
            "failing terminals drawn more often, equal finishing time",
            |inputs| Box::new(Deficit::new(inputs.problem, inputs.knobs, inputs.seed)),
        ),
        Method {
            rates_of: Some("deficit".into()),
            ..Method::own(
                "clairvoyant",
                "deficit with the true success of every terminal: a reference, not a method",
                |inputs| Box::new(Clairvoyant::new(inputs.problem, inputs.knobs, inputs.seed)),
            )
        },
        Method {
            rates_of: Some("tilp".into()),
            ..Method::own(
                "oracle",
                "tilp with the true model of the cell: a reference, not a method",
                |inputs| {
                    let MethodInputs { nominal, tilp, oracle, seed, .. } = inputs;
                    Box::new(Oracle::new(nominal, tilp, oracle, seed))
                },
            )
        },
    ]
}

/// The scenario's own schedule of averaging never comes: the method says when.
const NEVER: u64 = u64::MAX;

/// Makes the allocator of a run. It may capture state and is called once per run, from any thread.
type Build = dyn Fn(MethodInputs) -> Box<dyn Allocator> + Send + Sync;

/// An allocation method by name.
#[derive(Clone)]
pub struct Method {
    name: Cow<'static, str>,
    about: Cow<'static, str>,
    /// Rounds between aggregations, if the method has its own rule.
    pub(super) aggregate_every: Option<u64>,
    /// The method whose learning rates it shares unless it has its own.
    pub(super) rates_of: Option<Cow<'static, str>>,
    /// The program that decides, if it is one outside.
    pub(super) outside: Option<Outside>,
    /// Declarations of a user-defined method.
    declared: Option<Declaration>,
    /// Rule and variant of a published method; none for all others, which train in parallel.
    pub(super) published: Option<Variant>,
    build: Arc<Build>,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Method").field("name", &self.name).finish_non_exhaustive()
    }
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
    /// Parts of the truth that the oracle receives.
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

impl MethodInputs {
    /// The seed as a number, for a method that is not written in Rust.
    pub fn seed_number(&self) -> u64 {
        seed_number(self.seed)
    }
}

/// What makes a published method: its training rule, and which variant of it this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    rule: fn(&Baselines) -> Rule,
    /// Terminals predicted late are not scheduled.
    guard: bool,
    /// Fixed compression; zero as published.
    compression: f64,
}

/// A published method, averaged as the scenario says.
fn published(
    name: &'static str,
    about: &'static str,
    rule: fn(&Baselines) -> Rule,
    planner: fn(Setup, &Baselines) -> Box<dyn Planner>,
) -> Method {
    let variant = Variant { rule, guard: false, compression: 0.0 };
    let build = move |inputs| publish(inputs, planner);
    Method { published: Some(variant), ..Method::own(name, about, build) }
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

/// Placeholder for a method that is defined elsewhere.
struct Elsewhere;

impl Persist for Elsewhere {
    fn restore(&mut self, _: &Snapshot) -> Result<(), SnapshotError> {
        let expected =
            "a method of this program: resume the run with the program that defines its method";
        Err(SnapshotError::value("method", "one defined elsewhere", expected))
    }
}

impl Allocator for Elsewhere {
    fn decide(&mut self, seen: &Observation) -> Result<Decision, DecideError> {
        let reason = "it is defined elsewhere, expected to be run where it is defined".to_owned();
        Err(DecideError::Failed { round: seen.round, reason })
    }
}

impl Method {
    /// A user-defined method, with the scenario's aggregation and parallel training. `build` is called
    /// for every run and may capture state.
    pub fn own(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        build: impl Fn(MethodInputs) -> Box<dyn Allocator> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            aggregate_every: None,
            rates_of: None,
            outside: None,
            declared: None,
            published: None,
            build: Arc::new(build),
        }
    }

    /// A method that is an external program, started for every run: see
    /// `docs/howto/outside-program.md`. `command` is divided into words by spaces and quotes.
    pub fn outside(command: &str) -> Result<Self, ScenarioError> {
        let outside = Some(Outside::new(command)?);
        let build = |_| unreachable!("a program is started, not built");
        Ok(Self { outside, ..Self::own(format!("{PREFIX}{command}"), "a program outside", build) })
    }

    /// A method known only from a record: its runs can be reported, replayed and compared,
    /// but it cannot decide. Only a program that defines the method can resume its runs.
    pub fn recorded(name: &str, declaration: Declaration) -> Self {
        let build = |_| Box::new(Elsewhere) as Box<dyn Allocator>;
        Self::own(name.to_owned(), "a method defined elsewhere", build).declared(declaration)
    }

    /// The same method with what it declares: training rule, learning rates, aggregation.
    pub fn declared(self, declaration: Declaration) -> Self {
        let aggregate_every = declaration.aggregate_every.or(self.aggregate_every);
        Self { declared: Some(declaration), aggregate_every, ..self }
    }

    /// What the method declared; none if it did not, or is a program that was not asked yet.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.declared.as_ref()
    }

    /// The same method with its own interval of aggregation instead of the scenario's.
    pub fn aggregating(self, every: u64) -> Self {
        Self { aggregate_every: Some(every), ..self }
    }

    /// The name on the command line and in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does, in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    pub(super) fn build(&self, inputs: MethodInputs) -> Box<dyn Allocator> {
        (self.build)(inputs)
    }

    /// Which shared knobs it uses. Methods of the user's own may use all.
    fn uses(&self) -> Uses {
        let is_tilp = ["tilp", "oracle"].contains(&&*self.name);
        let compression = !is_tilp && self.published.is_none();
        Uses { cut: !is_tilp, compression, search: is_tilp }
    }

    /// How it trains. The knobs it uses must fit the limits, its fixed compression included; other
    /// knobs are not looked at.
    pub(crate) fn training(&self, scenario: &Scenario) -> Result<Rule, ScenarioError> {
        let raw = &scenario.raw;
        knobs_of(raw, &scenario.place, self.uses())?;
        let rule = |rule| match (rule, raw.learning.server) {
            (Rule::Parallel, Server::Sequential) => Rule::Sequential,
            (rule, _) => rule,
        };
        let Some(variant) = self.published else {
            let declared = self.declaration().map_or(Rule::Parallel, |one| one.training.into());
            return Ok(rule(declared));
        };
        if variant.compression > raw.limits.compression {
            return Err(ScenarioError::Range {
                field: "method".into(),
                value: self.name.to_string(),
                expected: format!("q up to limits.compression = {}", raw.limits.compression),
                place: scenario.place.clone(),
            });
        }
        Ok(rule((variant.rule)(&raw.methods.baselines)))
    }
}

/// Methods by name: those of the library, and those that were added.
#[derive(Clone, Debug)]
pub struct Registry {
    methods: Vec<Method>,
}

impl Registry {
    /// The methods of the library.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// Adds a method. Its name must be new; letters, digits, `-`, `_` and `.` are allowed in it, since
    /// it becomes part of the names of folders and `+` introduces variants.
    pub fn add(&mut self, method: Method) -> Result<(), ScenarioError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = method.name();
        if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
            return Err(wrong(name, "letters, digits, -, _ and . with no . in front"));
        }
        if self.methods.iter().any(|other| other.name() == name) {
            return Err(wrong(name, "a name that no other method has"));
        }
        self.methods.push(method);
        Ok(())
    }

    /// Every method there is, without the variants of the published ones.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The method of that name. A published method takes `+guard` and then `+qX`, where X is the
    /// share of the payload that is left out: `asfl+guard+q0.9`. `exec:PROGRAM` is a program outside,
    /// with its arguments.
    pub fn method(&self, name: &str) -> Result<Method, ScenarioError> {
        if let Some(command) = name.strip_prefix(PREFIX) {
            return Method::outside(command);
        }
        let mut parts = name.split('+');
        let base = parts.next().unwrap_or_default();
        let Some(method) = self.methods.iter().find(|method| method.name() == base) else {
            return Err(wrong(name, &format!("one of {}, or exec:PROGRAM", self.names(|_| true))));
        };
        match parts.collect::<Vec<_>>()[..] {
            [] => Ok(method.clone()),
            ref suffixes => self.variant(name, method, suffixes),
        }
    }

    /// A variant of a published method; it has that method's learning rates unless it has its own.
    fn variant(
        &self,
        name: &str,
        base: &Method,
        suffixes: &[&str],
    ) -> Result<Method, ScenarioError> {
        let Some(variant) = base.published else {
            let known = self.names(|method| method.published.is_some());
            return Err(wrong(name, &format!("+guard and +qX only after one of {known}")));
        };
        let q = |text| {
            let expected =
                "after the name +guard, +qX or +guard+qX with 0 < X < 1, as in +guard+q0.9";
            share(text).ok_or_else(|| wrong(name, expected))
        };
        let (guard, compression) = match *suffixes {
            ["guard"] => (true, 0.0),
            ["guard", last] => (true, q(last)?),
            [only] => (false, q(only)?),
            _ => (false, q("")?),
        };
        Ok(Method {
            name: label(base.name(), guard, compression).into(),
            rates_of: Some(base.name.clone()),
            published: Some(Variant { guard, compression, ..variant }),
            ..base.clone()
        })
    }

    fn names(&self, among: fn(&Method) -> bool) -> String {
        let known = self.methods.iter().filter(|one| among(one)).map(Method::name);
        known.collect::<Vec<_>>().join(", ")
    }
}

/// The methods of the library, without the variants of the published ones.
pub fn methods() -> &'static [Method] {
    &BUILTIN.methods
}

/// The method of the library with that name: see [`Registry::method`].
pub fn method(name: &str) -> Result<Method, ScenarioError> {
    BUILTIN.method(name)
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
        for base in methods().iter().filter(|method| method.published.is_some()) {
            for (suffix, guard, q) in
                [("+guard", true, 0.0), ("+q0.75", false, 0.75), ("+guard+q0.9", true, 0.9)]
            {
                let name = format!("{}{suffix}", base.name());
                let found = method(&name).unwrap();
                assert_eq!(found.name(), name);
                let variant = found.published.unwrap();
                assert_eq!((variant.guard, variant.compression), (guard, q));
            }
        }
        assert_eq!(method("asfl+q0.90").unwrap().name(), "asfl+q0.9");
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
    /// A method that can never be built: only its name is looked at.
    fn named(name: &str) -> Method {
        Method::own(name.to_owned(), "none", |_| unreachable!("no run is assembled"))
    }

    #[test]
    fn a_method_made_at_run_time_is_registered_in_one_line() {
        let mut registry = Registry::builtin();
        registry.add(named("mine")).unwrap();
        assert_eq!(registry.method("mine").unwrap().name(), "mine");
        assert_eq!(registry.methods().len(), methods().len() + 1);
        assert!(method("mine").is_err(), "the methods of the library stay as they are");
        let said = registry.method("yours").unwrap_err().to_string();
        assert!(said.contains("oracle, mine"), "{said}");
    }

    #[test]
    fn a_name_that_is_taken_or_cannot_be_a_folder_is_refused() {
        let mut registry = Registry::builtin();
        for (name, expected) in [
            ("tilp", "no other method"),
            ("", "letters"),
            ("a+b", "letters"),
            ("a/b", "letters"),
            ("..", "letters"),
        ] {
            let said = registry.add(named(name)).unwrap_err().to_string();
            assert!(said.contains(expected) && !said.contains('\n'), "{said}");
        }
    }
}
