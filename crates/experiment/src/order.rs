//! Order of the arms of a pair: an independent coin for each pair, so that no change over time can
//! favour one of them.

use model::experiment::ExperimentArm;
use model::rng::SplitMix64;

/// Arms of a pair in order.
pub fn of_pair(seed: u64, pair: u32) -> [ExperimentArm; 2] {
    let mut coins = SplitMix64::new(seed);
    let mut toss = 0;
    for _ in 0..=pair {
        toss = coins.next_u64();
    }
    match toss >> 63 {
        0 => [ExperimentArm::A, ExperimentArm::B],
        _ => [ExperimentArm::B, ExperimentArm::A],
    }
}

/// Order of the pairs in letters: `abbaab`.
pub fn letters(seed: u64, pairs: u32) -> String {
    (0..pairs).flat_map(|pair| of_pair(seed, pair)).map(ExperimentArm::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_order_in_which_every_pair_has_both() {
        assert_eq!(letters(7, 16), letters(7, 16));
        assert!(letters(7, 16).starts_with(&letters(7, 9)));
        for seed in 0..50 {
            let order = letters(seed, 16);
            assert!(order.as_bytes().chunks(2).all(|pair| pair == b"ab" || pair == b"ba"), "{order}");
        }
    }

    #[test]
    fn the_coins_are_fair_and_do_not_follow_each_other() {
        let b_first = |seed, pair| of_pair(seed, pair)[0] == ExperimentArm::B;
        let tosses = || (0..400u64).flat_map(|seed| (0..15).map(move |pair| (seed, pair)));
        // 6,000 tosses: a standard deviation is 39.
        let heads = tosses().filter(|&(seed, pair)| b_first(seed, pair)).count();
        let alike = tosses().filter(|&(seed, pair)| b_first(seed, pair) == b_first(seed, pair + 1)).count();
        assert!((2_850..3_150).contains(&heads) && (2_850..3_150).contains(&alike), "{heads} {alike}");
    }
}
