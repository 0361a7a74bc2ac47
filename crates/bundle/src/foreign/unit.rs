//! Units that a heading states.

use model::units::Nanos;

/// The unit that a text states with its usual words: `us`, `usec`, `microseconds`, `(ns)`.
///
/// Underscores and brackets separate words, so that `max_us` and `latency(us)` are read.
pub(super) fn stated(text: &str) -> Option<Nanos> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != 'µ' && c != 'μ');
    let mut units = words.filter_map(of_word);
    let first = units.next()?;
    // Two units in one line state none.
    units.all(|unit| unit == first).then_some(first)
}

fn of_word(word: &str) -> Option<Nanos> {
    Some(match word.to_lowercase().as_str() {
        "ns" | "nsec" | "nsecs" | "nanosec" | "nanosecond" | "nanoseconds" => Nanos(1),
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsec" | "microsecond" | "microseconds" => Nanos::MICRO,
        "ms" | "msec" | "msecs" | "millisec" | "millisecond" | "milliseconds" => Nanos::MILLI,
        "s" | "sec" | "secs" | "second" | "seconds" => Nanos::SECOND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_headings_are_read() {
        for (text, unit) in [
            ("max_us", Some(Nanos::MICRO)),
            ("latency(us)", Some(Nanos::MICRO)),
            ("max [ms]", Some(Nanos::MILLI)),
            ("usec", Some(Nanos::MICRO)),
            ("# Time unit is nanoseconds (ns)", Some(Nanos(1))),
            ("max", None),
            ("maximum of us and ns", None),
            ("Latenz in µs", Some(Nanos::MICRO)),
            ("focus", None),
        ] {
            assert_eq!(stated(text), unit, "{text}");
        }
    }
}
