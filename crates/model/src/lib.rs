//! The values that all crates share: no files, no clocks, no threads.
//!
//! [`units`] are nanoseconds, CPUs and policies; [`error`] the failures of commands; [`fact`] the
//! outcomes of reading a value. [`run`] and [`spike`] are the documents of the contract
//! (docs/bundle.md), with [`followed`] threads and programs, and the threads of culprits
//! ([`culprit_thread`]); [`check`] compares their numbers. [`histogram`] holds samples, [`rows`]
//! those of months, [`column`] long lists of numbers. [`watch`] is the record of an application,
//! [`record`] the account of all of it. [`setting`] and [`plan`] are changes to a machine,
//! [`isolation`] its isolated CPUs, [`placement`] its threads and interrupts, [`doctor`] the
//! commands that work there, [`rt_limit`] the limit of real-time tasks, [`experiment`] the proof of
//! a change. [`rng`] draws dithered schedules. [`labels`] name the owner of a run, [`text`] escapes
//! external text, [`usage`] words errors in arguments.

pub mod check;
pub mod column;
mod cross_check;
pub mod culprit_thread;
pub mod cure;
pub mod doctor;
mod entry;
pub mod error;
pub mod experiment;
pub mod fact;
pub mod followed;
pub mod histogram;
pub mod isolation;
mod key;
pub mod keyword;
pub mod labels;
pub mod load;
pub mod peak;
pub mod placement;
pub mod plan;
pub mod probe_counts;
pub mod record;
pub mod reservation;
pub mod rng;
pub mod rows;
pub mod rt_limit;
pub mod run;
pub mod setting;
pub mod size;
pub mod slice;
pub mod sort;
pub mod spike;
pub mod suite;
pub mod text;
pub mod units;
pub mod usage;
pub mod vocabulary;
pub mod wall_time;
pub mod watch;
