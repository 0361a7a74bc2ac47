//! Machines that were copied with their token.
//!
//! A boot that was followed by another never comes back; two that take turns are two machines, whose
//! rows would be one board's.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::units::Nanos;

/// A machine that was silent for so long may have been replaced.
const LIVE: Nanos = Nanos(600 * Nanos::SECOND.0);

/// The boots that boards sent from since the server was started.
#[derive(Debug, Default)]
pub struct LiveBoots(Mutex<BTreeMap<i64, SeenBoots>>);

#[derive(Debug)]
struct SeenBoots {
    now: String,
    last: Nanos,
    before: String,
}

impl LiveBoots {
    /// Whether this is the only machine that sends as that board; of two it is the one that came
    /// later.
    pub fn is_one(&self, board: i64, boot: &str, at: Nanos) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || SeenBoots { now: boot.to_owned(), last: at, before: String::new() };
        let seen = all.entry(board).or_insert_with(new);
        if seen.now != boot {
            let is_live = at.0.saturating_sub(seen.last.0) < LIVE.0;
            if seen.before == boot && is_live {
                return false;
            }
            seen.before = std::mem::replace(&mut seen.now, boot.to_owned());
        }
        seen.last = at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_machines_are_told_from_one_that_was_started_again() {
        let (boots, second) = (LiveBoots::default(), Nanos::SECOND.0);
        let one = |boot, at: i64| boots.is_one(1, boot, Nanos(at * second));
        assert!(one("a", 0) && one("a", 60) && one("b", 120) && one("b", 180));
        // The one before is still alive: a copy.
        assert!(!one("a", 240) && one("b", 241) && one("c", 300));
        assert!(boots.is_one(2, "a", Nanos(0)));
        // The later one was switched off.
        assert!(!one("b", 301) && one("b", 301 + 601));
    }
}
