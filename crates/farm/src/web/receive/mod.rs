//! Requests of boards; each may be repeated.

pub mod enrol;
pub mod me;
pub mod rows;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bundle::manifest::{BundleManifest, PIECE, RECEIVED_SCHEMA};
use model::watch::WatchEnvironment;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::ingest::bundle::is_id;
use crate::ingest::environment::{hex, watch_environment};
use crate::ingest::find::FoundBundle;
use crate::intake::{IntakeOutcome, Keeping, PARSER_FAILED, Rejection, SentRun, take};
use crate::store::{SentBundle, TokenOwner};
use crate::web::edge::answer::{Refusal, WebAnswer};
use crate::web::login::sender::{BoardSender, SentFault, content, intake};
use crate::web::state::app::App;
use crate::web::state::folder_turn::FolderTurn;

const MANIFEST_LIMIT: u64 = 4 << 20;
const ENVIRONMENT_LIMIT: u64 = 256 << 10;

/// An answer with its status.
pub type Received = Result<Response, Refusal>;

/// Response with a document; an error is a problem document and is noted for its board.
pub fn with(status: StatusCode, value: &serde_json::Value) -> Received {
    if !status.is_client_error() {
        return Ok((status, WebAnswer::json(value)?).into_response());
    }
    let detail = value["detail"].as_str().map(str::to_owned);
    let refusal = Refusal::new(status, detail.unwrap_or_else(|| other_content(value)));
    let mut response = (status, WebAnswer::problem(refusal.problem_with(value))).into_response();
    response.extensions_mut().insert(SentFault(refusal.detail));
    Ok(response)
}

/// Acknowledgement of a piece or environment by its digest, or of a run. A board accepts no other
/// document, which a proxy might send.
fn received(id: &str) -> serde_json::Value {
    json!({ "schema": RECEIVED_SCHEMA, "id": id })
}

/// Acknowledgement of a run with its manifest, and remarks on its rejected parts.
fn received_run_as(id: &str, sent: &SentBundle, remarks: Vec<String>) -> serde_json::Value {
    let manifest = hex(&sent.manifest);
    json!({ "schema": RECEIVED_SCHEMA, "id": id, "manifest": manifest, "remarks": remarks })
}

/// Line on rows that are stored with different content.
fn other_content(value: &serde_json::Value) -> String {
    let rows: Vec<String> =
        value["seq"].as_array().into_iter().flatten().map(|seq| seq.to_string()).collect();
    let first = rows.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if rows.len() > 5 { format!(" and {} more", rows.len() - 5) } else { String::new() };
    format!(
        "different content is stored for row {first}{more} and stays: if another machine sends with this \
         token, enrol this one with its own code"
    )
}

pub async fn put_environment(
    State(app): State<Arc<App>>,
    BoardSender(owner): BoardSender,
    Path(digest): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let intake = intake(&app)?;
    let text = content(&headers, &body, ENVIRONMENT_LIMIT)?;
    let unreadable = |detail: &str| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    if hex(&Sha256::digest(&text)) != digest {
        return Err(unreadable("the digest of the content differs from the address: send it again"));
    }
    let sent: Option<WatchEnvironment> = serde_json::from_slice(&text).ok();
    let Some(sent) = sent.filter(|sent| !sent.env.is_empty()) else {
        return Err(unreadable("invalid environment: send one of a record of onbeat watch"));
    };
    let (env, read) = (model::text::excerpt(&sent.env), watch_environment(&sent));
    if let Some(why) = read.left_out {
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    intake.quota.take(&app.store, &owner, text.len() as u64).await?;
    let new = app.store.put_environment(owner.board_id, &env, &read.record).await?;
    with(if new { StatusCode::CREATED } else { StatusCode::OK }, &received(&digest))
}

pub async fn put_piece(
    State(app): State<Arc<App>>,
    BoardSender(owner): BoardSender,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let intake = intake(&app)?;
    let staging = intake.staging.clone();
    let bytes = content(&headers, &body, PIECE)?;
    let told = received(&name);
    let new = app.heavy(move || staging.put(&owner.board, &name, &bytes).map_err(Refusal::from)).await;
    intake.bundle_write.note_file(&new);
    with(if new? { StatusCode::CREATED } else { StatusCode::OK }, &told)
}

pub async fn put_run(
    State(app): State<Arc<App>>,
    BoardSender(owner): BoardSender,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let intake = intake(&app)?;
    if !is_id(&id) {
        return Err(Refusal::bad("invalid id of a run: send the one of run.json"));
    }
    let text = content(&headers, &body, MANIFEST_LIMIT)?;
    let unreadable = |detail| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
    let manifest = BundleManifest::read(&text).map_err(unreadable)?;
    let (board_id, bytes) = (owner.board_id, manifest.bytes());
    let sent = SentBundle { board_id, manifest: Sha256::digest(&text).to_vec(), bytes };
    let arriving = Arc::new(ArrivingRun { owner, id, manifest, sent });
    let turn = match &app.cache {
        // Before its turn: a bucket that is silent keeps no other board waiting. What is put there
        // has a name for each state.
        Some(cache) => {
            cache.bucket.answers().await?;
            FolderTurn::default()
        }
        // What is there already, or lacks pieces, does not wait for who copies into the folder.
        None => {
            if let Some(answer) = in_turn(&app, &arriving, None).await? {
                return Ok(answer);
            }
            intake.folder_turns.take(intake.staging.folder()).await?
        }
    };
    in_turn(&app, &arriving, Some(turn)).await?.ok_or_else(unfinished)
}

/// A run that a board sends.
struct ArrivingRun {
    owner: TokenOwner,
    id: String,
    manifest: BundleManifest,
    sent: SentBundle,
}

fn unfinished() -> Refusal {
    let detail = "the farm could not finish with this run: send it again later";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// Handles runs one after the other, because two requests of one run would write the same files.
/// The work and its locks continue if the connection ends. Returns `None` if the run has to be
/// moved into its folder without the lock for that.
async fn in_turn(
    app: &Arc<App>,
    run: &Arc<ArrivingRun>,
    folder: Option<FolderTurn>,
) -> Result<Option<Response>, Refusal> {
    let turn = intake(app)?.assembling.clone().lock_owned().await;
    let (farm, run) = (app.clone(), run.clone());
    let received = tokio::spawn(async move {
        let may_put = folder.is_some();
        let _turns = (turn, folder);
        let received = received_run(&farm, &run, may_put).await;
        let is_done = match &received {
            Ok(answer) => answer.as_ref().is_some_and(|answer| answer.status() != StatusCode::ACCEPTED),
            Err(refusal) => is_for_good(refusal),
        };
        if is_done && let Some(intake) = &farm.intake {
            intake.staging.clear(&run.owner.board, &run.manifest);
        }
        received
    });
    received.await.unwrap_or_else(|_| Err(unfinished()))
}

/// True if the refused run is not sent again unchanged, so that its pieces can be removed.
fn is_for_good(refusal: &Refusal) -> bool {
    matches!(refusal.status, StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY)
}

/// Stores a run with all its pieces, or lists the missing ones; `None` if it may not be moved into
/// its folder now.
async fn received_run(app: &App, run: &ArrivingRun, may_put: bool) -> Result<Option<Response>, Refusal> {
    let ArrivingRun { owner, id, manifest, sent } = run;
    let intake = intake(app)?;
    if is_there(app, owner, id, manifest, sent).await? {
        return with(StatusCode::OK, &received_run_as(id, sent, Vec::new())).map(Some);
    }
    intake.quota.admit_run(&app.store, owner, id, sent.bytes).await?;
    let missing = || intake.staging.missing(&owner.board, manifest);
    let asked_for =
        |missing: Vec<String>| with(StatusCode::ACCEPTED, &json!({ "missing": missing })).map(Some);
    let before = missing();
    if !before.is_empty() {
        return asked_for(before);
    }
    if !may_put {
        return Ok(None);
    }
    let taken = take_in(app, owner, id, manifest, sent).await;
    if taken.as_ref().is_err_and(|refusal| refusal.status == StatusCode::SERVICE_UNAVAILABLE) {
        // A piece that was damaged here is gone: the board sends it again.
        let after = missing();
        if !after.is_empty() {
            return asked_for(after);
        }
    }
    let (status, remarks) = taken?;
    with(status, &received_run_as(id, sent, remarks)).map(Some)
}

/// True if the run is stored with the same content. A finished run, or one of another board, is not
/// overwritten.
async fn is_there(
    app: &App,
    owner: &TokenOwner,
    id: &str,
    manifest: &BundleManifest,
    sent: &SentBundle,
) -> Result<bool, Refusal> {
    let known = app.store.manifest(owner.board_id, id).await?;
    if known.as_ref() == Some(&sent.manifest) {
        return Ok(true);
    }
    let refused = match app.store.run(id).await? {
        Some(run) if run.board != owner.board => {
            "it is another board's run already: a run belongs to one board"
        }
        Some(run) if run.complete => {
            // It may have come on a stick, also after the board had sent an earlier state of it.
            let is_as_sent = known.is_some_and(|known| {
                let place = std::path::Path::new(&run.place).file_name();
                place.is_some_and(|name| name == name_of_sent(id, &known).as_str())
            });
            let digest = app.store.run_digest(id).await?.map(|digest| hex(&digest));
            if !is_as_sent && digest.is_some() && digest.as_deref() == manifest.run_digest() {
                return Ok(true);
            }
            "a run with this id is stored with different content: a run that has ended does not change"
        }
        Some(_) => return Ok(false),
        // Before its pieces are asked for.
        None => match app.store.why_not_again(id).await? {
            Some(why) => return Err(Refusal::removed(why)),
            None => return Ok(false),
        },
    };
    Err(Refusal::new(StatusCode::CONFLICT, refused))
}

/// Name of the folder of a sent bundle. Each state of a run has its own, so that the previous one
/// stays complete until the next one is stored.
fn name_of_sent(id: &str, manifest: &[u8]) -> String {
    format!("{id}+{}", hex(&manifest[..manifest.len().min(8)]))
}

async fn take_in(
    app: &App,
    owner: &TokenOwner,
    id: &str,
    manifest: &BundleManifest,
    sent: &SentBundle,
) -> Result<(StatusCode, Vec<String>), Refusal> {
    let intake = intake(app)?;
    let staging = intake.staging.clone();
    let (board, of) = (owner.board.clone(), manifest.clone());
    let name = name_of_sent(id, &sent.manifest);
    let place = staging.place(&name);
    let lease = app.cache.as_ref().map(|cache| cache.hold(&name));
    let (assembling, named) = (staging.clone(), name.clone());
    let assembled = app.heavy(move || assembling.assemble(&board, &named, &of).map_err(Refusal::from)).await;
    intake.bundle_write.note_file(&assembled);
    let discarded = |refusal: Refusal| {
        // Nothing else has it: its pieces wait, where it may come again.
        staging.discard(&place, manifest);
        Err(refusal)
    };
    if let Err(refusal) = assembled {
        return discarded(refusal);
    }
    let bucket = app.cache.as_ref().map(|cache| (&cache.bucket, name.as_str(), manifest));
    let one = FoundBundle { place: place.clone(), board: Some(owner.board.clone()) };
    let noted = |outcome: &Result<_, _>| intake.store_write.note(outcome);
    let keeping = Keeping::Sent(SentRun { id, board: &owner.board, sent, bucket, noted: &noted });
    match take(&app.store, &one, &keeping).await? {
        IntakeOutcome::Stored(run) => {
            if let (Some(cache), Some(lease)) = (&app.cache, &lease) {
                cache.added(lease).await;
            }
            Ok((StatusCode::CREATED, run.remarks))
        }
        IntakeOutcome::Duplicate(run) => Ok((StatusCode::OK, run.remarks)),
        IntakeOutcome::Rejected(Rejection::Unreadable(why)) => {
            app.failures.fetch_add(u64::from(why == PARSER_FAILED), Ordering::Relaxed);
            discarded(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why))
        }
        IntakeOutcome::Rejected(Rejection::Refused(why)) => {
            if let Some((bucket, name, _)) = bucket {
                // What is left there is of no run, and goes when bundles are pruned.
                let _ = bucket.remove(name).await;
            }
            // It may have been removed since its pieces were asked for.
            discarded(match app.store.why_not_again(id).await? {
                Some(why) => Refusal::removed(why),
                None => Refusal::new(StatusCode::CONFLICT, why),
            })
        }
    }
}

#[cfg(test)]
pub mod receive_tests;
