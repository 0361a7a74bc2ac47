//! Lists of the pages as data: how they are narrowed down, and those that no other file has.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::pages::WebOutcome;
use super::runs::MOST_OF_BOARD;
use super::tables::table;
use crate::store::CulpritDaysFrom;

/// Runs that show a culprit, and days on which recorders name it, in one answer.
const MOST_RUNS: i64 = 1_000;
/// Entries of the audit log in an answer, by default and at most: more are not stored.
pub const AUDIT_SHOWN: i64 = 100;
const MOST_OF_AUDIT: i64 = 10_000;

pub async fn culprit(
    State(app): State<Arc<App>>,
    Path(fingerprint): Path<String>,
    Query(from): Query<CulpritDaysFrom>,
) -> WebOutcome {
    let Some(found) = app.store.culprit(&fingerprint).await? else {
        return Err(Refusal::not_found("no culprit has this address: /v1/culprits lists them"));
    };
    let runs = app.store.runs_with(&fingerprint, MOST_RUNS).await?;
    let days = app.store.culprit_days(&fingerprint, &from, MOST_RUNS).await?;
    let of_days = app.store.count_culprit_days(&fingerprint, &from).await?;
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-culprit/1", "culprit": found, "runs": runs, "days": days,
        "runs_left_out": found.runs.saturating_sub(runs.len() as u64),
        "days_left_out": of_days.saturating_sub(days.len() as u64),
    }))
}

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

pub async fn refused_csv(State(app): State<Arc<App>>) -> WebOutcome {
    table(&["place", "reason"], &app.refused().kept)
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LabelsQuery {
    board: String,
}

pub async fn labels_csv(State(app): State<Arc<App>>, Query(query): Query<LabelsQuery>) -> WebOutcome {
    if query.board.is_empty() {
        return Err(Refusal::bad("labels belong to a board: name one with board="));
    }
    if app.store.boards_of(Some(&query.board)).await?.is_empty() {
        return Err(Refusal::no_board(&query.board));
    }
    let labels = app.store.labels(&query.board, MOST_OF_BOARD).await?;
    table(&["name", "value", "runs", "first", "last"], &labels)
}
