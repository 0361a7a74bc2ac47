//! Periods among the largest blocks: recurrence indicates a mechanism, not chance.

use std::collections::BTreeSet;

use serde::Serialize;

use super::input::BoundsInput;
use crate::series::Series;
use crate::time::period::{self, Comb, WatchedSpan};
use crate::time::{period_name, schuster, short_period};
use model::sort::CompactSort;
use model::units::Nanos;

/// Numbers of the largest blocks that are looked at: few show a rare comb, many a frequent one.
const SELECTIONS: [usize; 5] = [15, 60, 250, 1000, MAX_SPIKES];
/// Largest number of spikes that are searched for periods.
pub const MAX_SPIKES: usize = 2000;
/// Least number of blocks per spike.
const PART: usize = 10;
/// Least number of spikes in which a period is searched.
pub const MIN_SPIKES: usize = 8;
/// Number of worst blocks of which the members of a period are counted.
const WORST: usize = 15;
/// Largest number of reported periods.
const MAX_PERIODS: usize = 8;

/// Time and latency of a spike, in ns.
pub type SeriesSpike = (i64, i64);

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Period {
    pub period_s: f64,
    pub se_s: f64,
    /// Number of spikes that belong to it.
    pub members: usize,
    /// Number of the largest blocks that were searched, or of the listed events beyond an imported
    /// histogram's end.
    pub among: usize,
    /// Cycles between the first and the last member without one; null if not all spikes were looked
    /// at.
    pub misses: Option<usize>,
    /// Standard deviation of the spikes from the times at which they were due.
    pub jitter_s: f64,
    /// CLOCK_MONOTONIC, or the time since the list's start, at which the first was due.
    pub phase_ns: Nanos,
    /// Probability of such a recurrence by chance.
    pub p_value: f64,
    /// Probability of such a line in the events' periodogram at this period by chance (Rayleigh,
    /// Schuster).
    pub rayleigh_p_value: Option<f64>,
    /// Smallest latency of its spikes; null if an import counted them without it.
    pub from_ns: Option<Nanos>,
    /// Largest latency of its spikes; null if `from_ns` is.
    pub to_ns: Option<Nanos>,
    /// Lower bound of the latency of each spike, if no more is known: beyond an imported
    /// histogram's end.
    pub at_least_ns: Option<Nanos>,
    /// Other periods, in s, that fit about as well, most of them fractions of this one; empty if
    /// the times determine it.
    pub or_s: Vec<f64>,
    /// Number of the worst events that belong to it.
    pub of_the_worst: usize,
    /// Number of the worst events.
    pub worst: usize,
    /// Activities with that period on many machines: compatible with, not caused by.
    pub compatible_with: Vec<String>,
    /// Times of its spikes, ascending; for pictures.
    #[serde(skip)]
    pub at_ns: Vec<Nanos>,
}

impl Period {
    /// Period with its significant digits, and the alternatives.
    pub fn every(&self) -> String {
        let one = period_name::spoken(self.period_s, self.se_s);
        if self.or_s.is_empty() {
            return one;
        }
        let part = |other: f64| self.period_s / other;
        let whole = |other: &f64| (part(*other) - part(*other).round()).abs() < 0.02 * part(*other);
        let others: Vec<String> =
            self.or_s.iter().map(|other| period_name::spoken(*other, self.se_s)).collect();
        let what = if self.or_s.iter().all(whole) { "a fraction of it: " } else { "" };
        format!("{one} or {what}{} (the blocks are too coarse to tell)", others.join(" or "))
    }

    /// Period with its error, for a gate.
    pub fn detail(&self) -> String {
        let of = if self.from_ns.is_some() {
            "largest blocks"
        } else {
            "listed events beyond the histogram's end"
        };
        format!("{} \u{b1} {:.1e} s, {} of the {} {of}", self.every(), self.se_s, self.members, self.among)
    }

    /// Reason why it forbids an extrapolation.
    pub fn refusal(&self) -> String {
        let Some((from, to)) = self.range() else { return self.beyond(&self.every()) + "." };
        if 2 * self.of_the_worst > self.worst {
            return format!(
                "{} of the worst {} events recur every {} at {from} to {to} and do not belong to the rest of the distribution.",
                self.of_the_worst,
                self.worst,
                self.every()
            );
        }
        format!(
            "{} of the {} largest blocks recur every {} at {from} to {to}.",
            self.members,
            self.among,
            self.every()
        )
    }

    /// Finding, as a sentence.
    pub fn sentence(&self) -> String {
        let hint = if self.compatible_with.is_empty() {
            String::new()
        } else {
            format!(" Compatible with {}.", self.compatible_with.join(", or "))
        };
        let every = format!("{} (\u{b1} {:.1e} s)", self.every(), self.se_s);
        match self.range() {
            None => format!("{}.{hint}", self.beyond(&every)),
            Some((from, to)) => format!(
                "{} of the {} largest blocks, {from} to {to}, recur every {every}; {} of the worst {} are among them.{hint}",
                self.members, self.among, self.of_the_worst, self.worst
            ),
        }
    }

    /// Latencies of its spikes, if known.
    pub fn range(&self) -> Option<(String, String)> {
        Some((self.from_ns?.spoken(), self.to_ns?.spoken()))
    }

    fn beyond(&self, every: &str) -> String {
        recur(self.members, self.among, self.at_least_ns, every)
    }

    /// True if the other's spikes lie on the teeth of this comb: a multiple of a period is not a
    /// separate period.
    fn explains(&self, other: &Period, tick: Nanos) -> bool {
        let period = self.period_s * 1e9;
        let reach = (3e9 * self.jitter_s).max(0.3 * tick.0 as f64);
        let on_a_tooth = |at: &&Nanos| {
            let after = (i128::from(at.0) - i128::from(self.phase_ns.0)) as f64;
            let cycle = (after / period).round();
            (after - cycle * period).abs() <= reach + 3e9 * self.se_s * cycle.abs()
        };
        let on = other.at_ns.iter().filter(on_a_tooth).count();
        2.5 * reach < period && 10 * on >= 9 * other.at_ns.len()
    }
}

/// The `most` largest spikes; if the cut falls on equal ones, without these.
pub fn largest(spikes: &[SeriesSpike], most: usize) -> Vec<SeriesSpike> {
    let mut sorted = spikes.to_vec();
    sorted.compact_sort_by_key(|spike| std::cmp::Reverse(spike.1));
    let Some(next) = sorted.get(most).map(|spike| spike.1) else { return sorted };
    sorted.truncate(most);
    sorted.retain(|spike| spike.1 > next);
    sorted
}

/// Precision of the blocks' times: no finer than blocks if nearly all are at one time of their
/// block.
///
/// Such times were not recorded, or a mechanism is in each block; for longer periods both lead to
/// the same result.
pub fn tick(series: &Series) -> Nanos {
    let block = series.block.0.max(1);
    let Some(first) = series.blocks.first() else { return series.tick };
    let near = |at: i64| {
        let off = at.saturating_sub(first.at.0).rem_euclid(block);
        off.min(block - off) <= (block / 50).max(series.tick.0)
    };
    let same = series.blocks.iter().filter(|entry| near(entry.at.0)).count();
    if 50 * same >= 49 * series.blocks.len() { series.tick.max(series.block) } else { series.tick }
}

/// Periods, those of the worst events first, and the number of spikes in the largest selection.
pub fn periods(
    input: &BoundsInput,
    spikes: &[SeriesSpike],
    blocks: usize,
    span: WatchedSpan,
    tick: Nanos,
) -> (Vec<Period>, usize) {
    let alpha = period::ALPHA / SELECTIONS.len() as f64;
    let worst = worst(spikes);
    let mut found: Vec<Period> = Vec::new();
    let most = if blocks == 0 { usize::MAX } else { (blocks / PART).max(MIN_SPIKES) };
    let mut seen = 0;
    for count in SELECTIONS.map(|count| count.min(most)) {
        let selected = largest(spikes, count);
        if selected.len() < MIN_SPIKES || selected.len() == seen {
            continue;
        }
        seen = selected.len();
        let times: Vec<i64> = selected.iter().map(|spike| spike.0).collect();
        let resolution = tick.0.max(1);
        let mut combs = period::combs(&times, span, resolution, alpha);
        if tick >= input.series.block && blocks > 0 {
            // Spikes of a longer period are no evidence for a shorter one.
            let left: Vec<usize> =
                (0..times.len()).filter(|at| !combs.iter().any(|comb| comb.members.contains(at))).collect();
            let rest: Vec<i64> = left.iter().map(|&at| times[at]).collect();
            combs.extend(short_period::comb(&rest, span, resolution, alpha).map(|mut comb| {
                comb.members.iter_mut().for_each(|at| *at = left[*at]);
                comb
            }));
        }
        for comb in combs {
            keep(&mut found, describe(input, &comb, &selected, &worst, span), tick);
        }
    }
    found.compact_sort_by(|a, b| b.of_the_worst.cmp(&a.of_the_worst).then(a.p_value.total_cmp(&b.p_value)));
    (found, seen)
}

/// The worst spikes, and those that are as bad as the last of them.
fn worst(spikes: &[SeriesSpike]) -> Vec<SeriesSpike> {
    let mut sorted = spikes.to_vec();
    sorted.compact_sort_by_key(|spike| std::cmp::Reverse(spike.1));
    let last = sorted.get(WORST - 1).map_or(i64::MIN, |spike| spike.1);
    sorted.retain(|spike| spike.1 >= last);
    sorted
}

/// Adds a period, but of combs on each other's teeth only one: the shorter period only if it has
/// half as many spikes again, for finer teeth hold the coarser ones' spikes in any case.
pub fn keep(found: &mut Vec<Period>, new: Period, tick: Nanos) {
    let related = |old: &Period| old.explains(&new, tick) || new.explains(old, tick);
    let rather = |this: &Period, that: &Period| {
        let (more, than) = (2 * this.members, 2 * that.members);
        if this.period_s < 0.75 * that.period_s { more >= than + that.members } else { 3 * more > 2 * than }
    };
    if found.iter().any(|old| related(old) && !rather(&new, old)) {
        return;
    }
    found.retain(|old| !related(old));
    if found.len() < MAX_PERIODS {
        found.push(new);
    }
}

/// Period of a comb among events beyond a histogram's end, which have times and no latencies.
pub fn of_overflows(input: &BoundsInput, comb: &Comb, times: &[i64], until: i64) -> Period {
    let spikes: Vec<SeriesSpike> = times.iter().map(|&at| (at, 0)).collect();
    let found = describe(input, comb, &spikes, &[], WatchedSpan::new(0, until));
    Period {
        misses: Some(comb.misses),
        from_ns: None,
        to_ns: None,
        at_least_ns: input.histogram.listed.from,
        ..found
    }
}

fn describe(
    input: &BoundsInput,
    comb: &Comb,
    selected: &[SeriesSpike],
    worst: &[SeriesSpike],
    span: WatchedSpan,
) -> Period {
    let latencies = || comb.members.iter().filter_map(|&i| selected.get(i)).map(|spike| spike.1);
    let members: BTreeSet<i64> =
        comb.members.iter().filter_map(|&i| selected.get(i)).map(|spike| spike.0).collect();
    let times: Vec<i64> = selected.iter().map(|spike| spike.0).collect();
    let line = schuster::confirm(&times, span.to.saturating_sub(span.from), comb.period_ns);
    Period {
        period_s: comb.period_ns / 1e9,
        se_s: comb.period_se_ns / 1e9,
        members: comb.members.len(),
        among: selected.len(),
        // As many members as blocks were taken in: the rest of the cycles may hold smaller ones.
        misses: Some(comb.misses).filter(|_| 2 * comb.members.len() < selected.len()),
        jitter_s: comb.jitter_ns / 1e9,
        phase_ns: Nanos(comb.phase_ns),
        p_value: comb.p,
        rayleigh_p_value: line.map(|line| line.false_alarm),
        from_ns: latencies().min().map(Nanos),
        to_ns: latencies().max().map(Nanos),
        at_least_ns: None,
        or_s: comb.or_ns.iter().map(|ns| ns / 1e9).collect(),
        of_the_worst: worst.iter().filter(|spike| members.contains(&spike.0)).count(),
        worst: worst.len(),
        // An ambiguous period has no name.
        compatible_with: if comb.or_ns.is_empty() {
            period_name::compatible(comb.period_ns, comb.period_se_ns, input.hz)
        } else {
            Vec::new()
        },
        at_ns: members.into_iter().map(Nanos).collect(),
    }
}

/// Members of a period beyond a histogram's end, in words.
fn recur(members: usize, among: usize, at_least: Option<Nanos>, every: &str) -> String {
    let late = at_least.map_or_else(String::new, |from| format!(", each at least {} late", from.spoken()));
    format!("{members} of {among} listed events beyond the histogram's end{late}, recur every {every}")
}

#[cfg(test)]
mod tests {
    use super::super::structure::structure;
    use super::super::{Question, bounds};
    use super::*;
    use crate::rng::Rng;
    use crate::series::{BLOCK, BlockMaximum, Blocks, Series};

    /// An hour of a run at 1 ms: Gumbel maxima about 20 us at random times, and combs of (period s,
    /// phase s, us, kept).
    fn hour(combs: &[(f64, f64, i64, f64)], seed: u64) -> Series {
        let mut rng = Rng::new(seed);
        let us: Vec<f64> = (0..3_600).map(|_| 20.0 - 2.0 * rng.exponential().ln()).collect();
        let list: Vec<Option<Nanos>> = us.iter().map(|us| Some(Nanos((us * 1_000.0) as i64))).collect();
        let mut series = Series { tick: Nanos(1_000_000), ..Series::of_list(&list, BLOCK, Nanos(1)) };
        let mut edited: Vec<BlockMaximum> = series.blocks.iter().collect();
        for block in &mut edited {
            block.at.0 += rng.below(1_000) as i64 * 1_000_000;
        }
        for &(period, phase, us, rate) in combs {
            let due = (0..).map(|n| phase + f64::from(n) * period).take_while(|&due| due < 3_600.0);
            for due in due.collect::<Vec<_>>() {
                let block = &mut edited[due as usize];
                if rng.uniform() < rate && block.max.0 < us * 1_000 {
                    (block.max, block.at) =
                        (Nanos(us * 1_000 + rng.below(900) as i64), Nanos((due * 1e9) as i64));
                }
            }
        }
        series.blocks = Blocks::new(BLOCK);
        edited.into_iter().for_each(|block| series.blocks.push(block));
        series
    }

    fn rounded(periods: &[Period]) -> Vec<f64> {
        periods.iter().map(|period| (period.period_s * 100.0).round() / 100.0).collect()
    }

    fn periods_of(combs: &[(f64, f64, i64, f64)], seed: u64) -> Vec<f64> {
        rounded(&structure(&BoundsInput::of(&hour(combs, seed))).periods)
    }

    #[test]
    fn one_comb_has_one_period_however_frequent() {
        for (period, seed) in [(1.0, 1), (2.0, 2), (5.0, 3), (10.0, 4), (60.0, 5)] {
            assert_eq!(periods_of(&[(period, 0.31, 50, 0.9)], seed), [period], "{period}");
        }
        assert_eq!(periods_of(&[], 6), Vec::<f64>::new());
    }

    #[test]
    fn times_no_finer_than_blocks_do_not_hide_a_period() {
        for (period, seed) in [(3.0, 1), (10.0, 2), (60.0, 3)] {
            let mut series = hour(&[(period, 0.31, 50, 1.0)], seed);
            series.blocks =
                series.blocks.edited(|block| block.at = Nanos(block.index * BLOCK.0 + 500_000_000));
            assert_eq!(rounded(&structure(&BoundsInput::of(&series)).periods), [period]);
        }
    }

    /// Like [`hour`], as a list: times are no finer than its blocks.
    fn listed(combs: &[(f64, f64, i64, f64)], seed: u64) -> Vec<f64> {
        let values: Vec<Option<Nanos>> =
            hour(combs, seed).blocks.iter().map(|block| Some(block.max)).collect();
        rounded(&structure(&BoundsInput::of(&Series::of_list(&values, BLOCK, Nanos(1)))).periods)
    }

    #[test]
    fn lists_show_the_same_periods_or_none() {
        for (period, rate) in
            [(3.0, 1.0), (7.0, 1.0), (10.0, 1.0), (60.0, 1.0), (60.0, 0.7), (120.0, 1.0), (300.0, 1.0)]
        {
            let all: Vec<Vec<f64>> = (0..4).map(|seed| listed(&[(period, 0.4, 50, rate)], seed)).collect();
            let right = all
                .iter()
                .filter(|found| matches!(found[..], [one] if (one - period).abs() < 0.01 * period))
                .count();
            let wrong = all.iter().flatten().filter(|one| (**one - period).abs() > 0.01 * period).count();
            assert!(right >= 3 && wrong == 0, "{period} {rate}: {all:?}");
        }
    }

    #[test]
    fn teeth_that_are_late_or_missing_do_not_make_a_multiple_of_the_period() {
        for (period, rate) in [(20.3, 0.3), (20.3, 0.6), (7.3, 0.4), (4.1, 0.5)] {
            for seed in 0..2 {
                let mut rng = Rng::new(seed);
                let mut us: Vec<i64> =
                    (0..3_600).map(|_| 20_000 - (2e3 * rng.exponential().ln()) as i64).collect();
                let mut due = rng.uniform() * period;
                while due < 3_600.0 {
                    let at = (due + 0.5 * rng.normal()).floor();
                    if rng.uniform() < rate && (0.0..3_600.0).contains(&at) {
                        us[at as usize] = 50_000 + (2e3 * rng.exponential()) as i64;
                    }
                    due += period;
                }
                let list: Vec<Option<Nanos>> = us.into_iter().map(|ns| Some(Nanos(ns))).collect();
                let found = structure(&BoundsInput::of(&Series::of_list(&list, BLOCK, Nanos(1)))).periods;
                let wrong = |one: &&Period| (one.period_s / period - 1.0).abs() > 0.01;
                assert_eq!(found.iter().find(wrong), None, "{period} {rate} {seed}");
            }
        }
    }

    #[test]
    fn other_possible_periods_are_reported_with_it() {
        let period = Period { period_s: 20.302, se_s: 0.004, ..Period::default() };
        assert_eq!(period.every(), "20.302 s");
        let half = Period { or_s: vec![10.151, 6.7673], ..period.clone() };
        assert_eq!(
            half.every(),
            "20.302 s or a fraction of it: 10.151 s or 6.767 s (the blocks are too coarse to tell)"
        );
        let image = Period { or_s: vec![18.0], ..period };
        assert!(image.every().starts_with("20.302 s or 18.000 s ("), "{}", image.every());
    }

    #[test]
    fn combs_with_common_multiples_are_distinguished() {
        let both = hour(&[(60.0, 17.3, 50, 1.0), (10.0, 3.2, 40, 1.0)], 7);
        let periods = structure(&BoundsInput::of(&both)).periods;
        assert_eq!(rounded(&periods), [60.0, 10.0], "the worst events' first");
        assert_eq!(periods[0].of_the_worst, periods[0].worst);
        assert_eq!(periods_of(&[(60.0, 5.1, 50, 1.0), (60.0, 35.6, 51, 1.0)], 8), [60.0, 60.0]);
    }

    #[test]
    fn what_recurs_less_than_each_block_is_never_extrapolated() {
        let question = Question { horizon: Nanos(3_600_000_000_000), chosen: true, ..Question::default() };
        for (period, rate) in [(2.0, 1.0), (10.0, 0.5)] {
            let asked = bounds(&BoundsInput::of(&hour(&[(period, 0.4, 50, rate)], 9)), &question);
            assert_eq!(asked.extrapolation.status, crate::bounds::ExtrapolationStatus::Refused, "{period}");
            assert!(asked.extrapolation.reason.contains("recur every"), "{}", asked.extrapolation.reason);
        }
    }
}
