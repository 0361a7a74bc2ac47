//! Delay of the housekeeping thread's polls for spikes: the buffers have to reach back that far.

use crate::measure::hunter::POLL_INTERVAL;
use model::units::Nanos;

/// Longest delay up to now.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseTime {
    last_poll: Nanos,
    slowest: Nanos,
}

impl ResponseTime {
    /// Starts the polls.
    pub fn start(&mut self, now: Nanos) {
        self.last_poll = now;
    }

    /// Notes a poll, with its delay beyond the planned interval.
    pub fn polled(&mut self, now: Nanos) {
        self.delayed(Nanos((now - self.last_poll).0 - POLL_INTERVAL.0));
        self.last_poll = now;
    }

    /// Notes a delay of the thread.
    pub fn delayed(&mut self, by: Nanos) {
        self.slowest = self.slowest.max(by);
    }

    pub fn slowest(&self) -> Nanos {
        self.slowest
    }
}
