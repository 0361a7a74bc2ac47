//! The running kernel: reading and writing the values of keys.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use model::fact::Fact;
use model::setting::{Comparison, Key, PRESENT, TaskSetting, same};
use model::units::{CpuSet, Nanos};
use rustix::fs::{Mode, OFlags};

use super::moved_interrupts::{MovedInterrupts, ONE_INTERRUPT};
use super::{GroupProcess, Kernel};
use crate::clock;
use crate::process::process_start;
use crate::rt::{affinity_of, policy_of, set_affinity_of, set_policy_of, stop_pending};
use crate::tracefs::Tracing;

/// Mode of the hwlat tracer's threads.
const HWLAT_MODE: &str = "/sys/kernel/tracing/hwlat_detector/mode";

/// Options of the osnoise tracer: read as all of them, written one at a time.
const OSNOISE_OPTIONS: &str = "/sys/kernel/tracing/osnoise/options";

/// Words that sum up the options, of which the second cannot be written.
const SUMS: [&str; 2] = ["DEFAULTS", "NO_DEFAULTS"];

/// Ends the tracers of onbeats that were killed. While one runs, a kernel from 6.14 on leaves the
/// mode round-robin at once: the new thread does not keep its first CPU (kthread_affine_node).
fn end_tracers_of_the_dead() {
    if let Ok(tracing) = Tracing::open() {
        tracing.remove_dead();
    }
}

/// Size limit of a setting's file, in bytes.
const VALUE_LIMIT: u64 = 1 << 20;

/// Size of a read in bytes.
const AT_ONCE: usize = 4 << 10;

/// Running kernel. Only `host` can create one that writes: it is passed to [`super::Entry`] and
/// [`super::restore`].
#[derive(Debug, Default)]
pub struct LiveKernel {
    interrupts: MovedInterrupts,
}

impl LiveKernel {
    /// From now on waits for a moving interrupt as long as its rate suggests, and for all of an
    /// undo together up to this limit: in an experiment, a segment with an interrupt on the wrong
    /// side's CPU belongs to neither side.
    pub fn be_patient(&mut self, all: Nanos) {
        self.interrupts.be_patient(all);
    }

    /// Waits until the interrupts that this process has changed are on CPUs that they may use.
    pub fn settle_interrupts(&mut self) {
        for irq in self.unmoved_interrupts(true) {
            let reached = |kernel: &LiveKernel| kernel.is_where_it_may(irq);
            self.wait_for(irq, &reached);
        }
    }

    /// Interrupts changed by this process that have not moved yet: to their allowed CPUs if
    /// `changed`, else back to their first CPU.
    pub fn unmoved_interrupts(&self, changed: bool) -> Vec<u32> {
        let is_there = |(irq, home): &(u32, String)| {
            if changed {
                self.is_where_it_may(*irq)
            } else {
                // It cannot return while a kept change of it forbids that.
                !self.may_go(*irq, home) || self.is_on(*irq, home)
            }
        };
        let all = self.interrupts.homes();
        all.filter(|one| !is_there(one)).map(|(irq, _)| irq).collect()
    }

    /// Occurrences of an interrupt since boot, on all CPUs; none if the kernel does not show them.
    pub fn interrupt_count(&self, irq: u32) -> Option<u64> {
        let read = read_file(&format!("/sys/kernel/irq/{irq}/per_cpu_count"));
        read.known()?.trim().split(',').map(|count| count.trim().parse::<u64>().ok()).sum()
    }

    fn is_on(&self, irq: u32, cpu: &str) -> bool {
        self.effective_affinity(irq).known().is_none_or(|now| same(Comparison::List, now, cpu))
    }

    fn may_go(&self, irq: u32, cpu: &str) -> bool {
        read_file(&Key::Irq(irq).path()).known().is_some_and(|mask| is_within(cpu, mask))
    }

    fn is_where_it_may(&self, irq: u32) -> bool {
        self.effective_affinity(irq).known().is_none_or(|now| self.may_go(irq, now))
    }

    /// Moves an interrupt to a CPU, and waits a limited time for it: it moves when it occurs
    /// (kernel/irq/migration.c, irq_move_masked_irq).
    fn move_interrupt(&mut self, irq: u32, cpu: &str) -> io::Result<()> {
        if self.effective_affinity(irq).known().is_some_and(|now| same(Comparison::List, now, cpu)) {
            return Ok(());
        }
        write_file(&Key::Irq(irq).path(), cpu)?;
        self.wait_for(irq, &|kernel| kernel.is_on(irq, cpu));
        Ok(())
    }

    fn wait_for(&mut self, irq: u32, reached: &dyn Fn(&LiveKernel) -> bool) {
        let (begin, count) = (clock::monotonic(), self.interrupt_count(irq));
        let mut until = self.interrupts.until(irq, begin, count);
        while !reached(self) && clock::monotonic() < until {
            if stop_pending() {
                until = until.min(begin + ONE_INTERRUPT);
            }
            clock::sleep_for(Nanos(2_000_000));
        }
        self.interrupts.waited(begin, clock::monotonic());
    }

    /// CPU of an interrupt before this process changed it, if still allowed: for one that has not
    /// returned yet, the present CPU is only that of the change.
    fn effective_before(&self, irq: u32) -> Fact<String> {
        match self.interrupts.home(irq).filter(|home| self.may_go(irq, home)) {
            Some(home) => Fact::Known(home.to_owned()),
            None => self.effective_affinity(irq),
        }
    }

    fn write_interrupt(&mut self, irq: u32, value: &str) -> io::Result<()> {
        let (now, count) = (clock::monotonic(), self.interrupt_count(irq));
        let place = self.effective_affinity(irq).known().cloned();
        self.interrupts.changes(irq, place, now, count);
        write_file(&Key::Irq(irq).path(), value)
    }
}

fn is_within(list: &str, mask: &str) -> bool {
    match (CpuSet::parse(list.trim()), CpuSet::parse(mask.trim())) {
        (Ok(list), Ok(mask)) => list.without(&mask).is_empty(),
        _ => false,
    }
}

impl Kernel for LiveKernel {
    fn read(&self, key: &Key) -> Fact<String> {
        match key {
            Key::Task { tid, start, what } => read_task(*tid, *start, *what),
            Key::Group(_) => match fs::symlink_metadata(key.path()) {
                Ok(found) if found.is_dir() => Fact::Known(PRESENT.to_owned()),
                Ok(_) => Fact::Malformed("it is not a directory".to_owned()),
                Err(error) => fact_of(&error),
            },
            Key::Hold(name) => super::hold::held_value(name),
            Key::IrqEffective(irq) => self.effective_before(*irq),
            _ => read_file(&key.path()),
        }
    }

    fn write(&mut self, key: &Key, value: Option<&str>) -> io::Result<()> {
        match (key, value) {
            (Key::Task { tid, start, what }, Some(value)) => write_task(*tid, *start, *what, value),
            (Key::Group(_), Some(_)) => fs::create_dir(key.path()),
            (Key::Group(_), None) => super::group::remove(&key.path()),
            (Key::Hold(name), value) => super::hold::set(name, value),
            (Key::IrqEffective(irq), Some(value)) => self.move_interrupt(*irq, value),
            (Key::Irq(irq), Some(value)) => self.write_interrupt(*irq, value),
            (_, Some(value)) => {
                let path = key.path();
                if path == HWLAT_MODE {
                    end_tracers_of_the_dead();
                }
                if path == OSNOISE_OPTIONS {
                    let mut options = value.split_ascii_whitespace().filter(|word| !SUMS.contains(word));
                    return options.try_for_each(|option| write_file(&path, option));
                }
                write_file(&path, value)
            }
            (_, None) => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    fn effective_affinity(&self, irq: u32) -> Fact<String> {
        read_file(&format!("/proc/irq/{irq}/effective_affinity_list"))
    }

    fn affinities(&self) -> Vec<(Key, String)> {
        let mut all = Vec::new();
        for pid in numbers_in("/proc") {
            for tid in numbers_in(&format!("/proc/{pid}/task")) {
                // The thread may have ended in between: then it has no affinity.
                let Some(start) = process_start(tid).filter(|_| !is_bound(tid)) else { continue };
                let key = Key::Task { tid, start, what: TaskSetting::Affinity };
                if let Ok(cpus) = affinity_of(tid) {
                    all.push((key, cpus.to_string()));
                }
            }
        }
        all
    }

    fn groups_below(&self, group: &str) -> Vec<String> {
        super::group::below(group)
    }

    fn processes_in(&self, group: &str) -> Vec<GroupProcess> {
        super::group::processes(group)
    }
}

fn numbers_in(path: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// True if the kernel manages a thread's affinity (PF_NO_SETAFFINITY, in field 9 of
/// `/proc/PID/stat`): it changes that of running workers, and accepts none from here.
fn is_bound(tid: u32) -> bool {
    const PF_NO_SETAFFINITY: u64 = 0x0400_0000;
    let text = fs::read(format!("/proc/{tid}/stat")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let flags =
        text.rsplit_once(") ").and_then(|(_, rest)| rest.split_ascii_whitespace().nth(6)?.parse().ok());
    flags.is_some_and(|flags: u64| flags & PF_NO_SETAFFINITY != 0)
}

fn fact_of<T>(error: &io::Error) -> Fact<T> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ESRCH) => Fact::Absent,
        Some(errno) => Fact::Refused(errno),
        None => Fact::Malformed(error.to_string()),
    }
}

/// Opens a file of the kernel's pseudo file systems; no other file is a setting.
fn open(path: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    const KERNEL: [u64; 6] = [
        0x9fa0,      // PROC_SUPER_MAGIC
        0x6265_6572, // SYSFS_MAGIC
        0x6367_7270, // CGROUP2_SUPER_MAGIC
        0x0027_e0eb, // CGROUP_SUPER_MAGIC
        0x6462_6720, // DEBUGFS_MAGIC
        0x7472_6163, // TRACEFS_MAGIC
    ];
    let found = rustix::fs::fstatfs(file.as_fd())?;
    if KERNEL.contains(&(found.f_type as u64 & 0xffff_ffff)) {
        Ok(file)
    } else {
        Err(io::Error::from_raw_os_error(libc::ENODEV))
    }
}

fn read_file(path: &str) -> Fact<String> {
    let read = || {
        // Some files refuse a read that is shorter than their text (osnoise_cpus_read).
        let mut bytes = Vec::with_capacity(AT_ONCE);
        open(path, OFlags::RDONLY)?.take(VALUE_LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let read: io::Result<Vec<u8>> = read();
    match read {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Fact::Known(text.trim_end().to_owned()),
            Err(_) => Fact::Malformed("not UTF-8 text".to_owned()),
        },
        Err(error) => fact_of(&error),
    }
}

/// Writes a value in one write(2), as the kernel's handlers of such files expect.
fn write_file(path: &str, value: &str) -> io::Result<()> {
    let line = format!("{value}\n");
    let written = open(path, OFlags::WRONLY)?.write(line.as_bytes())?;
    // Some handlers consume the value without the newline.
    if written < value.len() { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
}

fn read_task(tid: u32, start: u64, what: TaskSetting) -> Fact<String> {
    if process_start(tid) != Some(start) {
        return Fact::Absent;
    }
    let read = match what {
        TaskSetting::Affinity => affinity_of(tid).map(|cpus| cpus.to_string()),
        TaskSetting::Policy => policy_of(tid),
        TaskSetting::Group => super::group::of_task(tid),
    };
    read.map_or_else(|error| fact_of(&error), Fact::Known)
}

/// Writes a thread's setting. Its ID may pass to another thread between the check of its start time
/// and the call, as with any such call; IDs are reused after 32,768 others at least.
fn write_task(tid: u32, start: u64, what: TaskSetting, value: &str) -> io::Result<()> {
    if process_start(tid) != Some(start) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    match what {
        TaskSetting::Affinity => {
            let cpus = CpuSet::parse(value).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
            set_affinity_of(tid, &cpus)
        }
        TaskSetting::Policy => set_policy_of(tid, value),
        TaskSetting::Group => super::group::move_task(tid, value),
    }
}
