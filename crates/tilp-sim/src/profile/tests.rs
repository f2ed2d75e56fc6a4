//! Properties of learning by a law.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::RngExt;

use super::{Law, LawEvaluator, LawExaminer, LawLearner, LawRanges, Members};
use crate::compress::{Compressor, Exchange};
use crate::rng::Seed;
use crate::round::{Evaluator, TerminalId};
use crate::snapshot::{Persist, Snapshot};
use crate::split::data::Dataset;
use crate::split::engine::{Copies, Engine, Participant, Settings};
use crate::split::model::{SplitModel, Weights};
use crate::split::optimiser::Optimiser;
use crate::split::policy::{Architecture, Policy};
use crate::split::rates::Rates;
use crate::split::rule::{Local, Rule};
use crate::tasks::EpisodeSet;
use crate::world::{Examiner, Learner, Schedule};

/// A law without chance, with round numbers.
pub(super) const PLAIN: LawRanges = LawRanges {
    start_loss: [0.1, 0.1],
    floor_share: [0.1, 0.1],
    scale_samples: [1000.0, 1000.0],
    power: [1.0, 1.0],
    kin: [0.25, 0.25],
    other: [0.01, 0.01],
    passes: [4.0, 4.0],
    critical_batch: [256.0, 256.0],
    noise: [0.5, 0.5],
    drift: [0.1, 0.1],
    broadcast: [0.5, 0.5],
    base_success: [0.25, 0.25],
    slope: [2.0, 2.0],
    terminal_sd: 0.0,
    minibatch_sd: 0.0,
    gradient: [1.0, 1.0],
};

const RATES: Rates = Rates { server: 0.1, terminal: 0.1 };
const BATCH: usize = 8;
const N: usize = 6;

/// Layers with 10, 20, 30 and 40 % of the parameters.
const PARAMETERS: [u64; 4] = [10, 20, 30, 40];

const RULES: [Rule; 6] = [
    Rule::Parallel,
    Rule::Sequential,
    Rule::Relay,
    Rule::Broadcast,
    Rule::Whole(Local::Steps(4)),
    Rule::Tiered { edges: 2 },
];

fn learner(ranges: LawRanges) -> LawLearner {
    let members = Members { tasks: vec![0, 0, 0, 1, 1, 2], n_samples: vec![100_000; N] };
    let law = Law::draw(&ranges, members, Compressor::Quantize, Seed::new(1));
    LawLearner::new(law, &PARAMETERS, BATCH, Seed::new(2))
}

fn at(terminal: u32, cut: usize) -> Participant {
    Participant { terminal: TerminalId(terminal), cut, q: 0.0 }
}

fn ids(ids: &[u32]) -> Vec<TerminalId> {
    ids.iter().copied().map(TerminalId).collect()
}

/// Samples of each terminal that would be deployed.
fn used(learner: &LawLearner) -> Vec<f64> {
    learner.copies.used(&learner.law)
}

fn train(learner: &mut LawLearner, rule: Rule, participants: &[Participant]) {
    learner.train(rule, 1, RATES, participants, Copies::default()).unwrap();
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()))
}

#[test]
fn without_participants_nothing_changes() {
    for rule in RULES {
        let mut learner = learner(PLAIN);
        train(&mut learner, Rule::Parallel, &[at(0, 2), at(3, 1)]);
        // Sequential split learning aggregates before any terminal begins.
        learner.aggregate(&ids(&[0, 1, 2, 3, 4, 5])).unwrap();
        let before = learner.clone();
        let copies = Copies { own: 2, edge: 3, n_edges: 2 };
        assert!(learner.train(rule, 1, RATES, &[], copies).unwrap().is_empty());
        assert_eq!(used(&learner), used(&before), "{rule:?}");
        assert_eq!(learner.model(1), before.model(1), "{rule:?}");
    }
}

#[test]
fn a_parallel_round_is_one_step_with_everybodys_samples() {
    let mut learner = learner(PLAIN);
    train(&mut learner, Rule::Parallel, &[at(0, 1), at(1, 1), at(4, 1)]);
    let each = 8.0 / (1.0 + 24.0 / 256.0);
    assert!(close(&used(&learner), &[each, each, 0.0, 0.0, each, 0.0]));
}

#[test]
fn sequential_rules_are_a_step_for_each_terminal() {
    let each = 8.0 / (1.0 + 8.0 / 256.0);
    let mut relay = learner(PLAIN);
    train(&mut relay, Rule::Relay, &[at(0, 2), at(1, 2), at(4, 2)]);
    assert!(close(&used(&relay), &[each, each, 0.0, 0.0, each, 0.0]));
    // The fronts of the other rule are averaged: one step with all samples for 30 % of the model.
    let mut sequential = learner(PLAIN);
    train(&mut sequential, Rule::Sequential, &[at(0, 2), at(1, 2), at(4, 2)]);
    let mixed = 0.3 * 8.0 / (1.0 + 24.0 / 256.0) + 0.7 * each;
    assert!(close(&used(&sequential), &[mixed, mixed, 0.0, 0.0, mixed, 0.0]));
}

#[test]
fn steps_that_are_all_noise_make_every_rule_the_same_and_exact_ones_favour_more_steps() {
    let run = |rule: Rule, critical: f64| {
        let mut learner = learner(LawRanges { critical_batch: [critical, critical], ..PLAIN });
        train(&mut learner, rule, &[at(0, 1), at(1, 1), at(2, 1), at(3, 1)]);
        used(&learner).iter().sum::<f64>()
    };
    let noisy = RULES[..3].iter().map(|rule| run(*rule, 1e12)).collect::<Vec<_>>();
    assert!(close(&noisy, &[32.0, 32.0, 32.0]));
    let exact = run(Rule::Relay, 1e-9) / run(Rule::Parallel, 1e-9);
    assert!((exact - 4.0).abs() < 1e-6);
}

#[test]
fn with_an_aggregation_every_round_the_cuts_do_not_matter() {
    let run = |cuts: [usize; 3]| {
        let mut learner = learner(PLAIN);
        for round in 0..5 {
            let parts: Vec<Participant> =
                (0..3).map(|k| at((2 * k + round) % 6, cuts[k as usize])).collect();
            train(&mut learner, Rule::Parallel, &parts);
            learner.aggregate(&ids(&[0, 1, 2, 3, 4, 5])).unwrap();
        }
        used(&learner)
    };
    let shallow = run([1, 1, 1]);
    assert!(close(&run([3, 3, 3]), &shallow));
    assert!(close(&run([1, 2, 3]), &shallow));
    assert!(close(&run([3, 1, 2]), &shallow));
}

#[test]
fn local_steps_of_copies_apart_are_worth_less_than_steps_together() {
    let everybody: Vec<Participant> = (0..6).map(|n| at(n, 3)).collect();
    let run = |every: usize| {
        let mut learner = learner(PLAIN);
        for round in 1..=12 {
            train(&mut learner, Rule::Parallel, &everybody);
            if round % every == 0 {
                learner.aggregate(&ids(&[0, 1, 2, 3, 4, 5])).unwrap();
            }
        }
        used(&learner).iter().sum::<f64>()
    };
    let totals = [1, 2, 4, 12].map(run);
    assert!(totals.windows(2).all(|pair| pair[1] < pair[0]), "{totals:?}");
    // Six copies with four steps each: the front 60 % lose by drift, the rest does not.
    let step = 48.0 / (1.0 + 48.0 / 256.0);
    let front = 1.0 / (1.0 + 0.1 * 3.0 * (1.0 - 1.0 / 6.0));
    let expected = 12.0 * step * (0.6 * front + 0.4);
    assert!((totals[2] - expected).abs() < 1e-9 * expected);
}

#[test]
fn a_copy_that_does_not_arrive_is_lost_with_its_layers_alone() {
    let mut learner = learner(PLAIN);
    train(&mut learner, Rule::Parallel, &[at(0, 2), at(1, 2)]);
    learner.aggregate(&ids(&[1])).unwrap();
    let server = 0.7 * 8.0 / (1.0 + 16.0 / 256.0);
    let front = 0.3 * 8.0 / (1.0 + 8.0 / 256.0);
    assert!(close(&used(&learner), &[server, server + front, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!((learner.held_layers(TerminalId(0)), learner.owed_layers(TerminalId(0))), (0, 0));
}

#[test]
fn an_aggregation_changes_who_holds_what_and_not_what_is_deployed() {
    let mut learner = learner(PLAIN);
    train(&mut learner, Rule::Parallel, &[at(0, 2), at(1, 3), at(5, 1)]);
    train(&mut learner, Rule::Parallel, &[at(0, 1), at(3, 2)]);
    let before = used(&learner);
    learner.aggregate(&ids(&[0, 1, 2, 3, 4, 5])).unwrap();
    assert!(close(&used(&learner), &before));
    assert!((0..6).all(|n| learner.held_layers(TerminalId(n)) == 0));
}

#[test]
fn a_terminal_that_leaves_takes_its_pending_copies_along() {
    let mut learner = learner(PLAIN);
    train(&mut learner, Rule::Parallel, &[at(0, 4)]);
    assert!(used(&learner)[0] > 0.0);
    let without: BTreeSet<TerminalId> = ids(&[1, 2, 3, 4, 5]).into_iter().collect();
    learner.gather(&without, 2).unwrap();
    assert_eq!(used(&learner), vec![0.0; 6]);
    assert!(learner.train(Rule::Parallel, 2, RATES, &[at(0, 1)], Copies::default()).is_err());
    learner.gather(&ids(&[0, 1, 2, 3, 4, 5]).into_iter().collect(), 3).unwrap();
    assert_eq!(learner.held_layers(TerminalId(0)), 0, "it joins with nothing");
}

#[test]
fn samples_of_a_terminal_lower_its_own_loss_most_and_no_loss_rises() {
    let mut learner = learner(PLAIN);
    let mut last = learner.effective();
    for round in 0..20 {
        train(&mut learner, RULES[round % 3], &[at(0, 1)]);
        learner.aggregate(&ids(&[0])).unwrap();
        let now = learner.effective();
        assert!(now.iter().zip(&last).all(|(now, last)| now > last));
        assert!(now[0] > now[1] && now[1] == now[2] && now[2] > now[3] && now[3] == now[5]);
        last = now;
    }
}

#[test]
fn a_compressed_round_and_a_broadcast_gradient_teach_less() {
    let total = |rule: Rule, q: f64| {
        let mut learner = learner(PLAIN);
        let parts = [at(0, 2), at(1, 2)].map(|one| Participant { q, ..one });
        train(&mut learner, rule, &parts);
        used(&learner).iter().sum::<f64>()
    };
    let plain = total(Rule::Parallel, 0.0);
    assert!(total(Rule::Parallel, 0.9) < 0.7 * plain);
    assert!(total(Rule::Parallel, 0.5) > 0.999 * plain, "16 bits are as good as 32");
    // Half a step for 30 % of the model.
    let front = 0.3 * 8.0 / (1.0 + 8.0 / 256.0);
    let expected = 0.7 * plain + front;
    assert!((total(Rule::Broadcast, 0.0) - expected).abs() < 1e-9);
}

#[test]
fn the_whole_model_trains_as_many_steps_as_asked_for() {
    let mut learner = learner(PLAIN);
    let rule = Rule::Whole(Local::Steps(4));
    let done = learner.train(rule, 1, RATES, &[at(0, 4), at(1, 4)], Copies::default()).unwrap();
    assert_eq!(done.iter().map(|one| one.samples).collect::<Vec<_>>(), [32, 32]);
    // Two copies, four steps of 16 samples each.
    let each = 32.0 / (1.0 + 16.0 / 256.0) / (1.0 + 0.1 * 3.0 * 0.5);
    assert!(close(&used(&learner)[..2], &[each, each]));
}

#[test]
fn edge_servers_step_for_their_groups_and_their_average_keeps_what_they_learned() {
    let tier = Copies { own: 1, edge: 3, n_edges: 2 };
    let mut learner = learner(PLAIN);
    let parts = [at(0, 1), at(1, 1), at(2, 1)];
    learner.train(Rule::Tiered { edges: 2 }, 1, RATES, &parts, tier).unwrap();
    // Every layer has seen one step of each terminal: two copies at the edge, three in front.
    let each = 8.0 / (1.0 + 24.0 / 256.0);
    assert!(close(&used(&learner)[..3], &[each, each, each]));
    let before = used(&learner);
    learner.aggregate_edges(tier).unwrap();
    assert!(close(&used(&learner), &before));
    assert_eq!(learner.owed_layers(TerminalId(0)), 1, "copies of terminals stay");
    learner.aggregate_front(1, &ids(&[0, 1, 2])).unwrap();
    assert!(close(&used(&learner), &before));
}

#[test]
fn a_report_is_the_loss_before_the_step_blurred_by_compression() {
    let mut learner = learner(PLAIN);
    let parts = [Participant { q: 0.9, ..at(0, 1) }, at(1, 1)];
    let done = learner.train(Rule::Parallel, 1, RATES, &parts, Copies::default()).unwrap();
    assert!((done[0].loss - 0.15).abs() < 1e-12 && (done[1].loss - 0.1).abs() < 1e-12);
    assert!((done[1].client_gradient_norm - 0.1f64.sqrt()).abs() < 1e-12);
    assert!((done[1].server_gradient_norm - 0.9f64.sqrt()).abs() < 1e-12);
}

#[test]
fn minibatches_scatter_with_round_and_terminal_and_repeat_with_the_seed() {
    let ranges = LawRanges { minibatch_sd: 0.3, ..PLAIN };
    let losses = |round: u64| {
        let parts: Vec<Participant> = (0..6).map(|n| at(n, 1)).collect();
        let done = learner(ranges).train(Rule::Parallel, round, RATES, &parts, Copies::default());
        done.unwrap().iter().map(|one| one.loss).collect::<Vec<_>>()
    };
    assert_eq!(losses(1), losses(1));
    assert_ne!(losses(1), losses(2));
    let logs: Vec<f64> = (0..400).flat_map(losses).map(|loss| (loss / 0.1).ln()).collect();
    let n = logs.len() as f64;
    let sd = (logs.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
    assert!((sd - 0.3).abs() < 4.0 * 0.3 / (2.0 * n).sqrt());
}

/// Random rounds of every rule, with aggregations of every kind and lost copies.
fn random_rounds(
    seed: u64,
    n_rounds: u64,
    mut each: impl FnMut(u64, Rule, &[Participant], Copies),
) {
    for round in 1..=n_rounds {
        let mut rng = Seed::new(seed).named("rounds").at(round).rng();
        let rule = RULES[rng.random_range(0..RULES.len())];
        let common = rng.random_range(1..=3);
        let cut = |rng: &mut crate::rng::Rng| match rule {
            Rule::Broadcast => common,
            Rule::Whole(_) => 4,
            _ => rng.random_range(1..=3),
        };
        let parts: Vec<Participant> = (0..N as u32)
            .filter_map(|n| {
                let one = at(n, cut(&mut rng));
                rng.random_bool(0.5).then_some(one)
            })
            .collect();
        let own = rng.random_range(0..=3);
        let copies = match rule {
            Rule::Tiered { .. } => Copies { own, edge: rng.random_range(own..=4), n_edges: 2 },
            _ => Copies::default(),
        };
        each(round, rule, &parts, copies);
    }
}

/// The split-learning engine on the smallest policy with four layers.
fn engine() -> Engine<Policy> {
    let policy = Policy::new(Architecture {
        tokens: vec![(0, 1), (1, 1)],
        width: 4,
        heads: 1,
        blocks: 2,
        hidden_ratio: 1,
        merge_after: vec![],
        actions: 1,
        loss_weights: vec![1.0],
        cuts: vec![1, 2, 3],
    });
    let policy = Arc::new(policy.unwrap());
    assert_eq!(policy.n_layers(), PARAMETERS.len());
    let settings = Settings {
        seed: Seed::new(5),
        minibatches: Seed::new(5),
        samples: BATCH,
        server_rate: 0.01,
        client_rate: 0.01,
        optimiser: Optimiser::Sgd { momentum: 0.0 },
        clip: 0.0,
        state_at_aggregation: Default::default(),
        compressor: Compressor::Quantize,
        exchange: Exchange::Single,
    };
    let mut data = Dataset::new(2, 1);
    (0..20).for_each(|k| data.push(&[k as f32, 1.0], &[0.5]));
    let data = Arc::new(data);
    let data: Vec<_> = (0..N).map(|_| data.clone()).collect();
    let base = Weights::zeros(&*policy);
    Engine::new(policy, settings, &base, &data)
}

#[test]
fn held_and_owed_layers_are_those_of_the_split_learning_engine() {
    for seed in 0..20 {
        let (mut engine, mut learner) = (engine(), learner(PLAIN));
        random_rounds(seed, 30, |round, rule, parts, copies| {
            engine.train(rule, round, parts, copies).unwrap();
            learner.train(rule, round, RATES, parts, copies).unwrap();
            let mut rng = Seed::new(seed).named("arrivals").at(round).rng();
            let arrived: Vec<TerminalId> =
                (0..N as u32).filter(|_| rng.random_bool(0.7)).map(TerminalId).collect();
            match rng.random_range(0..6) {
                0 => {
                    engine.aggregate(&arrived).unwrap();
                    learner.aggregate(&arrived).unwrap();
                }
                1 => {
                    engine.aggregate_front(copies.own, &arrived).unwrap();
                    learner.aggregate_front(copies.own, &arrived).unwrap();
                }
                2 => {
                    engine.aggregate_edges(copies).unwrap();
                    learner.aggregate_edges(copies).unwrap();
                }
                _ => {}
            }
            for id in ids(&[0, 1, 2, 3, 4, 5]) {
                let state = engine.terminal(id).unwrap();
                assert_eq!(learner.held_layers(id), state.held(), "round {round}, {id}");
                assert_eq!(learner.owed_layers(id), state.deepest_trained(), "round {round}, {id}");
            }
        });
    }
}

fn saved(learner: &LawLearner) -> Snapshot {
    let mut snapshot = Snapshot::default();
    learner.save(&mut snapshot);
    snapshot
}

#[test]
fn a_learner_goes_on_bit_for_bit_from_any_round() {
    let ranges = LawRanges { minibatch_sd: 0.2, ..PLAIN };
    let (mut straight, mut resumed) = (learner(ranges), learner(ranges));
    random_rounds(7, 40, |round, rule, parts, copies| {
        let mut fresh = learner(ranges);
        fresh.restore(&saved(&resumed)).unwrap();
        resumed = fresh;
        let a = straight.train(rule, round, RATES, parts, copies).unwrap();
        let b = resumed.train(rule, round, RATES, parts, copies).unwrap();
        assert_eq!(a, b);
        if round % 5 == 0 {
            straight.aggregate(&ids(&[0, 2, 4])).unwrap();
            resumed.aggregate(&ids(&[0, 2, 4])).unwrap();
        }
        assert_eq!(straight, resumed);
        assert_eq!(straight.model(round), resumed.model(round));
    });
}

#[test]
fn a_forged_snapshot_is_refused_and_changes_nothing() {
    let mut learner = learner(PLAIN);
    let tier = Copies { own: 1, edge: 3, n_edges: 2 };
    learner.train(Rule::Tiered { edges: 2 }, 1, RATES, &[at(0, 2), at(1, 1)], tier).unwrap();
    let good = saved(&learner);
    let before = learner.clone();
    let forge = |name: &str, change: &dyn Fn(&mut Snapshot)| {
        let mut forged = good.clone();
        change(&mut forged);
        let mut victim = before.clone();
        let said = victim.restore(&forged).expect_err(name).to_string();
        assert!(said.contains(name) && !said.contains('\n'), "{said}");
        assert_eq!(victim, before);
    };
    forge("law/settled", &|s| s.put_f64("law/settled", vec![f64::NAN; N]));
    forge("law/settled", &|s| s.put_f64("law/settled", vec![-1.0; N]));
    forge("law/members", &|s| s.put_u64("law/members", vec![0, 1, 2, 3, 4, 6]));
    forge("law/members", &|s| s.put_u64("law/members", vec![0, 1, 2, 3, 4, 4]));
    forge("law/held", &|s| s.put_u64("law/held", vec![5; N]));
    forge("law/own/steps", &|s| s.put_f64("law/own/steps", vec![0.0; 3]));
    forge("law/edges", &|s| s.put_u64("law/edges", vec![1 << 40]));
    forge("law/edge/holds", &|s| s.put_u64("law/edge/holds", vec![2; 8]));
    forge("law/edge/samples", &|s| s.put_u64("law/edge/holds", vec![1; 8]));
}

fn examiner(learner: &LawLearner) -> LawExaminer {
    let schedule = Schedule {
        calibrate_every: 10,
        calibration_episodes: 2,
        measure_every: 10,
        report_episodes: 2,
        final_episodes: 4,
        episode_steps: 1,
        loss_every: 7,
        loss_samples: 1,
    };
    let tasks = &["pick", "place", "open"];
    LawExaminer { law: learner.law().clone(), tasks, schedule, seed: Seed::new(9) }
}

#[test]
fn success_is_binomial_with_the_probability_of_the_law() {
    let mut learner = learner(PLAIN);
    let examiner = examiner(&learner);
    let everybody = ids(&[0, 1, 2, 3, 4, 5]);
    let count = |learner: &LawLearner, set| {
        let model = learner.model(1).unwrap();
        let counts = examiner.success(1, set, 0, 2000, &everybody, &model).unwrap();
        counts.iter().map(|one| one.count.successes).sum::<u64>() as f64 / 12_000.0
    };
    let bound = 4.0 * (0.25f64 * 0.75 / 12_000.0).sqrt();
    let base = count(&learner, EpisodeSet::Report);
    assert!((base - 0.25).abs() < bound);
    assert_ne!(base, count(&learner, EpisodeSet::Final), "sets share no episode");
    for _ in 0..200 {
        train(&mut learner, Rule::Parallel, &[at(0, 1), at(3, 1), at(5, 1)]);
    }
    let losses = examiner.losses(&learner, 1, &everybody, &learner.model(1).unwrap()).unwrap();
    let expected = losses.iter().enumerate().map(|(n, loss)| learner.law().success(n, *loss));
    let expected = expected.sum::<f64>() / 6.0;
    assert!(expected > 0.3);
    assert!((count(&learner, EpisodeSet::Report) - expected).abs() < bound);
}

#[test]
fn the_same_episodes_never_fail_a_better_model_that_passed_before() {
    let mut learner = learner(PLAIN);
    let examiner = examiner(&learner);
    let everybody = ids(&[0, 1, 2, 3, 4, 5]);
    let mut last = 0;
    for _ in 0..30 {
        train(&mut learner, Rule::Relay, &(0..6).map(|n| at(n, 1)).collect::<Vec<_>>());
        let set = EpisodeSet::Report;
        let counts =
            examiner.success(1, set, 0, 50, &everybody, &learner.model(1).unwrap()).unwrap();
        let now = counts.iter().map(|one| one.count.successes).sum();
        assert!(now >= last);
        last = now;
    }
    assert!(last > 100);
}

#[test]
fn calibrations_have_episodes_of_their_own_and_a_foreign_model_is_refused() {
    let learner = learner(PLAIN);
    let mut evaluator = LawEvaluator(examiner(&learner));
    assert!(evaluator.is_due(20) && !evaluator.is_due(21));
    let everybody = ids(&[0, 1, 2, 3, 4, 5]);
    let counts = |evaluator: &mut LawEvaluator, round| {
        let counts = evaluator.evaluate(round, &everybody, &learner.model(round).unwrap()).unwrap();
        counts.iter().map(|one| one.count.successes).collect::<Vec<_>>()
    };
    let measured: BTreeSet<Vec<u64>> = (1..20).map(|k| counts(&mut evaluator, 10 * k)).collect();
    assert!(measured.len() > 10);
    assert!(evaluator.evaluate(10, &everybody, &[1, 2, 3]).is_err());
}
