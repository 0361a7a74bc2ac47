//! Lines of Xenomai's `latency` and EVL's `latmus`, which print the same table.

use super::error::ImportError;
use super::{decimal, quoted, unit};
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// The numbers of a row or of the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecondLatencies {
    pub min: Nanos,
    pub avg: Nanos,
    pub max: Nanos,
    pub overruns: u64,
}

/// Kind of samples of a Xenomai histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleKind {
    /// Every sample, which the tool calls `avg`.
    All,
    /// The least or largest of each second.
    Extremes,
}

/// A line of the table, the histogram or the header of `latmus -g`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CobaltLine<'a> {
    /// `== Sampling period: 100 us`.
    Period(Nanos),
    /// `== Test mode: periodic user-mode task`.
    Mode,
    /// `== All results in microseconds`.
    Unit,
    /// `warming up...` of Xenomai's, `warming up on CPU1...` of EVL's.
    WarmUp(Option<Cpu>),
    /// `RTT|  00:00:22  (user, 1000 us period, priority 90, CPU1)`: seconds, and the context.
    Time(u64, &'a str),
    /// `RTH|----lat min|...`.
    Columns,
    /// `RTD|      1.211|      1.325|      2.476|       0|     0|      1.211|      2.476`:
    /// a second, and the extremes up to it.
    Row {
        second: SecondLatencies,
        best: Nanos,
        worst: Nanos,
    },
    /// `RTS|      1.182|      1.316|      3.899|       0|     0|    00:00:08/00:00:08`.
    Total(SecondLatencies, u64),
    /// `HSD|    avg|   1 -  2 |  5894069`.
    Bucket(SampleKind, u64, u64),
    /// `HSS|    avg|   5999988|      1.019|      0.150`.
    Statistics(SampleKind, u64),
    /// `# min latency: 0.205` and the other lines before the histogram of `latmus -g`.
    Header(&'a str, &'a str),
    /// `1 25561`, below that header.
    Cell(u64, u64),
    Other,
}

/// Names of that header, each followed by a colon, a blank or the end.
const HEADERS: &[&str] = &[
    "test started on",
    "Linux version",
    "BOOT_IMAGE",
    "libevl version",
    "sampling period",
    "clock gravity",
    "clocksource",
    "vDSO access",
    "context",
    "thread priority",
    "thread affinity",
    "C-state",
    "duration (hhmmss)",
    "peak (hhmmss)",
    "min latency",
    "avg latency",
    "max latency",
];

/// Parses a line; the error states what was expected.
pub(super) fn parse(line: &str) -> Result<CobaltLine<'_>, ImportError> {
    let line = line.trim().trim_start_matches("^C").trim();
    if let Some(rest) = line.strip_prefix("== ") {
        return heading(rest, line);
    }
    if let Some(rest) = line.strip_prefix("warming up") {
        return Ok(CobaltLine::WarmUp(rest.strip_prefix(" on ").and_then(cpu_of)));
    }
    if let Some(comment) = line.strip_prefix("# ") {
        let name = HEADERS.iter().find(|name| comment.starts_with(**name));
        return Ok(name.map_or(CobaltLine::Other, |name| {
            CobaltLine::Header(name, comment[name.len()..].trim_start_matches([':', '=']).trim())
        }));
    }
    let Some((tag, rest)) = line.split_once('|') else { return Ok(cell(line).unwrap_or(CobaltLine::Other)) };
    let parsed = match tag {
        "RTT" => time(rest),
        "RTH" => Some(CobaltLine::Columns),
        "RTD" => row(rest),
        "RTS" => total(rest),
        "HSD" => bucket(rest),
        "HSS" => statistics(rest),
        _ => return Ok(CobaltLine::Other),
    };
    parsed.ok_or_else(|| ImportError(format!("expected a whole line of {tag}|, found {}", quoted(line))))
}

fn heading<'a>(rest: &'a str, line: &'a str) -> Result<CobaltLine<'a>, ImportError> {
    if let Some(period) = rest.strip_prefix("Sampling period:") {
        let mut words = period.split_ascii_whitespace();
        let (number, unit) = (words.next(), words.next().and_then(unit::stated));
        let period = number.zip(unit).and_then(|(number, unit)| decimal::in_ns(number, unit));
        let period = period.filter(|period| period.0 > 0).map(CobaltLine::Period);
        return period
            .ok_or_else(|| ImportError(format!("expected a period with its unit, found {}", quoted(line))));
    }
    if let Some(results) = rest.strip_prefix("All results in ") {
        return match unit::stated(results) {
            Some(Nanos::MICRO) => Ok(CobaltLine::Unit),
            _ => Err(ImportError(format!("expected results in microseconds, found {}", quoted(line)))),
        };
    }
    Ok(if rest.starts_with("Test mode:") { CobaltLine::Mode } else { CobaltLine::Other })
}

/// `CPU1`, `CPU0-noisol`, `CPU0 (not isolated)...`.
pub(super) fn cpu_of(text: &str) -> Option<Cpu> {
    let digits = text.trim().strip_prefix("CPU")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok().filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
}

/// Seconds of `00:10:01`.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let mut parts = text.trim().splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)
}

fn time(rest: &str) -> Option<CobaltLine<'_>> {
    let (time, context) = rest.split_once('(')?;
    Some(CobaltLine::Time(seconds(time)?, context.trim_end().strip_suffix(')')?))
}

fn micros(text: &str) -> Option<Nanos> {
    decimal::in_ns(text.trim(), Nanos::MICRO)
}

fn latencies(fields: &[&str]) -> Option<SecondLatencies> {
    let [min, avg, max, overruns, ..] = fields else { return None };
    let (min, avg, max) = (micros(min)?, micros(avg)?, micros(max)?);
    Some(SecondLatencies { min, avg, max, overruns: overruns.trim().parse().ok()? }).filter(|_| min <= max)
}

/// Parses a row, with or without a column of mode switches, which Xenomai 2 lacks.
fn row(rest: &str) -> Option<CobaltLine<'_>> {
    let fields: Vec<&str> = rest.split('|').take(8).collect();
    let (6 | 7, [.., best, worst]) = (fields.len(), fields.as_slice()) else { return None };
    let (second, best, worst) = (latencies(&fields)?, micros(best)?, micros(worst)?);
    Some(CobaltLine::Row { second, best, worst }).filter(|_| best <= second.min && second.max <= worst)
}

fn total(rest: &str) -> Option<CobaltLine<'_>> {
    let fields: Vec<&str> = rest.split('|').take(8).collect();
    let (5 | 6, Some(last)) = (fields.len(), fields.last()) else { return None };
    Some(CobaltLine::Total(latencies(&fields)?, seconds(last.split_once('/')?.0)?))
}

fn kind(text: &str) -> Option<SampleKind> {
    match text.trim() {
        "avg" => Some(SampleKind::All),
        "min" | "max" => Some(SampleKind::Extremes),
        _ => None,
    }
}

fn bucket(rest: &str) -> Option<CobaltLine<'_>> {
    let mut fields = rest.split('|');
    let (kind, range, count) = (kind(fields.next()?)?, fields.next()?, fields.next()?);
    let (lower, upper) = range.split_once('-')?;
    let (lower, upper): (u64, u64) = (lower.trim().parse().ok()?, upper.trim().parse().ok()?);
    let count = count.trim().parse().ok()?;
    Some(CobaltLine::Bucket(kind, lower, count)).filter(|_| lower.checked_add(1) == Some(upper))
}

fn statistics(rest: &str) -> Option<CobaltLine<'_>> {
    let mut fields = rest.split('|');
    Some(CobaltLine::Statistics(kind(fields.next()?)?, fields.next()?.trim().parse().ok()?))
}

fn cell(line: &str) -> Option<CobaltLine<'_>> {
    let (bucket, count) = line.split_once(' ')?;
    Some(CobaltLine::Cell(bucket.parse().ok()?, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_distinguished() {
        let us = |thousandths: i64| Nanos(thousandths);
        let second = SecondLatencies { min: us(-3250), avg: us(-846), max: us(3791), overruns: 2 };
        let row = CobaltLine::Row { second, best: us(-4250), worst: us(5167) };
        for (text, line) in [
            ("== Sampling period: 100 us", CobaltLine::Period(Nanos(100_000))),
            ("== Test mode: periodic user-mode task", CobaltLine::Mode),
            ("== All results in microseconds", CobaltLine::Unit),
            ("warming up...", CobaltLine::WarmUp(None)),
            ("warming up on CPU0 (not isolated)...", CobaltLine::WarmUp(Some(Cpu(0)))),
            ("RTT|  00:01:22  (user, CPU1)", CobaltLine::Time(82, "user, CPU1")),
            ("RTH|----lat min|----lat avg", CobaltLine::Columns),
            ("^CRTD|     -3.250|      -0.846|       3.791|       2|      -4.250|       5.167", row.clone()),
            ("RTD| -3.250| -0.846| 3.791| 2| 0| -4.250| 5.167", row),
            ("RTS| -3.250| -0.846| 3.791| 2|    00:00:06/00:00:06", CobaltLine::Total(second, 6)),
            ("HSD|    avg|   0 -  1 |      208", CobaltLine::Bucket(SampleKind::All, 0, 208)),
            ("HSD|    max| 299 -300 |        1", CobaltLine::Bucket(SampleKind::Extremes, 299, 1)),
            (
                "HSS|    avg|   5999988|      1.019|      0.150",
                CobaltLine::Statistics(SampleKind::All, 5_999_988),
            ),
            ("HSH|--param|--samples-|--average--|---stddev--", CobaltLine::Other),
            ("# min latency: 0.205", CobaltLine::Header("min latency", "0.205")),
            ("# something else", CobaltLine::Other),
            ("1 25561", CobaltLine::Cell(1, 25_561)),
            ("---|-----------|", CobaltLine::Other),
        ] {
            assert_eq!(parse(text), Ok(line), "{text}");
        }
    }

    #[test]
    fn damaged_lines_are_refused() {
        for text in [
            "RTD|      1.2x1|      1.325|      2.476|       0|     0|      1.211|      2.476",
            "RTD|      1.211|      1.325|      2.476|       0|     0|      1.2",
            "RTD|      1.211|      1.325|      2.476|       0|     0|      1.212|      2.476",
            "RTS|      1.182|      1.316|      0.899|       0|     0|    00:00:08/00:00:08",
            "RTS|      1.182|      1.316|      3.899|       0|     0|",
            "HSD|    avg|   0 -  2 |      208",
            "== Sampling period: 100",
            "== All results in nanoseconds",
        ] {
            assert!(parse(text).unwrap_err().0.contains("expected"), "{text}");
        }
    }

    const ANY: &str = "(RT[TDS]\\||HS[DS]\\||# |== )?(avg|[0-9.:-]{1,6}|\\||\\(|\\)| |CPU|\\PC){0,14}";

    proptest! {
        #[test]
        fn any_line_is_read(text in ANY) {
            let _ = parse(&text);
        }
    }
}
