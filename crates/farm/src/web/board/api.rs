//! Data of the pages as JSON and CSV.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::pages::parts::escaped;
use crate::records::{SeriesKey, Tier};
use crate::store::{AskedSlots, TimeStretch};
use crate::web::answers::answer_parts::in_parts;
use crate::web::answers::answer_turns::AskingClient;
use crate::web::answers::files::archive;
use crate::web::answers::histogram_parts::{AskedHistograms, HistogramForm, HistogramParts};
use crate::web::answers::known::{chosen, known_board};
use crate::web::answers::slot_parts::{SlotForm, SlotParts};
use crate::web::answers::unnamed;
use crate::web::changes::acknowledge::mark;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::run::judged;
use crate::web::run::runs::{RunsAsked, labels_of};
use crate::web::state::app::App;

/// Limit of slots in one answer: a year of a recorder with one per five minutes.
const MOST_SLOTS: i64 = 110_000;
/// Limit of histograms in one answer: ten years of days, five months of hours.
const MOST_ROWS: u64 = 3_700;
/// Limit of their packed bytes; as JSON they take twelve times as much.
const MOST_BYTES: u64 = 4 << 20;
/// Histograms that are read at once to find a CPU.
const AT_ONCE: i64 = 64;

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
    // A route's parameter is a whole part of an address, so that the archive has no separate route.
    if let Some(run) = id.strip_suffix(".tar") {
        return match visitor.is_unnamed() {
            true => {
                Err(Refusal::new(StatusCode::UNAUTHORIZED, "files of a run contain names: log in at /login"))
            }
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

/// Requested rows; times are seconds since 1970.
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
    Extension(form): Extension<AnswerForm>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
    Query(asked): RunsAsked,
    Extension(client): Extension<AskingClient>,
) -> Result<Response, Refusal> {
    let asked = asked_slots(&app, &visitor, name, (&query, &asked)).await?;
    let (empty, form) = match (form, query.by.as_str()) {
        (AnswerForm::Csv, "") => (WebAnswer::csv(String::new()), SlotForm::Csv),
        (AnswerForm::Csv, "cpu") => (WebAnswer::csv(String::new()), SlotForm::CsvByCpu),
        (AnswerForm::Csv, _) => {
            return Err(Refusal::bad("invalid `by`: the only accepted value is cpu"));
        }
        _ => (WebAnswer::empty_json(), SlotForm::Json),
    };
    // The series, escaped as in an address, because a header takes no other letters.
    let of = [("onbeat-series", escaped(&asked.key.series)), ("onbeat-plan", escaped(&asked.key.plan))];
    let parts = SlotParts::of(app.store.clone(), asked, visitor, form, query.step);
    Ok((of, in_parts((&app, &client), empty, parts).await?).into_response())
}

/// Requested slots, up to the limit.
async fn asked_slots(
    app: &App,
    visitor: &Visitor,
    board: String,
    (query, asked): (&RowsQuery, &[(String, String)]),
) -> Result<AskedSlots, Refusal> {
    let labels = labels_of(asked)?;
    if visitor.is_unnamed() && !labels.is_empty() {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "labels need a login: log in at /login"));
    }
    let key = key_of(app, visitor, &board, query).await?;
    let within = TimeStretch { from: query.from, to: query.to };
    let asked = AskedSlots { board, key, within, labels };
    if app.store.count_slots(&asked, MOST_SLOTS + 1).await? > MOST_SLOTS.unsigned_abs() {
        return Err(Refusal::bad(
            "more than 110,000 intervals of five minutes or less: narrow the range with from= and to=, in \
             seconds since 1970",
        ));
    }
    Ok(asked)
}

async fn key_of(app: &App, visitor: &Visitor, name: &str, query: &RowsQuery) -> Result<SeriesKey, Refusal> {
    let board = known_board(app, visitor, name).await?;
    chosen(&app.store.series(&board.board).await?, &query.series, &query.plan)
}

/// Requested histograms, up to the limit.
async fn asked_histograms(
    app: &App,
    visitor: &Visitor,
    board: String,
    query: &RowsQuery,
) -> Result<AskedHistograms, Refusal> {
    let tier =
        Tier::of_name(&query.tier).ok_or_else(|| Refusal::bad("invalid `tier`: expected 5m, 1h or 1d"))?;
    let key = key_of(app, visitor, &board, query).await?;
    let within = TimeStretch { from: query.from, to: query.to };
    let (rows, bytes) = app.store.size_of_tiers(&board, &key, tier, within).await?;
    if rows > MOST_ROWS || bytes > MOST_BYTES {
        return Err(Refusal::bad(
            "too many histograms: narrow the range with from= and to=, or use a longer tier",
        ));
    }
    let asked = AskedHistograms { board, key, tier, within, cpu: query.cpu };
    check_cpu(app, &asked).await?;
    Ok(asked)
}

/// Refuses a CPU that none of the histograms has, where there are any.
async fn check_cpu(app: &App, of: &AskedHistograms) -> Result<(), Refusal> {
    let Some(cpu) = of.cpu else { return Ok(()) };
    let (mut there, mut within) = (BTreeSet::new(), of.within);
    loop {
        let rows = app.store.first_tiers(&of.board, &of.key, of.tier, within, AT_ONCE).await?;
        let Some(last) = rows.last() else { break };
        within.from = last.t.saturating_add(1);
        there.extend(rows.iter().flat_map(|row| &row.cpus).map(|one| one.cpu.0));
        if there.contains(&cpu) {
            return Ok(());
        }
    }
    if there.is_empty() {
        return Ok(());
    }
    let there: Vec<String> = there.iter().map(u32::to_string).collect();
    let there = there.join(", ");
    Err(Refusal::not_found(format!("CPU {cpu} has no histogram: choose one of {there}")))
}

pub async fn histograms(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Path(name): Path<String>,
    Query(query): Query<RowsQuery>,
    Extension(client): Extension<AskingClient>,
) -> Result<Response, Refusal> {
    let asked = asked_histograms(&app, &visitor, name, &query).await?;
    if form == AnswerForm::Csv {
        let parts = HistogramParts::of(app.store.clone(), asked, HistogramForm::Csv);
        return in_parts((&app, &client), WebAnswer::csv(String::new()), parts).await;
    }
    let invalid = app.store.invalid_runs(&asked.board, query.from).await?;
    let form = HistogramForm::Json { tier: query.tier, invalid };
    let parts = HistogramParts::of(app.store.clone(), asked, form);
    in_parts((&app, &client), WebAnswer::empty_json(), parts).await
}
