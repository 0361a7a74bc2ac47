//! Objections to a change that makes late wake-ups rarer: the usual wake-up became later, or a load
//! did less work. They count only if the whole interval is beyond the margin fixed beforehand.

use std::collections::BTreeSet;

use model::experiment::{ExperimentPlan, ExperimentSegment};
use stats::pair::sign_sequence::interval;

use crate::tally::CountedPair;

/// Objections as texts.
pub fn vetoes(plan: &ExperimentPlan, pairs: &[CountedPair]) -> Vec<String> {
    let works = works(plan, pairs);
    let of_load = works.iter().filter_map(|work| load(plan, work));
    median(plan, pairs).into_iter().chain(of_load).collect()
}

/// Logarithm of a ratio of 0: a billionth.
const NOTHING_LEFT: f64 = -20.0;

/// Work of a load with the change, relative to that without it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadWork {
    pub spec: String,
    /// Mean of the pairs' ratios, by their logarithms.
    pub ratio: f64,
    /// Interval of 95 % for the typical pair's ratio; none with too few pairs.
    pub interval: Option<[f64; 2]>,
}

/// Work of each load that is counted: the other CPUs belong to the load, and a change that is good
/// for the measured ones may cost it there.
pub fn works(plan: &ExperimentPlan, pairs: &[CountedPair]) -> Vec<LoadWork> {
    let loads = pairs.iter().flat_map(|pair| &pair.a.loads).map(|load| load.spec.as_str());
    let of = |spec: &str| {
        let rate = |segment: &ExperimentSegment| {
            segment.loads.iter().find(|load| load.spec == spec).and_then(|load| load.rate_per_s)
        };
        let logs = logs(pairs.iter().filter_map(|pair| rate(pair.a).zip(rate(pair.b))));
        (!logs.is_empty()).then(|| LoadWork {
            spec: spec.to_owned(),
            ratio: (logs.iter().sum::<f64>() / logs.len() as f64).exp(),
            interval: interval(&logs, plan.stop_at).map(|ends| ends.map(f64::exp)),
        })
    };
    let mut seen = BTreeSet::new();
    loads.filter(|spec| seen.insert(*spec)).filter_map(of).collect()
}

/// Objection by the median wake-up of the measured CPUs, beyond both the factor and the span.
fn median(plan: &ExperimentPlan, pairs: &[CountedPair]) -> Option<String> {
    let p50 = |segment: &ExperimentSegment| segment.p50_ns.map(|p50| p50.0 as f64);
    let both: Vec<(f64, f64)> = pairs.iter().filter_map(|pair| p50(pair.a).zip(p50(pair.b))).collect();
    let [factor, _] = interval(&logs(both.iter().copied()), plan.stop_at)?;
    let differences: Vec<f64> = both.iter().map(|(a, b)| b - a).collect();
    let [span, _] = interval(&differences, plan.stop_at)?;
    (factor > plan.p50_factor.ln() && span > plan.p50_ns.0 as f64).then(|| {
        let counted = plan.counted().one();
        format!("its median {counted} is later by {:.0} % or more", 100.0 * factor.exp_m1())
    })
}

fn load(plan: &ExperimentPlan, work: &LoadWork) -> Option<String> {
    let [_, most] = work.interval?;
    (most < plan.load_share)
        .then(|| format!("the load {} does {:.0} % less work or worse", work.spec, 100.0 * (1.0 - most)))
}

/// ln of B over A, for the pairs with both, as missing values do not affect the others. A value of
/// 0 with the change counts as less than any margin.
fn logs(both: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let known = both.filter(|(a, b)| *a > 0.0 && *b >= 0.0);
    known.map(|(a, b)| (b / a).ln().max(NOTHING_LEFT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::usual;
    use model::experiment::SegmentLoad;
    use model::units::Nanos;

    fn found(pairs: &[([i64; 2], [f64; 2])]) -> Vec<String> {
        let segment = |p50, rate| ExperimentSegment {
            p50_ns: Some(Nanos(p50)),
            loads: vec![SegmentLoad { spec: "mem:1".into(), rate_per_s: Some(rate) }],
            ..ExperimentSegment::default()
        };
        let both: Vec<_> =
            pairs.iter().map(|(p50, rate)| [0, 1].map(|arm| segment(p50[arm], rate[arm]))).collect();
        let pairs: Vec<_> = both.iter().map(|[a, b]| CountedPair { a, b }).collect();
        vetoes(&usual(), &pairs)
    }

    #[test]
    fn the_whole_interval_has_to_lie_beyond() {
        let later = |ns: i64| ([10_000, ns], [100.0, 100.0]);
        assert_eq!(found(&[later(12_000); 7]), ["its median wake-up is later by 20 % or more"]);
        let mixed: Vec<_> = (0..7).map(|at| later(if at == 3 { 10_900 } else { 12_000 })).collect();
        assert_eq!(found(&mixed), [""; 0], "one of seven is within");
        assert_eq!(found(&[later(12_000); 6]), [""; 0], "too few");
        assert_eq!(found(&[([2_000, 2_900], [1.0, 1.0]); 9]), [""; 0], "less than a microsecond");
        assert_eq!(found(&[later(8_000); 9]), [""; 0], "sooner");
    }

    #[test]
    fn a_load_may_not_do_much_less() {
        let less = |rate| ([10_000, 10_000], [100.0, rate]);
        assert_eq!(found(&[less(70.0); 8]), ["the load mem:1 does 30 % less work or worse"]);
        assert_eq!(found(&[less(85.0); 8]), [""; 0]);
        assert_eq!(found(&[less(0.0); 8]), ["the load mem:1 does 100 % less work or worse"]);
        assert_eq!(found(&[([10_000, 10_000], [f64::NAN, 1.0]); 8]), [""; 0]);
    }

    #[test]
    fn a_gap_hides_nothing_and_loads_go_by_their_names() {
        let load = |spec: &str, rate| SegmentLoad { spec: spec.into(), rate_per_s: rate };
        let segment = |p50: Option<i64>, loads| ExperimentSegment {
            p50_ns: p50.map(Nanos),
            loads,
            ..ExperimentSegment::default()
        };
        let a = segment(Some(10_000), vec![load("cpu", Some(50.0)), load("mem", Some(100.0))]);
        let b = segment(Some(12_000), vec![load("mem", Some(60.0)), load("cpu", Some(50.0))]);
        let silent = segment(None, vec![load("mem", None), load("cpu", None)]);
        let mut pairs = vec![CountedPair { a: &a, b: &b }; 7];
        pairs.push(CountedPair { a: &a, b: &silent });
        assert_eq!(
            vetoes(&usual(), &pairs),
            ["its median wake-up is later by 20 % or more", "the load mem does 40 % less work or worse"]
        );
        assert_eq!(works(&usual(), &pairs)[0].ratio, 1.0);
    }

    #[test]
    fn what_a_load_does_is_told_whether_it_matters_or_not() {
        let work = |pairs: usize, rate: Option<f64>| {
            let segment = |rate_per_s: Option<f64>| ExperimentSegment {
                loads: vec![SegmentLoad { spec: "mem:1".into(), rate_per_s }],
                ..ExperimentSegment::default()
            };
            let (a, b) = (segment(Some(100.0)), segment(rate));
            works(&usual(), &vec![CountedPair { a: &a, b: &b }; pairs])
        };
        let work_of = |work: &[LoadWork]| -> Vec<(String, f64, bool)> {
            let one = |work: &LoadWork| {
                let percent = (100.0 * work.ratio).round();
                (work.spec.clone(), percent, work.interval.is_some())
            };
            work.iter().map(one).collect()
        };
        assert_eq!(work_of(&work(8, Some(90.0))), [("mem:1".to_owned(), 90.0, true)]);
        assert_eq!(work_of(&work(3, Some(120.0))), [("mem:1".to_owned(), 120.0, false)]);
        assert!(work(8, None).is_empty() && work(0, None).is_empty());
    }
}
