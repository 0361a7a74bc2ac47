//! Frequency of a board's data, and the usual gap between days with samples.

use crate::wall_clock::DAY;

/// A gap of more than a day between days with samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentGap {
    /// The first second of the day that ended it.
    pub ended: i64,
    /// Length in seconds, from the first of the day before it.
    pub length: i64,
}

/// The days on which a board sent, of a year up to the last one, including invalid runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentDays {
    /// Number of days with samples.
    pub count: usize,
    /// Oldest first, those that are not too long ago.
    pub gaps: Vec<SentGap>,
    /// Result of [`SentGap::pause`], if it was computed.
    pub pause: Option<i64>,
}

impl SentGap {
    /// Period in which a gap stays usual; after it, the new habit of a board that changed it
    /// counts.
    const RECENT: i64 = 90 * DAY;
    /// Factor for longer gaps, which are too rare in that period: such a gap stays usual for that
    /// multiple of its length.
    const TIMES: i64 = 3;
    /// Once a board may have been away.
    const USUAL: usize = 2;

    /// Period in which gaps of a length are searched.
    pub fn recent(length: i64) -> i64 {
        SentGap::RECENT.max(length.saturating_mul(SentGap::TIMES))
    }

    /// Minimum length of a pause: with less a board is not silent yet.
    const LEAST_PAUSE: i64 = 3 * DAY;

    /// Length of the pauses of a board that sends for months and is off for weeks, from its gaps of
    /// years, oldest first: the longest that occurred twice with a similar length, up to 50 % more.
    /// It is obsolete after 1.5 times the time between the last two without another.
    pub fn pause(gaps: &[SentGap], last: i64) -> Option<i64> {
        let half_again = |length: i64| length.saturating_mul(3) / 2;
        let alike =
            |length: i64| gaps.iter().filter(move |gap| (length..=half_again(length)).contains(&gap.length));
        let still_comes = |length: &i64| {
            let ended: Vec<i64> = alike(*length).map(|gap| gap.ended).collect();
            let [.., before, latest] = ended[..] else { return false };
            last - latest <= half_again(latest - before)
        };
        let mut lengths: Vec<i64> = gaps.iter().map(|gap| gap.length).collect();
        lengths.retain(|length| *length >= SentGap::LEAST_PAUSE);
        lengths.sort_unstable();
        lengths.dedup();
        let length = lengths.into_iter().rfind(still_comes)?;
        alike(length).map(|gap| gap.length).max()
    }
}

impl SentDays {
    /// From the first seconds of the first and the last day, and all gaps between them.
    pub fn new(first: i64, last: i64, mut gaps: Vec<SentGap>) -> SentDays {
        let without: i64 = gaps.iter().map(|gap| gap.length / DAY - 1).sum();
        let count = last.saturating_sub(first) / DAY + 1 - without;
        gaps.retain(|gap| gap.ended > last.saturating_sub(SentGap::recent(gap.length)));
        SentDays { count: usize::try_from(count).unwrap_or_default(), gaps, pause: None }
    }

    /// Longest gap that occurred twice, or longer ones in its place, in the last 90 days or in
    /// three times its own length; otherwise a day.
    pub fn usual_gap(&self, last: i64) -> i64 {
        let is_usual = |length: &i64| {
            let from = last.saturating_sub(SentGap::recent(*length));
            let as_long = self.gaps.iter().filter(|gap| gap.length >= *length && gap.ended > from);
            as_long.count() >= SentGap::USUAL
        };
        self.gaps.iter().map(|gap| gap.length).filter(is_usual).max().unwrap_or(DAY)
    }

    #[cfg(test)]
    pub fn of(days: &[i64]) -> SentDays {
        let pairs = days.windows(2).map(|pair| SentGap { ended: pair[1], length: pair[1] - pair[0] });
        let gaps = pairs.filter(|gap| gap.length > DAY).collect();
        days.first().zip(days.last()).map_or_else(SentDays::default, |(first, last)| {
            let sent = SentDays::new(*first, *last, gaps);
            assert_eq!(sent.count, days.len());
            sent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Usual gap of a board that sent on these days of a year, in days.
    fn usual(days: impl IntoIterator<Item = i64>) -> i64 {
        let days: Vec<i64> = days.into_iter().map(|day| day * DAY).collect();
        SentDays::of(&days).usual_gap(*days.last().unwrap()) / DAY
    }

    /// Bursts of that many days in a row, with a given period.
    fn bursts(days: i64, each: i64, until: i64) -> impl Iterator<Item = i64> {
        (0..until).filter(move |day| day % each < days)
    }

    #[test]
    fn what_comes_again_and_again_is_usual() {
        assert_eq!(usual(0..366), 1);
        for every in [2, 7, 16, 31, 60, 120, 180] {
            assert_eq!(usual((0..=360 / every).map(|at| at * every)), every, "every {every} days");
        }
        // From Monday to Friday.
        assert_eq!(usual((0..364).filter(|day| day % 7 < 5)), 3);
        // Bursts, with the year ending on any day of one.
        for (days, each) in [(1, 30), (2, 30), (3, 30), (10, 30), (15, 30), (25, 30), (29, 30), (5, 91)] {
            for burst in 3..=360 / each {
                for day in 1..=days {
                    let found = usual(bursts(days, each, burst * each + day));
                    assert_eq!(found, each - days + 1, "{days} days each {each}, on the {day}th");
                }
            }
        }
    }

    #[test]
    fn what_came_once_or_long_ago_is_not() {
        // Away once, for long, near the end and long before.
        assert_eq!(usual((0..80).chain(280..366)), 1);
        assert_eq!(usual((0..160).chain(360..366)), 1);
        // Two gaps as short as a weekend do not make one of 200 days usual.
        assert_eq!(usual((0..80).chain(280..350).chain(352..357).chain(359..366)), 3);
        // Weekly, with a holiday.
        assert_eq!(usual((0..50).filter(|week| !(30..35).contains(week)).map(|week| week * 7)), 7);
        // Half a year ago: monthly before, and from then on; daily from Monday to Friday, too.
        let monthly = |from: i64| (0..6).map(move |month| from + month * 31);
        assert_eq!(usual(monthly(0).chain(180..366)), 1);
        assert_eq!(usual(monthly(0).chain((180..366).filter(|day| day % 7 < 5))), 3);
        assert_eq!(usual((0..180).chain(monthly(211))), 31);
        // The second of them makes it known.
        assert_eq!(usual((0..180).chain([210])), 1);
        assert_eq!(usual((0..180).chain([210, 241])), 31);
    }

    #[test]
    fn what_came_twice_is_a_pause_as_long_as_it_comes_again() {
        let pause = |days: &mut dyn Iterator<Item = i64>| {
            let days: Vec<i64> = days.collect();
            let pairs = days.windows(2).map(|pair| (pair[1] * DAY, (pair[1] - pair[0]) * DAY));
            let gaps = pairs.filter(|(_, length)| *length > DAY);
            let gaps: Vec<SentGap> = gaps.map(|(ended, length)| SentGap { ended, length }).collect();
            SentGap::pause(&gaps, days.last().unwrap() * DAY).map(|length| length / DAY)
        };
        // On for 60 days and off for 30, from the second time on.
        assert_eq!(pause(&mut bursts(60, 90, 150)), None);
        assert_eq!(pause(&mut bursts(60, 90, 240)), Some(31));
        assert_eq!(pause(&mut bursts(60, 90, 1_050)), Some(31));
        // Two summers, of which the second was longer; two that are not alike.
        let summers = |second: i64| {
            (0..1_000_i64).filter(move |day| !(200..250).contains(day) && !(565..565 + second).contains(day))
        };
        assert_eq!((pause(&mut summers(60)), pause(&mut summers(200))), (Some(61), None));
        // Monthly, and each day since half a year; weekends, and a day without samples now and
        // then.
        assert_eq!(pause(&mut (0..366).filter(|day| day % 30 == 0 || *day > 183)), None);
        assert_eq!(pause(&mut (0..364).filter(|day| day % 7 < 5)), Some(3));
        assert_eq!(pause(&mut (0..364).filter(|day| day % 20 > 0)), None);
    }

    #[test]
    fn what_is_new_is_known_by_two_gaps() {
        assert_eq!((usual([1, 2, 3]), usual([1, 8, 15]), usual([1, 3, 10])), (1, 7, 2));
        assert_eq!((usual([7, 40, 41]), usual([1, 2, 3, 30, 31])), (1, 1));
    }
}
