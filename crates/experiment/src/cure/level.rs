//! What a change has to reach before it is kept. It has to win once as any other experiment is won,
//! and then again in fresh pairs. Each that is tried is one more that chance could keep: the n-th
//! has to reach 20 n (n + 1) then, and 1 over all of these is 1/20 in sum.

use stats::pair::e_value::STOP_AT;
use stats::pair::sign_sequence::ln_sign_e_value;

use crate::design::{LEAST_PAIRS, MOST_PAIRS};

/// The e-value for the n-th change, from 1.
pub fn level(number: u64) -> f64 {
    let number = number.max(1) as f64;
    STOP_AT * number * (number + 1.0)
}

/// The level of an experiment, and its most pairs: the first of the n-th change, or that in which
/// it has to win again.
pub fn of_stage(number: u64, again: bool) -> (f64, u32) {
    let level = if again { level(number) } else { STOP_AT };
    (level, most_pairs(level))
}

/// Pairs that reach it where all of them agree.
pub fn fewest_pairs(level: f64) -> u32 {
    (1..1_000)
        .find(|&pairs| ln_sign_e_value(u64::from(pairs), u64::from(pairs)) >= level.ln())
        .unwrap_or(1_000)
}

/// Pairs after which it ends without a verdict: as many more than the fewest as elsewhere.
fn most_pairs(level: f64) -> u32 {
    fewest_pairs(level) + (MOST_PAIRS - LEAST_PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_together_err_once_in_twenty() {
        assert_eq!([level(0), level(1), level(2), level(3)], [40.0, 40.0, 120.0, 240.0]);
        let sum: f64 = (1..100_000).map(|number| 1.0 / level(number)).sum();
        assert!((0.049..=0.05).contains(&sum), "{sum}");
        assert_eq!([1, 2, 3].map(|number| fewest_pairs(level(number))), [8, 10, 11]);
        assert_eq!((fewest_pairs(STOP_AT), of_stage(1, true)), (LEAST_PAIRS, (40.0, 17)));
        assert_eq!(of_stage(9, false), (STOP_AT, MOST_PAIRS));
    }
}
