//! Power of inconclusive pairs: the differences that they could have found, and the pairs needed.
//!
//! The test is one of signs: it depends on the share of pairs with a winner, and the share of these
//! won by the side with fewer. With few late wake-ups both follow from their counts, with many from
//! the scatter of the pairs.

use model::experiment::ExperimentPlan;
use stats::law::{ln_gamma, normal_two_sided};
use stats::pair::sign_sequence::reach;

use crate::tally::{CountedPair, PairTally};

/// Required probability of finding a difference.
const POWER: f64 = 0.8;

/// Steps of the factors that are searched for the smallest detectable one: up to a thousand.
const FACTOR_STEP: f64 = 1.02;
const FACTORS: i32 = 350;

/// Largest number of pairs that is reported.
const MOST_PAIRS: usize = 400;

/// Late wake-ups per segment above which their counts are nearly normal.
const MANY: f64 = 100.0;

/// Power of pairs with the scatter of these.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProofNeeds {
    /// Smallest factor by which late wake-ups become rarer that this number of pairs finds four
    /// times in five.
    pub smallest_detectable: Option<f64>,
    /// Number of pairs that find one as large as the margin as often.
    pub pairs: Option<u64>,
}

impl ProofNeeds {
    pub fn of(plan: &ExperimentPlan, tally: &PairTally) -> ProofNeeds {
        let logs: Vec<f64> = tally.pairs.iter().map(CountedPair::log_ratio).collect();
        let late: u64 = tally.pairs.iter().map(|pair| pair.a.late).fold(0, u64::saturating_add);
        let late = late as f64 / logs.len().max(1) as f64;
        let scatter = scatter(&logs);
        let finds = |factor: f64, pairs: usize| {
            let sign = SignChance::of(late, factor, scatter);
            let decided = pairs as f64 * sign.has_winner;
            let [low, high] =
                [decided.floor(), decided.ceil()].map(|pairs| reach(sign.wins, pairs as usize, plan.stop_at));
            low + (high - low) * decided.fract() >= POWER
        };
        let mut factors = (1..FACTORS).map(|step| FACTOR_STEP.powi(step));
        let (mut fewer, mut enough) = (0, MOST_PAIRS);
        let needed = finds(plan.rate_margin, MOST_PAIRS).then(|| {
            while enough - fewer > 1 {
                let middle = (fewer + enough) / 2;
                if finds(plan.rate_margin, middle) { enough = middle } else { fewer = middle }
            }
            enough as u64
        });
        ProofNeeds { smallest_detectable: factors.find(|factor| finds(*factor, logs.len())), pairs: needed }
    }
}

/// Chance that a pair has a winner, and that it is the side with fewer late wake-ups.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SignChance {
    has_winner: f64,
    wins: f64,
}

impl SignChance {
    /// Chances for a number of late wake-ups per segment, which the change divides by `factor`.
    fn of(late: f64, factor: f64, scatter: f64) -> SignChance {
        let fewer = late / factor;
        let of_counts = (1.0 / (late + 0.5) + 1.0 / (fewer + 0.5)).sqrt();
        let log_ratio = ((late + 0.5) / (fewer + 0.5)).ln();
        let normal = |scatter: f64| 1.0 - 0.5 * normal_two_sided(log_ratio / scatter);
        let counted = if late < MANY {
            SignChance::of_counts(late, fewer)
        } else {
            SignChance { has_winner: 1.0, wins: normal(of_counts) }
        };
        // Pairs with more scatter than their counts find less.
        if scatter > of_counts {
            SignChance { wins: counted.wins.min(normal(scatter)), ..counted }
        } else {
            counted
        }
    }

    fn of_counts(a: f64, b: f64) -> SignChance {
        let most = (a + 10.0 * a.sqrt() + 20.0) as usize;
        let chances = |mean: f64| -> Vec<f64> {
            let ln = |k: usize| k as f64 * mean.max(1e-12).ln() - mean - ln_gamma(k as f64 + 1.0);
            (0..=most).map(|k| ln(k).exp()).collect()
        };
        let (in_a, in_b) = (chances(a), chances(b));
        let (mut fewer, mut wins, mut ties) = (0.0, 0.0, 0.0);
        for (a, b) in in_a.iter().zip(&in_b) {
            wins += a * fewer;
            ties += a * b;
            fewer += b;
        }
        let has_winner: f64 = 1.0 - ties;
        SignChance { has_winner, wins: if has_winner > 0.0 { wins / has_winner } else { 0.5 } }
    }
}

/// Scatter of the pairs' log ratios.
fn scatter(logs: &[f64]) -> f64 {
    let n = logs.len().max(1) as f64;
    let mean = logs.iter().sum::<f64>() / n;
    (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::usual;
    use crate::proof::prove;
    use model::experiment::{ExperimentArm, ExperimentSegment};
    use model::units::Nanos;
    use stats::pair::verdict::Verdict;
    use stats::rng::Rng;

    /// Pairs with these numbers of late wake-ups of A and B.
    fn segments(late: &[(u64, u64)]) -> Vec<ExperimentSegment> {
        let segment = |pair: usize, arm, late| ExperimentSegment {
            pair: pair as u32,
            arm,
            late,
            valid: true,
            observed_ns: Nanos(10_000_000_000),
            ..ExperimentSegment::default()
        };
        let both = late.iter().enumerate();
        both.flat_map(|(at, &(a, b))| [segment(at, ExperimentArm::A, a), segment(at, ExperimentArm::B, b)])
            .collect()
    }

    fn needs(late: &[(u64, u64)]) -> ProofNeeds {
        ProofNeeds::of(&usual(), &PairTally::of(&segments(late)))
    }

    /// Number of events with this mean.
    fn drawn(rng: &mut Rng, mean: f64) -> u64 {
        let mut at = rng.exponential();
        let mut events = 0;
        while at < mean {
            at += rng.exponential();
            events += 1;
        }
        events
    }

    #[test]
    fn what_pairs_are_said_to_find_they_find_four_times_in_five() {
        let mut rng = Rng::new(19);
        for late in [2.0, 5.0, 30.0, 300.0] {
            let factor = needs(&[(late as u64, late as u64); 16]).smallest_detectable.unwrap();
            let found = (0..400).filter(|_| {
                let mut so_far = Vec::new();
                (0..16).any(|_| {
                    so_far.push((drawn(&mut rng, late), drawn(&mut rng, late / factor)));
                    let all = segments(&so_far);
                    prove(&usual(), &PairTally::of(&all)).verdict == Verdict::Better
                })
            });
            let power = found.count() as f64 / 400.0;
            assert!((0.74..0.93).contains(&power), "{late} late: a factor of {factor}: {power}");
        }
    }

    #[test]
    fn of_next_to_nothing_not_even_its_end_is_found() {
        let rare: Vec<_> = (0..16).map(|at| (u64::from(at % 4 == 0), u64::from(at % 4 == 1))).collect();
        assert_eq!(needs(&rare), ProofNeeds { smallest_detectable: None, pairs: needs(&rare).pairs });
        assert_eq!((needs(&[(0, 0); 16]), needs(&[])), (ProofNeeds::default(), ProofNeeds::default()));
    }

    #[test]
    fn pairs_that_scatter_find_less() {
        let [even, uneven] = [needs(&[(100, 100); 16]), needs(&[(50, 150), (150, 50)].repeat(8))];
        assert!(even.smallest_detectable < uneven.smallest_detectable, "{even:?} {uneven:?}");
        assert!(even.pairs < uneven.pairs && even.pairs > Some(6), "{even:?} {uneven:?}");
    }
}
