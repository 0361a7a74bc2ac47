//! Audit of a run's machine, or its difference from another run's, as a page and JSON.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use rules::audit_diff::{AuditDiff, diff};
use serde::Deserialize;

use crate::objects::BundleLease;
use crate::pages;
use crate::records::FarmRun;
use crate::web::answers::known::known_run;
use crate::web::answers::protection::policy_of;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::run::judged::{judged, unreadable};
use crate::web::state::app::App;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct AuditedQuery {
    /// The run whose audit this one's is compared with.
    before: String,
}

pub async fn audit(
    State(app): State<Arc<App>>,
    Extension(form): Extension<AnswerForm>,
    Path(id): Path<String>,
    Query(query): Query<AuditedQuery>,
) -> WebOutcome {
    if !query.before.is_empty() {
        let (before, after, found) = compared(&app, &query.before, &id).await?;
        if form == AnswerForm::Json {
            return WebAnswer::json(&found);
        }
        let names = app.store.names_of(vec![before.board.as_str(), after.board.as_str()]).await?;
        return Ok(WebAnswer::page(pages::audit::difference(&before, &after, &names, &found)));
    }
    let (run, place) = audited_run(&app, &id).await?;
    if form == AnswerForm::Json {
        return WebAnswer::json(&app.heavy(move || Ok(judged(&place)?.audit)).await?);
    }
    let parts = app.heavy(move || judged(&place)?.parts(None).map_err(|_| unreadable())).await?;
    let policy = policy_of(&parts);
    let names = app.store.names_of(vec![run.board.as_str()]).await?;
    Ok(WebAnswer::page(pages::audit::audit(&run, &names, parts)).under(policy))
}

async fn compared(app: &App, before: &str, after: &str) -> Result<(FarmRun, FarmRun, AuditDiff), Refusal> {
    let (before, earlier) = audited_run(app, before).await?;
    let (after, later) = audited_run(app, after).await?;
    let found = app.heavy(move || Ok(diff(&judged(&earlier)?.audit, &judged(&later)?.audit))).await?;
    Ok((before, after, found))
}

async fn audited_run(app: &App, id: &str) -> Result<(FarmRun, BundleLease), Refusal> {
    let run = known_run(app, id).await?;
    let place = app.bundle(&run).await?;
    Ok((run, place))
}
