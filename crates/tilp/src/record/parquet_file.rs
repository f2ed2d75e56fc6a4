//! `terminals.parquet`: one row a terminal and round, column by column.

use std::sync::Arc;

use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{BoolType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::table::{Column, Kind, Row};
use super::{RecordError, TerminalRow};

/// Rows of one group. The boundaries depend on nothing but the rows, so a resumed run writes the
/// same bytes.
const ROWS_PER_GROUP: usize = 1 << 16;

/// The bytes of `terminals.parquet`.
pub fn terminals_to_parquet(rows: &[TerminalRow]) -> Result<Vec<u8>, RecordError> {
    to_parquet(rows, ROWS_PER_GROUP)
        .map_err(|e| RecordError::Encode { name: "terminals.parquet", reason: e.to_string() })
}

fn to_parquet<R: Row>(rows: &[R], rows_per_group: usize) -> Result<Vec<u8>, ParquetError> {
    let writer_name = concat!("tilp version ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties = WriterProperties::builder().set_created_by(writer_name).build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema::<R>()?, Arc::new(properties))?;
    for group_rows in rows.chunks(rows_per_group) {
        let mut group = file.next_row_group()?;
        for column in R::COLUMNS {
            write_column(&mut group, column, group_rows)?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(bytes)
}

fn schema<R: Row>() -> Result<TypePtr, ParquetError> {
    let field = |column: &Column<R>| {
        let physical = match column.kind {
            Kind::Count => Physical::INT64,
            Kind::Number | Kind::Optional => Physical::DOUBLE,
            Kind::Flag => Physical::BOOLEAN,
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .build()
            .map(Arc::new)
    };
    let fields = R::COLUMNS.iter().map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("row").with_fields(fields).build()?))
}

fn write_column<R: Row>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    column: &Column<R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(format!("no column for {}", column.name)));
    };
    let cells = rows.iter().map(column.get);
    match column.kind {
        Kind::Count => {
            let values: Vec<_> = cells.map(|n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
            writer.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Kind::Number | Kind::Optional => {
            let values: Vec<_> = cells.map(f64::from_bits).collect();
            writer.typed::<DoubleType>().write_batch(&values, None, None)?;
        }
        Kind::Flag => {
            let values: Vec<_> = cells.map(|bit| bit != 0).collect();
            writer.typed::<BoolType>().write_batch(&values, None, None)?;
        }
    }
    writer.close()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::record::fixture::{Scratch, history};

    fn cell(field: &Field) -> u64 {
        match field {
            Field::Long(value) => *value as u64,
            Field::Double(value) => value.to_bits(),
            Field::Bool(value) => u64::from(*value),
            other => panic!("unexpected field {other:?}"),
        }
    }

    fn read(name: &str, bytes: &[u8]) -> (usize, Vec<TerminalRow>) {
        let scratch = Scratch::new(name);
        let path = scratch.path().join("t.parquet");
        std::fs::write(&path, bytes).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let to_row = |found: parquet::record::Row| {
            let mut row = TerminalRow::default();
            for (column, (name, field)) in TerminalRow::COLUMNS.iter().zip(found.get_column_iter())
            {
                assert_eq!(column.name, name);
                (column.set)(&mut row, cell(field));
            }
            row
        };
        let rows = reader.get_row_iter(None).unwrap().map(|row| to_row(row.unwrap())).collect();
        (reader.num_row_groups(), rows)
    }

    #[test]
    fn the_rows_come_back_from_the_file() {
        let rows = history(20).terminals;
        let (n_groups, found) = read("parquet", &terminals_to_parquet(&rows).unwrap());
        assert_eq!(n_groups, 1);
        assert_eq!(format!("{found:?}"), format!("{rows:?}"));
    }

    #[test]
    fn many_rows_fall_into_groups_of_fixed_size() {
        let rows = history(20).terminals;
        let (n_groups, found) = read("groups", &to_parquet(&rows, 7).unwrap());
        assert_eq!(n_groups, 60usize.div_ceil(7));
        assert_eq!(format!("{found:?}"), format!("{rows:?}"));
    }

    #[test]
    fn the_same_rows_give_the_same_bytes() {
        let bytes = || terminals_to_parquet(&history(50).terminals).unwrap();
        assert_eq!(bytes(), bytes());
        assert_eq!(read("empty", &terminals_to_parquet(&[]).unwrap()).1, []);
    }
}
