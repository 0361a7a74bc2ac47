//! Upload of a run: a manifest, the pieces that the farm lacks, the manifest again.

use bundle::manifest::{BundleManifest, PIECE};
use host::MachineFiles;
use model::text::{excerpt, hex};
use sha2::{Digest, Sha256};

use super::manifest::{UnreadBundle, manifest_of, place_of};
use super::parts::FilePart;
use crate::link::LinkFault;
use crate::receipt::{asked_for, is_of, is_of_run};
use crate::session::{PushAllowance, PushRound, RoundEnd};

/// Limit of attempts at a run that changes while it is sent.
const TRIES: usize = 3;

type Sent<T> = Result<T, RoundEnd>;

/// Outcome of an attempt to send a run.
pub enum RunEnd {
    Sent,
    Had,
    /// Still being measured: it changes every ten seconds.
    StillOn,
    /// Not sent until it changes.
    SetAside(String),
    /// Removed on the farm, which refuses it until further notice.
    Removed {
        id: String,
        why: String,
    },
    /// Tried again after a day, or when the program is started again.
    PassedOver(String),
    /// Tried again in the next round.
    Later(String),
}

/// Sends a run until the farm acknowledges its present state.
pub fn upload(round: &mut PushRound<'_>, files: &MachineFiles, id: &str) -> Sent<RunEnd> {
    for _ in 0..TRIES {
        round.may(PushAllowance::All)?;
        let manifest = match manifest_of(files) {
            Ok(manifest) => manifest,
            Err(UnreadBundle::Stays(why)) => return Ok(RunEnd::PassedOver(why)),
            Err(UnreadBundle::Passes(why)) => return Ok(RunEnd::Later(why)),
        };
        let text = serde_json::to_vec(&manifest).map_err(|error| LinkFault::Source(error.to_string()))?;
        let (path, sum) = (format!("/v1/runs/{id}"), hex(&Sha256::digest(&text)));
        let mut answer = round.link.put(&path, &text)?;
        if answer.status == 202 {
            let missing = asked_for(&answer, &manifest).ok_or_else(LinkFault::no_farm)?;
            match pieces(round, files, &manifest, &missing)? {
                PiecesEnd::Whole => {}
                PiecesEnd::Changed => continue,
                PiecesEnd::Full(why) => return Ok(RunEnd::PassedOver(why)),
            }
            answer = round.link.put(&path, &text)?;
        }
        let detail = answer.detail();
        match answer.status {
            200 | 201 if !is_of_run(&answer, id, &sum) => return Err(LinkFault::no_farm().into()),
            202 if asked_for(&answer, &manifest).is_none() => return Err(LinkFault::no_farm().into()),
            200 => return Ok(RunEnd::Had),
            201 => {
                for remark in answer.body["remarks"].as_array().into_iter().flatten() {
                    round.remark(format!("{id} is stored: {}", excerpt(remark.as_str().unwrap_or_default())));
                }
                return Ok(RunEnd::Sent);
            }
            202 => {}
            203..=299 => return Err(LinkFault::no_farm().into()),
            409 if answer.body["removed"] == true && answer.is_own_refusal() => {
                return Ok(RunEnd::Removed { id: id.to_owned(), why: detail });
            }
            409 | 422 if answer.is_own_refusal() => return Ok(RunEnd::SetAside(detail)),
            413 => return Ok(RunEnd::PassedOver(detail)),
            status => {
                let detail = format!("the farm refuses the run ({status}: {detail})");
                return Err(LinkFault::Later { detail, after_s: None }.into());
            }
        }
    }
    Ok(RunEnd::PassedOver("it changed while it was sent".to_owned()))
}

enum PiecesEnd {
    Whole,
    Changed,
    Full(String),
}

fn pieces(
    round: &mut PushRound<'_>,
    files: &MachineFiles,
    manifest: &BundleManifest,
    missing: &[&str],
) -> Sent<PiecesEnd> {
    for piece in missing {
        let Some((path, at)) = place_of(manifest, piece) else { return Ok(PiecesEnd::Changed) };
        round.may(PushAllowance::All)?;
        let inside = format!("/{path}");
        let mut part = FilePart::new(files, &inside, at, PIECE);
        let answer = round.link.stream(&format!("/v1/pieces/{piece}"), &mut part)?;
        let detail = answer.detail();
        match answer.status {
            200 | 201 if is_of(&answer, piece) => {}
            200..=299 => return Err(LinkFault::no_farm().into()),
            413 => return Ok(PiecesEnd::Full(detail)),
            _ if answer.is_own_refusal() => return Ok(PiecesEnd::Changed),
            status => {
                let detail = format!("a piece of the run is refused ({status}: {detail})");
                return Err(LinkFault::Later { detail, after_s: None }.into());
            }
        }
    }
    Ok(PiecesEnd::Whole)
}
