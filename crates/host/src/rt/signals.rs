//! Signals that are waited for, sent to threads of our own, or left as they were found.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::OnceLock;

use rustix::thread::Pid;

use super::{check, thread_id};
use crate::clock::{monotonic, timespec_of};
use model::units::Nanos;

/// A POSIX timer whose signal goes to this thread, which waits for it with sigwaitinfo.
pub struct SignalTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
    signal: libc::c_int,
}

impl SignalTimer {
    /// Makes a timer for the calling thread and blocks its signal there.
    pub fn new() -> io::Result<SignalTimer> {
        let signal = libc::SIGRTMIN();
        let set = signal_set(&[signal]);
        mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: sigevent is plain data for which all zeros is a value; the kernel reads it during the call only.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread_id() as _;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers are to locals that outlive the call.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) })?;
        Ok(SignalTimer { timer, set, signal })
    }

    /// Arms the timer and waits for its signal; false if another signal came first.
    #[inline(always)]
    pub fn sleep_until(&self, instant: Nanos) -> bool {
        let time = timespec_of(instant);
        let value = libc::timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::itimerspec { it_interval: none, it_value: value };
        // SAFETY: the timer is ours until drop; the pointers are to locals, and a null old value is allowed.
        let armed = unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &once, ptr::null_mut()) };
        armed == 0 && wait_for(&self.set, None) == self.signal
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by timer_create and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// What ended a wait of the housekeeping thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time came.
    Time,
    /// A measuring thread has something to say ([`tell`]).
    Told,
    /// SIGINT, SIGTERM, SIGHUP or SIGXCPU.
    Stop,
}

/// What ends a run, results kept: each unless it was ignored when the process began (`nohup`, a shell's `&`).
///
/// SIGXCPU comes once a second from the soft limit of CPU time on, until the hard one kills (setrlimit(2)).
const STOP: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU];
const TELL: libc::c_int = libc::SIGUSR1;
const NUDGE: libc::c_int = libc::SIGUSR2;

/// What the process was started with, looked at once, and what follows from it.
struct Signals {
    /// Those that end a run.
    stop: libc::sigset_t,
    /// The same and [`TELL`].
    waited: libc::sigset_t,
    /// Those that are let through again after a run: not those that were blocked before it.
    freed: libc::sigset_t,
}

static SIGNALS: OnceLock<Signals> = OnceLock::new();

fn signals() -> &'static Signals {
    SIGNALS.get_or_init(|| {
        // A signal that is blocked is queued though it is ignored (sig_ignored, kernel/signal.c), and would be taken.
        let stop: Vec<libc::c_int> = STOP.into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let blocked = blocked();
        let freed: Vec<_> = stop.iter().copied().filter(|&signal| !holds(&blocked, signal)).collect();
        let waited: Vec<_> = stop.iter().copied().chain([TELL]).collect();
        Signals { stop: signal_set(&stop), waited: signal_set(&waited), freed: signal_set(&freed) }
    })
}

/// Blocks the signals that [`wait_until`] waits for, in this thread and those it starts later.
///
/// Waiting for them instead of handling them leaves no code that runs at a signal's whim.
pub fn block_signals() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: sigaction is plain data for which all zeros is a value: no flags, so that a sleep ends with EINTR.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, which is safe at any point; a null old action is allowed.
    check(unsafe { libc::sigaction(NUDGE, &action, ptr::null_mut()) })?;
    mask(libc::SIG_BLOCK, &signals().waited)?;
    // The parent process may have blocked it, and a mask outlives execve(2).
    mask(libc::SIG_UNBLOCK, &signal_set(&[NUDGE]))
}

/// Has a write beyond the limit of file sizes fail, as on a full disk, instead of ending the process.
pub fn survive_file_size_limit() {
    // SAFETY: ignoring a signal takes no handler, and the old disposition is of no interest.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Waits until an instant of CLOCK_MONOTONIC, a stop signal, or a word from a measuring thread.
pub fn wait_until(instant: Nanos) -> Woken {
    loop {
        let left = Nanos((instant.0 - monotonic().0).max(0));
        match wait_for(&signals().waited, Some(left)) {
            TELL => return Woken::Told,
            signal if signal > 0 => return Woken::Stop,
            _ if monotonic() >= instant => return Woken::Time,
            _ => {}
        }
    }
}

/// Whether a stop signal waits to be taken by [`wait_until`].
pub fn stop_waits() -> bool {
    let mut pending = signal_set(&[]);
    // SAFETY: the kernel writes the set, which outlives the call.
    let asked = unsafe { libc::sigpending(&mut pending) } == 0;
    asked && STOP.into_iter().any(|signal| holds(&pending, signal) && holds(&signals().stop, signal))
}

/// Waits for a signal of the set; negative when the time is over or another signal came.
///
/// The system call itself, because musl's wrapper goes back to sleep after a signal.
#[inline(always)]
fn wait_for(set: &libc::sigset_t, timeout: Option<Nanos>) -> libc::c_int {
    let timeout = timeout.map(timespec_of);
    // The call takes the kernel's older structure, of two longs, whatever the C library's is on a machine of 32 bits.
    let timeout = timeout.map(|time| [time.tv_sec as libc::c_long, time.tv_nsec as libc::c_long]);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    const KERNEL_SET_BYTES: usize = 8;
    // SAFETY: the set is initialised and larger than what the kernel reads of it; a null info and a null
    // time-out are allowed (rt_sigtimedwait(2)).
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigtimedwait,
            set,
            ptr::null_mut::<libc::siginfo_t>(),
            timeout,
            KERNEL_SET_BYTES,
        ) as libc::c_int
    }
}

/// Lets the stop signals end the process again, unless one waits already: it would take effect at once, before what is
/// left to write is written. [`stop_waits`] then tells of it at the end.
pub fn unblock_signals() {
    if !stop_waits() {
        let _ = mask(libc::SIG_UNBLOCK, &signals().freed);
    }
}

/// Holds the stop signals back in the calling thread until it is dropped; one that came meanwhile takes effect then.
#[must_use]
pub struct StopsHeld {
    before: libc::sigset_t,
    /// A mask is a thread's own.
    _here: PhantomData<*const ()>,
}

impl StopsHeld {
    /// From now on.
    pub fn begin() -> StopsHeld {
        let before = blocked();
        // It fails for wrong arguments alone (pthread_sigmask(3)).
        let _ = mask(libc::SIG_BLOCK, &signals().stop);
        StopsHeld { before, _here: PhantomData }
    }
}

impl Drop for StopsHeld {
    fn drop(&mut self) {
        let _ = mask(libc::SIG_SETMASK, &self.before);
    }
}

/// Wakes the housekeeping thread from [`wait_until`].
pub fn tell(thread: i32) {
    send(thread, TELL);
}

/// Ends a measuring thread's sleep early, so that it sees the stop flag.
pub fn nudge(thread: i32) {
    send(thread, NUDGE);
}

fn send(thread: i32, signal: libc::c_int) {
    let process = rustix::process::getpid().as_raw_pid();
    if Pid::from_raw(thread).is_some() {
        // SAFETY: tgkill takes integers; a thread that is gone gives ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    }
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set; the signals are valid numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised; a null old set is allowed.
    match unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Whether a signal is in a set.
fn holds(set: &libc::sigset_t, signal: libc::c_int) -> bool {
    // SAFETY: the set is initialised, and only read.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Whether the process ignores a signal.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: sigaction is plain data for which all zeros is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: without a new action nothing changes, and the old one is written to a local.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &mut action) } == 0;
    asked && action.sa_sigaction == libc::SIG_IGN
}

/// The signals that the calling thread has blocked.
fn blocked() -> libc::sigset_t {
    let mut set = signal_set(&[]);
    // SAFETY: without a new set nothing changes, and the old one is written to a local.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut set) };
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_is_held_back_waits_and_the_mask_comes_back() {
        // In a thread of its own: the signals go to it alone, and are taken before it lets them through.
        std::thread::spawn(|| {
            for signal in STOP.into_iter().filter(|&signal| !is_ignored(signal)) {
                mask(libc::SIG_UNBLOCK, &signal_set(&STOP)).expect("a mask");
                let held = StopsHeld::begin();
                assert!(!stop_waits());
                send(thread_id(), signal);
                assert!(stop_waits(), "{signal}");
                unblock_signals();
                assert!(stop_waits() && holds(&blocked(), signal), "{signal} is still held back");
                assert_eq!(wait_until(monotonic()), Woken::Stop);
                drop(held);
                assert!(!holds(&blocked(), signal) && !stop_waits());
                // Where they were blocked before, they stay so.
                block_signals().expect("a mask");
                drop(StopsHeld::begin());
                assert!(holds(&blocked(), signal));
            }
        })
        .join()
        .expect("no panic");
    }
}
