//! Measures wake-up latency: one pinned real-time thread per CPU, one housekeeping thread.
//!
//! Read in this order: `schedule` (when a slot is expected), `wake` (how a thread sleeps until
//! then), `cycle` (the hot loop), `starvation` (when the loop has to end), `block` (what it
//! writes into), `late` (what it hands a hunt), `worker` and `task` (the thread around it; a
//! probe's `task` is another), `shared` (what the threads share), `prepare` (what each does
//! first), `total` (the sums), `integrity` and `watch` (what may invalidate a run),
//! `preconditions` (what is checked before and after it), `cost` (what a cycle takes of its
//! interval), `sink` (where results go), `hunter` (what a hunt adds), `rounds` (the rounds before
//! a hunt), `start` (start and end), `housekeeper` (the housekeeping thread in between).

pub mod barrier;
pub mod block;
pub mod call_time;
pub mod cost;
pub mod cycle;
pub mod housekeeper;
pub mod hunter;
pub mod integrity;
pub mod late;
mod open_run;
mod overhead;
pub mod preconditions;
pub mod prepare;
pub mod rounds;
pub mod schedule;
pub mod shared;
pub mod sink;
pub mod start;
pub mod starvation;
pub mod task;
pub mod total;
pub mod wake;
pub mod watch;
pub mod worker;
