//! Flags of cyclictest in rt-tests 2.10 and earlier.

use super::{ForeignFlag, number};

const fn row(letter: char, long: &'static str, meaning: &'static str, serves: &'static str) -> ForeignFlag {
    ForeignFlag::new("cyclictest", letter, long, meaning, serves)
}

const fn both(letter: char, long: &'static str, meaning: &'static str, serves: &'static str) -> ForeignFlag {
    ForeignFlag::new("cyclictest's and rtla", letter, long, meaning, serves)
}

const KEPT: &str =
    "it is always kept, `onbeat measure --hist FILE` and `onbeat report RUN --hist FILE` write it";

/// Flags of the histogram, whose letter is the help here.
pub const HISTOGRAM: &[ForeignFlag] = &[
    row('h', "histogram", "the histogram's end", KEPT).where_value(|value| number(value).is_some()),
    row(' ', "histogram", "the histogram's end", KEPT),
    row('H', "histofall", "the histogram, with a sum", KEPT),
    row(' ', "histfile", "the histogram's file", KEPT),
];

/// Flags that rtla has, too.
pub const BOTH: &[ForeignFlag] = &[
    both('A', "aligned", "threads wake up at once", "--phase aligned"),
    both(
        ' ',
        "deepest-idle-state",
        "the deepest idle state",
        "--idle held allows none that takes time to leave, --idle as-is all",
    ),
];

/// Other flags that `measure` and `hunt` do not have.
pub const CYCLICTEST: &[ForeignFlag] = &[
    row(' ', "secaligned", "threads wake up at a full second", "--phase aligned wakes all CPUs at once"),
    row('c', "clock", "which clock", "it is CLOCK_MONOTONIC, leave it out"),
    row(' ', "dbg_cyclictest", "prints what the tool does", "-v prints all conditions of the run"),
    row('e', "latency", "/dev/cpu_dma_latency", "--idle held keeps it at 0, --idle as-is leaves it alone"),
    row('F', "fifo", "a pipe with the numbers", "the bundle's blocks.jsonl gets a line per CPU each second"),
    row(' ', "laptop", "idle states as they are", "--idle as-is leaves them alone"),
    row(
        'M',
        "refresh_on_max",
        "draws at a new maximum alone",
        "it is drawn once a second, with -q not at all",
    ),
    row(' ', "oscope", "prints fewer samples", "samples are counted and not printed, leave it out"),
    row(' ', "priospread", "a lower priority per thread", "all CPUs have that of -p"),
    row('r', "relative", "sleeps for a time", "a periodic task sleeps until a time, leave it out"),
    row('R', "resolution", "what the clock can tell apart", "-v prints what one read of the clock takes"),
    row('s', "system", "sleeps by nanosleep", "--wake chooses nanosleep, timerfd, signal or futex"),
    row(
        ' ',
        "smi",
        "counts the firmware's interrupts",
        "`onbeat probe spin` finds the time that they take, `onbeat hunt` has it as unexplained",
    ),
    row(
        ' ',
        "spike",
        "records late wake-ups",
        "`onbeat hunt --over SPAN` keeps every one, with who took the time",
    ),
    row(' ', "spike-nodes", "how many late wake-ups are kept", "`onbeat hunt` keeps every one, leave it out"),
    row(
        ' ',
        "tracemark",
        "a mark in the trace at -b",
        "`onbeat hunt -b SPAN` stops there, and says who took the time",
    ),
    row(' ', "tracer", "the kernel's tracer", "`onbeat hunt` records the kernel's events"),
    row('u', "unbuffered", "prints at once", "--json - writes the result when it is there, leave it out"),
    row('x', "posix_timers", "sleeps by a POSIX timer", "--wake signal"),
];
