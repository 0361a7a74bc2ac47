//! Sample changes for tests.

use super::{ChangeKind, FarmChange};

/// A change without text, seen as it began; a test fills in the fields it needs.
pub fn made_change(board: &str, kind: ChangeKind, t: i64) -> FarmChange {
    FarmChange {
        board: board.to_owned(),
        kind,
        t,
        from: t,
        says: String::new(),
        claim: String::new(),
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
