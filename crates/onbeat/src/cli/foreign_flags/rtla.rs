//! Flags of rtla 7.3 and earlier.

use super::{ForeignFlag, number};

pub const OSNOISE_TOOL: &str = "rtla osnoise";

const fn row(letter: char, long: &'static str, meaning: &'static str, serves: &'static str) -> ForeignFlag {
    ForeignFlag::new("rtla", letter, long, meaning, serves)
}

const fn osnoise(
    letter: char,
    long: &'static str,
    meaning: &'static str,
    serves: &'static str,
) -> ForeignFlag {
    ForeignFlag::new(OSNOISE_TOOL, letter, long, meaning, serves)
}

const TRACE: &str = "`onbeat hunt` stores the events of every spike in its bundle, and --perfetto FILE \
                     writes them";
const EVENTS: &str = "not needed, `onbeat hunt` records the events that explain a spike";
const HISTOGRAM: &str = "the whole histogram is stored, and `onbeat report RUN` writes it in several formats";
const STOPS: &str = "`onbeat hunt -b SPAN` stops there and explains it, --over SPAN explains every spike";
const SPIN: &str = "`onbeat probe spin` lists the longest gaps, and -b SPAN stops at one";

/// Interval in us below which `hunt` requires a unit.
const SHORT_INTERVAL: u64 = 100;

/// Flags of `hunt` that may be meant as rtla's.
pub const HUNT: &[ForeignFlag] = &[row(
    'i',
    "irq",
    "stops at a latency of the interrupt",
    "-b SPAN stops at a latency; an interval this short needs a unit, as -i 50us",
)
.where_value(|value| number(value).is_some_and(|us| us < SHORT_INTERVAL))];

/// Flags of `rtla timerlat`, which `measure` and `hunt` replace.
pub const TIMERLAT: &[ForeignFlag] = &[
    row(' ', "aa-only", "stops at a latency and prints the analysis", STOPS),
    row(' ', "auto", "stops at a latency, with stacks and a trace", STOPS),
    row(' ', "bpf-action", "runs a BPF program at the threshold", "`onbeat hunt --on-spike exec:PROGRAM`"),
    row(
        ' ',
        "dma-latency",
        "/dev/cpu_dma_latency",
        "--idle held sets it to 0, --idle as-is does not touch it",
    ),
    row(
        ' ',
        "dump-tasks",
        "prints the task of each CPU at the stop",
        "not needed, `onbeat hunt` stores the events of all CPUs",
    ),
    row(' ', "irq", "stops at a latency of the interrupt", STOPS),
    row('k', "kernel-threads", "wakes kernel threads", "not available, onbeat's threads are in user space"),
    row(' ', "no-aa", "no analysis", "`onbeat measure` traces nothing"),
    row(' ', "no-irq", "no histogram of interrupts", HISTOGRAM),
    row(' ', "no-thread", "no histogram of threads", HISTOGRAM),
    row('p', "period", "the interval", "-i SPAN is the interval, -p N a priority of 1 to 99")
        .where_value(|value| number(value).is_some_and(|us| us >= 1000)),
    row(' ', "period", "the interval", "-i SPAN"),
    row('s', "stack", "the stack at the interrupt", "`onbeat hunt` takes stacks, unless --no-stacks"),
    row(' ', "stack-format", "format of stacks", "not needed, there is only one format"),
    row('T', "thread", "stops at a latency of the thread", STOPS),
    row('u', "user-threads", "wakes user-space threads", "not needed, onbeat's threads are in user space"),
    row('U', "user-load", "wakes your program", "`onbeat hunt -- PROGRAM` follows its threads"),
];

/// Flags that timerlat and osnoise share.
pub const RTLA: &[ForeignFlag] = &[
    row('c', "cpus", "CPUs", "-a CPUS"),
    row(
        'C',
        "cgroup",
        "the threads' control group",
        "the threads are in onbeat's control group, so start onbeat in that group",
    ),
    row(
        'D',
        "debug",
        "prints debug messages",
        "-v prints all conditions of the run, -D SPAN is the duration",
    )
    .where_value(|value| value.is_none_or(is_flag)),
    row(' ', "debug", "prints debug messages", "-v prints all conditions of the run"),
    row('d', "duration", "duration", "-D SPAN"),
    row('e', "event", "adds an event to the trace", EVENTS),
    row('E', "entries", "the histogram's end", HISTOGRAM),
    row(' ', "bucket-size", "the histogram's step", HISTOGRAM),
    row(' ', "filter", "filter for these events", EVENTS),
    row('H', "house-keeping", "CPUs for the tool's threads", "--housekeeping CPUS"),
    row(' ', "no-header", "histogram without heading", HISTOGRAM),
    row(' ', "no-index", "histogram without index", HISTOGRAM),
    row(' ', "no-summary", "histogram without summary", HISTOGRAM),
    row(
        ' ',
        "on-end",
        "action at the end",
        "run it as the next command, the exit code tells how the run ended",
    ),
    row(
        ' ',
        "on-threshold",
        "action at the threshold",
        "`onbeat hunt --on-spike ACTION` with exec:PROGRAM, signal:NAME:PID or trace-off",
    ),
    row('t', "trace", "trace file", TRACE)
        .where_value(|value| value.is_some_and(|text| !is_flag(text) && text.contains(['.', '/']))),
    row('t', "trace", "trace file", TRACE),
    row(' ', "trace-buffer-size", "size of the trace buffer", "not needed, onbeat chooses the size"),
    row(' ', "trigger", "action at an event", EVENTS),
    row(' ', "warm-up", "time before the first sample", "not needed, onbeat always warms up"),
    row(' ', "with-zeros", "rows of zeros in the histogram", HISTOGRAM),
];

/// Flags of `rtla osnoise`, which `probe spin` replaces.
pub const OSNOISE: &[ForeignFlag] = &[
    osnoise(' ', "auto", "stops at a single noise, with a trace", SPIN),
    osnoise(
        'p',
        "period",
        "period of the samples",
        "`onbeat probe spin` samples all the time; -p N is a priority of 1 to 99",
    )
    .where_value(|value| number(value).is_some_and(|us| us >= 1000)),
    osnoise(' ', "period", "period of the samples", "not needed, `onbeat probe spin` samples all the time"),
    osnoise(
        'r',
        "runtime",
        "sampling time per period",
        "not needed, `onbeat probe spin` samples all the time",
    ),
    osnoise('s', "stop", "stops at a single noise", "`onbeat probe spin -b SPAN`"),
    osnoise('S', "stop-total", "stops at a sum of noise", SPIN).where_value(|value| number(value).is_some()),
    osnoise('S', "stop-total", "stops at a sum of noise", SPIN),
    osnoise('T', "threshold", "shortest noise", "`onbeat probe spin --over SPAN`"),
];

/// Flags of both tools that users may try in `prove` and `cure`.
pub const EXPERIMENTS: &[ForeignFlag] = &[
    row('c', "cpus", "CPUs", "-a CPUS"),
    row('d', "duration", "duration", "--segment SPAN is the length of a run"),
    ForeignFlag::new(
        "cyclictest",
        'd',
        "distance",
        "distance between the threads' intervals",
        "not available, all threads have the interval of -i",
    ),
    ForeignFlag::new("cyclictest", 'D', "duration", "duration", "--segment SPAN is the length of a run"),
    ForeignFlag::new("cyclictest", 'b', "breaktrace", "stops at a latency", "-l SPAN is the limit"),
    row('P', "priority", "policy and priority of the threads", "-p N under SCHED_FIFO"),
    row('T', "thread", "stops at a latency of the thread", "-l SPAN is the limit"),
];

/// True if a word is a flag and not a negative number.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic()))
}
