//! Tail beyond the observed values: extreme value laws fitted to values that were recorded in
//! steps, with profile bounds.

pub mod determined;
pub mod fit_test;
pub mod gap;
pub mod gev;
pub mod grouped_sample;
pub mod lmoments;
pub mod profile;
pub mod search;
pub mod step;
pub mod variation;

#[cfg(test)]
mod tests {
    use super::*;
    use gev::Shape;
    use grouped_sample::GroupedSample;
    use profile::{Level, ONE_SIDED_95};
    use proptest::prelude::*;

    /// Runs every method on one set of values: it ends for any values.
    fn all_methods(values: &[f64], width: f64) {
        let Some(steps) = GroupedSample::new(values, width) else { return };
        let level = Level { blocks: 1e6, probability: 0.95 };
        for shape in [Shape::USUAL, Shape::NON_NEGATIVE] {
            let Some(fit) = gev::fit(&steps, shape) else { continue };
            assert!(fit.nllh.is_finite() && fit.law.sigma > 0.0 && shape.holds(fit.law.xi), "{fit:?}");
            let bound = profile::level_upper(&steps, &fit, level, ONE_SIDED_95);
            let lenient = 1e-6 * (1.0 + level.of(&fit.law).abs());
            assert!(bound.is_none_or(|bound| bound + lenient >= level.of(&fit.law)), "{bound:?} {fit:?}");
            let _ = determined::of_maxima(&steps, &fit, bound).is_bounded();
            let _ = (gev::standard_errors(&steps, &fit), gap::widest_gap(&steps, &fit.law));
            let _ = fit_test::of_maxima(&steps, &fit, 0.01, 9, 1);
        }
        let _ = variation::variations(&steps, 100);
    }

    #[test]
    fn extremes_of_size_end() {
        let huge = [f64::MAX, -f64::MAX, 0.0, 1.0, 1e300];
        let small: Vec<f64> = (0..60).map(|i| f64::from(i % 7) * 5e-324).collect();
        let far: Vec<f64> = (0..60).map(|i| 1e15 + f64::from(i * i % 17)).collect();
        for values in [&huge[..], &small, &far] {
            for width in [0.0, 1.0, 1e-300, 1e300] {
                all_methods(values, width);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn all_methods_end_on_whatever_comes(
            values in proptest::collection::vec(
                prop_oneof![4 => -5i64..60, 1 => any::<i32>().prop_map(i64::from), 1 => Just(7i64)], 0..80),
            width in prop_oneof![Just(0.0), Just(1.0), Just(0.3), Just(1e4)],
        ) {
            let values: Vec<f64> = values.into_iter().map(|v| v as f64).collect();
            all_methods(&values, width);
        }
    }
}
