//! A spike and the events around it to slices that add up to its latency.
//!
//! In reading order: [`state`] turns the events of one CPU into stretches, each with the context that ran;
//! [`path`] finds the landmarks of the wake-up (interrupt, expiry, waking, switch); [`attribute`] says of each
//! stretch whose time it was, with one file per judgement that needs care; [`mod@explain`] adds up.

mod attribute;
mod case;
mod doubt;
mod explain;
mod frames;
mod hard;
mod idle;
mod inherited;
mod interrupted;
mod inversion;
mod irqs_off;
mod lanes;
mod own;
mod path;
mod precedence;
mod preempt_off;
mod silence;
mod spans;
mod spinning;
mod standing;
mod starved;
mod state;
mod stopper;
mod tasks;
mod ticks;
mod waits;
mod why;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(test)]
mod tests;

pub use doubt::{Doubts, Place, doubt, doubted};
pub use explain::explain;
pub use frames::softirq;
pub use lanes::{Context, Lane, Stretch, lanes};
pub use own::Cost;
pub use preempt_off::NOT_PREEMPTED;
pub use why::is_outside;
pub use why::steal;
