//! What the files of rows contain, as data: for the reference pages and for programs that read the
//! files.

use super::files::{CALIBRATION, EPISODES, ROUNDS, TERMINALS};
use super::table::{Kind, Row, TASK_NAME};
use super::{CalibrationRow, EpisodeRow, RoundRow, TerminalRow};

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumns {
    /// Its name in a run folder.
    pub file: &'static str,
    /// In the order of the file.
    pub columns: Vec<ColumnAbout>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnAbout {
    /// Its name. It ends in the unit, if there is one.
    pub name: &'static str,
    /// Its type in words.
    pub kind: String,
    /// Its meaning.
    pub about: &'static str,
}

/// The columns of every file of rows in a run folder.
pub fn file_columns() -> Vec<FileColumns> {
    vec![
        FileColumns { file: ROUNDS, columns: columns::<RoundRow>() },
        FileColumns { file: TERMINALS, columns: columns::<TerminalRow>() },
        FileColumns { file: CALIBRATION, columns: columns::<CalibrationRow>() },
        FileColumns { file: EPISODES, columns: columns::<EpisodeRow>() },
    ]
}

fn columns<R: Row>() -> Vec<ColumnAbout> {
    let about = |name, kind: Kind, about: &'static str| {
        let kind = kind.to_string();
        let kind = kind.strip_prefix("a ").unwrap_or(&kind).to_owned();
        ColumnAbout { name, kind, about: about.trim() }
    };
    let own = R::COLUMNS.iter().map(|column| about(column.name, column.kind, column.about));
    let task = ColumnAbout { name: TASK_NAME, kind: "text".into(), about: "Name of the task." };
    own.chain(R::TASK.map(|_| task)).collect()
}
