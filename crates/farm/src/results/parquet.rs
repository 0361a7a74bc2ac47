//! Tables as Parquet files, one row group each, columns compressed with gzip.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// A column with its values.
pub struct ParquetColumn<'a> {
    pub name: &'a str,
    pub values: ParquetValues<'a>,
}

/// The values of a column, as many as the table has rows.
pub enum ParquetValues<'a> {
    Text(Vec<&'a str>),
    Number(Vec<i64>),
    /// Numbers, some of which are unknown.
    Known(Vec<Option<i64>>),
    /// Milliseconds since 1970 in UTC.
    Millis(Vec<i64>),
    /// Microseconds since 1970 in UTC, some of which are unknown. The format has nanoseconds, too,
    /// which Spark refuses to read.
    Micros(Vec<Option<i64>>),
}

impl ParquetColumn<'_> {
    fn schema(&self) -> parquet::errors::Result<Arc<Type>> {
        let timestamp = |unit| Some(LogicalType::timestamp(true, unit));
        let (physical, repetition, logical) = match &self.values {
            ParquetValues::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String)),
            ParquetValues::Number(_) => (Physical::INT64, Repetition::REQUIRED, None),
            ParquetValues::Known(_) => (Physical::INT64, Repetition::OPTIONAL, None),
            ParquetValues::Millis(_) => (Physical::INT64, Repetition::REQUIRED, timestamp(TimeUnit::MILLIS)),
            ParquetValues::Micros(_) => (Physical::INT64, Repetition::OPTIONAL, timestamp(TimeUnit::MICROS)),
        };
        let column = Type::primitive_type_builder(self.name, physical).with_repetition(repetition);
        column.with_logical_type(logical).build().map(Arc::new)
    }

    fn write(&self, to: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<usize> {
        match &self.values {
            ParquetValues::Text(all) => {
                let all: Vec<ByteArray> = all.iter().map(|text| ByteArray::from(*text)).collect();
                to.typed::<ByteArrayType>().write_batch(&all, None, None)
            }
            ParquetValues::Number(all) | ParquetValues::Millis(all) => {
                to.typed::<Int64Type>().write_batch(all, None, None)
            }
            ParquetValues::Known(all) | ParquetValues::Micros(all) => {
                let levels: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
                let known: Vec<i64> = all.iter().flatten().copied().collect();
                to.typed::<Int64Type>().write_batch(&known, Some(&levels), None)
            }
        }
    }
}

/// Writes a table; a column of another length than the first is refused.
pub fn write(to: impl Write + Send, columns: &[ParquetColumn<'_>]) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("onbeat-farm version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .build();
    let fields = columns.iter().map(ParquetColumn::schema).collect::<parquet::errors::Result<_>>()?;
    let schema = Type::group_type_builder("table").with_fields(fields).build()?;
    let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
    let mut rows = file.next_row_group()?;
    for column in columns {
        let mut one = rows.next_column()?.ok_or_else(|| io::Error::other("a column has no place"))?;
        column.write(&mut one)?;
        one.close()?;
    }
    rows.close()?;
    file.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn values_that_are_not_known_are_null_and_columns_are_of_one_length() {
        let column = |values| ParquetColumn { name: "x", values };
        let mut file = Vec::new();
        write(&mut file, &[column(ParquetValues::Known(vec![Some(1), None]))]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns().remove(0).1);
        assert_eq!(rows.collect::<Vec<_>>(), [Field::Long(1), Field::Null]);
        let uneven = [column(ParquetValues::Number(vec![1])), column(ParquetValues::Text(vec![]))];
        assert!(write(Vec::new(), &uneven).is_err());
    }
}
