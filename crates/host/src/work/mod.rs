//! Building blocks of loads: processes in a separate control group, and what they work on.
//!
//! A load runs in a process that [`LoadProcess::start`] starts from this program's executable,
//! inside a [`Cage`]; it counts its work in a page shared with its starter ([`Counters`]). All of
//! it ends with the starter, even if that is killed: each worker requests a signal at its parent's
//! death, and a keeper outside of the cage kills and removes the remains.

mod beside;
mod cage;
mod counters;
mod figures;
mod fork;
mod keeper;
mod load_process;
mod mapping;
mod memory;
mod scratch;
mod stream;

pub use beside::cpus_beside_partition;
pub use cage::{Cage, LoadGroup, remove_abandoned};
pub use counters::{Counter, Counters};
pub use figures::{Figure, Gauge, free_space, process_is_stopped};
pub use fork::{fork_and_wait, fork_task, watch_tasks};
pub use keeper::{keep_watch, start_keeper};
pub use load_process::{Joined, LoadProcess, become_program, join, said_ready, say_refused};
pub use mapping::{Mapping, page_size};
pub use memory::available_memory;
pub use scratch::{Scratch, sync_all};
pub use stream::{Stream, pipe, socket_pair};
