//! Words of the language of the checks' examples, and the changes that they make to a thread.

use facts::Fact;
use facts::limits::Limit;
use facts::process::{ProgramThread, calls};
use facts::tasks::RtPolicy;
use model::units::{CpuSet, Nanos};
use trace::activity::Waker;

/// The window of an example.
pub const WINDOW: Nanos = Nanos(5_000_000_000);
/// EACCES.
const REFUSED: i32 = 13;

/// Changes a thread by keys and values.
pub fn change(thread: &mut ProgramThread, keys: &[(&str, &str)]) {
    for &(key, value) in keys {
        let number = || value.parse::<u64>().expect("a number");
        let (Fact::Known(counted), Fact::Known(calls)) = (&mut thread.counted, &mut thread.calls) else {
            panic!("refused")
        };
        match key {
            "comm" => thread.comm = value.into(),
            "policy" => {
                thread.policy = policy_of(value);
                if thread.policy.is_none() {
                    thread.priority = 0;
                }
            }
            "prio" => thread.priority = number() as u32,
            "nice" => thread.nice = value.parse().expect("a number"),
            "cpus" => thread.allowed = Fact::Known(cpus(value)),
            "seen" => thread.seen_on = cpus(value).iter().collect(),
            "faults" => counted.minor_faults = number(),
            "majors" => counted.major_faults = number(),
            "run" => counted.run_ns = value.parse::<f64>().ok().map(|share| (share * WINDOW.0 as f64) as u64),
            "voluntary" => counted.voluntary = number(),
            "writes" => calls.writes = number(),
            "written" => calls.written_bytes = number(),
            "reads" => calls.reads = number(),
            "read" => calls.read_bytes = number(),
            "fetched" => calls.fetched_bytes = number(),
            "slack" => thread.slack_ns = value.parse().map_or(Fact::Refused(REFUSED), Fact::Known),
            other => panic!("a thread has no {other}"),
        }
    }
}

/// Replaces a fact of a thread by a refusal.
pub fn refuse_of(thread: &mut ProgramThread, what: &str) {
    match what {
        "waits" => thread.waits = Fact::Refused(REFUSED),
        "io" => thread.calls = Fact::Refused(REFUSED),
        "counters" => thread.counted = Fact::Refused(REFUSED),
        "affinity" => thread.allowed = Fact::Refused(REFUSED),
        other => panic!("{other} cannot be refused"),
    }
}

/// Words of `KEY=VALUE`.
pub fn pairs<'a>(words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    words
        .iter()
        .map(|word| word.split_once('=').unwrap_or_else(|| panic!("{word} is no KEY=VALUE")))
        .collect()
}

/// A list of CPUs.
pub fn cpus(text: &str) -> CpuSet {
    CpuSet::parse(text).expect("CPUs")
}

/// A hexadecimal number.
pub fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is not hexadecimal"))
}

/// Number after its key.
pub fn number(text: &str, key: &str) -> u64 {
    text.strip_prefix(key).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{text} is no {key}"))
}

/// A limit that is both soft and hard.
pub fn limit(soft: u64) -> Limit {
    Limit { soft: Some(soft), hard: Some(soft) }
}

/// A policy by its word; none for `other`.
pub fn policy_of(word: &str) -> Option<RtPolicy> {
    match word {
        "fifo" => Some(RtPolicy::Fifo),
        "rr" => Some(RtPolicy::RoundRobin),
        "deadline" => Some(RtPolicy::Deadline),
        "other" => None,
        other => panic!("no policy {other}"),
    }
}

/// A waker: a thread ID, or 0 for an interrupt.
pub fn waker_of(word: &str) -> Waker {
    match word.parse().expect("a thread") {
        0 => Waker::Interrupt,
        tid => Waker::Thread(tid),
    }
}

/// Name and number of a call.
pub fn call_of(name: &str) -> (&'static str, i64) {
    let found = (0..1000)
        .find_map(|number| calls::call_name(number).filter(|own| *own == name).map(|own| (own, number)));
    found.unwrap_or_else(|| panic!("no call {name}"))
}
