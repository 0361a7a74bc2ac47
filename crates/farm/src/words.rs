//! Times as people write them, and addresses of pages: what changes, comparisons and pages share.

use model::units::Nanos;
use model::wall_time::wall_time;

use crate::records::SeriesKey;

/// A time in seconds as people write it, in UTC, to the minute.
pub fn moment(t: i64) -> String {
    if t <= 0 {
        return "unknown".to_owned();
    }
    let text = wall_time(Nanos(t.saturating_mul(Nanos::SECOND.0)));
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// Time of the last of several, or `none`.
pub fn last_moment(t: i64) -> String {
    if t <= 0 { "none".to_owned() } else { moment(t) }
}

/// The time of day in UTC of nanoseconds since 1970, to the millisecond.
pub fn clock(ns: i64) -> String {
    let text = wall_time(Nanos(ns));
    text.get(11..23).unwrap_or(&text).to_owned()
}

/// The date alone.
pub fn date(t: i64) -> String {
    moment(t).split(' ').next().unwrap_or_default().to_owned()
}

/// Escapes a value in an address (RFC 3986, section 2.1).
pub fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => text.push(byte as char),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The text, or `unknown` if it is empty.
pub fn known(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// Address of the page of five minutes.
pub fn address(board: &str, key: &SeriesKey, t: i64) -> String {
    format!("/b/{}/at/{t}?series={}&plan={}", escaped(board), escaped(&key.series), escaped(&key.plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_letter_is_escaped() {
        assert_eq!(escaped("a-1._Z"), "a-1._Z");
        assert_eq!(escaped("a/b?&ä"), "a%2Fb%3F%26%C3%A4");
    }

    #[test]
    fn times_are_short_and_an_unknown_one_says_so() {
        assert_eq!(
            (moment(1_700_000_000), date(1_700_000_000)),
            ("2023-11-14 22:13".into(), "2023-11-14".into())
        );
        assert_eq!((moment(0), clock(1_500_000_000)), ("unknown".into(), "00:00:01.500".into()));
        assert_eq!((last_moment(0), last_moment(60)), ("none".into(), "1970-01-01 00:01".into()));
    }
}
