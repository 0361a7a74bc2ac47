//! Values as words: latencies, lengths, times, rates, probabilities.

use crate::unbroken::{NO_BREAK, unbroken};
use model::run::Run;
pub use model::text::{clean, several};
use model::units::Nanos;
use model::wall_time::shifted;
use textwrap::{Options, WordSplitter};

/// Sign for an unknown number.
pub const UNKNOWN: &str = "\u{2013}";

/// Microseconds with one decimal, as usual for latencies.
pub fn us(latency: Nanos) -> String {
    let tenths = (i128::from(latency.0) + if latency.0 < 0 { -50 } else { 50 }) / 100;
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
}

/// Like [`us`], with a dash for an unknown value.
pub fn us_or_dash(latency: Option<Nanos>) -> String {
    latency.map_or_else(|| UNKNOWN.to_string(), us)
}

/// Number, with a dash for an unknown value.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| UNKNOWN.to_string(), |value| value.to_string())
}

/// Remark that a difference of medians may be chance; `None` if it is significant.
pub fn below_noise(cost: Nanos, noise: Option<Nanos>) -> Option<String> {
    match noise {
        Some(noise) if cost <= noise => Some(format!("below the noise of the medians ({})", span(noise))),
        // Earlier versions wrote 0 for a negative cost, and no noise.
        None if cost.0 <= 0 => Some("below the noise of the medians".into()),
        _ => None,
    }
}

/// Latency with its unit: `41.3 us`.
pub fn span(latency: Nanos) -> String {
    latency.spaced()
}

/// Length of time in readable units, see [`Nanos::spoken`].
pub fn duration(length: Nanos) -> String {
    length.spoken()
}

/// Times of a run or a record as its machine's clock showed them, so that they match its logs; a
/// bundle has them in UTC, with the offset of that clock.
pub struct MachineClock {
    started: String,
    ahead_s: i32,
}

impl MachineClock {
    pub fn of(run: &Run) -> MachineClock {
        MachineClock::new(&run.started, run.utc_offset_s)
    }

    /// Clock for times since `started`, `""` if each time needs its date; UTC if the offset is not
    /// known.
    pub fn new(started: &str, utc_offset_s: Option<i32>) -> MachineClock {
        // No zone on earth is further from UTC: a larger offset in a bundle is ignored.
        let ahead_s = utc_offset_s.filter(|ahead| ahead.unsigned_abs() <= 86_400).unwrap_or(0);
        MachineClock { started: local_time(started, ahead_s), ahead_s }
    }

    /// Offset from UTC.
    pub fn ahead(&self) -> Nanos {
        Nanos(i64::from(self.ahead_s) * Nanos::SECOND.0)
    }

    /// Zone of the times: `UTC`, or `UTC+01:00`.
    pub fn zone(&self) -> String {
        let (sign, minutes) = (if self.ahead_s < 0 { '-' } else { '+' }, self.ahead_s.abs() / 60);
        match self.ahead_s {
            0 => "UTC".to_owned(),
            _ => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }

    /// Time for a table with the zone in its heading: without its date if that is the run's.
    pub fn time_of_day(&self, time: &str) -> String {
        time_of_day(&local_time(time, self.ahead_s), &self.started)
    }

    /// Time for a sentence: `09:12:31.123 UTC`.
    pub fn moment(&self, time: &str) -> String {
        let zone = if time.ends_with('Z') { format!(" {}", self.zone()) } else { String::new() };
        format!("{}{zone}", self.time_of_day(time))
    }

    /// Date and time to the second, without the zone: `2026-11-22 05:38:38`.
    pub fn second(&self, time: &str) -> String {
        clean(&local_time(time, self.ahead_s)).replacen('T', " ", 1).chars().take(19).collect()
    }

    /// Date and time to the minute, without the zone.
    pub fn minute(&self, time: &str) -> String {
        self.second(time).chars().take(16).collect()
    }

    /// Start of a run to the second: `2026-11-22 05:38:38 UTC`.
    pub fn start(&self, run: &Run) -> Option<String> {
        let second = self.started.get(..19).filter(|_| run.started.ends_with('Z'))?;
        Some(format!("{} {}", clean(&second.replacen('T', " ", 1)), self.zone()))
    }
}

/// UTC time as a clock with this offset shows it; any other text unchanged.
fn local_time(time: &str, ahead_s: i32) -> String {
    let ahead = (ahead_s != 0 && time.ends_with('Z')).then(|| shifted(time, ahead_s)).flatten();
    ahead.unwrap_or_else(|| time.to_owned())
}

/// Wall time of an event, for a table with the zone in its heading: without its date if that is the
/// date of the start.
pub fn time_of_day(time: &str, started: &str) -> String {
    let Some((date, rest)) = time.split_once('T') else { return clean(time) };
    let end = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let clock: String = rest[..end].chars().take(12).collect();
    // A time with an offset, which no bundle of onbeat's has, keeps it.
    let zone = rest[end..].trim_start_matches('Z');
    if started.split_once('T').is_some_and(|(day, _)| day == date) {
        return clean(&format!("{clock}{zone}"));
    }
    clean(&format!("{date} {clock}{zone}"))
}

/// Probability in per cent, never rounded to certainty.
pub fn percent(p: f64) -> String {
    match p * 100.0 {
        x if x > 99.9 && p < 1.0 => "over 99.9 %".into(),
        x if x >= 99.0 => format!("{x:.1} %"),
        x if x >= 10.0 => format!("{x:.0} %"),
        x if x >= 0.1 => format!("{x:.1} %"),
        x if x > 0.0 => "under 0.1 %".into(),
        _ => "0 %".into(),
    }
}

/// Rate in readable units: events per hour or day, or one in a longer time.
pub fn per_hour(rate: f64) -> String {
    match rate {
        r if r <= 0.0 => "none".into(),
        r if r >= 100.0 => format!("{r:.0} an hour"),
        r if r >= 1.0 => format!("{r:.1} an hour"),
        r if r >= 1.0 / 24.0 => format!("{:.1} a day", r * 24.0),
        r => format!("one in {}", seconds(3600.0 / r)),
    }
}

/// Upper bound of a rate, rounded up.
pub fn at_most_per_hour(rate: f64) -> String {
    let up = |value: f64, steps: f64| (value * steps).ceil() / steps;
    match rate {
        r if r >= 100.0 => per_hour(up(r, 1.0)),
        r if r >= 1.0 => per_hour(up(r, 10.0)),
        r if r >= 1.0 / 24.0 => per_hour(up(r * 24.0, 10.0) / 24.0),
        // The time is truncated for display, which rounds the rate up.
        r => per_hour(r),
    }
}

/// Length of time, given in seconds, in readable units.
pub fn seconds(s: f64) -> String {
    duration(Nanos((s * 1e9).min(9e18) as i64))
}

/// Required length, rounded up to the unit in which it is shown: a shorter one would not suffice.
pub fn needed(s: f64) -> String {
    let unit = match s {
        ..100.0 => 0.1,
        100.0..3_600.0 => 1.0,
        3_600.0..172_800.0 => 60.0,
        172_800.0..63_072_000.0 => 3_600.0,
        _ => 86_400.0,
    };
    seconds((s / unit).ceil() * unit)
}

/// Bound, rounded up at the digits in which it is shown: the nearest value would be too low half of
/// the time.
pub fn rounded_up(ns: f64) -> Nanos {
    let ns = ns.min(9e18).ceil() as i64;
    let mut unit = 1;
    while ns / unit >= 1_000 {
        unit *= 10;
    }
    Nanos(ns.saturating_add(unit - 1) / unit * unit)
}

/// Difference of latencies with its sign.
pub fn signed(ns: f64) -> String {
    let size = span(Nanos(ns.abs().min(9e18) as i64));
    if ns < 0.0 { format!("-{size}") } else { format!("+{size}") }
}

/// Words for samples beyond the histogram's end, with the lower bound of their values.
pub fn beyond(from: Option<Nanos>) -> String {
    let late = match from {
        None => String::new(),
        Some(Nanos(..0)) => ", each early or late (unknown)".into(),
        Some(from) => format!(", each at least {}", span(from)),
    };
    format!("beyond the histogram's end, values unknown{late}")
}

/// Time until an entry of the journal undoes itself, to follow its name; empty if it does not.
pub fn undone_in(ns: Option<i64>, confirmable: bool) -> String {
    let unless = if confirmable { " unless confirmed" } else { "" };
    ns.map_or_else(String::new, |ns| format!(", undone in {}{unless}", Nanos(ns).spoken()))
}

/// Sentence with a capital.
pub fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Sentence as a part of another one, in lower case.
pub fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Appends a line broken at blanks; further lines are indented by two more columns.
pub fn wrapped(text: &mut String, line: &str, width: usize) {
    let indent = line.len() - line.trim_start().len();
    filled(text, &" ".repeat(indent), line, indent + 2, width);
}

/// Appends words broken at blanks, but not between a number and its unit: `first` starts the first
/// line, `hang` blanks each further one. Escape sequences take no columns, so coloured text breaks
/// where plain text does.
pub fn filled(text: &mut String, first: &str, words: &str, hang: usize, width: usize) {
    let hang = " ".repeat(hang);
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&hang)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    text.push_str(&textwrap::fill(&unbroken(words), options).replace(NO_BREAK, " "));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_microseconds_with_one_decimal() {
        for (ns, text) in [(0, "0.0"), (1_249, "1.2"), (1_250, "1.3"), (-60, "-0.1"), (7_123_456, "7123.5")] {
            assert_eq!(us(Nanos(ns)), text);
        }
        assert_eq!(us(Nanos(i64::MIN)), "-9223372036854775.8");
        assert_eq!(us_or_dash(None), UNKNOWN);
        assert_eq!(span(Nanos(41_300)), "41.3 us");
    }

    #[test]
    fn durations_are_in_readable_units() {
        for (ns, text) in [
            (350_000_000, "350 ms"),
            (10_000_123_456, "10.0 s"),
            (125_000_000_000, "2 min 5 s"),
            (3_603_000_000_000, "1 h"),
            (3_725_000_000_000, "1 h 2 min"),
            (200_000_000_000_000, "2 d 7 h"),
        ] {
            assert_eq!(duration(Nanos(ns)), text);
        }
    }

    #[test]
    fn times_lose_the_date_they_share_with_the_start() {
        let started = "2026-11-21T09:00:00Z";
        assert_eq!(time_of_day("2026-11-21T09:12:31.123456Z", started), "09:12:31.123");
        assert_eq!(time_of_day("2026-11-22T00:00:01Z", started), "2026-11-22 00:00:01");
        assert_eq!(time_of_day("yesterday\u{1b}[31m", started), "yesterday\u{fffd}[31m");
        assert_eq!(time_of_day("", started), "");
        assert_eq!(time_of_day("2026-11-21Té", started), "é");
        assert_eq!(time_of_day("2026-11-21T09:12:31+09:00", started), "09:12:31+09:00");
        let mut run = Run { started: started.to_owned(), ..Run::default() };
        let moment = |run: &Run, time: &str| MachineClock::of(run).moment(time);
        assert_eq!(moment(&run, "2026-11-21T09:12:31.123456Z"), "09:12:31.123 UTC");
        assert_eq!(moment(&run, "2026-11-21T09:12:31+09:00"), "09:12:31+09:00");
        run.utc_offset_s = Some(-34_200);
        assert_eq!(moment(&run, "2026-11-21T09:12:31.123456Z"), "23:42:31.123 UTC-09:30");
        assert_eq!(MachineClock::of(&run).start(&run).as_deref(), Some("2026-11-20 23:30:00 UTC-09:30"));
        run.utc_offset_s = Some(3_600);
        assert_eq!(moment(&run, "2026-11-21T09:12:31.123456Z"), "10:12:31.123 UTC+01:00");
        run.utc_offset_s = Some(i32::MAX);
        assert_eq!(moment(&run, "2026-11-21T09:12:31.123456Z"), "09:12:31.123 UTC");
    }
}
