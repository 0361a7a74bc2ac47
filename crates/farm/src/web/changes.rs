//! The changes of all boards: asks for those that were found, hands them to the view.

use std::sync::Arc;

use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::pages::WebOutcome;
use crate::changes::{FarmChange, SHOWN_DAYS};
use crate::pages;
use crate::pages::changes::ChangesView;
use crate::records::FarmBoard;

/// Between two looks for boards that have another day.
const EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// Finds changes before somebody asks for them.
pub async fn keep_changes(app: Arc<App>) {
    loop {
        if let Ok(boards) = app.store.boards().await {
            // What fails here fails on the page too, and is said there.
            let _ = app.changes.all(&app.store, &boards).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ChangesQuery {
    board: String,
    /// `all` for what needs no look too.
    only: String,
}

pub async fn page(State(app): State<Arc<App>>, Query(query): Query<ChangesQuery>) -> WebOutcome {
    let (boards, all) = found(&app).await?;
    let shown: Vec<FarmChange> = all.iter().filter(|one| fits(one, &query)).cloned().collect();
    let view = ChangesView {
        all: &shown,
        of: all.len(),
        boards: boards.len(),
        board: &query.board,
        every: query.only == "all",
    };
    Ok(WebAnswer::page(pages::changes::changes(&view)))
}

pub async fn json(State(app): State<Arc<App>>, Query(query): Query<ChangesQuery>) -> WebOutcome {
    let (_, mut all) = found(&app).await?;
    all.retain(|one| fits(one, &query));
    WebAnswer::json(&json!({ "schema": "onbeat.farm-changes/1", "days": SHOWN_DAYS, "changes": all }))
}

fn fits(one: &FarmChange, query: &ChangesQuery) -> bool {
    (query.board.is_empty() || one.board == query.board) && (query.only == "all" || one.kind.is_bad())
}

async fn found(app: &App) -> Result<(Vec<FarmBoard>, Vec<FarmChange>), Refusal> {
    let boards = app.store.boards().await?;
    let all = app.changes.all(&app.store, &boards).await?;
    Ok((boards, all))
}
