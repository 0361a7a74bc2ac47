//! One line of cyclictest's text output, parsed; other modules decide its meaning in the full text.
//!
//! Source: rt-tests' cyclictest.c, print_hist and print_stat, versions 2.1 to 2.9.

use super::labelled_numbers::LabelledNumbers;
use super::thread_totals::ThreadTotals;
use super::{THREAD_LIMIT, quoted};
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// A line with content; the lists are one number per thread and, with `-H`, a last one over all.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// `000014 000001 000001`: a bucket, a blank, and its counts between tabs.
    Row(u64, Vec<u64>),
    /// `# Total:`, up to version 2.6.
    Total(Vec<i128>),
    /// `# Min Latencies:`, never with a number over all.
    Min(Vec<i128>),
    /// `# Avg Latencies:`, never with a number over all.
    Avg(Vec<i128>),
    /// `# Max Latencies:`.
    Max(Vec<i128>),
    /// `# Histogram Overflows:`.
    Overflows(Vec<i128>),
    /// `# Thread 0: 00248 00393 # 00012 others`: the numbers of the samples that overflowed.
    OverflowCycles(usize, Vec<u64>),
    /// `T: 0 ( 8976) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:     717`.
    Summary(usize, Summary),
    /// `policy: fifo: loadavg: ...`: the policy, and the three load averages.
    Policy(String, String),
    /// A thread and its CPU, with `-v`.
    ThreadCpu(usize, Cpu),
    /// A thread and its interval in microseconds, with `-v`.
    ThreadInterval(usize, u32),
    /// A thread, the number of a wake-up and its latency, with `-v`.
    Sample(usize, u64, i64),
    /// A thread, a latency and its time in microseconds of CLOCK_MONOTONIC, with `--spike`.
    Spike(usize, i64, u64),
    /// `# Histogram`.
    Heading,
    /// Another line of the tool that begins with `#`.
    Frame,
    /// `# SMIs: 00002 00000`, with `--smi`.
    Smis(Vec<i128>),
    /// A line that begins with `#` and is not the tool's.
    Comment,
    /// `# Break value: 218`: `-b` ended the run.
    Break,
    /// `# /dev/cpu_dma_latency set to 0us`.
    IdleHeld,
    /// Anything else.
    Other,
}

/// The numbers of a `T:` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// The thread's id; 0 until it runs.
    pub tid: u64,
    pub priority: u32,
    /// Interval in microseconds, also with `-N`.
    pub interval_us: u32,
    pub cycles: u64,
    pub min: i128,
    /// Latency of the last wake-up.
    pub act: i128,
    pub avg: i128,
    pub max: i128,
    /// System management interrupts, with `--smi`.
    pub smi: u64,
    /// Unit of the latencies by the widths of their columns.
    pub unit: Option<Nanos>,
}

impl Summary {
    pub(super) fn totals(&self) -> ThreadTotals {
        ThreadTotals { id: self.tid, cycles: self.cycles, min: self.min, max: self.max }
    }

    /// The contradiction of a line: latencies without a wake-up, or a last one above the largest.
    pub(super) fn fault(&self) -> Option<String> {
        let (act, max) = (self.act, self.max);
        match self.cycles {
            0 if max != 0 => Some(format!("C: is 0 and Max: is {max}: give the line as it was printed")),
            // The maximum of an early wake-up has no sign.
            1.. if 0 <= max && max < act => {
                Some(format!("Act: {act} is above Max: {max}: give the line as it was printed"))
            }
            _ => None,
        }
    }
}

/// Parses a line; the error states what was expected.
pub(super) fn parse(line: &str) -> Result<Line, String> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix('#') {
        return parse_comment(rest.trim_start());
    }
    if let Some(rest) = line.strip_prefix("T:").filter(|rest| is_of_thread(rest)) {
        return parse_spike(rest).or_else(|| parse_summary(rest)).ok_or_else(|| {
            format!("expected T: thread (id) P: I: C: Min: Act: Avg: Max:, found {}", quoted(line))
        });
    }
    if let Some(rest) = line.strip_prefix("policy:") {
        return Ok(parse_policy(rest));
    }
    if let Some(line) = parse_thread(line).or_else(|| parse_sample(line)) {
        return Ok(line);
    }
    // Spreadsheets write the columns with commas or semicolons.
    let is_separator = |c: char| matches!(c, ',' | ';');
    if line.contains(is_separator)
        && line.chars().all(|c| c.is_ascii_digit() || c.is_ascii_whitespace() || is_separator(c))
    {
        return Ok(parse_row(&line.replace(is_separator, " ")).unwrap_or(Line::Other));
    }
    let first = line.split_ascii_whitespace().next().unwrap_or_default();
    if !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Line::Other);
    }
    // Buckets are padded to six digits: such a line that is not a row is damaged.
    parse_row(line).or_else(|what| if first.len() < 6 { Ok(Line::Other) } else { Err(what) })
}

/// True behind the `T:` of a thread's line, possibly a damaged one; `T:` may begin another text.
fn is_of_thread(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()) || rest.contains(" Min:")
}

/// `policy: fifo: loadavg: 0.63 0.35 0.2 1/135 6382`.
fn parse_policy(rest: &str) -> Line {
    let policy = rest.split(':').next().unwrap_or("").trim().to_owned();
    let load = rest.split_once("loadavg:").map_or("", |parts| parts.1);
    let load: Vec<&str> = load.split_ascii_whitespace().take(3).collect();
    Line::Policy(policy, load.join(" "))
}

/// `Thread 0 using cpu 0.` and `Thread 0 Interval: 1500`, which precede `-v`'s samples.
fn parse_thread(line: &str) -> Option<Line> {
    let (number, rest) = line.strip_prefix("Thread ")?.split_once(' ')?;
    let thread = number.parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?;
    if let Some(cpu) = rest.strip_prefix("using cpu ") {
        let cpu = cpu.trim_end_matches('.').parse().ok().filter(|&cpu| cpu < CPU_LIMIT)?;
        return Some(Line::ThreadCpu(thread, Cpu(cpu)));
    }
    rest.strip_prefix("Interval: ")?.trim().parse().ok().map(|us: u32| Line::ThreadInterval(thread, us))
}

/// `       0:     123:      17`: a thread, the number of its wake-up, and the latency.
fn parse_sample(line: &str) -> Option<Line> {
    let mut parts = line.split(':').map(str::trim);
    let thread = parts.next()?.parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?;
    let (cycle, latency) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(Line::Sample(thread, cycle, latency))
}

/// ` 0 Spike:     140: TS:   1765746770`.
fn parse_spike(rest: &str) -> Option<Line> {
    let (thread, rest) = rest.split_once("Spike:")?;
    let thread = thread.trim().parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?;
    let (latency, time) = rest.split_once(": TS:")?;
    Some(Line::Spike(thread, latency.trim().parse().ok()?, time.trim().parse().ok()?))
}

fn parse_row(line: &str) -> Result<Line, String> {
    let expected = || format!("expected a bucket and a count per thread, found {}", quoted(line));
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
    let bucket = numbers.next().and_then(Result::ok).ok_or_else(expected)?;
    let counts: Vec<u64> =
        numbers.take(THREAD_LIMIT + 2).collect::<Result<_, _>>().map_err(|_| expected())?;
    if counts.is_empty() || counts.len() > THREAD_LIMIT + 1 {
        return Err(format!("expected 1 to {THREAD_LIMIT} threads, found {} counts", counts.len()));
    }
    Ok(Line::Row(bucket, counts))
}

fn parse_comment(comment: &str) -> Result<Line, String> {
    if comment.starts_with("/dev/cpu_dma_latency set to 0us") {
        return Ok(Line::IdleHeld);
    }
    if comment == "Histogram" {
        return Ok(Line::Heading);
    }
    let Some((name, rest)) = comment.split_once(':') else { return Ok(Line::Comment) };
    let list = || {
        let numbers: Option<Vec<i128>> =
            rest.split_ascii_whitespace().take(THREAD_LIMIT + 2).map(|word| word.parse().ok()).collect();
        numbers.ok_or_else(|| format!("expected numbers after # {name}:, found {}", quoted(rest)))
    };
    Ok(match name {
        "Total" => Line::Total(list()?),
        "Min Latencies" => Line::Min(list()?),
        "Avg Latencies" => Line::Avg(list()?),
        "Max Latencies" => Line::Max(list()?),
        "Histogram Overflows" => Line::Overflows(list()?),
        "SMIs" => Line::Smis(list()?),
        "Break value" => Line::Break,
        _ => match name.strip_prefix("Thread ") {
            Some(index) if index.starts_with(|c: char| c.is_ascii_digit()) => overflow_cycles(index, rest)?,
            Some("Ids") => Line::Frame,
            _ if matches!(name, "Histogram Overflow at cycle number" | "Break thread") => Line::Frame,
            _ => Line::Comment,
        },
    })
}

fn overflow_cycles(index: &str, rest: &str) -> Result<Line, String> {
    let thread = index.parse().ok().filter(|&n| n < THREAD_LIMIT);
    let thread =
        thread.ok_or_else(|| format!("expected a thread below {THREAD_LIMIT}, found {}", quoted(index)))?;
    // The number after a second # counts those that were not listed.
    let listed = rest.split('#').next().unwrap_or("");
    let cycles: Result<Vec<u64>, _> = listed.split_ascii_whitespace().map(str::parse).collect();
    let cycles = cycles.map_err(|_| format!("expected cycle numbers, found {}", quoted(listed)))?;
    Ok(Line::OverflowCycles(thread, cycles))
}

fn parse_summary(rest: &str) -> Option<Line> {
    let (thread, rest) = rest.split_once('(')?;
    let thread = thread.trim().parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?;
    let (tid, fields) = rest.split_once(')')?;
    let mut rest = LabelledNumbers(fields);
    let mut summary = Summary {
        tid: tid.trim().parse().ok()?,
        priority: rest.number("P:")?,
        interval_us: rest.number("I:")?,
        cycles: rest.number("C:")?,
        min: rest.number("Min:")?,
        act: rest.number("Act:")?,
        avg: rest.number("Avg:")?,
        max: rest.number("Max:")?,
        smi: 0,
        unit: unit_of_widths(fields),
    };
    if !rest.is_over() {
        summary.smi = rest.number("SMI:")?;
    }
    rest.is_over().then_some(Line::Summary(thread, summary))
}

/// Unit by the widths of `Act:` and `Avg:`, 5 columns in microseconds and 8 with `-N` (print_stat
/// of cyclictest.c); `None` where blanks were squeezed, or numbers fill their columns.
fn unit_of_widths(fields: &str) -> Option<Nanos> {
    let field = |label: &str, next: &str| Some(fields.split_once(label)?.1.split_once(next)?.0);
    // `Min:` has 7 columns in both.
    field("Min:", " Act:").filter(|min| min.len() >= 7)?;
    [("Act:", " Avg:"), ("Avg:", " Max:")].into_iter().find_map(|(label, next)| {
        let field = field(label, next)?;
        match field.len() {
            5..8 => Some(Nanos::MICRO),
            8 if field.starts_with(' ') => Some(Nanos(1)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_distinguished() {
        let summary = Summary {
            tid: 10343,
            priority: 80,
            interval_us: 1000,
            cycles: 500,
            min: 16,
            act: 18,
            avg: 23,
            max: 717,
            smi: 0,
            unit: Some(Nanos::MICRO),
        };
        let live = "T:10 (10343) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:     717";
        for (text, line) in [
            ("000014 000001\t000002\n", Line::Row(14, vec![1, 2])),
            ("000014,000001,000002", Line::Row(14, vec![1, 2])),
            ("14; 1; 2", Line::Row(14, vec![1, 2])),
            ("14,1.5", Line::Other),
            ("# Total: 000001487", Line::Total(vec![1487])),
            ("# Max Latencies: 01535 07837 07837", Line::Max(vec![1535, 7837, 7837])),
            ("# Histogram", Line::Heading),
            ("# Histogram Overflow at cycle number:", Line::Frame),
            ("# second maximum", Line::Comment),
            ("# Thread 0: 00001 00007 # 00480 others", Line::OverflowCycles(0, vec![1, 7])),
            ("# Thread 1: ", Line::OverflowCycles(1, vec![])),
            ("# Thread Ids: 10346 10347", Line::Frame),
            ("# Break value: 218", Line::Break),
            (
                "policy: fifo: loadavg: 0.63 0.35 0.1 1/9 7",
                Line::Policy("fifo".into(), "0.63 0.35 0.1".into()),
            ),
            ("Thread 1 using cpu 3.", Line::ThreadCpu(1, Cpu(3))),
            ("Thread 1 Interval: 1500", Line::ThreadInterval(1, 1500)),
            ("       0:      12:      -5", Line::Sample(0, 12, -5)),
            ("T: 1 Spike:     140: TS:   1765746770", Line::Spike(1, 140, 1_765_746_770)),
            ("", Line::Other),
            ("T: expected", Line::Other),
            ("14", Line::Other),
            ("# SMIs: 00002 00000", Line::Smis(vec![2, 0])),
            (live, Line::Summary(10, summary)),
        ] {
            assert_eq!(parse(text), Ok(line), "{text}");
        }
    }

    #[test]
    fn widths_of_columns_state_the_unit() {
        let unit = |fields: &str| match parse(&format!("T: 0 ( 7) P:80 I:500 C:   1000 {fields}")) {
            Ok(Line::Summary(_, summary)) => summary.unit,
            other => panic!("{other:?}"),
        };
        assert_eq!(unit("Min:   4754 Act:   20825 Avg:   18266 Max: 1122515"), Some(Nanos(1)));
        assert_eq!(unit("Min:   4754 Act:12345678 Avg:   18266 Max:12345678"), Some(Nanos(1)));
        assert_eq!(unit("Min:      4 Act:   20 Avg:   18 Max:    1122"), Some(Nanos::MICRO));
        assert_eq!(unit("Min:      4 Act:123456 Avg:   18 Max:  123456"), Some(Nanos::MICRO));
        assert_eq!(unit("Min:      4 Act:12345678 Avg:12345678 Max:12345678"), None);
        assert_eq!(unit("Min: 4754 Act: 20825 Avg: 18266 Max: 1122515"), None, "blanks were squeezed");
    }

    #[test]
    fn errors_state_what_was_expected() {
        for text in [
            "# Min Latencies: x",
            "# Thread 9999: 1",
            "# Thread 0z: 1",
            "T:",
            "T: 0",
            "T: nan (1) P:80 I:1000 C: 5 Min: 1 Act: 2 Avg: 2 Max: 18",
            "T: 0 ( 1) P: x",
            "T: 0 (1) P:80 I:1000 C: 5 Min: 1 Act: 2 Avg: 2 Max: 18 T: 1 (2) P:80 I:1000",
            "T: 0 (1) P:80 I:1000 C: 5 Min: 1 Act: 2 Avg: 2 Max: 4,234",
            "T: 0 (1) P:80 I:1000 C: 5 Min: 1 Act: 2 Avg: 2 Max: 21ms",
            "T: 0 (1) P:80 I:1000 C: 10,000 Min: 1 Act: 2 Avg: 2 Max: 21",
            "000014 x",
            "000014",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("expected") && !error.contains(['\n', '\0']), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(text in "(# |T: |[0-9]{1,3} )?\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
