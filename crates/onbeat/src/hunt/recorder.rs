//! The flight recorder: an armed instance, its pages, and the names of what they hold.

use super::arm::{Armory, Arms};
use super::cut::{Cut, Wish, cut};
use super::names::{Lacking, Names};
use super::scope::Scope;
use super::sheets::{Need, Sheets};
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
const FIRST_KIB: u64 = 1 << 10;

/// Remarks beyond these are counted.
const NOTES: usize = 20;

/// Less than this holds no window.
const LEAST_KIB: u64 = 64;

/// Of a flood so much is looked at before what was found in it is explained; two records and a half to a hundred bytes.
const SEEN_AT_ONCE: usize = 4 << 20;

/// What is read of one CPU in one round: a buffer that fills as fast as it is read is left after its size twice over.
fn most(buffer_kib: u64) -> usize {
    2 * (buffer_kib << 10) as usize
}

/// An instance of our own, armed or not, and what was taken from it.
pub struct Recorder {
    /// Declared before the armory: pipes are closed before their instance is removed.
    sheets: Sheets,
    armory: Armory,
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
        let armory = Armory::open(&tracing).map_err(failed)?;
        let (names, lacking) = Names::of_this_machine(&tracing.read("printk_formats").unwrap_or_default());
        let text = names.symbols().and_then(|symbols| symbols.address_of("_stext")).unwrap_or(0);
        let decoder = armory.decoder(&tracing, text).map_err(|what| {
            Trouble::not_supported(format!(
                "the kernel's trace pages have an unknown form ({what}): `onbeat measure` works without"
            ))
        })?;
        armory.resize(FIRST_KIB).map_err(failed)?;
        let mut sheets =
            Sheets::open(armory.instance(), cpus, decoder.layout().page_size()).map_err(failed)?;
        sheets.most = most(FIRST_KIB);
        notes.extend(remarks(&lacking));
        let scope = Scope::default();
        Ok(Recorder {
            sheets,
            armory,
            decoder,
            names,
            scope,
            notes,
            buffer_kib: FIRST_KIB,
            notes_dropped: 0,
            unread: 0,
            seen_unread: 0,
            _tracing: tracing,
        })
    }

    /// Switches to that much; what was taken so far is forgotten. Nobody must be measuring meanwhile.
    pub fn arm(&mut self, arms: Arms) -> Outcome<()> {
        self.armory.arm(arms, &self.scope).map_err(|error| {
            let what = "cannot switch the tracing instance on";
            Trouble::of_call(what, &error, Exit::NotSupported, "`onbeat measure` works without")
        })?;
        // What was recorded before belongs to nothing.
        let _ = self.sheets.take(&self.decoder, Need::ALL, &mut |_, _| ());
        self.sheets.forget();
        Ok(())
    }

    /// Gives each CPU a buffer of that size, or as near as the kernel has memory for.
    pub fn resize(&mut self, kib: u64) {
        let mut wanted = kib;
        while wanted != self.buffer_kib && wanted >= LEAST_KIB {
            match self.armory.resize(wanted) {
                Ok(()) => {
                    self.buffer_kib = wanted;
                    self.sheets.most = most(wanted);
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
    pub fn take(&mut self, need: Need) {
        let taken = self.sheets.take(&self.decoder, need, &mut |_, _| ());
        self.note(taken);
    }

    /// Takes what the buffers hold, and shows each event of it. Before when events are missing, if any are, and up to when
    /// all have been seen: of a flood the rest is for the next time.
    pub fn take_seeing(&mut self, each: &mut impl FnMut(Raw)) -> (Option<Nanos>, Nanos) {
        let (mut gap, mut unread) = (None, 0);
        let decoder = &self.decoder;
        self.sheets.most = most(self.buffer_kib).min(SEEN_AT_ONCE / self.sheets.stacks.len().max(1));
        let taken = self.sheets.take(decoder, Need::ALL, &mut |cpu, sheet| {
            let notes = decoder.page(cpu, &sheet.bytes, each);
            // What is lost was overwritten before the page, and none of the page's records is older than its start.
            if notes.lost != Lost::Nothing {
                gap = gap.max(Some(sheet.start));
            }
            unread += notes.malformed + u64::from(notes.cut);
        });
        self.seen_unread += unread;
        (gap, self.note(taken))
    }

    /// No page is taken after that time.
    pub fn set_patience(&mut self, until: Nanos) {
        self.sheets.until = until;
    }

    fn note(&mut self, taken: std::io::Result<Nanos>) -> Nanos {
        taken.unwrap_or_else(|error| {
            let note = format!("reading the trace failed: {error}");
            if self.notes.contains(&note) {
            } else if self.notes.len() < NOTES {
                self.notes.push(note);
            } else {
                self.notes_dropped += 1;
            }
            clock::monotonic()
        })
    }

    /// Takes stacks where the timers expire that were learned of meanwhile.
    pub fn stacks_at_timers(&mut self) {
        self.armory.add_stacks(&self.scope);
    }

    /// Learns which timers the threads sleep on from what was recorded while only those were armed.
    pub fn learn(&mut self) {
        self.take(Need::ALL);
        let mut starts = Vec::new();
        for stack in &self.sheets.stacks {
            for sheet in &stack.sheets {
                self.decoder.page(stack.cpu, &sheet.bytes, &mut |event: Raw| {
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
        self.sheets.stacks.iter().map(|stack| stack.rate(elapsed)).max().unwrap_or(0)
    }

    /// How far back the CPU's buffer and what was taken of it reach.
    pub fn depth(&self, cpu: Cpu) -> Option<Nanos> {
        let oldest = self.sheets.of(cpu)?.sheets.front()?.start;
        Some(clock::monotonic() - oldest)
    }

    /// Cuts a spike's window out of what was taken, with names instead of addresses; how far back it reaches is in it.
    pub fn window(&mut self, wish: &Wish, cycle: Option<u64>, own: bool) -> Window {
        let Cut { events, lost, too_late, left_out, unread, .. } = cut(wish, &self.sheets, &self.decoder);
        self.unread += unread;
        self.names.next_window();
        let events = events.into_iter().map(|event| event.named(&mut self.names)).collect();
        Window {
            cpu: wish.cpu,
            cycle,
            expected_ns: wish.expected,
            actual_ns: wish.actual,
            victim: wish.victim,
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
            self.sheets.stacks.iter().filter_map(|stack| self.armory.instance().stats(stack.cpu).ok());
        stats.map(|stats| stats.lost()).sum()
    }

    /// The events that are armed, those that the kernel lacks, and where stacks are taken.
    pub fn account(&mut self, into: &mut model::run::Recorder) {
        into.events = self.armory.events();
        into.missing.clone_from(&self.armory.missing);
        into.stacks = self.armory.stacks();
        into.buffer_kib = self.buffer_kib;
        self.notes.append(&mut self.armory.refused);
        let refused = self.decoder.refused().iter();
        let unread = refused.map(|(wanted, why)| format!("{}:{}: {why}", wanted.system, wanted.event));
        into.notes = self.notes.iter().cloned().chain(unread).collect();
        let headless = self.sheets.stacks.iter().map(|stack| stack.headless).sum::<u64>();
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
fn remarks(lacking: &Lacking) -> Vec<String> {
    let mut remarks = Vec::new();
    match lacking.names {
        None => {}
        Some(NoNames::Hidden) => remarks.push(
            "the kernel hides its addresses, so functions have no names: sysctl kernel.kptr_restrict=1 lets root see them".to_owned(),
        ),
        Some(NoNames::TooMany) => remarks.push("the kernel lists more functions than are read: they have no names".to_owned()),
        Some(NoNames::Empty) => remarks.push("the kernel has no list of its functions (CONFIG_KALLSYMS): they have no names".to_owned()),
    }
    if lacking.skipped > 0 {
        remarks
            .push(format!("{} lines of the kernel's list of functions could not be read", lacking.skipped));
    }
    if let Some(errno) = lacking.code {
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
