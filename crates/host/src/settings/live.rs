//! The running kernel: where the values of keys are read and written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use model::fact::Fact;
use model::setting::{Comparison, Key, PRESENT, TaskSetting, same};
use model::units::{CpuSet, Nanos};
use rustix::fs::{Mode, OFlags};

use super::{GroupProcess, Kernel};
use crate::clock;
use crate::process::process_start;
use crate::rt::{affinity_of, policy_of, set_affinity_of, set_policy_of};

/// No file of a setting is longer.
const VALUE_LIMIT: u64 = 1 << 20;

/// The kernel that this runs on. Only `host` can make one that writes: it is handed to
/// [`super::Entry`] and [`super::restore`].
#[derive(Debug, Default)]
pub struct LiveKernel {
    patience: Patience,
}

/// How long one interrupt is waited for, and all of them: an idle one may not come for days.
const ONE_INTERRUPT: Nanos = Nanos(200_000_000);
const ALL_INTERRUPTS: Nanos = Nanos(2_000_000_000);

/// Waits that are further apart belong to two undos.
const APART: Nanos = Nanos(1_000_000_000);

/// How long interrupts are still waited for. Each undo has all of it: an experiment undoes the same
/// change many times, and without a wait the interrupts stay where the change has put them.
#[derive(Debug)]
struct Patience {
    left: Nanos,
    /// When the last wait ended.
    ended: Nanos,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { left: ALL_INTERRUPTS, ended: Nanos(0) }
    }
}

impl Patience {
    /// Until when an interrupt is waited for that is asked to move now.
    fn until(&mut self, now: Nanos) -> Nanos {
        if now - self.ended > APART {
            self.left = ALL_INTERRUPTS;
        }
        now + self.left.min(ONE_INTERRUPT)
    }

    fn waited(&mut self, begin: Nanos, end: Nanos) {
        self.left = Nanos((self.left.0 - (end - begin).0).max(0));
        self.ended = end;
    }
}

impl LiveKernel {
    /// Has an interrupt go to a CPU, as far as it comes soon: it moves when it comes.
    fn move_interrupt(&mut self, irq: u32, cpu: &str) -> io::Result<()> {
        let reached = |kernel: &LiveKernel| {
            kernel.effective_affinity(irq).known().is_some_and(|now| same(Comparison::List, now, cpu))
        };
        if reached(self) {
            return Ok(());
        }
        write_file(&Key::Irq(irq).path(), cpu)?;
        let begin = clock::monotonic();
        let until = self.patience.until(begin);
        while !reached(self) && clock::monotonic() < until {
            clock::sleep_for(Nanos(2_000_000));
        }
        self.patience.waited(begin, clock::monotonic());
        Ok(())
    }
}

impl Kernel for LiveKernel {
    fn read(&self, key: &Key) -> Fact<String> {
        match key {
            Key::Task { tid, start, what } => read_task(*tid, *start, *what),
            Key::Group(_) => match fs::symlink_metadata(key.path()) {
                Ok(found) if found.is_dir() => Fact::Known(PRESENT.to_owned()),
                Ok(_) => Fact::Malformed("it is no directory".to_owned()),
                Err(error) => fact_of(&error),
            },
            Key::Hold(name) => super::hold::held_value(name),
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
            (_, Some(value)) => write_file(&key.path(), value),
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
                // The one that is asked for has ended in between: it has no affinity.
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

/// Whether the kernel keeps a thread's affinity for itself (PF_NO_SETAFFINITY, in field 9 of
/// `/proc/PID/stat`): it changes those of workers as they work, and takes none from here.
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

/// Opens a file of the kernel's own file systems; another is not one of its settings.
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
    match KERNEL.contains(&(found.f_type as u64 & 0xffff_ffff)) {
        true => Ok(file),
        false => Err(io::Error::from_raw_os_error(libc::ENODEV)),
    }
}

fn read_file(path: &str) -> Fact<String> {
    let read = || {
        let mut bytes = Vec::new();
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

/// In one write, as the kernel's handlers of such files expect it.
fn write_file(path: &str, value: &str) -> io::Result<()> {
    let line = format!("{value}\n");
    let written = open(path, OFlags::WRONLY)?.write(line.as_bytes())?;
    // Some handlers take the value and leave the newline.
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

/// Between the look at its start and the call the number can pass to another thread, as with every
/// call that takes one; numbers come round again after 32,768 others at the least.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_undo_waits_for_its_interrupts() {
        let ms = |ms: i64| Nanos(ms * 1_000_000);
        let mut patience = Patience::default();
        // Twelve interrupts that do not come, one after the other, from that time on.
        let mut waits = |from: i64| -> Vec<i64> {
            let mut now = ms(from);
            let one = |_| {
                let until = patience.until(now);
                patience.waited(now, until);
                let waited = until - now;
                now = until;
                waited.0 / 1_000_000
            };
            (0..12).map(one).collect()
        };
        let once = [[200; 10].as_slice(), &[0; 2]].concat();
        assert_eq!(waits(500), once);
        assert_eq!(waits(3_000), [0; 12], "the same undo");
        assert_eq!(waits(9_000), once, "the next one");
    }
}
