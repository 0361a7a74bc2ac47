//! Measures wake-up latency: one pinned real-time thread per CPU, one housekeeping thread.
//!
//! Read in this order: `schedule` (when a slot is expected), `wake` (how a thread sleeps until then),
//! `cycle` (the hot loop), `deadman` (when it has to end), `block` (what it writes into), `lane` (the thread around it), `ready` (what it does first), `total`
//! (the sums), `watch` (what may spoil a run), `around` (what is looked at before and after it),
//! `cost` (what a cycle takes of its interval), `sink` (where results go), `hunter` (what a hunt adds), `start` (start and end), `keeper` (the housekeeping thread in between).

pub mod around;
pub mod block;
pub mod cost;
pub mod cycle;
pub mod deadman;
pub mod gate;
pub mod hunter;
pub mod irqs;
pub mod keeper;
pub mod lane;
pub mod ready;
pub mod rounds;
pub mod schedule;
pub mod sink;
pub mod start;
pub mod total;
pub mod wake;
pub mod watch;
