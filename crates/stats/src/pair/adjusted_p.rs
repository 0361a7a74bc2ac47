//! Many comparisons at once: p-values adjusted so that each may be compared with the same level.
//!
//! Holm (1979), Scandinavian Journal of Statistics 6, for verdicts: the chance of any false one
//! stays at the level, whatever the dependence. Benjamini and Hochberg (1995), JRSS B 57, for
//! screening lists: the share of false ones does, for independent or positively dependent tests.

use model::sort::CompactSort;

/// Indexes in ascending order of p; p outside of 0 to 1 counts as 1.
fn ascending(p: &[f64]) -> Vec<(usize, f64)> {
    let sound = |p: f64| if (0.0..=1.0).contains(&p) { p } else { 1.0 };
    let mut order: Vec<(usize, f64)> = p.iter().map(|&p| sound(p)).enumerate().collect();
    order.compact_sort_by(|one, other| one.1.total_cmp(&other.1));
    order
}

/// Holm's adjusted p-values, in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, (index, p_here)) in ascending(p).into_iter().enumerate() {
        largest = largest.max((p.len() - rank) as f64 * p_here).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// Benjamini and Hochberg's adjusted p-values, in the order given.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, (index, p_here)) in ascending(p).into_iter().enumerate().rev() {
        smallest = smallest.min(p.len() as f64 / (rank + 1) as f64 * p_here);
        adjusted[index] = smallest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn adjusted_values_are_those_of_r() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and "BH".
        let p = [0.01, 0.04, 0.03, 0.005];
        for (found, expected) in
            [(holm(&p), [0.03, 0.06, 0.06, 0.02]), (benjamini_hochberg(&p), [0.02, 0.04, 0.04, 0.02])]
        {
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
            }
        }
        assert_eq!((holm(&[]), holm(&[0.2]), holm(&[f64::NAN])), (vec![], vec![0.2], vec![1.0]));
    }

    proptest! {
        #[test]
        fn adjusting_never_helps_and_keeps_the_order(p in proptest::collection::vec(0f64..1.0, 1..20)) {
            for adjusted in [holm(&p), benjamini_hochberg(&p)] {
                for (i, &one) in p.iter().enumerate() {
                    prop_assert!(adjusted[i] >= one - 1e-15 && adjusted[i] <= 1.0);
                    for (j, &other) in p.iter().enumerate() {
                        prop_assert!(one > other || adjusted[i] <= adjusted[j]);
                    }
                }
            }
            let pairs = holm(&p).into_iter().zip(benjamini_hochberg(&p));
            prop_assert!(pairs.into_iter().all(|(holm, bh)| bh <= holm + 1e-15));
        }
    }
}
