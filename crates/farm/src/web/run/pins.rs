//! Pinning and removing a run.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::pages::parts::escaped;
use crate::removal::{KeptBundles, bundle_of, forget};
use crate::wall_clock::now;
use crate::web::answers::known::{known_run, no_run};
use crate::web::edge::answer::Refusal;
use crate::web::edge::visitor::Visitor;
use crate::web::login::moved;
use crate::web::login::sender::intake;
use crate::web::state::app::App;
use crate::web::state::folder_turn::PATIENCE;

#[derive(Deserialize)]
pub struct PinForm {
    #[serde(default)]
    note: String,
    /// Not empty if the pin is to be removed.
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
        return Err(no_run());
    }
    app.note(visitor.name(), &said).await?;
    Ok(moved(&format!("/runs/{}", escaped(&id)), None))
}

/// Removes a run with all data counted from it; it is not stored again.
pub async fn remove(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let run = known_run(&app, &id).await?;
    let folder = intake(&app)?.staging.folder();
    let bundle = match app.bundle(&run).await {
        // A missing or unreadable bundle is replaced by the data of the store.
        Err(_) => None,
        Ok(place) => {
            let of = run.clone();
            app.heavy(move || Ok(bundle_of(&of, place.to_path_buf()))).await.unwrap_or_default()
        }
    };
    let kept =
        KeptBundles { folder, bucket: app.cache.as_ref().map(|cache| &cache.bucket), patience: PATIENCE };
    match forget(&app.store, &run, bundle.as_ref(), kept, Some(now())).await {
        Ok(gone) => {
            app.note(visitor.name(), &format!("removed {}", gone.words())).await?;
            let board = format!("/b/{}", escaped(&run.board));
            Ok(moved(if gone.of.board_gone { "/" } else { &board }, None))
        }
        Err(failure) => Err(Refusal::new(StatusCode::CONFLICT, failure.reason()?)),
    }
}
