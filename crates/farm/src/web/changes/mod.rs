//! Changes of all boards: reads the found ones and passes them to the view.

pub mod acknowledge;
pub mod webhook;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::board_names::BoardNames;
use crate::changes::{ChangeIdentity, FarmChange, SHOWN_DAYS};
use crate::pages;
use crate::pages::changes::{ChangesShown, ChangesView};
use crate::records::FarmBoard;
use crate::users::Role;
use crate::wall_clock::now;
use crate::web::answers::tables::table;
use crate::web::answers::unnamed;
use crate::web::changes::acknowledge::{follow, mark};
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;
use crate::web::state::found_changes::rates_of;

/// Interval of the search for boards with a new day.
const EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// Searches for changes in the background.
pub async fn keep_changes(app: Arc<App>) {
    loop {
        // A failure occurs on the page as well, and is shown there.
        if let Ok(found) = app.changes.look_through(&app.store).await {
            let _ = note_found(&app, &found, now()).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Notes when changes for the worse were found. A farm that keeps nothing would find all of them
/// anew each time that it is started.
pub async fn note_found(app: &App, all: &[FarmChange], now: i64) -> model::error::Result<()> {
    if app.intake.is_none() {
        return Ok(());
    }
    let bad = all.iter().filter(|one| one.kind.is_bad());
    let found: Vec<ChangeIdentity> = bad.map(ChangeIdentity::of).collect();
    app.store.note_found(&found, now).await?;
    follow(app, all).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct ChangesQuery {
    board: String,
    /// `all` to include changes that are not open, `acknowledged` for acknowledged ones.
    only: String,
}

impl ChangesQuery {
    fn only(&self) -> Result<ChangesShown, Refusal> {
        let why = "invalid `only`: expected all or acknowledged";
        ChangesShown::of_word(&self.only).ok_or_else(|| Refusal::bad(why))
    }
}

pub async fn changes(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    headers: HeaderMap,
    Query(query): Query<ChangesQuery>,
) -> WebOutcome {
    let (boards, all) = asked_for(&app, &visitor, &query).await?;
    let names = BoardNames::of_boards(&boards);
    match form {
        AnswerForm::Csv => table(COLUMNS, &all.iter().map(row).collect::<Vec<_>>()),
        AnswerForm::Atom => {
            // The addresses of a feed are those of the host by which it is asked.
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
            let site = format!("{}://{host}/", if app.is_secure() { "https" } else { "http" });
            let feed = pages::changes::feed(&all, &names, &app.found_changes().await?, &site);
            Ok(WebAnswer::text("application/atom+xml; charset=utf-8", feed))
        }
        AnswerForm::Json => {
            let scope = app.changes.scope(&boards, &query.board).await;
            let rates = rates_of(&app.store, &boards, &query.board).await?;
            WebAnswer::json(&json!({
                "schema": "onbeat.farm-changes/1", "days": SHOWN_DAYS, "changes": all,
                "series": scope.series, "environments": scope.environments, "rates": rates,
            }))
        }
        AnswerForm::Page => {
            let view = ChangesView {
                all: &all,
                boards: if query.board.is_empty() { boards.len() } else { 1 },
                scope: app.changes.scope(&boards, &query.board).await,
                board: &query.board,
                names: &names,
                only: query.only()?,
                may_acknowledge: visitor.role() >= Some(Role::Operator),
            };
            Ok(WebAnswer::page(pages::changes::changes(&view)))
        }
    }
}

const COLUMNS: &str = "board,kind,t,from,p,says,evidence,acknowledged_by,acknowledged_at,note,settings,\
                       address,subject,claim";

/// A change with what a cell cannot hold as it is: who looked at it, and what else changed.
fn row(one: &FarmChange) -> Value {
    let mut row = serde_json::to_value(one).unwrap_or_default();
    if let Some(by) = &one.acknowledged {
        row["acknowledged_by"] = json!(by.who);
        row["acknowledged_at"] = json!(by.at);
        row["note"] = json!(by.note);
    }
    let settings = one.settings.iter().map(|of| format!("{}: {} -> {}", of.what, of.before, of.after));
    row["settings"] = json!(settings.collect::<Vec<_>>().join("; "));
    row
}

/// The boards, and the changes that a request names, as who asks may see them. A board that is
/// asked for and is not there is refused: a list without changes would say that it has none.
async fn asked_for(
    app: &App,
    visitor: &Visitor,
    query: &ChangesQuery,
) -> Result<(Vec<FarmBoard>, Vec<FarmChange>), Refusal> {
    let (only, board) = (query.only()?, query.board.as_str());
    let mut boards = app.store.boards().await?;
    let mut all = app.changes.all(&app.store, &boards).await?;
    mark(app, &mut all).await?;
    unnamed::boards(visitor, &mut boards);
    unnamed::changes(visitor, &boards, &mut all);
    if !board.is_empty() && !boards.iter().any(|one| one.board == board) {
        return Err(Refusal::no_board(board));
    }
    all.retain(|one| (board.is_empty() || one.board == board) && only.has(one));
    Ok((boards, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::made::made_change;
    use crate::changes::{Acknowledgement, ChangeKind};
    use crate::setting_changes::SettingChange;

    #[test]
    fn a_change_has_who_looked_at_it_and_what_else_changed_in_cells() {
        let setting = |what: &str| SettingChange { what: what.into(), before: "a".into(), after: "b".into() };
        let mut one = FarmChange {
            settings: vec![setting("kernel"), setting("cmdline")],
            ..made_change("west", ChangeKind::Worse, 9)
        };
        let cells = row(&one);
        assert_eq!(cells["settings"], "kernel: a -> b; cmdline: a -> b");
        assert!(cells["note"].is_null() && cells["board"] == "west");
        one.acknowledged = Some(Acknowledgement { who: "ann".into(), note: "known".into(), at: 10 });
        let cells = row(&one);
        assert_eq!((&cells["acknowledged_by"], &cells["note"]), (&"ann".into(), &"known".into()));
        assert_eq!(cells["acknowledged_at"], 10);
    }
}
