//! Flags of cyclictest in rt-tests 2.10 and earlier.

use super::{ForeignFlag, number};

const fn row(letter: char, long: &'static str, meaning: &'static str, serves: &'static str) -> ForeignFlag {
    ForeignFlag::new("cyclictest", letter, long, meaning, serves)
}

const fn both(letter: char, long: &'static str, meaning: &'static str, serves: &'static str) -> ForeignFlag {
    ForeignFlag::new("cyclictest's and rtla", letter, long, meaning, serves)
}

const KEPT: &str =
    "it is always stored, `onbeat measure --hist FILE` and `onbeat report RUN --hist FILE` write it";

/// Flags of the histogram, whose letter is the help here.
pub const HISTOGRAM: &[ForeignFlag] = &[
    row('h', "histogram", "the histogram's end", KEPT).where_value(|value| number(value).is_some()),
    row(' ', "histogram", "the histogram's end", KEPT),
    row('H', "histofall", "the histogram, with a sum", KEPT),
    row(' ', "histfile", "the histogram's file", KEPT),
];

/// Flags that rtla has, too.
pub const BOTH: &[ForeignFlag] = &[
    both('A', "aligned", "all threads wake at the same time", "--phase aligned"),
    both(
        ' ',
        "deepest-idle-state",
        "the deepest idle state",
        "--idle held allows only states without exit latency, --idle as-is allows all",
    ),
];

/// Other flags that `measure` and `hunt` do not have.
pub const CYCLICTEST: &[ForeignFlag] = &[
    row(' ', "secaligned", "all threads wake at a full second", "--phase aligned wakes all CPUs at once"),
    row('c', "clock", "clock", "not available, the clock is CLOCK_MONOTONIC"),
    row(' ', "dbg_cyclictest", "prints debug messages", "-v prints all conditions of the run"),
    row('e', "latency", "/dev/cpu_dma_latency", "--idle held sets it to 0, --idle as-is does not touch it"),
    row(
        'F',
        "fifo",
        "writes the numbers to a pipe",
        "blocks.jsonl in the bundle gets one line per CPU each second",
    ),
    row(' ', "laptop", "leaves idle states unchanged", "--idle as-is"),
    row(
        'M',
        "refresh_on_max",
        "updates the display only at a new maximum",
        "the display is updated once a second, with -q not at all",
    ),
    row(' ', "oscope", "prints fewer samples", "not needed, samples are counted and not printed"),
    row(' ', "priospread", "a lower priority per thread", "not available, all CPUs have the priority of -p"),
    row('r', "relative", "relative sleep", "not available, a periodic task uses absolute sleeps"),
    row('R', "resolution", "resolution of the clock", "-v prints the time of one clock read"),
    row('s', "system", "sleeps with nanosleep", "--wake chooses nanosleep, timerfd, signal or futex"),
    row(
        ' ',
        "smi",
        "counts the firmware's interrupts",
        "`onbeat probe spin` measures the time that they take, `onbeat hunt` lists it as unexplained",
    ),
    row(' ', "spike", "records late wake-ups", "`onbeat hunt --over SPAN` records and explains each"),
    row(' ', "spike-nodes", "number of late wake-ups to record", "not needed, `onbeat hunt` records all"),
    row(
        ' ',
        "tracemark",
        "writes a mark to the trace at -b",
        "`onbeat hunt -b SPAN` stops there and names the culprit",
    ),
    row(' ', "tracer", "tracer of the kernel", "`onbeat hunt` records the kernel's events"),
    row('u', "unbuffered", "prints without buffering", "not needed, --json - writes the result at the end"),
    row('x', "posix_timers", "sleeps with a POSIX timer", "--wake signal"),
];
