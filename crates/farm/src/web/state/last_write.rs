//! Outcome of the last write of data from boards, so that the farm itself reports a full disk.

use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::StatusCode;
use model::error::{Exit, Failure};
use model::units::Nanos;

use crate::web::edge::answer::Refusal;

/// Validity of a failure. A refused board retries within ten minutes; without a retry the state is
/// unknown.
const HOLDS: Nanos = Nanos(15 * 60 * Nanos::SECOND.0);

/// Outcome of the last write to the store or to the folder of bundles.
#[derive(Debug, Default)]
pub struct LastWrite {
    /// Time of the failure by the monotonic clock, in ns; 0 without one.
    failed_ns: AtomicI64,
}

impl LastWrite {
    /// Notes the outcome of a write to the store; a refusal of the content is ignored.
    pub fn note<T>(&self, outcome: &Result<T, Failure>) {
        match outcome {
            Ok(_) => self.went_well(),
            Err(failure) if failure.exit == Exit::Usage => {}
            Err(_) => self.failed(),
        }
    }

    /// Notes the outcome of a write of a file, whose failure is a refusal.
    pub fn note_file<T>(&self, outcome: &Result<T, Refusal>) {
        match outcome {
            Ok(_) => self.went_well(),
            Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => self.failed(),
            Err(_) => {}
        }
    }

    fn went_well(&self) {
        self.failed_ns.store(0, Ordering::Relaxed);
    }

    fn failed(&self) {
        self.failed_ns.store(host::clock::monotonic().0.max(1), Ordering::Relaxed);
    }

    /// True if it failed.
    pub fn has_failed(&self) -> bool {
        self.failed_ns.load(Ordering::Relaxed) != 0
    }

    /// True if it failed within the last fifteen minutes.
    pub fn fails_at(&self, now: Nanos) -> bool {
        let at = self.failed_ns.load(Ordering::Relaxed);
        at != 0 && now.0.saturating_sub(at) < HOLDS.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_holds_until_a_write_goes_well_and_not_for_ever() {
        let last = LastWrite::default();
        last.note::<()>(&Err(Failure::usage("a text contains a NUL character: remove it")));
        last.note_file::<()>(&Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "over its quota")));
        assert!(!last.has_failed());
        last.note::<()>(&Err(Failure::internal("the store failed")));
        let now = host::clock::monotonic();
        assert!(last.has_failed() && last.fails_at(now));
        assert!(!last.fails_at(now + HOLDS), "no board repeats it");
        last.note(&Ok(()));
        assert!(!last.has_failed() && !last.fails_at(now));
        last.note_file::<()>(&Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "no room")));
        assert!(last.has_failed());
        last.note_file(&Ok(true));
        assert!(!last.has_failed());
    }
}
