//! Messages of stress-ng's log: their process, and the contents of those of `--cyclic`.

use super::error::ImportError;
use super::{decimal, quoted, unit};
use model::units::Nanos;

const LEVELS: &[&str] = &["info:", "debug:", "metrc:", "warn:", "error:", "fail:"];

/// A message, `stress-ng: info:  [9542] cyclic: ...`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMessage<'a> {
    pub process: u64,
    pub text: &'a str,
}

/// Message of a line.
pub(super) fn message(line: &str) -> Option<LogMessage<'_>> {
    let (level, rest) = line.trim_start().strip_prefix("stress-ng:")?.split_once('[')?;
    let (process, text) = rest.split_once(']')?;
    level.split_ascii_whitespace().any(|word| LEVELS.contains(&word)).then_some(())?;
    Some(LogMessage { process: process.trim().parse().ok()?, text: text.trim() })
}

/// A message of the stressor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CyclicMessage<'a> {
    /// `sched SCHED_FIFO: 1000000 ns delay, 2845 samples`.
    Schedule {
        policy: &'a str,
        delay: Nanos,
        samples: u64,
    },
    /// `mean: 34634.16 ns, mode: 33313 ns`.
    Mean(Nanos),
    /// `min: 12182 ns, max: 2281349 ns, std.dev. 48456.79`.
    Extremes {
        min: Nanos,
        max: Nanos,
    },
    /// `99.90%:     517672 ns`, in parts of a million.
    Percentile {
        per_million: i64,
        latency: Nanos,
    },
    /// `latency distribution (250 ns intervals):`.
    Distribution {
        width: Nanos,
    },
    /// `(for the first 250 buckets of 38606)`.
    Shown {
        buckets: u64,
    },
    /// `latency (ns)  frequency`.
    Heading {
        unit: Nanos,
    },
    /// `16500          3`: the lower edge of a bucket, in the heading's unit.
    Row {
        lower: u64,
        count: u64,
    },
    /// `..         .. (all zeros hereafter)`: empty rows that are omitted.
    Gap,
    /// `Note: --cyclic-samples needed to be 21559 to capture all the data for this run`.
    Needed {
        samples: u64,
    },
    /// `using method 'pselect'`.
    Method(&'a str),
    Other,
}

/// Content of a stressor's message, an error for a damaged one; `None` for another stressor's.
pub(super) fn cyclic(text: &str) -> Option<Result<CyclicMessage<'_>, ImportError>> {
    let text = text.strip_prefix("stress-ng-").unwrap_or(text).strip_prefix("cyclic:")?.trim();
    let damaged = |expected: &str| ImportError(format!("expected {expected}, found {}", quoted(text)));
    Some(if let Some(rest) = text.strip_prefix("sched SCHED_") {
        schedule(rest).ok_or_else(|| damaged("sched SCHED_FIFO: N ns delay, N samples"))
    } else if text.starts_with("mean:") {
        value(text, "mean:").map(CyclicMessage::Mean).ok_or_else(|| damaged("mean: N ns"))
    } else if text.starts_with("min:") {
        let extremes = value(text, "min:").zip(value(text, "max:"));
        let extremes = extremes.map(|(min, max)| CyclicMessage::Extremes { min, max });
        extremes.ok_or_else(|| damaged("min: N ns, max: N ns"))
    } else if text.starts_with("latency distribution (") {
        let width = value(text, "(").filter(|width| width.0 > 0);
        width.map(|width| CyclicMessage::Distribution { width }).ok_or_else(|| damaged("(N ns intervals)"))
    } else if let Some(rest) = text.strip_prefix("latency (") {
        unit::stated(rest).map(|unit| CyclicMessage::Heading { unit }).ok_or_else(|| damaged("latency (ns)"))
    } else if let Some(rest) = text.strip_prefix("(for the first ") {
        number(rest)
            .map(|buckets| CyclicMessage::Shown { buckets })
            .ok_or_else(|| damaged("a number of buckets"))
    } else if let Some(rest) = text.strip_prefix("Note: --cyclic-samples needed to be ") {
        number(rest)
            .map(|samples| CyclicMessage::Needed { samples })
            .ok_or_else(|| damaged("a number of samples"))
    } else if let Some(method) = text.strip_prefix("using method '") {
        Ok(CyclicMessage::Method(method.trim_end_matches('\'')))
    } else if text.starts_with("..") {
        Ok(CyclicMessage::Gap)
    } else if text.contains("%:") {
        percentile(text).ok_or_else(|| damaged("a percentile, N%: N ns"))
    } else if is_row(text) {
        row(text).ok_or_else(|| damaged("a bucket and a count"))
    } else {
        Ok(CyclicMessage::Other)
    })
}

fn schedule(rest: &str) -> Option<CyclicMessage<'_>> {
    let (policy, rest) = rest.split_once(':')?;
    let (delay, samples) = rest.split_once("delay,")?;
    let samples = samples.trim().strip_suffix("samples").map(str::trim)?;
    Some(CyclicMessage::Schedule { policy, delay: value(delay, "")?, samples: samples.parse().ok()? })
}

/// Number with its unit after the label.
fn value(text: &str, label: &str) -> Option<Nanos> {
    let mut words = text.split_once(label)?.1.split_ascii_whitespace();
    let number = words.next()?;
    decimal::in_ns(number, unit::stated(words.next()?)?)
}

fn number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn percentile(text: &str) -> Option<CyclicMessage<'_>> {
    let (percent, rest) = text.split_once("%:")?;
    // A hundredth of a percent is 100 parts of a million.
    let per_million = decimal::in_ns(percent, Nanos(10_000))?.0;
    Some(CyclicMessage::Percentile { per_million, latency: value(rest, "")? })
}

/// True if it begins with two numbers.
fn is_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let mut number = || words.next().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    number() && number()
}

fn row(text: &str) -> Option<CyclicMessage<'_>> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let (lower, count) = (words.next()??, words.next()??);
    words.next().is_none().then_some(CyclicMessage::Row { lower, count })
}

/// A span in words: `3 secs`, `1 min, 0.02 secs`, `3.01s`.
pub(super) fn span(text: &str) -> Option<Nanos> {
    let mut total = 0i64;
    let mut number: Option<&str> = None;
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let at = word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len());
        let (digits, name) = word.split_at(at);
        number = if digits.is_empty() { number } else { Some(digits) };
        if name.is_empty() {
            continue;
        }
        let of_unit = match name {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            _ => break,
        };
        total = total.checked_add(decimal::in_ns(number.take()?, Nanos(of_unit * Nanos::SECOND.0))?.0)?;
    }
    (total > 0).then_some(Nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Option<Result<CyclicMessage<'_>, ImportError>> {
        cyclic(message(line)?.text)
    }

    #[test]
    fn messages_are_distinguished() {
        for (text, expected) in [
            (
                "sched SCHED_RR: 100000 ns delay, 9 samples",
                CyclicMessage::Schedule { policy: "RR", delay: Nanos(100_000), samples: 9 },
            ),
            ("  mean: 34634.16 ns, mode: 33313 ns", CyclicMessage::Mean(Nanos(34_634))),
            (
                "  min: 1 us, max: 2 us, std.dev. 4.7",
                CyclicMessage::Extremes { min: Nanos(1000), max: Nanos(2000) },
            ),
            (
                "  99.99%:    2281349 ns",
                CyclicMessage::Percentile { per_million: 999_900, latency: Nanos(2_281_349) },
            ),
            ("latency distribution (250 ns intervals):", CyclicMessage::Distribution { width: Nanos(250) }),
            ("(for the first 250 buckets of 38606)", CyclicMessage::Shown { buckets: 250 }),
            ("latency (ns)  frequency", CyclicMessage::Heading { unit: Nanos(1) }),
            ("       16500          3", CyclicMessage::Row { lower: 16_500, count: 3 }),
            ("Note: --cyclic-samples needed to be 21 to capture all", CyclicMessage::Needed { samples: 21 }),
            ("using method 'pselect'", CyclicMessage::Method("pselect")),
            ("latency percentiles:", CyclicMessage::Other),
            ("for best results, run just 1 instance", CyclicMessage::Other),
            ("2 settings:", CyclicMessage::Other),
            ("   ..         .. (all zeros hereafter)", CyclicMessage::Gap),
        ] {
            let line = format!("stress-ng: info:  [11] cyclic: {text}");
            assert_eq!(parsed(&line), Some(Ok(expected)), "{text}");
            assert_eq!(parsed(&line.replace("cyclic: ", "stress-ng-cyclic: ")), Some(Ok(expected)));
        }
        assert!(parsed("stress-ng: info:  [11] cpu: 4").is_none() && message("stress-ng: x [1] y").is_none());
    }

    #[test]
    fn spans_in_words_are_read() {
        let s = |s: i64| Some(Nanos(s * 1_000_000_000));
        assert_eq!((span("3 second run per stressor"), span("1 min, 0 secs run")), (s(3), s(60)));
        assert_eq!(
            (span("3.01s"), span("2.5 secs")),
            (Some(Nanos(3_010_000_000)), Some(Nanos(2_500_000_000)))
        );
        assert_eq!((span("soon"), span("min"), span("")), (None, None, None));
    }

    const ANY: &str = "(sched SCHED_|mean: |min: |max: |[0-9.]{1,9}|%:|ns|latency|\\(| |,|\\PC){0,12}";

    proptest! {
        #[test]
        fn any_message_is_read(text in ANY) {
            let _ = parsed(&format!("stress-ng: info: [1] cyclic: {text}"));
            span(&text);
        }
    }
}
