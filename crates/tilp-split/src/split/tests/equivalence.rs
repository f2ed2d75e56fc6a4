//! Split training against training in one place.

use super::*;
use crate::split::central::{ClipHalves, Rule, Trainer};

fn sgd(settings: &Settings) -> Rule {
    let Optimiser::Sgd { momentum } = settings.optimiser else { panic!("{settings:?}") };
    Rule::Sgd { rate: settings.server_rate, momentum }
}

fn split_equals_unsplit(settings: Settings) {
    is_equal_at_every_cut(policy(), settings);
}

fn is_equal_at_every_cut(model: Policy, settings: Settings) {
    for cut in 1..=7 {
        let mut split = engine(model.clone(), settings, &[40]);
        let (base, rate) = (split.server().weights().clone(), settings.server_rate);
        let clip = ClipHalves { cut, most: settings.clip };
        let mut whole = Trainer::by(&model, base, settings.optimiser, rate).clipped(clip);
        for round in 0..20 {
            let batch = union_batch(&split, &[0], round);
            let outcome = split.round(round, &all_at(&split, cut, 0.0)).unwrap();
            let loss = whole.step(&batch.observations, &batch.actions);
            assert_eq!(outcome[0].loss, loss, "cut {cut}, round {round}");
        }
        assert_eq!(&split.virtual_mean(), whole.weights(), "cut {cut}");
    }
}

#[test]
fn eq_sys_upd_c_split_training_is_unsplit_training_bit_for_bit_at_every_cut() {
    split_equals_unsplit(settings());
}

#[test]
fn momentum_of_the_two_halves_is_the_momentum_of_the_whole_bit_for_bit() {
    let (server_rate, client_rate) = (0.01, 0.01);
    let optimiser = momentum(0.9);
    split_equals_unsplit(Settings { optimiser, server_rate, client_rate, ..settings() });
}

#[test]
fn adamw_of_the_two_halves_is_adamw_of_the_whole_bit_for_bit() {
    let (server_rate, client_rate) = (1e-3, 1e-3);
    let optimiser = adamw();
    split_equals_unsplit(Settings { optimiser, server_rate, client_rate, ..settings() });
}

#[test]
fn split_training_with_clipping_is_unsplit_training_that_clips_each_half() {
    for optimiser in [momentum(0.0), momentum(0.9), adamw()] {
        let (server_rate, client_rate) = (1e-3, 1e-3);
        // Small enough to bind in every round, on both sides.
        let clip = 0.1;
        split_equals_unsplit(Settings { optimiser, clip, server_rate, client_rate, ..settings() });
    }
}

#[test]
fn adapters_of_the_two_halves_are_adapters_of_the_whole_bit_for_bit() {
    let model = adapted(thin_policy(), Lora { rank: 4, scale: 1.0 });
    let rates = Settings { server_rate: 3e-3, client_rate: 3e-3, ..settings() };
    for optimiser in [momentum(0.0), momentum(0.9), adamw()] {
        for clip in [0.0, 0.05] {
            is_equal_at_every_cut(model.clone(), Settings { optimiser, clip, ..rates });
        }
    }
}

#[test]
fn a_terminal_at_the_last_layer_trains_the_whole_model_without_traffic() {
    let mut alone = engine(thin_policy(), settings(), &[40]);
    let model = thin_policy();
    let mut whole = Trainer::new(&model, alone.server().weights().clone(), sgd(&settings()));
    for round in 0..5 {
        let batch = union_batch(&alone, &[0], round);
        let outcome = alone.round(round, &all_at(&alone, 8, 0.0)).unwrap()[0];
        assert_eq!(outcome.loss, whole.step(&batch.observations, &batch.actions));
        assert_eq!((outcome.up.0, outcome.down.0), (0, 0));
        alone.aggregate(&ids(&[0])).unwrap();
    }
    assert_eq!(alone.server().weights(), whole.weights());
}

/// Aggregation every round against one step on all minibatches together. The two sum in a
/// different order in f32, and ten steps carry the difference on: hence 1e-5, not zero.
fn federated_equals_union(cuts: &[usize]) {
    let samples = [40, 9, 30, 7, 50];
    let mut federated = engine(policy(), settings(), &samples);
    let model = policy();
    let base = federated.server().weights().clone();
    let mut whole = Trainer::new(&model, base.clone(), sgd(&settings()));
    let cut = |terminal: TerminalId| cuts[terminal.0 as usize % cuts.len()];
    let participants: Vec<_> = ids(&[0, 1, 2, 3, 4])
        .into_iter()
        .map(|terminal| Participant { terminal, cut: cut(terminal), q: 0.0 })
        .collect();
    for round in 0..10 {
        let batch = union_batch(&federated, &[0, 1, 2, 3, 4], round);
        assert_eq!(batch.samples, 16 + 9 + 16 + 7 + 16);
        let outcomes = federated.round(round, &participants).unwrap();
        federated.aggregate(&everybody(&federated)).unwrap();
        let loss = whole.step(&batch.observations, &batch.actions);
        let ours = crate::split::engine::training_loss(&outcomes);
        assert!((ours - loss).abs() < 1e-5 * loss, "round {round}: {ours}, union {loss}");
    }
    let far = distance(federated.server().weights(), whole.weights());
    assert!(far < 1e-5, "cuts {cuts:?}: {far}");
    assert!(distance(&base, whole.weights()) > 1e-2, "the steps were too small to show anything");
}

#[test]
fn eq_server_gradient_one_cut_aggregated_every_round_is_descent_on_the_union_batch() {
    federated_equals_union(&[4]);
}

#[test]
fn eq_server_gradient_mixed_cuts_aggregated_every_round_are_descent_on_the_union_batch() {
    federated_equals_union(&[2, 3, 4, 5, 6]);
    federated_equals_union(&[1, 7, 8]);
}

#[test]
fn eq_training_loss_is_weighted_by_the_size_of_the_minibatch() {
    let mut engine = engine(thin_policy(), settings(), &[40, 8]);
    let outcomes = engine.round(0, &all_at(&engine, 3, 0.0)).unwrap();
    let expected = (16.0 * outcomes[0].loss + 8.0 * outcomes[1].loss) / 24.0;
    assert!((crate::split::engine::training_loss(&outcomes) - expected).abs() < 1e-12);
}

#[test]
fn terminals_one_after_another_are_descent_on_their_batches_in_visiting_order() {
    let mut relay = engine(thin_policy(), settings(), &[40, 20, 16]);
    let model = thin_policy();
    let mut whole = Trainer::new(&model, relay.server().weights().clone(), sgd(&settings()));
    for (round, terminal) in [2, 0, 1, 1, 0, 2].into_iter().enumerate() {
        let batch = union_batch(&relay, &[terminal], round as u64);
        let cut = 3 + round % 3;
        let visit = [Participant { terminal: TerminalId(terminal), cut, q: 0.0 }];
        relay.round(round as u64, &visit).unwrap();
        relay.aggregate(&ids(&[terminal])).unwrap();
        whole.step(&batch.observations, &batch.actions);
    }
    assert_eq!(relay.server().weights(), whole.weights());
}

#[test]
fn eq_sys_upd_s_the_server_steps_against_its_gradient_by_its_own_rate() {
    let mut engine = engine(thin_policy(), Settings { client_rate: 0.0, ..settings() }, &[16]);
    let model = thin_policy();
    let base = engine.server().weights().clone();
    let batch = union_batch(&engine, &[0], 0);
    let trainer = Trainer::new(&model, base.clone(), sgd(&settings()));
    let (_, gradient) = trainer.gradient(&batch.observations, &batch.actions);
    engine.round(0, &all_at(&engine, 4, 0.0)).unwrap();
    let mean = engine.virtual_mean();
    for layer in 1..=8 {
        let rate = if layer <= 4 { 0.0 } else { 0.05 };
        for index in 0..base.layer(layer).len() {
            let expected = base.layer(layer)[index] - rate * gradient.layer(layer)[index];
            assert_eq!(mean.layer(layer)[index], expected);
        }
    }
}

#[test]
fn a_sparse_round_returns_the_gradient_of_the_loss_of_the_sparse_activation() {
    use crate::split::compress::{Packing, decode, decode_gradient};
    use crate::split::message::{Activation, CutGradient};
    use crate::split::server::{ServerWork, serve};
    let settings = Settings { compressor: Compressor::TopK, ..settings() };
    let engine = engine(thin_policy(), settings, &[16]);
    let (model, server) = (engine.model(), engine.server());
    let (mut work, mut gradients) = (ServerWork::new(model), Weights::zeros(model));
    let order = order(&settings, 0, 0, 2, 0.7);
    let up = locked(&engine.links[&TerminalId(0)]).exchange(&order.to_bytes()).unwrap();
    let weights = server.weights();
    let served =
        serve(order.context, weights, model, &settings, &up, &mut work, &mut gradients).unwrap();
    let message = Activation::from_bytes(&up).unwrap();
    let elements = model.n_elements(2);
    let (mut sparse, mut returned, mut flow) = (vec![], vec![], vec![]);
    let packing = decode(&message.payload, elements, 16, &mut sparse).unwrap();
    let reply = CutGradient::from_bytes(&served.reply).unwrap();
    decode_gradient(&reply.payload, &packing, elements, 16, &mut returned).unwrap();
    let mut workspace = model.workspace();
    let outputs = model.forward(3..=8, server.weights(), &sparse, &mut workspace);
    model.loss(outputs, &message.labels, &mut flow);
    let whole = model.backward(3..=8, server.weights(), &flow, &mut workspace, &mut gradients);
    let Packing::Sparse { positions, per_sample } = packing else { panic!("{packing:?}") };
    assert_eq!(per_sample, 10); // ceil(0.3 * 32)
    for (index, value) in returned.iter().enumerate() {
        let kept = &positions[index / elements * per_sample..][..per_sample];
        let open = kept.contains(&((index % elements) as u32));
        assert_eq!(*value, if open { whole[index] } else { 0.0 });
    }
}

#[test]
fn eq_sys_sfwd_the_message_carries_the_activation_of_the_front_layers() {
    use crate::split::compress::decode;
    use crate::split::message::Activation;
    let engine = engine(thin_policy(), settings(), &[16]);
    let model = engine.model();
    let order = order(&settings(), 0, 0, 3, 0.0).to_bytes();
    let bytes = locked(&engine.links[&TerminalId(0)]).exchange(&order).unwrap();
    let message = Activation::from_bytes(&bytes).unwrap();
    let mut sent = Vec::new();
    decode(&message.payload, model.n_elements(3), 16, &mut sent).unwrap();
    let mut workspace = model.workspace();
    let batch = union_batch(&engine, &[0], 0);
    let weights = engine.server().weights();
    let expected = model.forward(1..=3, weights, &batch.observations, &mut workspace);
    assert_eq!(sent, expected);
    assert_eq!(message.labels, batch.actions);
}
