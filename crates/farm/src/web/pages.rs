//! Pages: read the store and pass values to a view.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use model::units::Nanos;
use model::wall_time::nanos_of;
use report::run::repeat::repeat;
use serde::Deserialize;
use stats::bounds::Question;
use study::page::ReportedRun;

use super::acknowledge::mark;
use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::board_changes::reach;
use super::judged;
use super::made_reports::{MadeReport, MadeReports};
use super::protection::policy_of;
use super::unnamed;
use super::visitor::Visitor;
use crate::ingest::stored::whole_files;
use crate::pages::board::{BoardView, worst_of};
use crate::pages::board_span::BoardSpan;
use crate::pages::run::RunWays;
use crate::pages::{self};
use crate::pictures::long_term::LongTerm;
use crate::records::{FarmBoard, FarmRun, FarmSlot, SeriesKey, SeriesOfBoard, Tier};
use crate::store::TimeStretch;
use crate::users::Role;

/// Result of a handler.
pub type WebOutcome = Result<WebAnswer, Refusal>;

const RUNS_SHOWN: i64 = 100;
const CULPRITS_OF_BOARD: i64 = 10;
/// Horizon for a run without a limit in its document, as in the report command.
const HORIZON: Nanos = Nanos(86_400_000_000_000);

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

/// Board of a name in an address, as the visitor may see it.
pub async fn known_board(app: &App, visitor: &Visitor, name: &str) -> Result<FarmBoard, Refusal> {
    let mut boards = app.store.boards_of(Some(name)).await?;
    unnamed::boards(visitor, &mut boards);
    boards.into_iter().next().ok_or_else(|| Refusal::no_board(name))
}

/// Run of an id in the address of a page.
pub async fn known_run(app: &App, id: &str) -> Result<FarmRun, Refusal> {
    app.store.run(id).await?.ok_or_else(no_run)
}

pub fn no_run() -> Refusal {
    Refusal::not_found("no run has this id: choose one on its board's page")
}

/// Requested series, or the latest.
pub fn chosen(series: &[SeriesOfBoard], name: &str, plan: &str) -> Result<SeriesKey, Refusal> {
    let asked = !(name.is_empty() && plan.is_empty());
    let fits = |one: &&SeriesOfBoard| {
        (name.is_empty() || one.key.series == name) && (plan.is_empty() || one.key.plan == plan)
    };
    match series.iter().find(fits) {
        Some(found) => Ok(found.key.clone()),
        None if asked => Err(Refusal::not_found("the board has no such series: choose one on its page")),
        None => Ok(SeriesKey::default()),
    }
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

pub async fn run(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> WebOutcome {
    let run = known_run(&app, &id).await?;
    let place = app.bundle(&run).await?;
    let key = MadeReports::key(&run, &place);
    let made = match key.as_ref().and_then(|key| app.reports.get(key)) {
        Some(made) => made,
        None => {
            let name = run.id.clone();
            let made = Arc::new(app.heavy(move || report_of(&place, &name)).await?);
            if let Some(key) = key {
                app.reports.keep(key, made.clone());
            }
            made
        }
    };
    let MadeReport { parts, again, kept_spikes, lacking } = MadeReport::clone(&made);
    let policy = policy_of(&parts);
    let audit = judged::may_have(&app, &run);
    let ways = RunWays { by: visitor.role(), audit, kept_spikes, lacking };
    let names = app.store.names_of(vec![run.board.as_str()]).await?;
    Ok(WebAnswer::page(pages::run::run(&run, &names, again.as_deref(), ways, parts)).under(policy))
}

pub async fn spike(State(app): State<Arc<App>>, Path((id, number)): Path<(String, String)>) -> WebOutcome {
    let run = known_run(&app, &id).await?;
    let missing = || Refusal::not_found("the run has no spike of this number: its page lists them");
    let asked: usize = number.parse().map_err(|_| missing())?;
    let place = app.bundle(&run).await?;
    let read = app.heavy(move || {
        let found = study::page::spike(&place, asked)?.ok_or_else(missing)?;
        let parts = report::hunt::spike_page::parts(&found.run, asked, found.window.as_ref());
        Ok((parts.ok_or_else(missing)?, repeat(&found.run), found.run.spikes.len() as u64))
    });
    let (parts, again, kept) = read.await?;
    let policy = policy_of(&parts);
    let names = app.store.names_of(vec![run.board.as_str()]).await?;
    let page = pages::spike::spike(&run, &names, asked as u64, kept, again.as_deref(), parts);
    Ok(WebAnswer::page(page).under(policy))
}

/// The report, and the command that repeats its run.
fn report_of(place: &std::path::Path, name: &str) -> Result<MadeReport, Refusal> {
    let mut run = ReportedRun::open(place)?.named(name);
    run.ask(&Question { horizon: HORIZON, ..Question::default() });
    let input = run.input().ok_or_else(|| Refusal::not_found("this bundle holds no run"))?;
    let (again, kept_spikes) = (repeat(input.run), input.run.spikes.len() as u64);
    let lacking = whole_files(place).err();
    Ok(MadeReport { parts: report::run::page::parts(&[input])?, again, kept_spikes, lacking })
}

pub async fn styles() -> WebAnswer {
    WebAnswer::text("text/css; charset=utf-8", pages::style_sheet())
}

pub async fn nowhere() -> Refusal {
    Refusal::not_found("this page does not exist: start from the list of boards")
}

/// Worst valid five minutes of a day, if its slots are stored.
async fn worst_of_day(app: &App, board: &str, key: &SeriesKey, t: i64) -> Result<Option<FarmSlot>, Refusal> {
    let day = TimeStretch { from: t, to: t + Tier::Day.seconds() };
    Ok(app.store.worst_counted(board, key, day).await?)
}
