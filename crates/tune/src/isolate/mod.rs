//! CPUs set apart on a running machine: what is refused, the steps, who is there, and how a process
//! is placed.

pub mod arrivals;
pub mod list;
pub mod placing;
pub mod refusal;
pub mod steps;
