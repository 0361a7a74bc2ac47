//! Kernel events of a program's threads: a private tracing instance with filters.
//!
//! Source: Documentation/trace/events.rst (filters), Documentation/trace/ftrace.rst (instances).

use std::collections::HashMap;
use std::io;

use crate::hunt::scope::Scope;
use host::MachineFiles;
use host::rt;
use host::tracefs::{Instance, NotHere, RawPipe, Tracing};
use model::fact::Fact;
use model::units::{Cpu, CpuSet};
use rules::checks::view::{CALLS, REMAPPING};
use trace::activity::{Activity, ThreadWaking};
use trace::catalog::{self, EventSpec};
use trace::decode::Decoder;
use trace::page::Lost;
use trace::symbols::{self, Symbols};

const TIMER: &str = "timer:hrtimer_start";
/// The clock with which the looks at the threads are timed.
const CLOCK: &str = "mono";

/// Buffer size of a CPU: some ten thousand records.
const BUFFER_KIB: u64 = 1024;
/// Maximum number of pages of a CPU per read: a buffer may fill as fast as it is read.
const MAX_PAGES: usize = 512;
/// Maximum number of cached function names; user space's timers have some five.
const MAX_NAMES: usize = 4096;

/// Armed instance, and the counts up to now.
pub struct CheckSource {
    /// Closed before their instance is removed.
    pipes: Vec<(Cpu, RawPipe)>,
    page: Box<[u8]>,
    decoder: Decoder,
    activity: Activity,
    symbols: Option<Symbols>,
    names: HashMap<u64, String>,
    instance: Instance,
    /// Kept open: a mount made for the instance is unmounted at its end.
    _tracing: Tracing,
}

impl CheckSource {
    /// Creates an instance and arms the events that this kernel has, for these threads; the error
    /// is a reason in words.
    pub fn open(tids: &[u32], syscalls: bool) -> Result<CheckSource, String> {
        if in_namespace(&MachineFiles::live()) {
            return Err(
                "onbeat is in a PID namespace (a container), where threads have other numbers than in the \
                 kernel's events: run it outside the container, with the program's PID there"
                    .to_owned(),
            );
        }
        let tracing = Tracing::open().map_err(words)?;
        tracing.remove_dead();
        let failed = |error: io::Error| format!("cannot create a tracing instance ({error})");
        let instance = tracing.instance().map_err(failed)?;
        instance.write("tracing_on", "0").map_err(failed)?;
        instance.write("trace_clock", CLOCK).map_err(failed)?;
        instance.write("buffer_size_kb", &BUFFER_KIB.to_string()).map_err(failed)?;
        let symbols = symbols();
        let header = tracing.read("events/header_page").map_err(failed)?;
        let mut formats: Vec<(&'static EventSpec, String)> = Vec::new();
        for wanted in catalog::PROGRAM {
            let text = tracing.read(&format!("events/{}/{}/format", wanted.system, wanted.event));
            formats.extend(text.ok().map(|text| (wanted, text)));
        }
        let texts: Vec<_> = formats.iter().map(|(wanted, text)| (*wanted, text.as_str())).collect();
        let form = |what: String| format!("the kernel's trace pages have an unknown form ({what})");
        let decoder = Decoder::new(&header, cfg!(target_endian = "big"), &texts).map_err(form)?;
        let pipes = online().iter().map(|cpu| Ok((cpu, instance.pipe(cpu)?))).collect::<io::Result<Vec<_>>>();
        let page = vec![0; decoder.layout().page_size()].into();
        let mut source = CheckSource {
            pipes: pipes.map_err(failed)?,
            page,
            decoder,
            activity: Activity::default(),
            symbols,
            names: HashMap::new(),
            instance,
            _tracing: tracing,
        };
        source.follow(tids);
        for (wanted, _) in &formats {
            source.arm(wanted, syscalls);
        }
        source.instance.write("tracing_on", "1").map_err(failed)?;
        Ok(source)
    }

    /// Arms an event if it is readable and requested.
    fn arm(&mut self, wanted: &'static EventSpec, syscalls: bool) {
        let name = format!("{}:{}", wanted.system, wanted.event);
        let readable = !self.decoder.refused().iter().any(|(refused, _)| std::ptr::eq(*refused, wanted));
        // A timer whose function has no name is not informative.
        let useful = name != TIMER || self.symbols.is_some();
        if !readable || !useful || (name == CALLS && !syscalls) {
            return;
        }
        let armed = self.filter(&name);
        let enable = format!("events/{}/{}/enable", wanted.system, wanted.event);
        if armed.and_then(|()| self.instance.write(&enable, "1")).is_ok() {
            self.activity.events.insert(name);
        }
    }

    /// Filters an event to the followed threads.
    fn filter(&self, name: &str) -> io::Result<()> {
        let field = if name.starts_with("sched:") { "pid" } else { "common_pid" };
        // This thread's events are recorded too: they show the cost of recording.
        let threads = self.activity.threads.keys().copied().collect();
        let scope = Scope::new(threads, rt::thread_id()).with_housekeeping();
        let mut filter = scope.threads(field).unwrap_or_default();
        if name == REMAPPING {
            filter = format!("write == 1 && ({filter})");
        }
        self.instance.write(&format!("events/{}/filter", name.replace(':', "/")), &filter)
    }

    /// Follows these threads as well.
    pub fn follow(&mut self, tids: &[u32]) {
        let before = self.activity.threads.len();
        self.activity.follow(tids.iter().copied());
        if self.activity.threads.len() > before {
            // An event whose filter cannot be replaced shows nothing of the new threads.
            let failed = |name: &String| self.filter(name).is_err();
            let failed: Vec<String> =
                self.activity.events.iter().filter(|name| failed(name)).cloned().collect();
            self.activity.events.retain(|name| !failed.contains(name));
        }
    }

    /// Discards the counts of a thread up to now; it is still followed.
    pub fn forget(&mut self, tid: u32) {
        let own = i32::try_from(tid).ok().and_then(|tid| self.activity.threads.get_mut(&tid));
        own.map(std::mem::take);
    }

    /// Takes the events from the buffers; returns all wake-ups before this call.
    pub fn take(&mut self) -> Vec<ThreadWaking> {
        let CheckSource { pipes, page, decoder, activity, symbols, names, .. } = self;
        let mut name = |address: u64| -> String {
            if let Some(name) = names.get(&address) {
                return name.clone();
            }
            let place = symbols.as_ref().and_then(|symbols| symbols.name_of(address));
            let name = place.map(|place| place.function.to_owned()).unwrap_or_default();
            if names.len() < MAX_NAMES {
                names.insert(address, name.clone());
            }
            name
        };
        for (cpu, pipe) in pipes {
            for _ in 0..MAX_PAGES {
                // A page that cannot be read is counted with those that the kernel overwrote.
                let length = match pipe.read_page(page) {
                    Ok(Some(length)) => length,
                    Ok(None) => break,
                    Err(_) => {
                        activity.lost += 1;
                        break;
                    }
                };
                let mut events = Vec::new();
                let notes = decoder.page(*cpu, &page[..length], &mut |event| events.push(event));
                events.iter().for_each(|event| activity.add(event, &mut name));
                activity.lost += notes.malformed + u64::from(notes.cut);
                activity.lost += match notes.lost {
                    Lost::Nothing => 0,
                    Lost::Records(n) => n.max(1),
                    Lost::Some => 1,
                };
            }
        }
        activity.take_wakings()
    }

    /// Stops recording; returns the counts.
    pub fn end(mut self) -> Result<Activity, String> {
        let stopped = self.instance.write("tracing_on", "0");
        self.take();
        stopped
            .map(|()| std::mem::take(&mut self.activity))
            .map_err(|error| format!("cannot stop recording ({error})"))
    }
}

/// True if threads have other IDs in this process than in the kernel's events, which use those of
/// the initial namespace.
pub fn in_namespace(host: &MachineFiles) -> bool {
    // PROC_PID_INIT_INO (include/linux/proc_ns.h); the link does not exist without CONFIG_PID_NS.
    const FIRST: &str = "pid:[4026531836]";
    host.unrecorded().link("/proc/self/ns/pid").known().is_some_and(|own| own != FIRST)
}

/// CPUs with a buffer to read; an offline one has no running thread.
fn online() -> CpuSet {
    let text = MachineFiles::live().read_text("/sys/devices/system/cpu/online");
    let cpus = text.parse(|text| facts::line::parse_some_cpus(&text));
    cpus.known().cloned().unwrap_or_default()
}

/// Functions of the kernel, if this user may see their addresses.
fn symbols() -> Option<Symbols> {
    match MachineFiles::live().read_at_most("/proc/kallsyms", symbols::READ_LIMIT) {
        Fact::Known(bytes) => Symbols::parse(&bytes).ok(),
        _ => None,
    }
}

fn words(why: NotHere) -> String {
    match why {
        NotHere::NoTracefs => "this kernel has no event tracing (CONFIG_FTRACE)".to_owned(),
        NotHere::NotMounted => {
            "tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing".to_owned()
        }
        NotHere::NotPermitted(errno) => {
            format!("this user may not use tracefs (errno {errno}): run with CAP_SYS_ADMIN")
        }
        NotHere::Failed(errno) => format!("cannot open tracefs (errno {errno})"),
    }
}
