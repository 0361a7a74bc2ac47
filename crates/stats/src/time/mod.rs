//! Structure of spikes in time: bursts, periods, changes of their rate.

pub mod burst;
pub mod change;
pub mod cluster;
pub mod comb_fit;
pub mod epochs;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod fold;
pub mod mixture;
pub mod onset;
pub mod pair_differences;
pub mod period;
pub mod period_name;
pub mod ruled_out;
pub mod schuster;
pub mod short_period;
