//! Late wake-ups more or less often than they used to be, from the histograms of days.
//!
//! Late means above the level of about ten wake-ups a day in the first six weeks that are read:
//! fixed before the days that are tested, and the rarest that can show a doubling in a week.

use model::rows::row_edges;
use report::words::{several, span};
use stats::pair::conditional_binomial::{Exposure, total};
use stats::time::onset::{Direction, LEAST, RECENT, onsets, smallest_factor};

use super::lead::times;
use super::{ChangeKind, FarmChange, SHOWN_DAYS};
use crate::records::{SeriesKey, Tier, TierRow};
use crate::words::address;
use crate::words::date;

/// Number of days read, including those before the displayed ones.
pub const READ_DAYS: i64 = 320;
/// Late wake-ups a day that the level is chosen for.
const A_DAY: f64 = 10.0;
/// Share by which days have to be longer or shorter together for it to be mentioned.
const UNEQUAL: f64 = 0.03;

/// The whole days of a board's series, oldest first.
#[derive(Clone, Debug)]
pub struct RateHistory<'a> {
    pub board: &'a str,
    pub key: &'a SeriesKey,
    /// Name of the series in sentences; `""` if the board has no other.
    pub name: &'a str,
    pub days: &'a [TierRow],
}

/// True if there are enough days, and enough wake-ups in them, to find a change.
pub fn is_judged(days: &[TierRow]) -> bool {
    days.len() >= LEAST + RECENT && level(days).is_some()
}

/// The changes that were seen in the last days that are shown.
pub fn rate_changes(of: &RateHistory) -> Vec<FarmChange> {
    let (Some(level), Some(last)) = (level(of.days), of.days.last()) else { return Vec::new() };
    let days = counted(of.days, level);
    let shown_from = last.t - SHOWN_DAYS * Tier::Day.seconds();
    let exposures: Vec<Exposure> = days.iter().map(|day| day.1).collect();
    let all = onsets(&exposures);
    let one = |at: usize| {
        let onset = &all[at];
        let (from, seen) = (days[onset.from].0, days[onset.seen].0);
        let limit = span(row_edges(level).0);
        let whose = if of.name.is_empty() { String::new() } else { format!(" of {}", of.name) };
        let more = onset.direction == Direction::More;
        let often = if more { "more often" } else { "less often" };
        // Usual rate since then, up to the next change.
        let next = all.get(at + 1).map(|next| next.from);
        let sides = RateSides {
            before: &exposures[onset.usual_from..onset.from],
            since: &exposures[onset.from..next.unwrap_or(exposures.len())],
            from,
            until: next.map(|next| days[next].0),
        };
        let mut evidence = sides.says(&limit);
        evidence.push(format!(
            "It was detected on {}; its probability by chance is computed from the days up to then.",
            date(seen)
        ));
        evidence.push(format!(
            "From day to day the count varied {:.1} times as much before as by chance alone.",
            onset.phi.max(1.0)
        ));
        if let Some(factor) = smallest_factor(onset.before, onset.phi) {
            evidence.push(format!(
                "At the previous rate, an increase to {factor:.1} times is detected within a week."
            ));
        }
        FarmChange {
            board: of.board.to_owned(),
            kind: if more { ChangeKind::MoreOften } else { ChangeKind::LessOften },
            t: seen,
            from,
            claim: sides.claim(),
            says: format!("Latencies{whose} of {limit} or more occur {often} since {}.", date(from)),
            evidence,
            p: Some((onset.p_day * SHOWN_DAYS as f64).min(1.0)),
            settings: Vec::new(),
            address: address(of.board, of.key, from) + "&worst=day",
            subject: format!("rate {often} {} {}", of.key.series, of.key.plan),
            since: None,
            acknowledged: None,
            conditions: Vec::new(),
        }
    };
    (0..all.len()).filter(|at| days[all[*at].seen].0 > shown_from).map(one).collect()
}

/// Days before and since a change of a rate: the day on which it began counts as since, as the hour
/// is not known.
struct RateSides<'a> {
    before: &'a [Exposure],
    since: &'a [Exposure],
    /// First second of the first day since the change.
    from: i64,
    /// First second of the day on which it changed again, if it did.
    until: Option<i64>,
}

impl RateSides<'_> {
    /// The rate since then, as a multiple of the one before.
    fn claim(&self) -> String {
        let [before, since] = [self.before, self.since].map(mean);
        match times(since / before) {
            Some(times) => format!("late wake-ups {times}"),
            None => format!("{} late wake-ups a day instead of none", a_day(since)),
        }
    }

    /// Means of both sides, with their numbers of days.
    fn says(&self, limit: &str) -> Vec<String> {
        let since = match self.until {
            None => format!("since {}", date(self.from)),
            Some(until) => {
                format!("from {} until {}, when it changed again", date(self.from), date(until))
            }
        };
        let mut says = vec![format!(
            "Latencies of {limit} or more occurred {} times a day before and {} times {since}: means of the \
             {} with samples before, and of the {} from that day on.",
            a_day(mean(self.before)),
            a_day(mean(self.since)),
            several(self.before.len() as u64, "day", "days"),
            several(self.since.len() as u64, "day", "days"),
        )];
        let is_other = |of: &[Exposure]| (total(of).time / of.len().max(1) as f64 - 1.0).abs() > UNEQUAL;
        if is_other(self.before) || is_other(self.since) {
            says.push(
                "Days are weighted by their wake-ups: with half of the usual number, a day counts as \
                 half."
                    .to_owned(),
            );
        }
        says
    }
}

/// Events per day.
fn mean(of: &[Exposure]) -> f64 {
    let all = total(of);
    if all.time > 0.0 { all.events as f64 / all.time } else { 0.0 }
}

/// A rate per day, as text.
pub(super) fn a_day(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// Row from which about ten wake-ups a day were late in the first days; `None` if there were never
/// so many wake-ups, or too few days.
pub(super) fn level(days: &[TierRow]) -> Option<usize> {
    let first = days.get(..LEAST)?;
    let mut sums = model::rows::RowSums::default();
    first.iter().flat_map(|day| &day.cpus).for_each(|cpu| sums.add_all(&cpu.rows));
    let rows: Vec<(usize, u64)> = sums.iter().collect();
    let mut above = 0u64;
    let wanted = (A_DAY * LEAST as f64) as u64;
    rows.into_iter().rev().find_map(|(row, count)| {
        above = above.saturating_add(count);
        (above >= wanted).then_some(row)
    })
}

/// Number of late wake-ups of each day, and its length in usual days by its wake-ups.
pub(super) fn counted(days: &[TierRow], level: usize) -> Vec<(i64, Exposure)> {
    let mut lengths: Vec<u64> = days.iter().map(|day| day.n).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(1).max(1) as f64;
    let late = |day: &TierRow| {
        let rows = day.cpus.iter().flat_map(|cpu| cpu.rows.iter());
        rows.filter(|(row, _)| *row >= level).map(|(_, count)| count).fold(0, u64::saturating_add)
    };
    days.iter().map(|day| (day.t, Exposure { events: late(day), time: day.n as f64 / usual })).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::records::CpuRows;
    use model::rows::RowCounts;
    use model::units::Cpu;
    use stats::rng::{Rng, SEED};
    use stats::time::fixture::poisson_counts;

    pub fn history(rates: &[(f64, usize)]) -> Vec<TierRow> {
        let mut rng = Rng::new(SEED);
        let counts: Vec<u64> =
            rates.iter().flat_map(|&(rate, days)| poisson_counts(rate, days, &mut rng)).collect();
        let day = |(at, late): (usize, u64)| {
            let rows = RowCounts::of_rows([(300, 86_000_000), (450, late)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t: at as i64 * 86_400, n: 86_000_000 + late, cpus, ..TierRow::default() }
        };
        counts.into_iter().enumerate().map(day).collect()
    }

    /// The numbers of a sentence.
    fn numbers(of: &str) -> Vec<f64> {
        let number = |word: &str| word.trim_end_matches([',', ':', '.']).parse::<f64>().ok();
        of.split(' ').filter_map(number).collect()
    }

    #[test]
    fn the_rate_since_a_change_is_that_of_all_days_since_and_goes_on_with_them() {
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        let changes = |days: &[TierRow]| rate_changes(&RateHistory { board: "a", key: &key, name: "", days });
        let mean = |days: &[TierRow]| {
            days.iter().map(|day| day.n - 86_000_000).sum::<u64>() as f64 / days.len() as f64
        };
        let says = |change: &FarmChange, before: &[TierRow], since: &[TierRow]| {
            let wanted = [mean(before), mean(since), before.len() as f64, since.len() as f64];
            let said = numbers(&change.evidence[0]);
            assert_eq!(said.len(), 5, "{change:?}");
            let is_near = said[1..].iter().zip(wanted).all(|(said, wanted)| (said - wanted).abs() < 0.6);
            assert!(is_near, "{change:?} is not of {wanted:?}");
        };
        let mut days = history(&[(12.0, 100), (60.0, 1), (250.0, 9)]);
        // As seen on its first day, and nine days later.
        let (first, later) = (changes(&days[..101]).remove(0), changes(&days).remove(0));
        let at = (first.from / 86_400) as usize;
        assert!((98..101).contains(&at) && first.t == 100 * 86_400, "{first:?}");
        says(&first, &days[..at], &days[at..101]);
        says(&later, &days[..at], &days[at..]);
        // It is the same change, of the same chance.
        assert_eq!((later.t, later.from), (first.t, first.from));
        assert_eq!((&later.subject, &later.says), (&first.subject, &first.says));
        assert!(later.p.unwrap() < 1e-4 && first.p.unwrap() < 1e-4, "{later:?}");
        assert!(later.evidence[1].starts_with("It was detected on 1970-04-11; "), "{later:?}");
        // Days after the next change do not belong to this one.
        let next = history(&[(12.0, 100), (60.0, 1), (250.0, 59), (900.0, 10)]);
        let all = changes(&next);
        assert_eq!(all.len(), 2, "{all:?}");
        says(&all[0], &next[..at], &next[at..160]);
        says(&all[1], &next[at..160], &next[160..]);
        assert!(all[0].evidence[0].contains(" until 1970-06-10, when it changed again: "), "{all:?}");
        // A day of half the length counts half, and the evidence mentions it.
        assert!(!later.evidence.iter().any(|one| one.starts_with("Days are weighted")), "{later:?}");
        days[105..].iter_mut().for_each(|day| day.n /= 2);
        let halves = changes(&days).remove(0);
        assert!(halves.evidence[1].starts_with("Days are weighted by their wake-ups: "), "{halves:?}");
        let since = |change: &FarmChange| numbers(&change.evidence[0])[2];
        assert!(since(&halves) > 1.2 * since(&later), "{halves:?}");
    }

    #[test]
    fn a_doubling_is_told_with_its_numbers_and_one_rate_is_not() {
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        let days = history(&[(15.0, 100), (34.0, 12)]);
        let of = |days, name| rate_changes(&RateHistory { board: "a", key: &key, name, days });
        let found = of(&days, "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, ChangeKind::MoreOften);
        assert!(found[0].evidence[0].contains("a day before") && found[0].address.contains("series=measure"));
        assert!(found[0].says.starts_with("Latencies of "), "{}", found[0].says);
        let named = of(&days, "wakeup");
        assert!(named[0].says.starts_with("Latencies of wakeup of "), "{}", named[0].says);
        let steady = history(&[(15.0, 112)]);
        assert!(of(&steady, "").is_empty() && of(&days[..30], "").is_empty());
        assert!(is_judged(&days[..56]) && !is_judged(&days[..55]) && !is_judged(&history(&[(15.0, 9)])));
        assert!(!is_judged(&vec![TierRow::default(); 112]), "without a wake-up there is no rate");
    }
}
