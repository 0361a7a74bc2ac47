//! Open descriptors of a process, and whether a file was read or written in the window.
//!
//! Only the last part of a link is read: the folders are private. The file system of a descriptor
//! distinguishes a terminal from a file (`mnt_id` of `/proc/PID/fdinfo/N`, `/proc/PID/mountinfo`).
//! Source: Documentation/filesystems/proc.rst, sections 3.5 and 3.8.

use std::collections::BTreeMap;

/// Kind of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenKind {
    /// A terminal or a console.
    Terminal,
    /// A file on a disk or in memory.
    File,
    Pipe,
    Socket,
    /// A counter that wakes a reader; each write is of eight bytes.
    Eventfd,
    /// `/dev/null`, `zero` or `full`.
    Null,
    Device,
    /// A timer or an epoll set, for example, to which a program does not write output.
    Other,
}

/// A descriptor of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub number: u32,
    pub kind: OpenKind,
    /// Last part of its name.
    pub name: String,
    pub writable: bool,
    /// Position of the next read or write.
    pub position: u64,
    /// True if that changed in the window.
    pub moved: bool,
    /// Last setting of a timer (timerfd).
    pub timer: Option<DescriptorTimer>,
}

/// Last setting of a timer with a descriptor (timerfd).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorTimer {
    /// True for an absolute time of the wall clock.
    pub on_wall_clock: bool,
    /// True for a span from then on, rather than an absolute time.
    pub relative: bool,
    /// True if it expires repeatedly.
    pub periodic: bool,
}

impl Descriptor {
    /// Description for a sentence: `descriptor 1 (a pipe)`.
    pub fn words(&self) -> String {
        let what = match self.kind {
            OpenKind::Terminal => format!("terminal {}", self.name),
            OpenKind::File => self.name.clone(),
            OpenKind::Pipe => "a pipe".to_owned(),
            OpenKind::Socket => "a socket".to_owned(),
            OpenKind::Eventfd => "an eventfd".to_owned(),
            OpenKind::Null | OpenKind::Device | OpenKind::Other => self.name.clone(),
        };
        format!("descriptor {} ({what})", self.number)
    }
}

/// Content of `/proc/PID/fdinfo/N`: position, access, mount and, for a timerfd, its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenState {
    pub position: u64,
    pub writable: bool,
    pub mount: u64,
    /// Last setting, for a timerfd.
    pub timer: Option<DescriptorTimer>,
}

/// Parses `/proc/PID/fdinfo/N`.
pub fn parse_fdinfo(text: &str) -> Result<OpenState, String> {
    let value = |key: &str| value(text, key);
    let number = |key: &str, radix| number(text, key, radix);
    // O_WRONLY is 1, O_RDWR 2 (include/uapi/asm-generic/fcntl.h).
    let writable = matches!(number("flags:", 8)? & 3, 1 | 2);
    Ok(OpenState {
        position: number("pos:", 10)?,
        writable,
        mount: number("mnt_id:", 10)?,
        timer: value("clockid:").is_ok().then(|| timer(text)).transpose()?,
    })
}

/// Parses the additional lines of a timer (fs/timerfd.c, `timerfd_show`).
fn timer(text: &str) -> Result<DescriptorTimer, String> {
    // TFD_TIMER_ABSTIME is 1. CLOCK_REALTIME and CLOCK_REALTIME_ALARM; a span on them is counted by
    // CLOCK_MONOTONIC (`__hrtimer_init()`).
    let relative = number(text, "settime flags:", 8)? & 1 == 0;
    Ok(DescriptorTimer {
        on_wall_clock: matches!(number(text, "clockid:", 10)?, 0 | 8) && !relative,
        relative,
        periodic: value(text, "it_interval:")? != "(0, 0)",
    })
}

fn value<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.map(str::trim).ok_or_else(|| format!("expected a line '{key}'"))
}

fn number(text: &str, key: &str, radix: u32) -> Result<u64, String> {
    u64::from_str_radix(value(text, key)?, radix).map_err(|_| format!("expected a number after '{key}'"))
}

/// Parses `/proc/PID/mountinfo` into the file system type of each mount; nothing else of it is
/// kept.
pub fn parse_mounts(text: &str) -> BTreeMap<u64, String> {
    let one = |line: &str| {
        let number = line.split(' ').next()?.parse().ok()?;
        let kind = line.split_once(" - ")?.1.split(' ').next()?;
        Some((number, kind.to_owned()))
    };
    text.lines().filter_map(one).collect()
}

/// Kind of a descriptor, by the last part of its name and the type of its file system.
pub fn open_kind(name: &str, filesystem: &str) -> OpenKind {
    let is_console = name.starts_with("tty") || name == "console" || name.starts_with("hvc");
    match name {
        _ if name.starts_with("pipe:[") => OpenKind::Pipe,
        _ if name.starts_with("socket:[") => OpenKind::Socket,
        "anon_inode:[eventfd]" => OpenKind::Eventfd,
        _ if name.starts_with("anon_inode:") => OpenKind::Other,
        _ if filesystem == "devpts" => OpenKind::Terminal,
        // Containers mount a separate tmpfs as /dev.
        "null" | "zero" | "full" if matches!(filesystem, "devtmpfs" | "tmpfs") => OpenKind::Null,
        _ if filesystem == "devtmpfs" && is_console => OpenKind::Terminal,
        _ if filesystem == "devtmpfs" => OpenKind::Device,
        _ => OpenKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_from_a_file() {
        for (name, filesystem, kind) in [
            ("3", "devpts", OpenKind::Terminal),
            ("3", "ext4", OpenKind::File),
            ("ttyS0", "devtmpfs", OpenKind::Terminal),
            ("ttyS0", "ext4", OpenKind::File),
            ("cpu_dma_latency", "devtmpfs", OpenKind::Device),
            ("null", "tmpfs", OpenKind::Null),
            ("pipe:[12]", "", OpenKind::Pipe),
            ("anon_inode:[eventfd]", "", OpenKind::Eventfd),
            ("anon_inode:[timerfd]", "", OpenKind::Other),
        ] {
            assert_eq!(open_kind(name, filesystem), kind, "{name} on {filesystem}");
        }
    }

    #[test]
    fn states_and_mounts_in_their_lines() {
        let state = parse_fdinfo("pos:\t12\nflags:\t0100001\nmnt_id:\t29\n");
        assert_eq!(state, Ok(OpenState { position: 12, writable: true, mount: 29, timer: None }));
        let timer = |clock, flags, interval| {
            let lines = format!("clockid: {clock}\nticks: 0\nsettime flags: {flags}\nit_value: (0, 1)\n");
            let text = format!("pos:\t0\nflags:\t02\nmnt_id:\t15\n{lines}it_interval: ({interval})\n");
            parse_fdinfo(&text).map(|state| state.timer.expect("a timer"))
        };
        let wall = |clock, flags| timer(clock, flags, "0, 0").map(|timer| timer.on_wall_clock);
        assert_eq!((wall("0", "01"), wall("8", "03")), (Ok(true), Ok(true)));
        assert_eq!((wall("1", "01"), wall("0", "00")), (Ok(false), Ok(false)));
        assert!(wall("x", "01").is_err());
        let set = |flags, interval| timer("1", flags, interval).map(|timer| (timer.relative, timer.periodic));
        assert_eq!((set("00", "0, 0"), set("01", "0, 2000000")), (Ok((true, false)), Ok((false, true))));
        assert!(parse_fdinfo("pos:\t12\nflags:\t02\n").is_err());
        assert!(parse_fdinfo("pos:\t12\nflags:\t0100000\nmnt_id:\t1\n").is_ok_and(|state| !state.writable));
        let mounts =
            parse_mounts("29 1 0:26 / /dev/pts rw,nosuid shared:3 - devpts devpts rw\nx\n30 - ext4\n");
        let kinds: Vec<&str> = mounts.values().map(String::as_str).collect();
        assert_eq!((kinds, mounts.contains_key(&29)), (vec!["devpts", "ext4"], true));
    }
}
