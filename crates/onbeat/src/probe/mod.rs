//! Probes: what a timer does not show.
//!
//! Each is a [`ThreadBody`](crate::measure::task::ThreadBody) in the place of the wake-ups of
//! `measure`: the threads are prepared, watched, counted and ended as there, and their samples go
//! the same way into the same bundle. `gaps` finds what `spin` counts, `gap_list` keeps the longest
//! of it, `hog` is what may run meanwhile; `pair` has the two threads of `ipc` and `switch`; `ipc`
//! has one file per kind.

pub mod gap_list;
pub mod gaps;
pub mod hog;
pub mod ipc;
pub mod pair;
pub mod spin;
pub mod switch;
