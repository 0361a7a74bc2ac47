//! A culprit that a board never had before.

use report::words::{capitalised, several};

use super::{ChangeKind, FarmChange};
use crate::pages::parts::{date, escaped, known};

/// Hunts without it before the first that has it: who was hardly looked at may have had it long.
const LEAST_HUNTS: u64 = 10;
/// Fewer spikes may be one bad moment.
const LEAST_SPIKES: u64 = 3;

/// A culprit on a board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CulpritSeen {
    pub board: String,
    pub fingerprint: String,
    pub name: String,
    /// When the first run with it began.
    pub first: i64,
    pub spikes: u64,
    /// Hunts of the board that began before that one.
    pub hunts_before: u64,
    /// The first run with it.
    pub run: String,
}

/// Those that came within the days that are shown.
pub fn new_culprits(all: &[CulpritSeen], since: i64) -> Vec<FarmChange> {
    let fits = |one: &&CulpritSeen| {
        one.first >= since && one.spikes >= LEAST_SPIKES && one.hunts_before >= LEAST_HUNTS
    };
    all.iter().filter(fits).map(change).collect()
}

fn change(one: &CulpritSeen) -> FarmChange {
    FarmChange {
        board: one.board.clone(),
        kind: ChangeKind::NewCulprit,
        t: one.first,
        from: one.first,
        says: capitalised(&format!("{} takes time since {}.", known(&one.name), date(one.first))),
        evidence: vec![
            format!("It had a part in {} since then.", several(one.spikes, "spike", "spikes")),
            format!("{} of this board before it had none of it.", several(one.hunts_before, "hunt", "hunts")),
        ],
        p: None,
        settings: Vec::new(),
        address: format!("/runs/{}", escaped(&one.run)),
        subject: format!("culprit {}", one.fingerprint),
        acknowledged: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_for_before_and_came_back_is_new() {
        let seen = |hunts_before, spikes, first| CulpritSeen {
            name: "tlb-flush".into(),
            run: "r 1".into(),
            hunts_before,
            spikes,
            first,
            ..CulpritSeen::default()
        };
        let found =
            new_culprits(&[seen(10, 3, 100), seen(9, 3, 100), seen(10, 2, 100), seen(10, 3, 99)], 100);
        assert_eq!(found.len(), 1);
        assert!(found[0].says.contains("lb-flush takes") && found[0].address == "/runs/r%201");
    }
}
