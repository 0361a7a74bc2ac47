//! Measuring with the flight recorder armed: every spike is captured and explained, and measuring goes on.

pub mod names;
