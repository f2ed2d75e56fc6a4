//! Decisions and books of the published methods and of their variants.

use std::sync::LazyLock;

use rand::RngExt;
use tilp::allocate::{
    AdaptSfl, Asfl, FedAvg, FedSl, FedSlKnobs, GaSfl, GaSflKnobs, Hierarchy, Hsfl, Planner,
    Published, Setup, SplitFed, SplitNn, TierKnobs,
};
use tilp::cost::Profile;
use tilp::rng::{Rng, Seed};
use tilp::round::{Allocator, Decision, Observation, ProjectedDecision};
use tilp::run::RoundRecord;
use tilp::scenario::methods;
use tilp::snapshot::{Persist, Snapshot};
use tilp::split::rule::{Local, Rule};
use tilp::units::{Bytes, Gain, Hertz};
use tilp::wireless::RateModel;

use crate::methods::{assert_hard_domain, observation, problem, profile};
use crate::rounds::{books, observe, step, until};
use crate::worlds;

/// Name, training rule and planner of every published method.
type Build = fn(Setup) -> Box<dyn Planner>;

const WIRED: Hierarchy = Hierarchy { edges: 5, backhaul_bps: 1e9 };
const TIERS: TierKnobs = TierKnobs { longest_interval: 100, pace: 0.05 };

const METHODS: [(&str, Rule, Build); 10] = [
    ("fedavg", Rule::Whole(Local::Steps(4)), |setup| Box::new(FedAvg::new(setup, 0.1))),
    ("fedavg, all", Rule::Whole(Local::Epochs(1)), |setup| Box::new(FedAvg::new(setup, 1.0))),
    ("splitnn", Rule::Relay, |setup| Box::new(SplitNn::new(setup))),
    ("splitfed", Rule::Parallel, |setup| Box::new(SplitFed::new(setup))),
    ("adaptsfl", Rule::Tiered { edges: 1 }, |setup| Box::new(AdaptSfl::new(setup, TIERS))),
    ("ga-sfl", Rule::Broadcast, |setup| {
        Box::new(GaSfl::new(setup, GaSflKnobs { bound_weight_s: 1.0, privacy: 0.1 }))
    }),
    ("hsfl", Rule::Tiered { edges: 5 }, |setup| Box::new(Hsfl::new(setup, Some(WIRED), TIERS))),
    ("asfl", Rule::Parallel, |setup| Box::new(Asfl::new(setup))),
    ("fedsl", Rule::Parallel, |setup| Box::new(fedsl(setup, None))),
    ("fedsl, budget", Rule::Parallel, |setup| {
        // Five joules beyond the budget so far.
        let mut spent = Snapshot::default();
        spent.put_f64("fedsl/backlog_j", vec![5.0]);
        let mut planner = fedsl(setup, Some(1.0));
        planner.restore(&spent).unwrap();
        Box::new(planner)
    }),
];

fn fedsl(setup: Setup, budget_j: Option<f64>) -> FedSl {
    let (turns, priced_turns) = (10, 3);
    let knobs = FedSlKnobs { budget_j, time_weight: 1.0, threshold: 0.8, turns, priced_turns };
    FedSl::new(setup, knobs)
}

const N_OBSERVATIONS: u64 = 1000;

/// Sizes of the default policy.
static PROFILE: LazyLock<Profile> = LazyLock::new(profile);

struct Case {
    setup: Setup,
    seen: Observation,
}

/// From one terminal to two hundred, most often a few.
fn case(index: u64, rule: Rule, compression: f64) -> Case {
    let profile = &*PROFILE;
    let seed = Seed::new(index).named("baselines");
    let mut rng = seed.rng();
    let n_terminals = 1 + (200.0 * rng.random::<f64>().powi(5)) as usize;
    let (mut problem, hardware) = problem(profile, n_terminals, &mut rng);
    let mut seen = observation(profile, &hardware, &mut rng);
    spoil(&mut seen, &mut rng);
    if rng.random_range(0..10) == 0 {
        problem.cost.limits.cuts = vec![4];
    }
    problem.cut = problem.cost.limits.cuts[0];
    if index >= 20 {
        problem.cost.rate_model = RateModel::Held; // inverting the averaged rate takes long
    }
    let terminal_rate = 0.05;
    Case { setup: Setup { problem, rule, compression, rounds: 1000, terminal_rate, seed }, seen }
}

/// Sometimes all channels are dead, or no terminal can hold more than the shallowest cut, or any.
fn spoil(seen: &mut Observation, rng: &mut Rng) {
    let kind = rng.random_range(0..12);
    for view in &mut seen.terminals {
        match kind {
            0 => view.report.gain = Gain(0.0),
            1 => view.report.gain = Gain(1e-30),
            2 => view.report.memory = PROFILE.memory(2),
            3 => view.report.memory = Bytes(1),
            _ => {}
        }
    }
}

/// Delays and memory needs of a decision as a base station predicts them.
fn predicted(case: &Case, plan: &ProjectedDecision) -> Vec<(f64, bool)> {
    let Setup { problem, rule, .. } = &case.setup;
    let delays = case.setup.delays(&case.seen, plan, problem.cost.limits.deadline);
    let of = |n: usize| {
        let need = problem.cost.memory(*rule, plan.decision().terminals[n].cut);
        (delays[n].0, need <= case.seen.terminals[n].report.memory)
    };
    plan.decision().scheduled().map(of).collect()
}

/// The band is used up: in sequential split learning by one terminal after another, otherwise by all together,
/// except for the slices of terminals with pending uploads.
fn assert_band(case: &Case, decision: &Decision) {
    let band = case.setup.problem.cost.limits.bandwidth.0;
    let scheduled: Vec<usize> = decision.scheduled().collect();
    if case.setup.rule == Rule::Relay {
        assert!(scheduled.iter().all(|&n| decision.terminals[n].bandwidth.0 == band));
        return;
    }
    let left = case.setup.band(&case.seen, &scheduled, case.seen.aggregates).0;
    let used = decision.bandwidth().0;
    assert!(used <= band * (1.0 + 1e-9), "{used} of {band}");
    // Methods that take rates as given ignore pending uploads.
    assert!(used >= left * (1.0 - 1e-9) || decision.fallback, "{used} of {left} left");
}

/// A method that chooses cuts chooses cuts that fit, or marks a fallback.
fn assert_memory(case: &Case, decision: &Decision) {
    let chooses = !matches!(case.setup.rule, Rule::Relay | Rule::Whole(_));
    let fits = |n: usize| {
        let need = case.setup.problem.cost.profile.memory(decision.terminals[n].cut);
        need <= case.seen.terminals[n].report.memory
    };
    assert!(!chooses || decision.fallback || decision.scheduled().all(fits));
}

fn decide(case: &Case, build: Build, guard: Option<f64>) -> (Decision, ProjectedDecision) {
    let planner = build(case.setup.clone());
    let mut method = Published::new(case.setup.clone(), planner, guard);
    let decision = method.decide(&case.seen).unwrap();
    if case.seen.round.is_multiple_of(10) {
        assert_eq!(method.decide(&case.seen).unwrap(), decision, "deciding changes nothing");
    }
    let plan = case.setup.problem.cost.limits.project(decision.clone());
    (decision, plan)
}

/// Share of the payload left out in an observation: as published and both fixed compressions.
fn compression(index: u64) -> f64 {
    [0.0, 0.75, 0.9][index as usize % 3]
}

#[test]
fn every_decision_on_a_thousand_random_observations_is_inside_the_hard_domain() {
    for (name, rule, build) in METHODS {
        let mut n_fallbacks = 0;
        for index in 0..N_OBSERVATIONS {
            let case = case(index, rule, compression(index));
            let (decision, _) = decide(&case, build, None);
            assert_hard_domain(&case.setup.problem, &decision);
            assert_band(&case, &decision);
            if name != "splitfed" {
                assert_memory(&case, &decision);
            }
            let finite = |one: &tilp::round::TerminalDecision| one.bandwidth.0.is_finite();
            assert!(decision.terminals.iter().all(finite), "{name}, observation {index}");
            let q = compression(index);
            assert!(decision.scheduled().all(|n| decision.terminals[n].compression == q));
            n_fallbacks += usize::from(decision.fallback);
        }
        // These two decide nothing that could fail.
        if !name.starts_with("fedavg") && name != "splitfed" {
            let some = 1..N_OBSERVATIONS as usize;
            assert!(some.contains(&n_fallbacks), "{name}: {n_fallbacks} fallbacks");
        }
    }
}

#[test]
fn with_the_guard_everybody_is_predicted_in_time_or_the_record_says_fallback() {
    for (name, rule, build) in METHODS {
        let mut n_fallbacks = 0;
        for index in 0..N_OBSERVATIONS {
            let case = case(index, rule, compression(index));
            let (decision, plan) = decide(&case, build, Some(0.8));
            assert_hard_domain(&case.setup.problem, &decision);
            let delays = predicted(&case, &plan);
            let good = delays.iter().all(|(delay, fits)| *fits && *delay <= 4.0 * (1.0 + 1e-9));
            let hopeless = case.seen.terminals.iter().all(|view| view.report.gain.0 < 1e-29);
            assert!(good || decision.fallback, "{name}, observation {index}: {delays:?}");
            assert!(decision.fallback || !hopeless, "{name}, observation {index}");
            n_fallbacks += usize::from(decision.fallback);
        }
        let some = 1..N_OBSERVATIONS as usize * 9 / 10;
        assert!(some.contains(&n_fallbacks), "{name}: {n_fallbacks} fallbacks");
    }
}

#[test]
fn who_drops_stragglers_keeps_as_many_under_the_guard_as_who_does_not() {
    let mut n_fewer = 0;
    for index in 0..200 {
        let case = case(index, Rule::Parallel, 0.0);
        let count = |build: Build| {
            let (decision, _) = decide(&case, build, Some(0.8));
            decision.scheduled().count()
        };
        let all: Build = |setup| Box::new(Asfl::new(setup));
        let dropping: Build = |setup| Box::new(fedsl(setup, None));
        let (kept, asked) = (count(dropping), case.seen.terminals.len());
        assert!(kept >= count(all), "observation {index}: {kept} of {asked}");
        n_fewer += usize::from(kept > 1 && kept < asked);
    }
    assert!(n_fewer > 10, "{n_fewer}");
}

#[test]
fn the_guard_leaves_alone_what_is_in_time_anyway() {
    let (mut n_same, mut n_fewer) = (0, 0);
    for index in 0..200 {
        let case = case(index, Rule::Parallel, 0.9);
        let build: Build = |setup| Box::new(SplitFed::new(setup));
        let (free, plan) = decide(&case, build, None);
        let (guarded, _) = decide(&case, build, Some(0.8));
        let good = predicted(&case, &plan).iter().all(|(delay, fits)| *fits && *delay <= 4.0);
        assert_eq!(good, guarded == free, "observation {index}");
        n_same += usize::from(good);
        n_fewer += usize::from(guarded.scheduled().count() < free.scheduled().count());
    }
    assert!(n_same > 10 && n_fewer > 10, "{n_same} the same, {n_fewer} fewer");
}

#[test]
fn with_fewer_to_share_the_band_the_guard_keeps_some_who_would_be_late_among_all() {
    let mut n_more = 0;
    for index in 0..200 {
        let case = case(index, Rule::Parallel, 0.0);
        let build: Build = |setup| Box::new(SplitFed::new(setup));
        let (_, everybody) = decide(&case, build, None);
        let in_time = |(delay, fits): &&(f64, bool)| *fits && *delay <= 4.0;
        let among_all = predicted(&case, &everybody).iter().filter(in_time).count();
        let (guarded, _) = decide(&case, build, Some(0.8));
        let kept = guarded.scheduled().count();
        assert!(kept >= among_all, "observation {index}: {kept} and {among_all}");
        n_more += usize::from(kept > among_all && !guarded.fallback);
    }
    assert!(n_more >= 5, "{n_more}");
}

#[test]
fn hsfl_with_two_tiers_is_adaptsfl() {
    for index in 0..100 {
        let case = case(index, Rule::Tiered { edges: 1 }, 0.0);
        let (one, plan) = decide(&case, |setup| Box::new(AdaptSfl::new(setup, TIERS)), None);
        let (two, same) = decide(&case, |setup| Box::new(Hsfl::new(setup, None, TIERS)), None);
        assert_eq!((one, plan), (two, same), "observation {index}");
    }
}

#[test]
fn splitfed_schedules_everybody_with_an_even_share() {
    for index in 0..100 {
        let case = case(index, Rule::Parallel, 0.0);
        let (decision, _) = decide(&case, |setup| Box::new(SplitFed::new(setup)), None);
        let limits = &case.setup.problem.cost.limits;
        let even = limits.bandwidth / case.seen.terminals.len() as f64;
        for one in &decision.terminals {
            assert!(one.scheduled && one.bandwidth == even && one.compression == 0.0);
            assert_eq!((one.cut, one.power), (case.setup.problem.cut, limits.power));
        }
    }
}

#[test]
fn asfl_uses_the_whole_band_and_finishes_at_one_time() {
    let mut n_checked = 0;
    for index in 0..200 {
        let case = case(index, Rule::Parallel, 0.0);
        let (decision, plan) = decide(&case, |setup| Box::new(Asfl::new(setup)), None);
        // On a link this weak the rate stops growing long before the band is used up.
        let weak = |n: usize| case.setup.channel(&case.seen, n).strength_hz < 1e4;
        if decision.fallback || case.seen.aggregates || decision.scheduled().any(weak) {
            continue;
        }
        let band = case.setup.problem.cost.limits.bandwidth.0;
        assert!((decision.bandwidth().0 / band - 1.0).abs() < 1e-9);
        let delays: Vec<f64> = predicted(&case, &plan).iter().map(|(delay, _)| *delay).collect();
        let most = delays.iter().fold(0.0f64, |most, delay| most.max(*delay));
        let spread = delays.iter().map(|delay| (most - delay) / most).fold(0.0, f64::max);
        // Averaged fading is searched for, and its rate is known to nine digits only.
        assert!(spread < 1e-7, "observation {index}: {spread}");
        n_checked += 1;
    }
    assert!(n_checked > 10, "{n_checked}");
}

#[test]
fn fedavg_samples_its_fraction_uniformly() {
    let mut case = case(3, Rule::Whole(Local::Steps(1)), 0.0);
    let mut counts = vec![0; case.seen.terminals.len()];
    let n_terminals = counts.len();
    let wanted = (0.1 * n_terminals as f64).round().max(1.0) as usize;
    for round in 1..=400 {
        case.seen.round = round;
        let (decision, _) = decide(&case, |setup| Box::new(FedAvg::new(setup, 0.1)), None);
        let drawn: Vec<usize> = decision.scheduled().collect();
        assert_eq!(drawn.len(), wanted);
        drawn.into_iter().for_each(|n| counts[n] += 1);
    }
    let mean = 400.0 * wanted as f64 / n_terminals as f64;
    assert!(counts.iter().all(|&count| (f64::from(count) - mean).abs() < 5.0 * mean.sqrt() + 1.0));
}

/// Every terminal can meet the deadline.
const EASY: [&str; 2] = ["limits.deadline_s=1000.0", "limits.give_up_s=1000.0"];

#[test]
fn splitnn_visits_everybody_in_turn_within_the_deadline() {
    let mut parts = worlds::parts("splitnn", &["learning.batch=64"]);
    let mut visits = Vec::new();
    for _ in 0..12 {
        let executed = step(&mut parts);
        let order = executed.order.plan.training().order.clone();
        let ledger = books(&executed);
        let last = order.iter().map(|&n| ledger.terminals[n].delay.0).fold(0.0, f64::max);
        assert!((ledger.latency.0 - last.min(60.0)).abs() < 1e-9);
        assert_eq!(ledger.violation.spectrum, Hertz(0.0));
        visits.extend(order);
    }
    // The walk repeats after every terminal has had a turn.
    let walk = &visits[..6];
    let mut sorted = walk.to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
    assert!(visits.chunks(6).all(|turn| turn == &walk[..turn.len()]), "{visits:?}");
}

#[test]
fn in_sequential_split_learning_delays_add_up() {
    let mut parts = worlds::parts("splitnn", &EASY);
    let executed = step(&mut parts);
    let order = &executed.order.plan.training().order;
    assert_eq!(order.len(), 6);
    let delays: Vec<f64> = order.iter().map(|&n| books(&executed).terminals[n].delay.0).collect();
    assert!(delays.windows(2).all(|pair| pair[1] > pair[0]));
    assert!(executed.outcome.terminals.iter().all(|one| one.took_part));
    assert_eq!(books(&executed).duration.0, delays[5]);
}

/// Bytes up, down and of model exchange in one round.
fn bytes(round: &RoundRecord) -> [u64; 3] {
    let sum = |of: fn(&tilp::round::TerminalLedger) -> Bytes| {
        books(round).terminals.iter().map(of).map(|bytes| bytes.0).sum()
    };
    [sum(|one| one.bytes_up), sum(|one| one.bytes_down), sum(|one| one.bytes_sync)]
}

#[test]
fn byte_counters_equal_the_closed_forms() {
    // 2 p s + 2 beta K |W| for split methods, 2 K |W| for federated averaging, with K terminals,
    // p samples, s values at the cut: nominal payloads, and 20 bytes of header a model message.
    let nominal = [EASY[0], EASY[1], "learning.payload=nominal"];
    let all = [&nominal[..], &["methods.baselines.fedavg.fraction=1.0"]].concat();
    let (k, header) = (6u64, 20u64);
    for name in ["splitfed", "splitnn", "fedavg", "asfl", "fedsl", "adaptsfl", "hsfl"] {
        let mut parts = worlds::parts(name, &all);
        step(&mut parts); // afterwards no terminal holds layers
        let executed = step(&mut parts);
        let profile = &parts.cell.radio().cost.profile;
        let [up, down, sync] = bytes(&executed);
        let model = profile.parameters(0, profile.cuts.len()).0;
        if name == "fedavg" {
            assert_eq!([up, down, sync], [k * model, k * model, 0]);
            continue;
        }
        let decision = executed.order.plan.decision();
        let cuts = || decision.scheduled().map(|n| decision.terminals[n].cut);
        assert_eq!(cuts().count() as u64, k, "{name}");
        let flow: u64 = cuts().map(|cut| 4 * (profile.activation(cut) * 16) as u64).sum();
        let fronts: u64 = cuts().map(|cut| 2 * (profile.parameters(0, cut).0 + header)).sum();
        assert_eq!([up, down, sync], [flow, flow, fronts], "{name}");
    }
}

#[test]
fn a_broadcast_gradient_counts_once_on_the_air() {
    let nominal = [EASY[0], EASY[1], "learning.payload=nominal"];
    let mut parts = worlds::parts("ga-sfl", &nominal);
    let executed = step(&mut parts);
    let decided = &executed.order.plan.decision().terminals;
    let cut = decided[0].cut;
    assert!(decided.iter().all(|one| one.scheduled && one.cut == cut));
    let one = 4 * (parts.cell.radio().cost.profile.activation(cut) * 16) as u64;
    let [up, down, _] = bytes(&executed);
    assert_eq!((up, down), (6 * one, one));
}

#[test]
fn fedavg_sends_less_when_compressed_and_is_billed_whatever_sync_says() {
    let up = |name: &str, sync: &str| {
        let sync = format!("learning.sync={sync}");
        let mut parts = worlds::parts(name, &[EASY[0], EASY[1], &sync]);
        bytes(&step(&mut parts))
    };
    let [plain, down, _] = up("fedavg", "billed");
    assert_eq!(up("fedavg", "free"), [plain, down, 0]);
    assert_eq!(plain, down);
    let [compressed, same, _] = up("fedavg+q0.9", "billed");
    assert!(compressed * 8 < plain && same == down, "{compressed} of {plain}");
}

#[test]
fn tiers_are_averaged_when_the_plan_says_so() {
    for name in ["adaptsfl", "hsfl"] {
        let mut parts = worlds::parts(name, &EASY);
        for round in 1..=4 {
            let executed = step(&mut parts);
            let plan = &executed.order.plan;
            let tiers = plan.training().tiers.expect("a method of tiers says which");
            assert!(executed.outcome.terminals.iter().all(|one| one.took_part), "{name} {round}");
            let deepest = plan.decision().terminals.iter().map(|one| one.cut).max();
            assert_eq!(Some(tiers.own), deepest);
            assert!(tiers.edge >= tiers.own);
            let held = observe(&mut parts).reports().iter().any(|one| one.held_layers > 0);
            assert_eq!(held, !tiers.average_own, "{name}, round {round}");
        }
    }
}

#[test]
fn splitfed_v2_is_another_model_than_v1_on_the_same_schedule() {
    let run = |version: &str| {
        let mut parts = worlds::parts("splitfed", &[EASY[0], EASY[1], version]);
        let bytes: Vec<_> = until(&mut parts, 3).iter().map(bytes).collect();
        (bytes, parts.cell.engine().virtual_mean())
    };
    let one = run("methods.baselines.splitfed.version=1");
    let two = run("methods.baselines.splitfed.version=2");
    assert_eq!(one.0, two.0, "the exchange is the same");
    assert_ne!(one.1, two.1);
}

#[test]
fn measuring_more_often_changes_nothing() {
    for method in methods().iter().filter(|method| !["tilp", "oracle"].contains(&method.name())) {
        let trained = |measure: &str| {
            let mut parts = worlds::parts(method.name(), &[EASY[0], EASY[1], measure]);
            let rounds = until(&mut parts, 3);
            let plans: Vec<ProjectedDecision> =
                rounds.into_iter().map(|round| round.order.plan).collect();
            (plans, parts.cell.engine().virtual_mean())
        };
        let (often, never) =
            (trained("evaluation.measure_every=1"), trained("evaluation.measure_every=1000"));
        assert!(often == never, "{}", method.name());
    }
}
