//! The events of followed threads, in order of time over all CPUs, and what is missing of them.

use super::explainer::{Explainer, timer_start};
use super::losses::Losses;
use super::wakeups::{Wakeup, WakeupTracker};
use model::units::Nanos;
use trace::event::Raw;

/// What was collected and is not followed yet.
pub struct FollowedEvents {
    pub tracker: WakeupTracker,
    pub losses: Losses,
    /// Events that are younger than what was collected of the other CPUs.
    waiting: Vec<Raw>,
    /// Starts of timers (thread, function, timer), as long as these are to be learned.
    starts: Option<Vec<(i32, u64, u64)>>,
}

impl FollowedEvents {
    /// Of the threads that the tracker knows; `learn_timers` where stacks are to be taken at them.
    pub fn new(tracker: WakeupTracker, learn_timers: bool) -> FollowedEvents {
        let starts = learn_timers.then(Vec::new);
        FollowedEvents { tracker, losses: Losses::default(), waiting: Vec::new(), starts }
    }

    /// Collects events, and follows the threads up to `upto` or as far as all CPUs' events are
    /// there; the wake-ups that are complete, and up to when that is.
    pub fn poll(&mut self, explainer: &mut Explainer, upto: Nanos) -> (Vec<Wakeup>, Nanos) {
        let FollowedEvents { tracker, waiting, starts, .. } = self;
        let collected = explainer.collect_each(&mut |event| {
            if let Some(starts) = starts {
                starts.extend(timer_start(&event));
            }
            if tracker.wants(&event) {
                waiting.push(event);
            }
        });
        if let Some(gap) = collected.lost_before {
            self.losses.missed(gap);
            self.tracker.forget();
        }
        // A waking whose switch is lost would make the next switch a spike. Of a CPU that lags
        // behind, what comes later may still lie before the gap.
        let gap = self.losses.gap();
        self.waiting.retain(|event| event.time >= gap);
        self.waiting.sort_by_key(|event| event.time);
        let seen = upto.min(collected.complete_until);
        self.losses.read_until(seen);
        let ready = self.waiting.partition_point(|event| event.time <= seen);
        let ready: Vec<Raw> = self.waiting.drain(..ready).collect();
        (ready.iter().filter_map(|event| self.tracker.observe(event)).collect(), seen)
    }

    /// The starts of timers so far, once there are any; they are not collected any more then.
    pub fn take_timer_starts(&mut self) -> Option<Vec<(i32, u64, u64)>> {
        self.starts.take_if(|starts| !starts.is_empty())
    }
}
