//! Tests that a series of block maxima is one series: level, trend, dependence, and the places of
//! its large values.
//!
//! Every test takes the maxima in order of time, one per block, in any unit, and gives `None` if it
//! cannot be computed: too few values, or all equal. A test that passes with few values shows
//! little.

pub mod homogeneity;
pub mod kpss;
pub mod ljung_box;
pub mod mann_kendall;
pub mod median_shift;
pub mod ranks;
pub mod runs;
pub mod scan;
pub mod scores;

#[cfg(test)]
mod battery;
