//! The training rules of the baselines against each other and against training in one place.

use super::*;
use crate::split::central::{Rule as Descent, Trainer};
use crate::split::engine::Copies;
use crate::split::rule::{Local, Rule};

/// Unequal sets, some smaller than a minibatch.
const SAMPLES: [usize; 4] = [40, 9, 30, 16];

fn sgd() -> Descent {
    Descent::Sgd { rate: settings().server_rate, momentum: 0.0 }
}

fn order(terminals: &[u32], cut: usize) -> Vec<Participant> {
    ids(terminals).into_iter().map(|terminal| Participant { terminal, cut, q: 0.0 }).collect()
}

/// What is trained, and how.
struct Learner {
    model: Policy,
    settings: Settings,
}

/// Every optimiser, also with adapters. What follows from the linearity of plain descent (a mean
/// of steps is a step with the mean) does not hold for them; everything else does.
fn learners(state_at_aggregation: StateAtAggregation) -> Vec<Learner> {
    let rates = Settings { server_rate: 0.01, client_rate: 0.01, ..settings() };
    let with = |model: Policy, optimiser: Optimiser| Learner {
        model,
        settings: Settings { optimiser, state_at_aggregation, ..rates },
    };
    let adapters = || adapted(thin_policy(), Lora { rank: 2, scale: 1.0 });
    vec![
        with(thin_policy(), momentum(0.0)),
        with(thin_policy(), momentum(0.9)),
        with(thin_policy(), adamw()),
        with(adapters(), momentum(0.9)),
        with(adapters(), adamw()),
    ]
}

fn plain() -> Learner {
    Learner { model: thin_policy(), settings: settings() }
}

/// Rounds by one rule over all terminals in this order, averaged after each.
fn run(rule: Rule, cut: usize, terminals: &[u32], rounds: u64) -> Weights {
    run_as(&plain(), rule, cut, terminals, rounds)
}

fn run_as(who: &Learner, rule: Rule, cut: usize, terminals: &[u32], rounds: u64) -> Weights {
    let mut engine = engine(who.model.clone(), who.settings, &SAMPLES);
    for round in 0..rounds {
        engine.train(rule, round, &order(terminals, cut), Copies::default()).unwrap();
        engine.aggregate(&everybody(&engine)).unwrap();
    }
    engine.server().weights().clone()
}

#[test]
fn sequential_split_learning_is_descent_on_the_batches_in_visiting_order() {
    let walk = [2, 0, 3, 1];
    let model = thin_policy();
    let reference = engine(thin_policy(), settings(), &SAMPLES);
    let mut whole = Trainer::new(&model, reference.server().weights().clone(), sgd());
    for round in 0..3 {
        for terminal in walk {
            let batch = union_batch(&reference, &[terminal], round);
            whole.step(&batch.observations, &batch.actions);
        }
    }
    for cut in [2, 5] {
        assert_eq!(&run(Rule::Relay, cut, &walk, 3), whole.weights(), "cut {cut}");
    }
    assert!(distance(&run(Rule::Relay, 2, &[0, 1, 2, 3], 3), whole.weights()) > 1e-4);
}

#[test]
fn in_sequential_split_learning_each_fetches_the_front_and_has_nothing_pending_afterwards() {
    let mut engine = engine(thin_policy(), settings(), &SAMPLES);
    for round in 0..2 {
        let done = engine.train(Rule::Relay, round, &order(&[3, 1], 4), Copies::default()).unwrap();
        let numbers: usize = (1..=4).map(|layer| engine.model().n_parameters(layer)).sum();
        let bytes = 4 * numbers as u64 + 20;
        assert!(done.iter().all(|one| one.sync_down.0 == bytes), "{done:?}");
        assert_eq!(done.iter().map(|one| one.terminal.0).collect::<Vec<_>>(), [3, 1]);
        assert!(engine.server().terminals().values().all(|one| one.deepest_trained() == 0));
    }
}

/// Every terminal trains a whole copy of its own, its back kept by the server; so many local
/// steps, then the mean of all. This is SplitFed V1 word for word; at the last layer it is FedAvg.
fn copies_apart(who: &Learner, cut: usize, rounds: u64, steps: u64) -> Weights {
    let mut engine = engine(who.model.clone(), who.settings, &SAMPLES);
    let copies = Copies { own: 8, edge: 0, n_edges: 0 };
    for round in 0..rounds {
        for step in 0..steps {
            let all = all_at(&engine, cut, 0.0);
            engine.round_with(round * steps + step, &all, copies).unwrap();
        }
        engine.aggregate(&everybody(&engine)).unwrap();
    }
    engine.server().weights().clone()
}

#[test]
fn splitfed_v1_is_fedavg_bit_for_bit_at_every_cut_with_any_number_of_local_steps() {
    // With `keep` each side has state of its own, and a cut of 8 has it all on the terminal.
    for state in [StateAtAggregation::Reset, StateAtAggregation::Keep] {
        for who in learners(state) {
            let fedavg = copies_apart(&who, 8, 3, 4);
            for cut in 1..8 {
                let split = copies_apart(&who, cut, 3, 4);
                assert_eq!(split, fedavg, "cut {cut}, {:?}", who.settings);
            }
        }
    }
}

#[test]
fn with_one_local_step_the_mean_of_copies_is_the_step_with_the_mean_gradient() {
    for cut in [2, 6] {
        let parallel = run(Rule::Parallel, cut, &[0, 1, 2, 3], 5);
        let far = distance(&parallel, &copies_apart(&plain(), cut, 5, 1));
        assert!(far < 1e-6, "cut {cut}: {far}");
    }
}

#[test]
fn the_last_layer_makes_every_rule_federated_averaging_without_activations() {
    for who in learners(StateAtAggregation::Reset) {
        let run = |rule: Rule| run_as(&who, rule, 8, &[0, 1, 2, 3], 4);
        let fedavg = run(Rule::Whole(Local::Steps(1)));
        assert_eq!(run(Rule::Parallel), fedavg);
        assert_eq!(run(Rule::Sequential), fedavg);
        assert_eq!(run(Rule::Tiered { edges: 1 }), fedavg);
    }
}

#[test]
fn one_epoch_of_full_batches_is_one_step_on_the_weighted_union() {
    let settings = Settings { samples: 40, ..settings() };
    let mut federated = engine(thin_policy(), settings, &SAMPLES);
    let base = federated.server().weights().clone();
    let model = thin_policy();
    let mut whole = Trainer::new(&model, base.clone(), sgd());
    let batch = union_batch(&federated, &[0, 1, 2, 3], 0);
    assert_eq!(batch.samples, SAMPLES.iter().sum::<usize>());
    whole.step(&batch.observations, &batch.actions);
    let rule = Rule::Whole(Local::Epochs(1));
    let all = all_at(&federated, 8, 0.0);
    let done = federated.train(rule, 0, &all, Copies::default()).unwrap();
    assert_eq!(done.iter().map(|one| one.samples).collect::<Vec<_>>(), SAMPLES);
    let moved = distance(&base, whole.weights());
    assert!(distance(&federated.virtual_mean(), whole.weights()) < 1e-6);
    // The unweighted mean is another model: the test would notice.
    let copies = (0..4).map(|terminal| own_weights(&federated, terminal).layer(1)[0]);
    let plain = copies.sum::<f32>() / SAMPLES.len() as f32;
    let step = (whole.weights().layer(1)[0] - base.layer(1)[0]).abs();
    assert!((plain - whole.weights().layer(1)[0]).abs() > 0.01 * step, "{moved}");
}

#[test]
fn epochs_pass_over_all_data_and_steps_over_so_many_minibatches() {
    let mut engine = engine(thin_policy(), settings(), &SAMPLES);
    let used = |engine: &mut Engine<Policy>, local| -> Vec<usize> {
        let all = all_at(engine, 8, 0.0);
        let done = engine.train(Rule::Whole(local), 0, &all, Copies::default()).unwrap();
        done.iter().map(|one| one.samples).collect()
    };
    assert_eq!(used(&mut engine, Local::Epochs(3)), SAMPLES.map(|samples| 3 * samples));
    assert_eq!(used(&mut engine, Local::Steps(2)), SAMPLES.map(|samples| 2 * samples.min(16)));
    for (local, total) in [(Local::Epochs(3), 120), (Local::Steps(2), 32)] {
        assert_eq!(local.samples(16, 40), total);
    }
}

#[test]
fn a_compressed_model_is_near_the_exact_one_and_q_zero_is_the_exact_one() {
    let train = |q: f64| {
        let mut engine = engine(thin_policy(), settings(), &[40]);
        let base = engine.server().weights().clone();
        let one = [Participant { terminal: TerminalId(0), cut: 8, q }];
        engine.train(Rule::Whole(Local::Steps(3)), 0, &one, Copies::default()).unwrap();
        (base, engine.virtual_mean())
    };
    let (base, exact) = train(0.0);
    let (_, rounded) = train(0.75);
    let (step, error) = (distance(&base, &exact), distance(&exact, &rounded));
    assert!(error > 0.0 && error < 0.05 * step, "{error} of {step}");
}

#[test]
fn one_terminal_makes_all_rules_training_in_one_place() {
    for who in learners(StateAtAggregation::Keep) {
        let Settings { optimiser, server_rate, .. } = who.settings;
        let reference = engine(who.model.clone(), who.settings, &SAMPLES);
        let base = reference.server().weights().clone();
        let mut whole = Trainer::by(&who.model, base, optimiser, server_rate);
        for round in 0..6 {
            let batch = union_batch(&reference, &[2], round);
            whole.step(&batch.observations, &batch.actions);
        }
        let tiered = Rule::Tiered { edges: 1 };
        for rule in [Rule::Parallel, Rule::Sequential, Rule::Relay, Rule::Broadcast, tiered] {
            let split = run_as(&who, rule, 3, &[2], 6);
            assert_eq!(&split, whole.weights(), "{rule:?}, {optimiser:?}");
        }
    }
}

#[test]
fn splitfed_v2_depends_on_the_order_and_differs_from_v1() {
    let v1 = run(Rule::Parallel, 3, &[0, 1, 2, 3], 3);
    let v2 = run(Rule::Sequential, 3, &[0, 1, 2, 3], 3);
    let turned = run(Rule::Sequential, 3, &[3, 2, 1, 0], 3);
    assert!(distance(&v1, &v2) > 1e-3);
    assert!(distance(&v2, &turned) > 1e-5);
}

#[test]
fn equal_minibatches_make_the_broadcast_exact() {
    // Two terminals with the same sixteen samples draw the same minibatch in another order; a
    // broadcast pairs sample by sample, so the order must agree: the set is the minibatch.
    let policy = thin_policy();
    let data = data(&policy, 0, 1);
    let base = policy.initial(Seed::new(3));
    let mut common =
        Engine::new(Arc::new(thin_policy()), settings(), &base, &[data.clone(), data.clone()]);
    let mut whole = Trainer::new(&policy, base.clone(), sgd());
    for round in 0..5 {
        let batch = union_batch(&common, &[0], round);
        common.broadcast_round(round, &all_at(&common, 3, 0.0)).unwrap();
        whole.step(&batch.observations, &batch.actions);
    }
    assert_eq!(own_weights(&common, 0), own_weights(&common, 1));
    assert!(distance(&common.virtual_mean(), whole.weights()) < 1e-6);
}

#[test]
fn a_broadcast_makes_terminals_drift_apart() {
    let mut own = engine(thin_policy(), settings(), &[20, 20, 20]);
    let mut common = engine(thin_policy(), settings(), &[20, 20, 20]);
    let base = own.virtual_mean();
    let all = all_at(&own, 3, 0.0);
    own.round(0, &all).unwrap();
    common.broadcast_round(0, &all).unwrap();
    assert_eq!(own.server().weights(), common.server().weights());
    let step = distance(&base, &own.virtual_mean());
    let bias = distance(&own.virtual_mean(), &common.virtual_mean());
    assert!(bias > 0.01 * step, "{bias} of a step of {step}");
    assert_ne!(own_weights(&common, 0), own_weights(&common, 1));
}

#[test]
fn a_broadcast_bears_minibatches_of_different_size() {
    let mut engine = engine(thin_policy(), settings(), &[40, 9, 20]);
    let done = engine.broadcast_round(0, &all_at(&engine, 3, 0.75)).unwrap();
    assert_eq!(done.iter().map(|one| one.samples).collect::<Vec<_>>(), [16, 9, 16]);
    assert!(engine.virtual_mean().layers().iter().flatten().all(|value| value.is_finite()));
}

/// Rounds of tiers with mixed cuts; the tiers are averaged at these intervals.
fn tiered(cuts: &[usize], copies: Copies, every: [u64; 2], rounds: u64) -> Engine<Policy> {
    tiered_as(&plain(), cuts, copies, every, rounds)
}

fn tiered_as(
    who: &Learner,
    cuts: &[usize],
    copies: Copies,
    every: [u64; 2],
    rounds: u64,
) -> Engine<Policy> {
    let mut engine = engine(who.model.clone(), who.settings, &[20, 20, 20, 20]);
    let cut = |terminal: TerminalId| cuts[terminal.0 as usize % cuts.len()];
    let one = |terminal| Participant { terminal, cut: cut(terminal), q: 0.0 };
    let all: Vec<_> = engine.ids().into_iter().map(one).collect();
    for round in 1..=rounds {
        let rule = Rule::Tiered { edges: copies.n_edges };
        engine.train(rule, round, &all, copies).unwrap();
        if round.is_multiple_of(every[0]) {
            engine.aggregate_front(copies.own, &ids(&[0, 1, 2, 3])).unwrap();
        }
        if round.is_multiple_of(every[1]) && copies.edge > copies.own {
            engine.aggregate_edges(copies).unwrap();
        }
    }
    engine
}

#[test]
fn tiers_averaged_every_round_are_descent_on_the_union_batch() {
    let model = thin_policy();
    let reference = engine(thin_policy(), settings(), &[20, 20, 20, 20]);
    let mut whole = Trainer::new(&model, reference.server().weights().clone(), sgd());
    for round in 1..=6 {
        let batch = union_batch(&reference, &[0, 1, 2, 3], round);
        whole.step(&batch.observations, &batch.actions);
    }
    for copies in [
        Copies { own: 5, edge: 5, n_edges: 1 },
        Copies { own: 5, edge: 7, n_edges: 2 },
        Copies { own: 8, edge: 8, n_edges: 3 },
    ] {
        let split = tiered(&[2, 3, 5], copies, [1, 1], 6);
        let far = distance(&split.virtual_mean(), whole.weights());
        assert!(far < 1e-6, "{copies:?}: {far}");
    }
}

#[test]
fn equal_cuts_and_an_interval_of_one_are_splitfed_bit_for_bit() {
    let copies = Copies { own: 3, edge: 3, n_edges: 1 };
    for state in [StateAtAggregation::Reset, StateAtAggregation::Keep] {
        for who in learners(state) {
            let adaptive = tiered_as(&who, &[3], copies, [1, 1], 5);
            let mut plain = engine(who.model.clone(), who.settings, &[20, 20, 20, 20]);
            for round in 1..=5 {
                plain.round(round, &all_at(&plain, 3, 0.0)).unwrap();
                plain.aggregate(&ids(&[0, 1, 2, 3])).unwrap();
            }
            assert_eq!(adaptive.server().weights(), plain.server().weights());
        }
    }
}

#[test]
fn one_edge_server_with_nothing_of_its_own_is_no_tier_at_all() {
    for who in learners(StateAtAggregation::Keep) {
        let two = Copies { own: 5, edge: 0, n_edges: 0 };
        let two = tiered_as(&who, &[2, 5], two, [3, 1], 7);
        let three = Copies { own: 5, edge: 5, n_edges: 4 };
        let three = tiered_as(&who, &[2, 5], three, [3, 2], 7);
        assert_eq!(two.virtual_mean(), three.virtual_mean());
    }
}

#[test]
fn copies_agree_right_after_an_average_and_differ_in_between() {
    let copies = Copies { own: 4, edge: 6, n_edges: 2 };
    let before = tiered(&[2, 4], copies, [3, 2], 2);
    let own = own_weights;
    assert_ne!(own(&before, 0).layer(1), own(&before, 1).layer(1), "on the terminals");
    assert_ne!(own(&before, 0).layer(4), own(&before, 2).layer(4), "kept by the server");
    let after = tiered(&[2, 4], copies, [3, 2], 3);
    assert!(after.server().terminals().values().all(|one| one.held() == 0));
    let mean = after.virtual_mean();
    assert_eq!(mean.layer(1), after.server().weights().layer(1));
    // The edge tier was averaged after round 2 and has trained once since.
    assert_ne!(after.server.edges[0].weights.layer(5), after.server.edges[1].weights.layer(5));
    assert_ne!(mean.layer(5), after.server().weights().layer(5));
    let both = tiered(&[2, 4], copies, [3, 2], 6);
    assert_eq!(both.virtual_mean().layer(5), both.server().weights().layer(5));
}

#[test]
fn averaging_layers_with_mixed_cuts_is_averaging_the_whole_models() {
    let copies = Copies { own: 8, edge: 8, n_edges: 1 };
    let mixed = tiered(&[2, 3, 5, 7], copies, [9, 9], 2);
    let mean = mixed.virtual_mean();
    let own: Vec<Weights> = (0..4).map(|terminal| own_weights(&mixed, terminal)).collect();
    for layer in 1..=8 {
        for (index, value) in mean.layer(layer).iter().enumerate() {
            let copies = own.iter().map(|one| f64::from(one.layer(layer)[index]));
            let expected = copies.sum::<f64>() / 4.0;
            assert!((f64::from(*value) - expected).abs() <= 1e-7 * expected.abs().max(1e-2));
        }
    }
}

#[test]
fn a_deeper_cut_fetches_the_copy_that_the_server_kept() {
    let mut engine = engine(thin_policy(), settings(), &[20, 20]);
    let copies = Copies { own: 5, edge: 5, n_edges: 1 };
    engine.aggregate(&ids(&[0, 1])).unwrap();
    engine.round_with(1, &order(&[0, 1], 2), copies).unwrap();
    let kept = own_weights(&engine, 0);
    let state = engine.terminal(TerminalId(0)).unwrap();
    assert_eq!((state.held(), state.deepest_trained()), (2, 2));
    assert_ne!(kept.layer(4), engine.server().weights().layer(4));
    let done = engine.round_with(2, &order(&[0], 4), copies).unwrap();
    let numbers: usize = (3..=4).map(|layer| engine.model().n_parameters(layer)).sum();
    assert_eq!(done[0].sync_down.0, 4 * numbers as u64 + 20);
    assert_eq!(engine.terminal(TerminalId(0)).unwrap().deepest_trained(), 4);
}

#[test]
fn a_restored_engine_of_tiers_goes_on_bit_for_bit() {
    use crate::snapshot::{Persist, Snapshot};
    let copies = Copies { own: 4, edge: 6, n_edges: 2 };
    for who in learners(StateAtAggregation::Keep) {
        for stop in 4..=6 {
            let mut first = tiered_as(&who, &[2, 4], copies, [3, 2], stop);
            let mut snapshot = Snapshot::default();
            first.save(&mut snapshot);
            let mut second = engine(who.model.clone(), who.settings, &[20, 20, 20, 20]);
            second.restore(&snapshot).unwrap();
            for engine in [&mut first, &mut second] {
                let all = all_at(engine, 4, 0.5);
                engine.round_with(9, &all, copies).unwrap();
                engine.round_with(10, &all_at(engine, 3, 0.5), copies).unwrap();
            }
            assert_eq!(first.virtual_mean(), second.virtual_mean());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trajectory_by_every_rule() {
    let whole = Rule::Whole(Local::Epochs(2));
    for (rule, cut) in [
        (Rule::Sequential, 3),
        (Rule::Relay, 3),
        (Rule::Broadcast, 3),
        (whole, 8),
        (Rule::Tiered { edges: 2 }, 3),
    ] {
        assert_eq!(run(rule, cut, &[1, 3, 0], 3), run(rule, cut, &[1, 3, 0], 3), "{rule:?}");
    }
}

/// Distances between models after some rounds at the shallowest and the deepest cut, over the
/// distance that training has moved them.
fn effect_of_the_cut(rule: Rule) -> f64 {
    let train = |cut: usize| {
        let mut engine = engine(policy(), settings(), &[40, 40, 40]);
        for round in 0..8 {
            engine.train(rule, round, &order(&[2, 0, 1], cut), Copies::default()).unwrap();
            engine.aggregate(&everybody(&engine)).unwrap();
        }
        engine.server().weights().clone()
    };
    let (shallow, deep) = (train(2), train(6));
    let base = policy().initial(Seed::new(3));
    distance(&shallow, &deep) / distance(&base, &shallow)
}

#[test]
fn the_cut_does_not_matter_to_splitfed_v1_and_matters_to_v2() {
    let (v1, v2) = (effect_of_the_cut(Rule::Parallel), effect_of_the_cut(Rule::Sequential));
    assert!(v1 < 1e-4, "V1 moved by {v1}");
    assert!(v2 > 0.05, "V2 moved by {v2}");
}
