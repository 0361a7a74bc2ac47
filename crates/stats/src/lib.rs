//! Statistics of samples: pure functions, no clock, no files.

pub mod blocks;
pub mod bounds;
pub mod compare;
pub mod count;
mod cpu_coverage;
pub mod law;
pub mod levels;
pub mod modes;
pub mod pair;
#[cfg(test)]
pub mod reference;
pub mod rng;
pub mod series;
pub mod steady;
pub mod tail;
pub mod time;
