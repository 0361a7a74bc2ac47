//! Downloads of a run: single files, an archive of all, its spikes as a trace. Their content is not
//! trusted: no browser shows it as a page of the farm.

use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::poll_fn;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ingest::stored::{StoredBytes, stored_file, whole_files};
use crate::objects::BundleLease;
use crate::pages::parts::escaped;
use crate::web::edge::answer::Refusal;
use crate::web::state::app::App;

/// Parts that are read ahead of the receiver.
const AHEAD: usize = 2;
/// Time without progress after which a receiver counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Encoding of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streamed {
    /// Unchanged bytes of a file.
    AsItIs,
    /// Text, compressed if the client accepts that.
    Text,
}

/// A file of a run's bundle.
pub async fn file(
    State(app): State<Arc<App>>,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let place = bundle_of(&app, &id).await?;
    let (within, asked) = (place.to_owned(), path.clone());
    let found = app.heavy(move || Ok(stored_file(&within, &asked))).await?;
    let missing =
        || Refusal::not_found("the run has no such file: the archive /v1/runs/RUN.tar has all of them");
    let file = found.ok_or_else(missing)?;
    let (name, length) = (path.rsplit('/').next().unwrap_or_default().to_owned(), file.bytes);
    let mut response =
        handed_out(&app, &name, "application/octet-stream", place, |at| StoredBytes::of_file(at, file))?;
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    Ok(response)
}

/// Archive of a run's bundle; refused if it would be incomplete.
pub async fn archive(app: &Arc<App>, id: &str) -> Result<Response, Refusal> {
    let place = bundle_of(app, id).await?;
    let within = place.to_owned();
    let files = app.heavy(move || whole_files(&within).map_err(not_whole)).await?;
    if files.is_empty() {
        return Err(Refusal::not_found("the files of this run are gone: import it again"));
    }
    let folder = id.to_owned();
    handed_out(app, &format!("{id}.tar"), "application/x-tar", place, move |at| {
        StoredBytes::of_archive(at, files, &folder)
    })
}

/// A part of a bundle in an archive would pass for all of it.
fn not_whole(why: String) -> Refusal {
    let detail = format!("the files of this run cannot be archived: {why}");
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Trace around the worst spikes of a hunt, for ui.perfetto.dev.
pub async fn trace(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let place = bundle_of(&app, &id).await?;
    let text = app.heavy(move || traced(&place)).await?;
    let mut response = Body::from(text).into_response();
    as_attachment(&mut response, &format!("{id}.perfetto.json"), "application/json");
    Ok(response)
}

fn traced(place: &FilePath) -> Result<String, Refusal> {
    let run = bundle::read::Bundle::open(place)?.run;
    match run.spikes.is_empty() {
        true => Err(Refusal::not_found("this run has no spikes: onbeat hunt records them")),
        false => Ok(study::page::perfetto(place, &run)?),
    }
}

/// Bundle of a run, locked until the lease is dropped.
pub async fn bundle_of(app: &App, id: &str) -> Result<BundleLease, Refusal> {
    let run = app.store.run(id).await?;
    let missing = || Refusal::not_found("no run has this id: /v1/boards/BOARD lists those of a board");
    app.bundle(&run.ok_or_else(missing)?).await
}

/// Streamed response; only a few at a time, because each uses a thread.
fn handed_out(
    app: &App,
    name: &str,
    kind: &'static str,
    bundle: BundleLease,
    open: impl FnOnce(&FilePath) -> StoredBytes + Send + 'static,
) -> Result<Response, Refusal> {
    let turn = app.handed_out.clone().try_acquire_owned().map_err(|_| {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many simultaneous downloads: retry later")
    })?;
    let (parts, mut taken) = mpsc::channel::<io::Result<Bytes>>(AHEAD);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        // Held until the last part has gone.
        for part in open(&bundle) {
            let is_last = part.is_err();
            let sent = runtime.block_on(timeout(PATIENCE, parts.send(part.map(Bytes::from))));
            if is_last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    });
    let mut response = Body::from_stream(poll_fn(move |context| taken.poll_recv(context))).into_response();
    response.extensions_mut().insert(Streamed::AsItIs);
    as_attachment(&mut response, name, kind);
    Ok(response)
}

fn as_attachment(response: &mut Response, name: &str, kind: &'static str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // RFC 6266: a name with escapes alone, which has no quote to end it.
    if let Ok(value) = format!("attachment; filename*=UTF-8''{}", escaped(name)).parse() {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
}
