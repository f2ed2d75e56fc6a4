//! Requests and answers of each kind of adapter.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lines::{Answer, Hello, LineError, Request};

/// A kind of adapter.
pub trait Kind: 'static {
    /// Its name in the lines.
    const NAME: &'static str;
    /// Its request.
    type Ask: Serialize + DeserializeOwned + JsonSchema + Clone;
    /// Its answer.
    type Answer: Serialize + DeserializeOwned + JsonSchema;

    /// Refuses values that no equipment can mean.
    fn check(answer: &Self::Answer) -> Result<(), LineError>;
}

fn within(
    field: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
) -> Result<(), LineError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(LineError::Value { field, value: value.to_string(), expected })
}

/// Measures the channel between terminal and base station.
pub enum Probe {}

/// The question to a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeAsk {
    /// The round that begins.
    pub round: u64,
}

/// The channel as measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeAnswer {
    /// Total gain of the link in dB, small-scale fading included: received over sent power.
    pub gain_db: f64,
    /// Received power in dBm, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_dbm: Option<f64>,
    /// Noise power in dBm, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_dbm: Option<f64>,
}

impl Kind for Probe {
    const NAME: &'static str = "probe";
    type Ask = ProbeAsk;
    type Answer = ProbeAnswer;

    fn check(answer: &ProbeAnswer) -> Result<(), LineError> {
        within("gain_db", answer.gain_db, -250.0..=50.0)?;
        within("signal_dbm", answer.signal_dbm.unwrap_or(0.0), -250.0..=100.0)?;
        within("noise_dbm", answer.noise_dbm.unwrap_or(0.0), -250.0..=100.0)
    }
}

/// Applies band and power.
pub enum Actuator {}

/// The grant of a round. A terminal that is not scheduled is granted nothing: both are zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActuatorAsk {
    /// The round.
    pub round: u64,
    /// Band in hertz.
    pub bandwidth_hz: f64,
    /// Transmit power in watts.
    pub power_w: f64,
}

/// Values that the equipment has set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActuatorAnswer {
    /// Band in hertz.
    pub bandwidth_hz: f64,
    /// Transmit power in watts.
    pub power_w: f64,
}

impl Kind for Actuator {
    const NAME: &'static str = "actuator";
    type Ask = ActuatorAsk;
    type Answer = ActuatorAnswer;

    fn check(answer: &ActuatorAnswer) -> Result<(), LineError> {
        within("bandwidth_hz", answer.bandwidth_hz, 0.0..=1e12)?;
        within("power_w", answer.power_w, 0.0..=1e4)
    }
}

/// Measures energy.
pub enum Meter {}

/// What was done since the last question. A meter that measures does not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeterAsk {
    /// Arithmetic operations.
    pub operations: f64,
    /// Seconds of sending.
    pub sending_s: f64,
    /// Transmit power while sending, in watts.
    pub power_w: f64,
}

/// Energy since the meter was started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeterAnswer {
    /// Of computation, in joules.
    pub compute_j: f64,
    /// Of the radio, in joules; none if the meter does not see the radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio_j: Option<f64>,
    /// Whether the value comes from a formula instead of a measurement.
    pub modelled: bool,
}

impl Kind for Meter {
    const NAME: &'static str = "meter";
    type Ask = MeterAsk;
    type Answer = MeterAnswer;

    fn check(answer: &MeterAnswer) -> Result<(), LineError> {
        within("compute_j", answer.compute_j, 0.0..=1e15)?;
        within("radio_j", answer.radio_j.unwrap_or(0.0), 0.0..=1e15)
    }
}

/// Runs episodes with a policy.
pub enum Robot {}

/// The episode to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RobotAsk {
    /// The policy: path of a `model.safetensors`.
    pub model: String,
    /// Number of the episode. The same number asks for the same beginning, as far as the robot can.
    pub episode: u64,
}

/// Result of the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RobotAnswer {
    /// Whether the robot did its task.
    pub success: bool,
}

impl Kind for Robot {
    const NAME: &'static str = "robot";
    type Ask = RobotAsk;
    type Answer = RobotAnswer;

    fn check(_: &RobotAnswer) -> Result<(), LineError> {
        Ok(())
    }
}

/// The JSON schema of the lines of a kind: what an adapter says first, what it is asked, what it
/// answers. `None` if there is no such kind.
pub fn schema(kind: &str) -> Option<serde_json::Value> {
    fn of<K: Kind>() -> serde_json::Value {
        serde_json::json!({
            "adapter": K::NAME,
            "version": super::VERSION,
            "hello": schemars::schema_for!(Hello),
            "request": schemars::schema_for!(Request<K::Ask>),
            "answer": schemars::schema_for!(Answer<K::Answer>),
        })
    }
    match kind {
        Probe::NAME => Some(of::<Probe>()),
        Actuator::NAME => Some(of::<Actuator>()),
        Meter::NAME => Some(of::<Meter>()),
        Robot::NAME => Some(of::<Robot>()),
        _ => None,
    }
}
