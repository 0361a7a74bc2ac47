//! Kernel event tracing as a source: a private tracefs instance and the pages of its buffers.

mod pages;
mod refusal;
mod setup;

use self::pages::{CpuTracePages, TracePages};
use self::refusal::refusal;
use self::setup::EventSetup;
use super::{Collected, EventSource, RecordingLevel, WantedSpan};
use crate::hunt::names::names_of_this_machine;
use crate::hunt::scope::Scope;
use host::clock;
use host::tracefs::Tracing;
use model::error::{Exit, Failure, Result, run_with};
use model::run;
use model::text::several;
use model::units::{Cpu, CpuSet, Nanos};
use trace::decode::{Decoder, PageNotes};
use trace::event::{Raw, What};
use trace::held::{EventCoverage, HeldEvents};
use trace::last_switch::since_last_switch;
use trace::names::Names;
use trace::page::Lost;

/// Buffer size per CPU during the rounds.
const FIRST_BUFFER_KIB: u64 = 1 << 10;

/// Maximum number of notes about failed reads; further ones are counted.
const MAX_NOTES: usize = 20;

/// Minimum buffer size: a smaller one holds no window.
const MIN_BUFFER_KIB: u64 = 64;

/// Bytes that are shown before their events are processed, so that a flood is handled in parts;
/// about two and a half records to a hundred bytes.
const MAX_BYTES_AT_ONCE: usize = 4 << 20;

/// Number of earlier pages that are searched for the last switch; if none has it, the thread that
/// ran is unknown.
const MAX_PAGES_BACK: usize = 64;

/// Bytes to read of one CPU in one round: reading a buffer that fills as fast as it is read stops
/// after twice its size.
fn max_bytes(buffer_kib: u64) -> usize {
    2 * (buffer_kib << 10) as usize
}

/// Private instance, armed or not, and the pages taken from it.
pub struct Ftrace {
    /// Declared before the setup: pipes are closed before their instance is removed.
    pages: TracePages,
    setup: EventSetup,
    decoder: Decoder,
    notes: Vec<String>,
    /// Size of the buffer per CPU.
    buffer_kib: u64,
    /// Number of notes beyond the maximum.
    notes_dropped: u64,
    /// Records in windows that could not be decoded, and pages that ended within a record.
    unread: u64,
    /// The same for all pages, in collections that show all events.
    shown_unread: u64,
    /// Kept open with the instance: a mount made for it is unmounted at its end.
    _tracing: Tracing,
}

impl Ftrace {
    /// Opens an instance with buffers for these CPUs, and the names for addresses in events.
    ///
    /// Fails if tracing is missing or not permitted, and names an alternative.
    pub fn open(cpus: &CpuSet) -> Result<(Ftrace, Names)> {
        let tracing = Tracing::open().map_err(refusal)?;
        let mut notes = tracing_of_other_programs(&tracing);
        let failed = |error: std::io::Error| {
            let permitted = error.kind() != std::io::ErrorKind::PermissionDenied;
            let instead = "`onbeat measure` works without".to_owned();
            let remedy = if permitted { instead } else { run_with("CAP_DAC_OVERRIDE") };
            Failure::of_call("cannot create a tracing instance", &error, Exit::NotSupported, &remedy)
        };
        let setup = EventSetup::open(&tracing).map_err(failed)?;
        let (names, missing) = names_of_this_machine(&tracing.read("printk_formats").unwrap_or_default());
        let text = names.symbols().and_then(|symbols| symbols.address_of("_stext")).unwrap_or(0);
        let decoder = setup.decoder(&tracing, text).map_err(|what| {
            Failure::not_supported(format!(
                "the kernel's trace pages have an unknown form ({what}): `onbeat measure` works without"
            ))
        })?;
        setup.resize(FIRST_BUFFER_KIB).map_err(failed)?;
        let mut pages =
            TracePages::open(setup.instance(), cpus, decoder.layout().page_size()).map_err(failed)?;
        pages.max_bytes = max_bytes(FIRST_BUFFER_KIB);
        notes.extend(missing.remarks());
        let (notes_dropped, unread, shown_unread) = (0, 0, 0);
        let buffer_kib = FIRST_BUFFER_KIB;
        let ftrace = Ftrace {
            pages,
            setup,
            decoder,
            notes,
            buffer_kib,
            notes_dropped,
            unread,
            shown_unread,
            _tracing: tracing,
        };
        Ok((ftrace, names))
    }

    /// Time up to which all events have been taken; a read error is noted and gives the present
    /// time.
    fn note(&mut self, taken: std::io::Result<Nanos>) -> Nanos {
        taken.unwrap_or_else(|error| {
            let note = format!("reading the trace failed: {error}");
            if self.notes.contains(&note) {
            } else if self.notes.len() < MAX_NOTES {
                self.notes.push(note);
            } else {
                self.notes_dropped += 1;
            }
            clock::monotonic()
        })
    }
}

/// Notes on tracing by other programs, which costs time too.
fn tracing_of_other_programs(tracing: &Tracing) -> Vec<String> {
    let (others, mut notes) = (tracing.others(), Vec::new());
    let foreign = others.tracer != "nop" && !others.tracer.is_empty() && others.on != Some(false);
    if foreign {
        notes.push(format!("another program is tracing with {}, which costs time too", others.tracer));
    }
    if others.events == Some(true) && others.on != Some(false) {
        notes.push("another program has events enabled at the top level, which cost time too".to_owned());
    }
    notes
}

impl HeldEvents for Ftrace {
    fn cpus(&self) -> Vec<Cpu> {
        self.pages.cpus.iter().map(|cpu_pages| cpu_pages.cpu).collect()
    }

    fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage {
        let Some(cpu_pages) = self.pages.of(cpu) else { return EventCoverage::default() };
        let at = cpu_pages.holding(from);
        let Some(first) = cpu_pages.pages.get(at) else { return EventCoverage::default() };
        let (before, left_out) = since_switch_before(cpu_pages, at, from, &self.decoder);
        let mut implied = self.setup.implied();
        let mut complete = |event: Raw| match &mut implied {
            Some(implied) => implied.complete(event, each),
            None => each(event),
        };
        before.into_iter().for_each(&mut complete);
        let mut coverage = EventCoverage { begins: first.start, left_out, ..EventCoverage::default() };
        for (number, page) in cpu_pages.pages.iter().enumerate().skip(at) {
            if page.start > to {
                break;
            }
            let notes = self.decoder.page(cpu, &page.bytes, &mut complete);
            self.unread += unread_in(&notes);
            let lost = if number == at { &mut coverage.lost_before } else { &mut coverage.lost };
            *lost += count(notes.lost);
        }
        if let Some(mut implied) = implied {
            implied.finish(each);
        }
        coverage
    }

    fn oldest(&self, cpu: Cpu) -> Option<Nanos> {
        Some(self.pages.of(cpu)?.pages.front()?.start)
    }

    fn lacks_older(&self, cpu: Cpu) -> bool {
        self.pages.of(cpu).is_some_and(|cpu_pages| cpu_pages.lacks_older(&self.decoder))
    }
}

impl EventSource for Ftrace {
    fn arm(&mut self, level: RecordingLevel, scope: &Scope) -> Result<()> {
        self.setup.arm(level, scope).map_err(|error| {
            let what = "cannot switch the tracing instance on";
            Failure::of_call(what, &error, Exit::NotSupported, "`onbeat measure` works without")
        })?;
        // Events recorded before belong to another level.
        let _ = self.pages.take(&self.decoder, WantedSpan::LATEST, &mut |_, _| ());
        self.pages.forget();
        Ok(())
    }

    fn set_threads(&mut self, scope: &Scope) {
        self.setup.set_threads(scope);
    }

    fn end_syscalls(&mut self) {
        self.setup.end_syscalls();
    }

    fn add_stacks(&mut self, scope: &Scope) {
        self.setup.add_stacks(scope);
    }

    fn resize(&mut self, kib: u64) {
        let mut wanted = kib;
        while wanted != self.buffer_kib && wanted >= MIN_BUFFER_KIB {
            match self.setup.resize(wanted) {
                Ok(()) => {
                    self.buffer_kib = wanted;
                    self.pages.max_bytes = max_bytes(wanted);
                    return;
                }
                Err(error) => {
                    self.notes.push(format!("no memory for buffers of {wanted} KiB per CPU ({error})"));
                    wanted /= 2;
                }
            }
        }
    }

    fn set_read_limit(&mut self, until: Nanos) {
        self.pages.until = until;
    }

    fn collect(&mut self, span: WantedSpan) {
        let taken = self.pages.take(&self.decoder, span, &mut |_, _| ());
        self.note(taken);
    }

    fn collect_each(&mut self, each: &mut dyn FnMut(Raw)) -> Collected {
        let (mut lost_before, mut unread) = (None, 0);
        let decoder = &self.decoder;
        self.pages.max_bytes =
            max_bytes(self.buffer_kib).min(MAX_BYTES_AT_ONCE / self.pages.cpus.len().max(1));
        let taken = self.pages.take(decoder, WantedSpan::LATEST, &mut |cpu, page| {
            let notes = decoder.page(cpu, &page.bytes, &mut |event| each(event));
            // Lost events were overwritten before the page, and no record of the page is older than
            // its start.
            if notes.lost != Lost::Nothing {
                lost_before = lost_before.max(Some(page.start));
            }
            unread += unread_in(&notes);
        });
        self.shown_unread += unread;
        Collected { lost_before, complete_until: self.note(taken) }
    }

    fn each_held(&self, each: &mut dyn FnMut(Raw)) {
        for cpu_pages in &self.pages.cpus {
            for page in &cpu_pages.pages {
                self.decoder.page(cpu_pages.cpu, &page.bytes, &mut |event| each(event));
            }
        }
    }

    fn busiest_rate(&self, elapsed: Nanos) -> u64 {
        self.pages.cpus.iter().map(|cpu_pages| cpu_pages.rate(elapsed)).max().unwrap_or(0)
    }

    fn overwritten(&self) -> u64 {
        let stats = self.pages.cpus.iter().filter_map(|own| self.setup.instance().stats(own.cpu).ok());
        stats.map(|stats| stats.lost()).sum()
    }

    fn account(&mut self, into: &mut run::Recorder) {
        into.events = self.setup.events();
        into.missing.clone_from(&self.setup.missing);
        into.stacks = self.setup.stacks();
        into.buffer_kib = self.buffer_kib;
        self.notes.append(&mut self.setup.refused);
        let refused = self.decoder.refused().iter();
        let refused = refused.map(|(wanted, why)| format!("{}:{}: {why}", wanted.system, wanted.event));
        into.notes = self.notes.iter().cloned().chain(refused).collect();
        let headless = self.pages.cpus.iter().map(|cpu_pages| cpu_pages.headless).sum::<u64>();
        let unread = self.unread.max(self.shown_unread) + headless;
        if unread > 0 {
            into.notes
                .push(format!("{} of the trace could not be parsed", several(unread, "record", "records")));
        }
        if self.notes_dropped > 0 {
            into.notes.push(format!(
                "{} not listed",
                several(self.notes_dropped, "further note is", "further notes are")
            ));
        }
    }
}

fn unread_in(notes: &PageNotes) -> u64 {
    notes.malformed + u64::from(notes.cut)
}

fn count(lost: Lost) -> u64 {
    match lost {
        Lost::Nothing => 0,
        Lost::Records(n) => n.max(1),
        Lost::Some => 1,
    }
}

/// Events from pages before number `at`, back to the last one with a switch; none if that page has
/// one before `from`. The second value counts events that were left out.
fn since_switch_before(
    cpu_pages: &CpuTracePages,
    at: usize,
    from: Nanos,
    decoder: &Decoder,
) -> (Vec<Raw>, u64) {
    let (mut found, mut left_out): (Vec<Raw>, u64) = (Vec::new(), 0);
    for page in cpu_pages.pages.iter().take(at + 1).rev().take(MAX_PAGES_BACK) {
        let mut events = Vec::new();
        let mut switched = false;
        decoder.page(cpu_pages.cpu, &page.bytes, &mut |event: Raw| {
            if event.time < from {
                switched |= matches!(event.what, What::Switch { .. });
                events.push(event);
            }
        });
        // The caller reads the page of `from` itself again.
        if !std::ptr::eq(page, &cpu_pages.pages[at]) {
            events = since_last_switch(events, &mut left_out);
            events.append(&mut found);
            found = events;
        }
        if switched {
            break;
        }
    }
    (found, left_out)
}
