//! The analyses of a bundle, a list of maxima or a capture, without the machine it is from.
//!
//! [`measurement`] opens one, [`parallel`] many at once. [`bounds`] computes the claims that it
//! supports, [`compare`] decides if one set of runs is better than another, [`proving`] if a change
//! is proven, [`curing`] reads the inputs of a cure ([`curing_program`] for a program), [`explain`]
//! explains a hunt's spikes again, [`audit`] audits a machine's settings, [`page`] gathers the
//! contents of a report, [`placement`] lists a machine's threads and interrupts. Command lines and
//! the farm share these functions; none of them prints.

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
pub mod placement;
pub mod proving;
pub mod recorded;
pub mod suites;
pub mod traced;
pub mod tuning;
