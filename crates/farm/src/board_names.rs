//! User-defined names of boards.

use std::collections::BTreeMap;

use crate::records::FarmBoard;

/// User-defined names of boards, by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardNames(BTreeMap<String, String>);

impl BoardNames {
    pub fn of_boards(all: &[FarmBoard]) -> BoardNames {
        all.iter().map(|one| (one.board.clone(), one.name.clone())).collect()
    }

    /// The name of a board; its key if it has no other name.
    pub fn of<'a>(&'a self, board: &'a str) -> &'a str {
        self.0.get(board).map(String::as_str).filter(|name| !name.is_empty()).unwrap_or(board)
    }
}

impl FromIterator<(String, String)> for BoardNames {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(all: I) -> BoardNames {
        BoardNames(all.into_iter().collect())
    }
}
