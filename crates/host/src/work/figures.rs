//! Kernel statistics of a load, read repeatedly without allocation.

use std::path::Path;

use super::LoadGroup;
use crate::pseudo_file::RereadFile;

/// Kernel statistic of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Processor time in ns: of its control group (`cpu.stat`), else of its processes.
    CpuTime,
    /// Processor time of a load whose processes start others: of its control group, else of its
    /// process groups.
    FamilyTime,
    /// Page faults of its processes that needed no disk: field 10 of /proc/PID/stat.
    MinorFaults,
    /// Bytes written to disk for its processes: `write_bytes` of /proc/PID/io.
    WrittenBytes,
    /// Context switches of the whole machine: `ctxt` of /proc/stat.
    Switches,
    /// Processes and threads started on the whole machine: `processes` of /proc/stat.
    Forks,
    /// Packets received by the loopback device: /proc/net/dev.
    LoopbackPackets,
}

impl Figure {
    /// Text of the statistic, for proofs.
    pub fn words(self) -> &'static str {
        match self {
            Figure::CpuTime | Figure::FamilyTime => "ns of processor time",
            Figure::MinorFaults => "page faults",
            Figure::WrittenBytes => "bytes to a disk",
            Figure::Switches => "context switches of the machine",
            Figure::Forks => "processes started on the machine",
            Figure::LoopbackPackets => "packets of the loopback device",
        }
    }
}

/// Parser of a count in a kernel text.
type ReadCount = fn(&str) -> Option<u64>;

/// Reader of a count.
pub struct Gauge {
    files: Vec<Alternatives>,
    families: Option<Families>,
}

/// Alternative files, of which the largest value counts.
type Alternatives = Vec<(RereadFile, ReadCount)>;

impl Gauge {
    /// Opens the files of a statistic for a load with these processes; `None` if there are none.
    pub fn open(figure: Figure, room: &LoadGroup, processes: &[u32]) -> Option<Gauge> {
        let of_each = |name: &str, read: ReadCount| {
            let file = |pid: &u32| Some(vec![(of_process(*pid, name)?, read)]);
            processes.iter().map(file).collect::<Option<Vec<Alternatives>>>()
        };
        let whole =
            |path: &str, read: ReadCount| RereadFile::whole(path).ok().map(|file| vec![vec![(file, read)]]);
        let of_group = || whole(&room.cpu_file()?.display().to_string(), group_time);
        let files = match figure {
            Figure::FamilyTime if room.cpu_file().is_none() => {
                let families = Families { leaders: processes.to_vec(), most: 0 };
                return Some(Gauge { files: Vec::new(), families: Some(families) });
            }
            Figure::CpuTime if room.cpu_file().is_none() => {
                processes.iter().map(|pid| process_time(*pid)).collect()
            }
            Figure::CpuTime | Figure::FamilyTime => of_group(),
            Figure::MinorFaults => of_each("stat", |text| stat_field(text, 10)),
            Figure::WrittenBytes => of_each("io", |text| after(text, "\nwrite_bytes: ")),
            Figure::Switches => whole("/proc/stat", |text| after(text, "\nctxt ")),
            Figure::Forks => whole("/proc/stat", |text| after(text, "\nprocesses ")),
            Figure::LoopbackPackets => whole("/proc/net/dev", loopback_packets),
        };
        files.filter(|files| !files.is_empty()).map(|files| Gauge { files, families: None })
    }

    /// Sum over the files; `None` if one of them can no longer be read.
    pub fn value(&mut self) -> Option<u64> {
        if let Some(families) = &mut self.families {
            return families.time();
        }
        let mut sum = 0u64;
        for alternatives in &mut self.files {
            let mut most = None;
            for (file, read) in alternatives {
                let text = std::str::from_utf8(file.read().ok()?).ok()?;
                most = most.max(Some(read(text)?));
            }
            sum = sum.saturating_add(most?);
        }
        Some(sum)
    }
}

/// Process groups, by their leaders.
struct Families {
    leaders: Vec<u32>,
    most: u64,
}

impl Families {
    /// Processor time of all their processes, in ns. The time of one that has ended is included in
    /// its parent's after the parent has waited; else it is lost, and the maximum so far stays.
    fn time(&mut self) -> Option<u64> {
        let mut sum = 0u64;
        for entry in std::fs::read_dir("/proc").ok()?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            else {
                continue;
            };
            // It may have ended since.
            let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
            sum =
                sum.saturating_add(family_time(&String::from_utf8_lossy(&text), &self.leaders).unwrap_or(0));
        }
        self.most = self.most.max(sum);
        Some(self.most)
    }
}

/// Time of a process and its waited-for children (fields 14 to 17), if its group (field 5) is led
/// by one of these.
fn family_time(stat: &str, leaders: &[u32]) -> Option<u64> {
    let leader = u32::try_from(stat_field(stat, 5)?).ok()?;
    let own = || (14..=17).try_fold(0u64, |sum, field| Some(sum.saturating_add(stat_field(stat, field)?)));
    leaders.contains(&leader).then(own).flatten().map(ticks)
}

fn of_process(pid: u32, name: &str) -> Option<RereadFile> {
    RereadFile::open(&format!("/proc/{pid}/{name}"), 1024).ok()
}

/// Processor time of a process: of all its threads in ticks, which can stay 0 for seconds with a
/// throttled load, and of its main thread in ns if the kernel shows it
/// (Documentation/scheduler/sched-stats.rst).
fn process_time(pid: u32) -> Option<Alternatives> {
    let in_ticks: ReadCount = |text| Some(ticks(stat_field(text, 14)? + stat_field(text, 15)?));
    let in_ns: ReadCount = |text| text.split_ascii_whitespace().next()?.parse().ok();
    let mut files = vec![(of_process(pid, "stat")?, in_ticks)];
    files.extend(of_process(pid, "schedstat").map(|file| (file, in_ns)));
    Some(files)
}

/// Nanoseconds of ticks: USER_HZ is 100 on all supported architectures (asm-generic/param.h).
fn ticks(count: u64) -> u64 {
    count.saturating_mul(10_000_000)
}

/// Field of /proc/PID/stat, counted from 1 (proc_pid_stat(5)).
fn stat_field(text: &str, number: usize) -> Option<u64> {
    text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

pub(super) fn after(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn group_time(text: &str) -> Option<u64> {
    match text.strip_prefix("usage_usec ") {
        Some(rest) => Some(rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.saturating_mul(1000)),
        None => text.trim().parse().ok(),
    }
}

/// Received packets, the second field after the name.
fn loopback_packets(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("lo:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// True if a process is stopped or has ended, by its /proc/PID/stat; `None` if it has disappeared.
pub fn process_is_stopped(stat: &mut RereadFile) -> Option<bool> {
    let text = String::from_utf8_lossy(stat.read().ok()?);
    let state = text.rsplit_once(") ")?.1.chars().next()?;
    Some(matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// Bytes that an unprivileged process can still write to a folder's file system.
pub fn free_space(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use model::units::Nanos;

    #[test]
    fn figures_are_found_in_the_kernels_texts() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 42 8 9 10 30 12 0 0";
        assert_eq!((stat_field(stat, 10), stat_field(stat, 14)), (Some(42), Some(30)));
        assert_eq!(stat_field("7 (a", 10), None);
        assert_eq!((family_time(stat, &[5]), family_time(stat, &[7])), (None, None));
        let child = "8 (a) S 7 7 7 0 -1 0 42 8 9 10 30 12 5 3 0 0";
        assert_eq!((family_time(child, &[5, 7]), family_time(child, &[8])), (Some(500_000_000), None));
        assert_eq!(
            after("rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n", "\nwrite_bytes: "),
            Some(4096)
        );
        assert_eq!(group_time("usage_usec 12\nuser_usec 3\n"), Some(12_000));
        assert_eq!(group_time("34\n"), Some(34));
        assert_eq!(group_time("nonsense"), None);
        let devices = "Inter-| Receive\n face |bytes packets\n    lo: 100 7 0 0\n  eth0: 5 6\n";
        assert_eq!(loopback_packets(devices), Some(7));
        assert_eq!(loopback_packets("eth0: 5 6\n"), None);
    }

    #[test]
    fn without_a_control_group_the_process_group_is_counted() {
        let group = rustix::process::getpgrp().as_raw_pid() as u32;
        let time = |leaders: &[u32]| {
            Gauge::open(Figure::FamilyTime, &LoadGroup::default(), leaders)
                .and_then(|mut gauge| gauge.value())
        };
        let begun = clock::monotonic();
        while time(&[group]) == Some(0) && clock::monotonic() - begun < Nanos(60_000_000_000) {}
        assert!(time(&[group]) > Some(0));
        assert_eq!(time(&[]), Some(0));
    }

    #[test]
    fn the_own_processes_figures_grow() {
        let own = [std::process::id()];
        for figure in [Figure::CpuTime, Figure::MinorFaults, Figure::Switches, Figure::Forks] {
            let value = Gauge::open(figure, &LoadGroup::default(), &own).and_then(|mut gauge| gauge.value());
            assert!(value.is_some(), "{figure:?}");
        }
        assert!(Gauge::open(Figure::MinorFaults, &LoadGroup::default(), &[]).is_none());
        assert!(free_space(Path::new("/")).is_some());
    }
}
