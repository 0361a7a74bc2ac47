//! What the farm has of the board that asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::sender::BoardSender;
use crate::ingest::bundle::is_id;
use crate::ingest::environment::hex;

/// Runs, and stretches of rows, that the store names of a board.
const MOST_NAMED: usize = 10_000;
/// Runs that one request asks about: they stand in its address.
const MOST_ASKED: usize = 64;

/// `GET /v1/me`: its runs with their digests, and which of its rows are there.
pub async fn me(State(app): State<Arc<App>>, BoardSender(owner): BoardSender) -> Result<WebAnswer, Refusal> {
    let stretches = app.store.row_stretches(owner.board_id).await?;
    let runs = app.store.run_digests(owner.board_id).await?;
    // What is not named is lost only where everything is named.
    let is_whole = stretches.len() < MOST_NAMED && runs.len() < MOST_NAMED;
    let mut boots: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (boot, _, _, first, last) in &stretches {
        let of = boots.entry(boot).or_insert((*first, *last));
        *of = (of.0.min(*first), of.1.max(*last));
    }
    let rows = boots.iter().map(|(boot, of)| json!({ "boot": boot, "first": of.0, "last": of.1 }));
    let rows: Vec<_> = rows.collect();
    let mut named = Vec::with_capacity(stretches.len());
    for (boot, recording, series, first, last) in &stretches {
        named.push(json!({
            "boot": boot, "recording": recording, "series": series, "first": first, "last": last
        }));
    }
    let runs: Vec<_> = runs
        .into_iter()
        .map(|(id, complete, digest)| json!({ "id": id, "complete": complete, "digest": hex(&digest) }))
        .collect();
    let told = json!({
        "board": owner.board, "rows": rows, "stretches": named, "runs": runs, "whole": is_whole
    });
    WebAnswer::json(&told)
}

#[derive(Deserialize)]
pub struct RemovedQuery {
    #[serde(default)]
    runs: String,
}

/// `GET /v1/me/removed?runs=ID,ID`: those of some runs that were removed here and are not taken in
/// again. A board that was refused them asks, and sends the others.
pub async fn removed(
    State(app): State<Arc<App>>,
    BoardSender(_): BoardSender,
    Query(query): Query<RemovedQuery>,
) -> Result<WebAnswer, Refusal> {
    let asked: Vec<&str> = query.runs.split(',').filter(|id| is_id(id)).collect();
    if asked.len() > MOST_ASKED {
        return Err(Refusal::bad(format!("more than {MOST_ASKED} runs: ask about fewer at once")));
    }
    WebAnswer::json(&json!({ "removed": app.store.not_again(&asked).await? }))
}
