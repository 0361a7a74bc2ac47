//! Data that the farm has of the requesting board.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::json;

use crate::ingest::bundle::is_id;
use crate::ingest::environment::hex;
use crate::ingest::rows::RowsOf;
use crate::pages::parts::escaped;
use crate::web::edge::answer::{Refusal, WebAnswer};
use crate::web::login::sender::BoardSender;
use crate::web::state::app::App;

/// Limit of runs and of ranges of rows in one answer.
const MOST_NAMED: i64 = 10_000;
/// Limit of runs in the address of a request.
const MOST_ASKED: usize = 64;

/// Requested part: from the beginning, or from `next` of the previous answer.
#[derive(Deserialize)]
pub struct MeQuery {
    /// Limit of runs and of ranges, each.
    most: Option<i64>,
    rows_after: Option<String>,
    runs_before: Option<String>,
}

impl MeQuery {
    /// True if it continues a previous answer.
    fn goes_on(&self) -> bool {
        self.rows_after.is_some() || self.runs_before.is_some()
    }

    /// Row after which ranges are requested, `BOOT/RECORDING/SERIES/NUMBER`.
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
        let none = || Refusal::bad("invalid `rows_after`: expected the value of `next` in an earlier answer");
        parse().map(Some).ok_or_else(none)
    }

    /// Id before which runs are requested.
    fn run(&self) -> Option<&str> {
        self.runs_before.as_deref().or_else(|| (!self.goes_on()).then_some(""))
    }
}

/// `GET /v1/me`: the board's runs with their digests, and the ranges of its stored rows.
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

/// `GET /v1/me/removed?runs=ID,ID`: those of some runs that were removed here and are not stored
/// again. A board asks about refused runs, and sends the others.
pub async fn removed(
    State(app): State<Arc<App>>,
    BoardSender(_): BoardSender,
    Query(query): Query<RemovedQuery>,
) -> Result<WebAnswer, Refusal> {
    let asked: Vec<&str> = query.runs.split(',').filter(|id| is_id(id)).collect();
    if asked.len() > MOST_ASKED {
        return Err(Refusal::bad(format!("more than {MOST_ASKED} runs: ask for fewer at once")));
    }
    WebAnswer::json(&json!({ "removed": app.store.not_again(&asked).await? }))
}
