//! What boards were refused since the server was started: the latest of each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::text::several;

use crate::records::BoardRefusal;
use crate::store::TokenOwner;

/// Letters of a request and of a reason.
const LONGEST: usize = 300;

/// By board: as many as have a token.
#[derive(Debug, Default)]
pub struct BoardRefusals {
    latest: Mutex<BTreeMap<i64, BoardRefusal>>,
    /// What boards said that they dropped.
    dropped: Mutex<BTreeMap<i64, BoardDropped>>,
}

/// What a board could not keep until it was sent, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardDropped {
    pub runs: u64,
    pub rows: u64,
}

impl BoardRefusals {
    pub fn note(&self, owner: &TokenOwner, t: i64, request: String, detail: &str) {
        let short = |text: &str| model::text::clean(text).chars().take(LONGEST).collect::<String>();
        let mut all = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let one = all.entry(owner.board_id).or_default();
        let count = one.count.saturating_add(1);
        *one = BoardRefusal {
            board: owner.board.clone(),
            t,
            request: short(&request),
            detail: short(detail),
            count,
        };
    }

    /// Notes what a board says that it dropped, where that is more than it said before.
    pub fn note_dropped(&self, owner: &TokenOwner, t: i64, of: BoardDropped) {
        let before = {
            let mut all = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(owner.board_id, of).unwrap_or_default()
        };
        if of.runs > before.runs || of.rows > before.rows {
            let (runs, rows) = (several(of.runs, "run", "runs"), several(of.rows, "row", "rows"));
            let detail = format!(
                "it dropped {runs} and {rows} before they could be sent: see why the farm was not reached, \
                 or give its onbeat-push a larger --spool and its onbeat watch a larger --size"
            );
            self.note(owner, t, String::new(), &detail);
        }
    }

    /// All of them, the latest first.
    pub fn all(&self) -> Vec<BoardRefusal> {
        let all = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<BoardRefusal> = all.values().cloned().collect();
        all.sort_by(|a, b| (b.t, &a.board).cmp(&(a.t, &b.board)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_board_stays_and_is_counted() {
        let refusals = BoardRefusals::default();
        let owner = |board_id| TokenOwner { board_id, board: format!("b{board_id}") };
        for t in 0..5 {
            refusals.note(&owner(1), t, "PUT /x".into(), &"y\n".repeat(400));
        }
        refusals.note(&owner(2), 9, String::new(), "z");
        let all = refusals.all();
        assert_eq!((all.len(), all[0].board.as_str(), all[1].t, all[1].count), (2, "b2", 4, 5));
        let dropped = |runs| refusals.note_dropped(&owner(3), 11, BoardDropped { runs, rows: 0 });
        dropped(2);
        dropped(2);
        let of = refusals.all().remove(0);
        assert!(of.count == 1 && of.detail.contains("2 runs"), "{of:?}");
        dropped(3);
        assert_eq!(refusals.all()[0].count, 2);
        assert!(all[1].detail.chars().count() <= LONGEST && !all[1].detail.contains('\n'));
    }
}
