//! Error rate and power of the comparison: simulations from a seed.
//!
//! Block maxima are Gumbel with standard deviation 2.565 us, one per second; each run has a
//! separate shift (boot to boot), and spikes far above form a Poisson process. The results hold for
//! data like the simulated ones. Times are microseconds here, as in the published sizes.

use stats::law;
use stats::pair::conditional_binomial::{Exposure, p_two_sided};
use stats::pair::harrell_davis::{Weights, sorted};
use stats::pair::limit;
use stats::pair::verdict::{Design, Verdict, compare, compare_rates};
use stats::rng::Rng;

/// Gumbel scale in us, for a standard deviation of 2.565 us.
const SCALE: f64 = 2.0;

/// Repeated comparisons of two runs, or one pair, of the same configuration.
#[derive(Clone, Copy, Debug)]
pub struct Null {
    /// Pairs, or runs of each side.
    pub units: usize,
    /// Relation of the runs.
    pub design: Design,
    /// Standard deviation of a run's own shift, us.
    pub tau: f64,
    /// Blocks of a run.
    pub blocks: usize,
}

impl Null {
    /// Five runs of ten minutes on each side.
    pub fn five_runs(tau: f64) -> Null {
        Null { units: 5, design: Design::Unpaired, tau, blocks: 600 }
    }

    /// Eight pairs of ten minutes.
    pub fn eight_pairs(tau: f64) -> Null {
        Null { units: 8, design: Design::Paired, tau, blocks: 600 }
    }

    fn run(&self, rng: &mut Rng) -> Vec<f64> {
        let shift = 20.0 + self.tau * rng.normal();
        (0..self.blocks).map(|_| shift + gumbel(rng)).collect()
    }

    /// Fraction of comparisons of a quantile that declare a difference without one; no margin is
    /// granted.
    pub fn quantile_alarms(&self, q: f64, reps: usize, seed: u64) -> f64 {
        let mut rng = Rng::new(seed);
        let weights = Weights::new(self.blocks, q);
        fraction(reps, || {
            let mut side = || -> Vec<f64> {
                (0..self.units).filter_map(|_| weights.of_sorted(&sorted(&self.run(&mut rng)))).collect()
            };
            let (a, b) = (side(), side());
            declares(compare(&a, &b, self.design, 0.0, 0.05).verdict)
        })
    }

    /// The same for the exceedance rate at a limit that was frozen in this way.
    pub fn rate_alarms(&self, frozen: Frozen, reps: usize, seed: u64) -> f64 {
        let mut rng = Rng::new(seed);
        fraction(reps, || {
            let mut side = || -> Vec<Vec<i64>> {
                let ns = |run: Vec<f64>| run.into_iter().map(|us| (us * 1e3) as i64).collect();
                (0..self.units).map(|_| ns(self.run(&mut rng))).collect()
            };
            let (a, b) = (side(), side());
            let of = |maxima: &[i64]| limit::frozen(|| maxima.iter().copied());
            let limit = match frozen {
                Frozen::Pilot => of(&side().concat()),
                Frozen::Both => of(&[a.concat(), b.concat()].concat()),
                #[cfg(test)]
                Frozen::Compared => of(&a.concat()),
            };
            let count = |side: &[Vec<i64>]| -> Vec<Exposure> {
                let events =
                    |run: &Vec<i64>| run.iter().filter(|&&ns| ns >= limit.unwrap_or(0)).count() as u64;
                side.iter().map(|run| Exposure { events: events(run), time: run.len() as f64 }).collect()
            };
            declares(compare_rates(&count(&a), &count(&b), self.design, 1.0, 0.05).verdict)
        })
    }
}

/// Runs from which the limit for exceedances is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// As many other runs of A.
    Pilot,
    /// The compared runs of A and B together.
    Both,
    /// The compared runs of A alone.
    #[cfg(test)]
    Compared,
}

fn declares(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

fn fraction(reps: usize, mut found: impl FnMut() -> bool) -> f64 {
    (0..reps).filter(|_| found()).count() as f64 / reps.max(1) as f64
}

fn gumbel(rng: &mut Rng) -> f64 {
    -SCALE * rng.exponential().ln()
}

/// A Poisson number; the mean is at most some thousands.
fn poisson(rng: &mut Rng, mean: f64) -> u64 {
    let mut passed = rng.exponential();
    let mut events = 0;
    while passed < mean && events < 1_000_000 {
        events += 1;
        passed += rng.exponential();
    }
    events
}

/// Rate at which each method of comparison finds a halved spike rate, from one segment of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvedRateFound {
    /// The conditional binomial test of the exceedances at 5 %.
    pub conditional: f64,
    /// Mann and Whitney's test of the block maxima at 5 %.
    pub mann_whitney: f64,
    /// "A had the larger maximum", which is not a test.
    pub larger_maximum: f64,
}

/// One segment of A with one spike per minute, one of B with half of that, each of this length.
pub fn halved_rate(minutes: usize, reps: usize, seed: u64) -> HalvedRateFound {
    let mut rng = Rng::new(seed);
    let mut found = [0usize; 3];
    for _ in 0..reps {
        let mut segment = |per_block: f64| -> Vec<f64> {
            let spike = |rng: &mut Rng| 50.0 + 5.0 * rng.exponential();
            (0..60 * minutes)
                .map(|_| {
                    let base = 10.0 + gumbel(&mut rng);
                    if rng.uniform() < per_block { spike(&mut rng) } else { base }
                })
                .collect()
        };
        let (a, b) = (segment(1.0 / 60.0), segment(0.5 / 60.0));
        let above = |maxima: &[f64]| Exposure {
            events: maxima.iter().filter(|&&maximum| maximum > 45.0).count() as u64,
            time: minutes as f64,
        };
        let largest = |maxima: &[f64]| maxima.iter().copied().fold(0.0, f64::max);
        found[0] += usize::from(p_two_sided(above(&a), above(&b)) <= 0.05);
        found[1] += usize::from(rank_p(&a, &b) <= 0.05);
        found[2] += usize::from(largest(&a) > largest(&b));
    }
    let [conditional, mann_whitney, larger_maximum] = found.map(|times| times as f64 / reps.max(1) as f64);
    HalvedRateFound { conditional, mann_whitney, larger_maximum }
}

/// Mann and Whitney's p by the normal law, for values without ties: not used by the comparison.
fn rank_p(a: &[f64], b: &[f64]) -> f64 {
    let mut pooled: Vec<(f64, bool)> = a.iter().map(|&value| (value, true)).collect();
    pooled.extend(b.iter().map(|&value| (value, false)));
    pooled.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let ranks: f64 = pooled.iter().enumerate().filter(|(_, one)| one.1).map(|(at, _)| at as f64 + 1.0).sum();
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let expected = n_a * (n_a + n_b + 1.0) / 2.0;
    law::normal_two_sided((ranks - expected) / (n_a * n_b * (n_a + n_b + 1.0) / 12.0).sqrt())
}

/// Pairs of segments whose event rates differ by a factor.
#[derive(Clone, Copy, Debug)]
pub struct RatePairs {
    /// Number of pairs.
    pub pairs: usize,
    /// Length of a segment, minutes.
    pub minutes: f64,
    /// Events per minute of A.
    pub rate: f64,
    /// B's rate over A's.
    pub factor: f64,
    /// Standard deviation of ln of each segment's own rate, on top of chance.
    pub spread: f64,
}

impl RatePairs {
    /// Eight pairs of half an hour, one event per minute, halved.
    pub fn halved() -> RatePairs {
        RatePairs { pairs: 8, minutes: 30.0, rate: 1.0, factor: 0.5, spread: 0.0 }
    }

    /// Fraction of comparisons that say "better"; the margin is granted only to equal rates.
    pub fn found_better(&self, reps: usize, seed: u64) -> f64 {
        let mut rng = Rng::new(seed);
        fraction(reps, || {
            let mut segment = |rate: f64| {
                let mean = rate * self.minutes * (self.spread * rng.normal()).exp();
                Exposure { events: poisson(&mut rng, mean), time: self.minutes }
            };
            let a: Vec<Exposure> = (0..self.pairs).map(|_| segment(self.rate)).collect();
            let b: Vec<Exposure> = (0..self.pairs).map(|_| segment(self.rate * self.factor)).collect();
            compare_rates(&a, &b, Design::Paired, 1.0, 0.05).verdict == Verdict::Better
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_by_boot_alone_are_seldom_called_different() {
        for tau in [0.0, 0.5, 1.0] {
            for null in [Null::five_runs(tau), Null::eight_pairs(tau)] {
                let null = Null { blocks: 30, ..null };
                let alarms = null.quantile_alarms(0.5, 200, 1);
                assert!((0.005..=0.08).contains(&alarms), "{null:?}: {alarms}");
            }
        }
    }

    #[test]
    fn a_frozen_limit_keeps_the_size_wherever_it_is_taken_from() {
        for frozen in [Frozen::Pilot, Frozen::Both, Frozen::Compared] {
            for null in [Null::five_runs(0.5), Null::eight_pairs(0.5)] {
                let alarms = Null { blocks: 60, ..null }.rate_alarms(frozen, 100, 3);
                assert!(alarms <= 0.08, "{frozen:?} {null:?}: {alarms}");
            }
        }
    }

    #[test]
    fn counting_finds_a_halved_rate_and_ranks_do_not() {
        let reps = 100;
        let found = halved_rate(30, reps, 5);
        let near = |found: f64, p: f64| (found - p).abs() <= 3.0 * (p * (1.0 - p) / reps as f64).sqrt();
        // Exactly, from the two Poisson laws: 0.5627; the larger maximum is A's in proportion to
        // the rates.
        assert!(near(found.conditional, 0.5627), "{found:?}");
        assert!(near(found.mann_whitney, 0.08) && near(found.larger_maximum, 2.0 / 3.0), "{found:?}");
    }

    #[test]
    fn eight_pairs_find_what_one_pair_cannot() {
        let halved = RatePairs::halved();
        let found = halved.found_better(200, 6);
        assert!(found >= 0.97, "{found}");
        let restless = RatePairs { spread: 0.6, ..halved };
        assert!((0.3..0.6).contains(&restless.found_better(200, 6)));
        let same = RatePairs { factor: 1.0, spread: 0.3, ..halved };
        assert!((0.0..=0.06).contains(&same.found_better(200, 6)));
        assert!((29.0..31.0).contains(&mean_poisson(30.0)));
    }

    fn mean_poisson(mean: f64) -> f64 {
        let mut rng = Rng::new(7);
        (0..2_000).map(|_| poisson(&mut rng, mean) as f64).sum::<f64>() / 2_000.0
    }
}
