//! Rows that boards send: a request may be repeated, a line is stored once.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::ingest::bundle::is_id;
use crate::ingest::rows::{self, RowsOf};
use crate::store::RowBatch;
use crate::wall_clock::now_ns;
use crate::web::edge::answer::Refusal;
use crate::web::login::sender::{BoardSender, clock_of, content, intake};
use crate::web::receive::{Received, with};
use crate::web::state::app::App;

const ROWS_LIMIT: u64 = 1 << 20;

pub async fn put_rows(
    State(app): State<Arc<App>>,
    BoardSender(owner): BoardSender,
    Path((boot, recording, series, first)): Path<(String, String, String, u64)>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let intake = intake(&app)?;
    if ![&boot, &recording].into_iter().all(|name| is_id(name)) || series.is_empty() || series.len() > 64 {
        return Err(Refusal::bad("invalid boot, recording or series: send those of the header of the rows"));
    }
    let text = content(&headers, &body, ROWS_LIMIT)?;
    let of = RowsOf { boot, recording, series: model::text::clean(&series) };
    let rows = match rows::read(&of, &text) {
        Ok(rows) => rows,
        Err(fault) if fault.is_size => return with(StatusCode::PAYLOAD_TOO_LARGE, &json!(fault)),
        Err(fault) => return with(StatusCode::UNPROCESSABLE_ENTITY, &json!(fault)),
    };
    if rows.first().is_some_and(|row| row.seq != first) {
        return Err(Refusal::bad(
            "the number of the first row differs from the address: use the number of the row",
        ));
    }
    intake.quota.take(&app.store, &owner, text.len() as u64).await?;
    let (clock, received_ns) = (clock_of(&headers), now_ns().0);
    let (lines, cut_off): (Vec<usize>, _) = (rows.iter().map(|row| row.line).collect(), rows::cut_off(&text));
    let batch = RowBatch { board_id: owner.board_id, of, clock, received_ns, rows };
    // Of all that wait for the disk the rows alone are held.
    drop((headers, body, text));
    let answer = intake.put(batch).await?;
    if let Some(at) = answer.future {
        let line = lines.get(at);
        let detail = "the row is in the future: set the board's clock, and omit the row";
        return with(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "line": line, "detail": detail }));
    }
    let status = match (answer.seq.is_empty(), answer.stored) {
        (false, _) => StatusCode::CONFLICT,
        (true, 0) => StatusCode::OK,
        _ => StatusCode::CREATED,
    };
    let mut told = json!(answer);
    if cut_off > 0 {
        told["cut_off"] = json!(cut_off);
    }
    with(status, &told)
}
