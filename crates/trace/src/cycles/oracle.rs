//! Straightforward computation of a thread's state at each instant, to verify the tracker's sums.

use super::Cycle;
use crate::event::{Raw, What};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Ran,
    Slept,
    WasPreempted,
    Waited,
}

/// State of the thread right after an instant, by its last event.
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

/// Own, wait, preempted and blocked time of a cycle, counted nanosecond by nanosecond. All time
/// before its first run is wait: any running before that belongs to the previous cycle.
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
