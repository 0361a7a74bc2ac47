//! Signals that end a run, and those by which onbeat's threads wake each other.
//!
//! Signals are blocked and waited for: no asynchronous handler runs.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rustix::thread::Pid;

use super::errno::check;
use super::sigset::{SignalSet, blocked, change_mask, pending, wait_for};
use crate::clock::monotonic;
use model::units::Nanos;

/// Reason for which a wait of the housekeeping thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time-out expired.
    Time,
    /// A measuring thread called [`notify_housekeeper`].
    Notified,
    /// SIGINT, SIGTERM, SIGHUP or SIGXCPU.
    Stop,
}

/// Signals that end a run with its results saved, unless they were ignored at the start of the
/// process (`nohup`, a shell's `&`).
///
/// SIGXCPU comes once a second after the soft limit of CPU time, until the hard one kills
/// (setrlimit(2)).
const STOP: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGXCPU];
const NOTIFY: libc::c_int = libc::SIGUSR1;
const INTERRUPT: libc::c_int = libc::SIGUSR2;

/// Signal sets of the process, from its state at the first use.
struct Signals {
    /// Signals that end a run.
    stop: SignalSet,
    /// The same signals and [`NOTIFY`].
    waited: SignalSet,
    /// Signals to unblock after a run, without those blocked before it.
    freed: SignalSet,
}

static SIGNALS: OnceLock<Signals> = OnceLock::new();

/// Signals that end a run.
pub(super) fn stop_signals() -> SignalSet {
    signals().stop
}

/// Signals for a view that fills the screen.
pub(super) fn screen_signals() -> SignalSet {
    let stop = stop_signals();
    STOP.into_iter().filter(|&signal| stop.contains(signal)).chain([libc::SIGWINCH]).collect()
}

/// Sends a signal to a thread of this process.
#[cfg(test)]
pub(super) fn interrupt_with(thread: i32, signal: libc::c_int) {
    send(thread, signal);
}

fn signals() -> &'static Signals {
    SIGNALS.get_or_init(|| {
        // A blocked signal is queued even if it is ignored (sig_ignored, kernel/signal.c), and the
        // wait would return it.
        let stop = STOP.into_iter().filter(|&signal| !is_ignored(signal));
        let blocked = blocked();
        Signals {
            stop: stop.clone().collect(),
            waited: stop.clone().chain([NOTIFY]).collect(),
            freed: stop.filter(|&signal| !blocked.contains(signal)).collect(),
        }
    })
}

/// Blocks the signals that [`wait_until`] waits for, in this thread and those it starts later.
pub fn block_signals() -> io::Result<()> {
    disposition(INTERRUPT, Some(Disposition::EmptyHandler))?;
    change_mask(libc::SIG_BLOCK, signals().waited)?;
    // The parent process may have blocked it, and a mask survives execve(2).
    change_mask(libc::SIG_UNBLOCK, SignalSet::from_iter([INTERRUPT])).map(drop)
}

/// Makes a write beyond the file size limit fail, as on a full disk, instead of ending the process.
pub fn ignore_file_size_signal() {
    let _ = disposition(libc::SIGXFSZ, Some(Disposition::Ignore));
}

/// Waits until an instant of CLOCK_MONOTONIC, a stop signal, or a notification from a measuring
/// thread.
pub fn wait_until(instant: Nanos) -> Woken {
    loop {
        let left = Nanos((instant.0 - monotonic().0).max(0));
        match wait_for(&signals().waited, Some(left)) {
            NOTIFY => return Woken::Notified,
            libc::SIGXCPU if COUNTING.load(Relaxed) => note_overrun(),
            signal if signal > 0 => return Woken::Stop,
            _ if monotonic() >= instant => return Woken::Time,
            _ => {}
        }
    }
}

/// True while SIGXCPU is the kernel's report of an overrun (SCHED_FLAG_DL_OVERRUN).
static COUNTING: AtomicBool = AtomicBool::new(false);
static OVERRUNS: AtomicU64 = AtomicU64::new(0);

fn note_overrun() {
    OVERRUNS.fetch_add(1, Relaxed);
}

/// From now on SIGXCPU does not end the run: it reports overruns of SCHED_DEADLINE threads. False,
/// without an effect, if it may also report the limit of CPU time.
pub fn count_overruns() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_CPU, &raw mut limit) } == 0;
    let free = known && limit.rlim_cur == libc::RLIM_INFINITY && limit.rlim_max == libc::RLIM_INFINITY;
    COUNTING.store(free, Relaxed);
    free
}

/// True if [`count_overruns`] took effect.
pub(super) fn counts_overruns() -> bool {
    COUNTING.load(Relaxed)
}

/// Number of reports so far; one may stand for several overruns, because the signal is not queued.
pub fn overruns() -> u64 {
    let reports = SignalSet::from_iter([libc::SIGXCPU]);
    while counts_overruns() && wait_for(&reports, Some(Nanos(0))) == libc::SIGXCPU {
        note_overrun();
    }
    OVERRUNS.load(Relaxed)
}

/// True if a stop signal is pending, which [`wait_until`] would return.
pub fn stop_pending() -> bool {
    let pending = pending();
    let ends = |signal: libc::c_int| signal != libc::SIGXCPU || !counts_overruns();
    STOP.into_iter().any(|signal| ends(signal) && pending.contains(signal) && signals().stop.contains(signal))
}

/// Lets stop signals end the process again, unless one is pending, which would end it before the
/// rest is written. [`stop_pending`] reports that signal at the end.
pub fn unblock_signals() {
    if !stop_pending() {
        let _ = change_mask(libc::SIG_UNBLOCK, signals().freed);
    }
}

/// Unblocks all signals in the calling thread: a mask survives execve(2).
pub fn clear_signal_mask() {
    let _ = change_mask(libc::SIG_SETMASK, SignalSet::from_iter([]));
}

/// Blocks the stop signals in the calling thread until it is dropped; a signal that arrived takes
/// effect then.
#[must_use]
pub struct StopsBlocked {
    before: SignalSet,
    /// The signal mask belongs to a thread.
    _own_thread: PhantomData<*const ()>,
}

impl StopsBlocked {
    /// Blocks them from now on.
    pub fn begin() -> StopsBlocked {
        // It fails only for invalid arguments (sigprocmask(2)).
        let before = change_mask(libc::SIG_BLOCK, signals().stop).unwrap_or_default();
        StopsBlocked { before, _own_thread: PhantomData }
    }
}

impl Drop for StopsBlocked {
    fn drop(&mut self) {
        let _ = change_mask(libc::SIG_SETMASK, self.before);
    }
}

/// Wakes the housekeeping thread from [`wait_until`].
pub fn notify_housekeeper(thread: i32) {
    send(thread, NOTIFY);
}

/// Ends a measuring thread's sleep early, so that it sees the stop flag.
pub fn interrupt_sleep(thread: i32) {
    send(thread, INTERRUPT);
}

fn send(thread: i32, signal: libc::c_int) {
    let process = rustix::process::getpid().as_raw_pid();
    if Pid::from_raw(thread).is_some() {
        // SAFETY: tgkill takes integers; for a thread that has ended it fails with ESRCH.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    }
}

/// Dispositions of signals that onbeat sets.
enum Disposition {
    Ignore,
    /// Does nothing, except that it interrupts a sleep with EINTR.
    EmptyHandler,
}

/// Sets a signal's disposition, if one is given; returns its previous handler.
fn disposition(signal: libc::c_int, wanted: Option<Disposition>) -> io::Result<libc::sighandler_t> {
    extern "C" fn empty(_: libc::c_int) {}
    // SAFETY: sigaction is plain data for which all zeros is valid: no flags, so no SA_RESTART.
    let [mut new, mut old]: [libc::sigaction; 2] = unsafe { mem::zeroed() };
    let new = wanted.map(|wanted| {
        new.sa_sigaction = match wanted {
            Disposition::Ignore => libc::SIG_IGN,
            Disposition::EmptyHandler => empty as extern "C" fn(libc::c_int) as libc::sighandler_t,
        };
        &raw const new
    });
    // SAFETY: both are locals; a null new one changes nothing; the handler does nothing, which is
    // safe at any point.
    check(unsafe { libc::sigaction(signal, new.unwrap_or(ptr::null()), &mut old) }.into())?;
    Ok(old.sa_sigaction)
}

/// True if the process ignores a signal.
fn is_ignored(signal: libc::c_int) -> bool {
    disposition(signal, None).is_ok_and(|handler| handler == libc::SIG_IGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::thread_id;

    #[test]
    fn a_stop_that_is_held_back_waits_and_the_mask_comes_back() {
        // In a separate thread: the signals go only to it, and are taken before it unblocks them.
        std::thread::spawn(|| {
            for signal in STOP.into_iter().filter(|&signal| !is_ignored(signal)) {
                change_mask(libc::SIG_UNBLOCK, STOP.into_iter().collect()).expect("a mask");
                let held = StopsBlocked::begin();
                assert!(!stop_pending());
                send(thread_id(), signal);
                assert!(stop_pending(), "{signal}");
                unblock_signals();
                assert!(stop_pending() && blocked().contains(signal), "{signal} is still blocked");
                assert_eq!(wait_until(monotonic()), Woken::Stop);
                drop(held);
                assert!(!blocked().contains(signal) && !stop_pending());
                // Signals blocked before stay blocked.
                block_signals().expect("a mask");
                drop(StopsBlocked::begin());
                assert!(blocked().contains(signal));
            }
        })
        .join()
        .expect("no panic");
    }
}
