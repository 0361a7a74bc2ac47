//! When the spikes came: periods, bursts, changes. What recurs is a mechanism, not chance.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Evidence, events};
use crate::stats::series::Block;
use crate::stats::time::period::{self, Comb};
use crate::stats::time::{burst, change, name};
use crate::units::Nanos;

/// How many of the largest blocks are looked at for periods: few show a rare comb, many a frequent one.
const SELECTIONS: [usize; 5] = [15, 60, 250, 1000, 2000];
/// Spikes are at most this part of the blocks.
const PART: usize = 10;
/// Fewer are no series.
const FEWEST: usize = 8;
/// The worst of which it is said how many belong to a period.
const WORST: usize = 15;
/// Windows of so many blocks are counted for changes of the rate.
const WINDOW: i64 = 10;
/// More windows are joined.
const MOST_WINDOWS: i64 = 20_000;

/// When the spikes came.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Structure {
    /// Periods among the largest blocks, the strongest evidence first.
    pub periods: Vec<Period>,
    /// How unevenly the spikes come; null where there are too few.
    pub bursts: Option<Bursts>,
    /// Stretches with another rate of spikes each; one where it did not change.
    pub stretches: Vec<Stretch>,
    /// All of it in sentences.
    pub sentences: Vec<String>,
    /// How many of the largest blocks could be told apart and were looked at; too few show no period.
    pub spikes_looked_at: usize,
}

/// Spikes that recur.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Period {
    /// The period.
    pub period_s: f64,
    /// Its standard error.
    pub se_s: f64,
    /// Spikes that belong to it.
    pub members: usize,
    /// Cycles between the first and the last of them without one.
    pub misses: usize,
    /// Standard deviation of the spikes about the times at which they were due.
    pub jitter_s: f64,
    /// CLOCK_MONOTONIC, or the time since the list's start, at which the first was due.
    pub phase_ns: Nanos,
    /// The probability of such a recurrence by chance.
    pub p_value: f64,
    /// The smallest latency of its spikes.
    pub from_ns: Nanos,
    /// The largest one.
    pub to_ns: Nanos,
    /// How many of the worst events belong to it,
    pub of_the_worst: usize,
    /// of so many.
    pub worst: usize,
    /// What runs with that period on many machines: compatible with, not caused by.
    pub compatible_with: Vec<String>,
    /// When its spikes were, ascending; for pictures.
    #[serde(skip)]
    pub at_ns: Vec<Nanos>,
}

impl Period {
    /// Why it forbids an extrapolation.
    pub fn refusal(&self) -> String {
        let (from, to) = (self.from_ns.spoken(), self.to_ns.spoken());
        if self.of_the_worst > 0 {
            return format!(
                "{} of the worst {} events recur every {} at {from} to {to} and do not belong to the rest of the distribution.",
                self.of_the_worst,
                self.worst,
                seconds(self.period_s)
            );
        }
        format!("{} spikes recur every {} at {from} to {to}.", self.members, seconds(self.period_s))
    }
}

/// A period with the digits that it has.
pub fn seconds(s: f64) -> String {
    if s >= 1.0 { format!("{s:.2} s") } else { format!("{:.3} ms", s * 1e3) }
}

/// How unevenly spikes come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// Spikes looked at.
    pub spikes: u64,
    /// Variance over mean of their counts; 1 for independent events.
    pub dispersion: f64,
    /// The probability of at least such a dispersion of independent events.
    pub p_value: f64,
    /// The fullest windows with most of the spikes hold this part of them
    pub share_of_spikes: f64,
    /// in this part of the time.
    pub share_of_time: f64,
}

/// A stretch of the run with one rate of spikes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// When it began, after the start of the run.
    pub from_ns: Nanos,
    /// When it ended.
    pub to_ns: Nanos,
    /// Spikes in it.
    pub spikes: u64,
    /// Their rate.
    pub per_hour: f64,
}

/// A spike: when it was, and how late.
type Spike = (i64, i64);

/// Looks for periods, bursts and changes among the largest blocks.
pub fn structure(evidence: &Evidence) -> Structure {
    let series = evidence.series;
    let observed = series.observed.0.max(0);
    let (spikes, blocks, start) = if series.blocks.is_empty() {
        let end = evidence.rows.last().map_or(0, |row| row.1.0);
        (evidence.overflow_times.iter().map(|&at| (at, end)).collect(), 0, 0)
    } else {
        let every = series.every();
        let start = every.first().map_or(0, |block| block.at.0);
        (peaks(evidence, &every), every.len(), start)
    };
    let span = (start, start.saturating_add(observed));
    let (periods, spikes_looked_at) = periods(evidence, &spikes, blocks, span);
    let large = largest(&spikes, blocks / 50);
    let (bursts, stretches) = rates(&large, span, series.block.0);
    let mut found = Structure { periods, bursts, stretches, sentences: Vec::new(), spikes_looked_at };
    found.sentences = sentences(&found);
    found
}

/// The peaks of clusters of block maxima: two blocks may share one event at their common edge.
fn peaks(evidence: &Evidence, every: &[Block]) -> Vec<Spike> {
    let maxima: Vec<Spike> = every.iter().map(|block| (block.at.0, block.max.0)).collect();
    let clusters = events::together(evidence.series, &maxima);
    clusters.into_iter().map(|peak| maxima[peak]).collect()
}

/// The largest so many; where equal ones would have to be parted, none of them.
fn largest(spikes: &[Spike], most: usize) -> Vec<Spike> {
    let mut sorted = spikes.to_vec();
    sorted.sort_by_key(|spike| std::cmp::Reverse(spike.1));
    let Some(next) = sorted.get(most).map(|spike| spike.1) else { return sorted };
    sorted.truncate(most);
    sorted.retain(|spike| spike.1 > next);
    sorted
}

/// The periods, and how many spikes the largest selection had.
fn periods(evidence: &Evidence, spikes: &[Spike], blocks: usize, span: (i64, i64)) -> (Vec<Period>, usize) {
    let alpha = period::ALPHA / SELECTIONS.len() as f64;
    let mut found: Vec<Period> = Vec::new();
    let most = if blocks == 0 { usize::MAX } else { (blocks / PART).max(FEWEST) };
    let mut seen = 0;
    for count in SELECTIONS.map(|count| count.min(most)) {
        let selected = largest(spikes, count);
        if selected.len() < FEWEST || selected.len() == seen {
            continue;
        }
        seen = selected.len();
        let times: Vec<i64> = selected.iter().map(|spike| spike.0).collect();
        let resolution = evidence.series.tick.0.max(1);
        for comb in period::combs(&times, span, resolution, alpha) {
            keep(&mut found, describe(evidence, &comb, &selected, spikes));
        }
    }
    found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.members.cmp(&a.members)));
    (found, seen)
}

/// The worst spikes, more of them where several are as bad as the last.
fn worst(spikes: &[Spike]) -> Vec<Spike> {
    let mut sorted = spikes.to_vec();
    sorted.sort_by_key(|spike| std::cmp::Reverse(spike.1));
    let last = sorted.get(WORST - 1).map_or(i64::MIN, |spike| spike.1);
    sorted.retain(|spike| spike.1 >= last);
    sorted
}

/// Of a period that several selections show, or show in part, the one with most spikes.
fn keep(found: &mut Vec<Period>, new: Period) {
    let same = |old: &Period| {
        let (long, short) = (old.period_s.max(new.period_s), old.period_s.min(new.period_s));
        let ratio = long / short;
        let error = (3.0 * (old.se_s + new.se_s) / short).max(1e-3);
        ratio.round() <= 16.0 && (ratio - ratio.round()).abs() < error * ratio
    };
    match found.iter_mut().find(|old| same(old)) {
        Some(old) if old.members < new.members => *old = new,
        Some(_) => {}
        None => found.push(new),
    }
}

fn describe(evidence: &Evidence, comb: &Comb, selected: &[Spike], spikes: &[Spike]) -> Period {
    let latencies = || comb.members.iter().filter_map(|&i| selected.get(i)).map(|spike| spike.1);
    let worst = worst(spikes);
    let members: BTreeSet<i64> =
        comb.members.iter().filter_map(|&i| selected.get(i)).map(|spike| spike.0).collect();
    let (period_s, se_s) = (comb.period_ns / 1e9, comb.period_se_ns / 1e9);
    Period {
        period_s,
        se_s,
        members: comb.members.len(),
        misses: comb.misses,
        jitter_s: comb.jitter_ns / 1e9,
        phase_ns: Nanos(comb.phase_ns),
        p_value: comb.p,
        from_ns: Nanos(latencies().min().unwrap_or(0)),
        to_ns: Nanos(latencies().max().unwrap_or(0)),
        of_the_worst: worst.iter().filter(|spike| members.contains(&spike.0)).count(),
        worst: worst.len(),
        compatible_with: name::compatible(comb.period_ns, comb.period_se_ns, evidence.hz),
        at_ns: members.into_iter().map(Nanos).collect(),
    }
}

fn rates(large: &[Spike], (start, end): (i64, i64), block: i64) -> (Option<Bursts>, Vec<Stretch>) {
    let length = end.saturating_sub(start).max(0);
    let window = block.saturating_mul(WINDOW).max(length / MOST_WINDOWS).max(1);
    let windows = length / window;
    if windows < 10 || large.len() < FEWEST {
        return (None, Vec::new());
    }
    let mut counts = vec![0u64; windows as usize];
    for (at, _) in large {
        let place = (at.saturating_sub(start).max(0) / window).min(windows - 1);
        counts[place as usize] += 1;
    }
    let at = |edge: usize| Nanos((edge as i64).saturating_mul(window));
    let stretch = |segment: change::Segment| {
        let (from_ns, to_ns) = (at(segment.from), at(segment.to));
        let hours = (to_ns - from_ns).as_secs() / 3600.0;
        Stretch { from_ns, to_ns, spikes: segment.events, per_hour: segment.events as f64 / hours }
    };
    let stretches = change::segments(&counts, 3).into_iter().map(stretch).collect();
    let bursts =
        burst::dispersion(&counts).zip(burst::busiest(&counts)).map(|(dispersion, busiest)| Bursts {
            spikes: large.len() as u64,
            dispersion: dispersion.index,
            p_value: dispersion.p,
            share_of_spikes: busiest.events,
            share_of_time: busiest.time,
        });
    (bursts, stretches)
}

fn sentences(found: &Structure) -> Vec<String> {
    let mut lines: Vec<String> = found.periods.iter().map(Period::sentence).collect();
    if let Some(bursts) = found.bursts.filter(|bursts| bursts.p_value < 0.01 && bursts.dispersion > 1.0) {
        lines.push(format!(
            "Spikes come in bursts: {:.0} % of the {} largest in {:.1} % of the time.",
            100.0 * bursts.share_of_spikes,
            bursts.spikes,
            100.0 * bursts.share_of_time
        ));
    }
    for pair in found.stretches.windows(2) {
        lines.push(format!(
            "The rate of spikes changed {} after the start: {:.1} an hour before, {:.1} after.",
            pair[1].from_ns.spoken(),
            pair[0].per_hour,
            pair[1].per_hour
        ));
    }
    lines
}

impl Period {
    fn sentence(&self) -> String {
        let hint = if self.compatible_with.is_empty() {
            String::new()
        } else {
            format!(" Compatible with {}.", self.compatible_with.join(", or "))
        };
        format!(
            "{} spikes of {} to {} recur every {} (\u{b1} {:.1e} s), {} cycles without one; {} of the worst {} belong to them.{hint}",
            self.members,
            self.from_ns.spoken(),
            self.to_ns.spoken(),
            seconds(self.period_s),
            self.se_s,
            self.misses,
            self.of_the_worst,
            self.worst
        )
    }
}
