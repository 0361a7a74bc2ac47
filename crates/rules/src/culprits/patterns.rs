//! Patterns over many spikes: recurrence with a period, and simultaneous spikes on several CPUs.
//!
//! Source: Documentation/trace/hwlat_detector.rst for stops from outside the software; periods are
//! those of `stats::time::period`.

use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use stats::time::period::{self, WatchedSpan};
use stats::time::period_name;

/// Limit of spikes that are compared with each other.
pub const MAX_SPIKES: usize = 4096;
/// Limit of times that are searched for a period.
const MAX_TIMES: usize = 1000;
/// Minimum distance of spikes' ends: closer ones are one for the search of a period.
const MIN_SEPARATION: Nanos = Nanos::MILLI;

/// Time span of a spike, and the part of it that is not explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpikeSpan {
    pub cpu: Cpu,
    /// Time at which the thread should have run.
    pub from: Nanos,
    pub to: Nanos,
    /// Part without any event.
    pub unexplained: Nanos,
    /// Part that is a stop from outside.
    pub stopped: Nanos,
}

impl SpikeSpan {
    fn length(&self) -> i64 {
        self.to.0.saturating_sub(self.from.0).max(0)
    }

    /// True if more than half of it is, or may be, a stop from outside.
    pub fn mostly_outside(&self) -> bool {
        self.unexplained.0.saturating_add(self.stopped.0).saturating_mul(2) > self.length()
    }

    /// True if the shorter of the two overlaps the other by at least half its length.
    fn overlaps(&self, other: &SpikeSpan) -> bool {
        let shared = self.to.min(other.to).0.saturating_sub(self.from.max(other.from).0);
        shared > 0 && shared.saturating_mul(2) >= self.length().min(other.length())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurrence {
    pub period_s: f64,
    pub se_s: f64,
    pub members: usize,
    /// Number of times that were searched.
    pub among: usize,
    /// True if there were more, which were not searched.
    pub cut: bool,
}

impl Recurrence {
    /// Description: `32 of 40 recur every 1.000 s`.
    pub fn sentence(&self) -> String {
        let every = period_name::spoken(self.period_s, self.se_s);
        let first = if self.cut { "the first " } else { "" };
        format!("{} of {first}{} recur every {every}", self.members, self.among)
    }

    /// True if most of the times belong to the period.
    pub fn covers_most(&self) -> bool {
        2 * self.members > self.among
    }
}

/// Period of the times between the first and the last of them, if they have one.
pub fn recurrence(times: &[Nanos], resolution: Nanos) -> Option<Recurrence> {
    let mut at: Vec<i64> = times.iter().map(|time| time.0).collect();
    at.sort_unstable();
    at.dedup_by(|later, earlier| later.saturating_sub(*earlier) < MIN_SEPARATION.0);
    let cut = at.len() > MAX_TIMES;
    at.truncate(MAX_TIMES);
    let span = WatchedSpan::new(*at.first()?, *at.last()?);
    let combs = period::combs(&at, span, resolution.0.max(1), period::ALPHA);
    let comb = combs.into_iter().max_by_key(|comb| comb.members.len())?;
    Some(Recurrence {
        period_s: comb.period_ns / 1e9,
        se_s: comb.period_se_ns / 1e9,
        members: comb.members.len(),
        among: at.len(),
        cut,
    })
}

/// Patterns over many spikes.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    spans: Vec<SpikeSpan>,
    longest: i64,
    cpus: usize,
    /// Recurrence of simultaneous stops from outside on all measured CPUs (at least two).
    pub at_once: Option<Recurrence>,
}

impl Patterns {
    /// Patterns of spikes in any order, with the number of measured CPUs.
    pub fn of(spans: &[SpikeSpan], cpus: usize, resolution: Nanos) -> Patterns {
        let mut spans = spans.to_vec();
        spans.truncate(MAX_SPIKES);
        spans.compact_sort_by_key(|span| (span.from, span.to, span.cpu));
        let longest = spans.iter().map(SpikeSpan::length).max().unwrap_or(0);
        let mut found = Patterns { spans, longest, cpus, at_once: None };
        let together = found.spans.iter().filter(|span| found.on_all_cpus(span)).map(|span| span.to);
        found.at_once = recurrence(&together.collect::<Vec<_>>(), resolution);
        found
    }

    /// Number of CPUs with a spike from outside at that time, including this one.
    pub fn cpus_at_once(&self, span: &SpikeSpan) -> usize {
        let earliest = span.from.0.saturating_sub(self.longest);
        let begin = self.spans.partition_point(|other| other.from.0 < earliest);
        let near = self.spans[begin..].iter().take_while(|other| other.from < span.to);
        let mut cpus: Vec<Cpu> = near
            .filter(|other| other.mostly_outside() && (*other == span || other.overlaps(span)))
            .map(|other| other.cpu)
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus.len()
    }

    /// True if spikes from outside occurred on all measured CPUs at the same time; false for one
    /// CPU.
    pub fn on_all_cpus(&self, span: &SpikeSpan) -> bool {
        self.cpus > 1 && span.mostly_outside() && self.cpus_at_once(span) >= self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(cpu: u32, from: i64, to: i64, unexplained: i64) -> SpikeSpan {
        let (from, to, unexplained) = (Nanos(from), Nanos(to), Nanos(unexplained));
        SpikeSpan { cpu: Cpu(cpu), from, to, unexplained, stopped: Nanos(0) }
    }

    #[test]
    fn only_unexplained_overlapping_spikes_are_simultaneous() {
        let one = span(0, 0, 100, 90);
        let at_once = |others: &[SpikeSpan]| {
            let all: Vec<SpikeSpan> = [one].iter().chain(others).copied().collect();
            Patterns::of(&all, 2, Nanos(1)).on_all_cpus(&one)
        };
        assert!(at_once(&[span(1, 20, 110, 80)]));
        assert!(at_once(&[SpikeSpan { stopped: Nanos(80), ..span(1, 20, 110, 0) }]), "known to be a stop");
        assert!(!at_once(&[span(0, 20, 110, 80)]), "the same CPU");
        assert!(!at_once(&[span(1, 20, 110, 40)]), "explained");
        assert!(!at_once(&[span(1, 90, 200, 100)]), "hardly overlapping");
        assert!(!Patterns::of(&[one], 1, Nanos(1)).on_all_cpus(&one), "one CPU says nothing");
    }

    #[test]
    fn recurring_spikes_have_their_period() {
        let every = |n: i64| Nanos(n * 1_300_000_000 + (n * 7919) % 20_000);
        let times: Vec<Nanos> = (0..40).map(every).collect();
        let found = recurrence(&times, Nanos(1_000_000)).expect("a period");
        assert!((found.period_s - 1.3).abs() < 1e-3 && found.covers_most(), "{found:?}");
        assert!(found.sentence().starts_with("40 of 40 recur every 1.30000"), "{}", found.sentence());
        let odd: Vec<Nanos> = (0..40u64)
            .map(|n| {
                Nanos(
                    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .rotate_left(29)
                        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
                        % 40_000_000_000) as i64,
                )
            })
            .collect();
        assert!(!recurrence(&odd, Nanos(1_000_000)).is_some_and(|found| found.covers_most()));
        assert_eq!(recurrence(&[], Nanos(0)), None);
    }

    proptest! {
        #[test]
        fn no_times_are_too_strange(
            times in prop::collection::vec((0u32..4, any::<i64>(), any::<i64>(), any::<i64>()), 0..40),
        ) {
            let spans: Vec<SpikeSpan> =
                times.iter().map(|&(cpu, from, to, ns)| span(cpu, from, to, ns)).collect();
            let found = Patterns::of(&spans, 4, Nanos(1000));
            for one in &spans {
                prop_assert!(found.cpus_at_once(one) <= 4);
            }
        }
    }
}
