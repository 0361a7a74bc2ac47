//! Which changes somebody looked at.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, State};
use axum::response::Response;
use serde::Deserialize;

use super::answer::Refusal;
use super::app::App;
use super::login::moved;
use super::sender::now;
use super::visitor::Visitor;
use crate::changes::{Acknowledgement, FarmChange};
use crate::pages::parts::escaped;
use crate::store::AcknowledgedChange;

const LONGEST_NOTE: usize = 1_000;

/// Says of each change who looked at it.
pub async fn mark(app: &App, all: &mut [FarmChange]) -> Result<(), Refusal> {
    let Some(first) = all.iter().map(|one| one.acknowledged_within().0).min() else { return Ok(()) };
    let known = app.store.acknowledged(first).await?;
    for one in all {
        let (from, to) = one.acknowledged_within();
        let is_of = |known: &&AcknowledgedChange| {
            known.board == one.board && known.subject == one.subject && (from..=to).contains(&known.t)
        };
        one.acknowledged = known.iter().rev().find(is_of).map(|known| known.by.clone());
    }
    Ok(())
}

/// Which change, and what is said of it.
#[derive(Deserialize)]
pub struct AcknowledgeForm {
    board: String,
    subject: String,
    t: i64,
    #[serde(default)]
    note: String,
    /// Whether it is to be looked at again.
    #[serde(default)]
    reopen: String,
}

pub async fn acknowledge(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<AcknowledgeForm>,
) -> Result<Response, Refusal> {
    let boards = app.store.boards().await?;
    let all = app.changes.all(&app.store, &boards).await?;
    let is_asked =
        |one: &&FarmChange| one.board == form.board && one.subject == form.subject && one.t == form.t;
    let found = all.iter().find(is_asked).ok_or_else(|| {
        Refusal::not_found("there is no such change any more: look at the list of changes again")
    })?;
    let (board, said) = (&form.board, model::text::excerpt(&found.says));
    if form.reopen.is_empty() {
        let note: String = form.note.trim().chars().take(LONGEST_NOTE).collect();
        let by = Acknowledgement { who: visitor.name().to_owned(), note, at: now() };
        let change =
            AcknowledgedChange { board: board.clone(), subject: form.subject.clone(), t: form.t, by };
        app.store.acknowledge(&change).await?;
        app.note(visitor.name(), &format!("acknowledged of {board}: {said}")).await?;
    } else {
        let (from, to) = found.acknowledged_within();
        app.store.reopen(board, &form.subject, from, to).await?;
        app.note(visitor.name(), &format!("reopened of {board}: {said}")).await?;
    }
    Ok(moved(&format!("/changes?board={}", escaped(board)), None))
}
