//! Units that a heading states.

use model::units::Nanos;

/// Unit that a text states with its usual words: `us`, `usec`, `microseconds`, `(ns)`.
///
/// Underscores, brackets and capitals within a word separate words, so that `max_us`,
/// `latency(us)` and `maxUs` are read. A unit behind a number or `per` is that of a length, as in
/// `block: 1 s`.
pub(super) fn stated(text: &str) -> Option<Nanos> {
    let mut units = units(text);
    let first = units.next()?;
    // Two units in one line state none.
    units.all(|unit| unit == first).then_some(first)
}

/// True if a text states more than one unit.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let mut units = units(text);
    units.next().is_some_and(|first| units.any(|unit| unit != first))
}

/// True if a text without a unit has a word that looks like a multiple of one: `100ns`, `x10us`,
/// `kus`.
pub(super) fn has_unknown_multiple(text: &str) -> bool {
    let is_multiple = |word: &&str| {
        let lower = word.to_lowercase();
        let factor = ["ns", "us", "ms"].iter().find_map(|unit| lower.strip_suffix(unit)).unwrap_or_default();
        let letters = factor.trim_matches(|c: char| c.is_ascii_digit());
        of_word(word).is_none() && !factor.is_empty() && ["", "k", "m", "x"].contains(&letters)
    };
    stated(text).is_none() && words(text).iter().any(is_multiple)
}

/// True if a text has a unit, though it may be that of a length.
pub(super) fn is_length(text: &str) -> bool {
    words(text).into_iter().any(|word| of_word(word).is_some())
}

fn units(text: &str) -> impl Iterator<Item = Nanos> + '_ {
    subjects(text).into_iter().filter_map(of_word)
}

/// Words of a text without those after a number or `per`, which are of a length.
pub(super) fn subjects(text: &str) -> Vec<&str> {
    let is_measure =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()) || word.eq_ignore_ascii_case("per");
    let words = words(text);
    let is_of_length = |at: usize| at.checked_sub(1).is_some_and(|before| is_measure(words[before]));
    words.iter().enumerate().filter(|&(at, _)| !is_of_length(at)).map(|(_, word)| *word).collect()
}

/// Words of a text; `maxUs`, `maxUS` and `maxus` are two.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let is_lower = |at: usize| word[..at].ends_with(char::is_lowercase);
        let glued = GLUED.iter().find(|stem| {
            let rest = word.get(stem.len()..).and_then(of_word);
            rest.is_some() && word[..stem.len()].eq_ignore_ascii_case(stem)
        });
        let mut capitals = word.char_indices().filter(|&(at, c)| c.is_uppercase() && is_lower(at));
        let unit = capitals.find_map(|(at, _)| of_word(&word[at..]).map(|_| at));
        match unit.or(glued.map(|stem| stem.len())) {
            Some(at) => words.extend([&word[..at], &word[at..]]),
            None => words.push(word),
        }
    }
    words
}

/// Words that a unit may follow without a separator.
const GLUED: [&str; 3] = ["max", "lat", "latency"];

fn of_word(word: &str) -> Option<Nanos> {
    Some(match word.to_lowercase().replace('\u{3bc}', "\u{b5}").as_str() {
        "ns" | "nsec" | "nsecs" | "nanos" | "nanosec" | "nanosecond" | "nanoseconds" => Nanos(1),
        "us" | "\u{b5}s" | "usec" | "usecs" | "\u{b5}sec" | "\u{b5}secs" | "micros" | "microsec"
        | "microsecond" | "microseconds" => Nanos::MICRO,
        "ms" | "msec" | "msecs" | "millis" | "millisec" | "millisecond" | "milliseconds" => Nanos::MILLI,
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
            ("Latency (us), max per second", Some(Nanos::MICRO)),
            ("latency (us, block 1 s)", Some(Nanos::MICRO)),
            ("max in 10 s blocks, unit \u{b5}s", Some(Nanos::MICRO)),
            ("max_\u{b5}sec", Some(Nanos::MICRO)),
            ("max in \u{3bc}sec", Some(Nanos::MICRO)),
            ("max (micros)", Some(Nanos::MICRO)),
            ("maxUS", Some(Nanos::MICRO)),
            ("latencyUs", Some(Nanos::MICRO)),
            ("maxLatencyUs", Some(Nanos::MICRO)),
            ("maxus", Some(Nanos::MICRO)),
            ("max_10us", None),
            ("max [1e-6 s]", None),
            ("# Test ran 60 seconds", None),
        ] {
            assert_eq!(stated(text), unit, "{text}");
        }
    }

    #[test]
    fn multiples_of_units_are_seen() {
        for text in ["max (100ns)", "max_10us", "max x10us", "max_mus", "max_kus"] {
            assert!(has_unknown_multiple(text), "{text}");
        }
        for text in ["max_us", "maxLatencyUs", "focus", "bus latency", "max in us, 10ms blocks", "max"] {
            assert!(!has_unknown_multiple(text), "{text}");
        }
    }
}
