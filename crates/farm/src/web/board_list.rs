//! The list of boards as data: what the first page shows of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::acknowledge::mark;
use super::answer::Refusal;
use super::app::App;
use super::pages::FleetQuery;
use super::unnamed;
use super::visitor::Visitor;
use crate::changes::ChangeKind;
use crate::records::FarmBoard;

/// A board of the list.
#[derive(Serialize)]
pub struct ListedBoard {
    #[serde(flatten)]
    pub board: FarmBoard,
    /// The first second of the day with its largest latency.
    pub max_day: Option<i64>,
    /// The kinds of what changed on it and was not acknowledged.
    pub changes: Vec<ChangeKind>,
}

/// The boards that are asked for, as who asks may see them.
pub async fn listed(app: &App, visitor: &Visitor, query: &FleetQuery) -> Result<Vec<ListedBoard>, Refusal> {
    let mut boards = app.store.boards().await?;
    let mut changes = app.changes.known(&boards).await;
    mark(app, &mut changes).await?;
    unnamed::boards(visitor, &mut boards);
    unnamed::changes(visitor, &boards, &mut changes);
    query.filter(&mut boards)?;
    query.order(&mut boards)?;
    let mut open: BTreeMap<String, Vec<ChangeKind>> = BTreeMap::new();
    for one in changes.into_iter().filter(|one| one.is_open()) {
        open.entry(one.board).or_default().push(one.kind);
    }
    let list = |board: FarmBoard| ListedBoard {
        max_day: board.worst_day().map(|day| day.t),
        changes: open.remove(&board.board).unwrap_or_default(),
        board,
    };
    Ok(boards.into_iter().map(list).collect())
}
