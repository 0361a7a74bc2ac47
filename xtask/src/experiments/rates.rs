//! Events in time: the extremal index, periods, and tests that are watched while they run.

use stats::count::sequential::{Decision, decision, passing_time};
use stats::rng::{Rng, SEED};
use stats::time::cluster::{theta_intervals, theta_k_gaps};
use stats::time::fixture::{self as time, Recipe};

use super::line::ResultLine;
use super::{Experiment, Length, combs};

/// All experiments.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for (theta, intervals, k_gaps) in [(0.25, 0.253, 0.251), (0.5, 0.511, 0.498), (1.0, 0.981, 0.982)] {
        all.push((
            "extremal-index",
            Box::new(move |length| extremal_index(theta, [intervals, k_gaps], length)),
        ));
    }
    all.push(("periods", Box::new(no_period)));
    all.push(("periods", Box::new(comb)));
    all.extend(combs::all());
    all.push(("sprt", Box::new(watched)));
    all
}

fn extremal_index(theta: f64, published: [f64; 2], length: Length) -> Vec<ResultLine> {
    let reps = length.of(100, 20);
    let (intervals, k_gaps) = max_ar(theta, 20_000, reps as usize, SEED);
    let line = |name: &str, mean: f64, published: f64| {
        let bounds = [theta - 0.03, theta + 0.03].map(|end| (end * 1e3).round() / 1e3);
        ResultLine::rate(format!("theta {theta}: {name} (published {published})"), mean, reps)
            .at_least(bounds[0])
            .at_most(bounds[1])
    };
    vec![line("intervals", intervals, published[0]), line("K-gaps", k_gaps, published[1])]
}

fn part(count: usize, reps: u32) -> f64 {
    count as f64 / f64::from(reps.max(1))
}

fn no_period(length: Length) -> Vec<ResultLine> {
    let reps = length.of(1000, 200);
    let claims = time::period_claims(&Recipe::AT_RANDOM, reps as usize, SEED);
    vec![
        ResultLine::rate("100 spikes at random in 1 h: a period claimed", part(claims, reps), reps)
            .near(0.0, 400)
            .at_most(0.02),
    ]
}

fn comb(length: Length) -> Vec<ResultLine> {
    let reps = length.of(500, 100);
    let found = |recipe: &Recipe| part(time::period_found(recipe, 10e6, reps as usize, SEED), reps);
    let minute =
        ResultLine::rate("60 s comb, 2 ms jitter, 60 at random: found", found(&Recipe::MINUTE), reps);
    let top = Recipe::TOP_12;
    let top_12 = part(time::period_found(&top, 1e9, reps as usize, SEED), reps);
    vec![
        minute.near(1.0, 100).at_least(0.95),
        ResultLine::rate("10 of the top 12 of 600 s a minute apart: found", top_12, reps)
            .near(1.0, 200)
            .at_least(0.95),
    ]
}

/// Rate at which a process exactly as bad as the target passes the sequential test.
fn watched(length: Length) -> Vec<ResultLine> {
    let reps = length.of(40_000, 4000);
    let mut rng = Rng::new(SEED);
    let passed = (0..reps).filter(|_| passes(&mut rng)).count();
    vec![
        ResultLine::rate("sequential test at the target rate: passes", part(passed, reps), reps)
            .near(0.05, 4000)
            .at_most(0.06),
    ]
}

fn passes(rng: &mut Rng) -> bool {
    let (mut events, mut at) = (0, 0.0);
    loop {
        at += rng.exponential();
        if at >= passing_time(events, 1.0) {
            return true;
        }
        events += 1;
        match decision(events, at, 1.0) {
            Decision::GoOn => {}
            decided => return decided == Decision::Pass,
        }
    }
}

/// Mean estimates of the extremal index, by intervals and by K-gaps with K = 1, of series of length
/// `n` with a known one: `X_i = max((1 - theta) X_(i-1), theta Z_i)`, Z unit Frechet, above its 98
/// % quantile.
fn max_ar(theta: f64, n: usize, reps: usize, seed: u64) -> (f64, f64) {
    let mut rng = Rng::new(seed);
    let mut sums = (0.0, 0.0);
    for _ in 0..reps {
        let mut x = 1.0 / rng.exponential();
        let series: Vec<f64> = (0..n)
            .map(|_| {
                x = ((1.0 - theta) * x).max(theta / rng.exponential());
                x
            })
            .collect();
        let mut sorted = series.clone();
        sorted.sort_by(f64::total_cmp);
        let level = sorted.get(n * 98 / 100).copied().unwrap_or(f64::INFINITY);
        let above: Vec<u64> = (0u64..).zip(&series).filter(|(_, x)| **x > level).map(|(i, _)| i).collect();
        let share = above.len() as f64 / n.max(1) as f64;
        sums.0 += theta_intervals(&above).unwrap_or(f64::NAN);
        sums.1 += theta_k_gaps(&above, share, 1).unwrap_or(f64::NAN);
    }
    (sums.0 / reps as f64, sums.1 / reps as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theta_of_max_autoregression_is_as_published() {
        // Published: intervals .253 .511 .981, K-gaps .251 .498 .982. One series has a standard
        // deviation of .03 to .04, the mean of four half of that: three of these besides the
        // table's own .03.
        for (theta, intervals, k_gaps) in [(0.25, 0.253, 0.251), (0.5, 0.511, 0.498), (1.0, 0.981, 0.982)] {
            let found = max_ar(theta, 20_000, 4, SEED);
            assert!((found.0 - intervals).abs() < 0.06, "{theta}: {found:?}");
            assert!((found.1 - k_gaps).abs() < 0.04, "{theta}: {found:?}");
        }
    }
}
