//! A decision as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Checker, ExchangeError, parse};
use crate::round::{Decision, TerminalDecision, Tiers, TrainingPlan};
use crate::units::{Hertz, Watts};

/// A decision for a round. What else the object contains (reasons, for instance) is not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub struct DecisionMessage {
    /// One entry per terminal of the observation, in its order.
    pub terminals: Vec<TerminalDecisionMessage>,
    /// The method found nothing that it predicts to be feasible, and fell back to the least bad.
    #[serde(default)]
    pub fallback: bool,
    /// Indices of the terminals in their order of training, for training one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<usize>,
    /// Where copies of the layers live, for methods that train in tiers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<TiersMessage>,
}

/// Decision for one terminal. If it is not scheduled, the other fields are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TerminalDecision")]
pub struct TerminalDecisionMessage {
    /// Whether it takes part.
    pub scheduled: bool,
    /// Its bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_hz: Option<f64>,
    /// Its transmit power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The terminal runs layers 1 to `cut`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<usize>,
    /// Share of the payload that is not sent; 0 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<f64>,
}

/// Layers by where their copies live, and which are averaged at the end of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tiers")]
pub struct TiersMessage {
    /// Every terminal has its own copy of the layers up to this one.
    pub own: usize,
    /// The copies of the terminals are averaged.
    pub average_own: bool,
    /// From there up to this layer every edge server has a copy.
    pub edge: usize,
    /// The copies of the edge servers are averaged.
    pub average_edge: bool,
}

/// Reads a decision from untrusted bytes, for this number of terminals and layers.
pub fn read_decision(
    bytes: &[u8],
    n_terminals: usize,
    n_layers: usize,
) -> Result<Decision, ExchangeError> {
    parse::<DecisionMessage>("decision", "", bytes)?.checked("decision", n_terminals, n_layers)
}

impl From<&Decision> for DecisionMessage {
    fn from(decision: &Decision) -> Self {
        let TrainingPlan { order, tiers } = &decision.training;
        Self {
            terminals: decision.terminals.iter().map(TerminalDecisionMessage::from).collect(),
            fallback: decision.fallback,
            order: order.clone(),
            tiers: tiers.map(|Tiers { own, average_own, edge, average_edge }| TiersMessage {
                own,
                average_own,
                edge,
                average_edge,
            }),
        }
    }
}

impl From<&TerminalDecision> for TerminalDecisionMessage {
    fn from(one: &TerminalDecision) -> Self {
        Self {
            scheduled: one.scheduled,
            bandwidth_hz: Some(one.bandwidth.0),
            power_w: Some(one.power.0),
            cut: Some(one.cut),
            compression: Some(one.compression),
        }
    }
}

impl DecisionMessage {
    /// The decision, if it has the form of one. Its values are projected later, as those of every
    /// method are.
    pub fn checked(
        self,
        what: &'static str,
        n_terminals: usize,
        n_layers: usize,
    ) -> Result<Decision, ExchangeError> {
        let checker = Checker { what };
        let found = self.terminals.len();
        if found != n_terminals {
            let expected = format!("{n_terminals}, as many as were observed");
            return checker.fail("terminals", format!("{found} terminals"), expected);
        }
        if self.order.len() > n_terminals {
            let expected = format!("at most {n_terminals}");
            return checker.fail("order", format!("{} places", self.order.len()), expected);
        }
        let tiers = self.tiers.map(|tiers| tiers.checked(checker, n_layers)).transpose()?;
        let one = |(n, one): (usize, &TerminalDecisionMessage)| one.checked(checker, n, n_layers);
        Ok(Decision {
            terminals: self.terminals.iter().enumerate().map(one).collect::<Result<_, _>>()?,
            training: TrainingPlan { order: self.order, tiers },
            fallback: self.fallback,
        })
    }
}

impl TerminalDecisionMessage {
    fn checked(
        &self,
        checker: Checker,
        n: usize,
        n_layers: usize,
    ) -> Result<TerminalDecision, ExchangeError> {
        let at = |field: &str| format!("terminals[{n}].{field}");
        let needed = |field: &str, value: Option<f64>| match value {
            None if self.scheduled => {
                checker.fail(at(field), "nothing", "a number for a scheduled terminal")
            }
            value => checker.within(at(field), value.unwrap_or(0.0), [-1e18, 1e18]),
        };
        let cut = match self.cut {
            None if self.scheduled => {
                return checker.fail(at("cut"), "nothing", "a layer for a scheduled terminal");
            }
            cut => checker.within(at("cut"), cut.unwrap_or(1), [0, n_layers])?,
        };
        Ok(TerminalDecision {
            scheduled: self.scheduled,
            bandwidth: Hertz(needed("bandwidth_hz", self.bandwidth_hz)?),
            power: Watts(needed("power_w", self.power_w)?),
            cut,
            compression: checker.within(
                at("compression"),
                self.compression.unwrap_or(0.0),
                [-1e18, 1e18],
            )?,
        })
    }
}

impl TiersMessage {
    fn checked(self, checker: Checker, n_layers: usize) -> Result<Tiers, ExchangeError> {
        let Self { own, average_own, edge, average_edge } = self;
        checker.within("tiers.edge", edge, [0, n_layers])?;
        checker.within("tiers.own", own, [0, edge])?;
        Ok(Tiers { own, average_own, edge, average_edge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_comes_back_from_json_as_it_was() {
        let mut decision = Decision::idle(2, 3);
        decision.terminals[1] = TerminalDecision {
            scheduled: true,
            bandwidth: Hertz(0.1 + 0.2),
            power: Watts(1.0 / 3.0),
            cut: 4,
            compression: 0.9,
        };
        decision.training.order = vec![1];
        let tiers = Tiers { own: 2, average_own: true, edge: 5, average_edge: false };
        decision.training.tiers = Some(tiers);
        let text = serde_json::to_string(&DecisionMessage::from(&decision)).unwrap();
        assert_eq!(read_decision(text.as_bytes(), 2, 6).unwrap(), decision);
    }

    #[test]
    fn what_is_no_decision_is_refused_in_one_line() {
        let refused = |text: &str| {
            let said = read_decision(text.as_bytes(), 1, 6).expect_err(text).to_string();
            assert!(!said.contains('\n'), "{said}");
            said
        };
        for (text, expected) in [
            ("", "empty"),
            ("{", "EOF"),
            (r#"{"terminals": []}"#, "0 terminals, expected 1"),
            (r#"{"terminals": [{}]}"#, "scheduled"),
            (r#"{"terminals": [{"scheduled": true}]}"#, "terminals[0].cut = nothing"),
            (r#"{"terminals": [{"scheduled": true, "cut": 2}]}"#, "bandwidth_hz = nothing"),
            (r#"{"terminals": [{"scheduled": false, "cut": 7}]}"#, "cut = 7, expected 0 to 6"),
            (r#"{"terminals": [{"scheduled": false, "compression": NaN}]}"#, "expected value"),
            (r#"{"terminals": [{"scheduled": false, "power_w": 1e999}]}"#, "out of range"),
            (r#"{"terminals": [{"scheduled": false}], "order": [0, 0]}"#, "2 places"),
        ] {
            let said = refused(text);
            assert!(said.contains(expected), "{said}");
        }
        let idle = read_decision(br#"{"terminals": [{"scheduled": false}], "why": 1}"#, 1, 6);
        assert!(!idle.unwrap().terminals[0].scheduled);
    }
}
