//! The records of cyclictest's formats.

use super::format::{ForeignFormat, Imported, Reader};
use super::{cyclictest_find, cyclictest_text, json_read};

/// cyclictest's text.
pub(super) const TEXT: ForeignFormat = ForeignFormat {
    id: "cyclictest-text",
    tool: "cyclictest's text",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "histogram, count, least, mean and largest latency per thread; priority and interval in T: \
              lines; samples with -v, spikes with --spike; in a log the command line before it",
    hides: "the unit (-N) of a histogram alone, CPUs without -a LIST, the times of wake-ups; from 2.7 rows \
            of zeros and # Total:; an early wake-up is printed as a maximum near 2^64",
    find: cyclictest_find::find,
    reader: Reader::Run(cyclictest_text::read),
};

/// cyclictest's JSON.
pub(super) const JSON: ForeignFormat = ForeignFormat {
    id: "cyclictest-json",
    tool: "cyclictest's JSON",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "the same with the command line, the CPU of each pinned thread, kernel, start and end",
    hides: "`realtime` is 0 on PREEMPT_RT kernels without /sys/kernel/realtime, as 7.3; `cpu` is -1 where a \
            thread is not pinned",
    find: json_read::find,
    reader: Reader::Run(|source, _, _| json_read::parse(source.text().as_bytes()).map(Imported::from)),
};
