//! Changes of all boards: reads the found ones and passes them to the view.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::acknowledge::{follow, mark};
use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::found_changes::rates_of;
use super::pages::WebOutcome;
use super::unnamed;
use super::visitor::Visitor;
use crate::board_names::BoardNames;
use crate::changes::{ChangeIdentity, FarmChange, SHOWN_DAYS};
use crate::pages;
use crate::pages::changes::{ChangesShown, ChangesView};
use crate::people::Role;
use crate::records::FarmBoard;
use crate::wall_clock::now;

/// Interval of the search for boards with a new day.
const EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// Searches for changes in the background.
pub async fn keep_changes(app: Arc<App>) {
    loop {
        // A failure occurs on the page as well, and is shown there.
        if let Ok(found) = app.changes.look_through(&app.store).await {
            let _ = note_found(&app, &found, now()).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Notes when changes for the worse were found. A farm that keeps nothing would find all of them
/// anew each time that it is started.
pub async fn note_found(app: &App, all: &[FarmChange], now: i64) -> model::error::Result<()> {
    if app.intake.is_none() {
        return Ok(());
    }
    let bad = all.iter().filter(|one| one.kind.is_bad());
    let found: Vec<ChangeIdentity> = bad.map(ChangeIdentity::of).collect();
    app.store.note_found(&found, now).await?;
    follow(app, all).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ChangesQuery {
    board: String,
    /// `all` to include changes that are not open, `acknowledged` for acknowledged ones.
    only: String,
}

impl ChangesQuery {
    fn only(&self) -> Result<ChangesShown, Refusal> {
        let why = "invalid `only`: expected all or acknowledged";
        ChangesShown::of_word(&self.only).ok_or_else(|| Refusal::bad(why))
    }
}

pub async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<ChangesQuery>,
) -> WebOutcome {
    let only = query.only()?;
    let (boards, mut all) = found(&app, &visitor, &query.board).await?;
    all.retain(|one| fits(one, &query.board, only));
    let scope = app.changes.scope(&boards, &query.board).await;
    let view = ChangesView {
        all: &all,
        boards: if query.board.is_empty() { boards.len() } else { 1 },
        scope,
        board: &query.board,
        names: &BoardNames::of_boards(&boards),
        only,
        may_acknowledge: visitor.role() >= Some(Role::Operator),
    };
    Ok(WebAnswer::page(pages::changes::changes(&view)))
}

pub async fn json(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<ChangesQuery>,
) -> WebOutcome {
    let only = query.only()?;
    let (boards, mut all) = found(&app, &visitor, &query.board).await?;
    all.retain(|one| fits(one, &query.board, only));
    let scope = app.changes.scope(&boards, &query.board).await;
    let rates = rates_of(&app.store, &boards, &query.board).await?;
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-changes/1", "days": SHOWN_DAYS, "changes": all, "series": scope.series,
        "environments": scope.environments, "rates": rates,
    }))
}

/// The changes that a request names, as who asks may see them.
pub async fn asked_for(
    app: &App,
    visitor: &Visitor,
    query: &ChangesQuery,
) -> Result<Vec<FarmChange>, Refusal> {
    let only = query.only()?;
    let (_, mut all) = found(app, visitor, &query.board).await?;
    all.retain(|one| fits(one, &query.board, only));
    Ok(all)
}

fn fits(one: &FarmChange, board: &str, only: ChangesShown) -> bool {
    let wanted = match only {
        ChangesShown::Open => one.is_open(),
        ChangesShown::Acknowledged => one.acknowledged.is_some(),
        ChangesShown::All => true,
    };
    (board.is_empty() || one.board == board) && wanted
}

/// The boards and their changes, as who asks may see them. A board that is asked for and is not
/// there is refused: a list without changes would say that it has none.
async fn found(
    app: &App,
    visitor: &Visitor,
    board: &str,
) -> Result<(Vec<FarmBoard>, Vec<FarmChange>), Refusal> {
    let mut boards = app.store.boards().await?;
    let mut all = app.changes.all(&app.store, &boards).await?;
    mark(app, &mut all).await?;
    unnamed::boards(visitor, &mut boards);
    unnamed::changes(visitor, &boards, &mut all);
    match board.is_empty() || boards.iter().any(|one| one.board == board) {
        true => Ok((boards, all)),
        false => Err(Refusal::no_board(board)),
    }
}
