//! Calibration episodes in another process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use prost::Message;
use tilp::round::{CellError, Evaluator, SuccessCount, TerminalId, TerminalSuccess};
use tilp::scenario::{Scenario, evaluator};
use tilp::world::RobotEvaluator;

use crate::adapters::{Adapter, Program, Robot, RobotAsk};
use crate::contract::v1::{Answer, Count, Counts, Evaluate, Evaluation, Request, Welcome};
use crate::description::program_of;
use crate::hold::hold;
use crate::station::{Hub, Lost, Party};
use crate::terminal::Responder;

/// The evaluator as the base station sees it.
pub enum RemoteEvaluator {
    /// In this process.
    Here(RobotEvaluator),
    /// In a separate process. The local schedule decides when it is due.
    There(RobotEvaluator, Arc<Hub>),
}

impl Evaluator for RemoteEvaluator {
    fn is_due(&self, round: u64) -> bool {
        match self {
            Self::Here(local) | Self::There(local, _) => local.is_due(round),
        }
    }

    fn evaluate(
        &mut self,
        round: u64,
        terminals: &[TerminalId],
        model: &[u8],
    ) -> Result<Vec<TerminalSuccess>, CellError> {
        let hub = match self {
            Self::Here(local) => return local.evaluate(round, terminals, model),
            Self::There(_, hub) => hub,
        };
        let failed = |reason: String| CellError::Training { round, reason };
        let ids = terminals.iter().map(|id| id.0).collect();
        let order = Evaluate { round, terminals: ids, model: model.to_vec() }.encode_to_vec();
        let call = loop {
            match hub.call(Party::Evaluator, &order, None, None) {
                Ok(call) => break call,
                // Under the wall clock the next try is another request; nothing is lost by it.
                Err(Lost::Away(..) | Lost::OutOfStep(..) | Lost::Before(_))
                    if hub.settings().goes_on => {}
                Err(lost) => return Err(failed(lost.to_string())),
            }
        };
        if call.answer.refused {
            let why = String::from_utf8_lossy(&call.payload).into_owned();
            return Err(failed(format!("the evaluator refused: {why}")));
        }
        read_counts(&call.payload, terminals).map_err(failed)
    }
}

/// Counts of exactly these terminals.
fn read_counts(payload: &[u8], terminals: &[TerminalId]) -> Result<Vec<TerminalSuccess>, String> {
    let Counts { counts } = Counts::decode(payload).map_err(|error| format!("counts: {error}"))?;
    let ids = counts.iter().map(|count| TerminalId(count.terminal));
    if !ids.eq(terminals.iter().copied()) {
        return Err("counts: expected one for each terminal, in their order".into());
    }
    let one = |count: &Count| {
        let Count { terminal, successes, episodes, task } = *count;
        if successes > episodes {
            return Err(format!("counts: {successes} successes of {episodes} episodes"));
        }
        let count = SuccessCount { successes: successes.into(), episodes: episodes.into() };
        Ok(TerminalSuccess { id: TerminalId(terminal), task: task as usize, count })
    };
    counts.iter().map(one).collect()
}

/// The evaluator's own process. It has no state: every request is complete.
#[derive(Default)]
pub struct EvaluatorWork {
    evaluator: Option<RobotEvaluator>,
    run: String,
    /// Programs in front of real robots; none if robots are simulated.
    robots: Option<Robots>,
}

/// Robots behind adapters, one for each terminal.
struct Robots {
    program: Program,
    started: BTreeMap<u32, Adapter<Robot>>,
    /// The model of the evaluation, in a form that adapters read.
    model: PathBuf,
}

impl Robots {
    fn new(program: Program) -> Self {
        let model = std::env::temp_dir().join(format!("tilp-model-{}", std::process::id()));
        Self { program, started: BTreeMap::new(), model: model.with_extension("safetensors") }
    }

    /// Successes in some episodes of one robot.
    fn successes(&mut self, terminal: u32, episodes: Range<u64>) -> Result<usize, String> {
        let robot = match self.started.entry(terminal) {
            Entry::Occupied(started) => started.into_mut(),
            Entry::Vacant(empty) => {
                let adapter = Adapter::start(program_of(&self.program, terminal));
                empty.insert(adapter.map_err(|error| error.to_string())?)
            }
        };
        let model = self.model.display().to_string();
        let mut successes = 0;
        for episode in episodes {
            let ask = RobotAsk { model: model.clone(), episode };
            let done = robot.ask(&ask).map_err(|error| format!("terminal {terminal}: {error}"))?;
            successes += usize::from(done.success);
        }
        Ok(successes)
    }
}

impl Responder for EvaluatorWork {
    fn welcome(&mut self, welcome: &Welcome, work: &[u8]) -> Result<(), String> {
        if self.evaluator.is_some() && self.run == welcome.run {
            return Ok(());
        }
        let work = Evaluation::decode(work).map_err(|error| format!("welcome: {error}"))?;
        let scenario = Scenario::from_text(&work.scenario, "the scenario of the base station");
        let scenario = scenario.map_err(|error| error.to_string())?;
        let made = evaluator(&scenario, work.seed).map_err(|error| error.to_string())?;
        (self.evaluator, self.run) = (Some(made), welcome.run.clone());
        Ok(())
    }

    fn respond(&mut self, request: &Request, payload: &[u8]) -> Result<(Answer, Vec<u8>), String> {
        let answer = Answer { key: request.key, ..Answer::default() };
        match self.count(payload) {
            Ok(counts) => Ok((answer, counts.encode_to_vec())),
            Err(why) => Ok((Answer { refused: true, ..answer }, why.into_bytes())),
        }
    }
}

impl EvaluatorWork {
    /// An evaluator whose robots are behind this program, one for each terminal.
    pub fn with_robots(program: Option<Program>) -> Self {
        Self { robots: program.map(Robots::new), ..Self::default() }
    }

    fn count(&mut self, payload: &[u8]) -> Result<Counts, String> {
        let order = Evaluate::decode(payload).map_err(|error| error.to_string())?;
        let robots = self.evaluator.as_mut().ok_or("a request before the welcome")?;
        let terminals: Vec<TerminalId> = order.terminals.iter().copied().map(TerminalId).collect();
        let counted = match &mut self.robots {
            None => robots.evaluate(order.round, &terminals, &order.model),
            Some(real) => {
                let model = robots.model_file(&order.model).map_err(|error| error.to_string())?;
                std::fs::write(&real.model, model).map_err(|error| error.to_string())?;
                robots.count(order.round, &terminals, |id, episodes| real.successes(id.0, episodes))
            }
        };
        let counted = counted.map_err(|error| error.to_string())?;
        hold(|| "evaluating".into());
        let one = |one: TerminalSuccess| Count {
            terminal: one.id.0,
            successes: one.count.successes as u32,
            episodes: one.count.episodes as u32,
            task: one.task as u32,
        };
        Ok(Counts { counts: counted.into_iter().map(one).collect() })
    }
}
