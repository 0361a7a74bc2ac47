//! Measures wake-up latency: one pinned real-time thread per CPU, one housekeeping thread.
//!
//! Read in this order: `schedule` (when a slot is expected), `wake` (how a thread sleeps until then),
//! `cycle` (the hot loop), `block` (what it writes into), `lane` (the thread around it), `total`
//! (the sums), `watch` (what may spoil a run), `around` (what is looked at before and after it),
//! `sink` (where results go), `hunter` (what a hunt adds), `start` (start and end), `keeper` (the housekeeping thread in between).

pub mod around;
pub mod block;
pub mod cycle;
pub mod hunter;
pub mod irqs;
pub mod keeper;
pub mod lane;
pub mod rounds;
pub mod schedule;
pub mod sink;
pub mod start;
pub mod total;
pub mod wake;
pub mod watch;
