//! The flight recorder armed while measuring goes on, and what it caught around each spike.
//!
//! `scope` (whom it looks at), `arm` (events, filters, triggers), `sheets` (pages as far back as needed), `cut` (one
//! spike's window), `names` (no address stays), `recorder` (all of it together), `threshold` (what a spike is),
//! `hunter` (what the measuring loop's housekeeping calls).

pub mod arm;
mod cut;
pub mod hunter;
pub mod names;
pub mod recorder;
pub mod scope;
mod sheets;
pub mod threshold;
