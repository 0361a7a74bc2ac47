//! The kernel's counters of a thread: page faults, time on a CPU, context switches, reads and
//! writes.
//!
//! Source: proc_pid_stat(5), `/proc/PID/io` and "schedstat" in Documentation/filesystems/proc.rst
//! and Documentation/scheduler/sched-stats.rst.

/// Counters of the scheduler and the memory management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Page faults without (minor) and with (major) reading from a disk.
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Time on a CPU; none if the kernel does not count it in nanoseconds.
    pub run_ns: Option<u64>,
    /// Voluntary and involuntary context switches.
    pub voluntary: u64,
    pub involuntary: u64,
}

impl ThreadCounters {
    /// Increase since an earlier reading.
    pub fn since(&self, before: &ThreadCounters) -> ThreadCounters {
        ThreadCounters {
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            run_ns: self.run_ns.zip(before.run_ns).map(|(now, then)| now.saturating_sub(then)),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// Reads and writes of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounters {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Bytes read from a disk.
    pub fetched_bytes: u64,
}

impl CallCounters {
    /// Increase since an earlier reading.
    pub fn since(&self, before: &CallCounters) -> CallCounters {
        CallCounters {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            fetched_bytes: self.fetched_bytes.saturating_sub(before.fetched_bytes),
        }
    }
}

/// Parses `/proc/PID/task/TID/io`.
pub fn parse_io(text: &str) -> Result<CallCounters, String> {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| format!("expected a number after '{key}'"))
    };
    Ok(CallCounters {
        reads: number("syscr:")?,
        read_bytes: number("rchar:")?,
        writes: number("syscw:")?,
        written_bytes: number("wchar:")?,
        fetched_bytes: number("read_bytes:")?,
    })
}

/// Voluntary and involuntary context switches in a thread's `status`.
pub fn parse_switches(status: &str) -> Result<(u64, u64), String> {
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| format!("expected a number after '{key}'"))
    };
    Ok((number("voluntary_ctxt_switches:")?, number("nonvoluntary_ctxt_switches:")?))
}

/// Time on a CPU in `/proc/PID/task/TID/schedstat`: nanoseconds running, nanoseconds waiting, and
/// number of time slices.
pub fn parse_run_ns(text: &str) -> Result<u64, String> {
    let words: Vec<&str> = text.split_whitespace().take(4).collect();
    match words[..] {
        [run, _, _] => run.parse().map_err(|_| "expected three numbers".to_owned()),
        _ => Err("expected three numbers".to_owned()),
    }
}

/// Minor and major page faults and the nice value in a `stat` line: fields 10, 12 and 19.
pub fn parse_faults_and_nice(stat: &[u8]) -> Result<(u64, u64, i64), String> {
    let expected = || "expected TID (NAME) STATE and 50 numbers".to_owned();
    let close = stat.iter().rposition(|&byte| byte == b')').ok_or_else(expected)?;
    let rest = String::from_utf8_lossy(&stat[close + 1..]);
    let fields: Vec<&str> = rest.split_whitespace().take(20).collect();
    let field = |number: usize| fields.get(number - 3).copied().ok_or_else(expected);
    let count = |number: usize| field(number)?.parse::<u64>().map_err(|_| expected());
    Ok((count(10)?, count(12)?, field(19)?.parse().map_err(|_| expected())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_in_their_texts() {
        let io = "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n\
                  read_bytes: 4096\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
        let counted = parse_io(io).unwrap();
        assert_eq!((counted.writes, counted.written_bytes, counted.fetched_bytes), (4, 20, 4096));
        assert!(parse_io("").is_err() && parse_io("syscr: x\n").is_err());
        let status = "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse_switches(status), Ok((12, 3)));
        assert_eq!((parse_run_ns("12 3 4\n"), parse_run_ns("12 3\n").is_err()), (Ok(12), true));
        let stat = b"7 (a) b) S 1 2 3 4 5 6 100 0 5 0 1 2 3 4 20 -5 1 0 77";
        assert_eq!(parse_faults_and_nice(stat), Ok((100, 5, -5)));
        assert!(parse_faults_and_nice(b"7 (a").is_err() && parse_faults_and_nice(b"7 (a) S 1").is_err());
    }

    #[test]
    fn a_window_is_the_difference() {
        let before = ThreadCounters { minor_faults: 5, run_ns: Some(10), voluntary: 1, ..Default::default() };
        let after = ThreadCounters { minor_faults: 9, run_ns: None, voluntary: 4, ..before };
        let counted = after.since(&before);
        assert_eq!((counted.minor_faults, counted.run_ns, counted.voluntary), (4, None, 3));
    }
}
