//! Signals that end the program. Acknowledgements are logged at once, so that an abandoned request
//! loses nothing; a request in progress gets a few seconds to finish.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use host::clock::monotonic;
use host::rt::{self, Woken};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;

/// Time that a request in progress is waited for.
const GRACE: Nanos = Nanos(5 * Nanos::SECOND.0);
/// Longest single wait for a signal.
const LONG: Nanos = Nanos(3_600 * Nanos::SECOND.0);

/// Flag that asks the program to end.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<(Mutex<bool>, Condvar)>);

impl StopFlag {
    pub fn is_set(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for a span, or until the program is to end; returns true in that case.
    pub fn sleep(&self, span: Nanos) -> bool {
        let span = Duration::from_nanos(u64::try_from(span.0).unwrap_or(0));
        let set = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slept = self.0.1.wait_timeout_while(set, span, |set| !*set);
        *slept.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Asks the program to end.
    pub fn set(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

/// Runs the work in a separate thread, until it is done or a signal comes: then the flag is set,
/// and the work is abandoned after five seconds or at another signal.
pub fn until_stopped(work: impl FnOnce(&StopFlag) -> Result<Exit> + Send + 'static) -> Result<Exit> {
    // The thread inherits the mask.
    rt::block_signals().map_err(|error| Failure::internal(format!("cannot block signals: {error}")))?;
    let stop = StopFlag::default();
    let (done, ended) = channel();
    let (told, waiting) = (stop.clone(), rt::thread_id());
    let started = std::thread::Builder::new().name("push/send".to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&told)));
        let failed = |_| Err(Failure::internal("sending failed: report this, with the lines above"));
        let _ = done.send(outcome.unwrap_or_else(failed));
        rt::notify_housekeeper(waiting);
    });
    let outcome = match started {
        Ok(_) => outcome_of(&stop, &ended),
        Err(error) => {
            let remedy = "raise its limit (ulimit -u)";
            Err(Failure::of_call("cannot start a thread", &error, Exit::Internal, remedy))
        }
    };
    rt::unblock_signals();
    outcome
}

fn outcome_of(stop: &StopFlag, ended: &Receiver<Result<Exit>>) -> Result<Exit> {
    let mut until = monotonic() + LONG;
    loop {
        match ended.try_recv() {
            Ok(outcome) => return outcome,
            Err(TryRecvError::Disconnected) => return Err(Failure::internal("sending ended: report this")),
            Err(TryRecvError::Empty) => {}
        }
        match (rt::wait_until(until), stop.is_set()) {
            (Woken::Notified, _) => {}
            (Woken::Stop, false) => {
                stop.set();
                until = monotonic() + GRACE;
            }
            (Woken::Time, false) => until = monotonic() + LONG,
            (Woken::Stop | Woken::Time, true) => return Ok(Exit::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_with_its_time_or_with_the_program() {
        let stop = StopFlag::default();
        assert!(!stop.sleep(Nanos(1_000)) && !stop.is_set());
        let other = stop.clone();
        let sleeper = std::thread::Builder::new().spawn(move || other.sleep(Nanos(600 * Nanos::SECOND.0)));
        stop.set();
        assert!(sleeper.unwrap().join().unwrap() && stop.is_set());
        assert!(stop.sleep(Nanos(600 * Nanos::SECOND.0)));
    }

    #[test]
    fn what_the_work_came_to_is_the_outcome() {
        assert_eq!(until_stopped(|_| Ok(Exit::Inconclusive)).unwrap(), Exit::Inconclusive);
        assert_eq!(until_stopped(|_| Err(Failure::usage("no"))).unwrap_err().exit, Exit::Usage);
    }
}
