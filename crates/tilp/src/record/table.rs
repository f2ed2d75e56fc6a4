//! One list of columns per kind of row, from which CSV and Parquet are written.

use std::fmt;

/// How the 64 bits of a cell are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number.
    Count,
    /// A real number.
    Number,
    /// A real number that may be absent.
    Optional,
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("a whole number"),
            Self::Number => f.write_str("a number"),
            Self::Optional => f.write_str("a number, or nothing"),
            Self::Flag => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// The name of the column that follows the others in a table with an index of tasks.
pub(super) const TASK_NAME: &str = "task_name";

/// The name of a task; empty if it is not known.
pub(super) fn task_name(names: &[String], task: u64) -> &str {
    let place = usize::try_from(task).ok();
    place.and_then(|place| names.get(place)).map_or("", String::as_str)
}

/// One column: its name, its meaning, and the way in and out of a row.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    /// The text of the field's documentation.
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) get: fn(&R) -> u64,
    pub(super) set: fn(&mut R, u64),
}

/// A struct that is a row of a table.
pub(super) trait Row: Default + 'static {
    /// The columns in the order of the fields.
    const COLUMNS: &'static [Column<Self>];
    /// Columns that files of an earlier version lack. A row of such a file has the default there.
    const ADDED: &'static [&'static str];
    /// The index of the row's task. Where there is one, files have its name in a last column,
    /// which is not read back.
    const TASK: Option<fn(&Self) -> u64> = None;
}

/// The place of each column among the names found; none for one that was added later. The name of
/// a column that should be there and is not is the error.
pub(super) fn places<R: Row>(found: &[&str]) -> Result<Vec<Option<usize>>, &'static str> {
    let place = |column: &Column<R>| {
        let place = found.iter().position(|name| *name == column.name);
        match place.is_none() && !R::ADDED.contains(&column.name) {
            true => Err(column.name),
            false => Ok(place),
        }
    };
    R::COLUMNS.iter().map(place).collect()
}

/// The first row that is not the one expected: its place, the column and both values.
pub(super) fn differ<R: Row>(file: &str, found: &[R], expected: &[R]) -> Option<String> {
    let cell = |(place, (found, expected)): (usize, (&R, &R))| {
        let column = R::COLUMNS.iter().find(|one| !same(one, found, expected))?;
        let [found, expected] =
            [found, expected].map(|row| to_text(column.kind, (column.get)(row)));
        let name = column.name;
        Some(format!("{file}, row {}: {name} = {found}, expected {expected}", place + 1))
    };
    let first = found.iter().zip(expected).enumerate().find_map(cell);
    let (n, wanted) = (found.len(), expected.len());
    first.or_else(|| (n != wanted).then(|| format!("{file}: {n} rows, expected {wanted}")))
}

/// Whether two rows agree in a column. All NaNs are one.
fn same<R: Row>(column: &Column<R>, a: &R, b: &R) -> bool {
    let [a, b] = [a, b].map(|row| (column.get)(row));
    let is_nan = |bits: u64| f64::from_bits(bits).is_nan() && bits != ABSENT;
    a == b || column.kind == Kind::Number && is_nan(a) && is_nan(b)
}

/// A cell as text: the fewest digits that give a number back, nothing for one that is absent.
pub(super) fn to_text(kind: Kind, bits: u64) -> String {
    match kind {
        Kind::Count => bits.to_string(),
        Kind::Optional if bits == ABSENT => String::new(),
        Kind::Number | Kind::Optional => format!("{:?}", f64::from_bits(bits)),
        Kind::Flag => (bits != 0).to_string(),
        Kind::Word(words) => words.get(bits as usize).copied().unwrap_or_default().to_owned(),
    }
}

/// A field that fits a cell. Everything goes through its bits, so nothing is lost.
pub(super) trait Cell {
    const KIND: Kind;
    fn to_cell(&self) -> u64;
    fn from_cell(bits: u64) -> Self;
}

impl Cell for u64 {
    const KIND: Kind = Kind::Count;
    fn to_cell(&self) -> u64 {
        *self
    }
    fn from_cell(bits: u64) -> Self {
        bits
    }
}

impl Cell for f64 {
    const KIND: Kind = Kind::Number;
    fn to_cell(&self) -> u64 {
        self.to_bits()
    }
    fn from_cell(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

/// A quiet NaN that no computation produces: an absent value stays apart from a broken one.
pub(super) const ABSENT: u64 = 0x7ff8_0000_6e6f_6e65;

impl Cell for Option<f64> {
    const KIND: Kind = Kind::Optional;
    fn to_cell(&self) -> u64 {
        self.map_or(ABSENT, f64::to_bits)
    }
    fn from_cell(bits: u64) -> Self {
        (bits != ABSENT).then(|| f64::from_bits(bits))
    }
}

impl Cell for bool {
    const KIND: Kind = Kind::Flag;
    fn to_cell(&self) -> u64 {
        u64::from(*self)
    }
    fn from_cell(bits: u64) -> Self {
        bits != 0
    }
}

/// Declares a row: the struct and its columns from one list of fields, and which of them files of
/// an earlier version lack.
macro_rules! row {
    (
        $(#[$doc:meta])* $name:ident { $($(#[doc = $about:literal])* $field:ident: $type:ty,)* }
        $(added $($added:literal),+)?
        $(named by $task:ident)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[doc = $about])* pub $field: $type,)*
        }

        impl $crate::record::table::Row for $name {
            const COLUMNS: &'static [$crate::record::table::Column<Self>] =
                &[$($crate::record::table::Column {
                    name: stringify!($field),
                    about: concat!($($about),*),
                    kind: <$type as $crate::record::table::Cell>::KIND,
                    get: |row| $crate::record::table::Cell::to_cell(&row.$field),
                    set: |row, bits| row.$field = $crate::record::table::Cell::from_cell(bits),
                }),*];
            const ADDED: &'static [&'static str] = &[$($($added),+)?];
            $(const TASK: Option<fn(&Self) -> u64> = Some(|row| row.$task);)?
        }
    };
}
pub(super) use row;

#[cfg(test)]
mod tests {
    use super::*;

    row!(
        /// A row to try things with.
        Tried {
            /// Of the first version.
            old: u64,
            /// Of the second.
            new: u64,
        }
        added "new"
    );

    #[test]
    fn a_column_that_was_added_later_may_be_missing_and_no_other() {
        assert_eq!(places::<Tried>(&["new", "old"]), Ok(vec![Some(1), Some(0)]));
        assert_eq!(places::<Tried>(&["old"]), Ok(vec![Some(0), None]));
        assert_eq!(places::<Tried>(&["new"]), Err("old"));
    }

    #[test]
    fn the_first_cell_that_differs_is_named() {
        let row = |old, new| Tried { old, new };
        assert_eq!(differ("t", &[row(1, 2)], &[row(1, 2)]), None);
        let found = differ("t", &[row(1, 2), row(3, 4)], &[row(1, 2), row(3, 5)]);
        assert_eq!(found.unwrap(), "t, row 2: new = 4, expected 5");
        assert_eq!(differ("t", &[], &[row(1, 2)]).unwrap(), "t: 0 rows, expected 1");
    }
}
