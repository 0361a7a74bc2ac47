//! Map of a machine: the purpose of each CPU, and the work that may run there, for the terminal and
//! for the page.

mod build;
mod cpus;
mod frame;
mod names;
pub mod order;
mod properties;
pub mod svg;
mod tasks;
#[cfg(test)]
pub mod tests;
pub mod text;
pub mod words;

pub use cpus::{APART, CpuGroup, CpuProperty, CpuTraits, Map, Work, WorkItem};
pub use names::{collapsed, kind_of};
pub use tasks::{DEADLINE, PriorityStep, STOP, rank_name};

/// Patterns of the texts that the map reads in addition to those of the rules.
pub const READS: &[&str] = &[properties::NODES, properties::WORKQUEUES];
