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

const TRACE: &str = "`onbeat hunt` keeps every spike's events in its bundle, and --perfetto FILE writes them";
const EVENTS: &str = "`onbeat hunt` records the events that explain a spike, leave it out";
const HISTOGRAM: &str = "the histogram is kept whole, and `onbeat report RUN` writes it in several forms";
const STOPS: &str = "`onbeat hunt -b SPAN` stops there with the explanation, --over SPAN keeps every spike";
const SPIN: &str = "`onbeat probe spin` has the longest gaps, and -b SPAN stops at one";

/// Interval in us below which `hunt` requires a unit.
const SHORT_INTERVAL: u64 = 100;

/// Flags of `hunt` that may be meant as rtla's.
pub const HUNT: &[ForeignFlag] = &[row(
    'i',
    "irq",
    "stops at an interrupt's latency",
    "-b SPAN stops at a latency; and for an interval this short give the unit, as -i 50us",
)
.where_value(|value| number(value).is_some_and(|us| us < SHORT_INTERVAL))];

/// Flags of `rtla timerlat`, which `measure` and `hunt` replace.
pub const TIMERLAT: &[ForeignFlag] = &[
    row(' ', "aa-only", "stops at a latency and prints the analysis", STOPS),
    row(' ', "auto", "stops at a latency, with stacks and a trace", STOPS),
    row(' ', "bpf-action", "a BPF program at the threshold", "`onbeat hunt --on-spike exec:PROGRAM`"),
    row(
        ' ',
        "dma-latency",
        "/dev/cpu_dma_latency",
        "--idle held keeps it at 0, --idle as-is leaves it alone",
    ),
    row(
        ' ',
        "dump-tasks",
        "the task of each CPU at the stop",
        "`onbeat hunt` keeps all CPUs' events, leave it out",
    ),
    row(' ', "irq", "stops at an interrupt's latency", STOPS),
    row(
        'k',
        "kernel-threads",
        "threads of the kernel's wake up",
        "they are in user space here, leave it out",
    ),
    row(' ', "no-aa", "no analysis", "`onbeat measure` traces nothing"),
    row(' ', "no-irq", "no histogram of interrupts", HISTOGRAM),
    row(' ', "no-thread", "no histogram of threads", HISTOGRAM),
    row('p', "period", "the interval", "-i SPAN is the interval, -p N a priority of 1 to 99")
        .where_value(|value| number(value).is_some_and(|us| us >= 1000)),
    row(' ', "period", "the interval", "-i SPAN"),
    row('s', "stack", "the stack at the interrupt", "`onbeat hunt` takes stacks, unless --no-stacks"),
    row(' ', "stack-format", "how stacks are printed", "there is one format, leave it out"),
    row('T', "thread", "stops at a thread's latency", STOPS),
    row('u', "user-threads", "threads in user space wake up", "so they do here, leave it out"),
    row('U', "user-load", "a program of one's own wakes up", "`onbeat hunt -- PROGRAM` follows its threads"),
];

/// Flags that timerlat and osnoise share.
pub const RTLA: &[ForeignFlag] = &[
    row('c', "cpus", "which CPUs", "-a CPUS"),
    row('C', "cgroup", "the threads' control group", "they are in onbeat's own: start onbeat in it"),
    row(
        'D',
        "debug",
        "prints what the tool does",
        "-v prints all conditions of the run, -D SPAN is how long",
    )
    .where_value(|value| value.is_none_or(is_flag)),
    row(' ', "debug", "prints what the tool does", "-v prints all conditions of the run"),
    row('d', "duration", "how long", "-D SPAN"),
    row('e', "event", "another event in the trace", EVENTS),
    row('E', "entries", "the histogram's end", HISTOGRAM),
    row(' ', "bucket-size", "the histogram's step", HISTOGRAM),
    row(' ', "filter", "which events of that kind", EVENTS),
    row('H', "house-keeping", "CPUs of the tool's own threads", "--housekeeping CPUS"),
    row(' ', "no-header", "no heading of the histogram", HISTOGRAM),
    row(' ', "no-index", "no index of the histogram", HISTOGRAM),
    row(' ', "no-summary", "no summary of the histogram", HISTOGRAM),
    row(
        ' ',
        "on-end",
        "what is done at the end",
        "write it as the next command: the exit code says how it ended",
    ),
    row(
        ' ',
        "on-threshold",
        "what is done at the threshold",
        "`onbeat hunt --on-spike ACTION` with exec:PROGRAM, signal:NAME:PID or trace-off",
    ),
    row('t', "trace", "the file of the trace", TRACE)
        .where_value(|value| value.is_some_and(|text| !is_flag(text) && text.contains(['.', '/']))),
    row('t', "trace", "the file of the trace", TRACE),
    row(' ', "trace-buffer-size", "the size of the trace's buffer", "onbeat chooses it, leave it out"),
    row(' ', "trigger", "what is done at such an event", EVENTS),
    row(' ', "warm-up", "time before the first sample", "onbeat warms up by itself, leave it out"),
    row(' ', "with-zeros", "rows of zeros in the histogram", HISTOGRAM),
];

/// Flags of `rtla osnoise`, which `probe spin` replaces.
pub const OSNOISE: &[ForeignFlag] = &[
    osnoise(' ', "auto", "stops at a noise, with a trace", SPIN),
    osnoise(
        'p',
        "period",
        "how often it looks",
        "all of the time is looked at; -p N is a priority of 1 to 99",
    )
    .where_value(|value| number(value).is_some_and(|us| us >= 1000)),
    osnoise(' ', "period", "how often it looks", "`onbeat probe spin` looks all the time, leave it out"),
    osnoise(
        'r',
        "runtime",
        "how much of a period it looks",
        "`onbeat probe spin` looks all the time, leave it out",
    ),
    osnoise('s', "stop", "stops at a noise", "`onbeat probe spin -b SPAN`"),
    osnoise('S', "stop-total", "stops at a sum of noise", SPIN).where_value(|value| number(value).is_some()),
    osnoise('S', "stop-total", "stops at a sum of noise", SPIN),
    osnoise('T', "threshold", "from when on it is noise", "`onbeat probe spin --over SPAN`"),
];

/// Flags of both tools that users may try in `prove` and `cure`.
pub const EXPERIMENTS: &[ForeignFlag] = &[
    row('c', "cpus", "which CPUs", "-a CPUS"),
    row('d', "duration", "how long", "--segment SPAN is the length of a run"),
    ForeignFlag::new(
        "cyclictest",
        'd',
        "distance",
        "a distance between the threads' intervals",
        "all have that of -i",
    ),
    ForeignFlag::new("cyclictest", 'D', "duration", "how long", "--segment SPAN is the length of a run"),
    ForeignFlag::new("cyclictest", 'b', "breaktrace", "stops at a latency", "-l SPAN is the limit"),
    row('P', "priority", "the threads' policy and priority", "-p N, which is SCHED_FIFO"),
    row('T', "thread", "stops at a thread's latency", "-l SPAN is the limit"),
];

/// True if a word is a flag and not a negative number.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic()))
}
