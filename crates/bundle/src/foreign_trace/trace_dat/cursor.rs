//! Events of each CPU page by page, and of all CPUs in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::blocks::CpuBlocks;
use super::packed::Unpacker;
use crate::foreign_trace::input::TraceInput;
use crate::foreign_trace::{StepSink, TraceError, TraceStep};
use model::units::{Cpu, Nanos};
use trace::decode::Decoder;
use trace::event::{Raw, What};
use trace::page::Lost;

/// Maximum number of blocks to go back for the last switch of a CPU.
const MAX_BLOCKS_BACK: usize = 64;

/// Data for reading the pages of all CPUs.
pub struct RecordedPages<'a> {
    pub input: &'a TraceInput,
    pub decoder: &'a Decoder,
    pub page_size: usize,
    /// Factor and shift from the clock's counter to nanoseconds.
    pub scale: Option<(u32, u32)>,
}

impl RecordedPages<'_> {
    fn time(&self, time: Nanos) -> Nanos {
        match self.scale {
            None => time,
            Some((factor, shift)) => {
                let scaled = (i128::from(time.0) * i128::from(factor)) >> shift;
                Nanos(i64::try_from(scaled).unwrap_or(i64::MAX))
            }
        }
    }
}

/// State that is used and filled while all CPUs are read.
pub struct PageReading<'a> {
    pub unpacker: &'a mut Unpacker,
    /// Number of records of each event.
    pub seen: Box<SeenEvents>,
}

/// A count for each number that an event can have.
pub type SeenEvents = [u64; 1 << 16];

/// Position in the events of one CPU.
pub struct CpuCursor<'a> {
    cpu: Cpu,
    blocks: &'a CpuBlocks,
    block: usize,
    bytes: Vec<u8>,
    page: usize,
    /// Events of the page.
    events: Vec<Raw>,
    /// Index of the next event of the page.
    next: usize,
    /// Time and number of the events lost before the page.
    lost: Option<(Nanos, u64)>,
    /// Start time of each block.
    pub starts: Vec<Nanos>,
    /// Number of records that could not be read.
    pub unread: u64,
}

impl<'a> CpuCursor<'a> {
    /// Cursor before the first event.
    pub fn new(cpu: Cpu, blocks: &'a CpuBlocks) -> CpuCursor<'a> {
        CpuCursor {
            cpu,
            blocks,
            block: 0,
            bytes: Vec::new(),
            page: 0,
            events: Vec::new(),
            next: 0,
            lost: None,
            starts: Vec::new(),
            unread: 0,
        }
    }

    /// Seeks the block with the last switch before that time; `starts` are the start times of the
    /// blocks.
    pub fn go_to(
        &mut self,
        by: &RecordedPages,
        reading: &mut PageReading,
        starts: &[Nanos],
        from: Nanos,
    ) -> Result<(), TraceError> {
        let at = starts.partition_point(|start| *start <= from).saturating_sub(1);
        let least = at.saturating_sub(MAX_BLOCKS_BACK);
        for block in (least..=at).rev() {
            self.begin(block);
            while let Some(event) = self.peek(by, reading)? {
                if event.time >= from {
                    break;
                }
                if matches!(event.what, What::Switch { .. }) {
                    self.begin(block);
                    return Ok(());
                }
                self.next += 1;
                if self.block > block + 1 {
                    break;
                }
            }
        }
        self.begin(least);
        Ok(())
    }

    /// Seeks the begin of a block.
    fn begin(&mut self, block: usize) {
        (self.block, self.page, self.next, self.lost) = (block, 0, 0, None);
        self.bytes.clear();
        self.events.clear();
    }

    /// Returns the next event, after reading the next page if necessary.
    fn peek(&mut self, by: &RecordedPages, reading: &mut PageReading) -> Result<Option<&Raw>, TraceError> {
        while self.next >= self.events.len() {
            if !self.next_page(by, reading)? {
                return Ok(None);
            }
        }
        Ok(self.events.get(self.next))
    }

    /// Decodes the next page; false at the end.
    fn next_page(&mut self, by: &RecordedPages, reading: &mut PageReading) -> Result<bool, TraceError> {
        self.events.clear();
        self.next = 0;
        if self.page * by.page_size >= self.bytes.len() {
            if self.block >= self.blocks.count() {
                return Ok(false);
            }
            self.blocks.read(self.block, by.input, reading.unpacker, &mut self.bytes)?;
            let start = by.decoder.start_of(&self.bytes).map(|start| by.time(start));
            let last = self.starts.last().copied().unwrap_or(Nanos(i64::MIN));
            self.starts.push(start.unwrap_or(last).max(last));
            (self.block, self.page) = (self.block + 1, 0);
            return Ok(true);
        }
        let at = self.page * by.page_size;
        let page = &self.bytes[at..(at + by.page_size).min(self.bytes.len())];
        self.page += 1;
        let CpuCursor { events, cpu, .. } = self;
        let notes = by.decoder.page_seen(
            *cpu,
            page,
            &mut |id| reading.seen[usize::from(id)] += 1,
            &mut |mut event| {
                event.time = by.time(event.time);
                events.push(event);
            },
        );
        self.unread += notes.malformed + u64::from(notes.cut);
        let lost = match notes.lost {
            Lost::Nothing => None,
            Lost::Records(count) => Some(count.max(1)),
            Lost::Some => Some(1),
        };
        self.lost = lost.map(|count| (by.time(notes.start), count)).or(self.lost);
        Ok(true)
    }
}

/// Hands out the events of all CPUs in the order of time, until the sink has enough.
pub fn merge(
    by: &RecordedPages,
    reading: &mut PageReading,
    cursors: &mut [CpuCursor],
    sink: &mut StepSink,
) -> Result<(), TraceError> {
    let mut heads = BinaryHeap::new();
    for (at, cursor) in cursors.iter_mut().enumerate() {
        if let Some(event) = cursor.peek(by, reading)? {
            heads.push(Reverse((event.time, at)));
        }
    }
    while let Some(Reverse((_, at))) = heads.pop() {
        // Continues until another CPU has an earlier event.
        let until = heads.peek().map_or(Nanos(i64::MAX), |next| next.0.0);
        let cursor = &mut cursors[at];
        loop {
            cursor.peek(by, reading)?;
            let lost = cursor.lost.take().map(|(time, count)| TraceStep::Lost(cursor.cpu, time, count));
            if lost.is_some_and(|lost| sink(lost).is_break()) {
                return Ok(());
            }
            let ready = cursor.events.get(cursor.next..).unwrap_or_default();
            if ready.is_empty() {
                break;
            }
            let mut later = None;
            for event in ready {
                if event.time > until {
                    later = Some(event.time);
                    break;
                }
                if sink(TraceStep::Event(event)) == ControlFlow::Break(()) {
                    return Ok(());
                }
                cursor.next += 1;
            }
            if let Some(time) = later {
                heads.push(Reverse((time, at)));
                break;
            }
        }
    }
    Ok(())
}
