//! The paper's own numbers for comparison with ours: `docs/paper-numbers.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::experiment::study::StudyKind;

/// A row of the paper's tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// Our name of the method, or the point of our ablation.
    pub name: String,
    /// Final success in percent.
    pub success: f64,
    /// Rounds to 60, 70 and 80 %, as far as they were reached.
    rounds_to: Vec<u32>,
    /// Mean latency in seconds.
    pub latency_s: f64,
    /// Energy over that of TiLP.
    pub energy: f64,
    /// Volume in gigabytes.
    pub volume_gb: f64,
    /// Mean violation.
    pub violation: f64,
}

impl Published {
    /// Rounds to one of the three thresholds, if it was reached.
    pub(super) fn rounds_to(&self, threshold: usize) -> Option<f64> {
        self.rounds_to.get(threshold).copied().map(f64::from)
    }
}

/// Tables II and III.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    main: Vec<Published>,
    ablation: Vec<Published>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let text = include_str!("../../../../../../docs/paper-numbers.toml");
    toml::from_str(text).expect("a test reads the paper's numbers")
});

/// The paper's row for one of ours: by method without its variants in a comparison, by point in an
/// ablation.
pub(super) fn published(
    question: StudyKind,
    point: &str,
    method: &str,
) -> Option<&'static Published> {
    let plain = method.split('+').next().unwrap_or(method);
    match question {
        StudyKind::Compare => TABLES.main.iter().find(|row| row.name == plain),
        StudyKind::Ablate => TABLES.ablation.iter().find(|row| row.name == point),
        StudyKind::Sweep(_) | StudyKind::EqualBudget => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_tables_have_nine_rows_each() {
        assert_eq!((TABLES.main.len(), TABLES.ablation.len()), (9, 9));
        let ours = published(StudyKind::Compare, "default", "tilp").unwrap();
        let full = published(StudyKind::Ablate, "full", "tilp").unwrap();
        assert_eq!(ours.success, 87.5);
        assert_eq!([0, 1, 2].map(|n| ours.rounds_to(n)), [Some(29.0), Some(68.0), Some(144.0)]);
        assert_eq!((ours.success, ours.latency_s), (full.success, full.latency_s));
        let guarded = published(StudyKind::Compare, "default", "asfl+guard").unwrap();
        assert_eq!([0, 1, 2].map(|n| guarded.rounds_to(n)), [Some(120.0), Some(235.0), None]);
    }
}
