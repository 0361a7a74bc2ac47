//! The flight recorder armed while measuring goes on, and what it recorded around each spike.
//!
//! `scope` (the threads of interest), `setup` (events, filters, triggers), `pages` (trace pages as far
//! back as needed), `window_events` (one spike's events), `names` (no address stays), `recorder` (all of
//! it together), `explainer` (from a late wake-up to an explained spike), `threshold` (what a spike is),
//! `hunter` (what the housekeeping thread calls); `victims`, `wakeups`, `losses`, `followed_blocks`,
//! `placement`, `steal` and `follow_threads` do the same for threads of other programs, `again` for the
//! windows of a bundle; `findings` is what both count.

pub mod again;
pub mod explainer;
mod findings;
pub mod follow_threads;
mod followed_blocks;
pub mod found_spikes;
pub mod hunter;
pub mod losses;
pub mod names;
mod pages;
pub mod placement;
pub mod recorder;
pub mod scope;
pub mod setup;
mod steal;
pub mod threshold;
mod ticks;
pub mod victims;
pub mod wakeups;
mod window_events;
