//! Administration: boards, their states and budgets, refused requests.

pub mod lists;
pub mod users;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use model::units::{Bare, Nanos, parse_span};
use model::wall_time::nanos_of;
use serde::Deserialize;
use serde_json::json;

use crate::board_names::BoardNames;
use crate::board_settings::{BoardSettings, BoardState, check_tag, parse_tags};
use crate::pages::admin::{AdminView, admin};
use crate::pages::admin_board::{BoardSettingsView, board_settings};
use crate::pages::fleet::matches;
use crate::pages::parts::{date, escaped};
use crate::records::BoardRefusal;
use crate::users::Role;
use crate::wall_clock::now;
use crate::web::admin::lists::AUDIT_SHOWN;
use crate::web::answers::known::known_board;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::login::moved;
use crate::web::state::app::App;

/// Limit of boards on the page; others are found by a part of their names.
const MOST_BOARDS: usize = 500;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct AdminQuery {
    q: String,
}

pub async fn page(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<AdminQuery>,
) -> WebOutcome {
    shown(&app, &visitor, &query.q, None).await
}

/// The page, with a text that is shown once, such as a code, and its description.
pub async fn shown(
    app: &App,
    visitor: &Visitor,
    filter: &str,
    once: Option<(String, Vec<String>)>,
) -> WebOutcome {
    let mut boards = app.store.boards().await?;
    let (of, names) = (boards.len(), BoardNames::of_boards(&boards));
    boards.retain(|board| matches(board, filter));
    boards.sort_by(|a, b| a.board.cmp(&b.board));
    boards.truncate(MOST_BOARDS);
    let is_admin = visitor.role() == Some(Role::Admin);
    let users = if is_admin { app.store.users().await? } else { Vec::new() };
    let trouble = app.bucket_trouble();
    let view = AdminView {
        visitor: visitor.name(),
        is_admin,
        once: once.as_ref().map(|(words, all)| (words.as_str(), &all[..])),
        boards: &boards,
        of,
        filter,
        tokens: &app.store.tokens().await?,
        refusals: &app.refusals.all(),
        names: &names,
        bucket_trouble: trouble.as_deref(),
        certificate_ends: app.certificate_ends(),
        folders_refused: app.refused().all,
        budgets: &app.store.budgets().await?,
        users: &users,
        open_codes: app.store.open_codes(now()).await?,
        keeps: app.intake.is_some(),
        database_bytes: app.store.database_bytes().await,
        sent_bytes: app.store.sent_bytes().await?,
        audit: &app.store.audit(AUDIT_SHOWN).await?,
    };
    Ok(WebAnswer::page(admin(&view)))
}

/// Data that a board sent, and its refused requests since the start of the server.
pub async fn board(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Path(name): Path<String>,
) -> WebOutcome {
    let board = known_board(&app, &visitor, &name).await?;
    let (rows, missing) = app.store.gaps(&board.board).await?;
    let refusals = app.refusals.all().into_iter().filter(|one| one.board == board.board);
    let refusals: Vec<BoardRefusal> = refusals.collect();
    let tokens = app.store.tokens().await?.get(&board.board).copied().unwrap_or_default();
    let sent_bytes = app.store.kept_bytes_of(&board.board).await?;
    let stored = app.store.stored_bytes(&board.board).await?;
    let quota = app.intake.as_ref().map(|intake| intake.quota.bytes);
    if form == AnswerForm::Json {
        return WebAnswer::json(&json!({
            "schema": "onbeat.farm-sent/1", "board": board.board, "tokens": tokens, "rows": rows,
            "missing": missing, "sent_bytes": sent_bytes, "row_bytes": stored.rows,
            "environment_bytes": stored.environments, "quota": quota, "refused": refusals,
        }));
    }
    let view = BoardSettingsView {
        board: &board,
        is_admin: visitor.role() == Some(Role::Admin),
        tokens,
        refusals: &refusals,
        rows,
        missing,
        sent_bytes,
        stored,
        quota,
    };
    Ok(WebAnswer::page(board_settings(&view)))
}

#[derive(Deserialize)]
pub struct BoardForm {
    name: String,
    state: String,
    /// Day on which it began; empty for now.
    #[serde(default)]
    since: String,
    tags: String,
    budget: String,
}

pub async fn set_board(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    Form(form): Form<BoardForm>,
) -> Result<Response, Refusal> {
    let board = known_board(&app, &visitor, &name).await?;
    let mut settings = board.settings.clone();
    let state = BoardState::of_word(&form.state)
        .ok_or_else(|| Refusal::bad("invalid state: choose one of the list"))?;
    settings.state_since = since(&form.since, state, &settings)?;
    settings.state = state;
    settings.tags = parse_tags(&form.tags).map_err(Refusal::bad)?;
    settings.own_budget = budget_of(&form.budget)?;
    let called: String = model::text::clean(form.name.trim()).chars().take(64).collect();
    let called = if called.is_empty() { board.board.clone() } else { called };
    if called != board.name
        && let Some(other) = app.store.other_of_name(&board.board, &called).await?
    {
        return Err(Refusal::new(
            StatusCode::CONFLICT,
            format!("{other} has the name {called} already: choose another name, or rename that board first"),
        ));
    }
    if !app.store.set_settings(&board.board, &called, &settings).await? {
        return Err(Refusal::not_found("the board no longer exists: see the list of boards"));
    }
    let what = format!(
        "set {}: {called}, {}, tags {}, budget {}",
        board.board,
        state.words(),
        if settings.tags.is_empty() { "none".to_owned() } else { settings.tags.join(" ") },
        settings.own_budget.map_or_else(|| "none".to_owned(), report::words::span)
    );
    app.note(visitor.name(), &what).await?;
    Ok(moved(&format!("/admin/boards/{}", escaped(&board.board)), None))
}

/// Beginning of a state. The form still has the day of the previous state, which is ignored for a
/// new one.
fn since(text: &str, state: BoardState, before: &BoardSettings) -> Result<i64, Refusal> {
    let (text, is_new) = (text.trim(), state != before.state);
    let is_untouched = text.is_empty() || text == date(before.state_since);
    if is_untouched {
        return Ok(if is_new { now() } else { before.state_since });
    }
    let day = nanos_of(&format!("{text}T00:00:00Z")).map(|at| at.0.div_euclid(Nanos::SECOND.0));
    day.filter(|day| (1..=now()).contains(day))
        .ok_or_else(|| Refusal::bad("invalid day: expected one up to today, like 2026-11-23"))
}

/// Parses a budget; `None` for an empty text.
fn budget_of(text: &str) -> Result<Option<Nanos>, Refusal> {
    match text.trim() {
        "" => Ok(None),
        text => match parse_span(text, Bare::Micros) {
            Ok(span) if span.0 > 0 => Ok(Some(span)),
            _ => Err(Refusal::bad("invalid budget: expected a latency, like 100us")),
        },
    }
}

#[derive(Deserialize)]
pub struct BudgetForm {
    /// Empty for all boards.
    #[serde(default)]
    tag: String,
    limit: String,
}

pub async fn set_budget(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<BudgetForm>,
) -> Result<Response, Refusal> {
    let tag = form.tag.trim().to_lowercase();
    if !tag.is_empty() {
        check_tag(&tag).map_err(Refusal::bad)?;
    }
    let limit = budget_of(&form.limit)?;
    app.store.set_budget(&tag, limit).await?;
    let whose = if tag.is_empty() { "all boards".to_owned() } else { format!("tag {tag}") };
    let said = limit.map_or_else(|| "none".to_owned(), report::words::span);
    app.note(visitor.name(), &format!("set the budget of {whose}: {said}")).await?;
    Ok(moved("/admin", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_latencies_and_states_have_a_day() {
        assert_eq!(budget_of(" 100us ").unwrap(), Some(Nanos(100_000)));
        assert_eq!(budget_of("  ").unwrap(), None);
        let before = BoardSettings { state_since: 86_400, ..BoardSettings::default() };
        let since = |text: &str, state| since(text, state, &before).map_err(|_| ());
        assert_eq!(since("", BoardState::Active), Ok(86_400));
        assert_eq!(since("1970-01-02", BoardState::Active), Ok(86_400));
        assert_eq!(since("1970-01-04", BoardState::Replaced), Ok(3 * 86_400));
        assert!(since("1970-01-02", BoardState::Replaced).unwrap() > 3 * 86_400);
        for wrong in ["yesterday", "9999-01-01", "1970-13-01", "<b>", "1960-01-01"] {
            assert_eq!(since(wrong, BoardState::Replaced), Err(()), "{wrong}");
        }
        assert!(budget_of("0").is_err() && budget_of("-5us").is_err() && budget_of("<b>").is_err());
    }
}

#[cfg(test)]
pub mod admin_tests;
