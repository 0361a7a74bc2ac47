//! Names of the system calls that rules use, and of those that programs make in loops.
//!
//! The numbers are those of this machine's native programs; a 32-bit program on a 64-bit kernel has
//! others, which are not looked up ([`has_own_numbers`]).

#![allow(clippy::useless_conversion)] // A c_long is shorter on 32-bit machines.

/// Name of a system call, if rules use it or programs make it in loops.
pub fn call_name(number: i64) -> Option<&'static str> {
    let found = COMMON.iter().chain(OLDER).chain(OTHERS).find(|(_, own)| i64::from(*own) == number);
    found.map(|(name, _)| *name)
}

/// True if a process's calls have the same numbers as onbeat's, by `/proc/PID/auxv`: its words are
/// as long as the program's, and AT_PHENT (4) is the size of a program header, 32 bytes in a 32-bit
/// ELF file and 56 in a 64-bit one (include/uapi/linux/{auxvec,elf}.h). Programs of x86's x32 are
/// 32-bit files, too, with call numbers from 0x40000000 on.
pub fn has_own_numbers(auxiliary: &[u8]) -> Result<bool, String> {
    const AT_PHENT: u64 = 4;
    let has = |length: usize, size: u64| {
        let words: Vec<u64> = auxiliary.chunks_exact(length).map(word).collect();
        words.chunks_exact(2).take_while(|pair| pair[0] != 0).any(|pair| pair == [AT_PHENT, size])
    };
    match (has(8, 56), has(4, 32)) {
        (true, false) => Ok(cfg!(target_pointer_width = "64")),
        (false, true) => Ok(cfg!(target_pointer_width = "32")),
        _ => Err("expected words of 32 or 64 bits with the size of a program header".to_owned()),
    }
}

/// Word in this machine's byte order.
fn word(bytes: &[u8]) -> u64 {
    let of_32 = || bytes.try_into().map(|bytes| u64::from(u32::from_ne_bytes(bytes)));
    bytes.try_into().map(u64::from_ne_bytes).or_else(|_| of_32()).unwrap_or_default()
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

/// Calls that no rule uses, and in which a cycle may spend its time.
#[rustfmt::skip]
const OTHERS: &[(&str, libc::c_long)] = &[
    ("bpf", libc::SYS_bpf),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("dup", libc::SYS_dup),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("eventfd2", libc::SYS_eventfd2),
    ("exit", libc::SYS_exit),
    ("exit_group", libc::SYS_exit_group),
    ("fcntl", libc::SYS_fcntl),
    ("fstat", libc::SYS_fstat),
    ("ftruncate", libc::SYS_ftruncate),
    ("getcpu", libc::SYS_getcpu),
    ("getpid", libc::SYS_getpid),
    ("getppid", libc::SYS_getppid),
    ("getpriority", libc::SYS_getpriority),
    ("getrandom", libc::SYS_getrandom),
    ("getrusage", libc::SYS_getrusage),
    ("getsockopt", libc::SYS_getsockopt),
    ("gettid", libc::SYS_gettid),
    ("gettimeofday", libc::SYS_gettimeofday),
    ("getuid", libc::SYS_getuid),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("kill", libc::SYS_kill),
    ("lseek", libc::SYS_lseek),
    ("mincore", libc::SYS_mincore),
    ("mlock", libc::SYS_mlock),
    ("mlockall", libc::SYS_mlockall),
    ("pipe2", libc::SYS_pipe2),
    ("prctl", libc::SYS_prctl),
    ("pread64", libc::SYS_pread64),
    ("preadv", libc::SYS_preadv),
    ("pselect6", libc::SYS_pselect6),
    ("readv", libc::SYS_readv),
    ("rt_sigaction", libc::SYS_rt_sigaction),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo),
    ("rt_sigreturn", libc::SYS_rt_sigreturn),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_setattr", libc::SYS_sched_setattr),
    ("sched_setparam", libc::SYS_sched_setparam),
    ("sched_setscheduler", libc::SYS_sched_setscheduler),
    ("setsockopt", libc::SYS_setsockopt),
    ("signalfd4", libc::SYS_signalfd4),
    ("splice", libc::SYS_splice),
    ("statx", libc::SYS_statx),
    ("tgkill", libc::SYS_tgkill),
    ("timer_create", libc::SYS_timer_create),
    ("timer_delete", libc::SYS_timer_delete),
    ("timer_settime", libc::SYS_timer_settime),
    ("timerfd_create", libc::SYS_timerfd_create),
    ("timerfd_settime", libc::SYS_timerfd_settime),
    ("unlinkat", libc::SYS_unlinkat),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("wait4", libc::SYS_wait4),
];

/// Calls with 64-bit times, which current C libraries use on 32-bit machines
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
        let all = || COMMON.iter().chain(OLDER).chain(OTHERS);
        for (name, number) in all() {
            assert_eq!(call_name(i64::from(*number)), Some(*name));
            assert_eq!(all().filter(|(other, _)| other == name).count(), 1, "{name}");
        }
        assert_eq!((call_name(-1), call_name(i64::MAX)), (None, None));
    }

    #[test]
    fn programs_of_other_words_have_other_numbers() {
        let of_64 = |pairs: &[u64]| pairs.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let of_32 = |pairs: &[u32]| pairs.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let long = of_64(&[33, 0x7ffc_0000_1000, 3, 0x5500_0000_0040, 4, 56, 5, 13, 0, 0]);
        let short = of_32(&[32, 0xf7f0_0000, 3, 0x5650_0034, 4, 32, 5, 9, 0, 0]);
        assert_eq!(has_own_numbers(&long), Ok(cfg!(target_pointer_width = "64")));
        assert_eq!(has_own_numbers(&short), Ok(cfg!(target_pointer_width = "32")));
        for text in [&[][..], &[1, 2, 3], &of_64(&[0, 0, 4, 56]), &of_64(&[4, 32, 0, 0])] {
            assert!(has_own_numbers(text).is_err(), "{text:?}");
        }
        let write: i64 = libc::SYS_write as _;
        assert_eq!(call_name(0x4000_0000 + write), None);
    }
}
