//! Records kernel events while measuring goes on, and explains each spike from the events around
//! it.
//!
//! `source` (where events come from; `source/ftrace`: events, filters and triggers that are set,
//! trace pages as far back as needed), `scope` (the threads of interest), `window` (one spike's
//! events), `names`, `lock_places` and `call_numbers` (no address stays), `explainer` (from a late
//! wake-up to an explained spike), `account` (what `run.json` records about the recording),
//! `threshold` (what a spike is), `hunter` (what the housekeeping thread calls); `victims`,
//! `family` (who belongs to what is followed), `wakeups`, `losses`, `placement`, `steal`,
//! `sleep_places`, `follow_threads` and what it is made of (`followed_*`: blocks, CPUs, cycles,
//! events, spikes, the program; `cycle_spans`, `previous_cycles`) do the same for threads of other
//! programs, `again` for the windows of a bundle; `findings` is what both count.

mod account;
mod calibration;
mod call_numbers;
pub mod culprit_threads;
mod cycle_spans;
pub mod explainer;
pub mod family;
pub mod follow_threads;
mod followed_blocks;
mod followed_cpus;
pub mod followed_cycles;
mod followed_events;
pub mod followed_program;
pub mod followed_spikes;
pub mod found_spikes;
pub mod hunter;
pub mod late_task;
mod lock_places;
pub mod losses;
mod missing_names;
pub mod names;
pub mod placement;
mod previous_cycles;
mod response;
pub mod scope;
mod sleep_places;
mod so_far;
pub mod source;
mod steal;
pub mod threshold;
mod ticks;
pub mod victims;
