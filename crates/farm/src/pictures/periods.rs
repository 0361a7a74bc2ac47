//! Days of a board added up to as few stretches of time as a picture has lines for.

use model::histogram::{Bucket, quantile};
use model::rows::{RowCounts, RowSums, row_edges};
use model::units::Nanos;

use super::long_term::LongTerm;
use crate::records::TierRow;

/// More lines cover each other.
const MOST: i64 = 100;
const DAY: i64 = 86_400;
/// A Monday: 1970 began on a Thursday.
const MONDAY: i64 = -3 * DAY;

/// A stretch of time that has samples, all CPUs added up.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardPeriod {
    /// Its first second.
    pub t: i64,
    pub missed: u64,
    pub max_ns: Option<Nanos>,
    /// The first second of the day with the largest latency.
    pub worst_day: i64,
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

/// Stretches of equal length, oldest first; those without samples are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardPeriods {
    /// How long each is, in days.
    pub days: i64,
    pub all: Vec<BoardPeriod>,
}

impl BoardPeriods {
    /// Of days, whose rows are in the order of time: the shortest stretches that are few enough.
    pub fn of(days: &LongTerm) -> BoardPeriods {
        let length = length_for(days.to - days.from);
        let begin = |day: &TierRow| MONDAY + (day.t - MONDAY).div_euclid(length * DAY) * length * DAY;
        let all = days.rows.chunk_by(|one, next| begin(one) == begin(next));
        BoardPeriods {
            days: length,
            all: all.filter_map(|rows| period(begin(rows.first()?), rows)).collect(),
        }
    }

    /// How long each is, for people.
    pub fn words(&self) -> String {
        match self.days {
            1 => "day".to_owned(),
            7 => "week".to_owned(),
            days => format!("{} weeks", days / 7),
        }
    }
}

/// Some days as one; none of no day.
fn period(t: i64, rows: &[TierRow]) -> Option<BoardPeriod> {
    let mut sums = RowSums::default();
    rows.iter().flat_map(|day| &day.cpus).for_each(|cpu| sums.add_all(&cpu.rows));
    // Of equal days the first.
    let worst = rows.iter().rev().max_by_key(|day| day.max_ns)?;
    Some(BoardPeriod {
        t,
        missed: rows.iter().map(|day| day.missed).fold(0, u64::saturating_add),
        max_ns: worst.max_ns,
        worst_day: worst.t,
        rows: sums.counts(),
    })
}

/// A day, a week, or weeks doubled as often as it takes.
fn length_for(seconds: i64) -> i64 {
    let mut length = 1;
    while seconds > MOST * length * DAY {
        length = if length == 1 { 7 } else { 2 * length };
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{CpuRows, Tier};
    use model::rows::row_of;
    use model::units::Cpu;

    fn year(days: i64) -> LongTerm {
        let day = |at: i64| {
            let max = Nanos(10_000 + at);
            let rows = RowCounts::of_rows([(row_of(Nanos(5_000)), 9), (row_of(max), 1)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t: at * DAY, n: 10, missed: 1, max_ns: Some(max), cpus }
        };
        LongTerm { tier: Tier::Day, from: 0, to: days * DAY, rows: (0..days).map(day).collect() }
    }

    #[test]
    fn no_span_has_more_lines_than_can_be_told_apart_and_none_loses_a_sample() {
        for (days, length, words) in
            [(1, 1, "day"), (100, 1, "day"), (101, 7, "week"), (366, 7, "week"), (3_650, 56, "8 weeks")]
        {
            let periods = BoardPeriods::of(&year(days));
            assert_eq!((periods.days, periods.words().as_str()), (length, words), "{days}");
            assert!(periods.all.len() as i64 <= MOST + 1);
            assert_eq!(periods.all.iter().map(|one| one.rows.total()).sum::<u64>(), 10 * days as u64);
            assert_eq!(periods.all.iter().map(|one| one.missed).sum::<u64>(), days as u64);
            let last = periods.all.last().unwrap();
            assert_eq!((last.max_ns, last.worst_day), (Some(Nanos(10_000 + days - 1)), (days - 1) * DAY));
        }
        assert!(BoardPeriods::of(&year(0)).all.is_empty());
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
