//! Parsing of names and texts of tracefs: the process that owns an instance, and the statistics of
//! its buffers.
//!
//! Source: proc_pid_stat(5), tracing_stats_read in kernel/trace/trace.c.

use crate::process::ProcessId;

/// Name of an instance: `onbeat-PID-START`.
pub fn name_of(owner: ProcessId) -> String {
    format!("onbeat-{}-{}", owner.pid, owner.start)
}

/// Name of the instance for a tracer that runs beside the events: `onbeat-PID-START-tracer`.
pub fn tracer_name_of(owner: ProcessId) -> String {
    name_of(owner) + TRACER
}

const TRACER: &str = "-tracer";

/// The process that owns an instance; none for any other name.
pub fn owner_of(name: &str) -> Option<ProcessId> {
    let name = name.strip_suffix(TRACER).unwrap_or(name);
    let (pid, start) = name.strip_prefix("onbeat-")?.split_once('-')?;
    let owner = ProcessId { pid: pid.parse().ok()?, start: start.parse().ok()? };
    // `parse` accepts a sign and leading zeros, which our names never have.
    (name_of(owner) == name).then_some(owner)
}

/// PID and start time (field 22) from `/proc/PID/stat`; none for a zombie, whose files are closed.
pub fn life_in(stat: &str) -> Option<ProcessId> {
    let (pid, rest) = stat.split_once(" (")?;
    // The name can contain blanks and brackets: it ends at the last closing bracket.
    let mut fields = rest.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X" | "x")).then_some(ProcessId { pid: pid.parse().ok()?, start })
}

/// Contents and losses of a CPU's buffer, as counts of events unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events not read yet.
    pub entries: u64,
    /// Events overwritten before they were read.
    pub overrun: u64,
    /// Events lost because interrupts filled the buffer during the write of a single event.
    pub commit_overrun: u64,
    /// Bytes not read yet.
    pub bytes: u64,
    /// Events dropped because the buffer was full and does not overwrite.
    pub dropped: u64,
    pub read: u64,
}

impl Stats {
    /// Parses `per_cpu/cpuN/stats`; a line that the kernel does not have counts as 0, but without
    /// `entries` there is no result.
    pub fn parse(text: &str) -> Option<Stats> {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse::<u64>().ok()
        };
        Some(Stats {
            entries: value("entries")?,
            overrun: value("overrun").unwrap_or(0),
            commit_overrun: value("commit overrun").unwrap_or(0),
            bytes: value("bytes").unwrap_or(0),
            dropped: value("dropped events").unwrap_or(0),
            read: value("read events").unwrap_or(0),
        })
    }

    /// Recorded events that can no longer be read.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_exact_names_have_an_owner() {
        assert_eq!(owner_of("onbeat-12-345"), Some(ProcessId { pid: 12, start: 345 }));
        for name in [
            "onbeat",
            "onbeat-",
            "onbeat-1",
            "onbeat-1-",
            "onbeat--1",
            "onbeat-01-2",
            "onbeat-1-+2",
            "onbeat-1-2-3",
            "onbeat-1-2-tracer-tracer",
            "onbeat-1-2tracer",
            "onbeat-1-2 ",
            " onbeat-1-2",
            "Onbeat-1-2",
            "onbeat-4294967296-1",
            "timerlat",
        ] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_is_identified_by_pid_and_start_time() {
        let stat = |name: &str, state: &str| {
            format!("42 ({name}) {state} 1 42 42 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 3 0 9876543 1 2 3")
        };
        let owner = Some(ProcessId { pid: 42, start: 9_876_543 });
        assert_eq!(life_in(&stat("sh", "S")), owner);
        assert_eq!(life_in(&stat("a) R 1 (b", "R")), owner);
        assert_eq!(life_in(&stat("sh", "Z")), None);
        assert_eq!(life_in("42 (sh) S 1 42"), None);
        assert_eq!(life_in(""), None);
    }

    #[test]
    fn stats_are_read_by_their_names() {
        let text = "entries: 129\noverrun: 7\ncommit overrun: 1\nbytes: 4096\noldest event ts:  6538.108230\n\
                    now ts:  6543.000001\ndropped events: 2\nread events: 55\n";
        let stats = Stats::parse(text).unwrap();
        let wanted = Stats { entries: 129, overrun: 7, commit_overrun: 1, bytes: 4096, dropped: 2, read: 55 };
        assert_eq!(stats, wanted);
        assert_eq!(stats.lost(), 10);
        assert_eq!(Stats::parse("overrun: 1\n"), None);
        assert_eq!(Stats::parse("entries: 3\n").map(|stats| stats.entries), Some(3));
    }

    proptest! {
        #[test]
        fn names_come_back(pid in 1u32.., start: u64) {
            let owner = ProcessId { pid, start };
            prop_assert_eq!(owner_of(&name_of(owner)), Some(owner));
            prop_assert_eq!(owner_of(&tracer_name_of(owner)), Some(owner));
        }

        #[test]
        fn any_text_is_survived(text in "[ ()a-z0-9:\n-]{0,80}") {
            owner_of(&text);
            life_in(&text);
            Stats::parse(&text);
        }
    }
}
