//! The messages of an exchange: questions of the base station, replies of the method.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::{Checker, ExchangeError, parse};
use super::{DecisionMessage, ObservationMessage, OutcomeMessage, Setup, VERSION};
use crate::rule::{Local, Rule};

/// What the base station writes: one line each, and every one but `end` is answered by one line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Question {
    /// The first line. The reply is `method`.
    Setup(Box<Setup>),
    /// Before a run is taken up again: the state after its last round. The reply is `restored`.
    Restore {
        /// The last round that was done.
        round: u64,
        /// What the method gave with that round.
        state: Value,
    },
    /// The reply is `decision`.
    Observe {
        /// What the base station has before the round.
        observation: ObservationMessage,
    },
    /// After the round. The reply is `learned`.
    Outcome {
        /// What the base station observed.
        outcome: OutcomeMessage,
    },
    /// No more rounds. There is no reply; the program ends.
    End,
}

/// What a method writes: one line each.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Reply {
    /// Says what the method is.
    Method(Declaration),
    /// The state was taken back.
    Restored,
    /// The decision for the round observed.
    Decision(DecisionMessage),
    /// The outcome was taken in.
    Learned {
        /// The round.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// State that the method needs to resume after this round, if it declared
        /// `"state": "given"`.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<Value>,
    },
    /// Instead of any reply: the question could not be answered.
    Error {
        /// Why, in one line.
        error: String,
    },
}

/// What a method declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// Version of the exchange.
    pub version: u64,
    /// What the method is called.
    pub name: String,
    /// How its participants train.
    #[serde(default)]
    pub training: Training,
    /// Learning rate of the server side; that of the scenario if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_rate: Option<f64>,
    /// Learning rate of the terminal side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_rate: Option<f64>,
    /// Rounds between aggregations; those of the scenario if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_every: Option<u64>,
    /// Whether the method can resume a run. Otherwise an interrupted run starts from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateUse>,
    /// Seconds that a reply may take; 60 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

/// How a method takes up a run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateUse {
    /// It decides from setup and observation alone: nothing has to be kept.
    None,
    /// It gives its state with every `learned` and takes it back with `restore`.
    Given,
}

/// How the participants of a round train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Training {
    /// All at once; the server steps with the mean of their gradients.
    #[default]
    Parallel,
    /// The server steps after every terminal.
    Sequential,
    /// One after another, and each starts from the front layers of the one before.
    Relay,
    /// All at once; every terminal gets the mean of the gradients at the cut.
    Broadcast,
    /// Every terminal trains the whole model and sends it.
    Whole(Local),
    /// All at once; layers up to some depth have a copy per terminal, then per edge server.
    Tiered {
        /// Number of edge servers.
        edges: usize,
    },
}

impl From<Training> for Rule {
    fn from(training: Training) -> Self {
        match training {
            Training::Parallel => Self::Parallel,
            Training::Sequential => Self::Sequential,
            Training::Relay => Self::Relay,
            Training::Broadcast => Self::Broadcast,
            Training::Whole(local) => Self::Whole(local),
            Training::Tiered { edges } => Self::Tiered { edges },
        }
    }
}

impl Declaration {
    /// The declaration in untrusted bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, ExchangeError> {
        parse::<Self>("method", "", bytes)?.checked()
    }

    /// It, if every value is in its range.
    pub fn checked(self) -> Result<Self, ExchangeError> {
        let checker = Checker { what: "method" };
        if self.version != VERSION {
            return checker.fail("version", self.version, VERSION);
        }
        let is_name = |c: char| !c.is_control();
        if self.name.is_empty() || self.name.len() > 100 || !self.name.chars().all(is_name) {
            return checker.fail(
                "name",
                format!("{:?}", self.name),
                "1 to 100 printable characters",
            );
        }
        match self.training {
            Training::Whole(Local::Steps(n)) => checker.within("training", n, [1, 10_000])?,
            Training::Whole(Local::Epochs(n)) => checker.within("training", n, [1, 1000])?,
            Training::Tiered { edges } => checker.within("training.edges", edges, [1, 10_000])?,
            _ => 0,
        };
        checker.maybe("server_rate", self.server_rate, [0.0, 100.0])?;
        checker.maybe("terminal_rate", self.terminal_rate, [0.0, 100.0])?;
        checker.maybe("timeout_s", self.timeout_s, [0.001, 86_400.0])?;
        if let Some(every) = self.aggregate_every {
            checker.within("aggregate_every", every, [1, u64::MAX])?;
        }
        Ok(self)
    }

    /// Seconds that a reply may take.
    pub fn timeout_s(&self) -> f64 {
        self.timeout_s.unwrap_or(60.0)
    }
}

/// The type of a line, and its error if it is one.
#[derive(Deserialize)]
pub struct Kind {
    /// `observe`, `decision` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of an error: why.
    #[serde(default)]
    pub error: Option<String>,
    /// Of `learned`: the state.
    #[serde(default)]
    pub state: Option<Value>,
    /// Of `setup`: the version.
    #[serde(default)]
    pub version: Option<u64>,
}

impl Kind {
    /// The type of a line in untrusted bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, ExchangeError> {
        parse("line", " with a field `type`", bytes)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObserveLine {
    #[serde(rename = "type")]
    _kind: String,
    observation: ObservationMessage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeLine {
    #[serde(rename = "type")]
    _kind: String,
    outcome: OutcomeMessage,
}

/// A question in untrusted bytes, as far as `tilp plan serve` answers it.
pub enum Asked {
    /// What the method is.
    Setup,
    /// A decision.
    Observe(Box<ObservationMessage>),
    /// To learn.
    Outcome(Box<OutcomeMessage>),
    /// To end.
    End,
}

impl Asked {
    /// Reads a line.
    pub fn read(bytes: &[u8]) -> Result<Self, ExchangeError> {
        let Kind { kind, version, .. } = Kind::read(bytes)?;
        let checker = Checker { what: "line" };
        match kind.as_str() {
            "setup" => match version.unwrap_or(VERSION) {
                VERSION => Ok(Self::Setup),
                other => checker.fail("version", other, VERSION),
            },
            "observe" => {
                let ObserveLine { observation, .. } = parse("line", "", bytes)?;
                Ok(Self::Observe(Box::new(observation)))
            }
            "outcome" => {
                let OutcomeLine { outcome, .. } = parse("line", "", bytes)?;
                Ok(Self::Outcome(Box::new(outcome)))
            }
            "end" => Ok(Self::End),
            other => checker.fail("type", other, "setup, observe, outcome or end"),
        }
    }
}

impl Question {
    /// It as a line, with the end of line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a question is plain data") + "\n"
    }
}

impl Reply {
    /// It as a line, with the end of line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a reply is plain data") + "\n"
    }
}

/// The JSON schema of both directions.
pub fn schema() -> Value {
    #[derive(JsonSchema)]
    #[schemars(rename = "Exchange")]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Exchange {
        /// From the base station to the method.
        question: Question,
        /// From the method to the base station.
        reply: Reply,
    }
    schemars::schema_for!(Exchange).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_needs_version_and_name_only() {
        let read = |text: &str| Declaration::read(text.as_bytes());
        let least = read(r#"{"type": "method", "version": 1, "name": "mine"}"#).unwrap();
        assert_eq!(Rule::from(least.training), Rule::Parallel);
        assert_eq!((least.state, least.timeout_s()), (None, 60.0));
        let all = r#"{"version": 1, "name": "mine", "training": {"whole": {"epochs": 2}},
            "server_rate": 0.1, "terminal_rate": 0.2, "aggregate_every": 3, "state": "given"}"#;
        let all = read(all).unwrap();
        assert_eq!(Rule::from(all.training), Rule::Whole(Local::Epochs(2)));
        assert_eq!(all.state, Some(StateUse::Given));
        for (text, expected) in [
            (r#"{"version": 2, "name": "x"}"#, "version = 2, expected 1"),
            (r#"{"version": 1, "name": ""}"#, "name"),
            (r#"{"version": 1, "name": "a\nb"}"#, "name"),
            (r#"{"version": 1, "name": "x", "server_rate": -1}"#, "server_rate = -1"),
            (r#"{"version": 1, "name": "x", "training": "best"}"#, "training"),
            (r#"{"version": 1, "name": "x", "aggregate_every": 0}"#, "aggregate_every = 0"),
            (r#"{"version": 1, "name": "x", "training": {"whole": {"steps": 0}}}"#, "training"),
        ] {
            let said = read(text).expect_err(text).to_string();
            assert!(said.contains(expected) && !said.contains('\n'), "{said}");
        }
    }
}
