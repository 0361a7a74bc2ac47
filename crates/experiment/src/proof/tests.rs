//! Verdicts on fixed pairs, and on synthetic experiments with known results.

use super::*;
use crate::design::usual;
use crate::fixture::DrawnExperiment;
use crate::needs::ProofNeeds;
use model::experiment::{ExperimentArm, ExperimentSegment};
use model::units::Nanos;
use stats::rng::Rng;

fn segment(pair: u32, arm: ExperimentArm, late: u64) -> ExperimentSegment {
    ExperimentSegment {
        pair,
        arm,
        late,
        valid: true,
        observed_ns: Nanos(5_000_000_000),
        late_blocks: [late.min(2), late.min(3)],
        samples: 5_000,
        p50_ns: Some(Nanos(8_000)),
        ..ExperimentSegment::default()
    }
}

/// Pairs with these numbers of late wake-ups of A and B.
fn pairs(late: &[(u64, u64)]) -> Vec<ExperimentSegment> {
    let both = |(at, &(a, b)): (usize, &(u64, u64))| {
        [segment(at as u32, ExperimentArm::A, a), segment(at as u32, ExperimentArm::B, b)]
    };
    late.iter().enumerate().flat_map(both).collect()
}

fn proof(segments: &[ExperimentSegment]) -> Proof {
    prove(&usual(), &PairTally::of(segments))
}

#[test]
fn seven_of_seven_decide_and_six_do_not() {
    let seven = proof(&pairs(&[(10, 2); 7]));
    assert_eq!((seven.verdict, seven.end), (Verdict::Better, Some(ExperimentEnd::EValue)));
    let [lower, upper] = seven.interval.unwrap();
    assert!((seven.rate_ratio.unwrap() - 0.2).abs() < 1e-12 && lower <= 0.24 && upper < 1.0);
    // The sums are dominated by the largest pair, which is not the typical one.
    let mut uneven = vec![(10, 2); 6];
    uneven.push((1_000, 700));
    let uneven = proof(&pairs(&uneven));
    let ([_, typical], [_, enclosing]) = (uneven.typical().unwrap(), uneven.enclosing().unwrap());
    assert!(typical < 0.71 && enclosing >= uneven.rate_ratio.unwrap());
    let six = proof(&pairs(&[(10, 2); 6]));
    assert_eq!((six.verdict, six.end, six.fewest_more), (Verdict::Inconclusive, None, 1));
    assert!(six.reason.contains("ended after 6 pairs"), "{}", six.reason);
    let worse = proof(&pairs(&[(2, 10); 7]));
    assert_eq!((worse.verdict, worse.wins), (Verdict::Worse, 0));
}

#[test]
fn eleven_of_twelve_decide_and_ties_are_left_out() {
    let mut late = vec![(10, 2); 12];
    late[3] = (2, 10);
    assert_eq!(proof(&pairs(&late)).end, Some(ExperimentEnd::EValue));
    late[5] = (4, 4);
    let tied = proof(&pairs(&late));
    assert_eq!((tied.end, tied.wins, tied.ties, tied.fewest_more), (None, 10, 1, 1));
}

#[test]
fn sixteen_pairs_are_equivalent_or_open() {
    let even: Vec<_> = (0..16).map(|at| if at % 2 == 0 { (100, 104) } else { (104, 100) }).collect();
    assert_eq!(proof(&pairs(&even)).verdict, Verdict::Equivalent);
    let few: Vec<_> = (0..16).map(|at| if at % 2 == 0 { (1, 3) } else { (3, 1) }).collect();
    let open = proof(&pairs(&few));
    assert_eq!((open.verdict, open.end), (Verdict::Inconclusive, Some(ExperimentEnd::Fixed)));
    let needs = ProofNeeds::of(&usual(), &PairTally::of(&pairs(&few)));
    assert!(needs.smallest_detectable.is_none_or(|least| least > 2.0), "{needs:?}");
    assert!(needs.pairs.is_none_or(|pairs| pairs > 16), "{needs:?}");
    let nothing = proof(&pairs(&[(0, 0); 16]));
    assert_eq!(nothing.verdict, Verdict::Inconclusive, "all alike, and nothing known");
    assert!(nothing.reason.starts_with("nothing was late") && nothing.rate_ratio.is_none());
}

#[test]
fn a_few_segments_that_outweigh_the_others_leave_it_open() {
    let mut late = vec![(10, 2); 11];
    late.push((10, 300));
    let torn = proof(&pairs(&late));
    assert_eq!((torn.verdict, torn.end), (Verdict::Inconclusive, Some(ExperimentEnd::EValue)));
    assert!(torn.reason.contains("322 with it and 120 without"), "{}", torn.reason);
    let other: Vec<_> = late.iter().map(|&(a, b)| (b, a)).collect();
    assert_eq!(proof(&pairs(&other)).verdict, Verdict::Inconclusive);
}

#[test]
fn bursts_and_empty_pairs_are_not_equivalent() {
    // Equal numbers with and without it, in one burst each.
    let mut late = vec![(0, 0); 14];
    late.extend([(200, 0), (0, 200)]);
    assert_eq!(proof(&pairs(&late)).verdict, Verdict::Inconclusive);
    let bursts: Vec<_> = (0..16).map(|at| if at % 2 == 0 { (20, 19) } else { (19, 20) }).collect();
    let mut segments = pairs(&bursts);
    assert_eq!(proof(&segments).verdict, Verdict::Equivalent);
    // The same numbers, with those of two segments within one second.
    for segment in &mut segments {
        segment.late_blocks = [u64::from(segment.pair % 2), 0];
    }
    assert_eq!(proof(&segments).verdict, Verdict::Inconclusive);
}

#[test]
fn arms_that_an_interrupt_belonged_to_neither_of_are_not_equivalent() {
    let even: Vec<_> = (0..16).map(|at| if at % 2 == 0 { (100, 104) } else { (104, 100) }).collect();
    let mut segments = pairs(&even);
    let mut astray = |pairs: u32| {
        for segment in &mut segments {
            segment.astray = if segment.pair < pairs { vec![24] } else { Vec::new() };
        }
        proof(&segments)
    };
    assert_eq!((astray(3).verdict, astray(3).astray), (Verdict::Equivalent, 3));
    let open = astray(4);
    assert_eq!(open.verdict, Verdict::Inconclusive);
    assert!(open.reason.starts_with("in 4 of 16 pairs an interrupt"), "{}", open.reason);
    // It does not revoke the decision of the pairs: it only makes them more alike.
    let mut cured = pairs(&[(10, 2); 7]);
    cured.iter_mut().for_each(|segment| segment.astray = vec![24]);
    assert_eq!(proof(&cured).verdict, Verdict::Better);
}

#[test]
fn few_late_ones_give_no_interval() {
    assert_eq!(proof(&pairs(&[(4, 0); 7])).typical(), None);
    assert!(proof(&pairs(&[(5, 0); 7])).typical().is_some());
}

#[test]
fn what_was_dropped_can_take_a_verdict_away() {
    let mut segments = pairs(&[(10, 2); 7]);
    let invalid = |pair, arm| ExperimentSegment { valid: false, ..segment(pair, arm, 0) };
    segments.extend([invalid(7, ExperimentArm::A), invalid(8, ExperimentArm::B)]);
    let dropped = proof(&segments);
    assert_eq!(
        (dropped.verdict, dropped.end),
        (Verdict::Inconclusive, None),
        "an eighth pair makes up for it"
    );
    segments.extend([segment(9, ExperimentArm::A, 9), segment(9, ExperimentArm::B, 1)]);
    assert_eq!(proof(&segments).verdict, Verdict::Better);
    let all: Vec<_> = (0..5).map(|pair| invalid(pair, ExperimentArm::B)).collect();
    let lost = proof(&all);
    assert_eq!((lost.verdict, lost.end), (Verdict::Inconclusive, Some(ExperimentEnd::Dropped)));
    assert_eq!(lost.reason, "5 of 5 pairs were dropped");
}

#[test]
fn what_cannot_be_decided_any_more_says_so() {
    let plan = ExperimentPlan { win_at: 40.0, ..usual() };
    let turns: Vec<(u64, u64)> = (0..8).map(|at| if at % 2 == 0 { (10, 2) } else { (2, 10) }).collect();
    let found = prove(&plan, &PairTally::of(&pairs(&turns)));
    assert_eq!((found.verdict, found.end), (Verdict::Inconclusive, Some(ExperimentEnd::Futile)));
    assert!(found.reason.starts_with("neither side could still win"), "{}", found.reason);
}

#[test]
fn a_cure_that_makes_every_wake_up_later_is_none() {
    let slow = |mut segment: ExperimentSegment| {
        if segment.arm == ExperimentArm::B {
            segment.p50_ns = Some(Nanos(12_000));
        }
        segment
    };
    let found = proof(&pairs(&[(10, 0); 7]).into_iter().map(slow).collect::<Vec<_>>());
    assert_eq!(
        (found.verdict, found.reason.as_str()),
        (Verdict::Worse, "its median wake-up is later by 50 % or more")
    );
}

#[test]
fn nothing_measured_is_nothing_proven() {
    let none = proof(&[]);
    assert_eq!((none.verdict, none.end, none.fewest_more), (Verdict::Inconclusive, None, 7));
    assert_eq!((none.rate_ratio, none.interval, none.pairs), (None, None, 0));
}

fn declared(proof: &Proof) -> bool {
    matches!(proof.verdict, Verdict::Better | Verdict::Worse)
}

#[test]
fn a_change_that_does_nothing_is_seldom_called_anything() {
    let mut rng = Rng::new(1);
    for machine in [DrawnExperiment::STEADY, DrawnExperiment::RESTLESS] {
        let alarms = (0..400).filter(|_| declared(&machine.run(&usual(), &mut rng))).count();
        // 26 of 400 is the same share as 130 of 2,000, which `cargo xtask experiments` simulates.
        assert!(alarms <= 26, "{machine:?}: {alarms} of 400");
    }
}

#[test]
fn a_rate_cut_to_a_fifth_is_found_within_twelve_pairs() {
    let mut rng = Rng::new(2);
    let machine = DrawnExperiment { factor: 0.2, ..DrawnExperiment::STEADY };
    let found = (0..100).map(|_| machine.run(&usual(), &mut rng));
    let found = found.filter(|proof| proof.verdict == Verdict::Better && proof.pairs <= 12).count();
    assert!(found >= 90, "{found} of 100");
}

#[test]
fn a_machine_that_spoils_a_third_of_its_segments_proves_nothing() {
    let mut rng = Rng::new(3);
    let machine = DrawnExperiment { factor: 0.2, spoiled: 0.33, ..DrawnExperiment::STEADY };
    let declared = (0..100).filter(|_| declared(&machine.run(&usual(), &mut rng))).count();
    assert!(declared <= 10, "{declared} of 100");
}
