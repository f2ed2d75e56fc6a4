//! Soft actor-critic: twin critics, slow targets, automatic temperatures, a value head.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actor::{Actor, ActorTrace, AgentStates};
use super::critic::{Critic, CriticTrace};
use super::policy::{self, Drawn, Noise, Relaxation, Space, backward, sample};
use super::replay::{AgentState, Batch, Replay, draw};
use crate::nn::optimiser::{AdamW, Moments};
use crate::rng::Seed;

/// Settings of learning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Width of the hidden layers of actor and critics.
    pub width: usize,
    /// Width of the value head, which a plan asks often.
    pub value_width: usize,
    /// Discount of the future.
    pub discount: f32,
    /// Learning rate of the actor.
    pub actor_rate: f32,
    /// Learning rate of critics and value head.
    pub critic_rate: f32,
    /// Learning rate of the temperatures.
    pub temperature_rate: f32,
    /// Share of the critics that flows into their targets at every update.
    pub target_rate: f32,
    /// Transitions of an update.
    pub samples: usize,
    /// Share of real transitions among them.
    pub real_share: f32,
    /// Temperature of the relaxed category and flag.
    pub relaxation: f32,
    /// Entropy of the numbers of one terminal that the temperature aims at.
    pub real_entropy: f32,
    /// Entropy of category and flag of one terminal that the temperature aims at.
    pub mixed_entropy: f32,
    /// Logarithm of both temperatures before the first update.
    pub log_temperature: f32,
    /// How much smaller than the others the first weights of a last layer are.
    pub last_layer: f32,
}

/// Sizes, rates and aims of the actor-critic, as a scenario writes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActorCriticOptions {
    /// Width of the hidden layers of actor and critics.
    pub width: usize,
    /// Width of the hidden layers of the value head.
    pub value_width: usize,
    /// Learning rate of the actor.
    pub actor_rate: f32,
    /// Learning rate of critics and value head.
    pub critic_rate: f32,
    /// Learning rate of the temperatures.
    pub temperature_rate: f32,
    /// Share of the critics that flows into their targets at every update.
    pub target_rate: f32,
    /// Transitions of an update.
    pub samples: usize,
    /// Share of real transitions among them; the rest is imagined.
    pub real_share: f32,
    /// Real transitions that are kept, the latest.
    pub real_replay: usize,
    /// Imagined transitions that are kept, the latest.
    pub imagined_replay: usize,
    /// Temperature of the relaxed category and flag.
    pub relaxation: f32,
    /// Entropy aimed at for every number of an action, in nats.
    pub entropy_per_number: f32,
    /// The largest entropy of category and flag over the entropy aimed at.
    pub mixed_entropy_divisor: f32,
    /// Logarithm of both temperatures before the first update.
    pub log_temperature: f32,
    /// Bounds of the logarithm of a number's standard deviation, before tanh.
    pub log_deviation: [f32; 2],
    /// Range of the first weights of a last layer over that of the other layers.
    pub last_layer: f32,
}

impl ActorCriticOptions {
    /// Settings of learning in a space, with this discount factor.
    pub fn settings(&self, space: &Space, discount: f32) -> Settings {
        let most =
            (space.categories.max(1) as f32).ln() + if space.flag { 2.0f32.ln() } else { 0.0 };
        Settings {
            width: self.width,
            value_width: self.value_width,
            discount,
            actor_rate: self.actor_rate,
            critic_rate: self.critic_rate,
            temperature_rate: self.temperature_rate,
            target_rate: self.target_rate,
            samples: self.samples,
            real_share: self.real_share,
            relaxation: self.relaxation,
            real_entropy: self.entropy_per_number * space.reals as f32,
            mixed_entropy: most / self.mixed_entropy_divisor,
            log_temperature: self.log_temperature,
            last_layer: self.last_layer,
        }
    }

    /// Transitions that the real and the imagined replay hold.
    pub fn capacities(&self) -> [usize; 2] {
        [self.real_replay, self.imagined_replay]
    }
}

/// A network's weights with their optimiser.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trained {
    pub weights: Vec<f32>,
    pub moments: Moments,
}

impl Trained {
    fn new(weights: Vec<f32>) -> Self {
        let moments = Moments::zeros(weights.len());
        Self { weights, moments }
    }

    /// One step of Adam.
    fn step(&mut self, gradient: &[f32], rate: f32) {
        AdamW::ADAM.step(&mut self.weights, gradient, &mut self.moments, rate);
    }
}

/// The law of one terminal's action, as the actor sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Means of the numbers before tanh.
    pub mean: Vec<f32>,
    /// Their standard deviations.
    pub deviation: Vec<f32>,
    /// Logits of the categories.
    pub logits: Vec<f32>,
    /// Probability of the flag.
    pub flag: f32,
}

/// Statistics of an update, for the record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean squared error of the critics.
    pub critic_loss: f32,
    /// Mean value of the actor's actions.
    pub value: f32,
    /// Mean entropies of a terminal: numbers, category and flag.
    pub entropy: [f32; 2],
    /// Temperatures of both.
    pub temperature: [f32; 2],
}

/// Networks, optimisers and temperatures.
#[derive(Clone, Debug)]
pub struct Sac {
    pub(super) space: Space,
    settings: Settings,
    seed: Seed,
    actor: Actor,
    critic: Critic,
    value_head: Critic,
    pub(super) policy: Trained,
    pub(super) critics: [Trained; 2],
    pub(super) targets: [Vec<f32>; 2],
    pub(super) value: Trained,
    pub(super) log_temperature: Trained,
    pub(super) updates: u64,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    batch: Batch,
    actor: ActorTrace,
    critic: CriticTrace,
    noise: Noise,
    drawn: Drawn,
    flow: Vec<f32>,
    gradient: Vec<f32>,
    by_head: Vec<f32>,
    by_action: Vec<f32>,
    aims: Vec<f32>,
    least: Vec<f32>,
}

impl Sac {
    /// Fresh networks.
    pub fn new(space: Space, settings: Settings, seed: Seed) -> Self {
        let actor = Actor::new(&space, settings.width);
        let critic = Critic::new(&space, settings.width);
        let value_head = Critic::without_actions(&space, settings.value_width);
        let last = settings.last_layer;
        let critics = [0, 1].map(|twin| critic.initial(seed.named("critic").at(twin), last));
        Self {
            policy: Trained::new(actor.initial(seed.named("actor"), last)),
            targets: critics.clone(),
            critics: critics.map(Trained::new),
            value: Trained::new(value_head.initial(seed.named("value"), last)),
            log_temperature: Trained::new(vec![settings.log_temperature; 2]),
            updates: 0,
            scratch: Scratch::default(),
            space,
            settings,
            seed,
            actor,
            critic,
            value_head,
        }
    }

    /// Structure of states and actions.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The law of every terminal's action in a state.
    pub fn laws(&self, agent_state: &AgentState) -> Vec<Law> {
        let agent_states = agent_state.batch(&self.space);
        let mut trace = ActorTrace::default();
        self.actor.forward(&self.policy.weights, &agent_states, &mut trace);
        let (head, columns, reals) = (trace.head(), agent_states.columns(), self.space.reals);
        (0..columns)
            .map(|column| {
                let row = |index: usize| head[index * columns + column];
                let deviation = |real| libm::expf(self.space.log_deviation(row(reals + real)).0);
                let logits = 2 * reals..2 * reals + self.space.categories;
                let flag = logits.end;
                Law {
                    mean: (0..reals).map(row).collect(),
                    deviation: (0..reals).map(deviation).collect(),
                    logits: logits.map(row).collect(),
                    flag: if self.space.flag { 1.0 / (1.0 + libm::expf(-row(flag))) } else { 1.0 },
                }
            })
            .collect()
    }

    /// Actions in a state, terminal by terminal: drawn with a seed, or the most likely ones.
    pub fn act(&self, agent_state: &AgentState, seed: Option<Seed>) -> Vec<f32> {
        let agent_states = agent_state.batch(&self.space);
        let (mut trace, mut noise, mut drawn) =
            (ActorTrace::default(), Noise::default(), Drawn::default());
        self.actor.forward(&self.policy.weights, &agent_states, &mut trace);
        match seed {
            Some(seed) => noise.draw(&self.space, agent_states.columns(), &mut seed.rng()),
            None => noise.none(&self.space, agent_states.columns()),
        }
        sample(&self.space, trace.head(), &noise, self.hard(), agent_states.columns(), &mut drawn);
        let mut actions = vec![0.0; drawn.actions.len()];
        crate::nn::lanes::transpose(&drawn.actions, self.space.n_action(), &mut actions);
        actions
    }

    /// The value of states: the mean, over `draws` actions of the actor, of the lesser critic.
    ///
    /// $$ V(s) \triangleq \mathbb E_{\mathbf a \sim \pi_\theta(\cdot \mid s)} [Q_\phi(s, \mathbf a)] $$
    ///
    /// Eq. `method-V`
    pub fn value_by_draws(&self, agent_states: &AgentStates, draws: usize, seed: Seed) -> Vec<f32> {
        let (mut trace, mut noise, mut drawn) =
            (ActorTrace::default(), Noise::default(), Drawn::default());
        let (mut critic, mut least) = (CriticTrace::default(), Vec::new());
        let mut total = vec![0.0; agent_states.samples];
        self.actor.forward(&self.policy.weights, agent_states, &mut trace);
        for index in 0..draws {
            noise.draw(&self.space, agent_states.columns(), &mut seed.at(index as u64).rng());
            sample(
                &self.space,
                trace.head(),
                &noise,
                self.hard(),
                agent_states.columns(),
                &mut drawn,
            );
            self.lesser(agent_states, &drawn.actions, &mut critic, &mut least);
            total.iter_mut().zip(&least).for_each(|(sum, value)| *sum += value / draws as f32);
        }
        total
    }

    /// The value of states by the value head, which is trained towards [`Self::value_by_draws`].
    /// The buffer of the pass is the caller's, so that several threads can ask.
    pub fn value<'a>(&self, agent_states: &AgentStates, trace: &'a mut CriticTrace) -> &'a [f32] {
        self.value_head.forward(&self.value.weights, agent_states, &[], trace);
        trace.values()
    }

    /// The lesser of the two critics.
    fn lesser(
        &self,
        agent_states: &AgentStates,
        actions: &[f32],
        trace: &mut CriticTrace,
        least: &mut Vec<f32>,
    ) {
        self.critic.forward(&self.critics[0].weights, agent_states, actions, trace);
        least.clear();
        least.extend_from_slice(trace.values());
        self.critic.forward(&self.critics[1].weights, agent_states, actions, trace);
        least.iter_mut().zip(trace.values()).for_each(|(a, b)| *a = a.min(*b));
    }

    fn hard(&self) -> Relaxation {
        Relaxation { temperature: self.settings.relaxation, soft: false }
    }

    fn temperatures(&self) -> [f32; 2] {
        let of = |index: usize| libm::expf(self.log_temperature.weights[index]);
        [of(0), if self.space.is_mixed() { of(1) } else { 0.0 }]
    }

    /// One step of all networks on a batch from both replays.
    pub fn update(&mut self, real: &Replay, imagined: &Replay) -> Report {
        let mut scratch = std::mem::take(&mut self.scratch);
        let seed = self.seed.named("update").at(self.updates);
        let Settings { real_share, samples, .. } = self.settings;
        let mut rng = seed.stream("batch");
        draw(real, imagined, real_share, samples, &mut rng, &mut scratch.batch);
        let mut report = Report { temperature: self.temperatures(), ..Report::default() };
        self.aim(&mut scratch, seed.named("next"));
        report.critic_loss = self.improve_critics(&mut scratch);
        self.improve_actor(&mut scratch, seed.named("now"), &mut report);
        self.improve_value_head(&mut scratch);
        self.adjust_temperatures(&report);
        self.follow();
        self.updates += 1;
        self.scratch = scratch;
        report
    }

    /// Target of the critics: reward, and the soft value of the next state.
    fn aim(&self, scratch: &mut Scratch, seed: Seed) {
        let Scratch { batch, actor, critic, noise, drawn, aims, least, .. } = scratch;
        let columns = batch.next.columns();
        self.actor.forward(&self.policy.weights, &batch.next, actor);
        noise.draw(&self.space, columns, &mut seed.rng());
        sample(&self.space, actor.head(), noise, self.hard(), columns, drawn);
        self.critic.forward(&self.targets[0], &batch.next, &drawn.actions, critic);
        least.clear();
        least.extend_from_slice(critic.values());
        self.critic.forward(&self.targets[1], &batch.next, &drawn.actions, critic);
        let (samples, temperature) = (batch.next.samples, self.temperatures());
        let mean = |logs: &[f32], sample: usize| {
            let of_sample = logs[sample..].iter().step_by(samples);
            of_sample.sum::<f32>() / batch.next.n_terminals as f32
        };
        aims.clear();
        for sample in 0..samples {
            let surprise = temperature[0] * mean(&drawn.log_reals, sample)
                + temperature[1] * mean(&drawn.log_mixed, sample);
            let value = least[sample].min(critic.values()[sample]) - surprise;
            let discount = self.settings.discount * batch.goes_on[sample];
            aims.push(batch.rewards[sample] + discount * value);
        }
    }

    fn improve_critics(&mut self, scratch: &mut Scratch) -> f32 {
        let Scratch { batch, critic, flow, gradient, aims, .. } = scratch;
        let share = 1.0 / aims.len() as f32;
        let mut loss = 0.0;
        gradient.resize(self.critic.n_parameters(), 0.0);
        for twin in &mut self.critics {
            self.critic.forward(&twin.weights, &batch.states, &batch.actions, critic);
            flow.clear();
            flow.extend(critic.values().iter().zip(&*aims).map(|(q, y)| 2.0 * share * (q - y)));
            loss += flow.iter().map(|f| f * f).sum::<f32>() / (8.0 * share);
            self.critic.backward(&twin.weights, critic, flow, Some(gradient));
            twin.step(gradient, self.settings.critic_rate);
        }
        loss
    }

    /// Descends on temperature times log-probability minus the lesser critic. Leaves the values of
    /// the drawn actions in `least`.
    fn improve_actor(&mut self, scratch: &mut Scratch, seed: Seed, report: &mut Report) {
        let columns = scratch.batch.states.columns();
        let Scratch { batch, actor, noise, drawn, .. } = scratch;
        self.actor.forward(&self.policy.weights, &batch.states, actor);
        noise.draw(&self.space, columns, &mut seed.rng());
        sample(&self.space, actor.head(), noise, self.hard(), columns, drawn);
        self.action_gradient(scratch);
        let Scratch { actor, noise, drawn, gradient, by_head, by_action, least, .. } = scratch;
        let share = 1.0 / columns as f32;
        let by_log = self.temperatures().map(|temperature| share * temperature);
        let relaxation = self.settings.relaxation;
        let head = actor.head();
        backward(&self.space, head, noise, drawn, relaxation, by_action, by_log, by_head);
        gradient.resize(self.actor.n_parameters(), 0.0);
        self.actor.backward(&self.policy.weights, actor, by_head, gradient);
        self.policy.step(gradient, self.settings.actor_rate);
        report.value = least.iter().sum::<f32>() / least.len() as f32;
        report.entropy =
            [&drawn.log_reals, &drawn.log_mixed].map(|logs| -share * logs.iter().sum::<f32>());
    }

    /// The gradient of minus the mean lesser critic at the drawn actions.
    fn action_gradient(&self, scratch: &mut Scratch) {
        let Scratch { batch, critic, drawn, flow, by_action, least, .. } = scratch;
        let agent_states = &batch.states;
        let share = 1.0 / agent_states.samples as f32;
        let mut second = CriticTrace::default();
        self.critic.forward(&self.critics[0].weights, agent_states, &drawn.actions, critic);
        self.critic.forward(&self.critics[1].weights, agent_states, &drawn.actions, &mut second);
        let pairs = || critic.values().iter().zip(second.values());
        least.clear();
        least.extend(pairs().map(|(a, b)| a.min(*b)));
        flow.clear();
        flow.extend(pairs().map(|(a, b)| if a <= b { -share } else { 0.0 }));
        by_action.clear();
        by_action.extend(pairs().map(|(a, b)| if a <= b { 0.0 } else { -share }));
        self.critic.backward(&self.critics[0].weights, critic, flow, None);
        self.critic.backward(&self.critics[1].weights, &second, by_action, None);
        by_action.iter_mut().zip(&*flow).for_each(|(a, b)| *a += b);
    }

    fn improve_value_head(&mut self, scratch: &mut Scratch) {
        let Scratch { batch, critic, flow, gradient, least, .. } = scratch;
        let share = 1.0 / least.len() as f32;
        self.value_head.forward(&self.value.weights, &batch.states, &[], critic);
        flow.clear();
        flow.extend(critic.values().iter().zip(&*least).map(|(v, q)| 2.0 * share * (v - q)));
        gradient.resize(self.value_head.n_parameters(), 0.0);
        self.value_head.backward(&self.value.weights, critic, flow, Some(gradient));
        self.value.step(gradient, self.settings.critic_rate);
    }

    /// Temperatures rise where the entropy is below its aim.
    fn adjust_temperatures(&mut self, report: &Report) {
        let aims = [self.settings.real_entropy, self.settings.mixed_entropy];
        let gradient = [report.entropy[0] - aims[0], report.entropy[1] - aims[1]];
        self.log_temperature.step(&gradient, self.settings.temperature_rate);
    }

    /// Targets follow their critics.
    fn follow(&mut self) {
        let rate = self.settings.target_rate;
        for (target, critic) in self.targets.iter_mut().zip(&self.critics) {
            for (slow, fast) in target.iter_mut().zip(&critic.weights) {
                *slow += rate * (fast - *slow);
            }
        }
    }

    /// The log-probability of actions (terminal by terminal) in a state.
    pub fn log_probability(&self, agent_state: &AgentState, actions: &[f32]) -> f64 {
        let agent_states = agent_state.batch(&self.space);
        let mut trace = ActorTrace::default();
        self.actor.forward(&self.policy.weights, &agent_states, &mut trace);
        let mut rows = vec![0.0; actions.len()];
        crate::nn::lanes::transpose(actions, agent_states.n_terminals, &mut rows);
        policy::log_probability(&self.space, trace.head(), &rows)
    }
}
