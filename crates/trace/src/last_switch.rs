//! Running thread before a stretch of time: the last switch, and the events after it. Pure.

use super::event::{Raw, What};

/// Limit of events after the switch; only the last are needed, and the others are counted.
const MAX_EVENTS: usize = 256;

/// Last switch and the events after it; if there are too many, only the last ones, and the number
/// of the others is added to `left_out`.
pub fn since_last_switch(mut events: Vec<Raw>, left_out: &mut u64) -> Vec<Raw> {
    let switch = events.iter().rposition(|event| matches!(event.what, What::Switch { .. })).unwrap_or(0);
    let mut after = events.split_off(switch);
    if after.len() > MAX_EVENTS {
        *left_out += (after.len() - MAX_EVENTS) as u64;
        after.drain(1..after.len() - MAX_EVENTS + 1);
    }
    after
}
