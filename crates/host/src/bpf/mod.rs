//! BPF programs and maps: bpf(2), and perf_event_open(2) to run a program at a trace event.
//!
//! Array maps only, shared with this process by mmap: no lock, no copy. Nothing is pinned:
//! everything ends with its descriptors, even after SIGKILL. Source: include/uapi/linux/bpf.h and
//! Documentation/bpf/.

mod call;
mod link;
mod map;
mod program;
mod types;

pub use link::Link;
pub use map::{ArrayMap, MapView};
pub use program::{Attached, Program, ProgramCounts, Refused};
pub use types::KernelTypes;
