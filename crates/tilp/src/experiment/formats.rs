//! The formats of files and messages as data. The reference pages are generated from it.

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use super::PlanReport;
use super::study::{Line, Plan};
use crate::exchange::ObservationMessage;
use crate::record::{Event, Summary};

/// Name and JSON schema of every JSON format, the scenario's apart.
pub fn json_formats() -> Vec<(&'static str, Value)> {
    vec![
        ("summary.json", schema::<Summary>()),
        ("events.jsonl", schema::<Event>()),
        ("study.json", schema::<Plan>()),
        ("runs.jsonl", schema::<Line>()),
        ("observation", schema::<ObservationMessage>()),
        ("plan", schema::<PlanReport>()),
    ]
}

fn schema<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}
