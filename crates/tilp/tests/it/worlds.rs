//! The simulated cell: rules of a round, clock, billing, what is observed.

use std::collections::BTreeSet;
use std::path::Path;

use tilp::rng::Seed;
use tilp::round::{
    Decision, Limits, ProjectedDecision, TerminalDecision, TerminalLedger, TerminalOutcome,
};
use tilp::run::RoundRecord;
use tilp::scenario::{Cache, Method, Parts, Scenario, assemble, method, methods};
use tilp::split::model::Weights;
use tilp::tasks::EpisodeSet;
use tilp::tasks::tabletop::Family;
use tilp::units::{Hertz, Seconds};

use crate::rounds::{books, execute, observe, order, step, until};

/// The tests' own folder of demonstrations.
pub fn cache() -> Cache {
    Cache::new(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
}

/// `tiny` with small batches and no measurement of success, then with these values.
pub fn tiny(overrides: &[&str]) -> Scenario {
    let quiet = [
        "learning.batch=16",
        "tasks.episode_steps=10",
        "evaluation.calibrate_every=1000",
        "evaluation.measure_every=1000",
    ];
    let all: Vec<String> = quiet.iter().chain(overrides).map(|&text| text.to_owned()).collect();
    Scenario::load("tiny", &all).expect("the values of a test are sound")
}

/// A method on `tiny` with these values, seed 0.
pub fn parts(name: &str, overrides: &[&str]) -> Parts {
    parts_of(method(name).expect("the method exists"), overrides)
}

/// The same for a method of the test's own.
pub fn parts_of(method: Method, overrides: &[&str]) -> Parts {
    assemble(&tiny(overrides), method, 0, Some(&cache()), &|_, _| {}).expect("a sound scenario")
}

/// The limits of the problem.
fn limits(parts: &Parts) -> &Limits {
    &parts.cell.radio().cost.limits
}

/// A tenth of the band at full power, the shallowest cut, uncompressed.
fn share(parts: &Parts) -> TerminalDecision {
    let limits = limits(parts);
    TerminalDecision {
        scheduled: true,
        bandwidth: limits.bandwidth / 10.0,
        power: limits.power,
        cut: limits.cuts[0],
        compression: 0.0,
    }
}

/// A plan for these terminals; no other is scheduled.
fn plan(parts: &Parts, terminals: &[(usize, TerminalDecision)]) -> ProjectedDecision {
    let mut decision = Decision::idle(parts.cell.present().len(), limits(parts).cuts[0]);
    for (n, one) in terminals {
        decision.terminals[*n] = *one;
    }
    limits(parts).project(decision)
}

/// The next round with only these terminals scheduled.
fn execute_only(parts: &mut Parts, terminals: &[(usize, TerminalDecision)]) -> RoundRecord {
    let plan = plan(parts, terminals);
    execute(parts, &plan)
}

/// The two terminals with the best channels.
fn best_two(parts: &mut Parts) -> (usize, usize) {
    let seen = observe(parts);
    let channel =
        |n: &usize| seen.terminals[*n].report.gain.0 * seen.terminals[*n].report.fading_power;
    let mut order: Vec<usize> = (0..seen.terminals.len()).collect();
    order.sort_by(|a, b| channel(b).total_cmp(&channel(a)));
    (order[0], order[1])
}

/// Every weight there is: the server's, each terminal's, and the deployed mean.
fn weights(parts: &Parts) -> Vec<Weights> {
    let engine = parts.cell.engine();
    let of = |id| engine.inspect(id, |terminal| terminal.weights().clone());
    let own = engine.ids().into_iter().filter_map(of);
    let all = own.chain([engine.server().weights().clone(), engine.virtual_mean()]);
    all.collect()
}

/// A bandwidth with which a terminal needs longer than the deadline but is not given up.
fn too_narrow(parts: &mut Parts, n: usize) -> TerminalDecision {
    let mut one = share(parts);
    let reports = observe(parts).reports();
    let (deadline, give_up) = (limits(parts).deadline, parts.cell.radio().give_up);
    let mut delay = |one: TerminalDecision| {
        let plan = plan(parts, &[(n, one)]);
        let order = order(parts, &plan);
        parts.cell.radio().timing(&order, &reports).delays[n]
    };
    while delay(one) <= deadline {
        one.bandwidth.0 *= 0.7;
    }
    assert!(delay(one) < give_up);
    one
}

/// All weights after a round with the terminals of the best channels.
fn after_a_round(name: &str, n_scheduled: usize, server: &str) -> Vec<Weights> {
    // Long rounds, so that no terminal is late although they train one after another.
    let mut parts = parts(name, &[&format!("learning.server={server}"), "limits.deadline_s=50"]);
    let (first, second) = best_two(&mut parts);
    let one = share(&parts);
    let executed = execute_only(&mut parts, &[(first, one), (second, one)][..n_scheduled]);
    let took_part = executed.outcome.terminals.iter().filter(|one| one.took_part).count();
    assert_eq!(took_part, n_scheduled);
    weights(&parts)
}

#[test]
fn a_server_that_steps_after_every_terminal_is_another_only_where_several_train_side_by_side() {
    for name in ["tilp", "random", "splitfed", "asfl+guard"] {
        let by = |n_scheduled, server| after_a_round(name, n_scheduled, server);
        assert_eq!(by(1, "averaged"), by(1, "sequential"), "{name}: one step either way");
        assert_ne!(by(2, "averaged"), by(2, "sequential"), "{name}: one step or two");
    }
    for name in ["splitnn+guard", "ga-sfl+guard"] {
        let by = |server| after_a_round(name, 2, server);
        assert_eq!(by("averaged"), by("sequential"), "{name} trains by another rule");
    }
}

#[cfg(feature = "mujoco")]
#[test]
fn kept_demonstrations_of_one_engine_are_not_taken_for_those_of_mujoco() {
    let data = |engine: &str| {
        let of = |parts: Parts| parts.cell.engine().data_sets().into_values().next();
        let engine = format!("tasks.engine={engine}");
        // Twice: made, then read.
        let [made, read] = [0, 1].map(|_| of(parts("random", &[&engine])));
        assert_eq!(made, read, "{engine}");
        made
    };
    assert_ne!(data("mujoco"), data("rapier"));
}

#[test]
fn no_round_outlasts_the_deadline_when_late_terminals_are_dropped() {
    let mut parts = parts("splitfed", &["limits.deadline_s=0.5"]);
    let (mut clock, mut n_late) = (0.0, 0);
    for _ in 0..8 {
        let executed = step(&mut parts);
        assert!(books(&executed).duration.0 <= 0.5);
        clock += books(&executed).duration.0;
        assert_eq!(observe(&mut parts).clock, Seconds(clock));
        n_late += executed.outcome.terminals.iter().filter(|one| one.late).count();
    }
    assert!(n_late > 0, "no terminal was late, so nothing was tested");
}

#[test]
fn a_late_terminal_spends_energy_and_violates_but_contributes_nothing() {
    let mut with = parts("random", &[]);
    let mut without = parts("random", &[]);
    let (good, late) = best_two(&mut with);
    let narrow = too_narrow(&mut with, late);
    let wide = share(&with);
    let both = execute_only(&mut with, &[(good, wide), (late, narrow)]);
    let alone = execute_only(&mut without, &[(good, wide)]);
    assert_eq!(weights(&with), weights(&without));
    assert_eq!(both.outcome.loss, alone.outcome.loss);
    let seen = &both.outcome.terminals[late];
    assert!(seen.late && !seen.took_part && seen.loss.is_none());
    let spent = &books(&both).terminals[late];
    assert!(spent.energy_radio.0 > 0.0 && spent.energy_compute.0 > 0.0);
    assert_eq!(books(&both).duration, limits(&with).deadline);
    assert_eq!(books(&both).latency, spent.delay);
    assert_eq!(books(&both).violation.deadline, spent.delay - limits(&with).deadline);
    assert_eq!(books(&alone).violation.relative, 0.0);
}

#[test]
fn the_round_waits_for_a_late_terminal_if_the_scenario_says_so() {
    let mut parts = parts("random", &["limits.late=wait"]);
    let (n, _) = best_two(&mut parts);
    let narrow = too_narrow(&mut parts, n);
    let executed = execute_only(&mut parts, &[(n, narrow)]);
    assert!(executed.outcome.terminals[n].took_part && !executed.outcome.terminals[n].late);
    assert!(books(&executed).duration > limits(&parts).deadline);
    assert_eq!(books(&executed).duration, books(&executed).terminals[n].delay);
    assert!(books(&executed).violation.deadline.0 > 0.0, "waiting does not undo the violation");
}

#[test]
fn nobody_waits_longer_than_the_time_to_give_up() {
    let mut parts = parts("random", &["limits.late=wait"]);
    let (n, _) = best_two(&mut parts);
    let hopeless = TerminalDecision { bandwidth: Hertz(1.0), ..share(&parts) };
    let executed = execute_only(&mut parts, &[(n, hopeless)]);
    assert_eq!(books(&executed).duration, parts.cell.radio().give_up);
    assert_eq!(books(&executed).latency, parts.cell.radio().give_up);
    assert!(executed.outcome.terminals[n].late && executed.outcome.loss.is_none());
}

#[test]
fn spectrum_beyond_the_band_is_counted_as_asked_and_executed_scaled_down() {
    let mut greedy = parts("random", &[]);
    let mut modest = parts("random", &[]);
    let (a, b) = best_two(&mut greedy);
    let band = limits(&greedy).bandwidth;
    let wide = |bandwidth| TerminalDecision { bandwidth, ..share(&modest) };
    let plans = [wide(band), wide(band / 2.0)].map(|one| plan(&modest, &[(a, one), (b, one)]));
    let over = execute(&mut greedy, &plans[0]);
    let within = execute(&mut modest, &plans[1]);
    assert_eq!(books(&over).violation.spectrum, band);
    assert_eq!(books(&over).violation.relative, 1.0);
    assert_eq!(books(&within).violation.relative, 0.0);
    assert_eq!(books(&over).terminals, books(&within).terminals);
    assert_eq!(books(&over).terminals[a].bandwidth, band / 2.0);
}

/// Bytes of model exchange in six rounds with two aggregations.
fn sync_bytes(sync: &str) -> u64 {
    let mut parts =
        parts("random", &[&format!("learning.sync={sync}"), "learning.aggregate_every=3"]);
    let rounds = until(&mut parts, 6);
    rounds.iter().flat_map(|round| &books(round).terminals).map(|one| one.bytes_sync.0).sum()
}

#[test]
fn model_exchange_is_billed_unless_it_is_free() {
    assert_eq!(sync_bytes("free"), 0);
    assert!(sync_bytes("billed") > 0);
}

#[test]
fn a_nominal_payload_is_the_share_of_the_activation_that_is_sent() {
    for (q, cut) in [(0.0, 2), (0.5, 4), (0.75, 6), (0.9, 2)] {
        let mut parts = parts("random", &["learning.payload=nominal"]);
        let (n, _) = best_two(&mut parts);
        let one = TerminalDecision { cut, compression: q, ..share(&parts) };
        let executed = execute_only(&mut parts, &[(n, one)]);
        let profile = &parts.cell.radio().cost.profile;
        let nominal = (1.0 - q) * (4 * profile.activation(cut) * profile.batch) as f64;
        let billed = &books(&executed).terminals[n];
        assert_eq!(billed.bytes_up.0, nominal.round() as u64);
        assert_eq!(billed.bytes_down, billed.bytes_up);
    }
}

#[test]
fn an_encoded_payload_is_what_the_engine_really_sends() {
    let mut parts = parts("random", &[]);
    let (n, _) = best_two(&mut parts);
    let one = TerminalDecision { compression: 0.75, ..share(&parts) };
    let executed = execute_only(&mut parts, &[(n, one)]);
    let billed = &books(&executed).terminals[n];
    // Activation and gradient at 8 bits, each with its scales, the activation with labels too.
    let profile = &parts.cell.radio().cost.profile;
    let values = (profile.activation(one.cut) * profile.batch) as u64;
    assert!(billed.bytes_down.0 > values && billed.bytes_down.0 < values * 5 / 4);
    assert!(billed.bytes_up > billed.bytes_down);
}

#[test]
fn a_terminal_with_fewer_samples_than_a_minibatch_is_billed_for_those_it_has() {
    let short = ["learning.batch=4096", "limits.deadline_s=50"];
    for (payload, label_bytes) in [("encoded", 16.0), ("nominal", 0.0)] {
        let mut parts =
            parts("random", &[&short[..], &[&format!("learning.payload={payload}")]].concat());
        let (n, _) = best_two(&mut parts);
        let report = observe(&mut parts).reports()[n];
        assert!(report.n_samples < 4096);
        let one = share(&parts);
        let executed = execute_only(&mut parts, &[(n, one)]);
        let (billed, cost) = (&books(&executed).terminals[n], &parts.cell.radio().cost);
        // Uncompressed and in 32 bits: activation and gradient of every sample, the labels once.
        let per_sample = (4 * cost.profile.activation(one.cut)) as f64;
        let up = (per_sample + label_bytes) * report.n_samples as f64;
        let within = |bytes: u64, expected: f64| (bytes as f64 / expected - 1.0).abs() < 0.02;
        assert!(within(billed.bytes_up.0, up), "{payload}: {} up", billed.bytes_up.0);
        assert!(within(billed.bytes_down.0, per_sample * report.n_samples as f64), "{payload}");
        let work = cost.profile.work(one.cut, report.n_samples);
        let hardware = parts.cell.radio().truth[n];
        let (speed, clock) = (hardware.operations_per_cycle, hardware.clock);
        let seconds = tilp::wireless::computation_delay(work, speed, clock);
        let seen = executed.outcome.terminals[n].computation;
        assert!((seen.0 / seconds.0).ln().abs() < 0.3, "{payload}: {seen:?} and {seconds:?}");
    }
}

#[test]
fn a_guard_predicts_what_a_terminal_with_few_samples_costs() {
    // With exact meters and no hidden hardware the guard's prediction is the truth: with deadlines
    // so short that a whole minibatch would miss them, everybody that it schedules is in time.
    let exact = [
        "hardware.measurement_noise=0",
        "hardware.hidden_share=0",
        "cell.hidden_noise_figure_db=0",
        "methods.baselines.guard.margin=1",
        "learning.batch=4096",
    ];
    let mut parts = parts("splitfed+guard", &exact);
    let rounds = until(&mut parts, 4);
    let scheduled = rounds.iter().flat_map(|round| round.order.plan.decision().scheduled()).count();
    assert!(scheduled > 4, "{scheduled} participations");
    let late = |round: &RoundRecord| round.outcome.terminals.iter().any(|one| one.late);
    assert!(!rounds.iter().any(late));
}

#[test]
fn without_measurement_noise_the_truth_is_observed_until_the_round_closes() {
    let mut parts = parts("splitfed", &["hardware.measurement_noise=0"]);
    let deadline = parts.cell.radio().cost.limits.deadline;
    let mut cut = 0;
    for _ in 0..4 {
        let executed = step(&mut parts);
        for (seen, truth) in executed.outcome.terminals.iter().zip(&books(&executed).terminals) {
            assert_eq!(seen.unfinished, truth.delay > deadline);
            assert_eq!(seen.delay, truth.delay.min(deadline));
            assert_eq!(seen.energy, truth.energy_compute + truth.energy_radio);
            cut += usize::from(seen.unfinished);
        }
    }
    assert!(cut > 0, "at least one upload was cut off");
}

#[test]
fn observed_delays_and_energies_carry_the_noise_of_the_scenario() {
    let mut parts = parts("splitfed", &[]);
    let mut logs = Vec::new();
    for _ in 0..40 {
        let executed = step(&mut parts);
        for (seen, truth) in executed.outcome.terminals.iter().zip(&books(&executed).terminals) {
            let joules = truth.energy_compute + truth.energy_radio;
            if !seen.unfinished {
                logs.push((seen.delay.0 / truth.delay.0).ln());
            }
            logs.push((seen.energy.0 / joules.0).ln());
        }
    }
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let deviation = (logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64).sqrt();
    assert!(mean.abs() < 0.01, "biased by {mean}");
    assert!((0.045..0.055).contains(&deviation), "deviation {deviation}");
}

#[test]
fn an_idle_terminal_costs_nothing() {
    let mut parts = parts("random", &[]);
    let (busy, idle) = best_two(&mut parts);
    let one = share(&parts);
    let executed = execute_only(&mut parts, &[(busy, one)]);
    assert_eq!(books(&executed).terminals[idle], TerminalLedger::default());
    let id = parts.cell.present()[idle];
    let nothing = TerminalOutcome { id, ..TerminalOutcome::default() };
    assert_eq!(executed.outcome.terminals[idle], nothing);
}

#[test]
fn a_terminal_whose_memory_does_not_suffice_contributes_nothing() {
    let mut with = parts("random", &[]);
    let mut without = parts("random", &[]);
    let radio = with.cell.radio();
    let need = radio.cost.profile.memory(6);
    let short = (0..radio.memory.len()).find(|&n| radio.memory[n] < need);
    let short = short.expect("a quarter of the terminals is short of memory");
    let excess = need.0 - radio.memory[short].0;
    let (first, second) = best_two(&mut with);
    let good = if first == short { second } else { first };
    let shallow = share(&with);
    let deep = TerminalDecision { cut: 6, ..shallow };
    let both = execute_only(&mut with, &[(good, shallow), (short, deep)]);
    execute_only(&mut without, &[(good, shallow)]);
    assert_eq!(weights(&with), weights(&without));
    let left_out = &both.outcome.terminals[short];
    assert_eq!((left_out.late, left_out.unfit, left_out.took_part), (false, true, false));
    let fine = &both.outcome.terminals[good];
    assert_eq!((fine.late, fine.unfit, fine.took_part), (false, false, true));
    assert_eq!(books(&both).violation.memory.0, excess);
    assert!(books(&both).violation.relative > 0.0);
}

#[test]
fn copies_are_aggregated_every_f_rounds_and_only_then() {
    let mut parts = parts("random", &["learning.aggregate_every=3"]);
    let front = |parts: &Parts| parts.cell.engine().server().weights().layer(1).to_vec();
    let mut before = front(&parts);
    for round in 1..=7 {
        assert_eq!(observe(&mut parts).aggregates, round % 3 == 0);
        step(&mut parts);
        // No terminal is cut below layer 2, so the server's copy of layer 1 moves by aggregation only.
        let after = front(&parts);
        assert_eq!(after != before, round % 3 == 0, "round {round}");
        let held = observe(&mut parts).terminals.iter().any(|one| one.report.held_layers > 0);
        assert_eq!(held, round % 3 != 0, "round {round}");
        before = after;
    }
}

#[test]
fn splitfed_aggregates_every_round_whatever_the_scenario_says() {
    let mut parts = parts("splitfed", &["learning.aggregate_every=5"]);
    for _ in 0..3 {
        assert!(observe(&mut parts).aggregates);
        step(&mut parts);
    }
}

#[test]
fn eq_method_state_carries_the_three_blocks() {
    let mut parts = parts("random", &["evaluation.calibrate_every=2"]);
    let first = observe(&mut parts);
    assert_eq!((first.round, first.loss, &first.success), (1, None, &None));
    let blank = |one: &tilp::round::TerminalView| {
        (one.previous_bandwidth, one.gradient_norm, one.loss) == (Hertz(0.0), None, None)
    };
    assert!(first.terminals.iter().all(blank));
    step(&mut parts);
    let executed = step(&mut parts);
    let seen = observe(&mut parts);
    let channel = &parts.cell.radio().channel;
    for (n, view) in seen.terminals.iter().enumerate() {
        // Network: gains, fading of the round to come, bandwidths of the last.
        assert_eq!(view.report.gain, channel.gain(n, 3));
        assert_eq!(view.report.fading_power, channel.fading_power(n, 3));
        assert!(view.report.fading_power != first.terminals[n].report.fading_power);
        assert_eq!(view.previous_bandwidth, executed.order.plan.decision().terminals[n].bandwidth);
        // Training: gradient norms of those who trained.
        let outcome = &executed.outcome.terminals[n];
        if outcome.took_part {
            assert!(outcome.gradient_norm.is_some_and(|norm| norm > 0.0));
            assert_eq!((view.gradient_norm, view.loss), (outcome.gradient_norm, outcome.loss));
        }
    }
    assert!(seen.loss.is_some_and(f64::is_finite));
    assert_eq!(seen.loss, executed.outcome.loss);
    // Task: success of every task as last calibrated.
    let success = seen.success.expect("round 2 ended with a calibration");
    assert_eq!(success.len(), Family::ALL.len());
    assert_eq!(success.iter().map(|one| one.episodes).sum::<u64>(), 6);
    assert_eq!(Some(success), executed.outcome.success);
    // And of every terminal.
    for (view, measured) in seen.terminals.iter().zip(executed.calibration.unwrap()) {
        let own = view.success.expect("every terminal was measured");
        assert_eq!((own.round, own.count), (2, measured.count));
    }
}

#[test]
fn measuring_success_more_often_changes_neither_weights_nor_decisions() {
    let mut rarely = parts("random", &[]);
    let mut often =
        parts("random", &["evaluation.measure_every=1", "evaluation.calibrate_every=1"]);
    for _ in 0..4 {
        let (executed, mut measured) = (step(&mut rarely), step(&mut often));
        assert_eq!(executed.order, measured.order);
        let counts = measured.outcome.terminals.iter_mut().map(|one| one.success.take());
        assert!(counts.into_iter().all(|count| count.is_some()), "every terminal was measured");
        assert_eq!(executed.outcome.terminals, measured.outcome.terminals);
        assert!(books(&executed).report.is_none() && books(&measured).report.is_some());
    }
    assert_eq!(weights(&rarely), weights(&often));
}

#[test]
fn every_method_meets_the_same_weather_and_the_same_cell() {
    let weather = |name: &str| {
        let mut parts = parts(name, &[]);
        let mut rounds = Vec::new();
        for _ in 0..6 {
            let seen = observe(&mut parts);
            let weather = seen
                .reports()
                .into_iter()
                .map(|one| (one.gain.0, one.fading_power, one.n_samples, one.memory, one.task));
            rounds.push(weather.collect::<Vec<_>>());
            step(&mut parts);
        }
        rounds
    };
    let first = weather(methods()[0].name());
    assert!(first[0] != first[1], "the weather changes from round to round");
    for method in &methods()[1..] {
        assert_eq!(weather(method.name()), first, "{}", method.name());
    }
}

#[test]
fn calibration_report_and_final_episodes_are_disjoint() {
    let run = Seed::new(0).named("episodes");
    let mut seeds = BTreeSet::new();
    let mut n_seeds = 0;
    for set in EpisodeSet::ALL {
        for terminal in 0..6 {
            // As many as the calibrations of a thousand rounds use.
            for index in 0..100 {
                seeds.insert(format!("{:?}", set.episode(run, terminal, index).seed));
                n_seeds += 1;
            }
        }
    }
    assert_eq!(seeds.len(), n_seeds);
}
