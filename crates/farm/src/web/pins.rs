//! Keeping a run whole.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use serde::Deserialize;

use super::answer::Refusal;
use super::app::App;
use super::login::moved;
use super::sender::now;
use super::visitor::Visitor;
use crate::pages::parts::escaped;

#[derive(Deserialize)]
pub struct PinForm {
    #[serde(default)]
    note: String,
    /// Whether it need not be kept whole any more.
    #[serde(default)]
    remove: String,
}

pub async fn pin(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    Form(form): Form<PinForm>,
) -> Result<Response, Refusal> {
    let (known, said) = match form.remove.is_empty() {
        true => (app.store.pin(&id, visitor.name(), &form.note, now()).await?, format!("pinned {id}")),
        false => (
            app.store.unpin(&id).await? || app.store.run(&id).await?.is_some(),
            format!("no longer pinned: {id}"),
        ),
    };
    if !known {
        return Err(Refusal::not_found("no run has this id: choose one on its board's page"));
    }
    app.note(visitor.name(), &said).await?;
    Ok(moved(&format!("/runs/{}", escaped(&id)), None))
}
