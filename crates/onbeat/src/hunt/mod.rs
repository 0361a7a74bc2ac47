//! Records kernel events during a measurement, and explains each spike by the events around it.
//!
//! `source` (event sources; `source/ftrace`: events, filters, triggers, and trace pages as far back
//! as needed), `scope` (the threads of interest), `names`, `lock_places` and `call_numbers` (names
//! instead of addresses), `explainer` (from a late wake-up to an explained spike), `account`
//! (account of the recording in `run.json`), `threshold` (the latency of a spike), `hunter` (calls
//! of the housekeeping thread), `timerlat` (samples of the kernel's tracer in place of wake-ups),
//! `cross_check` (the tracer as a witness); `victims`, `family` (membership of threads), `losses`,
//! `placement`, `steal`, `sleep_places`, `follow_threads` and its parts (`followed_*`: blocks,
//! CPUs, cycles, events, spikes, the program; `cycle_spans`, `previous_cycles`) do the same for
//! threads of other programs.

mod account;
mod calibration;
mod call_numbers;
pub mod cross_check;
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
pub mod timerlat;
mod timerlat_sums;
pub mod victims;
