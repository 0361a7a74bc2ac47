//! Repeatable random numbers: ChaCha8 from a fixed seed, the same on every machine.
//!
//! Published p-values, intervals and the tables of docs/statistics.md come from this stream:
//! another generator would print other digits for the same run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::law;

/// The default seed of all random draws; it is part of the results.
pub const SEED: u64 = 0x6f6e_6265_6174;

/// A stream of random numbers.
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// Stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number between 0 and 1, excluding both.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// One of 0 to n - 1, all equally likely up to n in 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        law::normal_quantile(self.uniform())
    }

    /// An exponential number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut rng = Rng::new(1);
        assert_eq!([rng.next_u64(), rng.next_u64()], [7_424_550_030_962_593_201, 1_482_817_706_323_250_795]);
    }

    #[test]
    fn moments_are_those_of_the_laws() {
        let mut rng = Rng::new(SEED);
        let n = 20_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.uniform()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || rng.normal().powi(2)) - 1.0).abs() < 0.04);
        assert!((mean(&mut || rng.exponential()) - 1.0).abs() < 0.03);
        assert!((mean(&mut || rng.below(3) as f64) - 1.0).abs() < 0.03);
    }
}
