//! What boards were refused since the server was started: the latest of each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::records::BoardRefusal;
use crate::store::TokenOwner;

/// Letters of a request and of a reason.
const LONGEST: usize = 300;

/// By board: as many as have a token.
#[derive(Debug, Default)]
pub struct BoardRefusals(Mutex<BTreeMap<i64, BoardRefusal>>);

impl BoardRefusals {
    pub fn note(&self, owner: &TokenOwner, t: i64, request: String, detail: &str) {
        let short = |text: &str| model::text::clean(text).chars().take(LONGEST).collect::<String>();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// All of them, the latest first.
    pub fn all(&self) -> Vec<BoardRefusal> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        assert!(all[1].detail.chars().count() <= LONGEST && !all[1].detail.contains('\n'));
    }
}
