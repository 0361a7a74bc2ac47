//! What the pages of administration show, as data: storage, what a board sent, people.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use serde_json::json;

use super::answer::WebAnswer;
use super::app::App;
use super::pages::{WebOutcome, known_board};
use super::visitor::Visitor;
use crate::people::Role;
use crate::records::BoardRefusal;
use crate::wall_clock::now;

pub async fn storage(State(app): State<Arc<App>>, Extension(visitor): Extension<Visitor>) -> WebOutcome {
    // As on the page: codes are for those who may make them.
    let open_codes = match visitor.role() {
        Some(Role::Admin) => Some(app.store.open_codes(now()).await?),
        _ => None,
    };
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-storage/1", "keeps": app.intake.is_some(),
        "database_bytes": app.store.database_bytes().await, "sent_bytes": app.store.sent_bytes().await?,
        "bucket_trouble": app.bucket_trouble().unwrap_or_default(), "open_codes": open_codes,
    }))
}

/// What a board sent, and what it was refused since the server was started.
pub async fn sent(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?.board;
    let stored = app.store.stored_bytes(&board).await?;
    let (rows, missing) = app.store.gaps(&board).await?;
    let refused: Vec<BoardRefusal> =
        app.refusals.all().into_iter().filter(|one| one.board == board).collect();
    let tokens = app.store.tokens().await?.get(&board).copied().unwrap_or_default();
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-sent/1", "board": board, "tokens": tokens, "rows": rows, "missing": missing,
        "sent_bytes": app.store.kept_bytes_of(&board).await?, "row_bytes": stored.rows,
        "environment_bytes": stored.environments,
        "quota": app.intake.as_ref().map(|intake| intake.quota.bytes), "refused": refused,
    }))
}

pub async fn people(State(app): State<Arc<App>>) -> WebOutcome {
    WebAnswer::json(&json!({ "schema": "onbeat.farm-people/1", "people": app.store.people().await? }))
}
