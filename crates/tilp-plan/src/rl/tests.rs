//! Properties of the actor-critic.

use super::actor::{Actor, ActorTrace, AgentStates};
use super::agent::Agent;
use super::critic::{Critic, CriticTrace};
use super::policy::{Drawn, Noise, Relaxation, Space, backward, log_probability, sample};
use super::replay::{AgentState, Transition};
use super::sac::{Sac, Settings};
use crate::nn::check::{Check, values};
use crate::rng::Seed;
use crate::snapshot::{Persist, Snapshot};
use rand::RngExt as _;
use std::cell::RefCell;

const MIXED: Space = Space {
    terminal_features: 4,
    global_features: 2,
    reals: 3,
    categories: 5,
    flag: true,
    log_deviation: [-5.0, 2.0],
};

fn agent_states(space: &Space, n_terminals: usize, samples: usize, seed: u32) -> AgentStates {
    AgentStates {
        n_terminals,
        samples,
        terminals: values(space.terminal_features * n_terminals * samples, seed),
        globals: values(space.global_features * samples, seed + 1),
    }
}

#[test]
fn the_gradient_of_actions_and_log_probabilities_agrees_with_finite_differences() {
    let numbers = Space { categories: 0, flag: false, ..MIXED };
    for space in [MIXED, numbers, Space { reals: 0, ..MIXED }] {
        let columns = 6;
        let mut noise = Noise::default();
        noise.draw(&space, columns, &mut Seed::new(2).rng());
        let how = Relaxation { temperature: 0.7, soft: true };
        let drawn = RefCell::new(Drawn::default());
        let n_actions = space.n_action() * columns;
        let by_log = [0.3, -0.8];
        Check {
            parameters: vec![0.0],
            input: values(space.n_head() * columns, 5),
            outputs: n_actions + 1,
        }
        .run(
            |_, head, y| {
                let mut drawn = drawn.borrow_mut();
                sample(&space, head, &noise, how, columns, &mut drawn);
                y[..n_actions].copy_from_slice(&drawn.actions);
                let logs = drawn.log_reals.iter().zip(&drawn.log_mixed);
                y[n_actions] = logs.map(|(a, b)| by_log[0] * a + by_log[1] * b).sum();
            },
            |_, head, dy, gradient, dx| {
                gradient.fill(0.0);
                let mut by_head = Vec::new();
                let by_log = by_log.map(|weight| weight * dy[n_actions]);
                let drawn = drawn.borrow();
                let by_action = &dy[..n_actions];
                backward(&space, head, &noise, &drawn, 0.7, by_action, by_log, &mut by_head);
                dx.copy_from_slice(&by_head);
            },
        );
    }
}

/// Actions, log-probabilities and gradients that PyTorch computed in double precision.
fn reference(name: &str) -> Vec<f32> {
    let text =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/mixed_policy.json"));
    let named: serde_json::Value = serde_json::from_str(text).unwrap();
    let numbers = named[name].as_array().unwrap();
    numbers.iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn agree(name: &str, ours: &[f32]) {
    let theirs = reference(name);
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() < 2e-5 * b.abs().max(1.0), "{name}: {a}, PyTorch {b}");
    }
}

#[test]
fn the_mixed_policy_agrees_with_pytorch() {
    let (head, noise) = (reference("head"), Noise::given(reference("noise")));
    let columns = head.len() / MIXED.n_head();
    let mut drawn = Drawn::default();
    let soft = Relaxation { temperature: 0.7, soft: true };
    sample(&MIXED, &head, &noise, soft, columns, &mut drawn);
    agree("soft", &drawn.actions);
    let hard = Relaxation { soft: false, ..soft };
    sample(&MIXED, &head, &noise, hard, columns, &mut drawn);
    agree("hard", &drawn.actions);
    agree("log_reals", &drawn.log_reals);
    agree("log_mixed", &drawn.log_mixed);
    agree("log_probability", &[log_probability(&MIXED, &head, &drawn.actions) as f32]);
    let (by_action, mut gradient) = (reference("by_action"), Vec::new());
    let by_log = [0.3, -0.8];
    backward(&MIXED, &head, &noise, &drawn, 0.7, &by_action, by_log, &mut gradient);
    agree("gradient", &gradient);
}

#[test]
fn the_gradients_of_the_critic_agree_with_finite_differences() {
    let critic = Critic::new(&MIXED, 6);
    let states = agent_states(&MIXED, 3, 4, 9);
    let trace = RefCell::new(CriticTrace::default());
    // Positive biases keep the units away from their kinks.
    let mut parameters = values(critic.n_parameters(), 3);
    parameters.iter_mut().for_each(|value| *value = 0.3 * *value + 0.25);
    let input = values(MIXED.n_action() * 12, 4).iter().map(|a| a.abs() + 1.0).collect();
    Check { parameters, input, outputs: 4 }.run(
        |w, actions, y| {
            critic.forward(w, &states, actions, &mut trace.borrow_mut());
            y.copy_from_slice(trace.borrow().values());
        },
        |w, _, dy, gradient, dx| {
            let mut flow = dy.to_vec();
            critic.backward(w, &trace.borrow(), &mut flow, Some(gradient));
            dx.copy_from_slice(&flow);
        },
    );
}

#[test]
fn the_gradient_of_the_actor_agrees_with_finite_differences() {
    let actor = Actor::new(&MIXED, 6);
    let mut states = agent_states(&MIXED, 3, 2, 9);
    states.terminals.iter_mut().chain(&mut states.globals).for_each(|value| *value = value.abs());
    let trace = RefCell::new(ActorTrace::default());
    let mut parameters = values(actor.n_parameters(), 3);
    parameters.iter_mut().for_each(|value| *value = 0.3 * *value + 0.3);
    Check { parameters, input: vec![0.0], outputs: MIXED.n_head() * 6 }.run(
        |w, _, y| {
            actor.forward(w, &states, &mut trace.borrow_mut());
            y.copy_from_slice(trace.borrow().head());
        },
        |w, _, dy, gradient, _| {
            actor.backward(w, &trace.borrow(), &mut dy.to_vec(), gradient);
        },
    );
}

/// The log-probability of one column in f64, from the textbook formulas.
fn independent(space: &Space, head: &[f64], action: &[f64]) -> f64 {
    let mut total = 0.0;
    for real in 0..space.reals {
        let deviation = (-5.0 + 3.5 * (head[space.reals + real].tanh() + 1.0)).exp();
        let u = ((1.0 + action[real]) / (1.0 - action[real])).ln() / 2.0;
        let density = (-((u - head[real]) / deviation).powi(2) / 2.0).exp()
            / (deviation * (2.0 * std::f64::consts::PI).sqrt());
        total += (density / (1.0 - action[real] * action[real])).ln();
    }
    let logits = &head[2 * space.reals..2 * space.reals + space.categories];
    let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
    for (index, logit) in logits.iter().enumerate() {
        total += action[space.reals + index] * (logit.exp() / sum).ln();
    }
    let chance = 1.0 / (1.0 + (-head[space.n_head() - 1]).exp());
    total + if action[space.n_action() - 1] > 0.5 { chance.ln() } else { (1.0 - chance).ln() }
}

#[test]
fn eq_method_pi_is_the_product_over_terminals_and_parts() {
    let columns = 40;
    let head: Vec<f32> = values(MIXED.n_head() * columns, 6).iter().map(|v| 1.5 * v).collect();
    let (mut noise, mut drawn) = (Noise::default(), Drawn::default());
    noise.draw(&MIXED, columns, &mut Seed::new(4).rng());
    let how = Relaxation { temperature: 1.0, soft: false };
    sample(&MIXED, &head, &noise, how, columns, &mut drawn);
    // Away from the ends, where a rounded tanh no longer tells its argument.
    drawn.actions.iter_mut().take(3 * columns).for_each(|a| *a = a.clamp(-0.99, 0.99));
    let column = |rows: &[f32], at: usize| -> Vec<f64> {
        rows.iter().skip(at).step_by(columns).map(|value| f64::from(*value)).collect()
    };
    let expected: f64 = (0..columns)
        .map(|at| independent(&MIXED, &column(&head, at), &column(&drawn.actions, at)))
        .sum();
    let found = log_probability(&MIXED, &head, &drawn.actions);
    assert!((found - expected).abs() < 1e-4 * expected.abs(), "{found} {expected}");
}

#[test]
fn entropies_are_minus_the_mean_log_probability_of_what_is_drawn() {
    let columns = 20_000;
    let one: Vec<f32> = values(MIXED.n_head(), 8).iter().map(|v| 1.2 * v).collect();
    let head: Vec<f32> = one.iter().flat_map(|v| std::iter::repeat_n(*v, columns)).collect();
    let (mut noise, mut drawn) = (Noise::default(), Drawn::default());
    noise.draw(&MIXED, columns, &mut Seed::new(4).rng());
    let how = Relaxation { temperature: 1.0, soft: false };
    sample(&MIXED, &head, &noise, how, columns, &mut drawn);
    drawn.actions.iter_mut().take(3 * columns).for_each(|a| *a = a.clamp(-0.99999, 0.99999));
    let mean = |logs: &[f32]| logs.iter().map(|v| f64::from(*v)).sum::<f64>() / columns as f64;
    let by_parts = mean(&drawn.log_reals) + mean(&drawn.log_mixed);
    let by_draws = log_probability(&MIXED, &head, &drawn.actions) / columns as f64;
    assert!((by_parts - by_draws).abs() < 0.02, "{by_parts} {by_draws}");
    // The category is drawn with the probabilities of its logits.
    let total: f64 = (0..5).map(|c| f64::from(one[6 + c]).exp()).sum();
    for category in 0..5 {
        let row = &drawn.actions[(3 + category) * columns..(4 + category) * columns];
        assert!((mean(row) - f64::from(one[6 + category]).exp() / total).abs() < 0.015);
    }
    let flag = mean(&drawn.actions[8 * columns..]);
    assert!((flag - 1.0 / (1.0 + (-f64::from(one[11])).exp())).abs() < 0.015);
}

fn agent_state(n_terminals: usize, seed: u32) -> AgentState {
    AgentState { terminals: values(4 * n_terminals, seed), globals: values(2, seed + 7) }
}

fn agent(n_terminals: usize, seed: u64) -> Agent {
    let settings = Settings { width: 32, samples: 32, ..Settings::usual(&MIXED) };
    Agent::new(MIXED, settings, n_terminals, [500, 500], Seed::new(seed))
}

#[test]
fn exchanging_terminals_exchanges_actions_and_keeps_the_value() {
    let sac = agent(4, 0).sac;
    let state = agent_state(4, 3);
    let mut swapped = state.clone();
    for feature in 0..4 {
        swapped.terminals.swap(feature, 8 + feature);
    }
    let (a, b) = (sac.laws(&state), sac.laws(&swapped));
    assert_eq!((&a[0], &a[1], &a[2]), (&b[2], &b[1], &b[0]));
    let mut trace = CriticTrace::default();
    let mut value = |state: &AgentState| sac.value(&state.batch(&MIXED), &mut trace)[0];
    assert!((value(&state) - value(&swapped)).abs() < 1e-6);
}

#[test]
fn the_same_weights_serve_ten_and_a_thousand_terminals() {
    let sac = agent(4, 0).sac;
    for n_terminals in [10, 1000] {
        let state = agent_state(n_terminals, 3);
        assert_eq!(sac.act(&state, Some(Seed::new(1))).len(), 9 * n_terminals);
        let mut trace = CriticTrace::default();
        assert!(sac.value(&state.batch(&MIXED), &mut trace)[0].is_finite());
    }
    // A terminal's law depends on its own and the global features only.
    let (many, mut few) = (agent_state(1000, 3), agent_state(10, 3));
    few.globals.clone_from(&many.globals);
    few.terminals.copy_from_slice(&many.terminals[..40]);
    for (a, b) in sac.laws(&few).iter().zip(&sac.laws(&many)) {
        assert!(a.mean.iter().zip(&b.mean).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

/// One decision: the reward is known for every part of the action.
fn bandit(state: &AgentState, actions: &[f32]) -> f32 {
    let mut total = 0.0;
    for (features, action) in state.terminals.chunks_exact(4).zip(actions.chunks_exact(9)) {
        total -= (action[0] - 0.5 * features[0]).powi(2) + (action[1] + 0.4).powi(2);
        total -= (action[2] - 0.2).powi(2);
        total += if features[1] > 0.0 { action[3] } else { action[6] };
        total += if features[2] > 0.0 { action[8] } else { -action[8] };
    }
    4.0 * total / (actions.len() / 9) as f32
}

#[test]
fn every_part_of_a_mixed_action_is_learnt() {
    let mut agent = agent(3, 5);
    let mut rng = Seed::new(1).stream("states");
    let mut state = |_| AgentState {
        terminals: (0..12).map(|_| rng.random_range(-1.0..1.0)).collect(),
        globals: vec![0.0; 2],
    };
    for step in 0..1500 {
        let before = state(());
        let actions = agent.sac.act(&before, Some(Seed::new(2).at(step)));
        let reward = bandit(&before, &actions);
        let transition = Transition { state: before, actions, reward, next: state(()), last: true };
        if step % 2 == 0 {
            agent.real.push(&transition)
        } else {
            agent.imagined.push(&transition)
        }
        if step > 50 {
            agent.learn().unwrap();
        }
    }
    let (mut total, mut right) = (0.0, 0);
    for _ in 0..200 {
        let state = state(());
        let actions = agent.sac.act(&state, None);
        total += bandit(&state, &actions) / 200.0;
        for (features, action) in state.terminals.chunks_exact(4).zip(actions.chunks_exact(9)) {
            let wanted = if features[1] > 0.0 { 3 } else { 6 };
            right += usize::from(action[wanted] == 1.0);
            right += usize::from((action[8] == 1.0) == (features[2] > 0.0));
        }
    }
    // The best is 4 (1 + 1/2) = 6; without category and flag it is below zero.
    assert!(total > 5.0 && right > 1080, "{total}, {right} of 1200");
}

#[test]
fn eq_method_v_is_the_mean_of_the_critic_and_the_value_head_learns_it() {
    let mut agent = agent(3, 5);
    for step in 0..300 {
        let (before, next) = (agent_state(3, step % 40), agent_state(3, step + 1000));
        let actions = agent.sac.act(&before, Some(Seed::new(2).at(u64::from(step))));
        let reward = bandit(&before, &actions);
        agent.real.push(&Transition { state: before, actions, reward, next, last: true });
    }
    for _ in 0..1200 {
        agent.learn().unwrap();
    }
    let states: Vec<AgentState> = (0..40).map(|index| agent_state(3, index)).collect();
    let batch = AgentStates::from_states(&MIXED, &states);
    let many = agent.sac.value_by_draws(&batch, 400, Seed::new(1));
    let others = agent.sac.value_by_draws(&batch, 400, Seed::new(2));
    let mut trace = CriticTrace::default();
    let head = agent.sac.value(&batch, &mut trace);
    let distance = |a: &[f32], b: &[f32]| {
        (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / 40.0).sqrt()
    };
    let mean = many.iter().sum::<f32>() / 40.0;
    let spread = distance(&many, &[mean; 40]);
    assert!(distance(&many, &others) < 0.1 * spread, "two estimates agree");
    assert!(distance(head, &many) < 0.4 * spread, "head {} of {spread}", distance(head, &many));
}

#[test]
fn a_restored_agent_goes_on_bit_for_bit() {
    let mut first = agent(3, 5);
    let step = |agent: &mut Agent, index: u32| {
        let (before, next) = (agent_state(3, index), agent_state(3, index + 1));
        let actions = agent.sac.act(&before, Some(Seed::new(2).at(u64::from(index))));
        let reward = bandit(&before, &actions);
        let transition = Transition { state: before, actions, reward, next, last: false };
        agent.real.push(&transition);
        agent.imagined.push(&transition);
        agent.learn().unwrap()
    };
    for index in 0..20 {
        step(&mut first, index);
    }
    let mut snapshot = Snapshot::default();
    first.save(&mut snapshot);
    let mut second = agent(3, 5);
    second.restore(&snapshot).unwrap();
    for index in 20..30 {
        assert_eq!(step(&mut first, index), step(&mut second, index));
    }
    let (mut a, mut b) = (Snapshot::default(), Snapshot::default());
    first.save(&mut a);
    second.save(&mut b);
    assert_eq!(a, b);
    assert!(Agent { sac: first.sac, ..agent(4, 5) }.restore(&a).is_err());
}

#[test]
fn the_oldest_transitions_are_overwritten() {
    let mut agent = Agent::new(MIXED, Settings::usual(&MIXED), 2, [3, 3], Seed::new(0));
    for index in 0..5 {
        let (state, next) = (agent_state(2, index), agent_state(2, index + 1));
        let reward = index as f32;
        agent.real.push(&Transition { state, actions: vec![0.0; 18], reward, next, last: false });
    }
    assert_eq!(agent.real.len(), 3);
    let mut batch = super::replay::Batch::default();
    let mut rng = Seed::new(0).rng();
    super::replay::draw(&agent.real, &agent.imagined, 0.5, 64, &mut rng, &mut batch);
    assert!(batch.rewards.iter().all(|reward| *reward >= 2.0));
    assert!((2..5).all(|reward| batch.rewards.contains(&(reward as f32))));
}

#[test]
fn a_plain_continuous_space_works() {
    let space = Space {
        terminal_features: 3,
        global_features: 0,
        reals: 1,
        categories: 0,
        flag: false,
        ..MIXED
    };
    let mut sac = Sac::new(space, Settings::usual(&space), Seed::new(0));
    let mut replay = super::replay::Replay::new(space, 1, 10);
    let state = AgentState { terminals: vec![0.1, 0.2, 0.3], globals: vec![] };
    let actions = sac.act(&state, Some(Seed::new(0)));
    assert_eq!(actions.len(), 1);
    assert!(sac.log_probability(&state, &actions).is_finite());
    replay.push(&Transition { next: state.clone(), state, actions, reward: 1.0, last: false });
    let report = sac.update(&replay, &super::replay::Replay::new(space, 1, 10));
    assert!(report.critic_loss.is_finite() && report.temperature[1] == 0.0);
}
