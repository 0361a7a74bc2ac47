//! Place of a thread's sleep, from the functions of its kernel stack and the arguments of its
//! system call.
//!
//! Sources: kernel/futex/{pi,waitwake,requeue}.c (before 5.16 kernel/futex.c),
//! kernel/locking/rtmutex.c, mm/memory.c, arch/x86/mm/fault.c, arch/arm64/mm/fault.c.

use std::collections::HashSet;

/// Kind of a sleep, by the innermost functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SleepKind {
    /// No stack was recorded.
    #[default]
    Unknown,
    /// A lock with priority inheritance, of user space or of the kernel.
    Lock,
    /// Another futex: a mutex or a condition, which the stack does not distinguish.
    Futex,
    /// In a page fault.
    Page,
    /// A write or send, until a reader or a device has consumed earlier output.
    Output,
    /// Anywhere else.
    Other,
}

/// Place in the kernel where a thread sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SleepPlace {
    pub kind: SleepKind,
    /// Hash that is the same for equal stacks, 0 without one.
    pub key: u64,
}

/// Kind of sleep of a stack, innermost function first.
pub fn sleep_kind<'a>(functions: impl Iterator<Item = &'a str>) -> SleepKind {
    let mut kind = None;
    for function in functions {
        let bare = function.split(' ').next().unwrap_or_default().trim_start_matches('_');
        // A sound device consumes samples at a fixed pace: its writers have that period.
        if bare.starts_with("snd_pcm_") {
            return SleepKind::Other;
        }
        // Waits within a fault, also for locks, are part of the fault.
        if matches!(bare, "handle_mm_fault" | "exc_page_fault" | "do_page_fault" | "do_user_addr_fault") {
            return SleepKind::Page;
        }
        let lock = bare.starts_with("rt_mutex_") || bare.starts_with("rtlock_") || bare == "futex_lock_pi";
        let futex =
            matches!(bare, "futex_wait" | "futex_wait_queue" | "futex_wait_queue_me" | "futex_do_wait");
        // A condition with a PI mutex sleeps in `futex_wait_requeue_pi`, which handles either lock.
        match kind {
            None if lock => kind = Some(SleepKind::Lock),
            None if futex => kind = Some(SleepKind::Futex),
            None if writes(bare) => kind = Some(SleepKind::Output),
            Some(SleepKind::Futex) if bare == "futex_wait_requeue_pi" => kind = Some(SleepKind::Other),
            _ => {}
        }
    }
    kind.unwrap_or(SleepKind::Other)
}

/// True for functions of write(2), send(2), fsync(2) and the like: fs/read_write.c, net/socket.c,
/// fs/sync.c.
fn writes(function: &str) -> bool {
    matches!(function, "vfs_write" | "vfs_writev" | "vfs_iter_write" | "vfs_fsync_range")
        || matches!(function, "sys_sendto" | "sys_sendmsg" | "sys_sendmmsg")
}

/// Limit of remembered addresses.
const MAX_WORDS: usize = 4_096;

/// Distinguishes waits for a mutex from other futex waits, by the values that they wait with.
#[derive(Clone, Debug, Default)]
pub struct FutexWords {
    /// Addresses waited at with a value that no mutex has: states, and counters, which can take a
    /// mutex's values as well.
    others: HashSet<u64>,
}

impl FutexWords {
    /// True if a call, by its first arguments, waits for a mutex: FUTEX_WAIT or FUTEX_WAIT_BITSET
    /// with a value that means "locked, with waiters": 2 in glibc's and Rust's mutexes, the highest
    /// bit in musl's.
    pub fn waits_for_mutex(&mut self, args: &[u64; 4]) -> bool {
        const WAIT: u64 = 0;
        const WAIT_BITSET: u64 = 9;
        let (word, op, value) = (args[0], args[1] & 0x7f, args[2] as u32);
        if !matches!(op, WAIT | WAIT_BITSET) {
            return false;
        }
        // A thread parked by Rust waits with all bits set, which is not a valid thread ID: those
        // end at 2^22 (kernel.pid_max).
        let holder = value & 0x7fff_ffff;
        let locked = value == 2 || (value >> 31 == 1 && holder <= 1 << 22);
        if !locked && self.others.len() < MAX_WORDS {
            self.others.insert(word);
        }
        locked && !self.others.contains(&word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_tell_locks_faults_and_futexes_apart() {
        let kind = |stack: &str| sleep_kind(stack.split(" < "));
        for (stack, expected) in [
            ("do_nanosleep < hrtimer_nanosleep < common_nsleep", SleepKind::Other),
            ("futex_do_wait < __futex_wait < futex_wait < do_futex", SleepKind::Futex),
            ("futex_wait_queue_me < futex_wait < do_futex", SleepKind::Futex),
            ("__rt_mutex_slowlock.constprop.0 < rt_mutex_wait_proxy_lock < futex_lock_pi", SleepKind::Lock),
            ("rt_mutex_schedule < rt_mutex_slowlock < futex_lock_pi", SleepKind::Lock),
            ("futex_do_wait < futex_wait_requeue_pi < do_futex", SleepKind::Other),
            ("io_schedule < folio_wait_bit_common < filemap_fault < handle_mm_fault", SleepKind::Page),
            ("rwsem_down_read_slowpath < do_user_addr_fault < exc_page_fault", SleepKind::Page),
            (
                "schedule_timeout < wait_woken < n_tty_write < file_tty_write.isra.0 < vfs_write",
                SleepKind::Output,
            ),
            ("sock_alloc_send_pskb < unix_stream_sendmsg < __sys_sendto", SleepKind::Output),
            ("folio_wait_writeback < file_write_and_wait_range < vfs_fsync_range", SleepKind::Output),
            ("rt_mutex_schedule < rt_mutex_slowlock < pipe_write < vfs_write", SleepKind::Lock),
            ("wait_for_avail < __snd_pcm_lib_xfer < snd_pcm_write < vfs_write", SleepKind::Other),
            ("ep_poll < do_epoll_wait [m]", SleepKind::Other),
            ("", SleepKind::Other),
        ] {
            assert_eq!(kind(stack), expected, "{stack}");
        }
    }

    #[test]
    fn a_mutex_is_waited_for_with_a_value_of_its_own() {
        for (op, value, mutex) in [
            (128, 2, true),
            (9 + 128, 2, true),
            (128, 0x8000_0010, true),
            (9, u64::from(u32::MAX), false),
            (128, 5, false),
            (1, 2, false),
        ] {
            assert_eq!(FutexWords::default().waits_for_mutex(&[9, op, value, 0]), mutex, "{op} {value}");
        }
    }

    #[test]
    fn a_counter_that_passes_the_value_of_a_mutex_is_none() {
        let mut words = FutexWords::default();
        let mut wait = |word: u64, value: u64| words.waits_for_mutex(&[word, 128, value, 0]);
        assert!(wait(16, 2) && !wait(16, 3) && !wait(16, 2), "seen to be a counter from then on");
        assert!(wait(32, 2) && wait(32, 2), "another word");
    }
}
