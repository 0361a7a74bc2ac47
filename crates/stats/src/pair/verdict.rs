//! Verdict on B against A: one number per run or segment, four answers, and the units that a
//! clearer one needs.
//!
//! Better or worse: the exact test of the units (`sign_flip` for pairs, `permutation` for unpaired
//! runs, or `rank_sum` for ranks) gives p <= alpha. Equivalent: the interval at 1 - 2 alpha (90 %
//! for 0.05) lies inside the margin, which is two one-sided tests at alpha (Schuirmann 1987, TOST);
//! this answer takes precedence, as a declared margin means a difference inside it none, however
//! sure. Otherwise, and with fewer units than those whose smallest attainable p is alpha,
//! inconclusive. Small values are good: latencies and rates of exceedance.

use std::cmp::Ordering;

use serde::Serialize;

use super::conditional_binomial::{self, Exposure, total};
use super::inversion::{Interval, Relabelled};
use super::unit::PairRefusal;
use super::{permutation, power, rank_sum, sign_flip};

/// Pairing of the units of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// The i-th of A with the i-th of B, in random order.
    Paired,
    /// Separate runs.
    Unpaired,
}

/// Verdict on B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// B is smaller.
    Better,
    /// B is larger.
    Worse,
    /// The difference is inside the margin.
    Equivalent,
    /// The data support none of the others.
    Inconclusive,
}

impl Verdict {
    /// Word in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// Test by which the units of two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitTest {
    /// The mean difference of pairs, over all signs.
    SignFlip,
    /// The difference of the means, over all splits.
    Permutation,
    /// The sum of the ranks, over all splits.
    RankSum,
}

/// A verdict with its numbers; differences are B minus A in the unit of the values, for rates ln of
/// B over A.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub verdict: Verdict,
    /// Reason why no verdict was sought; `None` if one was.
    pub refusal: Option<PairRefusal>,
    /// Difference of the means, for ranks the shift; 0 if refused for lack of values.
    pub difference: f64,
    /// Two-sided p.
    pub p: f64,
    /// True if p and intervals come from all relabellings, false if from drawn ones.
    pub exact: bool,
    /// Smallest p that this number of units can give.
    pub smallest_p: f64,
    /// Interval at 1 - alpha; `None` when this number of units has no finite one.
    pub interval: Option<Interval>,
    /// Interval at 1 - 2 alpha, which is compared with the margin; for rates it includes the sums'
    /// exact one.
    pub equivalence: Option<Interval>,
    /// Smallest true difference that is found with 80 % probability; `None` below two units on a
    /// side.
    pub detectable: Option<f64>,
    /// Number of pairs, or runs of each side, that would find a difference as large as the margin;
    /// `None` if too large to name.
    pub units_needed: Option<usize>,
}

/// The margin for a quantile, in ns: 5 % of A's, at least 1 us.
pub fn quantile_margin(quantile_a_ns: f64) -> f64 {
    (0.05 * quantile_a_ns.abs()).max(1_000.0)
}

/// The margin for a rate ratio: from one half to double.
pub const RATE_MARGIN: f64 = 2.0;

/// Logarithm of a unit's event rate, finite also without events: ln(k / T + 1/2 / mean T).
///
/// The half event belongs to the mean time of all units compared: added to each unit's time, it
/// would make units without an event differ by their lengths.
pub fn log_rate(unit: &Exposure, mean_time: f64) -> f64 {
    (unit.events as f64 / unit.time + 0.5 / mean_time).ln()
}

/// The mean time of the units of both sides.
pub fn mean_time(a: &[Exposure], b: &[Exposure]) -> f64 {
    (total(a).time + total(b).time) / (a.len() + b.len()).max(1) as f64
}

/// Compares one number per unit; the margin is a difference, in the unit of the values.
pub fn compare(a: &[f64], b: &[f64], design: Design, margin: f64, alpha: f64) -> Comparison {
    judge(a, b, Tested::by(default_test(design), a, b, alpha), margin, alpha, None)
}

/// Like [`compare`], by this test.
pub fn compare_by(test: UnitTest, a: &[f64], b: &[f64], margin: f64, alpha: f64) -> Comparison {
    judge(a, b, Tested::by(test, a, b, alpha), margin, alpha, None)
}

/// Test of means for a design.
const fn default_test(design: Design) -> UnitTest {
    match design {
        Design::Paired => UnitTest::SignFlip,
        Design::Unpaired => UnitTest::Permutation,
    }
}

/// Compares event counts per unit by their log rates; the margin is a factor above 1, see
/// [`RATE_MARGIN`].
///
/// No events on either side make all log rates equal, so equivalence also requires the sums' exact
/// interval, and the standard error is at least that of Poisson counts. The p is the larger of the
/// units' and of the sums' exact one: exchanging runs is exact for equal lengths only, and the sums
/// do not account for runs that differ.
pub fn compare_rates(a: &[Exposure], b: &[Exposure], design: Design, factor: f64, alpha: f64) -> Comparison {
    compare_rates_by(default_test(design), a, b, factor, alpha)
}

/// Like [`compare_rates`], by this test. The exact p of ranks suffices if the units are of about
/// one length ([`is_one_length`]).
pub fn compare_rates_by(
    test: UnitTest,
    a: &[Exposure],
    b: &[Exposure],
    factor: f64,
    alpha: f64,
) -> Comparison {
    let mean = mean_time(a, b);
    let logs = |units: &[Exposure]| units.iter().map(|unit| log_rate(unit, mean)).collect::<Vec<f64>>();
    let (logs_a, logs_b) = (logs(a), logs(b));
    let (used_a, used_b) = match test {
        UnitTest::SignFlip => (a.len().min(b.len()), a.len().min(b.len())),
        _ => (a.len(), b.len()),
    };
    let (sum_a, sum_b) = (total(&a[..used_a]), total(&b[..used_b]));
    let of_sums = conditional_binomial::rate_ratio(sum_a, sum_b, 1.0 - 2.0 * alpha);
    let tested = Tested::by(test, &logs_a, &logs_b, alpha);
    let leaning = (sum_b.events as f64 * sum_a.time).total_cmp(&(sum_a.events as f64 * sum_b.time));
    let p = match test {
        UnitTest::RankSum if is_one_length(a, b) => 0.0,
        // Most short units have no event, and rank below long ones whatever the rate.
        UnitTest::RankSum if tested.leaning != leaning => 1.0,
        _ => conditional_binomial::p_two_sided(sum_a, sum_b),
    };
    let counting = Counting {
        p,
        interval: of_sums.map_or((f64::NEG_INFINITY, f64::INFINITY), |r| (r.lower.ln(), r.upper.ln())),
        error: poisson_error(sum_a, sum_b),
    };
    judge(&logs_a, &logs_b, tested, factor.ln(), alpha, Some(counting))
}

/// True if the longest unit is at most a twentieth longer than the shortest.
pub fn is_one_length(a: &[Exposure], b: &[Exposure]) -> bool {
    let lengths = || a.iter().chain(b).map(|unit| unit.time);
    let (least, most) = (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max));
    most <= 1.05 * least
}

/// Standard error of the log ratio if both rates were that of both together: the power must not
/// depend on how few events one side happened to have.
fn poisson_error(a: Exposure, b: Exposure) -> f64 {
    let both = (a.events as f64 + b.events as f64) / (a.time + b.time);
    (1.0 / (both * a.time + 0.5) + 1.0 / (both * b.time + 0.5)).sqrt()
}

/// The estimate from the sums of the counts alone, on the log scale.
struct Counting {
    /// The least p of the answer: two-sided, of the sums of the counts.
    p: f64,
    interval: (f64, f64),
    error: f64,
}

/// Standard error of the difference of means, its value for one unit on each side, and its degrees
/// of freedom.
struct Spread {
    error: f64,
    deviation: f64,
    freedom: f64,
}

/// The result of a test of the units.
struct Tested {
    design: Design,
    p: f64,
    leaning: Ordering,
    difference: f64,
    exact: bool,
    /// Smallest two-sided p that it can show.
    smallest_p: f64,
    interval: Option<Interval>,
    equivalence: Option<Interval>,
}

impl Tested {
    fn by(test: UnitTest, a: &[f64], b: &[f64], alpha: f64) -> Tested {
        let design = if test == UnitTest::SignFlip { Design::Paired } else { Design::Unpaired };
        let attainable = match design {
            Design::Paired => sign_flip::smallest_p(a.len().min(b.len())),
            Design::Unpaired => permutation::smallest_p(a.len(), b.len()),
        };
        let usable = a.iter().chain(b).all(|value| value.is_finite());
        if test == UnitTest::RankSum {
            let ranks = rank_sum::rank_sum(a, b);
            let interval = |confidence| rank_sum::interval(a, b, confidence);
            return Tested {
                design,
                p: ranks.p_two_sided(),
                leaning: ranks.leaning,
                difference: rank_sum::shift(a, b).filter(|_| usable).unwrap_or(0.0),
                exact: ranks.exact,
                smallest_p: attainable,
                interval: interval(1.0 - alpha),
                equivalence: interval(1.0 - 2.0 * alpha),
            };
        }
        let relabelled = of_units(a, b, design);
        let difference = if usable { difference(a, b, design) } else { 0.0 };
        Tested {
            design,
            p: relabelled.p_two_sided(0.0),
            leaning: difference.total_cmp(&0.0),
            difference,
            exact: relabelled.exact,
            // Drawn relabellings show no smaller p than one in all of them.
            smallest_p: attainable.max(if relabelled.exact { 0.0 } else { relabelled.resolution() }),
            interval: relabelled.interval(1.0 - alpha),
            equivalence: relabelled.interval(1.0 - 2.0 * alpha),
        }
    }
}

fn judge(
    a: &[f64],
    b: &[f64],
    tested: Tested,
    margin: f64,
    alpha: f64,
    counting: Option<Counting>,
) -> Comparison {
    let design = tested.design;
    let enough = match design {
        Design::Paired => sign_flip::pairs_needed(alpha),
        Design::Unpaired => permutation::runs_needed(alpha),
    };
    let refusal = refusal(a, b, design, tested.smallest_p > alpha, enough);
    let usable = a.iter().chain(b).all(|value| value.is_finite());
    let spread = if usable { spread(a, b, design, counting.as_ref()) } else { None };
    let equivalence = tested.equivalence.map(|units| match &counting {
        Some(Counting { interval: (lower, upper), .. }) => {
            Interval { lower: units.lower.min(*lower), upper: units.upper.max(*upper), ..units }
        }
        None => units,
    });
    let within = |low: f64, high: f64| low >= -margin && high <= margin;
    let equivalent = equivalence.is_some_and(|found| within(found.lower, found.upper));
    // Runs of different lengths are not exchangeable, and least so with few events: then the counts
    // decide.
    let p = tested.p.max(counting.as_ref().map_or(0.0, |sums| sums.p));
    let verdict = match tested.leaning {
        _ if refusal.is_some() => Verdict::Inconclusive,
        _ if equivalent => Verdict::Equivalent,
        Ordering::Less if p <= alpha => Verdict::Better,
        Ordering::Greater if p <= alpha => Verdict::Worse,
        _ => Verdict::Inconclusive,
    };
    let needed = |spread: &Spread| match design {
        Design::Paired => power::pairs_needed(spread.deviation, margin, alpha),
        Design::Unpaired => power::runs_needed(spread.deviation, margin, alpha),
    };
    Comparison {
        verdict,
        refusal,
        difference: tested.difference,
        p,
        exact: tested.exact,
        smallest_p: tested.smallest_p,
        interval: tested.interval,
        equivalence,
        detectable: spread.as_ref().map(|s| power::detectable(s.error, s.freedom, alpha)),
        units_needed: spread.as_ref().map_or(Some(enough), needed),
    }
}

/// Tests B minus A over the relabellings of the units; pairs without a partner are excluded.
pub fn of_units(a: &[f64], b: &[f64], design: Design) -> Relabelled {
    match design {
        Design::Paired => sign_flip::relabelled(&differences(a, b)),
        Design::Unpaired => permutation::relabelled(a, b),
    }
}

fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| b - a).collect()
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The mean of B minus A over units; 0 when a side has none.
pub fn difference(a: &[f64], b: &[f64], design: Design) -> f64 {
    match design {
        Design::Paired => mean(&differences(a, b)),
        Design::Unpaired if a.is_empty() || b.is_empty() => 0.0,
        Design::Unpaired => mean(b) - mean(a),
    }
}

fn refusal(a: &[f64], b: &[f64], design: Design, too_few: bool, enough: usize) -> Option<PairRefusal> {
    if a.iter().chain(b).any(|value| !value.is_finite()) {
        return Some(PairRefusal::NoValue);
    }
    let are = (a.len(), b.len());
    match design {
        _ if !too_few => None,
        _ if are == (1, 1) => Some(PairRefusal::OneEach),
        Design::Paired => Some(PairRefusal::Pairs { are: are.0.min(are.1), needed: enough }),
        Design::Unpaired => Some(PairRefusal::Units { are, needed: enough }),
    }
}

fn spread(a: &[f64], b: &[f64], design: Design, counting: Option<&Counting>) -> Option<Spread> {
    let least = counting.map_or(0.0, |sums| sums.error);
    let (variance, freedom, share) = match design {
        Design::Paired => {
            let differences = differences(a, b);
            let freedom = differences.len() as f64 - 1.0;
            (squares(&differences) / freedom, freedom, 1.0 / differences.len() as f64)
        }
        Design::Unpaired => {
            let (runs_a, runs_b) = (a.len() as f64, b.len() as f64);
            let freedom = runs_a + runs_b - 2.0;
            ((squares(a) + squares(b)) / freedom, freedom, 1.0 / runs_a + 1.0 / runs_b)
        }
    };
    let error = (variance * share).sqrt().max(least);
    (a.len() > 1 && b.len() > 1).then(|| Spread { error, deviation: error / share.sqrt(), freedom })
}

#[cfg(test)]
mod tests {
    use super::super::unit::ComparedUnit;
    use super::*;
    use proptest::prelude::*;

    const A: [f64; 6] = [20.1, 20.9, 19.8, 20.4, 21.0, 20.2];

    fn moved(by: f64) -> Vec<f64> {
        A.iter().enumerate().map(|(at, value)| value + by + 0.1 * (at % 3) as f64).collect()
    }

    fn counts(events: &[u64]) -> Vec<Exposure> {
        events.iter().map(|&events| Exposure { events, time: 30.0 }).collect()
    }

    #[test]
    fn four_answers() {
        for design in [Design::Paired, Design::Unpaired] {
            for (by, expected) in [(-3.0, Verdict::Better), (3.0, Verdict::Worse), (0.0, Verdict::Equivalent)]
            {
                assert_eq!(compare(&A, &moved(by), design, 1.0, 0.05).verdict, expected, "{design:?} {by}");
            }
        }
        let undecided = compare(&A, &[5.0, 40.0, 19.0, 30.0, 11.0, 23.0], Design::Paired, 1.0, 0.05);
        assert_eq!((undecided.verdict, undecided.refusal), (Verdict::Inconclusive, None));
        assert!(undecided.detectable.unwrap() > 10.0 && undecided.units_needed.unwrap() > 500);
    }

    #[test]
    fn sure_but_inside_the_margin_is_equivalent() {
        let found = compare(&A, &moved(0.2), Design::Paired, 1.0, 0.05);
        assert_eq!((found.verdict, found.p), (Verdict::Equivalent, 0.03125));
        assert_eq!(compare(&A, &moved(0.2), Design::Paired, 0.1, 0.05).verdict, Verdict::Worse);
    }

    #[test]
    fn too_few_units_get_no_verdict() {
        let five = compare(&A[..5], &moved(9.0)[..5], Design::Paired, 1.0, 0.05);
        assert_eq!((five.verdict, five.smallest_p, five.interval), (Verdict::Inconclusive, 0.0625, None));
        let words = |of: Comparison| of.refusal.unwrap().words(ComparedUnit::Run);
        assert_eq!(words(five), "6 pairs are needed for a verdict, there are 5");
        let three = compare(&A[..3], &moved(9.0)[..3], Design::Unpaired, 1.0, 0.05);
        assert_eq!(three.units_needed, Some(7));
        assert_eq!(
            three.refusal.unwrap().words(ComparedUnit::Day),
            "4 v 4 days are needed for a verdict, there are 3 v 3"
        );
        assert_eq!(words(three), "4 v 4 runs are needed for a verdict, there are 3 v 3");
        let one = compare(&A[..1], &moved(9.0)[..1], Design::Unpaired, 1.0, 0.05);
        assert!(one.detectable.is_none() && words(one).starts_with("one run each"));
        assert_eq!(compare(&[], &[], Design::Unpaired, 1.0, 0.05).verdict, Verdict::Inconclusive);
        let none = compare(&[f64::NAN; 8], &A, Design::Paired, 1.0, 0.05);
        assert_eq!(none.refusal, Some(PairRefusal::NoValue));
    }

    #[test]
    fn no_events_are_not_equivalence() {
        let none = compare_rates(&counts(&[0; 8]), &counts(&[0; 8]), Design::Paired, RATE_MARGIN, 0.05);
        assert_eq!((none.verdict, none.p), (Verdict::Inconclusive, 1.0));
        assert!(none.detectable.unwrap() > 3.0 && none.units_needed.unwrap() > 100);
        let many = compare_rates(&counts(&[50; 8]), &counts(&[52; 8]), Design::Paired, RATE_MARGIN, 0.05);
        assert_eq!(many.verdict, Verdict::Equivalent);
        let halved = [counts(&[30, 28, 33, 25, 31, 29, 36, 27]), counts(&[14, 16, 12, 13, 19, 11, 15, 10])];
        let found = compare_rates(&halved[0], &halved[1], Design::Paired, RATE_MARGIN, 0.05);
        assert_eq!((found.verdict, found.p), (Verdict::Better, 0.007_812_5));
        assert!((found.difference.exp() - 0.46).abs() < 0.03);
        let no_time = [Exposure { events: 3, time: 0.0 }; 8];
        assert!(compare_rates(&no_time, &no_time, Design::Unpaired, RATE_MARGIN, 0.05).refusal.is_some());
    }

    #[test]
    fn margins_are_the_declared_defaults() {
        assert_eq!((quantile_margin(8_000.0), quantile_margin(100_000.0)), (1_000.0, 5_000.0));
        assert!((log_rate(&Exposure { events: 0, time: 2.0 }, 2.0) - 0.25f64.ln()).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn exchanging_a_and_b_exchanges_better_and_worse(
            a in proptest::collection::vec(0f64..9.0, 0..8), b in proptest::collection::vec(3f64..15.0, 0..8),
            paired in proptest::bool::ANY, margin in 0f64..4.0,
        ) {
            let design = if paired { Design::Paired } else { Design::Unpaired };
            let (there, back) = (compare(&a, &b, design, margin, 0.05), compare(&b, &a, design, margin, 0.05));
            let mirrored = match back.verdict {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                other => other,
            };
            prop_assert_eq!(there.verdict, mirrored);
            prop_assert!((there.difference + back.difference).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 1e-12);
        }
    }
}
