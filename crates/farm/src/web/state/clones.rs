//! Machines that were copied with their token.
//!
//! A boot that was followed by another never returns; alternating boots are different machines,
//! whose rows would become one board's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use model::units::Nanos;
use sha2::{Digest, Sha256};

/// Silence after which a machine may have been replaced.
const LIVE: Nanos = Nanos(600 * Nanos::SECOND.0);
/// Limit of remembered boots of a board.
pub const MOST_BOOTS: usize = 64;

/// Boots from which boards sent.
#[derive(Debug, Default)]
pub struct LiveBoots(Mutex<BTreeMap<i64, SeenBoots>>);

#[derive(Debug, Default)]
struct SeenBoots {
    /// `None` before the first request since the server was started.
    now: Option<BootMark>,
    last: Nanos,
    /// Boots that were followed by others.
    before: VecDeque<BootMark>,
}

/// Digest of the name of a boot, which may be long.
type BootMark = [u8; 8];

fn mark(boot: &str) -> BootMark {
    let digest: [u8; 32] = Sha256::digest(boot).into();
    std::array::from_fn(|at| digest[at])
}

impl LiveBoots {
    /// True if boots of a board are known; otherwise `learn` needs those in the store.
    pub fn is_known(&self, board: i64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&board)
    }

    /// Adds the boots from which a board sent before the server was started, in any order: a
    /// machine sends from one of them, and then only from new ones.
    pub fn learn(&self, board: i64, boots: &[String]) {
        let before = boots.iter().take(MOST_BOOTS).map(|boot| mark(boot)).collect();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(board).or_insert(SeenBoots { before, ..SeenBoots::default() });
    }

    /// True if this is the only machine that sends as that board; of several it is the latest.
    pub fn is_one(&self, board: i64, boot: &str, at: Nanos) -> bool {
        if boot.is_empty() {
            // A machine that cannot read its boot says nothing of which one it is.
            return true;
        }
        let boot = mark(boot);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = all.entry(board).or_default();
        if seen.now != Some(boot) {
            let is_live = seen.now.is_some() && at.0.saturating_sub(seen.last.0) < LIVE.0;
            if let Some(place) = seen.before.iter().position(|one| *one == boot) {
                if is_live {
                    return false;
                }
                seen.before.remove(place);
            }
            if let Some(earlier) = seen.now.replace(boot) {
                seen.before.push_back(earlier);
            }
            if seen.before.len() > MOST_BOOTS {
                seen.before.pop_front();
            }
        }
        seen.last = at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_that_is_not_known_is_no_other_machine() {
        let boots = LiveBoots::default();
        assert!(boots.is_one(1, "hb", Nanos(0)) && boots.is_one(1, "", Nanos(1)));
        assert!(boots.is_one(1, "hb", Nanos(2)));
    }

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
        assert!(!one("c", 903) && !one("a", 904) && one("b", 905));
    }

    #[test]
    fn of_many_machines_that_take_turns_one_is_taken() {
        let (boots, second) = (LiveBoots::default(), Nanos::SECOND.0);
        let one = |boot: usize, at: i64| boots.is_one(1, &format!("boot {boot}"), Nanos(at * second));
        for round in 0..5i64 {
            for machine in 0..MOST_BOOTS {
                let is_taken = one(machine, round * 300 + machine as i64);
                assert_eq!(is_taken, round == 0 || machine == MOST_BOOTS - 1, "{machine} in round {round}");
            }
        }
        // No more are remembered, however often one machine is started.
        assert!((0..1_000).all(|boot| one(100 + boot, 2_000 + boot as i64)));
        let all = boots.0.lock().unwrap();
        assert_eq!(all[&1].before.len(), MOST_BOOTS);
    }

    #[test]
    fn after_a_restart_of_the_server_earlier_boots_are_known() {
        let (boots, second) = (LiveBoots::default(), Nanos::SECOND.0);
        let one = |boot, at: i64| boots.is_one(1, boot, Nanos(at * second));
        assert!(!boots.is_known(1));
        boots.learn(1, &["a", "b", "c"].map(str::to_owned));
        assert!(boots.is_known(1) && !boots.is_known(2));
        // Whichever sends first goes on, and a new boot follows it.
        assert!(one("b", 0) && !one("c", 1) && !one("a", 2) && one("b", 3) && one("d", 4) && !one("b", 5));
        boots.learn(1, &[]);
        assert!(!one("a", 6) && one("d", 7));
    }
}
