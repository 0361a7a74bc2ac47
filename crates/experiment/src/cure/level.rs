//! Evidence that a change needs to be kept. It must win once like in any other experiment, and then
//! again in new pairs. Each tried change adds to the chance of keeping one by luck: the n-th needs
//! 20 n (n + 1) then, whose reciprocals add up to 1/20.

use stats::pair::e_value::STOP_AT;
use stats::pair::sign_sequence::ln_sign_e_value;

use crate::design::{LEAST_PAIRS, MOST_PAIRS};

/// e-value for the n-th change, from 1.
pub fn level(number: u64) -> f64 {
    let number = number.max(1) as f64;
    STOP_AT * number * (number + 1.0)
}

/// Level of an experiment, and its largest number of pairs: for the first win of the n-th change,
/// or the second.
pub fn of_stage(number: u64, again: bool) -> (f64, u32) {
    let level = if again { level(number) } else { STOP_AT };
    (level, most_pairs(level))
}

/// Number of pairs that reach it if all of them agree.
pub fn fewest_pairs(level: f64) -> u32 {
    (1..1_000)
        .find(|&pairs| ln_sign_e_value(u64::from(pairs), u64::from(pairs)) >= level.ln())
        .unwrap_or(1_000)
}

/// Number of pairs after which it ends without a verdict: the least number, plus the usual margin.
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
