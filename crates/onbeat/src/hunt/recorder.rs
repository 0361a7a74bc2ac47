//! The flight recorder: an armed instance, its pages, and the names of what they hold.

use super::names::{MissingNames, Names};
use super::pages::{TracePages, WantedSpan};
use super::scope::Scope;
use super::setup::{EventSetup, RecordingLevel};
use super::window_events::{WindowEvents, WindowRequest, window_events};
use host::clock;
use host::tracefs::{NotHere, Tracing};
use model::error::{Exit, Outcome, Trouble, run_with};
use model::text::several;
use model::units::{Cpu, CpuSet, Nanos};
use trace::decode::Decoder;
use trace::event::{Raw, What};
use trace::page::Lost;
use trace::symbols::NoNames;
use trace::window::Window;

/// The buffer per CPU while the rounds are on.
const FIRST_BUFFER_KIB: u64 = 1 << 10;

/// Remarks beyond these are counted.
const MAX_NOTES: usize = 20;

/// Less than this holds no window.
const MIN_BUFFER_KIB: u64 = 64;

/// Of a flood so much is looked at before what was found in it is explained; two records and a half to a hundred bytes.
const MAX_BYTES_AT_ONCE: usize = 4 << 20;

/// What is read of one CPU in one round: a buffer that fills as fast as it is read is left after its size twice over.
fn max_bytes(buffer_kib: u64) -> usize {
    2 * (buffer_kib << 10) as usize
}

/// An instance of our own, armed or not, and what was taken from it.
pub struct Recorder {
    /// Declared before the setup: pipes are closed before their instance is removed.
    pages: TracePages,
    setup: EventSetup,
    decoder: Decoder,
    names: Names,
    /// Who is looked at closely.
    pub scope: Scope,
    /// What is to be said of how it came about.
    pub notes: Vec<String>,
    /// Size of the buffer per CPU.
    pub buffer_kib: u64,
    /// Remarks that found no room.
    notes_dropped: u64,
    /// Records in windows that could not be understood, and pages that ended within one.
    unread: u64,
    /// The same of all pages, where all are looked at.
    seen_unread: u64,
    /// Kept open for as long as the instance: what was mounted for it goes with it.
    _tracing: Tracing,
}

impl Recorder {
    /// Opens an instance with buffers for these CPUs.
    ///
    /// Refuses where there is no tracing, or none for this user, with what is possible instead.
    pub fn open(cpus: &CpuSet) -> Outcome<Recorder> {
        let tracing = Tracing::open().map_err(refusal)?;
        let mut notes = Vec::new();
        let others = tracing.others();
        let foreign = others.tracer != "nop" && !others.tracer.is_empty() && others.on != Some(false);
        if foreign {
            notes.push(format!("somebody traces with {} meanwhile, which costs time too", others.tracer));
        }
        if others.events == Some(true) && others.on != Some(false) {
            notes.push("somebody has events switched on at the top level, which cost time too".to_owned());
        }
        let failed = |error: std::io::Error| {
            let permitted = error.kind() != std::io::ErrorKind::PermissionDenied;
            let instead = "`onbeat measure` works without".to_owned();
            let remedy = if permitted { instead } else { run_with("CAP_DAC_OVERRIDE") };
            Trouble::of_call("cannot make a tracing instance", &error, Exit::NotSupported, &remedy)
        };
        let setup = EventSetup::open(&tracing).map_err(failed)?;
        let (names, missing) = Names::of_this_machine(&tracing.read("printk_formats").unwrap_or_default());
        let text = names.symbols().and_then(|symbols| symbols.address_of("_stext")).unwrap_or(0);
        let decoder = setup.decoder(&tracing, text).map_err(|what| {
            Trouble::not_supported(format!(
                "the kernel's trace pages have an unknown form ({what}): `onbeat measure` works without"
            ))
        })?;
        setup.resize(FIRST_BUFFER_KIB).map_err(failed)?;
        let mut pages =
            TracePages::open(setup.instance(), cpus, decoder.layout().page_size()).map_err(failed)?;
        pages.max_bytes = max_bytes(FIRST_BUFFER_KIB);
        notes.extend(remarks(&missing));
        let scope = Scope::default();
        Ok(Recorder {
            pages,
            setup,
            decoder,
            names,
            scope,
            notes,
            buffer_kib: FIRST_BUFFER_KIB,
            notes_dropped: 0,
            unread: 0,
            seen_unread: 0,
            _tracing: tracing,
        })
    }

    /// Switches to that much; what was taken so far is forgotten. Nobody must be measuring meanwhile.
    pub fn arm(&mut self, level: RecordingLevel) -> Outcome<()> {
        self.setup.arm(level, &self.scope).map_err(|error| {
            let what = "cannot switch the tracing instance on";
            Trouble::of_call(what, &error, Exit::NotSupported, "`onbeat measure` works without")
        })?;
        // What was recorded before belongs to nothing.
        let _ = self.pages.take(&self.decoder, WantedSpan::LATEST, &mut |_, _| ());
        self.pages.forget();
        Ok(())
    }

    /// Gives each CPU a buffer of that size, or as near as the kernel has memory for.
    pub fn resize(&mut self, kib: u64) {
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

    /// Takes what the buffers hold, as much as is needed.
    pub fn take(&mut self, span: WantedSpan) {
        let taken = self.pages.take(&self.decoder, span, &mut |_, _| ());
        self.note(taken);
    }

    /// Takes what the buffers hold, and shows each event of it. Before when events are missing, if any are, and up to when
    /// all have been seen: of a flood the rest is for the next time.
    pub fn take_seeing(&mut self, each: &mut impl FnMut(Raw)) -> (Option<Nanos>, Nanos) {
        let (mut gap, mut unread) = (None, 0);
        let decoder = &self.decoder;
        self.pages.max_bytes =
            max_bytes(self.buffer_kib).min(MAX_BYTES_AT_ONCE / self.pages.cpus.len().max(1));
        let taken = self.pages.take(decoder, WantedSpan::LATEST, &mut |cpu, page| {
            let notes = decoder.page(cpu, &page.bytes, each);
            // What is lost was overwritten before the page, and none of the page's records is older than its start.
            if notes.lost != Lost::Nothing {
                gap = gap.max(Some(page.start));
            }
            unread += notes.malformed + u64::from(notes.cut);
        });
        self.seen_unread += unread;
        (gap, self.note(taken))
    }

    /// No page is taken after that time.
    pub fn set_read_limit(&mut self, until: Nanos) {
        self.pages.until = until;
    }

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

    /// Takes stacks where the timers expire that were learned of meanwhile.
    pub fn stacks_at_timers(&mut self) {
        self.setup.add_stacks(&self.scope);
    }

    /// Learns which timers the threads sleep on from what was recorded while only those were armed.
    pub fn learn(&mut self) {
        self.take(WantedSpan::LATEST);
        let mut starts = Vec::new();
        for cpu_pages in &self.pages.cpus {
            for page in &cpu_pages.pages {
                self.decoder.page(cpu_pages.cpu, &page.bytes, &mut |event: Raw| {
                    if let What::TimerStart { timer, function, .. } = event.what {
                        starts.push((event.pid, function, timer));
                    }
                });
            }
        }
        self.scope.learn(&starts);
    }

    /// Bytes per second of the busiest CPU, from what was taken of it since it was armed, `elapsed` ago.
    pub fn busiest_rate(&self, elapsed: Nanos) -> u64 {
        self.pages.cpus.iter().map(|cpu_pages| cpu_pages.rate(elapsed)).max().unwrap_or(0)
    }

    /// How far back the CPU's buffer and what was taken of it reach.
    pub fn depth(&self, cpu: Cpu) -> Option<Nanos> {
        let oldest = self.pages.of(cpu)?.pages.front()?.start;
        Some(clock::monotonic() - oldest)
    }

    /// Cuts a spike's window out of what was taken, with names instead of addresses; how far back it reaches is in it.
    pub fn window(&mut self, request: &WindowRequest, cycle: Option<u64>, own: bool) -> Window {
        let WindowEvents { events, lost, too_late, left_out, unread, .. } =
            window_events(request, &self.pages, &self.decoder);
        self.unread += unread;
        self.names.next_window();
        let events = events.into_iter().map(|event| event.named(&mut self.names)).collect();
        Window {
            cpu: request.cpu,
            cycle,
            expected_ns: request.expected,
            actual_ns: request.actual,
            victim: request.victim,
            own,
            events_lost: lost,
            begins_late: too_late,
            left_out,
            events,
        }
    }

    /// Events that the kernel overwrote in all, and those it could not write at all.
    pub fn overwritten(&self) -> u64 {
        let stats =
            self.pages.cpus.iter().filter_map(|cpu_pages| self.setup.instance().stats(cpu_pages.cpu).ok());
        stats.map(|stats| stats.lost()).sum()
    }

    /// The events that are armed, those that the kernel lacks, and where stacks are taken.
    pub fn account(&mut self, into: &mut model::run::Recorder) {
        into.events = self.setup.events();
        into.missing.clone_from(&self.setup.missing);
        into.stacks = self.setup.stacks();
        into.buffer_kib = self.buffer_kib;
        self.notes.append(&mut self.setup.refused);
        let refused = self.decoder.refused().iter();
        let unread = refused.map(|(wanted, why)| format!("{}:{}: {why}", wanted.system, wanted.event));
        into.notes = self.notes.iter().cloned().chain(unread).collect();
        let headless = self.pages.cpus.iter().map(|cpu_pages| cpu_pages.headless).sum::<u64>();
        let unread = self.unread.max(self.seen_unread) + headless;
        if unread > 0 {
            into.notes.push(format!(
                "{} of the trace could not be understood",
                several(unread, "record", "records")
            ));
        }
        if self.notes_dropped > 0 {
            into.notes.push(format!(
                "{} not listed",
                several(self.notes_dropped, "further remark is", "further remarks are")
            ));
        }
    }
}

/// What is not said for want of names or code.
fn remarks(missing: &MissingNames) -> Vec<String> {
    let mut remarks = Vec::new();
    match missing.names {
        None => {}
        Some(NoNames::Hidden) => remarks.push(
            "the kernel hides its addresses, so functions have no names: sysctl kernel.kptr_restrict=1 lets root see them".to_owned(),
        ),
        Some(NoNames::TooMany) => remarks.push("the kernel lists more functions than are read: they have no names".to_owned()),
        Some(NoNames::Empty) => remarks.push("the kernel has no list of its functions (CONFIG_KALLSYMS): they have no names".to_owned()),
    }
    if missing.skipped > 0 {
        remarks
            .push(format!("{} lines of the kernel's list of functions could not be read", missing.skipped));
    }
    if let Some(errno) = missing.code {
        let why = match errno {
            0 => "it is no core file".to_owned(),
            errno => std::io::Error::from_raw_os_error(errno).to_string(),
        };
        remarks.push(format!(
            "the kernel's code cannot be read through /proc/kcore ({why}): where interrupts came on again is told by the names of functions alone"
        ));
    }
    remarks
}

/// Why there can be no hunt here, and what there can be.
fn refusal(why: NotHere) -> Trouble {
    let instead = "`onbeat measure` works without";
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    match why {
        NotHere::NoTracefs => {
            Trouble::not_supported(format!("this kernel has no event tracing (CONFIG_FTRACE): {instead}"))
        }
        NotHere::NotMounted => Trouble::not_supported(
            "tracefs is not mounted, and kernels before 5.2 mount it in sight only: mount -t tracefs nodev /sys/kernel/tracing",
        ),
        NotHere::NotPermitted(errno) => Trouble::not_permitted(format!(
            "tracefs may not be used here ({}): {}, and outside of lockdown; {instead}",
            error(errno),
            run_with("CAP_SYS_ADMIN")
        )),
        NotHere::Failed(errno) => {
            Trouble::of_call("tracefs cannot be opened", &error(errno), Exit::NotSupported, instead)
        }
    }
}
