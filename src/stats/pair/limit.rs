//! The limit whose exceedances are compared when the user names none, and the counts at a limit.
//!
//! The 99.5 % block maximum of A, once and for all segments: a limit that followed the data would hide
//! what is compared. Taken from a pilot, from A and B together, or from the compared runs of A, it keeps the
//! comparison's size (`experiments`, 2 % to 4 % at 5 %); a pilot's is independent of what it judges.

use super::conditional::Exposure;

/// The least limit that no more than one block in 200 reaches: one above the 99.5 % block maximum by nearest rank,
/// in the values' unit; `None` without blocks.
pub fn frozen(maxima: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut sorted: Vec<i64> = maxima.into_iter().collect();
    sorted.sort_unstable();
    let rank = (sorted.len() as u128 * 995).div_ceil(1_000) as usize;
    sorted.get(rank.checked_sub(1)?).map(|maximum| maximum.saturating_add(1))
}

/// How many of the blocks reach the limit, in how much time; the length of a block in any unit.
pub fn exceedances(maxima: &[i64], limit: i64, block: f64) -> Exposure {
    let events = maxima.iter().filter(|&&maximum| maximum >= limit).count() as u64;
    Exposure { events, time: maxima.len() as f64 * block }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_leaves_one_in_two_hundred_above() {
        let limit = frozen(1..=1_000).unwrap();
        assert_eq!(limit, 996);
        let maxima: Vec<i64> = (1..=1_000).collect();
        assert_eq!(exceedances(&maxima, limit, 2.0), Exposure { events: 5, time: 2_000.0 });
        assert_eq!((frozen([]), frozen([7]), frozen([7, 9])), (None, Some(8), Some(10)));
        assert_eq!(exceedances(&[], 3, 1.0), Exposure { events: 0, time: 0.0 });
        assert_eq!(exceedances(&[2, 3, 4], 3, 1.0).events, 2);
    }
}
