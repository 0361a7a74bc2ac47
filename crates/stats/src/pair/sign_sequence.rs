//! Pairs watched one by one: the smaller side, an interval that holds at any time, and the number
//! of pairs for a difference.
//!
//! The sign of each pair's difference is a toss of a fair coin if the sides do not differ and their
//! order in the pair was drawn, whatever happens on the machine. The e-value of the tosses
//! (`e_value` with equal shares) reaches 20 at any time with probability at most 1 / 20 then
//! (Ville's inequality). The interval inverts that for the median difference: shifts whose signs
//! have a smaller e-value.

use super::e_value::ln_e_value;

/// Logarithm of the e-value of `wins` of one side among `pairs` without a tie.
pub fn ln_sign_e_value(wins: u64, pairs: u64) -> f64 {
    ln_e_value(wins, pairs.saturating_sub(wins), 0.5)
}

/// Shifts of the median difference whose e-value stays below the level; none if the pairs are too
/// few for two finite ends.
pub fn interval(differences: &[f64], level: f64) -> Option<[f64; 2]> {
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    // Excludes a shift by the number of differences below it.
    let excluded = |below: usize| ln_sign_e_value(below as u64, n as u64) >= level.ln();
    let first = (0..=n / 2).take_while(|&below| excluded(below)).count();
    let lower = *sorted.get(first.checked_sub(1)?)?;
    Some([lower, *sorted.get(n.checked_sub(first)?)?])
}

/// Probability that the e-value reaches the level within this number of pairs, if one side wins
/// each with probability p.
pub fn reach(p: f64, pairs: usize, level: f64) -> f64 {
    // Probabilities by wins among the pairs so far, of sequences that have not reached it.
    let mut going = vec![1.0];
    let mut reached = 0.0;
    for n in 1..=pairs {
        let mut next = vec![0.0; n + 1];
        for (wins, chance) in going.iter().enumerate() {
            next[wins] += chance * (1.0 - p);
            next[wins + 1] += chance * p;
        }
        for (wins, chance) in next.iter_mut().enumerate() {
            if ln_sign_e_value(wins as u64, n as u64) >= level.ln() {
                reached += std::mem::take(chance);
            }
        }
        going = next;
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::e_value::STOP_AT;
    use proptest::prelude::*;

    fn e(wins: u64, pairs: u64) -> f64 {
        ln_sign_e_value(wins, pairs).exp()
    }

    /// The mean of p^w (1 - p)^(n - w) 2^n under the arcsine law of p, by the midpoint rule in the
    /// angle, in which that law is uniform: another way to the same number.
    fn by_quadrature(wins: u64, pairs: u64) -> f64 {
        let steps = 20_000;
        let one = |step: u32| {
            let angle = (f64::from(step) + 0.5) / f64::from(steps) * std::f64::consts::FRAC_PI_2;
            let p = angle.sin().powi(2);
            (2.0 * p).powi(wins as i32) * (2.0 * (1.0 - p)).powi((pairs - wins) as i32)
        };
        (0..steps).map(one).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn the_e_value_is_the_mean_over_the_arcsine_law() {
        for pairs in 0..=16 {
            for wins in 0..=pairs {
                let (found, expected) = (e(wins, pairs), by_quadrature(wins, pairs));
                assert!((found / expected - 1.0).abs() < 1e-6, "{wins} of {pairs}: {found} {expected}");
            }
        }
        assert!(e(7, 7) >= STOP_AT && e(6, 6) < STOP_AT && e(11, 12) >= STOP_AT && e(10, 11) < STOP_AT);
    }

    /// Probability over all orders of wins and losses, one by one.
    fn reach_by_all_orders(pairs: u32) -> f64 {
        let stops = |order: &u32| {
            (1..=pairs).any(|n| {
                let wins = (order & ((1 << n) - 1)).count_ones();
                e(u64::from(wins), u64::from(n)) >= STOP_AT
            })
        };
        (0..1u32 << pairs).filter(stops).count() as f64 / f64::from(1u32 << pairs)
    }

    #[test]
    fn a_fair_coin_seldom_reaches_the_level() {
        let chance = reach(0.5, 16, STOP_AT);
        assert!((chance - reach_by_all_orders(16)).abs() < 1e-12);
        assert!((0.02..0.05).contains(&chance), "{chance}");
        assert!(reach(0.5, 400, STOP_AT) <= 0.05 && reach(1.0, 7, STOP_AT) == 1.0);
    }

    #[test]
    fn pairs_that_all_agree_have_an_interval_that_leaves_out_none() {
        let seven: Vec<f64> = (1..=7).map(f64::from).collect();
        assert_eq!(interval(&seven, STOP_AT), Some([1.0, 7.0]));
        assert_eq!(interval(&seven[1..], STOP_AT), None, "six are too few");
        assert_eq!(interval(&[], STOP_AT), None);
        assert!(interval(&[f64::NAN; 9], STOP_AT).is_some_and(|ends| ends[0].is_nan()));
    }

    proptest! {
        #[test]
        fn verdict_and_interval_agree(differences in proptest::collection::vec(-5.0..9.0f64, 7..17)) {
            let wins = differences.iter().filter(|&&difference| difference > 0.0).count();
            let decided = e(wins as u64, differences.len() as u64) >= STOP_AT;
            let [lower, upper] = interval(&differences, STOP_AT).unwrap();
            prop_assert_eq!(decided, lower > 0.0 || upper < 0.0);
        }
    }
}
