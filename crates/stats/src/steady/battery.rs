//! All gates on steady and unsteady series: their error rates.
//!
//! The experiment of the design: 600 blocks of Gumbel maxima with a standard deviation of 2.6 us,
//! each test at 1 %.

use super::{homogeneity, kpss, ljung_box, mann_kendall};
use crate::rng::{Rng, SEED};

const BLOCKS: usize = 600;

/// Gumbel maxima at 40 us with a scale of 2 us.
fn maxima(rng: &mut Rng) -> Vec<f64> {
    (0..BLOCKS).map(|_| 40.0 - 2.0 * rng.exponential().ln()).collect()
}

fn refused(x: &[f64]) -> bool {
    let level = kpss::level(x).is_some_and(|test| test.rejects_at_1_percent);
    let trend = mann_kendall::trend(x).is_some_and(|test| test.p < 0.01);
    let dependent = ljung_box::test(x, 10).is_some_and(|test| test.p < 0.01);
    let bunched =
        homogeneity::of_top_blocks(x).is_some_and(|test| test.halves_p.min(test.dispersion_p) < 0.01);
    level || trend || dependent || bunched
}

fn refusals(runs: u32, mut change: impl FnMut(&mut [f64], &mut Rng)) -> u32 {
    let mut rng = Rng::new(SEED);
    let mut run = || {
        let mut x = maxima(&mut rng);
        change(&mut x, &mut rng);
        refused(&x)
    };
    (0..runs).map(|_| u32::from(run())).sum()
}

#[test]
fn steady_series_are_seldom_refused() {
    let refused = refusals(100, |_, _| {});
    assert!(refused <= 8, "{refused}");
}

#[test]
fn a_mechanism_that_recurs_evenly_is_not_for_these_gates() {
    let refused = refusals(20, |x, _| x.iter_mut().step_by(60).for_each(|x| *x += 30.0));
    assert!(refused <= 4, "{refused}");
}

#[test]
fn a_shift_a_drift_a_burst_and_dependence_are_always_refused() {
    let runs = 15;
    let shift = refusals(runs, |x, _| x[300..].iter_mut().for_each(|x| *x += 1.5));
    let drift =
        refusals(runs, |x, _| x.iter_mut().enumerate().for_each(|(i, x)| *x += 2.0 * i as f64 / 600.0));
    let burst = refusals(runs, |x, rng| {
        let from = rng.below(570);
        x[from..from + 30].iter_mut().for_each(|x| *x += 5.0);
    });
    let dependent = refusals(runs, |x, _| (1..x.len()).for_each(|i| x[i] += 0.4 * (x[i - 1] - 40.0)));
    assert_eq!((shift, drift, burst, dependent), (runs, runs, runs, runs));
}
