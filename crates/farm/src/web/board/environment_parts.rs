//! Environments of a board as JSON or CSV, one at a time.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use model::error::{Result, json};
use serde_json::{Value, json};

use crate::environments::read_settings;
use crate::history::BoardEnvironment;
use crate::setting_changes::{SettingChange, changed};
use crate::web::answers::answer_parts::{AnswerParts, in_parts};
use crate::web::answers::answer_turns::AskingClient;
use crate::web::answers::known::known_board;
use crate::web::answers::tables::line;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer};
use crate::web::edge::visitor::Visitor;
use crate::web::state::app::App;

const COLUMNS: &str = "environment,model,release,preempt,first,last,runs,example,changed,settings";

pub async fn environments(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<AnswerForm>,
    Extension(client): Extension<AskingClient>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let is_csv = form == AnswerForm::Csv;
    let parts = EnvironmentParts::of(&app, &visitor, &name, is_csv).await?;
    let empty = if is_csv { WebAnswer::csv(String::new()) } else { WebAnswer::empty_json() };
    in_parts((&app, &client), empty, parts).await
}

/// Rest of an answer of environments, the latest first.
pub struct EnvironmentParts {
    board: String,
    all: Vec<BoardEnvironment>,
    left_out: u64,
    is_csv: bool,
    /// The next one; none before the head is written.
    next: Option<usize>,
    is_over: bool,
}

impl EnvironmentParts {
    pub async fn of(
        app: &App,
        visitor: &Visitor,
        name: &str,
        is_csv: bool,
    ) -> Result<EnvironmentParts, Refusal> {
        let board = known_board(app, visitor, name).await?.board;
        let (all, left_out) = app.store.latest_environments(&board).await?;
        Ok(EnvironmentParts { board, all, left_out, is_csv, next: None, is_over: false })
    }

    /// One as its JSON has it, with what changed since the one before.
    fn document(&self, at: usize, one: &BoardEnvironment) -> (Value, Vec<SettingChange>) {
        let before = self.all.get(at + 1).map(|before| changed(before, one));
        let document = json!({
            "environment": one.record.digest, "digests": *one.digests, "model": one.record.model,
            "release": one.record.release, "preempt": one.record.preempt, "first": one.first,
            "last": one.last, "runs": one.runs, "example": one.example,
            "settings": read_settings(&one.record.settings), "damaged": one.damaged, "changed": before,
        });
        (document, before.unwrap_or_default())
    }

    fn row(&self, at: usize, one: &BoardEnvironment) -> String {
        let (mut document, changed) = self.document(at, one);
        let words = |one: &SettingChange| format!("{}: {} -> {}", one.what, one.before, one.after);
        document["changed"] = changed.iter().map(words).collect::<Vec<_>>().join("; ").into();
        line(COLUMNS, &document)
    }
}

impl AnswerParts for EnvironmentParts {
    fn held(&self) -> usize {
        let mut known: Vec<_> = self.all.iter().map(|one| &one.record).collect();
        known.sort_unstable_by_key(|record| Arc::as_ptr(record));
        known.dedup_by_key(|record| Arc::as_ptr(record));
        known.iter().map(|record| record.settings.len()).sum()
    }

    async fn next(&mut self) -> Result<Option<String>> {
        if self.is_over {
            return Ok(None);
        }
        let Some(at) = self.next else {
            self.next = Some(0);
            let head = json!({
                "schema": "onbeat.farm-environments/1", "board": self.board, "left_out": self.left_out,
            });
            let head = head.to_string();
            return Ok(Some(if self.is_csv {
                COLUMNS.to_owned() + "\n"
            } else {
                head.trim_end_matches('}').to_owned() + ",\"environments\":["
            }));
        };
        self.next = Some(at + 1);
        let Some(one) = self.all.get(at) else {
            self.is_over = true;
            return Ok((!self.is_csv).then(|| "]}\n".to_owned()));
        };
        if self.is_csv {
            return Ok(Some(self.row(at, one)));
        }
        let before = if at > 0 { "," } else { "" };
        Ok(Some(before.to_owned() + &json(&self.document(at, one).0)?))
    }
}
