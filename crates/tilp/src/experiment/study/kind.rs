//! The kinds of studies.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Axis;

/// What a study asks. Written as `compare`, `ablate`, `equal-budget`, or `sweep` with the name of its
/// axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum StudyKind {
    /// Methods against each other.
    Compare,
    /// TiLP without each of its parts.
    Ablate,
    /// Methods along an axis.
    Sweep(Axis),
    /// TiLP and its rivals on equal budgets.
    EqualBudget,
}

impl StudyKind {
    /// Whether its points lie along an axis.
    pub fn is_sweep(self) -> bool {
        matches!(self, Self::Sweep(_))
    }

    /// Its name as part of a folder name.
    pub fn folder(self) -> String {
        self.to_string().replace(' ', "-")
    }
}

impl fmt::Display for StudyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare => f.write_str("compare"),
            Self::Ablate => f.write_str("ablate"),
            Self::Sweep(axis) => write!(f, "sweep {}", axis.name()),
            Self::EqualBudget => f.write_str("equal-budget"),
        }
    }
}

impl From<StudyKind> for String {
    fn from(kind: StudyKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for StudyKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("sweep ").map(Axis::named)) {
            ("compare", _) => Ok(Self::Compare),
            ("ablate", _) => Ok(Self::Ablate),
            ("equal-budget", _) => Ok(Self::EqualBudget),
            (_, Some(Ok(axis))) => Ok(Self::Sweep(axis)),
            (_, Some(Err(reason))) => Err(format!("question is `{text}`: {reason}")),
            _ => {
                let expected = "expected compare, ablate, equal-budget or sweep AXIS";
                Err(format!("question is `{text}`, {expected}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_it_is_written() {
        let sweeps = Axis::ALL.map(|(_, axis)| StudyKind::Sweep(axis));
        let others = [StudyKind::Compare, StudyKind::Ablate, StudyKind::EqualBudget];
        for kind in others.into_iter().chain(sweeps) {
            assert_eq!(StudyKind::try_from(kind.to_string()), Ok(kind));
        }
    }
}
