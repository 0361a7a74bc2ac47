//! Page of a board, and that of its environments.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use model::units::Nanos;
use model::wall_time::nanos_of;
use serde::Deserialize;

use crate::pages;
use crate::pages::board::{BoardView, worst_of};
use crate::pages::board_span::BoardSpan;
use crate::pictures::long_term::LongTerm;
use crate::records::{FarmSlot, SeriesKey, Tier};
use crate::store::TimeStretch;
use crate::users::Role;
use crate::web::answers::known::{chosen, known_board};
use crate::web::answers::unnamed;
use crate::web::changes::acknowledge::mark;
use crate::web::edge::answer::{Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::run::judged;
use crate::web::state::app::App;
use crate::web::state::board_changes::reach;

const RUNS_SHOWN: i64 = 100;
const CULPRITS_OF_BOARD: i64 = 10;
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct BoardQuery {
    series: String,
    plan: String,
    span: String,
    to: String,
}

pub async fn board(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Query(query): Query<BoardQuery>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?;
    let mut series = app.store.series(&board.board).await?;
    unnamed::series(&visitor, &mut series);
    let chosen = chosen(&series, &query.series, &query.plan)?;
    let span = BoardSpan::of_word(&query.span)
        .ok_or_else(|| Refusal::bad("invalid `span`: expected day, week, month, year or all"))?;
    let until = until(&query.to)?;
    let last = series.iter().find(|one| one.key == chosen).map_or(board.last, |one| one.last);
    let long_term = long_term(&app, &board.board, &chosen, span, span.stretch(until, last)).await?;
    let reach = reach(&app.store, &board, &chosen).await?;
    let mut runs = app.store.runs(&board.board, RUNS_SHOWN).await?;
    let mut culprits = app.store.culprits(Some(&board.board), CULPRITS_OF_BOARD).await?;
    let mut environments = app.store.environments(&board.board).await?;
    // A day and a week are those that the picture shows.
    let latest = series.iter().map(|one| one.last).max().filter(|_| !span.is_fine()).unwrap_or(last);
    let maxima = app.store.worst_days(&board.board, span.stretch(until, latest)).await?;
    let mut worst = match worst_of(&maxima) {
        Some((key, day)) => worst_of_day(&app, &board.board, key, day.t).await?,
        None => None,
    };
    let mut changes = app.changes.of_board(&app.store, &board.board).await?;
    mark(&app, &mut changes).await?;
    changes.retain(|one| one.is_open());
    let audit = if visitor.is_unnamed() { None } else { judged::latest(&app, &runs).await };
    unnamed::changes(&visitor, std::slice::from_ref(&board), &mut changes);
    unnamed::slots(&visitor, worst.as_mut_slice());
    unnamed::runs(&visitor, &mut runs);
    if visitor.is_unnamed() {
        culprits.clear();
        environments.clear();
    }
    let view = BoardView {
        board: &board,
        maxima: &maxima,
        worst: worst.as_ref(),
        changes: &changes,
        series: &series,
        chosen: &chosen,
        span,
        until,
        long_term: &long_term,
        reach: &reach,
        runs: &runs,
        culprits: &culprits,
        environments: &environments,
        audit: audit.as_ref(),
        may_set: visitor.role() >= Some(Role::Operator),
        unnamed: visitor.is_unnamed(),
    };
    Ok(WebAnswer::page(pages::board::board(&view)))
}

/// First second of the requested last day; `None` without one.
fn until(text: &str) -> Result<Option<i64>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let day = nanos_of(&format!("{text}T00:00:00Z")).map(|at| at.0 / Nanos::SECOND.0);
    let why = "invalid `to`: expected a date from 1970 to 2262, like 2026-11-02";
    day.map(Some).ok_or_else(|| Refusal::bad(why))
}

async fn long_term(
    app: &App,
    board: &str,
    key: &SeriesKey,
    span: BoardSpan,
    within: TimeStretch,
) -> Result<LongTerm, Refusal> {
    let TimeStretch { from, to } = within;
    let mut found = LongTerm { tier: Tier::Day, from, to, ..LongTerm::default() };
    for &tier in span.tiers() {
        found = LongTerm { tier, rows: app.store.tiers(board, key, tier, within).await?, ..found };
        if !found.rows.is_empty() {
            break;
        }
    }
    found.mark(key, &app.store.invalid_runs(board, from).await?);
    if span.is_fine() {
        return Ok(found);
    }
    let first = found.rows.first().map_or(from, |row| row.t);
    let end = found.rows.last().map_or(to, |row| row.t + Tier::Day.seconds());
    // Few days are not drawn as a thin line at the edge of a year.
    let from = if span == BoardSpan::All { first } else { first.max(from) };
    Ok(LongTerm { from: from.min(end - 14 * Tier::Day.seconds()), to: end, ..found })
}

pub async fn environments(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?;
    let (all, left_out) = app.store.latest_environments(&board.board).await?;
    let audited = judged::of_environments(&app, &all).await?;
    Ok(WebAnswer::page(pages::environments::environments(&board, &all, left_out, &audited)))
}

/// Worst valid five minutes of a day, if its slots are stored.
async fn worst_of_day(app: &App, board: &str, key: &SeriesKey, t: i64) -> Result<Option<FarmSlot>, Refusal> {
    let day = TimeStretch { from: t, to: t + Tier::Day.seconds() };
    Ok(app.store.worst_counted(board, key, day).await?)
}
