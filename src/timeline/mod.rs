//! A spike and the events around it to slices that add up to its latency.
