//! Files of lines that only grow, section by section: each ends with a line that counts its lines
//! and has their checksum. The worst wake-ups are packed, each section in a separate gzip member
//! (RFC 1952 allows several in a file).

use std::io::{self, BufRead, BufReader, Read, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use host::RecordDisk;
use serde::{Deserialize, Serialize};

/// Size of a read or write with one system call.
const AT_ONCE: usize = 64 << 10;

/// Maximum length of a line: an interval of 4,096 CPUs.
pub const LINE_LIMIT: u64 = 16 << 20;

/// Last line of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EndLine {
    end: SectionEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SectionEnd {
    lines: u64,
    /// Checksum of all lines before it in its section, with their newlines.
    crc32: u32,
}

enum Target {
    Plain(Vec<u8>),
    // Boxed, because its tables are large.
    Packed(Box<GzEncoder<Vec<u8>>>),
}

/// Adds a section to a file.
pub struct SectionWriter<'a, D> {
    disk: &'a D,
    name: &'a str,
    to: Target,
    crc: Crc,
    lines: u64,
    written: u64,
}

impl<'a, D: RecordDisk> SectionWriter<'a, D> {
    /// Writer of a section at the end of that file.
    pub fn new(disk: &'a D, name: &'a str, packed: bool) -> SectionWriter<'a, D> {
        let to = if packed {
            Target::Packed(Box::new(GzEncoder::new(Vec::new(), Compression::default())))
        } else {
            Target::Plain(Vec::new())
        };
        SectionWriter { disk, name, to, crc: Crc::new(), lines: 0, written: 0 }
    }

    /// Adds a line without a newline.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.crc.update(line);
        self.crc.update(b"\n");
        self.lines += 1;
        self.put(line)
    }

    /// Adds a line of JSON.
    pub fn json(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line(&serde_json::to_vec(line)?)
    }

    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        let waiting = match &mut self.to {
            Target::Plain(bytes) => {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
                bytes
            }
            Target::Packed(encoder) => {
                encoder.write_all(line)?;
                encoder.write_all(b"\n")?;
                encoder.get_mut()
            }
        };
        if waiting.len() >= AT_ONCE {
            self.disk.append(self.name, waiting)?;
            self.written += waiting.len() as u64;
            waiting.clear();
        }
        Ok(())
    }

    /// Ends the section and flushes the file; returns the number of added bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        let end = EndLine { end: SectionEnd { lines: self.lines, crc32: self.crc.sum() } };
        self.put(&serde_json::to_vec(&end)?)?;
        let rest = match self.to {
            Target::Plain(bytes) => bytes,
            Target::Packed(encoder) => encoder.finish()?,
        };
        self.disk.append(self.name, &rest)?;
        self.disk.sync(self.name)?;
        Ok(self.written + rest.len() as u64)
    }
}

/// A stretch of a file.
pub struct DiskFile<'a, D> {
    disk: &'a D,
    name: &'a str,
    at: u64,
    end: u64,
}

impl<'a, D: RecordDisk> DiskFile<'a, D> {
    /// Stretch between two offsets of a file of any length.
    pub fn new(disk: &'a D, name: &'a str, from: u64, to: u64) -> DiskFile<'a, D> {
        DiskFile { disk, name, at: from, end: to.max(from) }
    }
}

impl<D: RecordDisk> Read for DiskFile<'_, D> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = into.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let read = self.disk.read_at(self.name, self.at, &mut into[..room])?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Lines of a file, read one at a time into one buffer.
pub struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Offset at which the line began.
    pub from: u64,
    /// Offset at which the line ended.
    pub to: u64,
}

impl<R: Read> LineReader<R> {
    pub fn new(reader: R) -> LineReader<R> {
        LineReader { reader: BufReader::with_capacity(AT_ONCE, reader), line: Vec::new(), from: 0, to: 0 }
    }

    /// Reads the next line with its newline; without one it is cut, or too long.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let read = self.reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.line)?;
        (self.from, self.to) = (self.to, self.to + read as u64);
        Ok((read > 0).then_some(self.line.as_slice()))
    }
}

/// Next item in a file of sections.
#[derive(Debug, PartialEq, Eq)]
pub enum SectionLine<'a> {
    /// A line, without its newline.
    Line(&'a [u8]),
    /// End of a section whose lines are unchanged.
    Intact,
    /// End of a section with a missing or changed line.
    Changed,
    /// End of the file within a section.
    Cut,
}

/// Reads sections line by line.
pub struct SectionReader<'a> {
    lines: LineReader<Box<dyn Read + 'a>>,
    crc: Crc,
    count: u64,
    ended: bool,
}

impl<'a> SectionReader<'a> {
    /// Reader of a file that may be packed.
    pub fn new(file: impl Read + 'a, packed: bool) -> SectionReader<'a> {
        let file: Box<dyn Read + 'a> = if packed {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(AT_ONCE, file)))
        } else {
            Box::new(file)
        };
        SectionReader { lines: LineReader::new(file), crc: Crc::new(), count: 0, ended: false }
    }

    /// Number of bytes in the lines read so far.
    pub fn read(&self) -> u64 {
        self.lines.to
    }

    /// Reads the next line or end; `None` at the end of the file.
    pub fn next_line(&mut self) -> io::Result<Option<SectionLine<'_>>> {
        if self.ended {
            return Ok(None);
        }
        let line = match self.lines.next_line() {
            Ok(line) => line,
            // Invalid gzip data end the file: the rest cannot be distinguished from chance.
            Err(error) if error.raw_os_error().is_none() && error.kind() != io::ErrorKind::NotFound => {
                self.ended = true;
                return Ok(Some(SectionLine::Cut));
            }
            Err(error) => return Err(error),
        };
        let Some(line) = line.and_then(|line| line.strip_suffix(b"\n")) else {
            self.ended = true;
            return Ok((self.count > 0 || line.is_some()).then_some(SectionLine::Cut));
        };
        if line.starts_with(b"{\"end\":") {
            let found = SectionEnd { lines: self.count, crc32: self.crc.sum() };
            (self.crc, self.count) = (Crc::new(), 0);
            let intact = serde_json::from_slice::<EndLine>(line).is_ok_and(|line| line.end == found);
            return Ok(Some(if intact { SectionLine::Intact } else { SectionLine::Changed }));
        }
        self.crc.update(line);
        self.crc.update(b"\n");
        self.count += 1;
        Ok(Some(SectionLine::Line(line)))
    }
}

/// Checksum of a block of bytes.
pub fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
