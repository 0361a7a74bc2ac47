//! Wall time in the format of bundles.

use std::time::{Duration, UNIX_EPOCH};

use crate::units::Nanos;

/// RFC 3339 in UTC, to the microsecond.
pub fn wall_time(realtime: Nanos) -> String {
    let since = Duration::from_nanos(realtime.0.max(0) as u64);
    humantime::format_rfc3339_micros(UNIX_EPOCH + since).to_string()
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
}
