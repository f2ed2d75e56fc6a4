//! `terminals.parquet` and `episodes.parquet`: rows, column by column.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::types::{Type, TypePtr};

use super::parquet_guard::{lies_inside, pages_are_known};
use super::table::{Column, Kind, Row, TASK_NAME, places, task_name};
use super::{EpisodeRow, RecordError, TerminalRow};

/// Rows of one group. The boundaries depend on nothing but the rows, so a resumed run writes the
/// same bytes.
const ROWS_PER_GROUP: usize = 1 << 16;

/// The bytes of `terminals.parquet`, with these names of tasks.
pub fn terminals_to_parquet(
    rows: &[TerminalRow],
    tasks: &[String],
) -> Result<Vec<u8>, RecordError> {
    to_parquet(rows, tasks, ROWS_PER_GROUP)
        .map_err(|e| RecordError::Encode { name: "terminals.parquet", reason: e.to_string() })
}

/// The rows of a `terminals.parquet`; `path` is named in the error.
pub fn terminals_from_parquet(file: File, path: &Path) -> Result<Vec<TerminalRow>, RecordError> {
    from_parquet(file)
        .map_err(|e| RecordError::Malformed { path: path.to_owned(), reason: e.to_string() })
}

/// The bytes of `episodes.parquet`, with these names of tasks.
pub fn episodes_to_parquet(rows: &[EpisodeRow], tasks: &[String]) -> Result<Vec<u8>, RecordError> {
    to_parquet(rows, tasks, ROWS_PER_GROUP)
        .map_err(|e| RecordError::Encode { name: "episodes.parquet", reason: e.to_string() })
}

/// The rows of an `episodes.parquet`; `path` is named in the error.
pub fn episodes_from_parquet(file: File, path: &Path) -> Result<Vec<EpisodeRow>, RecordError> {
    from_parquet(file)
        .map_err(|e| RecordError::Malformed { path: path.to_owned(), reason: e.to_string() })
}

fn to_parquet<R: Row>(
    rows: &[R],
    tasks: &[String],
    rows_per_group: usize,
) -> Result<Vec<u8>, ParquetError> {
    let writer_name = concat!("tilp version ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties = WriterProperties::builder().set_created_by(writer_name).build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema::<R>()?, Arc::new(properties))?;
    for group_rows in rows.chunks(rows_per_group) {
        let mut group = file.next_row_group()?;
        for column in R::COLUMNS {
            write_column(&mut group, column, group_rows)?;
        }
        if let Some(task) = R::TASK {
            let names = group_rows.iter().map(|row| ByteArray::from(task_name(tasks, task(row))));
            let names: Vec<ByteArray> = names.collect();
            let mut writer = next_column(&mut group, TASK_NAME)?;
            writer.typed::<ByteArrayType>().write_batch(&names, None, None)?;
            writer.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(bytes)
}

/// What keeps a file from being read as rows.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("truncated or corrupt, expected a whole Parquet file ({0})")]
    Parquet(#[from] ParquetError),
    #[error("no column `{0}`, expected the columns of this version: run the method again")]
    NoColumn(&'static str),
    #[error("column `{0}` is of another type or length than expected of this version")]
    OtherColumn(&'static str),
}

fn from_parquet<R: Row>(file: File) -> Result<Vec<R>, Unreadable> {
    let length = file.metadata().map_or(0, |about| about.len());
    let reader = SerializedFileReader::new(file)?;
    let columns = reader.metadata().file_metadata().schema_descr().columns();
    let names: Vec<&str> = columns.iter().map(|found| found.name()).collect();
    let places = places::<R>(&names).map_err(Unreadable::NoColumn)?;
    let mut rows: Vec<R> = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let (first, n_rows) = (rows.len(), group.metadata().num_rows().max(0) as usize);
        for (column, place) in R::COLUMNS.iter().zip(&places) {
            let Some(place) = *place else { continue };
            if !lies_inside(group.metadata().column(place), length) {
                return Err(Unreadable::OtherColumn(column.name));
            }
            if !pages_are_known(group.get_column_page_reader(place)?)? {
                return Err(Unreadable::OtherColumn(column.name));
            }
            let cells = read_column(group.get_column_reader(place)?, column, n_rows)?;
            // How many rows there are is what was read of the first column, not a promise.
            if rows.len() == first {
                rows.extend(cells.iter().map(|_| R::default()));
            }
            if cells.len() != rows.len() - first || cells.len() != n_rows {
                return Err(Unreadable::OtherColumn(column.name));
            }
            rows[first..].iter_mut().zip(cells).for_each(|(row, bits)| (column.set)(row, bits));
        }
    }
    Ok(rows)
}

/// The cells of a column as bits.
fn read_column<R: Row>(
    reader: ColumnReader,
    column: &Column<R>,
    n_rows: usize,
) -> Result<Vec<u64>, Unreadable> {
    match (column.kind, reader) {
        (Kind::Count, ColumnReader::Int64ColumnReader(mut reader)) => {
            let mut values = Vec::new();
            reader.read_records(n_rows, None, None, &mut values)?;
            Ok(values.into_iter().map(|value| value as u64).collect())
        }
        (Kind::Number | Kind::Optional, ColumnReader::DoubleColumnReader(mut reader)) => {
            let mut values = Vec::new();
            reader.read_records(n_rows, None, None, &mut values)?;
            Ok(values.into_iter().map(f64::to_bits).collect())
        }
        (Kind::Flag, ColumnReader::BoolColumnReader(mut reader)) => {
            let mut values = Vec::new();
            reader.read_records(n_rows, None, None, &mut values)?;
            Ok(values.into_iter().map(u64::from).collect())
        }
        (Kind::Word(words), ColumnReader::ByteArrayColumnReader(mut reader)) => {
            let mut values = Vec::new();
            reader.read_records(n_rows, None, None, &mut values)?;
            let place = |value: &ByteArray| {
                let found = words.iter().position(|word| word.as_bytes() == value.data());
                found.map(|at| at as u64).ok_or(Unreadable::OtherColumn(column.name))
            };
            values.iter().map(place).collect()
        }
        _ => Err(Unreadable::OtherColumn(column.name)),
    }
}

fn schema<R: Row>() -> Result<TypePtr, ParquetError> {
    let field = |(name, kind): (&str, Kind)| {
        let physical = match kind {
            Kind::Count => Physical::INT64,
            Kind::Number | Kind::Optional => Physical::DOUBLE,
            Kind::Flag => Physical::BOOLEAN,
            Kind::Word(_) => Physical::BYTE_ARRAY,
        };
        let is_text = matches!(kind, Kind::Word(_));
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(is_text.then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let columns = R::COLUMNS.iter().map(|column| (column.name, column.kind));
    let columns = columns.chain(R::TASK.map(|_| (TASK_NAME, Kind::Word(&[]))));
    let fields = columns.map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("row").with_fields(fields).build()?))
}

fn next_column<'a>(
    group: &'a mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    name: &str,
) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    let missing = || ParquetError::General(format!("no column for {name}"));
    group.next_column()?.ok_or_else(missing)
}

fn write_column<R: Row>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    column: &Column<R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    let mut writer = next_column(group, column.name)?;
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
        Kind::Word(words) => {
            let word = |at: u64| ByteArray::from(words.get(at as usize).copied().unwrap_or(""));
            let values: Vec<_> = cells.map(word).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
    }
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{Scratch, history};

    fn written(scratch: &Scratch, bytes: &[u8]) -> (File, std::path::PathBuf) {
        let path = scratch.path().join("t.parquet");
        std::fs::write(&path, bytes).unwrap();
        (File::open(&path).unwrap(), path)
    }

    fn read(name: &str, bytes: &[u8]) -> (usize, Vec<TerminalRow>) {
        let scratch = Scratch::new(name);
        let (file, path) = written(&scratch, bytes);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        (reader.num_row_groups(), terminals_from_parquet(file, &path).unwrap())
    }

    fn tasks() -> Vec<String> {
        ["push", "reach"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_last_column_has_the_names_of_the_tasks() {
        let scratch = Scratch::new("names");
        let rows = history(2).terminals;
        let (file, _) = written(&scratch, &terminals_to_parquet(&rows, &tasks()).unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
        assert_eq!(columns.last().unwrap().name(), "task_name");
        let group = reader.get_row_group(0).unwrap();
        let Ok(ColumnReader::ByteArrayColumnReader(mut names)) =
            group.get_column_reader(columns.len() - 1)
        else {
            panic!("the names are text");
        };
        let mut found = Vec::new();
        names.read_records(rows.len(), None, None, &mut found).unwrap();
        let named = |row: &TerminalRow| tasks()[row.task as usize].clone();
        let found: Vec<String> =
            found.iter().map(|name| String::from_utf8(name.data().to_vec()).unwrap()).collect();
        assert_eq!(found, rows.iter().map(named).collect::<Vec<_>>());
    }

    #[test]
    fn a_truncated_file_is_refused_in_one_line() {
        let scratch = Scratch::new("truncated");
        let bytes = terminals_to_parquet(&history(20).terminals, &tasks()).unwrap();
        for length in [0, 3, 4, 11, 12, bytes.len() / 2, bytes.len() - 5, bytes.len() - 1] {
            let (file, path) = written(&scratch, &bytes[..length]);
            let error = terminals_from_parquet(file, &path).unwrap_err().to_string();
            assert!(error.contains("t.parquet: truncated or corrupt"), "{length}: {error}");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_never_panics() {
        let scratch = Scratch::new("flipped");
        let bytes = terminals_to_parquet(&history(3).terminals, &tasks()).unwrap();
        // A stride that comes by every bit of a byte.
        for bit in (0..8 * bytes.len()).step_by(61) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (file, path) = written(&scratch, &flipped);
            let _ = terminals_from_parquet(file, &path);
        }
    }

    #[test]
    fn episodes_come_back_and_a_flipped_bit_never_panics() {
        let scratch = Scratch::new("episodes");
        let rows = history(9).episodes;
        let bytes = episodes_to_parquet(&rows, &tasks()).unwrap();
        let (file, path) = written(&scratch, &bytes);
        assert_eq!(episodes_from_parquet(file, &path).unwrap(), rows);
        for bit in (0..8 * bytes.len()).step_by(7) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (file, path) = written(&scratch, &flipped);
            let _ = episodes_from_parquet(file, &path);
        }
    }

    #[test]
    fn a_missing_column_is_named() {
        let scratch = Scratch::new("columns");
        let bytes = to_parquet(&history(4).rounds, &[], 100).unwrap();
        let (file, path) = written(&scratch, &bytes);
        let error = terminals_from_parquet(file, &path).unwrap_err().to_string();
        assert!(error.contains("no column `terminal`, expected"), "{error}");
    }

    #[test]
    fn the_rows_come_back_from_the_file() {
        let rows = history(20).terminals;
        let (n_groups, found) = read("parquet", &terminals_to_parquet(&rows, &tasks()).unwrap());
        assert_eq!(n_groups, 1);
        assert_eq!(format!("{found:?}"), format!("{rows:?}"));
    }

    #[test]
    fn many_rows_fall_into_groups_of_fixed_size() {
        let rows = history(20).terminals;
        let (n_groups, found) = read("groups", &to_parquet(&rows, &tasks(), 7).unwrap());
        assert_eq!(n_groups, 60usize.div_ceil(7));
        assert_eq!(format!("{found:?}"), format!("{rows:?}"));
    }

    #[test]
    fn the_same_rows_give_the_same_bytes() {
        let bytes = || terminals_to_parquet(&history(50).terminals, &tasks()).unwrap();
        assert_eq!(bytes(), bytes());
        assert_eq!(read("empty", &terminals_to_parquet(&[], &[]).unwrap()).1, []);
    }
}
