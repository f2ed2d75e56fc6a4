//! Decisions of the allocation methods, on observations that no cell would ever show.

use rand::RngExt;
use tilp::allocate::{Clairvoyant, Deficit, DeficitOf, Greedy, Problem, Random, ReferenceKnobs};
use tilp::cost::{Accounting, CostModel, Downlink, Grant, Hardware, Payload, Profile, Sync};
use tilp::datasheet::{HardwareRange, draw_nominal};
use tilp::rng::{Rng, Seed};
use tilp::round::{
    Allocator, Decision, Limits, MeasuredSuccess, Observation, SuccessCount, TerminalDecision,
    TerminalId, TerminalReport, TerminalView, Truth,
};
use tilp::scenario::{Scenario, untrained};
use tilp::split::compress::{Compressor, Exchange};
use tilp::split::model::SplitModel;
use tilp::split::optimiser::Optimiser;
use tilp::tasks::tabletop::{ACTION, Family};
use tilp::units::{Bytes, Gain, Hertz, Seconds, Watts};
use tilp::wireless::RateModel;

const N_OBSERVATIONS: u64 = 300;

pub fn limits() -> Limits {
    Limits {
        deadline: Seconds(5.0),
        bandwidth: Hertz(100e6),
        power: Watts(0.2),
        compression: 0.9,
        cuts: vec![2, 3, 4, 5, 6],
    }
}

pub fn profile() -> Profile {
    let scenario = Scenario::load("tiny", &[]).expect("a built-in scenario is sound");
    let policy = untrained(&scenario).expect("a built-in scenario has a policy");
    let cut = |layer: usize| policy.profile(layer, 64, Optimiser::Sgd { momentum: 0.0 });
    Profile { batch: 64, action: ACTION, cuts: (1..=policy.n_layers()).map(cut).collect() }
}

/// A problem, and the data sheets of its terminals.
pub fn problem(profile: &Profile, n_terminals: usize, rng: &mut Rng) -> (Problem, Vec<Hardware>) {
    let range = HardwareRange {
        clock: Hertz(1.5e9),
        operations_per_cycle: [0.01, 10.0],
        energy_coefficient: [0.5e-28, 2e-28],
        hidden_share: 0.0,
        noise_w_per_hz: 3e-20,
        hidden_noise_figure_db: 0.0,
    };
    let averaged = rng.random_range(0..4) == 0;
    let cost = CostModel {
        limits: limits(),
        profile: profile.clone(),
        accounting: Accounting {
            compressor: Compressor::Quantize,
            payload: Payload::Encoded,
            sync: Sync::Billed,
            exchange: Exchange::Single,
        },
        rate_model: if averaged { RateModel::Averaged } else { RateModel::Held },
        downlink: Downlink::Shared,
    };
    let hardware = draw_nominal(n_terminals, &range, Seed::new(rng.random()));
    (Problem { cost, cut: 2 + rng.random_range(0..5) }, hardware)
}

fn knobs(n_terminals: usize, rng: &mut Rng) -> ReferenceKnobs {
    ReferenceKnobs {
        n_scheduled: rng.random_range(1..=n_terminals + 2),
        compression: 0.9 * rng.random::<f64>(),
        margin: rng.random_range(0.05..1.0),
        skip_far_share: if rng.random() { 0.0 } else { 0.9 * rng.random::<f64>() },
        uniform_share: 0.5,
        ..FOUR
    }
}

/// From a terminal beside the mast to one without a usable channel.
fn terminal(profile: &Profile, id: TerminalId, hardware: Hardware, rng: &mut Rng) -> TerminalView {
    let power_of_ten = |rng: &mut Rng, low: f64, high: f64| 10f64.powf(rng.random_range(low..high));
    let dead = rng.random_range(0..40) == 0;
    let held = rng.random_range(0..=6);
    let some = rng.random::<bool>();
    let gain = Gain(if dead { 0.0 } else { power_of_ten(rng, -20.0, -5.0) });
    let fading_power = match rng.random_range(0..20) {
        0 => 0.0,
        1 => power_of_ten(rng, -12.0, -4.0),
        _ => power_of_ten(rng, -2.0, 1.0),
    };
    TerminalView {
        previous_bandwidth: Hertz(rng.random_range(0.0..1e8)),
        gradient_norm: some.then(|| power_of_ten(rng, -6.0, 6.0)),
        loss: some.then(|| power_of_ten(rng, -6.0, 6.0)),
        rounds_since_scheduled: some.then(|| rng.random_range(1..1000)),
        success: None,
        report: TerminalReport {
            id,
            hardware,
            gain,
            fading_power,
            n_samples: rng.random_range(1..10_000),
            memory: Bytes(rng.random_range(0..2 * profile.memory(6).0)),
            task: rng.random_range(0..Family::ALL.len()),
            held_layers: held,
            owed_layers: rng.random_range(0..=held),
        },
    }
}

pub fn observation(profile: &Profile, hardware: &[Hardware], rng: &mut Rng) -> Observation {
    let count = |rng: &mut Rng| {
        let episodes = rng.random_range(0..20);
        SuccessCount { successes: rng.random_range(0..=episodes), episodes }
    };
    Observation {
        budget: None,
        round: rng.random_range(1..100_000),
        clock: Seconds(0.0),
        aggregates: rng.random(),
        loss: Some(1.0),
        success: rng.random::<bool>().then(|| Family::ALL.map(|_| count(rng)).to_vec()),
        terminals: (hardware.iter().zip(0..))
            .map(|(hardware, id)| terminal(profile, TerminalId(id), *hardware, rng))
            .collect(),
    }
}

struct Case {
    problem: Problem,
    knobs: ReferenceKnobs,
    seen: Observation,
    seed: Seed,
}

fn cases() -> impl Iterator<Item = Case> {
    let profile = profile();
    (0..N_OBSERVATIONS).map(move |index| {
        let seed = Seed::new(index).named("methods");
        let mut rng = seed.rng();
        let n_terminals = 1 + index as usize % 60;
        let (mut problem, hardware) = problem(&profile, n_terminals, &mut rng);
        if index % 3 == 1 {
            problem.cost.downlink = Downlink::Own(Watts(1.0));
        }
        let knobs = knobs(n_terminals, &mut rng);
        let seen = observation(&profile, &hardware, &mut rng);
        Case { problem, knobs, seen, seed }
    })
}

/// What is executed is inside the hard domain, and is what the method wanted up to the last bit.
pub fn assert_hard_domain(problem: &Problem, wanted: &Decision) {
    let limits = &problem.cost.limits;
    let feasible = limits.project(wanted.clone());
    for (one, wanted) in feasible.decision().terminals.iter().zip(&wanted.terminals) {
        assert!((0.0..=limits.bandwidth.0).contains(&one.bandwidth.0));
        assert!((0.0..=limits.power.0).contains(&one.power.0));
        assert!((0.0..=limits.compression).contains(&one.compression));
        assert!(limits.cuts.contains(&one.cut));
        assert!((one.bandwidth.0 - wanted.bandwidth.0).abs() <= 1e-12 * limits.bandwidth.0);
        let same = |one: &TerminalDecision| (one.scheduled, one.power, one.cut, one.compression);
        assert_eq!(same(one), same(wanted));
    }
    assert!(feasible.decision().scheduled().next().is_some());
}

/// What the three reference methods promise of every decision.
fn assert_promises(case: &Case, decision: &Decision) {
    let Case { problem, knobs, seen, .. } = case;
    assert_hard_domain(problem, decision);
    let scheduled: Vec<usize> = decision.scheduled().collect();
    assert!(scheduled.len() <= knobs.n_scheduled);
    let reachable = problem.reachable(seen, knobs.skip_far_share);
    assert!(scheduled.iter().all(|n| reachable.contains(n)));
    let band = problem.band(seen, &scheduled, seen.aggregates);
    assert!(decision.bandwidth().0 <= band.0 * (1.0 + 1e-9));
    if decision.fallback {
        assert_eq!(scheduled.len(), 1);
        return;
    }
    for n in scheduled {
        let one = &decision.terminals[n];
        let job = problem.job(seen, n, one.cut, one.compression);
        let grant = Grant { bandwidth: one.bandwidth, power: one.power };
        let delay = problem.cost(seen, n, &job, grant).delay();
        let latest = problem.cost.limits.deadline * knobs.margin;
        assert!(delay.0 <= latest.0 * (1.0 + 1e-9), "{delay:?} beyond {latest:?}");
    }
}

/// Runs a method on all cases; some must fall back and some must not.
fn holds_promises(build: impl Fn(&Case) -> Box<dyn Allocator>) {
    let mut n_fallbacks = 0;
    for case in cases() {
        let decision = build(&case).decide(&case.seen).unwrap();
        assert_promises(&case, &decision);
        n_fallbacks += u64::from(decision.fallback);
    }
    assert!(n_fallbacks > 0 && n_fallbacks < N_OBSERVATIONS / 2, "{n_fallbacks} fallbacks");
}

#[test]
fn random_stays_within_band_margin_and_number() {
    holds_promises(|case| Box::new(Random::new(case.problem.clone(), case.knobs, case.seed)));
}

#[test]
fn greedy_stays_within_band_margin_and_number() {
    holds_promises(|case| Box::new(Greedy::new(case.problem.clone(), case.knobs)));
}

#[test]
fn deficit_stays_within_band_margin_and_number() {
    holds_promises(|case| Box::new(Deficit::new(case.problem.clone(), case.knobs, case.seed)));
}

#[test]
fn a_decision_depends_on_seed_and_observation_only() {
    for case in cases().take(20) {
        let again = || Deficit::new(case.problem.clone(), case.knobs, case.seed);
        let mut used = again();
        used.decide(&Observation { round: 1, ..case.seen.clone() }).unwrap();
        assert_eq!(used.decide(&case.seen), again().decide(&case.seen));
    }
}

/// Twenty terminals with good channels; the second half does a task of its own.
fn two_groups(success: Option<[u64; 2]>) -> (Problem, Observation) {
    let profile = profile();
    let mut rng = Seed::new(7).rng();
    let (mut problem, hardware) = problem(&profile, 20, &mut rng);
    problem.cut = 2;
    problem.cost.rate_model = RateModel::Held;
    let mut seen = observation(&profile, &hardware, &mut rng);
    seen.aggregates = false;
    for (n, view) in seen.terminals.iter_mut().enumerate() {
        view.report.gain = Gain(1e-9 * (1.0 + n as f64 / 10.0));
        view.report.fading_power = 1.0;
        view.report.task = usize::from(n >= 10);
    }
    seen.success = success.map(|successes| {
        let mut counts = Family::ALL.map(|_| SuccessCount::default()).to_vec();
        for (count, successes) in counts.iter_mut().zip(successes) {
            *count = SuccessCount { successes, episodes: 10 };
        }
        counts
    });
    (problem, seen)
}

const FOUR: ReferenceKnobs = ReferenceKnobs {
    n_scheduled: 4,
    compression: 0.75,
    margin: 0.8,
    skip_far_share: 0.0,
    uniform_share: 0.5,
    deficit: DeficitOf::Task,
    deficit_prior: 2.0,
    near_compression: None,
    clairvoyant_episodes: 16,
};

/// How often a method schedules each terminal in 400 rounds of four.
fn scheduled_counts(method: &mut dyn Allocator, seen: &mut Observation) -> Vec<f64> {
    let mut counts = vec![0.0; seen.terminals.len()];
    for round in 1..=400 {
        seen.round = round;
        let decision = method.decide(seen).unwrap();
        assert_eq!(decision.scheduled().count(), 4);
        decision.scheduled().for_each(|n| counts[n] += 1.0);
    }
    counts
}

/// Share of the second group among the terminals that `deficit` schedules in 400 rounds.
fn second_share(success: Option<[u64; 2]>) -> f64 {
    let (problem, mut seen) = two_groups(success);
    let mut deficit = Deficit::new(problem, FOUR, Seed::new(3));
    let counts = scheduled_counts(&mut deficit, &mut seen);
    counts[10..].iter().sum::<f64>() / counts.iter().sum::<f64>()
}

/// Two terminals of the second group fail where the others of their task succeed; so they fail
/// more than their task shows.
fn with_own_counts(seen: &mut Observation) {
    for (n, view) in seen.terminals.iter_mut().enumerate() {
        let successes = if n >= 18 { 0 } else { 2 };
        let count = SuccessCount { successes, episodes: 2 };
        view.success = Some(MeasuredSuccess { round: 1, count });
    }
}

/// How often the two terminals that fail are scheduled, over the mean of the others.
fn own_weight(knobs: ReferenceKnobs) -> f64 {
    let (problem, mut seen) = two_groups(Some([10, 8]));
    with_own_counts(&mut seen);
    let counts = scheduled_counts(&mut Deficit::new(problem, knobs, Seed::new(3)), &mut seen);
    (counts[18] + counts[19]) / 2.0 / (counts[..18].iter().sum::<f64>() / 18.0)
}

#[test]
fn deficit_by_terminal_prefers_those_that_fail_themselves_and_by_task_it_does_not_tell() {
    let terminal = ReferenceKnobs { deficit: DeficitOf::Terminal, ..FOUR };
    // By task all ten terminals of the second group have the same deficit.
    assert!((1.0..2.5).contains(&own_weight(FOUR)), "{}", own_weight(FOUR));
    assert!(own_weight(terminal) > 3.0, "{}", own_weight(terminal));
    // A prior that outweighs the episodes by far leaves the deficit of the task.
    let smooth = own_weight(ReferenceKnobs { deficit_prior: 1e6, ..terminal });
    assert!((smooth - own_weight(FOUR)).abs() < 1e-9, "{smooth}");
    // Without a prior the counts stand for themselves: all that is not uniform goes to the two.
    let plain = own_weight(ReferenceKnobs { deficit_prior: 0.0, ..terminal });
    assert!(plain > own_weight(terminal), "{plain}");
}

#[test]
fn deficit_by_terminal_is_deficit_by_task_before_anything_is_measured() {
    let (problem, seen) = two_groups(None);
    let decide = |deficit| {
        let knobs = ReferenceKnobs { deficit, ..FOUR };
        Deficit::new(problem.clone(), knobs, Seed::new(3)).decide(&seen).unwrap()
    };
    assert_eq!(decide(DeficitOf::Task), decide(DeficitOf::Terminal));
}

#[test]
fn clairvoyant_is_deficit_by_terminal_with_the_success_that_it_was_told() {
    let (problem, mut seen) = two_groups(None);
    let mut clairvoyant = Clairvoyant::new(problem.clone(), FOUR, Seed::new(3));
    let access = clairvoyant.oracle_access().expect("it is told the truth");
    assert_eq!(access.question().episodes, Some(16));
    let count = |n: usize| SuccessCount { successes: if n >= 18 { 0 } else { 16 }, episodes: 16 };
    let success = Some((0..20).map(count).collect());
    access.receive(&Truth { round: 1, success, ..Truth::default() });
    let told = scheduled_counts(&mut clairvoyant, &mut seen);
    // The same deficits as counts of the terminals themselves, which weigh alone.
    with_own_counts(&mut seen);
    seen.success = None;
    let knobs = ReferenceKnobs { deficit: DeficitOf::Terminal, deficit_prior: 0.0, ..FOUR };
    let deficit = scheduled_counts(&mut Deficit::new(problem, knobs, Seed::new(3)), &mut seen);
    assert_eq!(told, deficit);
    assert!(told[18] > 4.0 * told[0]);
}

#[test]
fn deficit_prefers_the_terminals_of_failing_tasks_and_forgets_nobody() {
    // The first of four is drawn from the failing task with probability 3/4, the later ones less.
    assert!((0.62..0.78).contains(&second_share(Some([10, 0]))));
    assert!((0.22..0.38).contains(&second_share(Some([0, 10]))));
}

#[test]
fn deficit_is_fair_before_the_first_measurement_and_when_all_is_well() {
    for success in [None, Some([10, 10]), Some([0, 0])] {
        assert!((0.45..0.55).contains(&second_share(success)), "{success:?}");
    }
}

#[test]
fn the_nearer_half_may_have_a_compression_of_its_own() {
    let (problem, seen) = two_groups(None);
    let knobs = ReferenceKnobs { n_scheduled: 20, near_compression: Some(0.5), ..FOUR };
    let decision = Greedy::new(problem.clone(), knobs).decide(&seen).unwrap();
    // Gains rise with the number of the terminal.
    assert_eq!(decision.scheduled().count(), 20);
    for (n, one) in decision.terminals.iter().enumerate() {
        assert_eq!(one.compression, if n >= 10 { 0.5 } else { 0.75 }, "terminal {n}");
    }
    let same = ReferenceKnobs { near_compression: Some(FOUR.compression), ..FOUR };
    let decide = |knobs| Greedy::new(problem.clone(), knobs).decide(&seen).unwrap();
    assert_eq!(decide(same), decide(FOUR));
}

#[test]
fn greedy_takes_the_best_channels_of_the_round() {
    let (problem, mut seen) = two_groups(None);
    let mut greedy = Greedy::new(problem, FOUR);
    let mut taken =
        |seen: &Observation| greedy.decide(seen).unwrap().scheduled().collect::<Vec<_>>();
    assert_eq!(taken(&seen), [16, 17, 18, 19]);
    seen.terminals[18].report.fading_power = 1e-3;
    seen.terminals[2].report.fading_power = 10.0;
    assert_eq!(taken(&seen), [2, 16, 17, 19]);
}
