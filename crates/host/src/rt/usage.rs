//! Page faults and context switches of the calling thread.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use model::units::Nanos;

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

/// CPU time and sleeps of onbeat's own threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnUse {
    pub cpu: Nanos,
    /// Voluntary context switches: one per sleep.
    pub sleeps: u64,
}

/// Use of the process so far, with all of its threads.
pub fn process_use() -> OwnUse {
    own_use(libc::RUSAGE_SELF)
}

/// Use of the calling thread so far.
pub fn thread_use() -> OwnUse {
    own_use(libc::RUSAGE_THREAD)
}

fn own_use(of: libc::c_int) -> OwnUse {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one structure; should it refuse, all zeros is a valid value.
    let usage = unsafe {
        libc::getrusage(of, usage.as_mut_ptr());
        usage.assume_init()
    };
    #[allow(clippy::unnecessary_cast)] // Of 32 bits on some architectures.
    let span = |time: libc::timeval| time.tv_sec as i64 * Nanos::SECOND.0 + time.tv_usec as i64 * 1_000;
    OwnUse { cpu: Nanos(span(usage.ru_utime) + span(usage.ru_stime)), sleeps: usage.ru_nvcsw as u64 }
}
