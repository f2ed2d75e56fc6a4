//! One episode of one robot with all its states, to be drawn.

use crate::round::TerminalId;
use crate::scenario::{
    MeasuredCell, Scenario, ScenarioError, measured_cell, policy, suite_of, untrained,
};
use crate::split::model::Weights;
use crate::split::policy::Policy;
use crate::tasks::{EpisodeSet, Scene};

/// An episode that a run has measured, or could have measured.
#[derive(Clone, Debug)]
pub struct EpisodeSpec<'a> {
    /// The scenario of the run.
    pub scenario: &'a Scenario,
    /// Its seed.
    pub seed: u64,
    /// The terminal of the robot.
    pub terminal: TerminalId,
    /// The round after which the robot is measured: its task may change during a run.
    pub round: u64,
    /// The set of episodes.
    pub set: EpisodeSet,
    /// Place in the set.
    pub index: u64,
    /// Source of the robot's actions.
    pub brain: Brain<'a>,
}

/// Source of a robot's actions.
#[derive(Clone, Copy, Debug)]
pub enum Brain<'a> {
    /// The policy at the start of the run.
    Base,
    /// The policy in these untrusted bytes: `model.safetensors` of the run.
    Trained(&'a [u8]),
    /// The scripted expert that gave the demonstrations.
    Expert,
}

/// An episode with every state of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEpisode {
    /// Name of the task.
    pub task: &'static str,
    /// Control steps per second.
    pub steps_per_second: f64,
    /// States, including the one at the start.
    pub scenes: Vec<Scene>,
    /// Whether the task was done in time.
    pub is_success: bool,
}

/// Why there is no episode.
#[derive(Debug, thiserror::Error)]
pub enum EpisodeError {
    /// The scenario cannot be put together.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Learning follows a law: there are no robots.
    #[error("the scenario has no robots: learning follows a law")]
    NoRobots,
    /// The suite has no drawings.
    #[error("robots of the suite {0} are not drawn, expected tabletop")]
    NoDrawing(&'static str),
    /// Not in this scenario.
    #[error("terminal {0} is not there, expected one below {1}")]
    NoTerminal(u32, usize),
    /// Reading it would touch a file besides those of the run.
    #[error("model.base = {0:?} is a file elsewhere, expected a policy of the program")]
    OtherBase(String),
    /// The file is no policy of this scenario.
    #[error("model.safetensors: {0}")]
    Model(String),
}

/// Control steps per second of the suites that are drawn.
const STEPS_PER_SECOND: f64 = 20.0;

impl EpisodeSpec<'_> {
    /// Runs the episode. It has the steps of the scenario, 10 000 at most, and reads no file.
    pub fn record(&self) -> Result<RecordedEpisode, EpisodeError> {
        let Self { scenario, seed, terminal, round, .. } = *self;
        if scenario.note().is_some() {
            return Err(EpisodeError::NoRobots);
        }
        let suite = suite_of(scenario);
        if suite.name != "tabletop" {
            return Err(EpisodeError::NoDrawing(suite.name));
        }
        let mover = self.mover()?;
        let found = measured_cell(scenario, seed, terminal, round)?;
        let most = scenario.n_terminals();
        let found = found.ok_or(EpisodeError::NoTerminal(terminal.0, most))?;
        let MeasuredCell { cell, episodes } = found;
        let start = self.set.episode(episodes, terminal.0.into(), self.index);
        let mut robot = cell.reset(start);
        let no_drawing = || EpisodeError::NoDrawing(suite.name);
        let mut scenes = vec![robot.scene().ok_or_else(no_drawing)?];
        let (mut seen, mut action) = (Vec::new(), vec![0.0; suite.action()]);
        let mut is_success = false;
        while !is_success && scenes.len() <= scenario.episode_steps() {
            match &mover {
                Some((policy, weights)) => {
                    seen.clear();
                    robot.observe(&mut seen);
                    policy.act(weights, &seen, &mut action);
                }
                None => action = robot.expert(),
            }
            robot.act(&action);
            is_success = robot.succeeded();
            scenes.push(robot.scene().ok_or_else(no_drawing)?);
        }
        let task = suite.task_name(cell.task());
        Ok(RecordedEpisode { task, steps_per_second: STEPS_PER_SECOND, scenes, is_success })
    }

    /// The policy with its weights; `None` for the expert.
    fn mover(&self) -> Result<Option<(Policy, Weights)>, EpisodeError> {
        match self.brain {
            Brain::Expert => Ok(None),
            Brain::Base if !self.scenario.has_builtin_base() => {
                Err(EpisodeError::OtherBase(self.scenario.base().to_owned()))
            }
            Brain::Base => Ok(Some(policy(self.scenario)?)),
            Brain::Trained(bytes) => {
                let policy = untrained(self.scenario)?;
                let (needed, held) = (4 * policy.n_parameters_total(), bytes.len());
                if needed > held {
                    let line = format!("{held} bytes, expected {needed} of weights or more");
                    return Err(EpisodeError::Model(line));
                }
                let weights = policy.weights_from(bytes);
                let weights = weights.map_err(|error| EpisodeError::Model(error.to_string()))?;
                Ok(Some((policy, weights)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Cell, Evaluator};
    use crate::scenario::{assemble, method};

    fn scenario(more: &[&str]) -> Scenario {
        let always = ["evaluation.calibrate_every=1", "evaluation.calibration_episodes=2"];
        let all: Vec<String> = always.iter().chain(more).map(|&one| one.to_owned()).collect();
        Scenario::load("tiny", &all).unwrap()
    }

    fn spec<'a>(scenario: &'a Scenario, terminal: u32, brain: Brain<'a>) -> EpisodeSpec<'a> {
        EpisodeSpec {
            scenario,
            seed: 3,
            terminal: TerminalId(terminal),
            round: 1,
            set: EpisodeSet::Calibration,
            index: 2,
            brain,
        }
    }

    #[test]
    fn episodes_end_as_the_evaluator_says_also_in_a_cell_that_has_changed() {
        let turned = "events=[{round=1, change={terminals=[1,2], goal_turn_rad=0.5}}]";
        let scenario = scenario(&[turned, "tasks.extra_mass_kg=0.05"]);
        let parts = assemble(&scenario, method("random").unwrap(), 3, None, &|_, _| {}).unwrap();
        let (mut cell, mut evaluator) = (parts.cell, parts.evaluator);
        let ids = cell.present();
        let counts = evaluator.evaluate(1, &ids, &cell.model().unwrap()).unwrap();
        let (policy, weights) = policy(&scenario).unwrap();
        let file = policy.to_safetensors(&weights).unwrap();
        for one in counts {
            let run = |brain, index| {
                let spec = EpisodeSpec { index, ..spec(&scenario, one.id.0, brain) };
                spec.record().unwrap()
            };
            let found = [run(Brain::Base, 2), run(Brain::Base, 3)];
            let n = found.iter().filter(|one| one.is_success).count() as u64;
            assert_eq!(n, one.count.successes, "{:?}", one.id);
            assert_eq!(run(Brain::Trained(&file), 2), found[0], "the same weights from a file");
            let whole = scenario.episode_steps() + 1;
            assert!(found.iter().all(|one| one.is_success || one.scenes.len() == whole));
        }
    }

    #[test]
    fn the_expert_does_its_task_in_the_cell_of_every_terminal() {
        let scenario = scenario(&[]);
        let done =
            (0..6).filter(|n| spec(&scenario, *n, Brain::Expert).record().unwrap().is_success);
        assert!(done.count() >= 5);
    }

    #[test]
    fn what_cannot_be_shown_is_refused_in_one_line() {
        let tiny = scenario(&[]);
        let line = |spec: EpisodeSpec<'_>| {
            let line = spec.record().unwrap_err().to_string();
            assert!(!line.contains('\n'), "{line}");
            line
        };
        assert!(line(spec(&tiny, 6, Brain::Expert)).contains("terminal 6 is not there"));
        assert!(line(spec(&tiny, u32::MAX, Brain::Expert)).contains("is not there"));
        for bytes in [&b""[..], b"not a policy", &[0xff; 4096], &[b'{'; 400_000]] {
            assert!(line(spec(&tiny, 0, Brain::Trained(bytes))).contains("model.safetensors"));
        }
        let other = scenario(&["model.base=\"elsewhere.safetensors\""]);
        let refused = line(spec(&other, 0, Brain::Base));
        assert!(refused.contains("elsewhere.safetensors"), "{refused}");
        assert!(spec(&other, 0, Brain::Expert).record().is_ok(), "it needs no policy");
    }
}
