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
use crate::ingest::rows::RowsOf;
use crate::pages::parts::escaped;

/// Runs, and stretches of rows, that one answer names.
const MOST_NAMED: i64 = 10_000;
/// Runs that one request asks about: they stand in its address.
const MOST_ASKED: usize = 64;

/// What of it is asked for: all from the beginning, or what an answer before says is next.
#[derive(Deserialize)]
pub struct MeQuery {
    /// Of runs and of stretches at most so many each.
    most: Option<i64>,
    rows_after: Option<String>,
    runs_before: Option<String>,
}

impl MeQuery {
    /// Whether it begins where an answer before ended.
    fn goes_on(&self) -> bool {
        self.rows_after.is_some() || self.runs_before.is_some()
    }

    /// The row behind which stretches are asked for, `BOOT/RECORDING/SERIES/NUMBER`.
    fn row(&self) -> Result<Option<(RowsOf, i64)>, Refusal> {
        let Some(text) = &self.rows_after else {
            return Ok((!self.goes_on()).then(Default::default));
        };
        let parse = || {
            let (boot, rest) = text.split_once('/')?;
            let (recording, rest) = rest.split_once('/')?;
            let (series, seq) = rest.rsplit_once('/')?;
            let [boot, recording, series] = [boot, recording, series].map(str::to_owned);
            Some((RowsOf { boot, recording, series }, seq.parse::<i64>().ok()?))
        };
        let none = || Refusal::bad("rows_after is no row: ask with what `next` of an answer before says");
        parse().map(Some).ok_or_else(none)
    }

    /// The id before which runs are asked for.
    fn run(&self) -> Option<&str> {
        self.runs_before.as_deref().or_else(|| (!self.goes_on()).then_some(""))
    }
}

/// `GET /v1/me`: its runs with their digests, and which of its rows are there.
pub async fn me(
    State(app): State<Arc<App>>,
    BoardSender(owner): BoardSender,
    Query(query): Query<MeQuery>,
) -> Result<WebAnswer, Refusal> {
    let most = query.most.unwrap_or(MOST_NAMED).clamp(1, MOST_NAMED);
    let (mut stretches, mut runs, mut next) = (Vec::new(), Vec::new(), Vec::new());
    if let Some((of, seq)) = query.row()? {
        stretches = app.store.row_stretches(owner.board_id, &of, seq, most).await?;
    }
    if let Some(before) = query.run() {
        runs = app.store.run_digests(owner.board_id, before, most).await?;
    }
    let is_full = |length: usize| length as i64 >= most;
    if let Some((boot, recording, series, _, last)) = stretches.last().filter(|_| is_full(stretches.len())) {
        next.push(format!("rows_after={}", escaped(&format!("{boot}/{recording}/{series}/{last}"))));
    }
    if let Some(run) = runs.last().filter(|_| is_full(runs.len())) {
        next.push(format!("runs_before={}", escaped(&run.id)));
    }
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
        .map(|run| {
            let mut told = json!({ "id": run.id, "complete": run.complete, "digest": hex(&run.digest) });
            if !run.complete {
                // The last seconds of one that was killed are not in its document.
                told["manifest"] = json!(run.manifest.as_deref().map(hex));
            }
            told
        })
        .collect();
    // What is not named is lost only where everything is named.
    let mut told = json!({
        "board": owner.board, "rows": rows, "stretches": named, "runs": runs, "whole": next.is_empty()
    });
    if !next.is_empty() {
        told["next"] = json!(format!("most={most}&{}", next.join("&")));
    }
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
