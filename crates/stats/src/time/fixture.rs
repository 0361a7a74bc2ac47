//! Drawn events with a known period or none, for the tests here and for `cargo xtask experiments`.

use super::period::{ALPHA, Comb, WatchedSpan, combs};
use crate::rng::Rng;

const HOUR: i64 = 3_600_000_000_000;

/// Recipe of events: a comb among random events.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Observed time, ns.
    pub span_ns: i64,
    /// Times are rounded down to this, ns.
    pub resolution_ns: i64,
    /// Number of random events.
    pub random: usize,
    /// The comb's period, ns; 0 for none.
    pub period_ns: f64,
    /// Standard deviation of each tooth about its place, ns.
    pub jitter_ns: f64,
    /// Standard deviation of the phase's step from tooth to tooth, ns.
    pub walk_ns: f64,
    /// Share of teeth without an event.
    pub missing: f64,
}

impl Recipe {
    /// One hour, times exact to 1 ms.
    pub const HOUR: Recipe = Recipe {
        span_ns: HOUR,
        resolution_ns: 1_000_000,
        random: 0,
        period_ns: 0.0,
        jitter_ns: 0.0,
        walk_ns: 0.0,
        missing: 0.0,
    };

    /// Row "pair-difference periodicity" of the table, without a period: 100 random events in an
    /// hour.
    pub const AT_RANDOM: Recipe = Recipe { random: 100, ..Recipe::HOUR };

    /// Comb of the same row: 60 s, 2 ms of jitter, among 60 random events.
    pub const MINUTE: Recipe = Recipe { random: 60, period_ns: 60e9, jitter_ns: 2e6, ..Recipe::HOUR };

    /// Row "pairdiff_top12": the twelve largest of 600 blocks, ten of them a minute apart.
    pub const TOP_12: Recipe = Recipe {
        span_ns: 600_000_000_000,
        resolution_ns: 1_000_000_000,
        random: 2,
        period_ns: 60e9,
        ..Recipe::HOUR
    };

    /// Draws the events, ns from 0; those of the comb come first.
    pub fn events(&self, rng: &mut Rng) -> Vec<i64> {
        let mut times = Vec::new();
        if self.period_ns > 0.0 {
            let mut tooth = rng.uniform() * self.period_ns;
            while tooth < self.span_ns as f64 {
                if rng.uniform() >= self.missing {
                    times.push((tooth + self.jitter_ns * rng.normal()) as i64);
                }
                // Keeps the loop finite if the walk steps back further than a period.
                tooth += (self.period_ns + self.walk_ns * rng.normal()).max(0.1 * self.period_ns);
            }
        }
        times.extend((0..self.random).map(|_| (rng.uniform() * self.span_ns as f64) as i64));
        let step = self.resolution_ns.max(1);
        times.iter().map(|time| (time / step) * step).collect()
    }

    /// Draws the events and searches for periods.
    pub fn search(&self, rng: &mut Rng) -> Vec<Comb> {
        combs(&self.events(rng), WatchedSpan::new(0, self.span_ns), self.resolution_ns, ALPHA)
    }
}

/// Number of repetitions with any claimed period.
pub fn period_claims(recipe: &Recipe, reps: usize, seed: u64) -> usize {
    let mut rng = Rng::new(seed);
    (0..reps).filter(|_| !recipe.search(&mut rng).is_empty()).count()
}

/// Number of repetitions in which the recipe's period was found first, to within `within_ns`.
pub fn period_found(recipe: &Recipe, within_ns: f64, reps: usize, seed: u64) -> usize {
    let mut rng = Rng::new(seed);
    let found = |comb: &Comb| (comb.period_ns - recipe.period_ns).abs() < within_ns;
    (0..reps).filter(|_| recipe.search(&mut rng).first().is_some_and(found)).count()
}

/// Negative binomial counts with a variance of `phi` times the mean: bursts that come by chance,
/// of a logarithmic number of events each (Quenouille 1949; drawn as Kemp 1981 does).
pub fn dispersed_counts(mean: f64, phi: f64, n: usize, rng: &mut Rng) -> Vec<u64> {
    if phi <= 1.0 {
        return poisson_counts(mean, n, rng);
    }
    let bursts = poisson_counts(mean / (phi - 1.0) * phi.ln(), n, rng);
    let mut size = || {
        let q = 1.0 - (1.0 / phi).powf(rng.uniform());
        (1.0 + rng.uniform().ln() / q.ln()).floor() as u64
    };
    bursts.into_iter().map(|bursts| (0..bursts).map(|_| size()).sum()).collect()
}

/// Poisson counts by the waiting times between events.
pub fn poisson_counts(mean: f64, n: usize, rng: &mut Rng) -> Vec<u64> {
    let mut left = rng.exponential() / mean;
    let mut count = || {
        let mut events = 0;
        while left < 1.0 && events < 1_000_000 {
            events += 1;
            left += rng.exponential() / mean;
        }
        left -= 1.0;
        events
    };
    (0..n).map(|_| count()).collect()
}
