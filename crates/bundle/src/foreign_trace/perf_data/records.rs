//! Records of a perf.data: samples of tracepoints, and losses.
//!
//! Source: `perf_event_header`, `PERF_RECORD_SAMPLE` in include/uapi/linux/perf_event.h.

use super::header::{PerfHeader, SampleLayout};
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// `perf_event_sample_format`, in the order of the fields in a sample.
mod field {
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDRESS: u64 = 1 << 3;
    pub const ID: u64 = 1 << 6;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const RAW: u64 = 1 << 10;
}

/// `perf_event_read_format`.
const TIME_ENABLED: u64 = 1;
const TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const LOST: u64 = 1 << 4;

/// A sample of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfSample<'a> {
    pub time: Nanos,
    /// CPU of the sample; `None` if it was recorded without.
    pub cpu: Option<Cpu>,
    /// Record of the kernel.
    pub raw: &'a [u8],
}

/// Words of a sample, in order.
struct Words<'a> {
    header: &'a PerfHeader,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn long(&mut self) -> Option<u64> {
        let value = self.header.order.u64(self.bytes, self.at)?;
        self.at += 8;
        Some(value)
    }

    fn word(&mut self) -> Option<u32> {
        let value = self.header.order.u32(self.bytes, self.at)?;
        self.at += 4;
        Some(value)
    }

    fn skip(&mut self, longs: u64) -> Option<()> {
        let bytes = usize::try_from(longs).ok()?.checked_mul(8)?;
        self.at = self.at.checked_add(bytes).filter(|&at| at <= self.bytes.len())?;
        Some(())
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}

/// Layout of a sample: by its id if there are several.
fn layout_of<'a>(header: &'a PerfHeader, body: &[u8]) -> Option<&'a SampleLayout> {
    let first = header.layouts.first()?;
    if first.fields & field::IDENTIFIER == 0 {
        return header.layouts.iter().all(|layout| layout.fields == first.fields).then_some(first);
    }
    let id = header.order.u64(body, 0)?;
    header.layouts.get(*header.by_id.get(&id)?)
}

/// Reads a sample; `None` if it is not of a tracepoint or ends early.
pub fn sample<'a>(header: &'a PerfHeader, body: &'a [u8]) -> Option<PerfSample<'a>> {
    let layout = layout_of(header, body).filter(|layout| layout.tracepoint)?;
    let has = |field| layout.fields & field != 0;
    let mut words = Words { header, bytes: body, at: 0 };
    words
        .skip([field::IDENTIFIER, field::IP, field::TID].iter().filter(|&&field| has(field)).count() as u64)?;
    let time = if has(field::TIME) { words.long()? } else { return None };
    let between = [field::ADDRESS, field::ID, field::STREAM_ID];
    words.skip(between.iter().filter(|&&field| has(field)).count() as u64)?;
    let mut cpu = None;
    if has(field::CPU) {
        cpu = Some(words.word()?).filter(|&cpu| cpu < CPU_LIMIT).map(Cpu);
        words.word()?;
    }
    if has(field::PERIOD) {
        words.long()?;
    }
    if has(field::READ) {
        skip_counts(&mut words, layout.read_format)?;
    }
    if has(field::CALLCHAIN) {
        let frames = words.long()?;
        words.skip(frames)?;
    }
    if !has(field::RAW) {
        return None;
    }
    let length = words.word()? as usize;
    Some(PerfSample { time: Nanos(i64::try_from(time).ok()?), cpu, raw: words.rest().get(..length)? })
}

fn skip_counts(words: &mut Words, format: u64) -> Option<()> {
    let has = |bit: u64| u64::from(format & bit != 0);
    let times = has(TIME_ENABLED) + has(TIME_RUNNING);
    let each = 1 + has(READ_ID) + has(LOST);
    if format & GROUP == 0 {
        return words.skip(times + each);
    }
    let count = words.long()?;
    words.skip(times.checked_add(count.checked_mul(each)?)?)
}

/// CPU and number of the records that a record reports as lost.
pub fn lost(header: &PerfHeader, kind: u32, body: &[u8]) -> (Option<Cpu>, u64) {
    // `PERF_RECORD_LOST` has an id before the number.
    let at = if kind == super::LOST { 8 } else { 0 };
    let count = header.order.u64(body, at).unwrap_or(1);
    let trailing = header.layouts.first().filter(|layout| layout.id_all && layout.fields & field::CPU != 0);
    // Only the identifier follows the CPU.
    let cpu = trailing.and_then(|layout| {
        let behind = if layout.fields & field::IDENTIFIER != 0 { 16 } else { 8 };
        header.order.u32(body, body.len().checked_sub(behind)?)
    });
    (cpu.filter(|&cpu| cpu < CPU_LIMIT).map(Cpu), count.max(1))
}
