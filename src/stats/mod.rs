//! Statistics of samples: pure functions, no clock, no files.

pub mod count;
pub mod dice;
pub mod histogram;
pub mod law;
pub mod pair;
pub mod series;
pub mod steady;
pub mod tail;
pub mod time;
