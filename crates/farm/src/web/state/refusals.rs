//! Refused requests of boards since the server was started: the latest of each, equal ones once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use model::text::several;

use crate::records::BoardRefusal;
use crate::store::TokenOwner;

/// Limit of the letters of a request and of a reason.
const LONGEST: usize = 300;

/// Limit of different refusals of a board.
const MOST_OF_ONE: usize = 20;
/// Limit for all boards together; beyond it, each board keeps only its latest.
const MOST: usize = 10_000;

/// Refusals by board with a token.
#[derive(Debug, Default)]
pub struct BoardRefusals {
    last: Mutex<LastRefusals>,
    /// Losses that boards reported.
    dropped: Mutex<BTreeMap<i64, BoardDropped>>,
    /// Numbers of skipped runs that boards reported.
    left_out: Mutex<BTreeMap<i64, u64>>,
}

/// Refusals of a board, the latest last.
#[derive(Debug, Default)]
struct LastRefusals {
    of: BTreeMap<i64, VecDeque<BoardRefusal>>,
    all: usize,
}

/// Total losses of a board before sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardDropped {
    pub runs: u64,
    pub rows: u64,
}

impl BoardRefusals {
    pub fn note(&self, owner: &TokenOwner, t: i64, request: String, detail: &str) {
        let short = |text: &str| model::text::clean(text).chars().take(LONGEST).collect::<String>();
        let (request, detail) = (short(&request), short(detail));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if last.all < MOST { MOST_OF_ONE } else { 1 };
        let of = last.of.entry(owner.board_id).or_default();
        let before = of.len();
        let same = of.iter().position(|one| one.detail == detail).and_then(|at| of.remove(at));
        let count = same.map_or(0, |one| one.count).saturating_add(1);
        of.push_back(BoardRefusal { board: owner.board.clone(), t, request, detail, count });
        while of.len() > most {
            of.pop_front();
        }
        let after = of.len();
        last.all = last.all + after - before;
    }

    /// Notes the losses that a board reports, if they have increased.
    pub fn note_dropped(&self, owner: &TokenOwner, t: i64, of: BoardDropped) {
        let before = {
            let mut all = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(owner.board_id, of).unwrap_or_default()
        };
        if of.runs > before.runs || of.rows > before.rows {
            let (runs, rows) = (several(of.runs, "run", "runs"), several(of.rows, "row", "rows"));
            let detail = format!(
                "it dropped {runs} and {rows} before they could be sent: check why the farm was not reached, \
                 or give its onbeat-push a larger --spool and its onbeat watch a larger --size"
            );
            self.note(owner, t, String::new(), &detail);
        }
    }

    /// Notes the number of runs that a board skips, if it has increased.
    pub fn note_left_out(&self, owner: &TokenOwner, t: i64, runs: u64) {
        let before = {
            let mut all = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(owner.board_id, runs).unwrap_or_default()
        };
        if runs > before {
            let detail = format!(
                "it skips {} that the farm refused or that cannot be read: see the output of its onbeat-push",
                several(runs, "run", "runs")
            );
            self.note(owner, t, String::new(), &detail);
        }
    }

    /// All of them, the latest first.
    pub fn all(&self) -> Vec<BoardRefusal> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<BoardRefusal> = last.of.values().flat_map(|of| of.iter().rev()).cloned().collect();
        all.sort_by(|a, b| (b.t, &a.board).cmp(&(a.t, &b.board)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_each_board_stay_and_equal_ones_are_counted() {
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
        assert!(refusals.all()[0].detail.contains("3 runs"));
        for runs in [4, 4, 2] {
            refusals.note_left_out(&owner(4), 11, runs);
        }
        let of: Vec<_> = refusals.all().into_iter().filter(|one| one.board == "b4").collect();
        assert!(of.len() == 1 && of[0].count == 1 && of[0].detail.contains("4 runs"), "{of:?}");
        assert!(all[1].detail.chars().count() <= LONGEST && !all[1].detail.contains('\n'));
        // Another one between two that are equal.
        refusals.note(&owner(2), 12, "PUT /a".into(), "other");
        refusals.note(&owner(2), 12, "PUT /b".into(), "z");
        let of: Vec<_> = refusals.all().into_iter().filter(|one| one.board == "b2").collect();
        let seen = |at: usize| (of[at].detail.as_str(), of[at].count, of[at].request.as_str());
        assert_eq!((of.len(), seen(0), seen(1)), (2, ("z", 2, "PUT /b"), ("other", 1, "PUT /a")));
    }

    #[test]
    fn many_refusals_take_no_more_memory_than_a_bound() {
        let refusals = BoardRefusals::default();
        let owner = |board_id| TokenOwner { board_id, board: format!("b{board_id}") };
        for n in 0..100 {
            refusals.note(&owner(1), n, String::new(), &format!("why {n}"));
        }
        let of = refusals.all();
        assert_eq!((of.len(), of[0].detail.as_str(), of[19].detail.as_str()), (20, "why 99", "why 80"));
        for board in 0..2_000 {
            for n in 0..20 {
                refusals.note(&owner(board), 200, String::new(), &format!("why {n}"));
            }
        }
        let all = refusals.all();
        assert!(all.len() <= MOST + 2_000, "{}", all.len());
        assert_eq!(all.len(), refusals.last.lock().unwrap().all);
        assert!(all.iter().any(|one| one.board == "b1999" && one.detail == "why 19"));
    }
}
