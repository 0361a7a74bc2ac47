//! Claims that a run supports: bounds from counting first, an extrapolation only if all gates pass.

pub mod answer;
pub mod conditions;
pub mod counting;
pub mod diagnosis;
pub mod events;
pub mod exchangeability;
pub mod extrapolate;
pub mod gates;
pub mod histogram;
pub mod input;
pub mod numbers;
pub mod overflows;
pub mod periods;
pub mod sample;
pub mod shape;
pub mod shortest_period;
pub mod steadiness;
pub mod structure;

use serde::Serialize;

pub use answer::{BoundsVerdict, ExtrapolationStatus, Holds, SequentialVerdict, VerdictBasis};
pub use counting::{Claim, Counting};
pub use exchangeability::Exchangeability;
pub use extrapolate::Extrapolation;
pub use gates::Gate;
pub use input::{
    BoundsInput, CONFIDENCE, DEFAULT_REACH, HistogramInput, ListedOverflows, MAX_REACH, OverflowList,
    Question, RunTotals,
};
pub use shortest_period::{Computing, ShortestPeriod};
pub use structure::Structure;

/// Schema of the document.
pub const SCHEMA: &str = "onbeat.bounds/1";

#[derive(Clone, Debug, Serialize)]
pub struct Bounds {
    pub schema: &'static str,
    /// Bounds by counting, flattened into the fields of the document.
    #[serde(flatten)]
    pub counting: Counting,
    /// Exchangeability of the blocks, which counting assumes.
    pub exchangeable: Exchangeability,
    /// Claim about the limit; null without one. With a period, about the lateness that it allows,
    /// or about a limit above all observed latencies if no period is supported.
    pub claim: Option<Claim>,
    /// Shortest period that is supported; null if it was not requested.
    pub shortest_period: Option<ShortestPeriod>,
    /// All gates, in the order of their numbers.
    pub gates: Vec<Gate>,
    /// Levels beyond the observed values, or the reason why they are not given.
    pub extrapolation: Extrapolation,
    /// Structure of the spikes in time.
    #[serde(flatten)]
    pub structure: Structure,
    /// `supported`, `failed`, `inconclusive`, or `""` without a limit.
    pub verdict: BoundsVerdict,
    /// Basis of the verdict: `counting`, `extrapolation`, `steadiness` (the blocks are not
    /// exchangeable, so that neither of them applies), `integrity` (the run is invalid) or `""`.
    pub basis: VerdictBasis,
}

pub fn bounds(input: &BoundsInput, question: &Question) -> Bounds {
    let mut structure = if input.series.blocks.is_empty() {
        overflows::structure(input)
    } else {
        structure::structure(input)
    };
    let (gates, extrapolation) = extrapolate::extrapolate(input, question, &structure);
    structure.explained(&gates);
    let exchangeable = Exchangeability::of(&gates, input.series, &extrapolation);
    let judge = |limit| {
        let claim = counting::claim(input, question, limit, &exchangeable);
        let (verdict, basis) = verdict(input, &claim, &exchangeable, &extrapolation, question);
        (claim, verdict, basis)
    };
    let shortest = question.computing.map(|computing| {
        ShortestPeriod::new(shortest_period::shortest_supported(|limit| judge(limit).1), computing)
    });
    let question = &Question {
        limit: match shortest {
            Some(period) => period.lateness_ns.or_else(|| counting::later_than_all(input)),
            None => question.limit,
        },
        ..*question
    };
    let (claim, verdict, basis) = match question.limit.map(judge) {
        Some((claim, verdict, basis)) => (Some(claim), verdict, basis),
        None if shortest.is_some() => (None, BoundsVerdict::Inconclusive, VerdictBasis::Counting),
        None => (None, BoundsVerdict::NotAsked, VerdictBasis::NotAsked),
    };
    Bounds {
        schema: SCHEMA,
        counting: counting::count(input, question),
        exchangeable,
        claim,
        shortest_period: shortest,
        gates,
        extrapolation,
        structure,
        verdict,
        basis,
    }
}

/// Decides the verdict; an invalid run decides nothing. A limit that was reached too often fails
/// whatever the blocks are; its support requires exchangeable blocks. An extrapolation may only
/// support, and only with the bound that leaves the tail without an upper limit.
fn verdict(
    input: &BoundsInput,
    claim: &Claim,
    exchangeable: &Exchangeability,
    beyond: &Extrapolation,
    question: &Question,
) -> (BoundsVerdict, VerdictBasis) {
    if !input.run.invalid.is_empty() {
        return (BoundsVerdict::Inconclusive, VerdictBasis::Integrity);
    }
    if claim.by_counting != BoundsVerdict::Inconclusive {
        return (claim.by_counting, VerdictBasis::Counting);
    }
    if exchangeable.bars() {
        return (BoundsVerdict::Inconclusive, VerdictBasis::Steadiness);
    }
    let reaches = beyond.horizon_ns.is_some_and(|reach| reach >= question.horizon);
    let below = beyond.upper_nonneg_shape_ns.is_some_and(|upper| upper < claim.limit_ns.0 as f64);
    if beyond.status == ExtrapolationStatus::Ok && reaches && below && claim.exceedances == 0 {
        (BoundsVerdict::Supported, VerdictBasis::Extrapolation)
    } else {
        (BoundsVerdict::Inconclusive, VerdictBasis::Counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::series::{BLOCK, Series};
    use model::histogram::Bucket;
    use model::units::Nanos;
    use proptest::prelude::*;

    fn series(us: impl IntoIterator<Item = f64>) -> Series {
        let list: Vec<Option<Nanos>> = us.into_iter().map(|us| Some(Nanos(us as i64 * 1_000))).collect();
        Series::of_list(&list, BLOCK, Nanos(1_000))
    }

    fn gumbel(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| 20.0 - 2.0 * rng.exponential().ln()).collect()
    }

    fn ask(limit: Option<i64>, horizon_s: i64) -> Question {
        let horizon = Nanos(horizon_s * Nanos::SECOND.0);
        Question { limit: limit.map(Nanos), horizon, chosen: true, ..Question::default() }
    }

    #[test]
    fn clean_runs_pass_and_mechanisms_do_not() {
        let refused = |series: &Series| {
            bounds(&BoundsInput::of(series), &ask(None, 600)).extrapolation.status
                == ExtrapolationStatus::Refused
        };
        let clean = (0..20).filter(|&seed| refused(&series(gumbel(300, seed)))).count();
        assert!(clean <= 4, "{clean} of 20 clean runs refused");
        let shifted = |seed| {
            let us = gumbel(300, seed);
            series(
                us.iter().enumerate().map(|(i, us)| if i < 150 { *us } else { us + 3.0 }).collect::<Vec<_>>(),
            )
        };
        assert!((0..5).all(|seed| refused(&shifted(seed))));
        let hidden = |seed| {
            let mut us = gumbel(300, seed);
            us.iter_mut().skip(9).step_by(60).for_each(|us| *us += 40.0);
            series(us)
        };
        assert!((0..5).all(|seed| refused(&hidden(seed))));
    }

    #[test]
    fn a_verdict_agrees_with_its_basis() {
        let run = series(gumbel(600, 3));
        let input = BoundsInput::of(&run);
        let verdict = |limit: i64, horizon: i64| {
            let found = bounds(&input, &ask(Some(limit), horizon));
            (found.verdict, found.basis)
        };
        assert_eq!(verdict(900_000, 200), (BoundsVerdict::Supported, VerdictBasis::Counting));
        assert_eq!(verdict(900_000, 6_000), (BoundsVerdict::Supported, VerdictBasis::Extrapolation));
        assert_eq!(
            verdict(900_000, 6_001),
            (BoundsVerdict::Inconclusive, VerdictBasis::Counting),
            "beyond its reach"
        );
        assert_eq!(verdict(20_000, 600), (BoundsVerdict::Failed, VerdictBasis::Counting));
        let spoiled = ["the machine slept".to_owned()];
        let input = BoundsInput { run: RunTotals { invalid: &spoiled, ..RunTotals::default() }, ..input };
        assert_eq!(bounds(&input, &ask(Some(900_000), 200)).verdict, BoundsVerdict::Inconclusive);
    }

    /// Changes to maxima of a scale of 2 us, by this many us.
    fn disturbed(kind: &str, n: usize, by: f64, seed: u64) -> Vec<f64> {
        let part = |i: usize| i as f64 / n as f64;
        let is_late = |i: usize| match kind {
            "comb" => i % 60 == 17,
            "burst" => (n / 3..n / 3 + 30).contains(&i),
            _ => 2 * i >= n,
        };
        let added =
            |i: usize| if kind == "drift" { by * part(i) } else { by * f64::from(u8::from(is_late(i))) };
        gumbel(n, seed).iter().enumerate().map(|(i, us)| us + added(i)).collect()
    }

    #[test]
    fn what_is_not_steady_is_neither_supported_nor_extrapolated() {
        for kind in ["drift", "step", "comb", "burst"] {
            for seed in 0..2 {
                // Three scales for the first, four for a comb of ten teeth.
                let us = disturbed(kind, 600, if kind == "comb" { 8.0 } else { 6.0 }, seed);
                let found = bounds(&BoundsInput::of(&series(us)), &ask(Some(900_000), 150));
                assert_eq!(
                    (found.verdict, found.basis),
                    (BoundsVerdict::Inconclusive, VerdictBasis::Steadiness),
                    "{kind} {seed}"
                );
                assert_eq!(
                    (found.exchangeable.holds, found.extrapolation.status),
                    (Holds::No, ExtrapolationStatus::Refused)
                );
                let claim = found.claim.expect("a limit was asked for");
                assert!(
                    claim.by_counting == BoundsVerdict::Inconclusive
                        && claim.sequential != SequentialVerdict::Pass,
                    "{claim:?}"
                );
            }
        }
        let drift = disturbed("drift", 600, 8.0, 9);
        let found = bounds(&BoundsInput::of(&series(drift)), &ask(Some(22_000), 150));
        assert_eq!(
            (found.verdict, found.basis),
            (BoundsVerdict::Failed, VerdictBasis::Counting),
            "a limit that was reached stays so"
        );
    }

    #[test]
    fn memory_that_longer_blocks_lose_makes_an_event_of_what_comes_together() {
        let mut last = 0.0;
        let remembering = |us: &f64| {
            last = 0.5 * last + us - 20.0;
            20.0 + last
        };
        let us: Vec<f64> = gumbel(1_200, 5).iter().map(remembering).collect();
        let run = series(us);
        let found = |horizon: i64| bounds(&BoundsInput::of(&run), &ask(Some(900_000), horizon));
        let long = found(300);
        assert!(
            long.exchangeable.block_ns > BLOCK && long.exchangeable.holds == Holds::Yes,
            "{:?}",
            long.exchangeable
        );
        assert_eq!((long.verdict, long.basis), (BoundsVerdict::Supported, VerdictBasis::Counting));
        assert_eq!(
            found(12).claim.map(|claim| claim.by_counting),
            Some(BoundsVerdict::Inconclusive),
            "of a few such blocks"
        );
    }

    #[test]
    fn two_values_with_memory_support_nothing() {
        for (few, of) in [(25, 40), (6, 8)] {
            let us = (0..600).map(|i| if (i + 7) % of < few { 31.0 } else { 29.0 });
            let found = bounds(&BoundsInput::of(&series(us)), &ask(Some(900_000), 150));
            assert_eq!(found.verdict, BoundsVerdict::Inconclusive, "{few} of {of}: {:?}", found.exchangeable);
            assert!(!found.extrapolation.memory, "{:?}", found.exchangeable);
        }
        let constant = bounds(&BoundsInput::of(&series([20.0; 600])), &ask(Some(900_000), 150));
        assert_eq!(
            (constant.verdict, constant.exchangeable.holds),
            (BoundsVerdict::Supported, Holds::Unknown)
        );
        assert!(constant.exchangeable.reason.ends_with("all blocks have the same value."));
    }

    #[test]
    fn a_histogram_s_count_states_its_assumption() {
        let series = Series { observed: Nanos(3_600 * Nanos::SECOND.0), block: BLOCK, ..Series::default() };
        let rows = [Bucket::new(Nanos(0), Nanos(10_000), 3_600_000)];
        let input = BoundsInput {
            histogram: HistogramInput {
                buckets: &rows,
                max: Some(Nanos(9_999)),
                ..HistogramInput::default()
            },
            ..BoundsInput::of(&series)
        };
        let found = bounds(&input, &ask(Some(50_000), 600));
        assert_eq!((found.verdict, found.exchangeable.holds), (BoundsVerdict::Supported, Holds::Unknown));
        assert!(found.exchangeable.reason.contains("a histogram has no times"), "{:?}", found.exchangeable);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_series_has_an_answer(
            values in proptest::collection::vec(prop_oneof![Just(None), any::<i64>().prop_map(Some), (0i64..50).prop_map(Some)], 0..90),
            step in 1i64..2_000,
            limit: i64,
            horizon in 1i64..i64::MAX,
        ) {
            let list: Vec<Option<Nanos>> = values.into_iter().map(|value| value.map(Nanos)).collect();
            let series = Series::of_list(&list, BLOCK, Nanos(step));
            let (limit, horizon) = (Some(Nanos(limit)), Nanos(horizon));
            let question =
                Question { limit, horizon, chosen: horizon.0 % 2 == 0, ..Question::default() };
            let found = bounds(&BoundsInput::of(&series), &question);
            prop_assert_eq!(found.gates.len(), 11);
            prop_assert!(found.extrapolation.status == ExtrapolationStatus::Ok || !found.extrapolation.reason.is_empty());
            prop_assert!(serde_json::to_string(&found).is_ok());
        }
    }
}
