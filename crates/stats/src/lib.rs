//! Statistics that can say no: pure functions of samples, no clock, no files, no draw without a
//! seed.
//!
//! A run is a [`series`] of block maxima. [`bounds`] judges its claims: it counts ([`count`]),
//! looks for structure in time ([`time`], [`steady`]), and extrapolates behind gates ([`tail`]).
//! [`compare`] sets runs against runs ([`pair`]): the run is the unit, never the sample. Each
//! method is a file whose head names the question, the paper and the assumption.

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
pub mod values;
