//! Whether one set of runs is better than another: the run, or an interleaved segment, is the unit.

pub mod conditional;
pub mod early;
pub mod flip;
pub mod harrell_davis;
pub mod inversion;
pub mod many;
pub mod overdispersion;
pub mod permutation;
