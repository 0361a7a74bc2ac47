//! Loads for a machine that is being measured, each with a proof of its effect.
//!
//! A load is a record in [`loads`], one file each: its texts, its unit, its kernel statistic, and
//! the work of its processes. [`spec`] parses the user's request, [`admission`] refuses loads that
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
