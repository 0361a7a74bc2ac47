//! Arming: everything that takes privileges is opened here, so that they can be dropped afterwards.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use host::bpf::{ArrayMap, KernelTypes, Link, MapView, Program};
use host::tracefs::Tracing;
use host::{MachineFiles, clock, rt};
use model::error::{Failure, Result};
use model::units::{CpuSet, Nanos};

use crate::assembler::BadCode;
use crate::btf::Btf;
use crate::fields::{ByFormat, ByTypes, EVENTS, EXPIRE, EventFields, START, SUSPEND, SWITCH, WAKING};
use crate::layout::{SERIES, SLOTS, THREADS_LIMIT, config, cpu, histogram, record, saved, slot};
use crate::learn::{self, Learned};
use crate::programs::{self, Functions, Maps, switch, timers, waking};
use crate::refusals;
use crate::slots::{ChosenThread, Slots};

/// How the programs read events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// By the kernel's types where it has them, else by the events' formats.
    #[default]
    Best,
    /// By the kernel's types.
    Types,
    /// By the events' formats.
    Format,
}

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct Options {
    pub reading: Reading,
    /// All real-time threads, now and later; else those that [`KernelRecorder::choose`] names.
    pub all: bool,
    /// How many threads may have histograms of their own, at most [`THREADS_LIMIT`].
    pub chosen_limit: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { reading: Reading::Best, all: true, chosen_limit: THREADS_LIMIT }
    }
}

/// The armed recorder. Dropping it takes the programs off, as does any end of this process.
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
    about: About,
}

/// How it records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Whether by the kernel's types; else by the events' formats.
    pub by_types: bool,
    /// Why not by types, where they were wanted.
    pub why_not_types: Option<String>,
    /// Ways to sleep whose timers are not known: these wake-ups have no T.
    pub unlearned: Vec<&'static str>,
    /// Whether the kernel knows threads by other numbers than this process does, as in a PID
    /// namespace: threads can then neither be chosen nor asked for their switches.
    pub other_numbers: bool,
    /// Whether suspends are seen; else latencies may span one.
    pub sees_suspends: bool,
    /// Whether the programs are machine code; interpreted they cost about six times as much.
    pub compiled: bool,
    /// Kernel memory of the maps, in bytes.
    pub kernel_memory: usize,
}

/// The maps, and the small ones in memory.
pub(crate) struct Held {
    pub slots: ArrayMap,
    pub cpus: MapView,
    pub records: ArrayMap,
    pub threads: ArrayMap,
    pub config: MapView,
    numbers: Maps,
    bytes: usize,
    /// Kept open for the programs' sake.
    _kept: [ArrayMap; 3],
}

impl KernelRecorder {
    /// Loads the programs and lets them run.
    pub fn arm(options: &Options) -> Result<KernelRecorder> {
        refuse_old_preempt_rt()?;
        let cpus = cpus_of_the_machine()?;
        let maps = Held::new(cpus.possible, options.chosen_limit.min(THREADS_LIMIT))?;
        maps.set_clocks_apart();
        let mut refused: Option<Failure> = None;
        let ways: &[Reading] = match options.reading {
            Reading::Best => &[Reading::Types, Reading::Format],
            Reading::Types => &[Reading::Types],
            Reading::Format => &[Reading::Format],
        };
        let mut opened = None;
        for way in ways {
            match fields_by(*way)
                .and_then(|fields| open(&fields, &maps, cpus.online).map(|open| (fields, open)))
            {
                Ok(found) => {
                    opened = Some(found);
                    break;
                }
                Err(failure) => {
                    refused = Some(match refused {
                        Some(first) => Failure {
                            exit: failure.exit,
                            message: format!("{}; {}", first.message, failure.message),
                        },
                        None => failure,
                    });
                }
            }
        }
        let Some((fields, (learned, programs))) = opened else {
            return Err(
                refused.unwrap_or_else(|| Failure::not_supported("no way to read events was asked for"))
            );
        };
        let other_numbers = learned.tid.is_some_and(|tid| tid != rt::thread_id() as u32);
        let about = About {
            by_types: matches!(fields, EventFields::Types(_)),
            why_not_types: refused.map(|failure| failure.message),
            unlearned: learned.unknown,
            other_numbers,
            sees_suspends: programs.iter().any(|(name, _)| *name == EVENTS[SUSPEND].1),
            compiled: programs
                .iter()
                .all(|(_, program)| program.counts().is_ok_and(|counts| counts.machine_code > 0)),
            kernel_memory: maps.bytes,
        };
        let mut slots = Slots::new(!other_numbers, options.chosen_limit.min(THREADS_LIMIT));
        if options.all {
            slots.claim_present(&maps.slots)?;
            maps.config.u32(0, config::CLAIM).store(1, SeqCst);
        }
        let mut links = Vec::new();
        for (name, program) in &programs {
            links.push(Link::new(program, cpus.online).map_err(|error| refusals::no_link(name, &error))?);
        }
        let mut recorder = KernelRecorder {
            links,
            programs,
            began: clock::monotonic(),
            cpu_counts: vec![Default::default(); cpus.possible],
            missed: None,
            suspends: 0,
            maps,
            slots,
            about,
        };
        recorder.missed = recorder.missed_by_kernel();
        // Arming takes a while, in which threads slept that nobody recorded.
        recorder.slots.look(&recorder.maps.slots)?;
        Ok(recorder)
    }

    /// How it records.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Gives a thread histograms of its own, from its next wake-up on.
    pub fn choose(&mut self, tid: u32) -> Result<()> {
        if self.about.other_numbers {
            return Err(Failure::not_supported(
                "threads cannot be chosen in a PID namespace: run onbeat outside of the container",
            ));
        }
        self.slots.choose(&self.maps.slots, tid)
    }

    /// The sums of a chosen thread's latencies, as they grow.
    pub fn sums_of(&self, tid: u32) -> Result<ThreadSums> {
        let is_it = |chosen: &Option<ChosenThread>| chosen.as_ref().is_some_and(|chosen| chosen.tid == tid);
        let number = self.slots.chosen.iter().position(is_it);
        let number = number.ok_or_else(|| Failure::usage(format!("thread {tid} was not chosen")))?;
        let records = self.maps.threads.view(number * 2..number * 2 + 2);
        Ok(ThreadSums { records: records.map_err(|error| refusals::no_map(&error))? })
    }

    /// Runs that the kernel has skipped, of all programs.
    pub(crate) fn missed_by_kernel(&self) -> Option<u64> {
        self.programs.iter().map(|(_, program)| program.counts().ok()?.missed).sum()
    }

    /// Takes the programs off; what is recorded can still be taken.
    pub fn disarm(&mut self) {
        self.links.clear();
    }
}

/// What a thread may compare its own latencies with, one by one.
pub struct ThreadSums {
    records: MapView,
}

impl ThreadSums {
    /// The sums of T, of W, and of both where there are both, of the epoch that is written.
    pub fn now(&self) -> [Nanos; SERIES] {
        let sum = |series: usize, entry: usize| {
            let at = (series * histogram::SIZE) as i16 + histogram::SUM;
            self.records.u64(entry, at).load(Relaxed) as i64
        };
        // The other half is empty, but for the moment of a flip.
        std::array::from_fn(|series| Nanos(self.records.entries().map(|entry| sum(series, entry)).sum()))
    }
}

impl Held {
    fn new(cpus: usize, chosen: usize) -> Result<Held> {
        let map = |name: &str, size: usize, entries: usize| {
            ArrayMap::new(name, size, entries.max(1)).map_err(|error| refusals::no_map(&error))
        };
        let view = |map: &ArrayMap| map.whole().map_err(|error| refusals::no_map(&error));
        let slots = map("onbeat_slots", slot::SIZE, SLOTS)?;
        let per_cpu = map("onbeat_cpus", cpu::SIZE, cpus)?;
        let records = map("onbeat_records", record::SIZE, cpus * 2 * record::CLASSES)?;
        let threads = map("onbeat_threads", record::THREAD_SIZE, chosen * 2)?;
        let stacks = map("onbeat_stacks", saved::SIZE, cpus * saved::PER_CPU)?;
        let word = map("onbeat_config", config::SIZE, 1)?;
        let numbers = Maps {
            slots: slots.number(),
            cpus: per_cpu.number(),
            records: records.number(),
            threads: threads.number(),
            saved: stacks.number(),
            config: word.number(),
        };
        let bytes =
            [&slots, &per_cpu, &records, &threads, &stacks, &word].iter().map(|map| map.bytes()).sum();
        let (cpus, config) = (view(&per_cpu)?, view(&word)?);
        Ok(Held { slots, cpus, records, threads, config, numbers, bytes, _kept: [per_cpu, stacks, word] })
    }

    /// Tells the programs whether a time near CLOCK_MONOTONIC's can only be one: not where the wall
    /// clock was set to 1970, or after a short suspend.
    pub(crate) fn set_clocks_apart(&self) {
        const FAR: i64 = 10_000_000_000;
        const SAME: i64 = 1_000_000;
        let (wall, boot) = (clock::wall_offset().0, clock::boot_offset().0);
        let apart = wall.abs() > FAR && (boot.abs() < SAME || boot > FAR);
        self.config.u32(0, config::CLOCKS_APART).store(apart.into(), Relaxed);
    }
}

struct Cpus {
    possible: usize,
    online: u32,
}

fn cpus_of_the_machine() -> Result<Cpus> {
    let list = |name: &str| {
        let text = MachineFiles::live().read_text(&format!("/sys/devices/system/cpu/{name}"));
        let set = text.known().and_then(|text| CpuSet::parse(text.trim()).ok());
        set.filter(|set| !set.is_empty()).ok_or_else(|| {
            Failure::not_supported(format!("/sys/devices/system/cpu/{name} cannot be read: mount sysfs"))
        })
    };
    let (possible, online) = (list("possible")?, list("online")?);
    let largest = possible.iter().map(|cpu| cpu.0).max().unwrap_or(0);
    Ok(Cpus { possible: largest as usize + 1, online: online.iter().map(|cpu| cpu.0).min().unwrap_or(0) })
}

/// PREEMPT_RT before 5.10 could freeze with a program in the scheduler, or had none.
fn refuse_old_preempt_rt() -> Result<()> {
    let real_time = MachineFiles::live().read_text("/sys/kernel/realtime");
    let is_real_time = real_time.known().is_some_and(|text| text.trim() == "1");
    let release = host::release();
    if is_real_time && version_of(&release).is_some_and(|version| version < (5, 10)) {
        return Err(Failure::not_supported(format!(
            "programs are not safe in PREEMPT_RT before 5.10 (this is {release}): use a newer kernel"
        )));
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
        let tracing = Tracing::open().map_err(no_tracing)?;
        return ByFormat::read(|path| tracing.read(path)).map(EventFields::Format).map_err(unsupported);
    }
    let mut types = KernelTypes::read().map_err(|error| {
        unsupported(format!("this kernel does not describe its types (/sys/kernel/btf/vmlinux: {error})"))
    })?;
    let found = Btf::parse(types.bytes()).and_then(ByTypes::find).map(EventFields::Types);
    found.map_err(unsupported)
}

fn no_tracing(why: host::tracefs::NotHere) -> Failure {
    use host::tracefs::NotHere;
    match why {
        NotHere::NoTracefs => Failure::not_supported("the kernel was built without tracing (CONFIG_FTRACE)"),
        NotHere::NotMounted => {
            Failure::not_supported("tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing")
        }
        NotHere::NotPermitted(_) => Failure::not_permitted(
            "tracefs may not be read: run with CAP_DAC_READ_SEARCH, a unit without ProtectKernelTunables",
        ),
        NotHere::Failed(errno) => {
            let error = std::io::Error::from_raw_os_error(errno);
            Failure::not_supported(format!("tracefs cannot be read ({error})"))
        }
    }
}

type Opened = (Learned, Vec<(&'static str, Program)>);

/// Learns the timers and loads all programs; the order is that of linking.
fn open(fields: &EventFields, maps: &Held, cpu: u32) -> Result<Opened> {
    let learned = learn::learn(fields, &maps.numbers, &maps.config, cpu)?;
    let numbers = &maps.numbers;
    type Generator = fn(&EventFields, &Maps, &Functions) -> Result<Vec<u64>, BadCode>;
    let generators: [(usize, Generator); 5] = [
        (SWITCH, |fields, maps, _| switch::switched(fields, maps)),
        (WAKING, |fields, maps, _| waking::woken(fields, maps)),
        (EXPIRE, timers::fired),
        (START, timers::started),
        (SUSPEND, |fields, maps, _| programs::suspended(fields, maps)),
    ];
    let mut loaded = Vec::new();
    for (event, generator) in generators {
        // Without a known timer there is none to look for; a kernel may have no suspend.
        let timers = matches!(event, EXPIRE | START);
        let Some(attached) = fields.attached(event).filter(|_| !timers || !learned.functions.is_empty())
        else {
            continue;
        };
        let name = EVENTS[event].1;
        let code = generator(fields, numbers, &learned.functions).map_err(|bad| {
            Failure::internal(format!("the program for {name} is none ({bad}): report this"))
        })?;
        let program = Program::load(&format!("onbeat_{name}"), attached, &code)
            .map_err(|refused| refusals::no_program(name, &refused))?;
        loaded.push((name, program));
    }
    Ok((learned, loaded))
}
