//! The records of one page of the ring buffer, as read from `per_cpu/cpu*/trace_pipe_raw`.
//!
//! Source: `struct buffer_data_page`, `rb_event_length`, `rb_event_discard`, `rb_fix_abs_ts` and `ring_buffer_read_page` in
//! kernel/trace/ring_buffer.c, `struct ring_buffer_event` in include/linux/ring_buffer.h. A record's first word holds its type
//! or length in 5 bits and the time since the record before in 27: the first named bit field is the lowest five bits
//! of a little-endian machine's word, and the highest five of a big-endian one's.

use super::format::PageLayout;
use super::words::Words;
use crate::units::Nanos;

/// `RB_MISSED_EVENTS`: records before this page were overwritten.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: their number is behind the data.
const MISSED_STORED: u64 = 1 << 30;
/// The length is below these two; no page is longer than a gigabyte.
const LENGTH: u64 = MISSED_STORED - 1;
/// `TS_MSB`: an absolute time has 59 bits, these are the page's.
const UPPER: u64 = 0xf8 << 56;

/// What was overwritten before a page could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lost {
    /// Nothing.
    #[default]
    Nothing,
    /// So many records.
    Records(u64),
    /// Records, the kernel does not say how many.
    Some,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was written.
    pub time: Nanos,
    /// What was written, with some padding behind it.
    pub data: &'a [u8],
}

/// A page whose records are walked in order.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// What is left of the committed bytes.
    rest: &'a [u8],
    /// The time so far.
    now: u64,
    words: Words,
    /// The time of the page.
    pub start: Nanos,
    /// What was overwritten before it.
    pub lost: Lost,
    /// The page ended within a record, or a record was none; what follows it is not read.
    pub cut: bool,
}

/// A time of the kernel's within the range of ours.
fn nanos(time: u64) -> Option<Nanos> {
    i64::try_from(time).ok().map(Nanos)
}

/// The time at which a page begins.
pub fn start_of(words: Words, bytes: &[u8]) -> Option<Nanos> {
    words.u64(bytes, 0).and_then(nanos)
}

impl<'a> Page<'a> {
    /// Reads a page's head; nothing if there is not even that.
    pub fn open(layout: &PageLayout, words: Words, bytes: &'a [u8]) -> Option<Page<'a>> {
        let start = start_of(words, bytes)?;
        let commit = words.long(bytes, layout.commit_offset)?;
        let data = bytes.get(layout.data_offset..)?;
        let length = (commit & LENGTH) as usize;
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => Lost::Nothing,
            (true, false) => Lost::Some,
            (true, true) => words.long(data, length).filter(|&n| n > 0).map_or(Lost::Some, Lost::Records),
        };
        let rest = data.get(..length);
        Some(Page {
            rest: rest.unwrap_or(data),
            now: start.0 as u64,
            words,
            start,
            lost,
            cut: rest.is_none(),
        })
    }

    /// The time since the record before, and the type or length.
    fn head(&self) -> Option<(u32, u64)> {
        let word = self.words.u32(self.rest, 0)?;
        Some(match self.words.big {
            true => (word >> 27, u64::from(word & ((1 << 27) - 1))),
            false => (word & 31, u64::from(word >> 5)),
        })
    }

    /// The next record with data; times in between are taken in, what is discarded is passed over.
    fn step(&mut self) -> Option<Record<'a>> {
        loop {
            let (kind, delta) = self.head()?;
            match kind {
                1..=28 => {
                    let data = self.take(4, kind as usize * 4)?;
                    return self.record(delta, data);
                }
                0 => {
                    // The length counts its own word.
                    let length = self.words.u32(self.rest, 4)?.checked_sub(4)? as usize;
                    let data = self.take(8, length.checked_next_multiple_of(4)?)?;
                    return self.record(delta, data);
                }
                29 => {
                    if delta == 0 {
                        // The rest of the page was never written.
                        self.rest = &[];
                        return None;
                    }
                    let length = self.words.u32(self.rest, 4)? as usize;
                    self.take(4, length.max(4).checked_next_multiple_of(4)?)?;
                    // A discarded record's time counts for its successors; 1 stands for none, because 0 means the above.
                    self.advance(if delta == 1 { 0 } else { delta })?;
                }
                _ => {
                    let time = u64::from(self.words.u32(self.rest, 4)?) << 27 | delta;
                    self.take(8, 0)?;
                    match kind {
                        30 => self.advance(time)?,
                        _ => self.set(time)?,
                    }
                }
            }
        }
    }

    fn record(&mut self, delta: u64, data: &'a [u8]) -> Option<Record<'a>> {
        self.advance(delta)?;
        Some(Record { time: Nanos(self.now as i64), data })
    }

    /// Splits off a head and the bytes behind it.
    fn take(&mut self, head: usize, length: usize) -> Option<&'a [u8]> {
        let data = self.rest.get(head..)?.get(..length)?;
        self.rest = &self.rest[head + length..];
        Some(data)
    }

    fn advance(&mut self, delta: u64) -> Option<()> {
        self.now = self.now.checked_add(delta).filter(|&time| nanos(time).is_some())?;
        Some(())
    }

    /// An absolute time has its upper bits from the page, where that has any; it never goes back.
    fn set(&mut self, time: u64) -> Option<()> {
        let upper = self.now & UPPER;
        let mut time = time & !UPPER | upper;
        if upper != 0 && time < self.now {
            time = time.checked_add(1 << 59)?;
        }
        self.now = Some(time).filter(|&time| time >= self.now && nanos(time).is_some())?;
        Some(())
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let record = self.step();
        if record.is_none() && !self.rest.is_empty() {
            self.cut = true;
            self.rest = &[];
        }
        record
    }
}
