//! Late wake-ups more or less often than they used to be, from the histograms of days.
//!
//! Late is what about ten wake-ups a day were in the first six weeks that are looked at: fixed
//! before the days that are judged, and the rarest that can show a doubling within a week.

use model::rows::row_edges;
use report::words::span;
use stats::pair::conditional_binomial::Exposure;
use stats::time::onset::{Direction, LEAST, RECENT, onsets, smallest_factor};

use super::{ChangeKind, FarmChange, SHOWN_DAYS};
use crate::pages::five_minutes::address;
use crate::pages::parts::date;
use crate::records::{SeriesKey, Tier, TierRow};

/// Days that are read, those before what is shown included.
pub const READ_DAYS: i64 = 320;
/// Late wake-ups a day that the level is chosen for.
const A_DAY: f64 = 10.0;

/// The whole days of a board's series, oldest first.
#[derive(Clone, Debug)]
pub struct RateHistory<'a> {
    pub board: &'a str,
    pub key: &'a SeriesKey,
    /// What sentences call the series; `""` where the board has no other.
    pub name: &'a str,
    pub days: &'a [TierRow],
}

/// Whether there are days enough, and wake-ups enough in them, for a change to be found.
pub fn is_judged(days: &[TierRow]) -> bool {
    days.len() >= LEAST + RECENT && level(days).is_some()
}

/// The changes that were seen in the last days that are shown.
pub fn rate_changes(of: &RateHistory) -> Vec<FarmChange> {
    let (Some(level), Some(last)) = (level(of.days), of.days.last()) else { return Vec::new() };
    let days = counted(of.days, level);
    let shown_from = last.t - SHOWN_DAYS * Tier::Day.seconds();
    let all = onsets(&days.iter().map(|day| day.1).collect::<Vec<_>>());
    let one = |onset: &stats::time::onset::RateOnset| {
        let (from, seen) = (days[onset.from].0, days[onset.seen].0);
        let limit = span(row_edges(level).0);
        let whose = if of.name.is_empty() { String::new() } else { format!(" of {}", of.name) };
        let more = onset.direction == Direction::More;
        let often = if more { "more often" } else { "less often" };
        let mut evidence = vec![
            format!(
                "Latencies from {limit} on came {} a day before and {} since {}.",
                a_day(onset.before),
                a_day(onset.after),
                date(from)
            ),
            format!(
                "From day to day the count varies {:.1} times as much as by chance alone.",
                onset.phi.max(1.0)
            ),
        ];
        if let Some(factor) = smallest_factor(onset.before, onset.phi) {
            evidence.push(format!("At this rate {factor:.1} times as many are seen within a week."));
        }
        FarmChange {
            board: of.board.to_owned(),
            kind: if more { ChangeKind::MoreOften } else { ChangeKind::LessOften },
            t: seen,
            from,
            says: format!("Latencies{whose} from {limit} on come {often} since {}.", date(from)),
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
    all.iter().filter(|onset| days[onset.seen].0 > shown_from).map(one).collect()
}

/// So many a day, for people.
pub(super) fn a_day(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// The row from which on about ten wake-ups a day were late in the first days; none where there
/// were never so many, or too few days.
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

/// Each day with how many were late, and its length in usual days by its wake-ups.
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

    #[test]
    fn a_doubling_is_told_with_its_numbers_and_one_rate_is_not() {
        let key = SeriesKey { series: "measure".into(), plan: "p".into() };
        let days = history(&[(15.0, 100), (34.0, 12)]);
        let of = |days, name| rate_changes(&RateHistory { board: "a", key: &key, name, days });
        let found = of(&days, "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].kind, ChangeKind::MoreOften);
        assert!(found[0].evidence[0].contains("a day before") && found[0].address.contains("series=measure"));
        assert!(found[0].says.starts_with("Latencies from "), "{}", found[0].says);
        let named = of(&days, "wakeup");
        assert!(named[0].says.starts_with("Latencies of wakeup from "), "{}", named[0].says);
        let steady = history(&[(15.0, 112)]);
        assert!(of(&steady, "").is_empty() && of(&days[..30], "").is_empty());
        assert!(is_judged(&days[..56]) && !is_judged(&days[..55]) && !is_judged(&history(&[(15.0, 9)])));
        assert!(!is_judged(&vec![TierRow::default(); 112]), "without a wake-up there is no rate");
    }
}
