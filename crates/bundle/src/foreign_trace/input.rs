//! File of a trace, read at any place: parts of it, and its numbers and texts in order.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::TraceError;
use trace::byte_order::ByteOrder;

/// A plain file.
pub struct TraceInput {
    file: File,
    pub length: u64,
}

impl TraceInput {
    /// Opens a plain file that the user named; it is read more than once, so a pipe is refused.
    pub fn open(path: &Path) -> Result<TraceInput, TraceError> {
        let file = host::open_input(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(TraceError::new(
                "invalid trace: expected a plain file, because it is read twice; save it to one",
            ));
        }
        Ok(TraceInput { file, length: found.len() })
    }

    /// Reads up to the buffer's length from an offset on; returns the number of bytes read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.file.read_at(&mut into[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Reads that many bytes from an offset on; fewer are an error.
    pub fn bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>, TraceError> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(TraceError::cut());
        }
        let mut bytes = vec![0; length];
        match self.read_at(offset, &mut bytes)? {
            read if read == length => Ok(bytes),
            _ => Err(TraceError::cut()),
        }
    }

    /// Reader of the bytes from an offset on.
    pub fn from(&self, offset: u64) -> impl Read + '_ {
        BufReader::with_capacity(64 << 10, FromPlace { input: self, offset })
    }
}

struct FromPlace<'a> {
    input: &'a TraceInput,
    offset: u64,
}

impl Read for FromPlace<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read_at(self.offset, into)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Reader of numbers and texts in order.
pub struct TraceValues<R> {
    pub reader: R,
    pub order: ByteOrder,
}

impl<R: Read> TraceValues<R> {
    pub fn exact<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(TraceError::of_read)?;
        Ok(bytes)
    }

    pub fn u8(&mut self) -> Result<u8, TraceError> {
        Ok(self.exact::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, TraceError> {
        Ok(self.order.u16(&self.exact::<2>()?, 0).unwrap_or_default())
    }

    pub fn u32(&mut self) -> Result<u32, TraceError> {
        Ok(self.order.u32(&self.exact::<4>()?, 0).unwrap_or_default())
    }

    pub fn u64(&mut self) -> Result<u64, TraceError> {
        Ok(self.order.u64(&self.exact::<8>()?, 0).unwrap_or_default())
    }

    /// Reads a text up to its zero; a longer one than the limit is an error.
    pub fn text(&mut self, limit: usize) -> Result<String, TraceError> {
        let mut bytes = Vec::new();
        loop {
            match self.u8()? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                _ if bytes.len() == limit => return Err(TraceError::corrupt("a text without an end")),
                byte => bytes.push(byte),
            }
        }
    }

    /// Reads that many bytes; more than the limit is an error.
    pub fn bytes(&mut self, length: u64, limit: u64) -> Result<Vec<u8>, TraceError> {
        if length > limit {
            return Err(TraceError::corrupt("a part that is larger than any kernel's"));
        }
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(length).read_to_end(&mut bytes).map_err(TraceError::of_read)?;
        if read as u64 == length { Ok(bytes) } else { Err(TraceError::cut()) }
    }

    /// Skips that many bytes.
    pub fn skip(&mut self, length: u64) -> Result<(), TraceError> {
        let passed =
            io::copy(&mut self.reader.by_ref().take(length), &mut io::sink()).map_err(TraceError::of_read)?;
        if passed == length { Ok(()) } else { Err(TraceError::cut()) }
    }
}
