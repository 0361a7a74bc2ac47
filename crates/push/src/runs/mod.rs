//! Runs of a folder: selects those to send, and notes the outcome of each.

pub mod found_runs;
pub mod known;
pub mod manifest;
pub mod parts;
pub mod removed;
pub mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use host::MachineFiles;
use model::text::{excerpt, hex, quoted, several};
use model::units::Nanos;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use self::found_runs::{DEEPEST, FoundRuns, found};
use self::known::{learn, tell_lost};
use self::manifest::manifest_of;
use self::parts::FilePart;
use self::upload::{RunEnd, upload};
use crate::sent::last_change;
use crate::session::{FarmComparison, PushAllowance, PushRound, RoundEnd};

type Sent<T> = Result<T, RoundEnd>;

/// Time until a run that was passed over is tried again: a proxy may accept more by then.
const AGAIN: Nanos = Nanos(86_400 * Nanos::SECOND.0);

/// Fields that are read from a `run.json`.
#[derive(Deserialize)]
struct RunHead {
    id: String,
    #[serde(default)]
    complete: bool,
}

/// Sends the runs of a folder, the newest first: their names begin with their time.
pub fn send_runs(round: &mut PushRound<'_>, folder: &Path) -> Sent<()> {
    let FoundRuns { places, is_cut, unread, is_whole } = found(folder);
    if is_cut {
        round.outcome.left = true;
        round.remark(format!("{} holds too many files to scan: name folders in it", quoted(folder)));
    }
    if let Some((folder, why)) = unread {
        round.outcome.left = true;
        let words = format!("{} cannot be read ({why})", quoted(&folder));
        round.remark(format!("{words}, and its runs are not sent: run this as its owner"));
    }
    if is_whole {
        forget_gone(round, folder, &places);
    }
    for place in places.iter().rev() {
        let Some(version) = host::file_version(&place.join("run.json")) else { continue };
        let key = place.to_string_lossy().into_owned();
        if round.log.has_run(&key, place, version.0, version.1) {
            continue;
        }
        // The next round sees changes from here on.
        let changed = last_change(place);
        let state = (version.0, version.1.max(changed));
        let now = host::clock::monotonic();
        let passed_over = round.passed_over.get(&key);
        if passed_over.is_some_and(|(of, at)| *of == state && now - *at < AGAIN) {
            round.outcome.left = true;
            continue;
        }
        round.log.runs.remove(&key);
        round.log.unended.remove(&key);
        round.log.refused.remove(&key);
        round.log.removed.remove(&key);
        round.log.documents.remove(&key);
        match send_run(round, place, &key, changed)? {
            RunEnd::Sent => round.outcome.runs += 1,
            RunEnd::Had => {}
            RunEnd::StillOn => continue,
            RunEnd::SetAside(why) => leave_out(round, place, &key, &why),
            RunEnd::Removed { id, why } => {
                leave_out(round, place, &key, &why);
                removed::note(round, key.clone(), id);
            }
            RunEnd::PassedOver(why) => {
                round.outcome.left = true;
                round.remark(format!("{} is not sent: {why}", quoted(place)));
                round.passed_over.insert(key, (state, now));
                continue;
            }
            RunEnd::Later(why) => {
                round.outcome.left = true;
                round.remark(format!("{} is not sent yet: {why}", quoted(place)));
                continue;
            }
        }
        round.log.runs.insert(key, version);
        round.keep()?;
    }
    Ok(())
}

/// Marks a run as refused until it changes.
fn leave_out(round: &mut PushRound<'_>, place: &Path, key: &str, why: &str) {
    round.outcome.refused += 1;
    round.log.refused.insert(key.to_owned());
    round.remark(format!("{} is skipped: {why}", quoted(place)));
}

/// Forgets runs that no longer exist in the folder.
fn forget_gone(round: &mut PushRound<'_>, folder: &Path, places: &[PathBuf]) {
    let there: BTreeSet<&Path> = places.iter().map(PathBuf::as_path).collect();
    let is_there = |key: &String| {
        let place = Path::new(key);
        match place.strip_prefix(folder).map(|below| below.components().count()) {
            Ok(depth) if depth <= DEEPEST => there.contains(place),
            _ => true,
        }
    };
    round.log.runs.retain(|key, _| is_there(key));
    round.log.unended.retain(|key, _| is_there(key));
    round.log.refused.retain(is_there);
    round.log.removed.retain(|key, _| is_there(key));
    round.log.documents.retain(|key, _| is_there(key));
}

fn send_run(round: &mut PushRound<'_>, place: &Path, key: &str, changed: u64) -> Sent<RunEnd> {
    let files = MachineFiles::folder(place);
    let head: RunHead = match serde_json::from_reader(document(&files)) {
        Ok(head) => head,
        Err(error) => {
            let words = excerpt(&error.to_string());
            return Ok(match error.io_error_kind() {
                Some(ErrorKind::PermissionDenied) => RunEnd::PassedOver(format!(
                    "its run.json cannot be read ({words}): run this as its owner"
                )),
                Some(_) => RunEnd::Later(format!(
                    "its run.json cannot be read now ({words}): if that persists, check the disk"
                )),
                None => RunEnd::SetAside(format!(
                    "invalid run.json ({words}): remove the folder, or update onbeat-push if a newer onbeat \
                     wrote it"
                )),
            });
        }
    };
    // A run that was killed is over, even if its document does not say so.
    if !head.complete && (round.measuring)() {
        return Ok(RunEnd::StillOn);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if head.id.is_empty() || !head.id.chars().all(plain) || head.id.starts_with('.') {
        return Ok(RunEnd::SetAside(
            "invalid id of the run, not written by onbeat: remove the folder".to_owned(),
        ));
    }
    if !head.complete {
        round.log.unended.insert(key.to_owned(), changed);
    }
    if round.known.is_none() && round.log.runs.is_empty() {
        learn(round)?;
    }
    // The document identifies the state of a run that is over.
    match round.known.as_ref().filter(|_| head.complete).and_then(|known| known.get(&head.id)) {
        Some(known) if digest(&files).as_ref() == Some(known) => Ok(RunEnd::Had),
        _ => upload(round, &files, &head.id),
    }
}

fn document(files: &MachineFiles) -> FilePart<'_> {
    FilePart::new(files, "/run.json", 0, bundle::manifest::RUN_LIMIT)
}

/// SHA-256 of a run's document; none if it cannot be read to its end.
fn digest(files: &MachineFiles) -> Option<String> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 32 << 10];
    let mut part = document(files);
    loop {
        match part.read(&mut buffer).ok()? {
            0 => return Some(hex(&sum.finalize())),
            n => sum.update(&buffer[..n]),
        }
    }
}

/// Forgets runs that the farm no longer has, or has in an earlier state. Reads each document once.
pub fn compare_runs(round: &mut PushRound<'_>) -> Sent<()> {
    let (FarmComparison::RunsLeft, Some(known)) = (round.comparison, round.known.as_ref()) else {
        return Ok(());
    };
    let (mut lacking, mut read) = (Vec::new(), BTreeMap::new());
    for (key, noted) in round.log.runs.iter().filter(|(key, _)| !round.log.refused.contains(*key)) {
        round.may(PushAllowance::All)?;
        // A changed run is sent again anyway.
        let place = Path::new(key);
        let is_noted = host::file_version(&place.join("run.json")) == Some(*noted);
        if !is_noted || !round.log.has_run(key, place, noted.0, noted.1) {
            continue;
        }
        let before = round.log.documents.get(key).cloned();
        let is_new = before.is_none();
        let Some(document) = before.or_else(|| id_and_state(place)) else { continue };
        // The farm may know a run that is not over by its document only.
        let is_it = |known: &String| {
            let is_unended = || round.log.unended.contains_key(key);
            *known == document.1
                || is_unended() && digest(&MachineFiles::folder(place)).as_ref() == Some(known)
        };
        if !known.get(&document.0).is_some_and(is_it) {
            lacking.push(key.clone());
        } else if is_new {
            read.insert(key.clone(), document);
        }
    }
    let has_changed = !lacking.is_empty() || !read.is_empty();
    round.log.documents.extend(read);
    for key in &lacking {
        round.log.runs.remove(key);
        round.log.documents.remove(key);
    }
    if !lacking.is_empty() {
        tell_lost(round, &several(lacking.len() as u64, "run", "runs"));
    }
    round.comparison = FarmComparison::Done(host::clock::monotonic());
    if has_changed { round.keep() } else { Ok(()) }
}

/// Id of a run and digest of its document, or of its manifest if the run is not over; none if it
/// cannot be read.
fn id_and_state(place: &Path) -> Option<(String, String)> {
    let files = MachineFiles::folder(place);
    let head: RunHead = serde_json::from_reader(document(&files)).ok()?;
    let state = if head.complete {
        digest(&files)?
    } else {
        hex(&Sha256::digest(serde_json::to_vec(&manifest_of(&files).ok()?).ok()?))
    };
    Some((head.id, state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;

    #[test]
    fn a_document_that_cannot_be_read_has_no_digest() {
        let of = |seen: Access| {
            let answers = [("/run.json".to_owned(), seen)].into();
            digest(&MachineFiles::in_memory(answers))
        };
        assert_eq!(of(Access::File(b"{}".to_vec())), Some(hex(&Sha256::digest(b"{}"))));
        // EIO.
        assert_eq!(of(Access::Refused(5)), None);
    }
}
