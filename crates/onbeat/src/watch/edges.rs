//! Ends of intervals: shortly after edges of the wall clock, so that intervals of five minutes
//! match those of a farm's pages.

use model::units::Nanos;

/// Intervals that divide a day have edges, counted from 1970 in UTC.
const DAY: i64 = 86_400 * Nanos::SECOND.0;

/// Shortest interval that ends at an edge; shorter ones end by their length alone.
const SHORTEST: Nanos = Nanos(60 * Nanos::SECOND.0);

/// Delay after an edge: a farm treats clocks of a boot that differ by up to two seconds as the
/// same, and would put a row that begins right on an edge into the five minutes before.
const PAST: Nanos = Nanos(3 * Nanos::SECOND.0);

/// End, in CLOCK_MONOTONIC, of the interval that begins now; the previous one was due at `due`.
/// `wall_offset` is CLOCK_REALTIME minus CLOCK_MONOTONIC: after a clock step, one interval is
/// shorter, or longer by at most three seconds.
pub fn next_end(now: Nanos, due: Nanos, wall_offset: Nanos, interval: Nanos) -> Nanos {
    let length = interval.0.max(1);
    let left = if interval >= SHORTEST && DAY % length == 0 {
        let wall = now.0.saturating_add(wall_offset.0);
        length - wall.rem_euclid(length) + PAST.0
    } else {
        // From the due time, so that delays do not add up.
        length - now.0.saturating_sub(due.0).rem_euclid(length)
    };
    Nanos(now.0.saturating_add(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = Nanos::SECOND.0;
    const FIVE_MINUTES: Nanos = Nanos(300 * S);
    /// 2026-11-27 00:00 UTC minus the boot.
    const OFFSET: Nanos = Nanos(1_795_737_600 * S);

    /// End in seconds of the day, of an interval that begins in this second.
    fn end(begin: i64, interval: Nanos) -> i64 {
        let begin = Nanos(begin * S);
        next_end(begin, begin, OFFSET, interval).0 / S
    }

    #[test]
    fn an_interval_ends_right_after_an_edge_wherever_it_begins() {
        // 02:49:42: it ends at 02:50:03, and the next ones are whole.
        let at = |minute: i64, second: i64| 2 * 3_600 + minute * 60 + second;
        assert_eq!(end(at(49, 42), FIVE_MINUTES), at(50, 3));
        assert_eq!(end(at(50, 3), FIVE_MINUTES), at(55, 3));
        assert_eq!(end(at(49, 59), FIVE_MINUTES), at(50, 3));
        // The start is already in the new five minutes: no interval of two seconds follows.
        assert_eq!(end(at(50, 0), FIVE_MINUTES), at(55, 3));
        assert_eq!(end(at(50, 1), FIVE_MINUTES), at(55, 3));
        assert_eq!(end(at(49, 42), Nanos(60 * S)), at(50, 3));
        assert_eq!(end(at(49, 42), Nanos(3_600 * S)), 3 * 3_600 + 3);
        assert_eq!(end(at(49, 42), Nanos(DAY)), 86_400 + 3);
    }

    #[test]
    fn one_that_does_not_go_into_a_day_or_is_short_has_its_length() {
        for seconds in [1, 2, 7, 30, 420, 86_401, 172_800] {
            assert_eq!(end(9_942, Nanos(seconds * S)), 9_942 + seconds, "{seconds}");
        }
        // Delays do not add up, and the end does not precede the start after a long halt.
        let seven = Nanos(7 * S);
        assert_eq!(next_end(Nanos(70 * S + 9), Nanos(70 * S), OFFSET, seven), Nanos(77 * S));
        assert_eq!(next_end(Nanos(99 * S), Nanos(70 * S), OFFSET, seven), Nanos(105 * S));
        assert_eq!(next_end(Nanos(S), Nanos(S), OFFSET, Nanos(i64::MAX)), Nanos(i64::MAX));
    }

    #[test]
    fn where_the_clock_is_set_one_interval_has_another_length() {
        // From 1970, 42 s after the boot, to the time of day; then back by an hour and 100 s.
        let (mut now, mut due) = (Nanos(42 * S), Nanos(42 * S));
        let mut lengths = Vec::new();
        let (set, back) = (Nanos(OFFSET.0 + 17 * S), Nanos(OFFSET.0 - 3_683 * S));
        for offset in [Nanos(0), Nanos(0), set, set, back, back] {
            due = next_end(now, due, offset, FIVE_MINUTES);
            lengths.push((due.0 - now.0) / S);
            // It wakes a little late.
            now = Nanos(due.0 + 70_000);
        }
        assert_eq!(lengths, [261, 299, 282, 299, 99, 299]);
    }

    proptest! {
        #[test]
        fn each_lies_in_one_of_its_spans_also_by_a_clock_that_differs_by_two_seconds(
            now in 0i64..1 << 50, offset in -(1i64 << 50)..1 << 61,
            late in 0i64..S, differs in -2 * S..=2 * S,
            seconds in prop_oneof![Just(60i64), Just(300), Just(3_600), Just(DAY / S)],
        ) {
            let (length, wall) = (seconds * S, |mono: i64| mono + offset);
            let first = next_end(Nanos(now), Nanos(now), Nanos(offset), Nanos(length)).0;
            prop_assert!(first - now > PAST.0 && first - now <= length + PAST.0);
            let begun = first + late;
            let next = next_end(Nanos(begun), Nanos(first), Nanos(offset), Nanos(length)).0;
            prop_assert_eq!(next - first, length);
            let edges_before = |mono| (wall(mono) + differs).div_euclid(length);
            prop_assert_eq!(edges_before(next) - edges_before(begun), 1);
            prop_assert!(wall(begun).rem_euclid(length) >= PAST.0);
        }
    }
}
