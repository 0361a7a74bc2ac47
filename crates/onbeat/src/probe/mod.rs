//! Probes: measurements of delays that a timer does not show.
//!
//! Each is a [`ThreadBody`](crate::measure::task::ThreadBody) in place of the wake-ups of
//! `measure`: its threads are prepared, watched, counted and ended in the same way, and its samples
//! go into the same bundle. `gaps` finds the gaps for `spin`, `traced` reads those of a tracer of
//! the kernel (`hwlat`, `osnoise`; `tracers` has their refusals), `gap_list` keeps the longest of
//! them, `origins` finds their cause; `timerlat` reads the samples of that tracer; `hog` runs
//! ordinary threads; `computing` finds the pauses of a thread for `migrate` and `deadline`; `pair`
//! has the partners of `ipc`, `switch` and `pi`; `ipc` has one file per kind; `response_paths`
//! divides the responses of `irq` by the kernel's events. The threads of `migrate` are not bound to
//! a CPU.

mod computing;
pub mod deadline;
pub mod gap_list;
pub mod gaps;
pub mod hog;
pub mod hwlat;
pub mod ipc;
pub mod irq;
pub mod irq_outside;
pub mod migrate;
pub mod net;
pub mod origins;
pub mod osnoise;
pub mod packet;
pub mod packet_counts;
pub mod pair;
pub mod pi;
pub mod response_paths;
pub mod spin;
pub mod switch;
pub mod timerlat;
pub mod traced;
pub mod tracers;
