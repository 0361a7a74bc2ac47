//! Lists as data that no other file has.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::json;

use crate::users::Role;
use crate::wall_clock::now;
use crate::web::answers::known::known_board;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

/// Entries of the audit log in an answer, by default and at most: more are not stored.
pub const AUDIT_SHOWN: i64 = 100;
const MOST_OF_AUDIT: i64 = 10_000;
/// Labels of a board in one answer.
const MOST_LABELS: i64 = 10_000;

#[derive(Deserialize)]
#[serde(default)]
pub struct AuditQuery {
    limit: i64,
}

impl Default for AuditQuery {
    fn default() -> AuditQuery {
        AuditQuery { limit: AUDIT_SHOWN }
    }
}

pub async fn audit(State(app): State<Arc<App>>, Query(query): Query<AuditQuery>) -> WebOutcome {
    if !(1..=MOST_OF_AUDIT).contains(&query.limit) {
        return Err(Refusal::bad("invalid `limit`: expected 1 to 10000"));
    }
    let entries = app.store.audit(query.limit).await?;
    WebAnswer::json(&json!({ "schema": "onbeat.farm-audit/1", "entries": entries }))
}

pub async fn budgets(State(app): State<Arc<App>>) -> WebOutcome {
    WebAnswer::json(&app.store.all_budgets().await?)
}

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

pub async fn users(State(app): State<Arc<App>>) -> WebOutcome {
    WebAnswer::json(&json!({ "schema": "onbeat.farm-users/1", "users": app.store.users().await? }))
}

pub async fn refused(State(app): State<Arc<App>>, Extension(form): Extension<AnswerForm>) -> WebOutcome {
    let (folders, boards) = (app.refused(), app.refusals.all());
    let (refused, left_out) = (&folders.kept, folders.left_out());
    match form {
        AnswerForm::Csv => table("place,reason", refused),
        _ => WebAnswer::json(&json!({
            "schema": "onbeat.farm-refused/1", "refused": refused, "left_out": left_out, "boards": boards,
        })),
    }
}

/// The labels of a board's runs and rows.
pub async fn labels(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?.board;
    let labels = app.store.labels(&board, MOST_LABELS).await?;
    WebAnswer::json(&json!({ "schema": "onbeat.farm-labels/1", "board": board, "labels": labels }))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LabelsQuery {
    board: String,
}

pub async fn labels_csv(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<LabelsQuery>,
) -> WebOutcome {
    if query.board.is_empty() {
        return Err(Refusal::bad("labels belong to a board: name one with board="));
    }
    let board = known_board(&app, &visitor, &query.board).await?.board;
    table("name,value,runs,first,last", &app.store.labels(&board, MOST_LABELS).await?)
}
