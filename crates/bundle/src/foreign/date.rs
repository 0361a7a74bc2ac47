//! Calendar dates of the formats, from and to seconds since 1970, UTC.
//!
//! Plain counting over the Gregorian calendar, and no clock: years 1970 to 9999, no leap seconds.

const DAY_S: i64 = 86_400;
const LAST_S: i64 = 253_402_300_799;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
// 1970 began on a Thursday.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: usize) -> i64 {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
}

fn days_in_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

/// Year, month (0 to 11) and day of the month (1 to 31).
fn civil_of(unix_s: i64) -> (i64, usize, i64) {
    let mut days = unix_s / DAY_S;
    let mut year = 1970;
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 0;
    while days >= days_in_month(year, month) {
        days -= days_in_month(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

fn clock_of(unix_s: i64) -> String {
    let second = unix_s % DAY_S;
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Formats a date like cyclictest: `Sat, 21 Nov 2026 01:05:37 +0000`; times out of range become the
/// nearest in it.
pub(super) fn as_rfc2822(unix_s: i64) -> String {
    let unix_s = unix_s.clamp(0, LAST_S);
    let (year, month, day) = civil_of(unix_s);
    let weekday = DAYS[(unix_s / DAY_S % 7) as usize];
    format!("{weekday}, {day:02} {} {year:04} {} +0000", MONTHS[month], clock_of(unix_s))
}

/// Formats a date as in `run.json`: `2026-11-21T01:05:37Z`.
pub(super) fn as_rfc3339(unix_s: i64) -> String {
    let unix_s = unix_s.clamp(0, LAST_S);
    let (year, month, day) = civil_of(unix_s);
    format!("{year:04}-{:02}-{day:02}T{}Z", month + 1, clock_of(unix_s))
}

/// Reads cyclictest's date with its offset from UTC; `None` if it is not one.
pub(super) fn parse_rfc2822(text: &str) -> Option<i64> {
    let mut words = text.split_once(',')?.1.split_ascii_whitespace();
    let day = number(words.next()?, 1, 31)?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|&month| month == name)?;
    let year = number(words.next()?, 1970, 9999)?;
    let mut clock = words.next()?.split(':');
    let hour = number(clock.next()?, 0, 23)?;
    let minute = number(clock.next()?, 0, 59)?;
    let second = number(clock.next()?, 0, 60)?;
    let offset = words.next()?;
    let (hours, minutes) = offset.get(1..)?.split_at_checked(2)?;
    let ahead_s = number(hours, 0, 23)? * 3600 + number(minutes, 0, 59)? * 60;
    let ahead_s = match offset.as_bytes()[0] {
        b'+' => ahead_s,
        b'-' => -ahead_s,
        _ => return None,
    };
    Some(days_before(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - ahead_s)
}

/// Reads `2026-11-29 00:46:13.534691`, as rteval writes its machine's local time, in microseconds.
pub(super) fn parse_plain_us(text: &str) -> Option<i64> {
    let (day, time) = text.trim().split_once(' ')?;
    let mut date = day.splitn(3, '-');
    let year = number(date.next()?, 1970, 9999)?;
    let month = usize::try_from(number(date.next()?, 1, 12)? - 1).ok()?;
    let day = number(date.next()?, 1, days_in_month(year, month))?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next()?, 0, 23)?, number(clock.next()?, 0, 59)?);
    let second = number(clock.next()?, 0, 60)?;
    let parts = number(fraction, 0, 999_999).filter(|_| fraction.len() <= 6)?;
    let us = parts * 10i64.pow(6 - fraction.len() as u32);
    Some((days_before(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second) * 1_000_000 + us)
}

/// Days from 1970 up to this one.
fn days_before(year: i64, month: usize, day: i64) -> i64 {
    let years = (1970..year).map(days_in_year).sum::<i64>();
    years + (0..month).map(|month| days_in_month(year, month)).sum::<i64>() + day - 1
}

fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|n| all_digits && (least..=most).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_agree_with_known_ones() {
        for (unix_s, text, short) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000", "1970-01-01T00:00:00Z"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000", "2000-02-29T00:00:00Z"),
            (1_795_223_137, "Sat, 21 Nov 2026 01:05:37 +0000", "2026-11-21T01:05:37Z"),
            (LAST_S, "Fri, 31 Dec 9999 23:59:59 +0000", "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(as_rfc2822(unix_s), text);
            assert_eq!(as_rfc3339(unix_s), short);
            assert_eq!(parse_rfc2822(text), Some(unix_s));
        }
        assert_eq!(parse_rfc2822("Sat, 21 Nov 2026 02:35:37 +0130"), Some(1_795_223_137));
        assert_eq!(parse_rfc2822("Fri, 20 Nov 2026 20:05:37 -0500"), Some(1_795_223_137));
    }

    #[test]
    fn plain_times_are_read() {
        let at = |text: &str| parse_plain_us(text);
        assert_eq!(at("2026-11-21 01:05:37.25"), Some(1_795_223_137_250_000));
        assert_eq!(at("1970-01-01 00:00:01"), Some(1_000_000));
        for text in
            ["", "2026-02-30 00:00:00", "2026-11-21", "2026-11-21 01:05", "2026-11-21 01:05:37.1234567"]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_dates_are_none() {
        for text in
            ["", ",", "Sat, 21 Nov", "Sat, 32 Nov 2026 01:05:37 +0000", "Sat, 21 Nov 2026 01:05:37 +é0"]
        {
            assert_eq!(parse_rfc2822(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn dates_round_trip(unix_s in 0..LAST_S) {
            prop_assert_eq!(parse_rfc2822(&as_rfc2822(unix_s)), Some(unix_s));
        }
    }
}
