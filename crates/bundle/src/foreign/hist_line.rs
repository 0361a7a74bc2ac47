//! One line of cyclictest's text output, parsed; its meaning in the full text is decided elsewhere.
//!
//! Source: rt-tests' cyclictest.c, print_hist and print_stat, versions 2.1 to 2.9.

use super::{THREAD_LIMIT, quoted};

/// A line that carries something; the lists are one number per thread and, with `-H`, a last one
/// over all.
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
    /// `policy: fifo: loadavg: ...`.
    Policy(String),
    /// `# Break value: 218`: `-b` ended the run.
    Break,
    /// `# /dev/cpu_dma_latency set to 0us`.
    IdleHeld,
    /// Anything else that the tool prints between its results.
    Chatter,
}

/// The numbers of a `T:` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    pub priority: u32,
    /// In microseconds, also with `-N`.
    pub interval_us: u32,
    pub cycles: u64,
    pub min: i128,
    pub avg: i128,
    pub max: i128,
}

/// Parses a line; the error states what was expected.
pub(super) fn parse(line: &str) -> Result<Line, String> {
    let line = without_cursor_moves(line).trim();
    if let Some(rest) = line.strip_prefix('#') {
        return parse_comment(rest.trim_start());
    }
    if let Some(rest) = line.strip_prefix("T:") {
        return parse_summary(rest).ok_or_else(|| {
            format!("expected T: thread (id) P: I: C: Min: Act: Avg: Max:, found {}", quoted(line))
        });
    }
    if let Some(rest) = line.strip_prefix("policy:") {
        return Ok(Line::Policy(rest.split(':').next().unwrap_or("").trim().to_owned()));
    }
    match line.chars().next() {
        Some('0'..='9') => parse_row(line),
        // Warnings and the like; a damaged row or comment does not begin with a letter.
        None | Some('a'..='z' | 'A'..='Z' | '/') => Ok(Line::Chatter),
        Some(_) => Err(format!("expected a histogram row, a comment or a T: line, found {}", quoted(line))),
    }
}

/// The live display moves the cursor with ESC [ number letter before it prints.
fn without_cursor_moves(mut line: &str) -> &str {
    while let Some(rest) = line.strip_prefix("\x1b[") {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        line = rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest);
    }
    line
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
    let Some((name, rest)) = comment.split_once(':') else { return Ok(Line::Chatter) };
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
        "Break value" => Line::Break,
        _ => match name.strip_prefix("Thread ") {
            // "# Thread Ids:" is another line.
            Some(index) if index.starts_with(|c: char| c.is_ascii_digit()) => overflow_cycles(index, rest)?,
            _ => Line::Chatter,
        },
    })
}

fn overflow_cycles(index: &str, rest: &str) -> Result<Line, String> {
    let thread = index.parse().ok().filter(|&n| n < THREAD_LIMIT);
    let thread =
        thread.ok_or_else(|| format!("expected a thread below {THREAD_LIMIT}, found {}", quoted(index)))?;
    // What follows a second # counts those that were not listed.
    let listed = rest.split('#').next().unwrap_or("");
    let cycles: Result<Vec<u64>, _> = listed.split_ascii_whitespace().map(str::parse).collect();
    let cycles = cycles.map_err(|_| format!("expected cycle numbers, found {}", quoted(listed)))?;
    Ok(Line::OverflowCycles(thread, cycles))
}

fn parse_summary(rest: &str) -> Option<Line> {
    let (thread, rest) = rest.split_once('(')?;
    let thread = thread.trim().parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?;
    let after = |label: &str| {
        let value = rest.split_once(label)?.1.trim_start();
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(value.len());
        value[..end].parse::<i128>().ok()
    };
    let summary = Summary {
        priority: after("P:")?.try_into().ok()?,
        interval_us: after("I:")?.try_into().ok()?,
        cycles: after("C:")?.try_into().ok()?,
        min: after("Min:")?,
        avg: after("Avg:")?,
        max: after("Max:")?,
    };
    Some(Line::Summary(thread, summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_distinguished() {
        let summary = Summary { priority: 80, interval_us: 1000, cycles: 500, min: 16, avg: 23, max: 717 };
        let live = "\x1b[4AT:10 (10343) P:80 I:1000 C:    500 Min:     16 Act:   18 Avg:   23 Max:     717";
        for (text, line) in [
            ("000014 000001\t000002\n", Line::Row(14, vec![1, 2])),
            ("# Total: 000001487", Line::Total(vec![1487])),
            ("# Max Latencies: 01535 07837 07837", Line::Max(vec![1535, 7837, 7837])),
            ("# Histogram Overflow at cycle number:", Line::Chatter),
            ("# Thread 0: 00001 00007 # 00480 others", Line::OverflowCycles(0, vec![1, 7])),
            ("# Thread 1: ", Line::OverflowCycles(1, vec![])),
            ("# Thread Ids: 10346 10347", Line::Chatter),
            ("# Break value: 218", Line::Break),
            ("policy: fifo: loadavg: 0.63 0.35", Line::Policy("fifo".into())),
            ("", Line::Chatter),
            (live, Line::Summary(10, summary)),
        ] {
            assert_eq!(parse(text), Ok(line), "{text}");
        }
    }

    #[test]
    fn errors_state_what_was_expected() {
        for text in
            ["000014", "1 x", "1 -2", "# Min Latencies: x", "# Thread 9999: 1", "# Thread 0: z", "T: 0", "\0"]
        {
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
