//! Tables as Parquet files.
//!
//! What one table of texts and numbers takes of the format, and no more (apache/parquet-format,
//! `README.md`, `Encodings.md`, `parquet.thrift`): one row group, a gzipped page of plain values
//! for each column, the description at the end in Thrift's compact protocol
//! (apache/thrift, `doc/specs/thrift-compact-protocol.md`).

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::encoding::{varint, zigzag};

const MAGIC: &[u8; 4] = b"PAR1";
/// `Type`, `Encoding`, `CompressionCodec` and `PageType` of the format.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const GZIP: i64 = 2;
const DATA_PAGE: i64 = 0;

/// A column with its values.
pub struct ParquetColumn<'a> {
    pub name: &'a str,
    pub values: ParquetValues<'a>,
}

/// The values of a column, as many as the table has rows.
pub enum ParquetValues<'a> {
    Text(Vec<&'a str>),
    Number(Vec<i64>),
    /// Numbers, some of which are not known.
    Known(Vec<Option<i64>>),
    /// Milliseconds since 1970 in UTC.
    Millis(Vec<i64>),
    /// Microseconds since 1970 in UTC, some of which are not known. The format has nanoseconds,
    /// too, which Spark refuses to read.
    Micros(Vec<Option<i64>>),
}

impl ParquetValues<'_> {
    fn rows(&self) -> usize {
        match self {
            ParquetValues::Text(all) => all.len(),
            ParquetValues::Number(all) | ParquetValues::Millis(all) => all.len(),
            ParquetValues::Known(all) | ParquetValues::Micros(all) => all.len(),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, ParquetValues::Text(_))
    }

    fn is_optional(&self) -> bool {
        matches!(self, ParquetValues::Known(_) | ParquetValues::Micros(_))
    }

    /// A page: which rows have a value, where some have none, then the values.
    fn page(&self) -> Vec<u8> {
        let mut page = Vec::new();
        match self {
            ParquetValues::Text(all) => {
                for text in all {
                    page.extend((text.len() as u32).to_le_bytes());
                    page.extend(text.as_bytes());
                }
            }
            ParquetValues::Number(all) | ParquetValues::Millis(all) => {
                all.iter().for_each(|value| page.extend(value.to_le_bytes()));
            }
            ParquetValues::Known(all) | ParquetValues::Micros(all) => {
                let levels = levels(all);
                page.extend((levels.len() as u32).to_le_bytes());
                page.extend(levels);
                all.iter().flatten().for_each(|value| page.extend(value.to_le_bytes()));
            }
        }
        page
    }
}

/// Runs of rows with a value, and without.
fn levels(all: &[Option<i64>]) -> Vec<u8> {
    let mut text = Vec::new();
    for run in all.chunk_by(|a, b| a.is_some() == b.is_some()) {
        varint(&mut text, (run.len() as u64) << 1);
        text.push(u8::from(run[0].is_some()));
    }
    text
}

/// Writes a table; a column of another length than the first is refused.
pub fn write(to: &mut impl Write, columns: &[ParquetColumn<'_>]) -> io::Result<()> {
    let rows = columns.first().map_or(0, |column| column.values.rows());
    if columns.iter().any(|column| column.values.rows() != rows) {
        return Err(io::Error::other("the columns have different lengths"));
    }
    to.write_all(MAGIC)?;
    let mut at = MAGIC.len() as i64;
    let mut chunks = Vec::new();
    for column in columns {
        let plain = column.values.page();
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(&plain)?;
        let packed = packer.finish()?;
        let head = page_head(rows, plain.len(), packed.len());
        to.write_all(&head)?;
        to.write_all(&packed)?;
        let chunk = Chunk {
            at,
            packed: (head.len() + packed.len()) as i64,
            plain: (head.len() + plain.len()) as i64,
        };
        at += chunk.packed;
        chunks.push(chunk);
    }
    let end = description(columns, &chunks, rows);
    to.write_all(&end)?;
    to.write_all(&(end.len() as u32).to_le_bytes())?;
    to.write_all(MAGIC)
}

/// Where a column lies, with the heads of its pages.
struct Chunk {
    at: i64,
    packed: i64,
    plain: i64,
}

fn page_head(rows: usize, plain: usize, packed: usize) -> Vec<u8> {
    let mut head = ThriftStruct::default();
    head.i32(1, DATA_PAGE);
    head.i32(2, plain as i64);
    head.i32(3, packed as i64);
    let mut data = ThriftStruct::default();
    data.i32(1, rows as i64);
    data.i32(2, PLAIN);
    data.i32(3, RLE);
    data.i32(4, RLE);
    head.inner(5, data);
    head.end()
}

fn description(columns: &[ParquetColumn<'_>], chunks: &[Chunk], rows: usize) -> Vec<u8> {
    let mut root = ThriftStruct::default();
    root.text(4, "table");
    root.i32(5, columns.len() as i64);
    let elements = std::iter::once(root.end()).chain(columns.iter().map(element)).collect();
    let mut group = ThriftStruct::default();
    group.structs(1, columns.iter().zip(chunks).map(|(column, chunk)| column_chunk(column, chunk)).collect());
    group.i64(2, chunks.iter().map(|chunk| chunk.plain).sum());
    group.i64(3, rows as i64);
    let mut file = ThriftStruct::default();
    file.i32(1, 1);
    file.structs(2, elements);
    file.i64(3, rows as i64);
    file.structs(4, vec![group.end()]);
    file.text(6, concat!("onbeat-farm version ", env!("CARGO_PKG_VERSION")));
    file.end()
}

/// A column in the schema.
fn element(column: &ParquetColumn<'_>) -> Vec<u8> {
    let values = &column.values;
    let mut element = ThriftStruct::default();
    element.i32(1, kind(values));
    element.i32(3, i64::from(values.is_optional()));
    element.text(4, column.name);
    // ConvertedType, for readers that do not know LogicalType: UTF8, TIMESTAMP_MILLIS,
    // TIMESTAMP_MICROS.
    match values {
        ParquetValues::Text(_) => element.i32(6, 0),
        ParquetValues::Millis(_) => element.i32(6, 9),
        ParquetValues::Micros(_) => element.i32(6, 10),
        _ => {}
    }
    let mut logical = ThriftStruct::default();
    match values {
        ParquetValues::Text(_) => logical.inner(1, ThriftStruct::default()),
        ParquetValues::Millis(_) => logical.inner(8, timestamp(1)),
        ParquetValues::Micros(_) => logical.inner(8, timestamp(2)),
        _ => return element.end(),
    }
    element.inner(10, logical);
    element.end()
}

/// A time in UTC, in a unit of the format: 1 milliseconds, 2 microseconds.
fn timestamp(unit: u8) -> ThriftStruct {
    let mut of = ThriftStruct::default();
    of.inner(unit, ThriftStruct::default());
    let mut time = ThriftStruct::default();
    time.is_so(1);
    time.inner(2, of);
    time
}

fn kind(values: &ParquetValues<'_>) -> i64 {
    if values.is_text() { BYTE_ARRAY } else { INT64 }
}

fn column_chunk(column: &ParquetColumn<'_>, chunk: &Chunk) -> Vec<u8> {
    let mut meta = ThriftStruct::default();
    meta.i32(1, kind(&column.values));
    meta.numbers(2, &[PLAIN, RLE]);
    meta.texts(3, &[column.name]);
    meta.i32(4, GZIP);
    meta.i64(5, column.values.rows() as i64);
    meta.i64(6, chunk.plain);
    meta.i64(7, chunk.packed);
    meta.i64(9, chunk.at);
    let mut all = ThriftStruct::default();
    all.i64(2, chunk.at);
    all.inner(3, meta);
    all.end()
}

/// A struct in Thrift's compact protocol, its fields in the order of their numbers.
#[derive(Default)]
struct ThriftStruct {
    bytes: Vec<u8>,
    last: u8,
}

const TRUE: u8 = 1;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl ThriftStruct {
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn i32(&mut self, number: u8, value: i64) {
        self.field(number, I32);
        varint(&mut self.bytes, zigzag(value));
    }

    fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        varint(&mut self.bytes, zigzag(value));
    }

    fn is_so(&mut self, number: u8) {
        self.field(number, TRUE);
    }

    fn text(&mut self, number: u8, value: &str) {
        self.field(number, BINARY);
        binary(&mut self.bytes, value);
    }

    fn inner(&mut self, number: u8, value: ThriftStruct) {
        self.field(number, STRUCT);
        self.bytes.extend(value.end());
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        match length {
            0..15 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, length as u64);
            }
        }
    }

    fn structs(&mut self, number: u8, all: Vec<Vec<u8>>) {
        self.list(number, STRUCT, all.len());
        all.into_iter().for_each(|one| self.bytes.extend(one));
    }

    fn numbers(&mut self, number: u8, all: &[i64]) {
        self.list(number, I32, all.len());
        all.iter().for_each(|one| varint(&mut self.bytes, zigzag(*one)));
    }

    fn texts(&mut self, number: u8, all: &[&str]) {
        self.list(number, BINARY, all.len());
        all.iter().for_each(|one| binary(&mut self.bytes, one));
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(to: &mut Vec<u8>, text: &str) {
    varint(to, text.len() as u64);
    to.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_with_its_description_and_columns_are_of_one_length() {
        let column = |values| ParquetColumn { name: "x", values };
        let mut file = Vec::new();
        write(&mut file, &[column(ParquetValues::Known(vec![Some(1), None]))]).unwrap();
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
        let length = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
        // FileMetaData begins with its version, 1.
        assert_eq!(file[file.len() - 8 - length..][..2], [0x15, 2]);
        let uneven = [column(ParquetValues::Number(vec![1])), column(ParquetValues::Text(vec![]))];
        assert!(write(&mut Vec::new(), &uneven).is_err());
    }

    #[test]
    fn numbers_and_levels_are_packed_as_the_formats_say() {
        let of = |value| {
            let mut bytes = Vec::new();
            varint(&mut bytes, value);
            bytes
        };
        assert_eq!((of(0), of(127), of(300)), (vec![0], vec![127], vec![0xac, 2]));
        assert_eq!((zigzag(0), zigzag(-1), zigzag(1), zigzag(i64::MIN)), (0, 1, 2, u64::MAX));
        assert_eq!(levels(&[Some(1), Some(2), None]), [4, 1, 2, 0]);
    }
}
