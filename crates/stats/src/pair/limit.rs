//! The limit whose exceedances are compared when the user names none.
//!
//! The 99.5 % block maximum of all runs together: no exchange of runs changes it, so the test keeps
//! its size (`experiments`, 2 % to 4 % at 5 %), as it does with one taken from a pilot.

/// Blocks that reach the limit, at the least: of fewer nothing can be compared.
const MIN_EXCEEDING_BLOCKS: usize = 20;

/// The least limit that no more than one block in 200 reaches, or 20 blocks, or half of them,
/// whichever is more: one above the 99.5 % block maximum by nearest rank, in the values' unit.
/// `None` without blocks.
pub fn frozen(maxima: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut sorted: Vec<i64> = maxima.into_iter().collect();
    sorted.sort_unstable();
    let above = (sorted.len() / 200).max(MIN_EXCEEDING_BLOCKS).min(sorted.len() / 2);
    let rank = sorted.len() - above;
    sorted.get(rank.checked_sub(1)?).map(|maximum| maximum.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_leaves_one_in_two_hundred_above_or_twenty() {
        let above = |n: i64| {
            let limit = frozen(0..n).unwrap_or(n);
            (0..n).filter(|&value| value >= limit).count()
        };
        assert_eq!([above(20_000), above(4_000), above(1_000), above(30), above(3)], [100, 20, 20, 15, 1]);
        assert_eq!((frozen([]), frozen([7]), frozen([7, 9])), (None, Some(8), Some(8)));
        assert_eq!(frozen([i64::MAX; 9]), Some(i64::MAX));
    }
}
