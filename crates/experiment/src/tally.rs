//! Segments of an experiment combined to pairs: counted and dropped ones.

use std::collections::BTreeMap;

use model::experiment::{ExperimentArm, ExperimentSegment};
use stats::pair::conditional_binomial::Exposure;
use stats::pair::verdict::{log_rate, mean_time};

use crate::design::DROPPED_SHARE;

/// Pair of two valid segments.
#[derive(Clone, Copy, Debug)]
pub struct CountedPair<'a> {
    pub a: &'a ExperimentSegment,
    pub b: &'a ExperimentSegment,
}

/// Tally of the pairs.
#[derive(Clone, Debug, Default)]
pub struct PairTally<'a> {
    /// Counted pairs, in order.
    pub pairs: Vec<CountedPair<'a>>,
    /// Pairs with an invalid segment, or with segments of different lengths.
    pub dropped: u32,
    /// Invalid segments of A and B.
    pub invalid: [u32; 2],
    /// Pairs interrupted between their segments; `missing` counts those without A and B.
    pub interrupted: u32,
    pub missing: [u32; 2],
    /// Dropped pairs with segments of different lengths.
    pub unequal: u32,
    /// Number of the next pair.
    pub next: u32,
}

/// Relative difference below which lengths are equal: each run ends some wake-ups sooner or later.
/// The sign of a pair is that of its counts, which cannot be compared for other lengths.
const ALIKE: f64 = 0.05;

/// Number of invalid segments below which it means nothing that all are of one arm.
const FEW: u32 = 3;

impl<'a> PairTally<'a> {
    pub fn of(segments: &'a [ExperimentSegment]) -> PairTally<'a> {
        let mut tally = PairTally::default();
        let Some(last) = segments.iter().map(|segment| segment.pair).max() else { return tally };
        tally.next = last.saturating_add(1);
        for (a, b) in by_number(segments).into_values() {
            let invalid = [a, b].map(|segment| segment.is_some_and(|segment| !segment.valid));
            match (a, b) {
                _ if invalid.contains(&true) => tally.dropped += 1,
                (Some(a), Some(b)) if !are_alike(a, b) => {
                    tally.dropped += 1;
                    tally.unequal += 1;
                }
                (Some(a), Some(b)) => tally.pairs.push(CountedPair { a, b }),
                _ => {
                    tally.interrupted += 1;
                    tally.missing[0] += u32::from(a.is_none());
                    tally.missing[1] += u32::from(b.is_none());
                }
            }
            tally.invalid[0] += u32::from(invalid[0]);
            tally.invalid[1] += u32::from(invalid[1]);
        }
        tally
    }

    /// Reason for which too much was dropped to decide by the rest; none if it was not. An
    /// unmeasured segment of an interrupted pair counts for its arm, because its condition may have
    /// caused the interruption.
    pub fn unfair(&self) -> Option<String> {
        let [a, b] = [0, 1].map(|arm| self.invalid[arm] + self.missing[arm]);
        let measured = self.pairs.len() as u32 + self.dropped;
        if self.dropped.saturating_mul(DROPPED_SHARE) > measured {
            return Some(format!("{} of {measured} pairs were dropped", self.dropped));
        }
        let (most, arm) = if a > b { (a, "without the change") } else { (b, "with the change") };
        let all = a + b;
        (all >= FEW && most * 4 >= all * 3).then(|| {
            let lost = if self.missing == [0, 0] { "invalid" } else { "invalid or interrupted" };
            format!("{most} of {all} {lost} segments were {arm}")
        })
    }

    /// True if the remaining pairs cannot make up for the dropped ones.
    pub fn is_lost(&self, most_pairs: u32) -> bool {
        self.dropped.saturating_mul(DROPPED_SHARE) > most_pairs.saturating_add(self.dropped)
    }
}

/// True if both were observed for the same time.
fn are_alike(a: &ExperimentSegment, b: &ExperimentSegment) -> bool {
    let [a, b] = [a, b].map(|segment| segment.observed_ns.as_secs().max(1e-9));
    (b / a - 1.0).abs() < ALIKE
}

/// Both arms of each pair, if present; of several segments of an arm the first counts.
fn by_number(segments: &[ExperimentSegment]) -> BTreeMap<u32, BothArms<'_>> {
    let mut pairs: BTreeMap<u32, BothArms> = BTreeMap::new();
    for segment in segments {
        let (a, b) = pairs.entry(segment.pair).or_default();
        match segment.arm {
            ExperimentArm::A => a.get_or_insert(segment),
            ExperimentArm::B => b.get_or_insert(segment),
        };
    }
    pairs
}

/// Segments of A and B of one pair.
type BothArms<'a> = (Option<&'a ExperimentSegment>, Option<&'a ExperimentSegment>);

impl CountedPair<'_> {
    /// ln of B's rate of late wake-ups over A's, with half of one added to each: negative if B is
    /// better.
    pub fn log_ratio(&self) -> f64 {
        let [a, b] = self.exposures();
        let mean = mean_time(&[a], &[b]);
        log_rate(&b, mean) - log_rate(&a, mean)
    }

    /// True if it had interrupts on CPUs that do not belong to their arm.
    pub fn is_astray(&self) -> bool {
        !self.a.astray.is_empty() || !self.b.astray.is_empty()
    }

    /// Late wake-ups of A and B, and their observation times.
    pub fn exposures(&self) -> [Exposure; 2] {
        let [a, b] = [self.a, self.b].map(|segment| segment.observed_ns.as_secs().max(1e-9));
        let b = if are_alike(self.a, self.b) { a } else { b };
        [Exposure { events: self.a.late, time: a }, Exposure { events: self.b.late, time: b }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use proptest::prelude::*;

    fn segment(pair: u32, arm: ExperimentArm, late: u64) -> ExperimentSegment {
        let observed_ns = Nanos(5_000_000_000);
        ExperimentSegment { pair, arm, late, valid: true, observed_ns, ..ExperimentSegment::default() }
    }

    fn invalid(pair: u32, arm: ExperimentArm) -> ExperimentSegment {
        ExperimentSegment { valid: false, ..segment(pair, arm, 0) }
    }

    use ExperimentArm::{A, B};

    #[test]
    fn pairs_are_counted_dropped_or_interrupted() {
        let segments = [
            segment(0, B, 2),
            segment(0, A, 10),
            invalid(1, A),
            segment(2, A, 1),
            segment(3, A, 1),
            invalid(3, B),
        ];
        let tally = PairTally::of(&segments);
        assert_eq!((tally.pairs.len(), tally.dropped, tally.interrupted, tally.next), (1, 2, 1, 4));
        assert_eq!(tally.invalid, [1, 1]);
        assert_eq!((tally.pairs[0].a.late, tally.pairs[0].b.late), (10, 2));
    }

    #[test]
    fn the_ratio_is_that_of_the_counts_with_a_half_added() {
        let ratio = |a: u64, b: u64| {
            let (a, b) = (segment(0, A, a), segment(0, B, b));
            CountedPair { a: &a, b: &b }.log_ratio()
        };
        assert!((ratio(10, 2) - f64::ln(2.5 / 10.5)).abs() < 1e-12);
        assert_eq!((ratio(0, 0), ratio(7, 7)), (0.0, 0.0));
        // A run that ends a little later has no lower rate, one of twice the length has.
        let a = segment(0, A, 4);
        let later = ExperimentSegment { observed_ns: Nanos(5_001_000_000), ..segment(0, B, 4) };
        assert_eq!(CountedPair { a: &a, b: &later }.log_ratio(), 0.0);
        let twice = ExperimentSegment { observed_ns: Nanos(10_000_000_000), ..segment(0, B, 8) };
        assert!(CountedPair { a: &a, b: &twice }.log_ratio().abs() < 0.1);
    }

    #[test]
    fn segments_of_different_length_are_no_pair() {
        let later = |pair: u32, ns: i64| ExperimentSegment { observed_ns: Nanos(ns), ..segment(pair, B, 1) };
        let all = [
            segment(0, A, 1),
            later(0, 5_200_000_000),
            segment(1, A, 1),
            later(1, 30_000_000_000),
            segment(2, A, 1),
            later(2, 0),
        ];
        let tally = PairTally::of(&all);
        assert_eq!((tally.pairs.len(), tally.dropped, tally.unequal), (1, 2, 2));
        // Equal numbers in a run that is a little longer are equal.
        assert_eq!(tally.pairs[0].log_ratio(), 0.0);
        assert_eq!(tally.unfair().as_deref(), Some("2 of 3 pairs were dropped"));
    }

    #[test]
    fn what_was_dropped_has_to_be_little_and_of_both_arms() {
        let tally = |pairs: u32, dropped: &[ExperimentArm]| {
            let counted = (0..pairs).flat_map(|pair| [segment(pair, A, 1), segment(pair, B, 1)]);
            let dropped = dropped.iter().enumerate();
            let all: Vec<_> =
                counted.chain(dropped.map(|(at, arm)| invalid(pairs + at as u32, *arm))).collect();
            let tally = PairTally::of(&all);
            (tally.unfair(), tally.is_lost(16))
        };
        assert_eq!(tally(8, &[B, B]), (None, false));
        assert_eq!(tally(7, &[A, B]).0.as_deref(), Some("2 of 9 pairs were dropped"));
        let of_one = Some("3 of 3 invalid segments were with the change".to_owned());
        assert_eq!(tally(16, &[B, B, B]).0, of_one);
        assert_eq!((tally(16, &[A, B, B]), tally(16, &[A, A, B, B])), ((None, false), (None, false)));
        assert!(!tally(3, &[A, B, A, B]).1 && tally(3, &[A, B, A, B, A]).1);
        assert_eq!(tally(0, &[]), (None, false));
    }

    #[test]
    fn segments_that_interruptions_kept_away_have_to_be_of_both_arms() {
        let unfair = |lack: &[ExperimentArm]| {
            let whole = (0..16).flat_map(|pair| [segment(pair, A, 1), segment(pair, B, 1)]);
            let other = |arm: &ExperimentArm| if *arm == A { B } else { A };
            let half = lack.iter().enumerate().map(|(at, arm)| segment(16 + at as u32, other(arm), 1));
            PairTally::of(&whole.chain(half).collect::<Vec<_>>()).unfair()
        };
        let of_one = "3 of 3 invalid or interrupted segments were with the change";
        assert_eq!(unfair(&[B, B, B]).as_deref(), Some(of_one));
        assert_eq!([unfair(&[B, B]), unfair(&[A, B, B]), unfair(&[A, B, A, B, A])], [None, None, None]);
    }

    proptest! {
        #[test]
        fn any_record_has_a_tally(
            kinds in proptest::collection::vec(
                (0u32..5, any::<bool>(), any::<bool>(), any::<u64>(), any::<i64>()), 0..20,
            ),
        ) {
            let of = |&(pair, b, valid, late, ns): &(u32, bool, bool, u64, i64)| ExperimentSegment {
                valid,
                observed_ns: Nanos(ns),
                ..segment(pair, if b { B } else { A }, late)
            };
            let segments: Vec<_> = kinds.iter().map(of).collect();
            let tally = PairTally::of(&segments);
            prop_assert!(tally.pairs.iter().all(|pair| !pair.log_ratio().is_nan()));
            prop_assert!(tally.pairs.len() as u32 + tally.dropped + tally.interrupted <= 5);
            let _ = (tally.unfair(), tally.is_lost(16));
        }
    }
}
