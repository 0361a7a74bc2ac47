//! Lines of a text from any offset on, with their offsets.

use std::io::{self, BufRead, BufReader, Read};

use super::input::TraceInput;

/// Maximum length of an event's line; the rest of a longer one is skipped.
const LINE_LIMIT: usize = 16 << 10;

/// Reads lines, one after the other, into one buffer.
pub struct TextLines<'a> {
    reader: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    /// Offset of the next line.
    pub place: u64,
}

impl<'a> TextLines<'a> {
    pub fn from(input: &'a TraceInput, place: u64) -> TextLines<'a> {
        let reader: Box<dyn Read + 'a> = Box::new(input.from(place));
        TextLines { reader: BufReader::with_capacity(64 << 10, reader), line: Vec::new(), place }
    }

    /// Reads the next line without its end, if there is one. Invalid UTF-8 is replaced.
    pub fn next_line(&mut self) -> io::Result<Option<std::borrow::Cow<'_, str>>> {
        self.line.clear();
        let read = self.reader.by_ref().take(LINE_LIMIT as u64).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.place += read as u64;
        if read == LINE_LIMIT && self.line.last() != Some(&b'\n') {
            self.place += self.reader.skip_until(b'\n')? as u64;
        }
        let end = self.line.trim_ascii_end().len();
        Ok(Some(String::from_utf8_lossy(&self.line[..end])))
    }
}
