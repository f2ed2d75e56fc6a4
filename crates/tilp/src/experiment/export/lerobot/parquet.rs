//! Parquet files with the columns of a LeRobotDataset: numbers, text, and lists of them.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// The values of a column.
pub(super) enum Values {
    Whole(Vec<i64>),
    Single(Vec<f32>),
    Text(Vec<String>),
    /// A list of this many numbers in each row.
    Singles(usize, Vec<f32>),
    Wholes(usize, Vec<i64>),
    Reals(usize, Vec<f64>),
    /// A list of one text in each row.
    Texts(Vec<String>),
}

/// A column with its name.
pub(super) struct Column {
    pub name: String,
    pub values: Values,
}

impl Column {
    pub(super) fn new(name: impl Into<String>, values: Values) -> Self {
        Self { name: name.into(), values }
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, is_text) = match &self.values {
            Values::Whole(_) | Values::Wholes(..) => (Physical::INT64, false),
            Values::Single(_) | Values::Singles(..) => (Physical::FLOAT, false),
            Values::Reals(..) => (Physical::DOUBLE, false),
            Values::Text(_) | Values::Texts(_) => (Physical::BYTE_ARRAY, true),
        };
        let plain = |name: &str| {
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(is_text.then_some(LogicalType::String))
                .build()
                .map(Arc::new)
        };
        if matches!(self.values, Values::Whole(_) | Values::Single(_) | Values::Text(_)) {
            return plain(&self.name);
        }
        let list = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![plain("element")?])
            .build()?;
        let group = Type::group_type_builder(&self.name)
            .with_repetition(Repetition::REQUIRED)
            .with_converted_type(ConvertedType::LIST)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(list)]);
        Ok(Arc::new(group.build()?))
    }

    /// Writes these rows.
    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        rows: std::ops::Range<usize>,
    ) -> Result<(), ParquetError> {
        let text = |all: &[String]| -> Vec<ByteArray> {
            all[rows.clone()].iter().map(|text| ByteArray::from(text.as_str())).collect()
        };
        let lists = |width: usize| rows.start * width..rows.end * width;
        match &self.values {
            Values::Whole(all) => put::<Int64Type>(group, &all[rows], None),
            Values::Single(all) => put::<FloatType>(group, &all[rows], None),
            Values::Text(all) => put::<ByteArrayType>(group, &text(all), None),
            Values::Singles(width, all) => {
                put::<FloatType>(group, &all[lists(*width)], Some(*width))
            }
            Values::Wholes(width, all) => {
                put::<Int64Type>(group, &all[lists(*width)], Some(*width))
            }
            Values::Reals(width, all) => {
                put::<DoubleType>(group, &all[lists(*width)], Some(*width))
            }
            Values::Texts(all) => put::<ByteArrayType>(group, &text(all), Some(1)),
        }
    }
}

/// Writes one column of a group; with a width, as lists of that many values.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: &[T::T],
    width: Option<usize>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("more columns than the schema has".into());
    let mut writer = group.next_column()?.ok_or_else(missing)?;
    match width {
        None => writer.typed::<T>().write_batch(values, None, None)?,
        Some(width) => {
            // Every list has values, and a new one begins after `width` of them.
            let defined = vec![1; values.len()];
            let repeated: Vec<i16> = (0..values.len()).map(|n| i16::from(n % width != 0)).collect();
            writer.typed::<T>().write_batch(values, Some(&defined), Some(&repeated))?
        }
    };
    writer.close()
}

/// The bytes of a file with one group of rows for each length, and these notes.
pub(super) fn to_parquet(
    columns: &[Column],
    group_lengths: &[usize],
    notes: &[(&str, String)],
) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(Column::schema).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let notes = notes.iter().map(|(key, text)| KeyValue::new((*key).to_owned(), text.clone()));
    let notes: Vec<KeyValue> = notes.collect();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tilp version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata((!notes.is_empty()).then_some(notes))
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut start = 0;
    for length in group_lengths {
        let mut group = file.next_row_group()?;
        for column in columns {
            column.write(&mut group, start..start + length)?;
        }
        group.close()?;
        start += length;
    }
    file.close()?;
    Ok(bytes)
}
