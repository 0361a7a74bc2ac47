//! Page faults and context switches of the calling thread.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Counters of the calling thread, from getrusage(RUSAGE_THREAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Voluntary context switches: one per sleep.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the CPU was given to another thread.
    pub involuntary_switches: u64,
}

/// Counters of the calling thread so far.
pub fn thread_usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one structure; should it refuse, all zeros is a valid value.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}
