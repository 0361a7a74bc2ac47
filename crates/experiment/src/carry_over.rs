//! Carry-over from the other arm at the beginning of a segment: then its first half is more like
//! the other arm than its second.

use model::experiment::ExperimentSegment;
use stats::pair::sign_sequence::ln_sign_e_value;

use crate::tally::CountedPair;

/// Number of segments with different halves (`of`), and of those first like the other arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarryOver {
    pub towards: u64,
    pub of: u64,
}

impl CarryOver {
    /// Counts segments by the blocks that reached the limit. Without carry-over these are equally
    /// likely in both halves; the comparison of the arms uses whole segments, and does not affect
    /// that.
    pub fn of(pairs: &[CountedPair]) -> CarryOver {
        let blocks =
            |segment: &ExperimentSegment| segment.late_blocks[0].saturating_add(segment.late_blocks[1]);
        let sum = |of: fn(&CountedPair) -> u64| pairs.iter().map(of).fold(0u64, u64::saturating_add);
        let (all_a, all_b) = (sum(|pair| pair.a.late), sum(|pair| pair.b.late));
        let mut found = CarryOver::default();
        for (segment, own, other) in
            pairs.iter().flat_map(|pair| [(pair.a, all_a, all_b), (pair.b, all_b, all_a)])
        {
            let [first, second] = segment.late_blocks;
            if blocks(segment) > 0 && first != second && own != other {
                found.of += 1;
                found.towards += u64::from((first > second) == (other > own));
            }
        }
        found
    }

    /// True if more segments are so than by chance.
    pub fn is_seen(self, level: f64) -> bool {
        2 * self.towards > self.of && ln_sign_e_value(self.towards, self.of) >= level.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carry_over_of(a: [u64; 2], b: [u64; 2], pairs: usize) -> CarryOver {
        let segment = |late_blocks: [u64; 2]| ExperimentSegment {
            late: late_blocks[0] + late_blocks[1],
            late_blocks,
            ..ExperimentSegment::default()
        };
        let (a, b) = (segment(a), segment(b));
        CarryOver::of(&vec![CountedPair { a: &a, b: &b }; pairs])
    }

    #[test]
    fn a_beginning_that_is_like_the_other_arm_is_seen() {
        // B cures, and its segments still begin with late wake-ups; A's begin with few of them.
        let carried = carry_over_of([2, 5], [2, 0], 7);
        assert_eq!(carried, CarryOver { towards: 14, of: 14 });
        assert!(carried.is_seen(20.0) && !carry_over_of([2, 5], [2, 0], 3).is_seen(20.0));
        // In the reverse case nothing is carried over.
        assert!(!carry_over_of([5, 2], [0, 2], 9).is_seen(20.0));
    }

    #[test]
    fn halves_that_are_alike_or_empty_say_nothing() {
        assert_eq!(carry_over_of([3, 3], [0, 0], 16), CarryOver::default());
        assert_eq!(carry_over_of([4, 2], [2, 4], 16).of, 0, "the arms are alike");
        assert!(!CarryOver::of(&[]).is_seen(20.0));
    }
}
