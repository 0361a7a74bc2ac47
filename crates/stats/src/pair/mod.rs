//! Whether one set of runs is better than another: the run, or an interleaved segment, is the unit.

pub mod baseline;
pub mod conditional;
pub mod early;
pub mod flip;
pub mod harrell_davis;
pub mod inversion;
pub mod limit;
pub mod many;
pub mod overdispersion;
pub mod permutation;
pub mod power;
pub mod shift;
pub mod verdict;
