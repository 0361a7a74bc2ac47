//! Wall time in the format of bundles.

use std::time::{Duration, UNIX_EPOCH};

use crate::units::Nanos;

/// RFC 3339 in UTC, to the microsecond.
pub fn wall_time(realtime: Nanos) -> String {
    let since = Duration::from_nanos(realtime.0.max(0) as u64);
    humantime::format_rfc3339_micros(UNIX_EPOCH + since).to_string()
}

/// Parses such a text; `None` if it is not a time, or one before 1970 or after 2262.
pub fn nanos_of(time: &str) -> Option<Nanos> {
    let since = humantime::parse_rfc3339(time).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok().map(Nanos)
}

/// Converts a time in UTC to a clock that is `ahead_s` seconds ahead, without a zone; `None` if it
/// is not a time in UTC.
pub fn shifted(time: &str, ahead_s: i32) -> Option<String> {
    let utc = humantime::parse_rfc3339(time).ok()?;
    let by = Duration::from_secs(u64::from(ahead_s.unsigned_abs()));
    let local = if ahead_s < 0 { utc.checked_sub(by) } else { utc.checked_add(by) };
    let local = local.filter(|local| *local >= UNIX_EPOCH)?;
    Some(humantime::format_rfc3339_micros(local).to_string().trim_end_matches('Z').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_are_rfc_3339() {
        assert_eq!(wall_time(Nanos(1_500_000_000_123_456_789)), "2017-07-14T02:40:00.123456Z");
        assert_eq!(wall_time(Nanos(-1)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(&wall_time(Nanos(i64::MAX))[..4], "2262");
    }

    #[test]
    fn a_written_time_is_read_again() {
        let time = Nanos(1_500_000_000_123_456_000);
        assert_eq!(nanos_of(&wall_time(time)), Some(time));
        assert_eq!((nanos_of("yesterday"), nanos_of("9999-01-01T00:00:00Z")), (None, None));
    }

    #[test]
    fn a_clock_ahead_of_utc_shows_a_later_time() {
        let at = |ahead| shifted("2026-11-21T23:30:00.5Z", ahead);
        assert_eq!(at(3_600).as_deref(), Some("2026-11-22T00:30:00.500000"));
        assert_eq!(at(-34_200).as_deref(), Some("2026-11-21T14:00:00.500000"));
        assert_eq!((shifted("yesterday", 1), shifted("1970-01-01T00:00:00Z", -1)), (None, None));
    }
}
