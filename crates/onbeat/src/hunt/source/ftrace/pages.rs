//! Pages read from the kernel's buffers, as far back as a spike can need them.
//!
//! Taking a page copies it under a lock that no writer waits for (`reader_lock`,
//! kernel/trace/ring_buffer.c): the CPU whose buffer is read is not delayed.

use std::collections::VecDeque;
use std::io;

use crate::hunt::source::WantedSpan;
use host::clock;
use host::tracefs::{Instance, RawPipe};
use model::units::{Cpu, CpuSet, Nanos};
use trace::decode::Decoder;
use trace::page::Lost;

/// Maximum size of all kept pages: a window has some tens of them, and a flood must not use up the
/// machine's memory.
const MAX_BYTES_KEPT: usize = 16 << 20;

/// Minimum number of pages kept per CPU, however many CPUs there are.
const MIN_PAGES_PER_CPU: usize = 4;

/// Pages that ended this long before a spike are not needed for it.
const LOOK_BACK: Nanos = Nanos(500_000_000);

/// Page of a kernel buffer.
pub struct TracePage {
    /// Time of its oldest record, or earlier.
    pub start: Nanos,
    /// Content as the kernel wrote it.
    pub bytes: Box<[u8]>,
}

pub struct CpuTracePages {
    pub cpu: Cpu,
    pipe: RawPipe,
    /// Oldest first.
    pub pages: VecDeque<TracePage>,
    /// True if pages were dropped.
    dropped: bool,
    /// Total number of bytes taken.
    pub taken: u64,
    /// Time before which every event has been taken.
    reach: Nanos,
    /// Bytes that may still be taken in this round.
    left: usize,
    /// Number of pages whose header could not be read.
    pub headless: u64,
}

pub struct TracePages {
    /// By CPU, ascending.
    pub cpus: Vec<CpuTracePages>,
    page: Box<[u8]>,
    /// Bytes that are kept, and their maximum.
    kept: usize,
    max_kept: usize,
    /// Bytes that one round may take of a CPU: a buffer that fills as fast as it is read would
    /// never be empty.
    pub max_bytes: usize,
    /// Time after which no page is taken.
    pub until: Nanos,
}

impl TracePages {
    /// Opens the buffers of these CPUs.
    pub fn open(instance: &Instance, cpus: &CpuSet, page_size: usize) -> io::Result<TracePages> {
        let mut opened = Vec::new();
        for cpu in cpus.iter() {
            let (pipe, pages, reach) = (instance.pipe(cpu)?, VecDeque::new(), Nanos(i64::MIN));
            opened.push(CpuTracePages {
                cpu,
                pipe,
                pages,
                dropped: false,
                taken: 0,
                reach,
                left: 0,
                headless: 0,
            });
        }
        let max_kept = MAX_BYTES_KEPT.max(MIN_PAGES_PER_CPU * page_size * opened.len());
        Ok(TracePages {
            cpus: opened,
            page: vec![0; page_size].into(),
            kept: 0,
            max_kept,
            max_bytes: 1 << 20,
            until: Nanos(i64::MAX),
        })
    }

    /// Takes pages of all CPUs in order of time, without waiting, and shows each: first those up to
    /// the spike's end, for which the oldest make room, then more as long as the spike's pages
    /// stay. Pages without room stay in the kernel's buffers. Returns the time up to which all
    /// events have been taken.
    pub fn take(
        &mut self,
        decoder: &Decoder,
        span: WantedSpan,
        seen: &mut impl FnMut(Cpu, &TracePage),
    ) -> io::Result<Nanos> {
        let mut failed = Ok(());
        let most = if self.reach() > span.to { 0 } else { self.max_bytes };
        self.cpus.iter_mut().for_each(|cpu_pages| cpu_pages.left = most);
        while clock::monotonic() < self.until {
            let open = self.cpus.iter().enumerate().filter(|(_, cpu_pages)| cpu_pages.left > 0);
            let Some((at, reach)) =
                open.map(|(at, cpu_pages)| (at, cpu_pages.reach)).min_by_key(|open| open.1)
            else {
                break;
            };
            let older_than = if reach > span.to { span.from - LOOK_BACK } else { Nanos(i64::MAX) };
            if self.kept + self.page.len() > self.max_kept && !self.make_room(older_than) {
                break;
            }
            let cpu_pages = &mut self.cpus[at];
            match cpu_pages.take(decoder, &mut self.page, seen) {
                Ok(bytes) => self.kept += bytes,
                // An error on one CPU does not keep the others from being read.
                Err(error) => failed = Err(error),
            }
        }
        failed.map(|()| self.reach())
    }

    /// Time up to which all events of all CPUs have been taken.
    fn reach(&self) -> Nanos {
        self.cpus.iter().map(|cpu_pages| cpu_pages.reach).min().unwrap_or(Nanos(i64::MAX))
    }

    /// Drops the page that ended first, if that was before an instant.
    fn make_room(&mut self, older_than: Nanos) -> bool {
        let end = |cpu_pages: &CpuTracePages| cpu_pages.pages.get(1).map(|next| next.start);
        let full = self.cpus.iter_mut().filter(|cpu_pages| cpu_pages.pages.len() >= MIN_PAGES_PER_CPU);
        let Some(cpu_pages) = full.min_by_key(|cpu_pages| end(cpu_pages)) else { return false };
        if end(cpu_pages).is_none_or(|end| end >= older_than) {
            return false;
        }
        cpu_pages.dropped = true;
        self.kept -= cpu_pages.pages.pop_front().map_or(0, |page| page.bytes.len());
        true
    }

    /// Discards the pages taken.
    pub fn forget(&mut self) {
        for cpu_pages in &mut self.cpus {
            cpu_pages.pages.clear();
            (cpu_pages.taken, cpu_pages.dropped) = (0, false);
        }
        self.kept = 0;
    }

    pub fn of(&self, cpu: Cpu) -> Option<&CpuTracePages> {
        self.cpus.iter().find(|cpu_pages| cpu_pages.cpu == cpu)
    }
}

impl CpuTracePages {
    /// Takes one page, if there is one; returns the bytes that it adds to the kept pages.
    fn take(
        &mut self,
        decoder: &Decoder,
        page: &mut [u8],
        seen: &mut impl FnMut(Cpu, &TracePage),
    ) -> io::Result<usize> {
        let now = clock::monotonic();
        let read = self.pipe.read_page(page);
        let Ok(Some(length)) = read else {
            (self.left, self.reach) = (0, now);
            return read.map(|_| 0);
        };
        self.left = self.left.saturating_sub(page.len());
        self.taken += length as u64;
        let Some(start) = decoder.start_of(&page[..length]) else {
            self.headless += 1;
            return Ok(0);
        };
        self.reach = self.reach.max(start);
        let page = TracePage { start, bytes: page[..length].into() };
        seen(self.cpu, &page);
        self.pages.push_back(page);
        Ok(length)
    }

    /// True if there were events before the oldest page that is kept.
    pub fn lacks_older(&self, decoder: &Decoder) -> bool {
        let lost = |page: &TracePage| decoder.page(self.cpu, &page.bytes, &mut |_| ()).lost != Lost::Nothing;
        self.dropped || self.pages.front().is_some_and(lost)
    }

    /// Bytes per second: over the span of the pages, if these are so many that earlier ones must
    /// have been overwritten, else over the time since the start.
    pub fn rate(&self, elapsed: Nanos) -> u64 {
        const MANY: usize = 64;
        let span = match (self.pages.front(), self.pages.back()) {
            (Some(first), Some(last)) if self.dropped || self.pages.len() > MANY => last.start - first.start,
            _ => elapsed,
        };
        let kept: usize = self.pages.iter().map(|page| page.bytes.len()).sum();
        (kept as f64 / span.as_secs().max(1e-3)) as u64
    }

    /// Index of the page that holds an instant: the last one that begins at or before it.
    pub fn holding(&self, instant: Nanos) -> usize {
        self.pages.partition_point(|page| page.start <= instant).saturating_sub(1)
    }
}
