//! Documents that checks cite, in addition to those of the knobs.

pub use super::super::knobs::sources::*;

/// Rules for real-time applications, and the kernel's monitor of them.
pub const RTAPP: &str = "https://docs.kernel.org/trace/rv/monitor_rtapp.html";
/// Files of a process.
pub const PROC: &str = "https://docs.kernel.org/filesystems/proc.html";
pub const CLOCK_NANOSLEEP2: &str = "https://man7.org/linux/man-pages/man2/clock_nanosleep.2.html";
pub const MLOCK2: &str = "https://man7.org/linux/man-pages/man2/mlock.2.html";
pub const MALLOPT3: &str = "https://man7.org/linux/man-pages/man3/mallopt.3.html";
pub const MUTEX_PROTOCOL3: &str =
    "https://man7.org/linux/man-pages/man3/pthread_mutexattr_setprotocol.3p.html";
pub const PI_FUTEX: &str = "https://docs.kernel.org/locking/pi-futex.html";
pub const PTRACE2: &str = "https://man7.org/linux/man-pages/man2/ptrace.2.html";
pub const SECCOMP: &str = "https://docs.kernel.org/userspace-api/seccomp_filter.html";
pub const SIGNAL7: &str = "https://man7.org/linux/man-pages/man7/signal.7.html";
pub const SIGEVENT3: &str = "https://man7.org/linux/man-pages/man3/sigevent.3type.html";
pub const TIMERSLACK2: &str = "https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html";
pub const TTY: &str = "https://docs.kernel.org/driver-api/tty/index.html";
pub const GETRLIMIT2: &str = "https://man7.org/linux/man-pages/man2/getrlimit.2.html";
pub const USER_NAMESPACES7: &str = "https://man7.org/linux/man-pages/man7/user_namespaces.7.html";
