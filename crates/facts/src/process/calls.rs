//! The system calls that rules ask for, by their names.
//!
//! The numbers are those of this machine's own programs; those of a 32-bit program on a 64-bit
//! kernel are others, and are not looked up.

#![allow(clippy::useless_conversion)] // A c_long is shorter on 32-bit machines.

/// The name of a system call, if it is one that rules ask for.
pub fn call_name(number: i64) -> Option<&'static str> {
    let found = COMMON.iter().chain(OLDER).find(|(_, own)| i64::from(*own) == number);
    found.map(|(name, _)| *name)
}

/// Calls that every architecture has.
#[rustfmt::skip]
const COMMON: &[(&str, libc::c_long)] = &[
    ("accept4", libc::SYS_accept4),
    ("brk", libc::SYS_brk),
    ("clock_nanosleep", CLOCK_NANOSLEEP),
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("close", libc::SYS_close),
    ("connect", libc::SYS_connect),
    ("epoll_pwait", libc::SYS_epoll_pwait),
    ("execve", libc::SYS_execve),
    ("fdatasync", libc::SYS_fdatasync),
    ("fsync", libc::SYS_fsync),
    ("futex", FUTEX),
    ("ioctl", libc::SYS_ioctl),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("mmap", MMAP),
    ("mprotect", libc::SYS_mprotect),
    ("mremap", libc::SYS_mremap),
    ("msync", libc::SYS_msync),
    ("munmap", libc::SYS_munmap),
    ("nanosleep", libc::SYS_nanosleep),
    ("openat", libc::SYS_openat),
    ("ppoll", libc::SYS_ppoll),
    ("pwrite64", libc::SYS_pwrite64),
    ("pwritev", libc::SYS_pwritev),
    ("read", libc::SYS_read),
    ("recvfrom", libc::SYS_recvfrom),
    ("recvmsg", libc::SYS_recvmsg),
    ("rt_sigsuspend", libc::SYS_rt_sigsuspend),
    ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("sched_yield", libc::SYS_sched_yield),
    ("sendmmsg", libc::SYS_sendmmsg),
    ("sendmsg", libc::SYS_sendmsg),
    ("sendto", libc::SYS_sendto),
    ("socket", libc::SYS_socket),
    ("write", libc::SYS_write),
    ("writev", libc::SYS_writev),
];

/// Those with 64-bit times, which a C library of today calls on 32-bit machines
/// (include/uapi/asm-generic/unistd.h).
#[cfg(target_pointer_width = "32")]
const CLOCK_NANOSLEEP: libc::c_long = 407;
#[cfg(target_pointer_width = "32")]
const FUTEX: libc::c_long = 422;
#[cfg(target_pointer_width = "32")]
const MMAP: libc::c_long = libc::SYS_mmap2;
#[cfg(target_pointer_width = "64")]
const CLOCK_NANOSLEEP: libc::c_long = libc::SYS_clock_nanosleep;
#[cfg(target_pointer_width = "64")]
const FUTEX: libc::c_long = libc::SYS_futex;
#[cfg(target_pointer_width = "64")]
const MMAP: libc::c_long = libc::SYS_mmap;

/// Calls of older architectures.
#[cfg(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm"))]
#[rustfmt::skip]
const OLDER: &[(&str, libc::c_long)] = &[
    ("epoll_wait", libc::SYS_epoll_wait),
    ("fork", libc::SYS_fork),
    ("open", libc::SYS_open),
    ("pause", libc::SYS_pause),
    ("poll", libc::SYS_poll),
    ("vfork", libc::SYS_vfork),
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "arm")))]
const OLDER: &[(&str, libc::c_long)] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_name() {
        let all = || COMMON.iter().chain(OLDER);
        for (name, number) in all() {
            assert_eq!(call_name(i64::from(*number)), Some(*name));
            assert_eq!(all().filter(|(other, _)| other == name).count(), 1, "{name}");
        }
        assert_eq!((call_name(-1), call_name(i64::MAX)), (None, None));
    }
}
