//! Histograms and largest latencies of times.

pub mod counted_days;
pub mod dropped;
pub mod largest_left;
pub mod largest_of_series;
pub mod last_day;
pub mod moments;
pub mod tiers;
