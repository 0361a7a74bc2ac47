//! Source of the events: a private tracing instance, whose filters pass events of real-time threads
//! only.
//!
//! Source: Documentation/trace/events.rst (filters), Documentation/trace/ftrace.rst.

use std::io;

use host::tracefs::{Instance, RawPipe, Tracing};
use host::{clock, rt};
use model::error::{Failure, Result};
use model::units::{Cpu, CpuSet, Nanos};
use trace::catalog;
use trace::decode::Decoder;
use trace::event::What;

use super::order::PageEvents;
use crate::fields::{EVENTS, EXPIRE, START, SUSPEND, SWITCH, WAKING};
use crate::learn::{KINDS, Learned, TRIES, ask_for, unusual_expiries};
use crate::programs::Functions;
use crate::refusals;

/// The clock of wake-ups, timers and records.
const CLOCK: &str = "mono";
/// Options that cost time and add nothing: names of threads are in the events already.
const UNNEEDED_OPTIONS: [&str; 2] = ["options/record-cmd", "options/record-tgid"];
/// Largest and smallest ring of a CPU: the memory limits of a recorder in the kernel are 2 MiB and
/// 0.2 MiB per CPU.
const MOST_KIB: u64 = 1024;
const SHARED_KIB: u64 = 2048;
const OWN_KIB: u64 = 204;

/// The instance, armed, and the rings of its CPUs.
pub struct RingSource {
    /// Closed before their instance is removed.
    pipes: Vec<RawPipe>,
    cpus: Vec<Cpu>,
    page: Box<[u8]>,
    decoder: Decoder,
    instance: Instance,
    /// Mounts made for the instance, unmounted with it.
    _tracing: Tracing,
    pub buffer_kib: u64,
    /// True if the kernel has an event for suspends.
    pub sees_suspends: bool,
    /// Reads that failed.
    pub failed: u64,
    /// Records read since the last time, of the CPU that had most.
    records: Vec<u64>,
}

impl RingSource {
    /// Creates the instance, silent, with rings for these CPUs, of which `online` are online.
    pub fn open(cpus: &CpuSet, online: usize, kib: Option<u64>) -> Result<RingSource> {
        let tracing = Tracing::open().map_err(refusals::no_tracing)?;
        let failed = |error: io::Error| refusals::no_instance(&error);
        let instance = tracing.instance().map_err(failed)?;
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("trace_clock", CLOCK).map_err(failed)?;
        for option in UNNEEDED_OPTIONS.iter().filter(|option| instance.exists(option)) {
            instance.write(option, "0").map_err(failed)?;
        }
        let buffer_kib = kib.unwrap_or(MOST_KIB.min(OWN_KIB + SHARED_KIB / online.max(1) as u64));
        instance.write("buffer_size_kb", &buffer_kib.to_string()).map_err(failed)?;
        let decoder = decoder(&tracing)?;
        let cpus: Vec<Cpu> = cpus.iter().collect();
        let pipes = cpus.iter().map(|cpu| instance.pipe(*cpu)).collect::<io::Result<Vec<_>>>();
        let page = vec![0; decoder.layout().page_size()].into();
        let records = vec![0; cpus.len()];
        Ok(RingSource {
            pipes: pipes.map_err(failed)?,
            cpus,
            page,
            decoder,
            instance,
            _tracing: tracing,
            buffer_kib,
            sees_suspends: false,
            failed: 0,
            records,
        })
    }

    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Sets timers of all kinds, and reads their functions.
    pub fn learn(&mut self) -> Learned {
        let (mut functions, mut tid) = ([0; KINDS.len()], None);
        for _ in 0..TRIES {
            let expiries = unusual_expiries();
            let asked = self.switch(START, None, true).and_then(|()| self.record(true));
            ask_for(expiries);
            let stopped = self.record(false).and_then(|()| self.switch(START, None, false));
            if asked.and(stopped).is_err() {
                break;
            }
            let mut take = |page: PageEvents| {
                for event in page.events {
                    let What::TimerStart { function, expires, .. } = event.what else { continue };
                    if let Some(nth) = expiries.iter().position(|expiry| *expiry == expires) {
                        (functions[nth], tid) = (function, Some(event.pid as u32));
                    }
                }
            };
            for nth in 0..self.pipes.len() {
                while let Some(page) = self.read(nth) {
                    take(page);
                }
            }
            if functions.iter().all(|function| *function != 0) {
                break;
            }
        }
        Learned::of(functions, tid)
    }

    /// Lets the events in that are wanted.
    pub fn arm(&mut self, functions: &Functions) -> Result<()> {
        let failed = |event: usize| move |error: io::Error| refusals::no_event(EVENTS[event].1, &error);
        self.switch(SWITCH, Some("prev_prio < 100 || next_prio < 100"), true).map_err(failed(SWITCH))?;
        self.switch(WAKING, Some("prio < 100"), true).map_err(failed(WAKING))?;
        let terms: Vec<String> =
            functions.iter().map(|(function, _)| format!("function == {function:#x}")).collect();
        // Without a known timer there is nothing to look for.
        if !terms.is_empty() {
            let filter = terms.join(" || ");
            self.switch(EXPIRE, Some(&filter), true).map_err(failed(EXPIRE))?;
            self.switch(START, Some(&filter), true).map_err(failed(START))?;
        }
        self.sees_suspends = self.switch(SUSPEND, None, true).is_ok();
        self.record(true).map_err(|error| refusals::no_instance(&error))
    }

    /// Stops or starts recording; the contents of the rings stay.
    pub fn record(&self, on: bool) -> io::Result<()> {
        self.instance.write("tracing_on", if on { "1" } else { "0" })
    }

    fn switch(&self, event: usize, filter: Option<&str>, on: bool) -> io::Result<()> {
        let (system, name) = EVENTS[event];
        // Written as "0" it lets all through (Documentation/trace/events.rst, 5.3).
        self.instance.write(&format!("events/{system}/{name}/filter"), filter.unwrap_or("0"))?;
        self.instance.write(&format!("events/{system}/{name}/enable"), if on { "1" } else { "0" })
    }

    /// The next page of the CPU of that number, if it has recorded anything.
    pub fn read(&mut self, nth: usize) -> Option<PageEvents> {
        let length = match self.pipes[nth].read_page(&mut self.page) {
            Ok(length) => length?,
            Err(_) => {
                self.failed += 1;
                return None;
            }
        };
        let mut events = Vec::new();
        let bytes = &self.page[..length];
        let notes = self.decoder.page(self.cpus[nth], bytes, &mut |event| events.push(event));
        self.records[nth] += notes.records;
        let unread = notes.malformed + u64::from(notes.cut);
        Some(PageEvents { start: notes.start, end: notes.end, lost: notes.lost, events, unread })
    }

    /// Bytes that were recorded since the last time on the CPU that recorded most, about.
    pub fn recorded_bytes(&mut self) -> u64 {
        /// Size of the longest record, that of a switch.
        const RECORD: u64 = 72;
        let most = self.records.iter().max().copied().unwrap_or(0);
        self.records.fill(0);
        most * RECORD
    }

    /// Lost events that no page reports: those for which there was no room while others were
    /// written.
    pub fn lost_besides(&self) -> u64 {
        let stats = self.cpus.iter().filter_map(|cpu| self.instance.stats(*cpu).ok());
        stats.map(|stats| stats.commit_overrun.saturating_add(stats.dropped)).sum()
    }
}

fn decoder(tracing: &Tracing) -> Result<Decoder> {
    let unsupported = |what: String| {
        Failure::not_supported(format!("the kernel's trace pages have an unknown form ({what}): report this"))
    };
    let read = |path: &str| tracing.read(path).map_err(|error| refusals::no_instance(&error));
    let header = read("events/header_page")?;
    let mut texts = Vec::new();
    for event in [START, EXPIRE, WAKING, SWITCH] {
        let (system, name) = EVENTS[event];
        let wanted = catalog::find(system, name).ok_or_else(|| unsupported(name.to_owned()))?;
        let text = tracing.read(&format!("events/{system}/{name}/format"));
        texts.push((wanted, text.map_err(|error| refusals::no_event(name, &error))?));
    }
    // Some kernels have no suspend.
    let (system, name) = EVENTS[SUSPEND];
    texts.extend(
        tracing.read(&format!("events/{system}/{name}/format")).map(|text| (&catalog::SUSPEND, text)),
    );
    let formats: Vec<_> = texts.iter().map(|(wanted, text)| (*wanted, text.as_str())).collect();
    let decoder = Decoder::new(&header, cfg!(target_endian = "big"), &formats).map_err(unsupported)?;
    match decoder.refused().first() {
        Some((_, why)) => Err(unsupported(why.clone())),
        None => Ok(decoder),
    }
}

/// Time up to which all events are in the rings: a later one may still be half written.
pub fn written_until() -> Nanos {
    clock::monotonic() - WRITING
}

/// Waits until all events up to now are.
pub fn wait_for_writers() {
    clock::sleep_for(WRITING);
}

/// Longest time in which an event is written; one that takes longer counts as lost.
const WRITING: Nanos = Nanos(2_000_000);

/// True if the kernel numbers this thread differently from this process, as in a PID namespace.
pub fn has_other_numbers(learned: &Learned) -> bool {
    learned.tid.is_some_and(|tid| tid != rt::thread_id() as u32)
}
