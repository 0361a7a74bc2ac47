//! Isolation of CPUs on a running machine: refusals, steps, the present threads, and placing
//! processes.

pub mod arrivals;
pub mod list;
pub mod placing;
pub mod refusal;
pub mod steps;
#[cfg(test)]
mod tests;
