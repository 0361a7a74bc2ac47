//! When spikes come: in bursts, periodically, more often from some time on.

pub mod burst;
pub mod change;
pub mod cluster;
pub mod epochs;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod fold;
pub mod lags;
pub mod mixture;
pub mod name;
pub mod period;
pub mod schuster;
pub mod short;
pub mod teeth;
