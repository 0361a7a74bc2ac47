//! The analyses of a bundle, a list of maxima or a capture, without the machine it is from.
//!
//! [`measurement`] opens one, [`parallel`] many at once. [`bounds`] computes what it supports,
//! [`compare`] whether one set of runs is better than another, [`proving`] whether a change
//! is proven, [`curing`] what a cure reads ([`curing_program`] of a program), [`explain`] takes a
//! hunt's spikes apart again, [`audit`] judges a machine's settings, [`page`] gathers what a report
//! shows. A command line and a farm ask the same functions; none of them prints.

pub mod audit;
pub mod bounds;
pub mod compare;
pub mod curing;
mod curing_parts;
pub mod curing_program;
mod curing_threads;
mod cycle_seconds;
pub mod explain;
pub mod findings;
pub mod isolating;
mod kernel_texts;
mod machine_source;
pub mod measurement;
pub mod page;
pub mod parallel;
pub mod proving;
pub mod recorded;
pub mod suites;
pub mod traced;
pub mod tuning;
