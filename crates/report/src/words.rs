//! Values as words: latencies, lengths, times, and the sentences about a run as a whole.

use std::fmt::Write;

use super::Input;
use model::run::{Integrity, Run};
pub use model::text::{clean, several};
use model::units::Nanos;
use model::vocabulary::Command;

/// What stands where a number is not known.
pub const UNKNOWN: &str = "\u{2013}";

/// Microseconds with one decimal, as the field writes latencies.
pub fn us(latency: Nanos) -> String {
    let tenths = (i128::from(latency.0) + if latency.0 < 0 { -50 } else { 50 }) / 100;
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
}

/// As [`us`], with a dash for what is not known.
pub fn us_or_dash(latency: Option<Nanos>) -> String {
    latency.map_or_else(|| UNKNOWN.to_string(), us)
}

/// A number, with a dash for what is not known.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| UNKNOWN.to_string(), |value| value.to_string())
}

/// That a difference of medians is not to be told from chance, in words; none where it is.
pub fn below_noise(cost: Nanos, noise: Option<Nanos>) -> Option<String> {
    match noise {
        Some(noise) if cost <= noise => Some(format!("below the noise of the medians ({})", span(noise))),
        // Earlier versions wrote 0 for what was less than nothing, and no noise.
        None if cost.0 <= 0 => Some("below the noise of the medians".into()),
        _ => None,
    }
}

/// A latency with its unit: `41.3 us`.
pub fn span(latency: Nanos) -> String {
    latency.spaced()
}

/// A length of time as people say it, see [`Nanos::spoken`].
pub fn duration(length: Nanos) -> String {
    length.spoken()
}

/// The wall time of an event, for a table whose heading says UTC: without its date where that is the run's own. A
/// bundle's times are UTC, because what draws it may be in another zone than what measured, or know of none.
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

/// The same for a sentence: `09:12:31.123 UTC`.
pub fn moment(time: &str, started: &str) -> String {
    let utc = if time.ends_with('Z') { " UTC" } else { "" };
    format!("{}{utc}", time_of_day(time, started))
}

/// What a test of this length cannot say.
pub fn limits(run: &Run) -> Option<String> {
    let length = run.elapsed_ns.filter(|length| length.0 > 0)?;
    Some(format!(
        "What these numbers cannot say: a mechanism rarer than about once per {} (a third of the test) may not have occurred in the {} that were measured.",
        duration(Nanos(length.0 / 3)),
        duration(length)
    ))
}

/// That the run was cut short, where it was.
pub fn incomplete(run: &Run) -> Option<String> {
    if run.complete {
        return None;
    }
    let reach = run.elapsed_ns.map_or_else(String::new, |length| format!(" after {}", duration(length)));
    Some(format!("INCOMPLETE: the run did not come to its end; the numbers stop{reach}."))
}

/// An integrity entry as a sentence.
pub fn integrity(entry: &Integrity) -> String {
    let place = entry.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let detail = if entry.detail.is_empty() { String::new() } else { format!(": {}", clean(&entry.detail)) };
    format!("{}{place}{detail}", clean(entry.kind.as_str()))
}

/// Samples whose value an import does not carry, and the wake-ups that came early.
pub fn oddities(run: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    for cpu in &run.cpus {
        if cpu.is_summary() {
            let n = several(cpu.cycles, "sample", "samples");
            notes.push(format!(
                "CPU {}: {n} without a histogram: what the table has is all that is known.",
                cpu.cpu
            ));
        }
        if let Some(n) = cpu.overflows.filter(|&n| n > 0) {
            let what = several(n, "sample", "samples");
            notes.push(format!("CPU {}: {what} {}.", cpu.cpu, beyond(cpu.beyond_from())));
        }
        if let Some(n) = cpu.early.filter(|&n| n > 0) {
            let down = cpu
                .min_ns
                .filter(|min| min.0 < 0)
                .map(|min| format!(", by up to {}", span(Nanos(min.0.saturating_neg()))));
            let what = several(n, "wake-up", "wake-ups");
            notes.push(format!("CPU {}: {what} before the time{}.", cpu.cpu, down.unwrap_or_default()));
        }
    }
    notes
}

/// Of samples beyond the histogram's end: what is known of their values.
pub fn beyond(from: Option<Nanos>) -> String {
    let late = from.map_or_else(String::new, |from| format!(", each at least {}", span(from)));
    format!("beyond the histogram's end, values unknown{late}")
}

/// The largest latency over all CPUs; unknown where that of one which measured is.
pub fn largest(run: &Run) -> Option<Nanos> {
    let mut measured = run.cpus.iter().filter(|cpu| cpu.cycles > 0).map(|cpu| cpu.max_ns);
    measured.try_fold(None, |max, cpu| cpu.map(|cpu| max.max(Some(cpu)))).flatten()
}

/// What the reader wants to know first.
pub fn verdict(input: &Input) -> String {
    let cpus = &input.run.cpus;
    let cycles = cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.cycles));
    let Some(worst) = cpus.iter().filter(|cpu| cpu.max_ns.is_some()).max_by_key(|cpu| cpu.max_ns) else {
        return match cycles {
            0 => "No wake-up was measured.".into(),
            n => format!("Of {} the largest latency is not known.", several(n, "wake-up", "wake-ups")),
        };
    };
    if largest(input.run).is_none() {
        return format!(
            "The largest latency is not known: of some CPUs it is, CPU {} having {}, of others not.",
            worst.cpu,
            worst.max_ns.map_or_else(|| or_dash::<u64>(None), span)
        );
    }
    let max = worst.max_ns.map_or_else(|| or_dash::<u64>(None), span);
    let when = worst.worst.first().filter(|w| w.latency_ns == worst.max_ns && !w.time.is_empty());
    let when = when.map_or_else(String::new, |w| format!(" at {}", moment(&w.time, &input.run.started)));
    let missed: u64 = cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.missed.unwrap_or(0)));
    let missed =
        if missed > 0 { format!("; {} missed", several(missed, "slot", "slots")) } else { String::new() };
    let on = several(cpus.len() as u64, "CPU", "CPUs");
    let cycles = several(cycles, "wake-up", "wake-ups");
    // What is armed adds to every wake-up: such a maximum is not the machine's.
    let armed = if input.run.command == Command::Hunt { ", with events armed," } else { "" };
    format!("The largest latency of {cycles} on {on}{armed} was {max}, on CPU {}{when}{missed}.", worst.cpu)
}

/// Appends a line broken at blanks, what follows indented two further than the line is.
pub fn wrapped(text: &mut String, line: &str, width: usize) {
    let indent = line.len() - line.trim_start().len();
    filled(text, &" ".repeat(indent), line, indent + 2, width);
}

/// Appends words broken at blanks: `first` stands before the first line, `hang` blanks before each further one.
pub fn filled(text: &mut String, first: &str, words: &str, hang: usize, width: usize) {
    text.push_str(first);
    let mut column = first.chars().count();
    let mut fresh = true;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !fresh && column + 1 + length > width {
            let _ = write!(text, "\n{}", " ".repeat(hang));
            column = hang;
        } else if !fresh {
            text.push(' ');
            column += 1;
        }
        fresh = false;
        text.push_str(word);
        column += length;
    }
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
    fn durations_are_said_as_people_say_them() {
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
        assert_eq!(moment("2026-11-21T09:12:31.123456Z", started), "09:12:31.123 UTC");
        assert_eq!(moment("2026-11-21T09:12:31+09:00", started), "09:12:31+09:00");
    }
}
