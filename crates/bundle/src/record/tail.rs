//! Open end of a record: intervals as blocks of lines, each flushed at once and ended by its
//! checksum. Lines that a kill left after the last such end were never recorded.
//!
//! A block is `begin` with the values for its lines, `environment` if that is new, `worst`, a line
//! per series, and `end`. The lines are those of the closed files, so that closing copies them.

use std::io;

use host::RecordDisk;
use model::record::RecordTime;
use model::units::Nanos;
use model::watch::{WatchEnvironment, WatchInterval, WatchRun};
use serde::{Deserialize, Serialize};

use super::lines::{EnvironmentLine, LineSpan, RowsLine, WorstLine};
use super::sections::{DiskFile, LINE_LIMIT, LineReader, checksum};

/// Values for all lines of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockHead {
    pub run: WatchRun,
    pub seq: u64,
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    pub wall_ns: Nanos,
    pub env: String,
}

impl BlockHead {
    /// Start of the block.
    pub fn time(&self) -> RecordTime {
        RecordTime {
            boot: self.run.boot.clone(),
            seq: self.seq,
            mono_ns: self.mono_ns,
            wall_ns: self.wall_ns,
        }
    }
}

/// Writes an interval as a block. The environment is separate: each tail states it again.
pub fn encode(
    to: &mut Vec<u8>,
    run: &WatchRun,
    interval: &WatchInterval,
    seq: u64,
    unwritten: u64,
    environment: Option<&WatchEnvironment>,
) -> io::Result<()> {
    let head = BlockHead {
        run: run.clone(),
        seq,
        mono_ns: interval.mono_ns,
        span_ns: interval.span_ns,
        wall_ns: interval.wall_ns,
        env: interval.env.clone(),
    };
    let from = to.len();
    tagged(to, "begin", &head)?;
    if let Some(environment) = environment {
        tagged(to, "environment", &EnvironmentLine { environment: environment.clone() })?;
    }
    tagged(to, "worst", &WorstLine::of(interval, seq, unwritten))?;
    for rows in &interval.series {
        let at = LineSpan::of(interval, seq);
        let line = RowsLine { at, cpus: rows.cpus.clone(), threads: rows.threads.clone() };
        tagged(to, rows.series.name(), &line)?;
    }
    let sum = checksum(&to[from..]);
    to.extend_from_slice(format!("end {sum:08x}\n").as_bytes());
    Ok(())
}

fn tagged(to: &mut Vec<u8>, tag: &str, line: &impl Serialize) -> io::Result<()> {
    to.extend_from_slice(tag.as_bytes());
    to.push(b' ');
    serde_json::to_writer(&mut *to, line)?;
    to.push(b'\n');
    Ok(())
}

/// A block that is unchanged.
pub struct TailBlock<'a> {
    pub head: BlockHead,
    bytes: &'a [u8],
}

impl<'a> TailBlock<'a> {
    /// Lines of the block, each with its tag: `environment`, `worst` or a series.
    pub fn lines(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.bytes.split(|byte| *byte == b'\n').filter_map(split).skip(1)
    }
}

/// Splits a line into its tag and the rest.
fn split(line: &[u8]) -> Option<(&str, &[u8])> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    Some((std::str::from_utf8(&line[..at]).ok()?, &line[at + 1..]))
}

/// Contents of a tail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TailContents {
    pub blocks: u64,
    /// Number of changed blocks before the last unchanged one.
    pub damaged: u64,
    /// End of the last unchanged block.
    pub end: u64,
    pub first: Option<BlockHead>,
    pub last: Option<BlockHead>,
    pub span_ns: Nanos,
}

/// Reads a tail up to a length, block by block.
pub fn each_block<D: RecordDisk>(
    disk: &D,
    name: &str,
    length: u64,
    mut f: impl FnMut(&TailBlock) -> io::Result<()>,
) -> io::Result<TailContents> {
    let mut lines = LineReader::new(DiskFile::new(disk, name, 0, length));
    let mut found = TailContents::default();
    let (mut bytes, mut damaged, mut open): (Vec<u8>, u64, bool) = (Vec::new(), 0, false);
    // True if there was a line outside of any block.
    let mut stray = false;
    while let Some(line) = lines.next_line()? {
        if line.starts_with(b"begin ") {
            damaged += u64::from(open || stray);
            bytes.clear();
            (open, stray) = (true, false);
        } else if let Some(sum) = line.strip_prefix(b"end ").filter(|_| open) {
            open = false;
            match whole(&bytes, sum) {
                Some(block) => {
                    f(&block)?;
                    found.blocks += 1;
                    found.damaged += std::mem::take(&mut damaged);
                    found.span_ns = Nanos(found.span_ns.0.saturating_add(block.head.span_ns.0));
                    found.end = lines.to;
                    if found.first.is_none() {
                        found.first = Some(block.head.clone());
                    }
                    found.last = Some(block.head);
                }
                None => damaged += 1,
            }
            bytes.clear();
            continue;
        }
        if open && (bytes.len() + line.len()) as u64 <= 2 * LINE_LIMIT {
            bytes.extend_from_slice(line);
        } else if open {
            // A line longer than any block is not one.
            (open, damaged) = (false, damaged + 1);
            bytes.clear();
        } else {
            stray = true;
        }
    }
    Ok(found)
}

fn whole<'a>(bytes: &'a [u8], sum: &[u8]) -> Option<TailBlock<'a>> {
    let wanted = u32::from_str_radix(std::str::from_utf8(sum.strip_suffix(b"\n")?).ok()?, 16).ok()?;
    if checksum(bytes) != wanted {
        return None;
    }
    let (tag, head) = split(bytes.split(|byte| *byte == b'\n').next()?)?;
    Some(TailBlock { head: serde_json::from_slice(head).ok().filter(|_| tag == "begin")?, bytes })
}
