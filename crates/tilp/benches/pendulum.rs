//! Soft actor-critic on the pendulum swing-up: mean return of 100 episodes after 20,000 steps.
//!
//! The dynamics are those of Gymnasium's Pendulum-v1, written anew. Prints one line for each seed.

use std::f32::consts::PI;
use std::time::Instant;

use rand::RngExt as _;
use tilp::rl::agent::Agent;
use tilp::rl::policy::Space;
use tilp::rl::replay::{AgentState, Transition};
use tilp::rl::sac::{Sac, Settings};
use tilp::rng::{Rng, Seed};
use tilp::scenario::{Scenario, tilp_options};

const EPISODE: usize = 200;
const STEPS: usize = 20_000;
const MAX_TORQUE: f32 = 2.0;
const MAX_SPEED: f32 = 8.0;
const SECONDS: f32 = 0.05;
const GRAVITY: f32 = 10.0;

/// A rod of mass 1 kg and length 1 m; the angle is zero when it stands.
struct Pendulum {
    angle: f32,
    speed: f32,
}

impl Pendulum {
    fn new(rng: &mut Rng) -> Self {
        Self { angle: rng.random_range(-PI..PI), speed: rng.random_range(-1.0..1.0) }
    }

    fn state(&self) -> AgentState {
        let terminals = vec![self.angle.cos(), self.angle.sin(), self.speed / MAX_SPEED];
        AgentState { terminals, globals: Vec::new() }
    }

    /// Moves one step and returns the reward.
    fn step(&mut self, action: f32) -> f32 {
        let torque = MAX_TORQUE * action.clamp(-1.0, 1.0);
        let angle = (self.angle + PI).rem_euclid(2.0 * PI) - PI;
        let cost = angle.powi(2) + 0.1 * self.speed.powi(2) + 0.001 * torque.powi(2);
        let acceleration = 1.5 * GRAVITY * self.angle.sin() + 3.0 * torque;
        self.speed = (self.speed + acceleration * SECONDS).clamp(-MAX_SPEED, MAX_SPEED);
        self.angle += self.speed * SECONDS;
        -cost
    }
}

fn evaluate(sac: &Sac, seed: Seed) -> f32 {
    let mut total = 0.0;
    for episode in 0..100 {
        let mut pendulum = Pendulum::new(&mut seed.at(episode).rng());
        for _ in 0..EPISODE {
            total += pendulum.step(sac.act(&pendulum.state(), None)[0]);
        }
    }
    total / 100.0
}

fn learn(seed: Seed) -> Sac {
    let scenario = Scenario::load("default", &[]).expect("a built-in scenario is sound");
    let options = tilp_options(&scenario).actor_critic;
    let space = Space {
        terminal_features: 3,
        global_features: 0,
        reals: 1,
        categories: 0,
        flag: false,
        log_deviation: options.log_deviation,
    };
    let settings = Settings { real_share: 1.0, samples: 128, ..options.settings(&space, 0.99) };
    let mut agent = Agent::new(space, settings, 1, [STEPS, 1], seed);
    let mut episodes = seed.stream("episodes");
    let mut pendulum = Pendulum::new(&mut episodes);
    for step in 0..STEPS {
        if step % EPISODE == 0 {
            pendulum = Pendulum::new(&mut episodes);
        }
        let state = pendulum.state();
        let actions = if step < 1000 {
            vec![episodes.random_range(-1.0..1.0)]
        } else {
            agent.sac.act(&state, Some(seed.named("act").at(step as u64)))
        };
        let reward = pendulum.step(actions[0]);
        let next = pendulum.state();
        // An episode ends by the clock only: there is always a future.
        agent.real.push(&Transition { state, actions, reward, next, last: false });
        if step >= 1000 {
            agent.learn();
        }
    }
    agent.sac
}

fn main() {
    for index in 0..3 {
        let seed = Seed::new(index);
        let start = Instant::now();
        let sac = learn(seed);
        let seconds = start.elapsed().as_secs_f64();
        let mean = evaluate(&sac, Seed::new(1000).named("evaluation"));
        println!("seed {index}: mean return {mean:.1} after {STEPS} steps, {seconds:.0} s");
    }
}
