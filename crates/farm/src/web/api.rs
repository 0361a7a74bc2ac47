//! What the pages show, as JSON and CSV.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::acknowledge::mark;
use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::board_list::listed;
use super::data::{HistogramDocument, HistogramsDocument, by_cpu, csv_head, csv_row, histograms_csv};
use super::files::archive;
use super::heat_bytes;
use super::judged;
use super::pages::{FleetQuery, WebOutcome, chosen, known_board};
use super::runs::{RunsAsked, labels_of};
use super::unnamed;
use super::visitor::Visitor;
use crate::changes::invalid_within;
use crate::joined_slots::join;
use crate::pages::parts::escaped;
use crate::records::{FarmSlot, SLOT, SeriesKey, Tier, TierRow};
use crate::store::TimeStretch;

/// Slots that one answer is made of, each of a recording: a year, where a recorder has one in five
/// minutes.
const MOST_SLOTS: i64 = 110_000;
/// Histograms in one answer: ten years of days, five months of hours.
const MOST_ROWS: u64 = 3_700;
/// And their bytes as they are packed: as JSON they take twelve times as much.
const MOST_BYTES: u64 = 4 << 20;

pub async fn boards(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<FleetQuery>,
) -> WebOutcome {
    let boards = listed(&app, &visitor, &query).await?;
    WebAnswer::json(&json!({ "schema": "onbeat.farm-boards/1", "boards": boards }))
}

pub async fn board(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?;
    let mut series = app.store.series(&board.board).await?;
    unnamed::series(&visitor, &mut series);
    let mut runs = app.store.runs(&board.board, 1_000).await?;
    let mut culprits = app.store.culprits(Some(&board.board), 200).await?;
    let audit = if visitor.is_unnamed() { None } else { judged::latest(&app, &runs).await };
    let mut changes = app.changes.of_board(&app.store, &board.board).await?;
    mark(&app, &mut changes).await?;
    changes.retain(|one| one.is_open());
    unnamed::changes(&visitor, std::slice::from_ref(&board), &mut changes);
    unnamed::runs(&visitor, &mut runs);
    if visitor.is_unnamed() {
        culprits.clear();
    }
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-board/1", "board": board, "series": series, "runs": runs, "culprits": culprits,
        "changes": changes, "audit": audit,
    }))
}

pub async fn run(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    // A route's parameter is a whole part of an address, so that the archive has none of its own.
    if let Some(run) = id.strip_suffix(".tar") {
        return match visitor.is_unnamed() {
            true => Err(Refusal::new(StatusCode::UNAUTHORIZED, "a run's files have names: log in at /login")),
            false => archive(&app, run).await,
        };
    }
    match app.store.run(&id).await? {
        Some(mut run) => {
            // One of a board that is not shown is not shown either.
            if visitor.is_unnamed() {
                known_board(&app, &visitor, &run.board).await?;
            }
            unnamed::runs(&visitor, std::slice::from_mut(&mut run));
            Ok(WebAnswer::json(&run)?.into_response())
        }
        None => Err(Refusal::not_found("no run has this id: /v1/boards/BOARD lists those of a board")),
    }
}

pub async fn refused(State(app): State<Arc<App>>) -> WebOutcome {
    let (folders, boards) = (app.refused(), app.refusals.all());
    let (refused, left_out) = (&folders.kept, folders.left_out());
    WebAnswer::json(&json!({
        "schema": "onbeat.farm-refused/1", "refused": refused, "left_out": left_out, "boards": boards,
    }))
}

/// Which rows are asked for; times are seconds since 1970.
#[derive(Deserialize)]
#[serde(default)]
pub struct RowsQuery {
    from: i64,
    to: i64,
    series: String,
    plan: String,
    tier: String,
    cpu: Option<u32>,
    step: i64,
    /// `cpu` for a line of each CPU; of slots as CSV alone, as JSON they have them.
    by: String,
}

impl Default for RowsQuery {
    fn default() -> RowsQuery {
        let text = String::new;
        RowsQuery {
            from: 0,
            to: i64::MAX,
            series: text(),
            plan: text(),
            tier: "1d".into(),
            cpu: None,
            step: 0,
            by: text(),
        }
    }
}

pub async fn slots(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
    Query(asked): RunsAsked,
) -> Result<Response, Refusal> {
    let (key, slots) = found_slots(&app, &visitor, &name, (&query, &asked)).await?;
    // Which series it is, as an address has it: a header holds no other letters.
    let of = [("onbeat-series", escaped(&key.series)), ("onbeat-plan", escaped(&key.plan))];
    Ok((of, WebAnswer::json(&slots)?).into_response())
}

pub async fn slots_csv(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
    Query(asked): RunsAsked,
) -> WebOutcome {
    let (_, slots) = found_slots(&app, &visitor, &name, (&query, &asked)).await?;
    match query.by.as_str() {
        "" => Ok(WebAnswer::csv(csv(&slots))),
        "cpu" => Ok(WebAnswer::csv(csv(&by_cpu(&slots)))),
        _ => Err(Refusal::bad("by is none but cpu: ask for that, or leave it out")),
    }
}

async fn found_slots(
    app: &App,
    visitor: &Visitor,
    name: &str,
    (query, asked): (&RowsQuery, &[(String, String)]),
) -> Result<(SeriesKey, Vec<FarmSlot>), Refusal> {
    let labels = labels_of(asked)?;
    if visitor.is_unnamed() && !labels.is_empty() {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "labels are for those who log in: /login"));
    }
    let key = key_of(app, visitor, name, query).await?;
    let within = TimeStretch { from: query.from, to: query.to };
    let mut slots = app.store.labelled_slots(name, &key, within, &labels, MOST_SLOTS + 1).await?;
    unnamed::slots(visitor, &mut slots);
    if slots.len() as i64 > MOST_SLOTS {
        return Err(Refusal::bad(
            "more than 110,000 five minutes, or shorter intervals of a recorder: ask for less with from= and \
             to=, in seconds since 1970",
        ));
    }
    Ok((key, stepped(slots, query.step)))
}

async fn key_of(app: &App, visitor: &Visitor, name: &str, query: &RowsQuery) -> Result<SeriesKey, Refusal> {
    let board = known_board(app, visitor, name).await?;
    chosen(&app.store.series(&board.board).await?, &query.series, &query.plan)
}

/// Slots joined so that each step has one: a recorder may have shorter intervals, and two
/// recordings the same five minutes. The largest latency stays whole, with its time and names.
fn stepped(slots: Vec<FarmSlot>, step: i64) -> Vec<FarmSlot> {
    let step = step.max(SLOT);
    let mut joined: Vec<FarmSlot> = Vec::new();
    for slot in slots {
        let t = slot.t - slot.t.rem_euclid(step);
        match joined.last_mut().filter(|last| last.t == t) {
            Some(last) => join(last, slot),
            None => joined.push(FarmSlot { t, ..slot }),
        }
    }
    joined
}

fn csv(slots: &[FarmSlot]) -> String {
    let rows = slots.iter().map(csv_row);
    [csv_head().to_owned()].into_iter().chain(rows).fold(String::new(), |text, row| text + &row + "\n")
}

async fn found_histograms(
    app: &App,
    visitor: &Visitor,
    name: &str,
    query: &RowsQuery,
) -> Result<(SeriesKey, Tier, Vec<TierRow>), Refusal> {
    let tier = Tier::of_name(&query.tier)
        .ok_or_else(|| Refusal::bad("tier is none of 5m, 1h and 1d: choose one of these"))?;
    let key = key_of(app, visitor, name, query).await?;
    let within = TimeStretch { from: query.from, to: query.to };
    let (rows, bytes) = app.store.size_of_tiers(name, &key, tier, within).await?;
    if rows > MOST_ROWS || bytes > MOST_BYTES {
        return Err(Refusal::bad(
            "too many histograms: ask for less with from= and to=, or for a longer tier",
        ));
    }
    let rows = app.store.tiers(name, &key, tier, within).await?;
    Ok((key, tier, rows))
}

pub async fn histograms_table(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
) -> WebOutcome {
    let (_, _, rows) = found_histograms(&app, &visitor, &name, &query).await?;
    Ok(WebAnswer::csv(histograms_csv(&rows, query.cpu)))
}

pub async fn histograms(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (key, tier, rows) = found_histograms(&app, &visitor, &name, &query).await?;
    let varied = (header::VARY, "accept");
    if heat_bytes::is_wanted(&headers) {
        let kind = (header::CONTENT_TYPE, heat_bytes::KIND);
        return Ok(([kind, varied], heat_bytes::bytes(tier, &rows, query.cpu)).into_response());
    }
    let invalid = app.store.invalid_runs(&name, query.from).await?;
    let marked = |row: TierRow| {
        let is_invalid = invalid_within(&invalid, &key, tier, row.t).is_some();
        HistogramDocument::of(row, query.cpu).marked(is_invalid)
    };
    let all: Vec<HistogramDocument> = rows.into_iter().map(marked).collect();
    let document = WebAnswer::json(&HistogramsDocument {
        schema: "onbeat.farm-histograms/1",
        series: &key.series,
        plan: &key.plan,
        tier: &query.tier,
        histograms: all,
    })?;
    Ok(([varied], document).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::SlotPeak;
    use model::units::{Cpu, Nanos};

    fn slot(t: i64, n: u64, max: i64) -> FarmSlot {
        let cpus = vec![SlotPeak { cpu: Cpu(1), n, max_ns: Some(Nanos(max)), ..SlotPeak::default() }];
        FarmSlot {
            t,
            n,
            missed: 1,
            max_ns: Some(Nanos(max)),
            victim: format!("v{max}"),
            cpus,
            ..FarmSlot::default()
        }
    }

    #[test]
    fn joined_slots_lose_no_sample_and_no_maximum() {
        let joined = stepped(vec![slot(0, 1, 5), slot(300, 2, 9), slot(900, 4, 7), slot(3_600, 8, 1)], 3_600);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].t, joined[0].n, joined[0].missed, joined[0].max_ns), (0, 7, 3, Some(Nanos(9))));
        assert_eq!((joined[0].victim.as_str(), joined[0].cpus[0].n, joined[1].n), ("v9", 7, 8));
    }

    #[test]
    fn intervals_below_five_minutes_and_recordings_beside_each_other_are_one_slot() {
        let minutes = [slot(0, 1, 5), slot(0, 2, 9), slot(0, 4, 7), slot(300, 8, 1)];
        for step in [i64::MIN, 0, 60, 300] {
            let joined = stepped(minutes.to_vec(), step);
            let told = |one: &FarmSlot| (one.t, one.n, one.missed, one.max_ns, one.victim.clone());
            let wanted =
                [(0, 7, 3, Some(Nanos(9)), "v9".to_owned()), (300, 8, 1, Some(Nanos(1)), "v1".to_owned())];
            assert_eq!(joined.iter().map(told).collect::<Vec<_>>(), wanted, "{step}");
            assert_eq!((joined[0].cpus.len(), joined[0].cpus[0].max_ns), (1, Some(Nanos(9))));
        }
        assert!(stepped(Vec::new(), 0).is_empty());
    }
}
