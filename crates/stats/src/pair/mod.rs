//! Comparison of two sets of runs: the run, or an interleaved segment, is the unit.

pub mod adjusted_p;
pub mod baseline;
pub mod conditional_binomial;
pub mod e_value;
pub mod harrell_davis;
pub mod inversion;
pub mod limit;
pub mod overdispersion;
pub mod permutation;
pub mod power;
pub mod rank_sum;
pub mod shift;
pub mod sign_flip;
pub mod sign_sequence;
mod subset_means;
pub mod unit;
pub mod verdict;
