//! Which thread ran before a stretch of time: the last switch, and the events after it. Pure.

use super::event::{Raw, What};

/// Of the events after the switch only the last are needed; the others are counted as left out.
const MAX_EVENTS: usize = 256;

/// The last switch and what came after it, the last of that if it is much; the rest of that is
/// counted.
pub fn since_last_switch(mut events: Vec<Raw>, left_out: &mut u64) -> Vec<Raw> {
    let switch = events.iter().rposition(|event| matches!(event.what, What::Switch { .. })).unwrap_or(0);
    let mut after = events.split_off(switch);
    if after.len() > MAX_EVENTS {
        *left_out += (after.len() - MAX_EVENTS) as u64;
        after.drain(1..after.len() - MAX_EVENTS + 1);
    }
    after
}
