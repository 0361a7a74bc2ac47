//! Basis of the rank tests: medians, midranks and ties of a series, all in n log n.

use crate::levels::Levels;
use crate::values::SeriesValues;

/// True if there are two different values, and none that is not a number.
pub fn varies<'a>(x: impl Into<SeriesValues<'a>>) -> bool {
    let x = x.into();
    let first = x.iter().next();
    x.iter().all(|x| x.is_finite()) && x.iter().any(|y| Some(y) != first)
}

/// Median; the mean of the middle two for even n; `None` without values.
pub fn median<'a>(x: impl Into<SeriesValues<'a>>) -> Option<f64> {
    let x = x.into();
    Levels::of(x.iter(), x.len()).median()
}

/// The median of values, which it may reorder, see [`median`].
pub fn median_of(x: &mut [f64]) -> Option<f64> {
    if x.is_empty() {
        return None;
    }
    let (n, middle) = (x.len(), x.len() / 2);
    let (below, upper, _) = x.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    Some(lower + (upper - lower) / 2.0)
}

/// The ranks from 1 in the order of the series; equal values share the mean of theirs.
pub fn midranks<'a>(x: impl Into<SeriesValues<'a>>) -> impl Iterator<Item = f64> {
    let x = x.into();
    let levels = Levels::of(x.iter(), x.len());
    x.iter().map(move |x| levels.midrank(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_series_are_as_by_hand() {
        assert_eq!((median(&[]), median(&[3.0]), median(&[4.0, 1.0])), (None, Some(3.0), Some(2.5)));
        let midranks = |x: &[f64]| midranks(x).collect::<Vec<f64>>();
        assert_eq!(midranks(&[2.0, 7.0, 2.0, 1.0]), [2.5, 4.0, 2.5, 1.0]);
        assert_eq!(midranks(&[0.0, -0.0]), [1.5, 1.5]);
        assert!(!varies(&[]) && !varies(&[1.0]) && !varies(&[1.0, 1.0]) && varies(&[1.0, 2.0]));
        assert!(!varies(&[f64::NAN, 1.0]) && !varies(&[1.0, f64::INFINITY]));
        let _ = (midranks(&[f64::NAN, 1.0, f64::NAN]), median(&[f64::NAN, f64::NEG_INFINITY]));
    }

    proptest! {
        #[test]
        fn ranks_count_what_is_below(x in proptest::collection::vec(-9i32..9, 1..50)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            for (rank, y) in midranks(&x).zip(&x) {
                let below = x.iter().filter(|z| *z < y).count() as f64;
                let same = x.iter().filter(|z| *z == y).count() as f64;
                prop_assert_eq!(rank, below + (same + 1.0) / 2.0);
            }
        }

        #[test]
        fn medians_agree_with_sorting(mut x in proptest::collection::vec(-1e6f64..1e6, 1..50)) {
            let found = median(&x).unwrap();
            x.sort_by(f64::total_cmp);
            let (low, high) = (x[(x.len() - 1) / 2], x[x.len() / 2]);
            prop_assert!((found - (low + high) / 2.0).abs() < 1e-9);
        }
    }
}
