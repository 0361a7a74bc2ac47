//! Measures wake-up latency: one pinned real-time thread per CPU, one housekeeping thread.
//!
//! Read in this order: `schedule` (expected times of slots), `wake` (sleeps until then), `cycle`
//! (the hot loop), `starvation` (ends a loop that never pauses), `block` (the buffers it writes),
//! `late` (late wake-ups for a hunt), `worker` and `task` (the thread around it; a probe has
//! another `task`), `shared` (state shared by the threads), `prepare` (first steps of each thread),
//! `reserve` (SCHED_DEADLINE), `total` (the sums), `integrity` and `watch` (events that may
//! invalidate a run), `preconditions` (checks before and after it), `cost` (time of a cycle in its
//! interval), `sink` (output of results), `hunter` (hooks of a hunt), `rounds` (rounds before a
//! hunt), `start` (start and end), `housekeeper` (the housekeeping thread).

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
pub mod reserve;
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
