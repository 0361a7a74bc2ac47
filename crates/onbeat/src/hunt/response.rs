//! The delay with which the housekeeping thread looks for spikes: the buffers have to reach back
//! that far.

use crate::measure::hunter::POLL_INTERVAL;
use model::units::Nanos;

/// The longest delay so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseTime {
    last_poll: Nanos,
    slowest: Nanos,
}

impl ResponseTime {
    /// The polls start now.
    pub fn start(&mut self, now: Nanos) {
        self.last_poll = now;
    }

    /// A poll: what it came later than planned counts.
    pub fn polled(&mut self, now: Nanos) {
        self.delayed(Nanos((now - self.last_poll).0 - POLL_INTERVAL.0));
        self.last_poll = now;
    }

    /// The thread was delayed by that much.
    pub fn delayed(&mut self, by: Nanos) {
        self.slowest = self.slowest.max(by);
    }

    pub fn slowest(&self) -> Nanos {
        self.slowest
    }
}
