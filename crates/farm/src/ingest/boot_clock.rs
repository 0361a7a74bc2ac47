//! Wall-clock times of rows: the position of their boot's CLOCK_MONOTONIC in time.
//!
//! It is fixed as soon as a boot is known, because a board's clock may be set while it records.
//! CLOCK_MONOTONIC stands still in a suspend (clock_gettime(2)), so its offset grows then, and
//! never shrinks. A boot is stored as points that ascend in both; a row's own clock counts only
//! between two points that differ.

use std::fmt::Write;

use bundle::record::lines::CLOCK_SET;

/// Difference below which clocks count as equal, in ns.
pub const AGREE_NS: i64 = 2_000_000_000;
/// Upper bound of a request's transit time; if the board's clock is wrong, a shorter suspend cannot
/// be distinguished from it.
const ON_THE_WAY: i64 = 300_000_000_000;
/// Limit of the points kept of a boot. The oldest are dropped, and rows before them are placed by
/// their own clocks.
const MOST_POINTS: usize = 64;

/// Clock that placed a boot: the board's, if it was right; the farm's, if the board's was wrong;
/// that of a row, if the boot was over.
const BOARD: &str = "board";
const RECEIPT: &str = "receipt";
const ROW: &str = "row";

/// The clocks of a row in ns: CLOCK_MONOTONIC at its start, and the board's wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowClock {
    pub mono: i64,
    pub wall: i64,
}

/// Information in a request on the boot of its rows, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeardBoot {
    /// The boot is on.
    Now {
        /// CLOCK_MONOTONIC.
        mono: i64,
        /// Offset to the wall clock.
        offset: i64,
        /// Error of the board's clock, positive if it is ahead; 0 if it is right.
        error: i64,
        /// Total time in suspend, up to now.
        asleep: i64,
    },
    /// The boot was over at this time.
    Over { before: i64 },
}

/// Offsets of a boot. Without points it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootClock {
    by: String,
    /// CLOCK_MONOTONIC, and the offset at that time; both ascend.
    points: Vec<(i64, i64)>,
}

impl RowClock {
    /// Offset by the board's clock, corrected by its error.
    fn own(self, error: i64) -> i64 {
        self.wall.saturating_sub(self.mono).saturating_sub(error)
    }

    /// True if its clock had been set, and not to a time in the future.
    fn may_be_right(self, error: i64, before: i64) -> bool {
        let wall = self.wall.saturating_sub(error);
        wall >= CLOCK_SET.0 && wall <= before.saturating_add(AGREE_NS)
    }
}

impl BootClock {
    /// Decodes the stored form.
    pub fn stored(offset: i64, source: &str) -> BootClock {
        let mut words = source.split(' ');
        let by = words.next().unwrap_or_default().to_owned();
        let point = |word: &str| {
            let (mono, offset) = word.split_once(':')?;
            Some((mono.parse().ok()?, offset.parse().ok()?))
        };
        let points: Option<Vec<(i64, i64)>> = words.map(point).collect();
        let points = points.filter(|points| !points.is_empty()).unwrap_or_else(|| vec![(0, offset)]);
        BootClock { by, points }
    }

    /// Stored form: the offset at the end, and its origin.
    pub fn to_store(&self) -> Option<(i64, String)> {
        let &(_, offset) = self.points.last()?;
        let mut source = if self.by.is_empty() { ROW.to_owned() } else { self.by.clone() };
        if self.points != [(0, offset)] {
            for (mono, offset) in &self.points {
                let _ = write!(source, " {mono}:{offset}");
            }
        }
        Some((offset, source))
    }

    /// Offset for the CLOCK_MONOTONIC of each row of a request. The order in time of a boot's rows
    /// is that of the boot, in whatever order and parts they arrive.
    pub fn place(&mut self, heard: &HeardBoot, rows: &[RowClock]) -> Vec<i64> {
        let most = self.hear(heard, rows);
        let (error, before) = match *heard {
            HeardBoot::Now { error, .. } => (error, i64::MAX),
            HeardBoot::Over { before } => (0, before),
        };
        // The error of a board's clock is known only while the boot is on.
        let own_counts = self.by != RECEIPT || matches!(heard, HeardBoot::Now { .. });
        let mut placed = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let low = self.low(row.mono);
            let high = self.high(row.mono).into_iter().chain(most).min();
            let offset = match (low, high) {
                (Some(low), Some(high)) if high.saturating_sub(low) > AGREE_NS => {
                    let own = if own_counts { row.own(error) } else { low };
                    between(own, low, high)
                }
                // No suspend is known after it.
                (Some(low), _) => {
                    placed.push(low);
                    continue;
                }
                (None, Some(high)) => {
                    let mut later = rows[at..].iter().filter(|row| row.may_be_right(error, before));
                    between(later.next().map_or(high, |row| row.own(error)), i64::MIN, high)
                }
                // No clock of this boot was ever set.
                (None, None) => row.own(error),
            };
            self.add(row.mono, offset);
            placed.push(offset);
        }
        placed
    }

    /// Evaluates a request's information on the boot; returns the largest offset of any row of it,
    /// if it gives one.
    fn hear(&mut self, heard: &HeardBoot, rows: &[RowClock]) -> Option<i64> {
        let (mono, offset, noise, by) = match *heard {
            HeardBoot::Now { mono, offset, error: 0, .. } => (mono, offset, AGREE_NS, BOARD),
            HeardBoot::Now { mono, offset, .. } => (mono, offset, ON_THE_WAY, RECEIPT),
            // A board with a wrong clock does not provide an offset.
            HeardBoot::Over { .. } if self.by == RECEIPT => return None,
            HeardBoot::Over { before } => {
                let last = rows.iter().rev().find(|row| row.may_be_right(0, before))?;
                (last.mono, last.own(0), AGREE_NS, ROW)
            }
        };
        // Points of rows whose clock was never set, in 1970, were only a fallback.
        self.points.retain(|&(mono, offset)| mono.saturating_add(offset) >= CLOCK_SET.0);
        if let (true, HeardBoot::Now { asleep, .. }) = (self.points.is_empty(), *heard) {
            // At the start of the boot it was less by all suspends since then, and by nothing else.
            let asleep = if asleep > noise { asleep } else { 0 };
            self.add(0, offset.saturating_sub(asleep));
            by.clone_into(&mut self.by);
        }
        if self.low(mono).is_none_or(|low| offset.saturating_sub(low) > noise) {
            self.add(mono, offset);
            by.clone_into(&mut self.by);
        }
        self.low(mono)
    }

    /// The least that is to be added at an instant.
    fn low(&self, mono: i64) -> Option<i64> {
        let after = self.points.partition_point(|point| point.0 <= mono);
        Some(self.points.get(after.checked_sub(1)?)?.1)
    }

    /// The most that is to be added at an instant.
    fn high(&self, mono: i64) -> Option<i64> {
        self.points.get(self.points.partition_point(|point| point.0 < mono)).map(|point| point.1)
    }

    fn add(&mut self, mono: i64, offset: i64) {
        let at = self.points.partition_point(|point| point.0 < mono);
        if self.points.get(at).is_some_and(|point| point.0 == mono) {
            return;
        }
        let (low, high) = (self.low(mono).unwrap_or(i64::MIN), self.high(mono).unwrap_or(i64::MAX));
        self.points.insert(at, (mono, offset.clamp(low, high)));
        // The ends of a time without a suspend suffice.
        for middle in (at.saturating_sub(1)..=at + 1).rev() {
            let around = middle.checked_sub(1).and_then(|first| self.points.get(first..middle + 2));
            if around.is_some_and(|three| three[0].1 == three[1].1 && three[1].1 == three[2].1) {
                self.points.remove(middle);
            }
        }
        if self.points.len() > MOST_POINTS {
            self.points.remove(0);
        }
    }
}

/// A value between two, equal to a bound from which it hardly differs.
fn between(own: i64, low: i64, high: i64) -> i64 {
    match own.clamp(low, high) {
        own if own.saturating_sub(low) <= AGREE_NS => low,
        own if high.saturating_sub(own) <= AGREE_NS => high,
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;
    const HOUR: i64 = 3_600 * S;
    const DAY: i64 = 24 * HOUR;
    /// Time when the machine was started.
    const START: i64 = 1_790_000_000 * S;

    /// Rows of five minutes of a boot, each with the true offset and the error of its clock.
    fn rows(of: &[(i64, i64)]) -> Vec<RowClock> {
        let mono = (30 * S..).step_by(300 * S as usize);
        mono.zip(of).map(|(mono, &(right, error))| RowClock { mono, wall: mono + right + error }).collect()
    }

    fn now(rows: &[RowClock], offset: i64, error: i64, asleep: i64) -> HeardBoot {
        HeardBoot::Now { mono: rows.last().unwrap().mono + 299 * S, offset, error, asleep }
    }

    const OVER: HeardBoot = HeardBoot::Over { before: START + 90 * DAY };

    #[test]
    fn rows_of_before_the_clock_was_set_lie_where_those_after_it_do() {
        // Two rows of 1970, then the network was there.
        let rows = rows(&[(START, -START), (START, -START), (START, 0), (START, 0), (START, 0)]);
        assert_eq!(BootClock::default().place(&OVER, &rows), [START; 5]);
        for heard in [OVER, now(&rows, START, 0, 0), now(&rows, START, -START, 0)] {
            // The last first, as boards send it; then one by one.
            let mut clock = BootClock::default();
            assert_eq!(clock.place(&heard, &rows[4..]), [START]);
            for row in &rows {
                assert_eq!(clock.place(&heard, &[*row]), [START], "{heard:?}");
                let (offset, source) = clock.to_store().unwrap();
                clock = BootClock::stored(offset, &source);
            }
        }
        // If the clock was never set, all are placed by the first.
        let mut clock = BootClock::default();
        assert_eq!(clock.place(&OVER, &rows[..2]), [0; 2]);
        assert_eq!(clock.to_store(), Some((0, format!("row {}:0", rows[0].mono))));
        assert_eq!(clock.place(&OVER, &rows[2..]), [START; 3], "until something better is known");
    }

    #[test]
    fn rows_after_a_suspend_lie_after_it() {
        let (night, weekend) = (START + 8 * HOUR, START + 3 * DAY);
        let right = [START, START, night, night, weekend];
        let rows = rows(&right.map(|right| (right, 0)));
        assert_eq!(BootClock::default().place(&OVER, &rows), right);
        let mut clock = BootClock::default();
        assert_eq!(clock.place(&OVER, &rows[4..]), [weekend]);
        for (row, right) in rows.iter().zip(right) {
            assert_eq!(clock.place(&OVER, &[*row]), [right]);
        }
        // A running boot, with a request after each row, and after all of them.
        let mut clock = BootClock::default();
        for (row, right) in rows.iter().zip(right) {
            let heard = now(&[*row], right, 0, right - START);
            assert_eq!(clock.place(&heard, &[*row]), [right]);
        }
        let heard = now(&rows, weekend, 0, 3 * DAY);
        assert_eq!(BootClock::default().place(&heard, &rows), right);
        // Without information on suspends, the boot has the offset of the request.
        let heard = now(&rows, weekend, 0, 0);
        assert_eq!(BootClock::default().place(&heard, &rows), [weekend; 5]);
        // A suspend of 39 seconds.
        let mut clock = BootClock::default();
        assert_eq!(clock.place(&now(&rows[..1], START, 0, 0), &rows[..1]), [START]);
        let later = RowClock { wall: rows[1].wall + 39 * S, ..rows[1] };
        let heard = now(&[later], START + 39 * S, 0, 39 * S);
        assert_eq!(clock.place(&heard, &[later]), [START + 39 * S]);
        // A board that believes 1970 all along.
        let mut clock = BootClock::default();
        for (row, right) in rows.iter().zip(right) {
            let row = RowClock { wall: row.wall - START, ..*row };
            let heard = now(&[row], right, -START, right - START);
            assert_eq!(clock.place(&heard, &[row]), [right]);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_and_forth_moves_no_row() {
        for error in [HOUR, -HOUR, -START, 20 * 365 * DAY] {
            let rows = rows(&[(START, 0), (START, error), (START, 0), (START, error), (START, 0)]);
            let mut clock = BootClock::default();
            assert_eq!(clock.place(&now(&rows, START, 0, 0), &rows[4..]), [START]);
            assert_eq!(clock.to_store(), Some((START, "board".to_owned())));
            for heard in [now(&rows, START, error, 0), OVER] {
                assert_eq!(clock.place(&heard, &rows), [START; 5], "{error}");
            }
            assert_eq!(BootClock::default().place(&OVER, &rows), [START; 5], "{error}");
        }
        // A clock with a constant error of an hour, of a boot that is over by now.
        let rows = rows(&[(START, HOUR); 3]);
        let mut clock = BootClock::default();
        assert_eq!(clock.place(&now(&rows, START, HOUR, 0), &rows[..1]), [START]);
        assert_eq!(clock.place(&OVER, &rows), [START; 3]);
        // A long transit is no suspend, and neither is a farm whose clock is set back.
        for late in [200 * S, -DAY] {
            let mut clock = BootClock::default();
            clock.place(&now(&rows, START, HOUR, 0), &rows);
            assert_eq!(clock.place(&now(&rows, START + late, HOUR, 0), &rows), [START; 3]);
        }
    }

    #[test]
    fn what_is_stored_is_read_and_what_an_earlier_version_stored_holds() {
        for source in ["board", "receipt", "row", "", "row x", "row 1:2 x:3", "row 5"] {
            let mut clock = BootClock::stored(START, source);
            assert_eq!(clock.low(7), Some(START), "{source}");
            assert_eq!(clock.place(&OVER, &rows(&[(START, 0)])), [START]);
        }
        let mut clock = BootClock { by: ROW.to_owned(), points: vec![(-5, 7), (9, 70)] };
        let (offset, source) = clock.to_store().unwrap();
        assert_eq!((offset, source.as_str()), (70, "row -5:7 9:70"));
        assert_eq!(BootClock::stored(offset, &source), clock);
        assert_eq!(BootClock::default().to_store(), None);
        // Constant suspends: the number of points is bounded, and the order stays.
        let times: Vec<(i64, i64)> = (0..500).map(|at| (START + at * HOUR, 0)).collect();
        let rows = rows(&times);
        let placed: Vec<i64> = rows.chunks(7).flat_map(|some| clock.place(&OVER, some)).collect();
        assert_eq!(placed, times.iter().map(|time| time.0).collect::<Vec<_>>());
        let (offset, source) = clock.to_store().unwrap();
        assert!(source.len() < 3_000 && BootClock::stored(offset, &source) == clock);
    }

    /// Numbers from the bytes of a test.
    struct Drawn<'a>(&'a [u8]);

    impl Drawn<'_> {
        fn below(&mut self, most: usize) -> usize {
            let Some((first, rest)) = self.0.split_first() else { return 0 };
            self.0 = rest;
            usize::from(*first) % most.max(1)
        }
    }

    /// A boot of some rows with suspends, whose wall clock is set occasionally, sent in sessions
    /// during and after it: the newest first, then the others in any parts, some repeated.
    fn sent(drawn: &mut Drawn<'_>) {
        const SLEPT: [i64; 6] = [0, 0, 0, 40 * S, 8 * HOUR, 3 * DAY];
        const SET: [i64; 6] = [0, 0, HOUR, -HOUR, -START, 20 * 365 * DAY];
        let count = 2 + drawn.below(30);
        let (mut right, mut error, mut times) = (START, SET[drawn.below(6)], Vec::new());
        for _ in 0..count {
            right += SLEPT[drawn.below(6)];
            error = if drawn.below(4) == 0 { SET[drawn.below(6)] } else { error };
            times.push((right, error));
        }
        let rows = rows(&times);
        let mut placed: Vec<Option<i64>> = vec![None; count];
        let mut clock = BootClock::default();
        let mut made = 0;
        while made < count || placed.contains(&None) {
            let is_over = made == count;
            made = (made + 1 + drawn.below(12)).min(count);
            let (right, error) = times[made - 1];
            let heard = if is_over {
                HeardBoot::Over { before: rows[count - 1].mono + times[count - 1].0 + 300 * S }
            } else {
                now(&rows[..made], right, error, right - START)
            };
            let open: Vec<usize> = (0..made).filter(|at| placed[*at].is_none()).collect();
            let mut left = open.last().copied().into_iter().chain(open.iter().copied()).peekable();
            while left.peek().is_some() {
                let mut cut: Vec<usize> = left.by_ref().take(1 + drawn.below(9)).collect();
                // One of the others out of order, or repeated.
                cut.extend((drawn.below(3) == 0).then(|| drawn.below(made)));
                cut.sort_unstable();
                cut.dedup();
                let some: Vec<RowClock> = cut.iter().map(|at| rows[*at]).collect();
                for (at, offset) in cut.iter().zip(clock.place(&heard, &some)) {
                    placed[*at].get_or_insert(offset);
                }
                let (offset, source) = clock.to_store().unwrap();
                clock = BootClock::stored(offset, &source);
            }
        }
        let placed: Vec<i64> = placed.into_iter().flatten().collect();
        assert_eq!(placed.len(), count);
        assert!(placed.windows(2).all(|two| two[0] <= two[1]), "{placed:?} {times:?}");
        if times.iter().all(|time| time.1 == 0) {
            assert!(
                placed.iter().zip(&times).all(|(at, time)| (at - time.0).abs() <= AGREE_NS),
                "{placed:?} {times:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn rows_stay_in_order_whatever_clocks_do(drawn in prop::collection::vec(any::<u8>(), 0..200)) {
            sent(&mut Drawn(&drawn));
        }
    }
}
