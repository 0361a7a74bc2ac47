//! A run: its page, spikes, audit, data, pin and removal; and the list of runs.

pub mod audits;
pub mod judged;
pub mod pins;
pub mod run_data;
pub mod run_page;
pub mod runs;

#[cfg(test)]
pub mod audit_tests;
