//! Threads of this machine as `/proc` shows them, one at a time: a watch compares its record with
//! them.

use std::fs;

use model::units::Cpu;

/// State of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    pub tid: u32,
    pub process: u32,
    pub comm: String,
    /// Start time in clock ticks since boot, which identifies the thread together with its ID.
    pub start: u64,
    /// True for a kernel thread (PF_KTHREAD).
    pub kernel: bool,
    /// True if its policy is FIFO, round robin or deadline.
    pub real_time: bool,
    /// Its real-time priority; 0 without one.
    pub priority: u32,
    /// CPU that it ran on last.
    pub cpu: Cpu,
    /// True if it sleeps.
    pub asleep: bool,
    /// Number of voluntary context switches; `None` if they are not counted.
    pub voluntary: Option<u64>,
}

const KERNEL_THREAD: u64 = 0x0020_0000;
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const SCHED_DEADLINE: u64 = 6;

/// State of a thread from `/proc`; `None` if there is no such thread.
pub fn thread_facts(tid: u32) -> Option<ThreadFacts> {
    let mut facts = stat_of(tid, &text(&format!("/proc/{tid}/stat"))?)?;
    let status = text(&format!("/proc/{tid}/status"))?;
    let number =
        |key: &str| status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<u64>().ok();
    facts.process = number("Tgid:").and_then(|id| u32::try_from(id).ok())?;
    facts.voluntary = number("voluntary_ctxt_switches:");
    Some(facts)
}

/// Current real-time threads.
pub fn real_time_threads() -> Vec<ThreadFacts> {
    let tids = numbers_in("/proc").into_iter().flat_map(|pid| numbers_in(&format!("/proc/{pid}/task")));
    let is_one = |tid: &u32| {
        let stat = text(&format!("/proc/{tid}/stat")).and_then(|text| stat_of(*tid, &text));
        stat.is_some_and(|facts| facts.real_time)
    };
    tids.filter(is_one).filter_map(thread_facts).collect()
}

fn numbers_in(dir: &str) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads lossily, because names of threads may contain any bytes.
fn text(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses `1234 (comm) S ...` (proc_pid_stat(5)); the name may contain blanks and brackets.
fn stat_of(tid: u32, text: &str) -> Option<ThreadFacts> {
    let (begin, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 is the first of these.
    let field = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
    Some(ThreadFacts {
        tid,
        comm: begin.split_once(" (")?.1.to_owned(),
        start: field(22)?,
        kernel: field(9)? & KERNEL_THREAD != 0,
        asleep: matches!(fields.first(), Some(&("S" | "D" | "I"))),
        priority: field(40).and_then(|priority| priority.try_into().ok()).unwrap_or(0),
        cpu: Cpu(field(39).and_then(|cpu| cpu.try_into().ok()).unwrap_or(0)),
        real_time: matches!(field(41)?, SCHED_FIFO | SCHED_RR | SCHED_DEADLINE),
        ..ThreadFacts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_itself() {
        let tid = crate::rt::thread_id() as u32;
        let facts = thread_facts(tid).unwrap();
        assert_eq!((facts.tid, facts.process), (tid, std::process::id()));
        assert_eq!(Some(facts.start), crate::process_start(tid));
        assert!(!facts.kernel && facts.voluntary.is_some());
        assert_eq!(thread_facts(u32::MAX), None);
    }

    #[test]
    fn names_may_look_like_fields() {
        let tail =
            "S 1 1 1 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 77 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 17 0 50 1";
        let facts = stat_of(5, &format!("5 (a) S (b)) {tail}")).unwrap();
        assert_eq!((facts.comm.as_str(), facts.start, facts.real_time), ("a) S (b)", 77, true));
        assert!(facts.kernel);
        assert_eq!(stat_of(5, "5 (a"), None);
    }
}
