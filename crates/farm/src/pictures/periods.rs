//! Days, hours or five minutes of a board added up to as few stretches of time as a picture has
//! lines for.

use model::histogram::{Bucket, quantile};
use model::rows::{RowCounts, RowSums, row_edges};
use model::units::Nanos;

use super::long_term::LongTerm;
use crate::records::{SLOT, Tier, TierRow};
use crate::wall_clock::DAY;

/// More lines cover each other.
const MOST: i64 = 100;
const HOUR: i64 = 3_600;
const WEEK: i64 = 7 * DAY;
/// Possible lengths of a period, parts of a day first.
const LENGTHS: [i64; 8] = [SLOT, 3 * SLOT, HOUR / 2, HOUR, 2 * HOUR, 6 * HOUR, DAY, WEEK];
/// A Monday: 1970 began on a Thursday.
const MONDAY: i64 = -3 * DAY;

/// A stretch of time that has samples, all CPUs added up.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardPeriod {
    /// Its first second.
    pub t: i64,
    pub missed: u64,
    pub max_ns: Option<Nanos>,
    /// The first second of the day, the hour or the five minutes with the largest latency.
    pub worst_t: i64,
    pub rows: RowCounts,
}

impl BoardPeriod {
    /// A quantile of its wake-ups, given in millionths, at most a row's width too large.
    pub fn quantile(&self, per_million: u64) -> Option<Nanos> {
        let bucket = |(row, count)| {
            let (lower, upper) = row_edges(row);
            Bucket { lower, upper, count }
        };
        let buckets: Vec<Bucket> = self.rows.iter().map(bucket).collect();
        quantile(&buckets, self.max_ns, per_million)
    }
}

/// Periods of equal length, oldest first; those without samples are omitted.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardPeriods {
    /// Length of each, in seconds.
    pub seconds: i64,
    pub all: Vec<BoardPeriod>,
}

impl BoardPeriods {
    /// Divides rows in the order of time into the shortest periods that are few enough.
    pub fn of(rows: &LongTerm) -> BoardPeriods {
        let length = length_for(rows.to - rows.from, rows.tier);
        let begin = |row: &TierRow| MONDAY + (row.t - MONDAY).div_euclid(length) * length;
        let all = rows.rows.chunk_by(|one, next| begin(one) == begin(next));
        BoardPeriods {
            seconds: length,
            all: all.filter_map(|rows| period(begin(rows.first()?), rows)).collect(),
        }
    }

    /// Length of each, in words.
    pub fn words(&self) -> String {
        match self.seconds {
            HOUR => "hour".to_owned(),
            DAY => "day".to_owned(),
            WEEK => "week".to_owned(),
            short if short < HOUR => format!("{} minutes", short / 60),
            short if short < DAY => format!("{} hours", short / HOUR),
            long => format!("{} weeks", long / WEEK),
        }
    }

    /// The same with its number.
    pub fn length(&self) -> String {
        let words = self.words();
        if words.starts_with(|c: char| c.is_ascii_digit()) { words } else { format!("one {words}") }
    }
}

/// Merges rows into one; `None` without rows.
fn period(t: i64, rows: &[TierRow]) -> Option<BoardPeriod> {
    let mut sums = RowSums::default();
    rows.iter().flat_map(|row| &row.cpus).for_each(|cpu| sums.add_all(&cpu.rows));
    // Of equal ones the first.
    let worst = rows.iter().rev().max_by_key(|row| row.max_ns)?;
    Some(BoardPeriod {
        t,
        missed: rows.iter().map(|row| row.missed).fold(0, u64::saturating_add),
        max_ns: worst.max_ns,
        worst_t: worst.t,
        rows: sums.counts(),
    })
}

/// Shortest length that is at least that of a row; weeks are doubled as often as necessary.
fn length_for(seconds: i64, tier: Tier) -> i64 {
    let fits = |length: &i64| seconds <= MOST * length && *length >= tier.seconds();
    if let Some(length) = LENGTHS.into_iter().find(fits) {
        return length;
    }
    let mut length = 2 * WEEK;
    while seconds > MOST * length {
        length *= 2;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::CpuRows;
    use model::rows::row_of;
    use model::units::Cpu;

    fn year(days: i64) -> LongTerm {
        let day = |at: i64| {
            let max = Nanos(10_000 + at);
            let rows = RowCounts::of_rows([(row_of(Nanos(5_000)), 9), (row_of(max), 1)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t: at * DAY, n: 10, missed: 1, max_ns: Some(max), cpus }
        };
        let rows = (0..days).map(day).collect();
        LongTerm { tier: Tier::Day, from: 0, to: days * DAY, rows, ..LongTerm::default() }
    }

    #[test]
    fn no_span_has_more_lines_than_can_be_told_apart_and_none_loses_a_sample() {
        for (days, length, words) in
            [(1, 1, "day"), (100, 1, "day"), (101, 7, "week"), (366, 7, "week"), (3_650, 56, "8 weeks")]
        {
            let periods = BoardPeriods::of(&year(days));
            assert_eq!((periods.seconds, periods.words().as_str()), (length * DAY, words), "{days}");
            assert!(periods.all.len() as i64 <= MOST + 1);
            assert_eq!(periods.all.iter().map(|one| one.rows.total()).sum::<u64>(), 10 * days as u64);
            assert_eq!(periods.all.iter().map(|one| one.missed).sum::<u64>(), days as u64);
            let last = periods.all.last().unwrap();
            assert_eq!((last.max_ns, last.worst_t), (Some(Nanos(10_000 + days - 1)), (days - 1) * DAY));
        }
        assert!(BoardPeriods::of(&year(0)).all.is_empty());
    }

    #[test]
    fn a_day_has_lines_of_minutes_and_a_week_has_lines_of_hours() {
        for (tier, days, words, length, lines) in [
            (Tier::Slot, 1, "15 minutes", "15 minutes", 96),
            (Tier::Hour, 1, "hour", "one hour", 24),
            (Tier::Hour, 7, "2 hours", "2 hours", 84),
        ] {
            let count = days * DAY / tier.seconds();
            let row = |at: i64| {
                let cpus = vec![CpuRows { cpu: Cpu(0), rows: RowCounts::of_rows([(9, 1)]) }];
                TierRow { t: 10 * DAY + at * tier.seconds(), n: 1, cpus, ..TierRow::default() }
            };
            let rows = (0..count).map(row).collect();
            let (from, to) = (10 * DAY, (10 + days) * DAY);
            let of = BoardPeriods::of(&LongTerm { tier, from, to, rows, ..LongTerm::default() });
            assert_eq!((of.words().as_str(), of.length().as_str(), of.all.len()), (words, length, lines));
            assert_eq!(of.all.iter().map(|one| one.rows.total()).sum::<u64>(), count as u64);
            assert_eq!(of.all[0].t, 10 * DAY);
        }
    }

    #[test]
    fn weeks_begin_on_mondays_and_quantiles_are_at_most_the_maximum() {
        let periods = BoardPeriods::of(&year(366));
        // 1970-01-05 was the first.
        assert_eq!([periods.all[0].t, periods.all[1].t], [-3 * DAY, 4 * DAY]);
        let first = &periods.all[0];
        assert_eq!(first.quantile(1_000_000), first.max_ns);
        let median = first.quantile(500_000).unwrap().0;
        assert!((5_000..5_200).contains(&median), "{median}");
    }
}
