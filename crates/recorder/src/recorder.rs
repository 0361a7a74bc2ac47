//! Arming: everything that needs privileges is opened here, so that they can be dropped afterwards.

use std::sync::atomic::Ordering::SeqCst;

use host::bpf::{Attached, KernelTypes, Link, Program};
use host::tracefs::Tracing;
use host::{MachineFiles, clock, rt};
use model::error::{Failure, Result};
use model::units::{Cpu, CpuSet, Nanos};

use crate::assembler::BadCode;
use crate::btf::Btf;
use crate::fields::{ByFormat, ByTypes, EVENTS, EXIT, EXPIRE, EventFields};
use crate::fields::{RELEASE, START, SUSPEND, SWITCH, WAKING};
use crate::held::{Held, ThreadSums};
use crate::layout::{THREADS_LIMIT, config};
use crate::learn::{self, Learned};
use crate::programs::{self, Functions, Maps, exit, pulse, release, switch, timers, waking};
use crate::refusals;
use crate::slots::{ChosenThread, Slots};

/// Source from which events are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// The kernel's types if it has them, else the events' formats; a ring if the kernel accepts no
    /// programs.
    #[default]
    Best,
    /// Programs by the kernel's types.
    Types,
    /// Programs by the events' formats.
    Format,
    /// No programs: the events go through a ring to this process.
    Ring,
}

impl Reading {
    /// The ways of programs, in the order in which they are tried.
    fn by_programs(self) -> &'static [Reading] {
        match self {
            Reading::Best => &[Reading::Types, Reading::Format],
            Reading::Types => &[Reading::Types],
            Reading::Format => &[Reading::Format],
            Reading::Ring => &[],
        }
    }
}

impl EventFields {
    fn reading(&self) -> Reading {
        match self {
            EventFields::Types(_) => Reading::Types,
            EventFields::Format(_) => Reading::Format,
        }
    }
}

/// Configuration of a recorder.
#[derive(Clone, Debug)]
pub struct Options {
    pub reading: Reading,
    /// Record all real-time threads, now and later; else those named by [`KernelRecorder::choose`].
    pub all: bool,
    /// Number of threads that may have separate histograms, at most [`THREADS_LIMIT`].
    pub chosen_limit: usize,
    /// Also record S, the duration of the switch: one more program at each switch of all threads.
    pub switch: bool,
    /// CPU of the pulse, a timer that shows that all CPUs stood still.
    pub pulse: Option<Cpu>,
    /// Also return the largest wake-ups of each CPU and each chosen thread.
    pub each: bool,
    /// Size of a CPU's ring, unless it follows from the number of CPUs.
    pub ring_kib: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            reading: Reading::Best,
            all: true,
            chosen_limit: THREADS_LIMIT,
            switch: false,
            pulse: None,
            each: false,
            ring_kib: None,
        }
    }
}

/// The armed recorder. The programs are detached on drop, and at any end of this process.
pub struct KernelRecorder {
    /// First, so that programs end before their maps do.
    links: Vec<Link>,
    pub(crate) programs: Vec<(&'static str, Program)>,
    pub(crate) maps: Held,
    pub(crate) slots: Slots,
    pub(crate) began: Nanos,
    pub(crate) cpu_counts: Vec<[u64; crate::layout::COUNTS]>,
    pub(crate) missed: Option<u64>,
    pub(crate) suspends: u32,
    pub(crate) each: bool,
    about: About,
}

/// Properties of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Source of the events; never `Best`, once it is armed.
    pub reading: Reading,
    /// Reason for which a better way was not available, if one was wanted.
    pub why_not_better: Option<String>,
    /// Ways to sleep whose timers are not known: these wake-ups have no T.
    pub unlearned: Vec<&'static str>,
    /// True if the kernel numbers threads differently from this process, as in a PID namespace:
    /// threads can then neither be chosen nor looked up for their switches.
    pub other_numbers: bool,
    /// True if suspends are seen; otherwise latencies may span one.
    pub sees_suspends: bool,
    /// True if the programs are machine code; interpreted ones cost about six times as much.
    pub compiled: bool,
    /// CPU of the pulse, if there is one.
    pub pulse: Option<Cpu>,
    /// Kernel memory of the maps or of the rings, in bytes.
    pub kernel_memory: usize,
}

/// The refusal of a second way to read events, with that of the first.
fn both(first: Option<Failure>, second: Failure) -> Failure {
    let Some(first) = first else { return second };
    Failure { exit: second.exit, message: format!("{}; {}", first.message, second.message) }
}

impl KernelRecorder {
    /// Loads and starts the programs.
    pub fn arm(options: &Options) -> Result<KernelRecorder> {
        refuse_old_preempt_rt()?;
        let cpus = cpus_of_the_machine()?;
        let maps = Held::new(cpus.possible, options.chosen_limit.min(THREADS_LIMIT), options.switch)?;
        maps.set_clocks_apart();
        let mut refused: Option<Failure> = None;
        let mut opened = None;
        // Only the types describe the tracepoint of S.
        let types: &[Reading] = &[Reading::Types];
        let best_of_switch = options.switch && options.reading == Reading::Best;
        for way in if best_of_switch { types } else { options.reading.by_programs() } {
            match fields_by(*way)
                .and_then(|fields| with_switch(options.switch, fields))
                .and_then(|fields| open(&fields, &maps, cpus.online).map(|open| (fields, open)))
            {
                Ok(found) => {
                    opened = Some(found);
                    break;
                }
                Err(failure) => {
                    refused = Some(both(refused, failure));
                }
            }
        }
        let Some((fields, (learned, programs))) = opened else {
            return Err(refused.unwrap_or_else(|| Failure::not_supported("no recording method was chosen")));
        };
        let other_numbers = learned.tid.is_some_and(|tid| tid != rt::thread_id() as u32);
        let mut about = About {
            reading: fields.reading(),
            why_not_better: refused.map(|failure| failure.message),
            unlearned: learned.unknown,
            other_numbers,
            sees_suspends: programs.iter().any(|(name, _)| *name == EVENTS[SUSPEND].1),
            compiled: programs
                .iter()
                .all(|(_, program)| program.counts().is_ok_and(|counts| counts.machine_code > 0)),
            pulse: None,
            kernel_memory: maps.bytes,
        };
        refuse_interpreted(&programs)?;
        let mut slots = Slots::new(!other_numbers, options.chosen_limit.min(THREADS_LIMIT));
        if options.all {
            slots.claim_present(&maps.slots)?;
            maps.config.u32(0, config::CLAIM).store(1, SeqCst);
        }
        let mut links = Vec::new();
        for (name, program) in &programs {
            links.push(Link::new(program, cpus.online).map_err(|error| refusals::no_link(name, &error))?);
        }
        // Without it less is named, and nothing else is missing.
        let pulse = options.pulse.and_then(|cpu| pulse_on(cpu, &fields, &maps.numbers));
        about.pulse = options.pulse.filter(|_| pulse.is_some());
        links.extend(pulse);
        let mut recorder = KernelRecorder {
            links,
            programs,
            began: clock::monotonic(),
            cpu_counts: vec![Default::default(); cpus.possible],
            missed: None,
            suspends: 0,
            each: options.each,
            maps,
            slots,
            about,
        };
        recorder.missed = recorder.missed_by_kernel();
        // Threads that slept during arming were not recorded.
        recorder.slots.look(&recorder.maps.slots)?;
        Ok(recorder)
    }

    /// Properties of the recording.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Gives a thread separate histograms from its next wake-up on.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        if self.about.other_numbers {
            return Err(Failure::not_supported(
                "threads cannot be chosen in a PID namespace: run onbeat outside the container",
            ));
        }
        self.slots.choose(&self.maps.slots, tid)
    }

    /// The sums of a chosen thread's latencies, as they grow.
    pub fn sums_of(&self, tid: u32) -> Result<ThreadSums> {
        let is_it = |chosen: &Option<ChosenThread>| chosen.as_ref().is_some_and(|chosen| chosen.tid == tid);
        let number = self.slots.chosen.iter().position(is_it);
        let number = number.ok_or_else(|| Failure::usage(format!("thread {tid} was not chosen")))?;
        self.maps.sums_of(number)
    }

    /// Runs that the kernel has skipped, of all programs that count.
    pub(crate) fn missed_by_kernel(&self) -> Option<u64> {
        let counting = self.programs.iter().filter(|(name, _)| *name != EVENTS[RELEASE].1);
        counting.map(|(_, program)| program.counts().ok()?.missed).sum()
    }

    /// Detaches the programs; counts can still be taken.
    pub fn disarm(&mut self) {
        self.links.clear();
    }
}

fn pulse_on(cpu: Cpu, fields: &EventFields, maps: &Maps) -> Option<Link> {
    let code = pulse::pulsed(fields, maps).ok()?;
    let program = Program::load("onbeat_pulse", Attached::Pulse(pulse::PERIOD), &code).ok()?;
    Link::new(&program, cpu.0).ok()
}

pub(crate) struct Cpus {
    /// One more than the largest number.
    possible: usize,
    /// The first that is online.
    online: u32,
    pub all_possible: CpuSet,
    pub all_online: CpuSet,
}

pub(crate) fn cpus_of_the_machine() -> Result<Cpus> {
    let list = |name: &str| {
        let text = MachineFiles::live().read_text(&format!("/sys/devices/system/cpu/{name}"));
        let set = text.known().and_then(|text| CpuSet::parse(text.trim()).ok());
        set.filter(|set| !set.is_empty()).ok_or_else(|| {
            Failure::not_supported(format!("cannot read /sys/devices/system/cpu/{name}: mount sysfs"))
        })
    };
    let (all_possible, all_online) = (list("possible")?, list("online")?);
    let largest = all_possible.iter().map(|cpu| cpu.0).max().unwrap_or(0);
    let first = all_online.iter().map(|cpu| cpu.0).min().unwrap_or(0);
    Ok(Cpus { possible: largest as usize + 1, online: first, all_possible, all_online })
}

/// PREEMPT_RT before 5.10 could freeze with a program in the scheduler, or had none.
fn refuse_old_preempt_rt() -> Result<()> {
    let real_time = MachineFiles::live().read_text("/sys/kernel/realtime");
    let is_real_time = real_time.known().is_some_and(|text| text.trim() == "1");
    let release = host::release();
    if is_real_time && version_of(&release).is_some_and(|version| version < (5, 10)) {
        return Err(Failure::not_supported(format!(
            "BPF programs are not safe in PREEMPT_RT before 5.10 (this is {release}): use a newer kernel"
        )));
    }
    Ok(())
}

/// Refuses interpreted programs if these see a wrong CPU.
fn refuse_interpreted(programs: &[(&'static str, Program)]) -> Result<()> {
    let is_interpreted = |program: &Program| program.counts().is_ok_and(|counts| counts.machine_code == 0);
    if programs.iter().any(|(_, program)| is_interpreted(program)) {
        return refusals::refuse_interpreted(&host::machine(), version_of(&host::release()));
    }
    Ok(())
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn fields_by(way: Reading) -> Result<EventFields> {
    let unsupported = |why: String| Failure::not_supported(why);
    if way == Reading::Format {
        let tracing = Tracing::open().map_err(refusals::no_tracing)?;
        return ByFormat::read(|path| tracing.read(path)).map(EventFields::Format).map_err(unsupported);
    }
    let mut types = KernelTypes::read().map_err(|error| {
        unsupported(format!("this kernel does not describe its types (/sys/kernel/btf/vmlinux: {error})"))
    })?;
    let found = Btf::parse(types.bytes()).and_then(ByTypes::find).map(EventFields::Types);
    found.map_err(unsupported)
}

/// Returns the fields if S is available or not wanted.
fn with_switch(wanted: bool, fields: EventFields) -> Result<EventFields> {
    let why = match &fields {
        _ if !wanted => return Ok(fields),
        EventFields::Types(types) => match &types.exit {
            Ok(_) => return Ok(fields),
            Err(why) => why.as_str(),
        },
        EventFields::Format(_) => "its end is only visible with the kernel's types",
    };
    Err(no_switch(why))
}

/// Failure for a recording of S.
pub(crate) fn no_switch(why: &str) -> Failure {
    Failure::not_supported(format!("the switch (S) cannot be recorded: {why}; record without it"))
}

type Opened = (Learned, Vec<(&'static str, Program)>);

/// Learns the timers and loads all programs; the order is that of linking.
fn open(fields: &EventFields, maps: &Held, cpu: u32) -> Result<Opened> {
    let learned = learn::learn(fields, &maps.numbers, &maps.config, cpu)?;
    let numbers = &maps.numbers;
    type Generator = fn(&EventFields, &Maps, &Functions) -> Result<Vec<u64>, BadCode>;
    let generators: [(usize, Generator); 7] = [
        (SWITCH, |fields, maps, _| switch::switched(fields, maps)),
        (WAKING, |fields, maps, _| waking::woken(fields, maps)),
        (EXPIRE, timers::fired),
        (START, timers::started),
        (SUSPEND, |fields, maps, _| programs::suspended(fields, maps)),
        (EXIT, |fields, maps, _| exit::gone_on(fields, maps)),
        (RELEASE, |fields, maps, _| release::released(fields, maps)),
    ];
    let mut loaded = Vec::new();
    for (event, generator) in generators {
        // Without a known timer there is nothing to look for; a kernel may have no suspend; S is
        // optional.
        let wanted = match event {
            EXPIRE | START => !learned.functions.is_empty(),
            EXIT => numbers.switched.is_some(),
            _ => true,
        };
        let Some(attached) = fields.attached(event).filter(|_| wanted) else {
            continue;
        };
        let name = EVENTS[event].1;
        let code = generator(fields, numbers, &learned.functions)
            .map_err(|bad| Failure::internal(format!("invalid program for {name} ({bad}): report this")))?;
        match Program::load(&format!("onbeat_{name}"), attached, &code) {
            Ok(program) => loaded.push((name, program)),
            // Without it less is named, and nothing else is missing.
            Err(_) if event == RELEASE => {}
            Err(refused) => return Err(refusals::no_program(name, &refused)),
        }
    }
    Ok((learned, loaded))
}
