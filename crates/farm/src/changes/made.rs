//! Changes as the tests of what handles them need them.

use super::{ChangeKind, FarmChange};

/// A change that says nothing, seen as it began; a test fills in what it is about.
pub fn made_change(board: &str, kind: ChangeKind, t: i64) -> FarmChange {
    FarmChange {
        board: board.to_owned(),
        kind,
        t,
        from: t,
        says: String::new(),
        evidence: Vec::new(),
        p: None,
        settings: Vec::new(),
        address: String::new(),
        subject: String::new(),
        since: None,
        acknowledged: None,
        conditions: Vec::new(),
    }
}
