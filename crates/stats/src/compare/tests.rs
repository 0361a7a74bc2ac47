//! Series with known differences, and their verdicts.

use super::*;
use crate::rng::Rng;
use crate::series::BLOCK;

/// Ten minutes of Gumbel maxima around 20 us, and this number of spikes of 60 us.
fn run(rng: &mut Rng, shift: f64, spikes: usize) -> Series {
    let mut list: Vec<Option<Nanos>> = (0..600)
        .map(|_| Some(Nanos((1_000.0 * (20.0 + shift - 2.0 * rng.exponential().ln())) as i64)))
        .collect();
    for _ in 0..spikes {
        list[rng.below(600)] = Some(Nanos(60_000 + rng.below(5_000) as i64));
    }
    Series::of_list(&list, BLOCK, Nanos(1))
}

fn question(design: Design) -> CompareQuestion {
    CompareQuestion { metric: Metric::Rate, limit: Some(Nanos(50_000)), design, margin: None }
}

fn answer(spikes_a: usize, spikes_b: usize, runs_a: usize, runs_b: usize, design: Design) -> Compared {
    let mut rng = Rng::new(7);
    let mut side = |spikes: usize, n: usize| (0..n).map(|_| run(&mut rng, 0.0, spikes)).collect::<Vec<_>>();
    let (a, b) = (side(spikes_a, runs_a), side(spikes_b, runs_b));
    compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &question(design))
}

#[test]
fn four_verdicts() {
    for (spikes, verdict) in [
        ((20, 2), Verdict::Better),
        ((2, 20), Verdict::Worse),
        ((30, 30), Verdict::Equivalent),
        ((1, 1), Verdict::Inconclusive),
    ] {
        let found = answer(spikes.0, spikes.1, 8, 8, Design::Unpaired);
        assert_eq!(found.verdict, verdict, "{spikes:?}: {found:?}");
        assert_eq!(found.reason.is_empty(), verdict != Verdict::Inconclusive);
        let ci = found.ci.expect("an interval");
        assert!(ci[0] <= found.rate_ratio.expect("a ratio") && found.rate_ratio.expect("a ratio") <= ci[1]);
    }
}

#[test]
fn lengths_alone_decide_nothing() {
    let quiet = |seconds: usize| Series::of_list(&vec![Some(Nanos(9_000)); seconds], BLOCK, Nanos(1));
    for (n, design) in [(8, Design::Unpaired), (8, Design::Paired), (1, Design::Unpaired)] {
        let long: Vec<Series> = (0..if n == 1 { 20 } else { n }).map(|_| quiet(600)).collect();
        let short: Vec<Series> = (0..n).map(|_| quiet(300)).collect();
        let found =
            compare(&long.iter().collect::<Vec<_>>(), &short.iter().collect::<Vec<_>>(), &question(design));
        assert_eq!(found.verdict, Verdict::Inconclusive, "{design:?}: {found:?}");
    }
}

#[test]
fn a_baseline_is_of_the_metric() {
    let mut rng = Rng::new(9);
    let past: Vec<Series> = (0..20).map(|_| run(&mut rng, 0.0, 3)).collect();
    let (same, slow) = (run(&mut rng, 0.0, 30), run(&mut rng, 3.0, 0));
    let asked = CompareQuestion { metric: Metric::Quantile(0.5), ..question(Design::Unpaired) };
    let against = |new: &Series| compare(&past.iter().collect::<Vec<_>>(), &[new], &asked).verdict;
    assert_eq!((against(&same), against(&slow)), (Verdict::Inconclusive, Verdict::Worse));
}

#[test]
fn one_run_each_gives_numbers_and_no_verdict() {
    let found = answer(40, 2, 1, 1, Design::Unpaired);
    assert_eq!((found.verdict, found.p_value), (Verdict::Inconclusive, None));
    assert!(found.reason.contains("one run each"), "{}", found.reason);
    assert!(found.rate_ratio.expect("a ratio") < 0.2 && found.ci.is_some());
}

#[test]
fn one_new_run_is_held_against_its_baseline() {
    let worse = answer(3, 30, 20, 1, Design::Unpaired);
    assert_eq!(
        (worse.verdict, worse.baseline.map(|found| (found.method, found.worse))),
        (Verdict::Worse, Some(("rank", true)))
    );
    let as_good = answer(3, 3, 45, 1, Design::Unpaired);
    assert_eq!((as_good.verdict, as_good.reason.contains("baseline")), (Verdict::Inconclusive, true));
    assert!(as_good.baseline.is_some_and(|found| !found.worse));
    let bound = answer(3, 30, 6, 1, Design::Unpaired);
    assert_eq!(bound.baseline.map(|found| found.method), Some("prediction-bound"));
    assert_eq!(answer(3, 30, 3, 1, Design::Unpaired).verdict, Verdict::Inconclusive);
}

#[test]
fn the_pooled_limit_does_not_depend_on_who_is_called_a() {
    let mut rng = Rng::new(3);
    let runs: Vec<Series> = (0..8).map(|_| run(&mut rng, 0.0, 3)).collect();
    let all: Vec<&Series> = runs.iter().collect();
    let open = CompareQuestion { limit: None, ..question(Design::Unpaired) };
    let (ab, ba) = (compare(&all[..4], &all[4..], &open), compare(&all[4..], &all[..4], &open));
    assert_eq!((ab.limit_ns, ab.limit_given), (ba.limit_ns, false));
    assert!((ab.rate_ratio.expect("a ratio") * ba.rate_ratio.expect("a ratio") - 1.0).abs() < 1e-9);
}

#[test]
fn a_limit_of_its_own_was_reached_or_there_is_none() {
    let of = |list: &[i64], step: i64| {
        let list: Vec<_> = list.iter().map(|ns| Some(Nanos(*ns))).collect();
        Series::of_list(&list, BLOCK, Nanos(step))
    };
    let open = CompareQuestion { limit: None, ..question(Design::Unpaired) };
    let events =
        |found: &Compared| found.a.iter().chain(&found.b).filter_map(|unit| unit.exceedances).sum::<u64>();
    let (tied, low) = (of(&[20_800_000; 60], 1), of(&[9_000; 60], 1));
    let found = compare(&[&tied; 6], &[&low; 6], &open);
    assert_eq!(found.limit_ns, Some(Nanos(20_800_000)));
    assert!(events(&found) > 0, "{found:?}");
    let alike = compare(&[&tied; 6], &[&tied; 6], &open);
    assert_eq!((alike.limit_ns, alike.verdict, events(&alike)), (None, Verdict::Inconclusive, 0));
    assert_eq!(alike.reason, ALL_ALIKE);
    // The largest lies within a step of the coarser recording, whose next edge no block reaches.
    let (coarse, fine) = (of(&[1_000; 60], 1_000), of(&[2_400; 60], 1));
    let found = compare(&[&coarse; 6], &[&fine; 6], &open);
    assert_eq!(found.limit_ns, Some(Nanos(2_000)));
    assert!(events(&found) > 0, "{found:?}");
}

#[test]
fn a_shift_of_the_median_is_found_by_the_quantile() {
    let mut rng = Rng::new(5);
    let (a, b): (Vec<Series>, Vec<Series>) =
        (0..8).map(|_| (run(&mut rng, 0.0, 0), run(&mut rng, 4.0, 0))).unzip();
    let asked = CompareQuestion { metric: Metric::Quantile(0.5), ..question(Design::Paired) };
    let found = compare(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), &asked);
    assert_eq!((found.verdict, found.metric.as_str()), (Verdict::Worse, "block-maximum-p50"));
    assert!((found.difference_ns.expect("a difference") - 4_000.0).abs() < 300.0);
}

#[test]
fn without_data_there_is_no_verdict() {
    let empty = Series::default();
    for (a, b) in [(vec![], vec![]), (vec![&empty; 8], vec![&empty; 8]), (vec![&empty], vec![])] {
        assert_eq!(compare(&a, &b, &question(Design::Unpaired)).verdict, Verdict::Inconclusive);
    }
}

#[test]
fn what_a_run_without_blocks_did_is_not_known() {
    let mut rng = Rng::new(3);
    let lists: Vec<Series> = (0..3).map(|_| run(&mut rng, 0.0, 2)).collect();
    let import = Series { observed: Nanos(600 * Nanos::SECOND.0), ..Series::of_list(&[], BLOCK, Nanos(1)) };
    for metric in [Metric::Rate, Metric::Quantile(0.99)] {
        for (a, b) in [(vec![&lists[0]], vec![&import]), (lists.iter().collect(), vec![&import])] {
            for (a, b) in [(&a, &b), (&b, &a)] {
                let found = compare(a, b, &CompareQuestion { metric, ..question(Design::Unpaired) });
                assert_eq!(found.verdict, Verdict::Inconclusive);
                let numbers = (found.rate_ratio, found.ci, found.p_value, found.event_p_value);
                assert_eq!(numbers, (None, None, None, None), "{metric:?}");
                assert_eq!((found.e_value, found.difference_ns, found.baseline), (None, None, None));
            }
        }
    }
}
