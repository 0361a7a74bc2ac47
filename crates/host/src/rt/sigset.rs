//! Signal sets, and the system calls that take them: thread masks, pending signals, waiting.
//!
//! Uses the kernel's structure and calls: musl's sigtimedwait(3) goes back to sleep after a signal
//! with a handler, and the C library's sets are 16 times as large.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ptr;

use super::errno::check;
use crate::clock::timespec_of;
use model::units::Nanos;

const WORDS: usize = 64 / libc::c_ulong::BITS as usize;

/// Set of 64 signals, a bit each, in machine words (include/uapi/asm-generic/signal.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct SignalSet([libc::c_ulong; WORDS]);

impl SignalSet {
    pub(crate) fn contains(&self, signal: libc::c_int) -> bool {
        let bit = signal as usize - 1;
        self.0[bit / libc::c_ulong::BITS as usize] >> (bit % libc::c_ulong::BITS as usize) & 1 == 1
    }
}

impl FromIterator<libc::c_int> for SignalSet {
    fn from_iter<I: IntoIterator<Item = libc::c_int>>(signals: I) -> SignalSet {
        let mut set = SignalSet::default();
        for signal in signals {
            let bit = signal as usize - 1;
            set.0[bit / libc::c_ulong::BITS as usize] |= 1 << (bit % libc::c_ulong::BITS as usize);
        }
        set
    }
}

/// Changes the signal mask of the calling thread by SIG_BLOCK, SIG_UNBLOCK or SIG_SETMASK; returns
/// the old mask.
pub(crate) fn change_mask(how: libc::c_int, set: SignalSet) -> io::Result<SignalSet> {
    let mut old = SignalSet::default();
    let (new, to) = (ptr::from_ref(&set), ptr::from_mut(&mut old));
    // SAFETY: the kernel reads one set and writes one, each of the size that it is given.
    check(unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, to, mem::size_of::<SignalSet>()) })?;
    Ok(old)
}

/// Signals blocked in the calling thread.
pub(crate) fn blocked() -> SignalSet {
    // It fails only for invalid arguments (sigprocmask(2)).
    change_mask(libc::SIG_BLOCK, SignalSet::default()).unwrap_or_default()
}

/// Blocked signals that are pending for the calling thread or its process.
pub(crate) fn pending() -> SignalSet {
    let mut set = SignalSet::default();
    let to = ptr::from_mut(&mut set);
    // SAFETY: the kernel writes one set of the size that it is given.
    let asked = check(unsafe { libc::syscall(libc::SYS_rt_sigpending, to, mem::size_of::<SignalSet>()) });
    asked.map_or_else(|_| SignalSet::default(), |_| set)
}

/// Waits for a signal of the set; negative after the time-out or if another signal arrives.
#[inline(always)]
pub(crate) fn wait_for(set: &SignalSet, timeout: Option<Nanos>) -> libc::c_int {
    // The call takes the kernel's older structure, of two longs, even if the C library's has 64
    // bits.
    let timeout = timeout.map(|span| {
        let time = timespec_of(span);
        [time.tv_sec as libc::c_long, time.tv_nsec as libc::c_long]
    });
    let until = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    let (set, info) = (ptr::from_ref(set), ptr::null_mut::<libc::siginfo_t>());
    // SAFETY: the kernel reads one set of the size that it is given; a null info and a null
    // time-out are allowed (rt_sigtimedwait(2)).
    unsafe {
        libc::syscall(libc::SYS_rt_sigtimedwait, set, info, until, mem::size_of::<SignalSet>()) as libc::c_int
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_layout_of_the_kernel_s() {
        let set: SignalSet = [1, 33, 64].into_iter().collect();
        assert!((1..=64).all(|signal| set.contains(signal) == [1, 33, 64].contains(&signal)));
        assert_eq!(mem::size_of::<SignalSet>(), 8);
        // The C library's set starts with the same bits.
        std::thread::spawn(|| {
            let [user, last] = [libc::SIGUSR1, libc::SIGRTMAX()];
            change_mask(libc::SIG_SETMASK, [user, last].into_iter().collect()).expect("a mask");
            let text = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
            let mask = text.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask").trim();
            let bits = 1u64 << (user - 1) | 1 << (last - 1);
            assert_eq!(u64::from_str_radix(mask, 16), Ok(bits));
            assert_eq!(blocked(), [user, last].into_iter().collect());
        })
        .join()
        .expect("no panic");
    }
}
