//! The values that all crates share: no files, no clocks, no threads.
//!
//! [`units`] are nanoseconds, CPUs and policies; [`error`] how a command can fail; [`fact`] the
//! outcomes of reading something. [`run`] and [`spike`] are the documents of the contract
//! (docs/bundle.md), with [`followed`] threads and programs, and who a culprit is
//! ([`culprit_thread`]); [`check`] checks whether their numbers agree. [`histogram`] holds samples,
//! [`rows`] those of months, [`column`] long lists of numbers. [`watch`] is what is recorded of an
//! application, [`record`] what is known of all that was.
//! [`setting`] and [`plan`] are what is changed on a machine, [`isolation`] the CPUs that are set
//! apart, [`rt_limit`] what real-time tasks may take, [`experiment`] what proves a change. [`rng`]
//! draws dithered schedules. [`labels`] say what a run belongs to, [`text`] escapes external text.

pub mod check;
pub mod column;
pub mod culprit_thread;
pub mod cure;
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
pub mod plan;
pub mod record;
pub mod rng;
pub mod rows;
pub mod rt_limit;
pub mod run;
pub mod setting;
pub mod size;
pub mod slice;
pub mod spike;
pub mod suite;
pub mod text;
pub mod units;
pub mod vocabulary;
pub mod wall_time;
pub mod watch;
