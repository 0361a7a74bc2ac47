//! Histograms with known differences, and their verdicts.

use super::*;
use crate::pair::verdict::Verdict;
use crate::rng::Rng;
use proptest::prelude::*;

const US: i64 = 1_000;

/// A run of whole microseconds: most of its wake-ups at `usual`, and `late` ones at 60 us.
fn run(usual: i64, late: u64, wake_ups: u64) -> RunSummary {
    let row = |us: i64, count: u64| Bucket::new(Nanos(us * US), Nanos((us + 1) * US), count);
    let mut rows = vec![row(usual, wake_ups - late)];
    rows.extend((late > 0).then(|| row(60, late)));
    RunSummary {
        title: format!("r{usual}-{late}"),
        rows,
        max: Some(Nanos(if late > 0 { 60 } else { usual } * US)),
        observed: Nanos(wake_ups as i64 * Nanos::MILLI.0),
        wake_ups: Some(wake_ups),
        ..RunSummary::default()
    }
}

/// Numbers in a footer or in a line of a terminal.
fn bare(max: i64, seconds: i64) -> RunSummary {
    RunSummary {
        title: format!("t{max}"),
        max: Some(Nanos(max * US)),
        observed: Nanos(seconds * Nanos::SECOND.0),
        ..RunSummary::default()
    }
}

fn question(limit: Option<i64>) -> CompareQuestion {
    let limit = limit.map(|us| Nanos(us * US));
    CompareQuestion { metric: Metric::Rate, limit, design: Design::Unpaired, margin: None }
}

fn side(late: &[u64]) -> Vec<RunSummary> {
    late.iter().enumerate().map(|(i, late)| run(10 + i as i64 % 2, *late, 60_000)).collect()
}

fn compared(a: &[u64], b: &[u64]) -> Compared {
    compare_summaries(&side(a), &side(b), &question(Some(50)))
}

#[test]
fn nightly_histograms_of_two_kernels_give_a_verdict() {
    let found = compared(&[0, 1, 2, 0, 1, 1, 0, 2], &[164, 180, 249, 201, 177, 190, 222, 230]);
    assert_eq!((found.verdict, found.metric.as_str(), found.units), (Verdict::Worse, "exceedance-rate", 16));
    assert!((found.p_value.unwrap() - 2.0 / 12_870.0).abs() < 1e-12 && found.exact);
    let [low, high] = found.ci.unwrap();
    let ratio = found.rate_ratio.unwrap();
    assert!(
        (ratio - 1_613.0 / 7.0).abs() < 1e-9 && low > 50.0 && low < ratio && ratio < high,
        "{low} {high}"
    );
    assert_eq!((found.a[2].exceedances, found.a[2].wake_ups), (Some(2), Some(60_000)));
    assert!(found.e_value.is_none() && found.reason.is_empty() && found.remedy.is_empty());
    let back = compared(&[164, 180, 249, 201, 177, 190, 222, 230], &[0, 1, 2, 0, 1, 1, 0, 2]);
    assert_eq!((back.verdict, back.p_value), (Verdict::Better, found.p_value));
    let same = compared(&[300, 310, 290, 305, 311, 299], &[301, 306, 293, 300, 312, 304]);
    assert_eq!(same.verdict, Verdict::Equivalent, "{same:?}");
    let none = compared(&[0; 8], &[0; 8]);
    assert_eq!(none.verdict, Verdict::Inconclusive);
    assert!(none.remedy.contains("at a limit that some runs reach"), "{}", none.remedy);
}

#[test]
fn without_a_limit_the_99th_percentile_decides() {
    let of = |us: &[i64]| us.iter().map(|us| run(*us, 0, 60_000)).collect::<Vec<_>>();
    let (a, b) = (of(&[13, 14, 14, 13, 14, 13, 14, 14]), of(&[21; 8]));
    let found = compare_summaries(&a, &b, &question(None));
    assert_eq!((found.verdict, found.metric.as_str()), (Verdict::Worse, "p99"));
    assert_eq!((found.difference_ns, found.ci), (Some(7_000.0), Some([7_000.0, 8_000.0])));
    assert!((found.p_value.unwrap() - 2.0 / 12_870.0).abs() < 1e-12);
    assert_eq!((found.a[0].value_ns, found.limit_ns), (Some(Nanos(14_000)), None));
    let alike = compare_summaries(&a, &a, &question(None));
    assert_eq!(alike.verdict, Verdict::Equivalent);
}

#[test]
fn few_runs_have_the_number_that_is_needed() {
    let found = compared(&[0, 1, 2], &[164, 180, 249]);
    assert_eq!((found.verdict, found.p_value, found.smallest_p), (Verdict::Inconclusive, None, 0.1));
    assert_eq!(found.reason, "4 v 4 runs are needed for a verdict, there are 3 v 3");
    assert!(found.units_needed.unwrap() >= 4);
    let one = compared(&[3], &[200]);
    assert!(one.reason.starts_with("one run each") && one.event_p_value.is_none());
    let lopsided = compared(&[0, 1, 0, 1, 0, 1, 1, 0], &[90, 99]);
    assert_eq!((lopsided.verdict, lopsided.p_value), (Verdict::Worse, Some(2.0 / 45.0)));
}

#[test]
fn one_new_run_is_held_against_the_spread_of_past_ones() {
    let past = [5, 9, 7, 4, 8, 6, 5, 9, 7, 6];
    assert_eq!(compared(&past, &[200]).verdict, Verdict::Worse);
    assert_eq!(compared(&past, &[8]).verdict, Verdict::Inconclusive);
    // A step of the recording is not a regression.
    let of = |us: &[i64]| us.iter().map(|us| run(*us, 0, 60_000)).collect::<Vec<_>>();
    let (past, new) = (of(&[14, 14, 14, 13, 14, 14, 14, 14]), of(&[15]));
    assert_eq!(compare_summaries(&past, &new, &question(None)).verdict, Verdict::Inconclusive);
    assert_eq!(compare_summaries(&past, &of(&[30]), &question(None)).verdict, Verdict::Worse);
}

#[test]
fn what_lies_beyond_a_histogram_is_not_guessed() {
    let cut = |beyond: u64, end: Option<i64>| RunSummary {
        beyond,
        beyond_from: end.map(|us| Nanos(us * US)),
        max: Some(Nanos(90 * US)),
        ..run(10, 0, 60_000)
    };
    let a = vec![cut(7, Some(40)); 8];
    let found = compare_summaries(&a, &side(&[100; 8]), &question(Some(50)));
    assert_eq!(
        found.reason,
        "the histogram of r10-0 ends at 40 us, and 7 wake-ups lie beyond: the number that reached 50 us is \
         not known"
    );
    assert!(found.remedy.starts_with("compare at a limit of at most 40 us, or measure"), "{}", found.remedy);
    assert_eq!((found.verdict, found.p_value, found.rate_ratio), (Verdict::Inconclusive, None, None));
    for limit in [40, 30, 95] {
        assert_ne!(cut(7, Some(40)).at_or_above(Nanos(limit * US)), None, "{limit}");
    }
    assert_eq!(cut(7, Some(40)).at_or_above(Nanos(30 * US)), Some(7));
    // A single one is the maximum, and a possibly early one is unknown.
    assert_eq!(
        (cut(1, Some(40)).at_or_above(Nanos(50 * US)), cut(2, Some(40)).at_or_above(Nanos(50 * US))),
        (Some(1), None)
    );
    let either = RunSummary { beyond_from: Some(Nanos(i64::MIN)), max: None, ..cut(2, None) };
    assert_eq!((either.at_or_above(Nanos(5 * US)), either.row_of(0.5)), (None, None));
    let found = compare_summaries(&vec![either; 8], &side(&[0; 8]), &question(None));
    assert_eq!(
        found.reason,
        "2 wake-ups are in no row of the histogram of r10-0, early or late: its p99 is not known"
    );
    let many = vec![cut(900, Some(40)); 8];
    let found = compare_summaries(&many, &side(&[0; 8]), &question(None));
    assert!(found.reason.ends_with("900 wake-ups lie beyond: its p99 is not known"), "{}", found.reason);
}

#[test]
fn maxima_alone_are_compared_if_the_runs_are_of_one_length() {
    let of = |us: &[i64], seconds: i64| us.iter().map(|us| bare(*us, seconds)).collect::<Vec<_>>();
    let (a, b) = (of(&[31, 35, 29, 40, 33], 60), of(&[90, 81, 99, 85, 88], 60));
    let found = compare_summaries(&a, &b, &question(Some(50)));
    assert_eq!((found.verdict, found.metric.as_str()), (Verdict::Worse, "max"));
    assert!(found.rate_ratio.is_none() && found.a[0].exceedances.is_none());
    // A histogram among them: all have a maximum.
    let mut mixed = side(&[0; 5]);
    mixed[2] = bare(33, 60);
    assert_eq!(compare_summaries(&mixed, &b, &question(None)).metric, "max");
    let longer = compare_summaries(&a, &of(&[90, 81, 99, 85, 88], 600), &question(None));
    assert_eq!(longer.verdict, Verdict::Inconclusive);
    assert!(longer.reason.ends_with("these lengths differ"), "{}", longer.reason);
    let unknown = compare_summaries(&a, &of(&[90, 81, 99, 85, 88], 0), &question(None));
    assert!(unknown.reason.ends_with("the length of t31 is not known"), "{}", unknown.reason);
    assert!(unknown.remedy.starts_with("measure with onbeat"));
    let asked = CompareQuestion { metric: Metric::Quantile(0.9), ..question(None) };
    let quantile = compare_summaries(&a, &b, &asked);
    assert_eq!(
        (quantile.verdict, quantile.reason.as_str()),
        (Verdict::Inconclusive, "t31 has no histogram: its p90 is not known")
    );
}

#[test]
fn lengths_alone_decide_nothing() {
    // The same rate: of the short runs most have no late wake-up, of the long ones each has some.
    let long: Vec<RunSummary> = (0..8).map(|i| run(10, 10 + i % 3, 600_000)).collect();
    let short: Vec<RunSummary> = (0..8).map(|i| run(10, u64::from(i % 2 == 0), 60_000)).collect();
    let found = compare_summaries(&long, &short, &question(Some(50)));
    assert_eq!(found.verdict, Verdict::Inconclusive, "{found:?}");
}

#[test]
fn finer_records_tell_no_more_than_the_coarsest() {
    let fine = |from: i64, to: i64| RunSummary {
        rows: vec![Bucket::new(Nanos(from), Nanos(to), 60_000)],
        ..run(13, 0, 60_000)
    };
    let a = vec![run(13, 0, 60_000); 6];
    let b: Vec<RunSummary> = (0..6).map(|i| fine(13_056 + 128 * i, 13_184 + 128 * i)).collect();
    let found = compare_summaries(&a, &b, &question(None));
    assert_eq!((found.difference_ns, found.verdict), (Some(0.0), Verdict::Equivalent), "{found:?}");
}

#[test]
fn runs_without_anything_carry_no_verdict() {
    let empty = RunSummary { wake_ups: Some(0), title: "\u{1b}[2J".into(), ..RunSummary::default() };
    for (a, b) in
        [(vec![], vec![]), (vec![empty.clone(); 8], vec![empty.clone(); 8]), (vec![empty.clone()], vec![])]
    {
        let found = compare_summaries(&a, &b, &question(Some(50)));
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert!(!found.reason.contains('\u{1b}'));
    }
    let odd = RunSummary { max: Some(Nanos(i64::MIN)), observed: Nanos(i64::MAX), ..RunSummary::default() };
    let _ = compare_summaries(std::slice::from_ref(&odd), std::slice::from_ref(&odd), &question(None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn swapped_sides_mirror(
        a in proptest::collection::vec(0u64..9, 1..8), b in proptest::collection::vec(0u64..30, 1..8),
    ) {
        let (there, back) = (compared(&a, &b), compared(&b, &a));
        let mirrored = match there.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        if a.len() > 1 && b.len() > 1 {
            prop_assert_eq!(mirrored, back.verdict);
            prop_assert_eq!(there.p_value.is_some(), back.p_value.is_some());
            prop_assert!((there.p_value.unwrap_or(1.0) - back.p_value.unwrap_or(1.0)).abs() < 1e-9);
        }
        if let (Some([low, high]), Some(ratio)) = (there.ci, there.rate_ratio) {
            prop_assert!(low <= ratio && ratio <= high);
        }
    }
}

#[test]
fn equal_configurations_are_rarely_told_apart() {
    let mut rng = Rng::new(17);
    let (mut declared, reps) = (0, 400);
    for _ in 0..reps {
        // Runs that differ without a change, and bursts of several late wake-ups at once.
        let mut late = || {
            let mean = 6.0 * (0.6 * rng.normal()).exp();
            let mut events = 0u64;
            let mut time = rng.exponential();
            while time < mean {
                events += 1 + rng.below(4) as u64;
                time += rng.exponential();
            }
            events
        };
        let (a, b): (Vec<u64>, Vec<u64>) =
            ((0..6).map(|_| late()).collect(), (0..6).map(|_| late()).collect());
        let verdict = compared(&a, &b).verdict;
        declared += u32::from(matches!(verdict, Verdict::Better | Verdict::Worse));
    }
    // At most 0.05 of them; three standard deviations are 13.
    assert!(declared <= 33, "{declared} of {reps}");
}
