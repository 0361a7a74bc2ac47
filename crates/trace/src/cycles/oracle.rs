//! What a thread did at each instant, as plainly as it can be told: the tracker's sums are compared
//! with it.

use super::Cycle;
use crate::event::{Raw, What};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Ran,
    Slept,
    WasPreempted,
    Waited,
}

/// What the thread did right after an instant: the last event of its own decides.
fn did(events: &[Raw], thread: i32, instant: i64) -> Did {
    let mut now = Did::Waited;
    for event in events.iter().take_while(|event| event.time.0 <= instant) {
        match &event.what {
            What::Switch { next, .. } if next.pid == thread => now = Did::Ran,
            What::Switch { prev, state, .. } if prev.pid == thread => {
                now = if state & 0xff == 0 { Did::WasPreempted } else { Did::Slept };
            }
            What::Waking { task, .. } if task.pid == thread && now == Did::Slept => now = Did::Waited,
            _ => {}
        }
    }
    now
}

/// Own, wait, preempted, blocked of a cycle, counted nanosecond by nanosecond. Until it first runs
/// all of it is wait: what ran of the thread then belongs to the cycle before.
pub fn sums(events: &[Raw], cycle: &Cycle) -> [i64; 4] {
    let mut sums = [0; 4];
    for instant in cycle.release.0..cycle.end.0 {
        let place = match did(events, cycle.task.pid, instant) {
            _ if instant < cycle.began.0 => 1,
            Did::Ran => 0,
            Did::Waited => 1,
            Did::WasPreempted => 2,
            Did::Slept => 3,
        };
        sums[place] += 1;
    }
    sums
}
