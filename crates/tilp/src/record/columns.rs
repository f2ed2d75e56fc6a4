//! Rows as columns, for programs that work with whole tables.

use super::table::{ABSENT, Kind, Row, TASK_NAME, task_name, to_text};
use super::{EpisodeRow, RoundRow, TerminalRow};

/// A column of a table with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name. It ends in the unit, if there is one.
    pub name: &'static str,
    /// Its values, one per row.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Real numbers.
    Numbers(Vec<f64>),
    /// Real numbers that may be absent.
    Optional(Vec<Option<f64>>),
    /// Yes or no.
    Flags(Vec<bool>),
    /// Words.
    Words(Vec<String>),
}

/// The columns of `rounds.csv`.
pub fn round_columns(rows: &[RoundRow]) -> Vec<Column> {
    columns(rows, &[])
}

/// The columns of `terminals.parquet`.
pub fn terminal_columns(rows: &[TerminalRow], tasks: &[String]) -> Vec<Column> {
    columns(rows, tasks)
}

/// The columns of `episodes.parquet`.
pub fn episode_columns(rows: &[EpisodeRow], tasks: &[String]) -> Vec<Column> {
    columns(rows, tasks)
}

fn columns<R: Row>(rows: &[R], tasks: &[String]) -> Vec<Column> {
    let own = R::COLUMNS.iter().map(|column| {
        let cells = rows.iter().map(column.get);
        Column { name: column.name, values: values(column.kind, cells) }
    });
    let named = R::TASK.map(|task| {
        let name = |row| task_name(tasks, task(row)).to_owned();
        Column { name: TASK_NAME, values: Values::Words(rows.iter().map(name).collect()) }
    });
    own.chain(named).collect()
}

fn values(kind: Kind, cells: impl Iterator<Item = u64>) -> Values {
    let known = |bits: u64| (bits != ABSENT).then(|| f64::from_bits(bits));
    match kind {
        Kind::Count => Values::Counts(cells.collect()),
        Kind::Number => Values::Numbers(cells.map(f64::from_bits).collect()),
        Kind::Optional => Values::Optional(cells.map(known).collect()),
        Kind::Flag => Values::Flags(cells.map(|bits| bits != 0).collect()),
        Kind::Word(_) => Values::Words(cells.map(|bits| to_text(kind, bits)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::history;
    use crate::record::reference::file_columns;

    #[test]
    fn the_columns_are_those_of_the_files() {
        let history = history(4);
        let names = |columns: Vec<Column>| columns.iter().map(|one| one.name).collect::<Vec<_>>();
        let of_file = |place: usize| {
            let columns = &file_columns()[place].columns;
            columns.iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(names(round_columns(&history.rounds)), of_file(0));
        assert_eq!(names(terminal_columns(&history.terminals, &history.tasks)), of_file(1));
        assert_eq!(names(episode_columns(&history.episodes, &history.tasks)), of_file(3));
    }

    #[test]
    fn every_value_is_that_of_its_row() {
        let history = history(4);
        let columns = round_columns(&history.rounds);
        let of = |name: &str| &columns.iter().find(|one| one.name == name).unwrap().values;
        let rows = || history.rounds.iter();
        assert_eq!(*of("round"), Values::Counts(rows().map(|row| row.round).collect()));
        assert_eq!(*of("clock_s"), Values::Numbers(rows().map(|row| row.clock_s).collect()));
        let success = rows().map(|row| row.report_success).collect();
        assert_eq!(*of("report_success"), Values::Optional(success));
        assert_eq!(*of("aggregated"), Values::Flags(rows().map(|row| row.aggregated).collect()));
    }
}
