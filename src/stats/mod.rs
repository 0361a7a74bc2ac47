//! Statistics of samples: pure functions, no clock, no files.

pub mod histogram;
