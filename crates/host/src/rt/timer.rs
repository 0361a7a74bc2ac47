//! POSIX timers whose signal a thread waits for: one of the methods of waking a thread.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::ptr;

use super::errno::check;
use super::sched::thread_id;
use super::sigset::{SignalSet, change_mask, wait_for};
use crate::clock::timespec_of;
use model::units::Nanos;

/// POSIX timer whose signal goes to this thread, which waits for it with sigwaitinfo.
pub struct SignalTimer {
    timer: libc::timer_t,
    set: SignalSet,
    signal: libc::c_int,
}

impl SignalTimer {
    /// Creates a timer for the calling thread and blocks its signal there.
    pub fn new() -> io::Result<SignalTimer> {
        let signal = libc::SIGRTMIN();
        let set = SignalSet::from_iter([signal]);
        change_mask(libc::SIG_BLOCK, set)?;
        SignalTimer::create(signal, set)
    }

    /// Sets a timer and deletes it before its signal, so that the kernel's trace events show such a
    /// timer.
    pub fn set_and_delete(instant: Nanos) -> io::Result<()> {
        let signal = libc::SIGRTMIN();
        let timer = SignalTimer::create(signal, SignalSet::from_iter([signal]))?;
        if timer.arm(instant) { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn create(signal: libc::c_int, set: SignalSet) -> io::Result<SignalTimer> {
        // SAFETY: sigevent is plain data for which all zeros is a value.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread_id() as _;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers are to locals that outlive the call.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) }.into())?;
        Ok(SignalTimer { timer, set, signal })
    }

    /// Arms the timer and waits for its signal; returns false if another signal comes first.
    #[inline(always)]
    pub fn sleep_until(&self, instant: Nanos) -> bool {
        self.arm(instant) && wait_for(&self.set, None) == self.signal
    }

    #[inline(always)]
    fn arm(&self, instant: Nanos) -> bool {
        let time = timespec_of(instant);
        let value = libc::timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec { it_interval: none, it_value: value };
        // SAFETY: this value owns the timer until drop; the pointers are to locals, and a null old
        // value is allowed.
        unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &once, ptr::null_mut()) == 0 }
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was created by timer_create and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
