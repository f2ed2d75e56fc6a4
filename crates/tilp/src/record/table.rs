//! One list of columns per kind of row, from which CSV and Parquet are written.

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

/// One column: its name, and the way in and out of a row.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
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
        $(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* }
        $(added $($added:literal),+)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$about])* pub $field: $type,)*
        }

        impl $crate::record::table::Row for $name {
            const COLUMNS: &'static [$crate::record::table::Column<Self>] =
                &[$($crate::record::table::Column {
                    name: stringify!($field),
                    kind: <$type as $crate::record::table::Cell>::KIND,
                    get: |row| $crate::record::table::Cell::to_cell(&row.$field),
                    set: |row, bits| row.$field = $crate::record::table::Cell::from_cell(bits),
                }),*];
            const ADDED: &'static [&'static str] = &[$($($added),+)?];
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
}
