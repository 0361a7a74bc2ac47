//! Loads for a machine that is being measured, each with the proof that it loaded.
//!
//! A load is a record in [`loads`], one file each: its words, its unit, what the kernel counts of
//! it, and what its processes do. [`spec`] reads what a user asks for, [`admission`] refuses what
//! the machine cannot carry, [`running`] starts the processes and samples their counters, [`proof`]
//! judges the samples.

pub mod admission;
pub mod load;
pub mod loads;
pub mod page;
pub mod proof;
pub mod running;
pub mod spec;
pub mod worker;
