//! Signals that end a run, with their origin: one from the terminal has reached a concurrent
//! program already, any other must be forwarded to it.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ptr;

use super::signal::stop_signals;
use super::sigset::{SignalSet, change_mask};
use crate::clock::{monotonic, timespec_of};
use model::units::Nanos;

/// Signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSignal {
    pub number: i32,
    /// True if the kernel sent it to all processes of the terminal's foreground job.
    pub from_terminal: bool,
}

/// Waits until an instant of CLOCK_MONOTONIC for a signal that ends the run.
pub fn wait_for_stop(instant: Nanos) -> Option<StopSignal> {
    loop {
        let left = Nanos((instant.0 - monotonic().0).max(0));
        if let Some(signal) = take(&stop_signals(), left) {
            return Some(signal);
        }
        if monotonic() >= instant {
            return None;
        }
    }
}

fn take(set: &SignalSet, timeout: Nanos) -> Option<StopSignal> {
    let time = timespec_of(timeout);
    let timeout = [time.tv_sec as libc::c_long, time.tv_nsec as libc::c_long];
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let (set, size) = (ptr::from_ref(set), mem::size_of::<SignalSet>());
    // SAFETY: the kernel reads one set of the size that it is given and one time-out in its older
    // form, and writes one siginfo (rt_sigtimedwait(2)).
    let number =
        unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, set, info.as_mut_ptr(), timeout.as_ptr(), size) };
    // SAFETY: all zeros is a valid value, and the kernel has filled it if there is a signal.
    let info = unsafe { info.assume_init() };
    (number > 0)
        .then_some(StopSignal { number: number as i32, from_terminal: info.si_code == libc::SI_KERNEL })
}

/// Lets this thread write to a terminal from the background, until it is dropped.
#[must_use]
pub struct BackgroundWrites {
    before: Option<SignalSet>,
    /// The signal mask belongs to a thread.
    _own_thread: PhantomData<*const ()>,
}

impl BackgroundWrites {
    /// Allows it from now on.
    pub fn allow() -> BackgroundWrites {
        let blocked: io::Result<SignalSet> =
            change_mask(libc::SIG_BLOCK, SignalSet::from_iter([libc::SIGTTOU]));
        BackgroundWrites { before: blocked.ok(), _own_thread: PhantomData }
    }
}

impl Drop for BackgroundWrites {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = change_mask(libc::SIG_SETMASK, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::{block_signals, thread_id};

    #[test]
    fn a_signal_that_a_process_sent_is_not_the_terminal_s() {
        std::thread::spawn(|| {
            block_signals().unwrap();
            if !stop_signals().contains(libc::SIGTERM) {
                return;
            }
            assert_eq!(take(&stop_signals(), Nanos(0)), None);
            let process = rustix::process::getpid().as_raw_pid();
            // SAFETY: tgkill takes integers.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread_id(), libc::SIGTERM) };
            let taken = wait_for_stop(monotonic());
            assert_eq!(taken, Some(StopSignal { number: libc::SIGTERM, from_terminal: false }));
        })
        .join()
        .unwrap();
    }
}
