//! Real-time calls as thin safe functions, one subject per file.
//!
//! Tests need no fakes of them: the measuring loop runs without privilege under SCHED_OTHER.

mod errno;
mod memory;
mod policy;
mod rseq;
mod sched;
mod signal;
mod signal_file;
pub(crate) mod sigset;
mod stop_signal;
mod timer;
mod usage;

pub use memory::{
    disable_heap_trimming, lock_pages, lock_resident_pages, map_page_by_page, prefault_code, prefault_stack,
    release_code_pages,
};
pub use policy::{policy_of, set_policy_of};
pub use rseq::{CpuReader, current_cpu};
pub use sched::{
    affinity, affinity_of, come_before_others, leave_real_time, nice, pin, set_affinity_of,
    set_minimum_timer_slack, set_policy, set_reservation, thread_id,
};
pub use signal::{
    StopsBlocked, Woken, block_signals, clear_signal_mask, count_overruns, ignore_file_size_signal,
    interrupt_sleep, notify_housekeeper, overruns, stop_pending, unblock_signals, wait_until,
};
pub use signal_file::{ScreenSignal, SignalFile};
pub use stop_signal::{BackgroundWrites, StopSignal, wait_for_stop};
pub use timer::SignalTimer;
pub use usage::{OwnUse, Usage, process_use, thread_usage, thread_use};
