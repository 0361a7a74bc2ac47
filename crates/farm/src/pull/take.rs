//! Takes in what a board has that the store has not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::dir::Dir;
use host::{MachineFiles, RecordFolder};
use model::error::{Failure, Result};
use model::text::several;
use model::units::Nanos;

use super::host_name::PullHost;
use super::remote::{GrowingBytes, ListedRun, RemoteFault, RemoteRuns};
use crate::ingest::bundle::read;
use crate::ingest::environment::hex;
use crate::ingest::find::FoundBundle;
use crate::ingest::keep::{copying_turn, keep, name_of_state};
use crate::ingest::stored::stored_file;
use crate::ingest::unpack::{UnpackedRuns, remove_tree};
use crate::objects::{ObjectBucket, name_in_bucket};
use crate::records::BundleRecord;
use crate::store::{FarmStore, PutOutcome};

/// Runs in one archive.
const TOGETHER: usize = 16;
/// Where an archive is unpacked, below the folder of its board.
const RUNS: &str = "runs";

/// Where runs go, and how much a board may have.
#[derive(Clone)]
pub struct PullPlace {
    pub store: FarmStore,
    pub bundles: PathBuf,
    /// Where the bundles go instead, with the folder as its cache.
    pub bucket: Option<Arc<ObjectBucket>>,
    pub quota: u64,
    pub always: bool,
    /// How long a board is waited for where nothing comes of it.
    pub silence: Nanos,
}

/// What became of a board's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullOutcome {
    pub stored: u64,
    pub had: u64,
    /// What was left out, each with its reason.
    pub refused: Vec<String>,
    /// Why it could not be reached or asked: nothing is known of its runs then.
    pub unasked: Option<String>,
    pub measures: bool,
    /// Links and files that are no part of a bundle.
    pub left_out: u64,
    /// What is to be known of runs that were stored.
    pub remarks: Vec<String>,
}

/// Asks a board for what is new. The failure is the store's, all else is in the outcome.
pub async fn pull_from(place: &PullPlace, host: &PullHost) -> Result<PullOutcome> {
    let mut outcome = PullOutcome::default();
    let (name, always, silence) = (host.target.clone(), place.always, place.silence);
    let listed = blocking(move || RemoteRuns { target: &name, always, silence }.list()).await?;
    let (listed, foreign) = match listed {
        Ok(listed) => listed,
        Err(RemoteFault::Measures) => return Ok(PullOutcome { measures: true, ..outcome }),
        Err(RemoteFault::Failed(why) | RemoteFault::Unreached(why) | RemoteFault::Silent(why)) => {
            return Ok(PullOutcome { unasked: Some(why), ..outcome });
        }
        Err(RemoteFault::Refused(why)) => {
            outcome.refused.push(why);
            return Ok(outcome);
        }
    };
    if foreign > 0 {
        outcome.refused.push(format!("{} of its list name no run", several(foreign, "line", "lines")));
    }
    // What was removed here stays on the board, and is not fetched in vain.
    let gone: BTreeSet<String> = place.store.forgotten().await?.into_iter().map(|(run, _)| run).collect();
    let known = place.store.digests_of(&host.board).await?;
    let gone_on = gone_on(place, &host.board, &listed).await?;
    let listed = listed.into_iter().filter(|run| !gone.contains(&run.name));
    let is_here = |run: &ListedRun| known.contains(&run.digest) && !gone_on.contains(&run.digest);
    let (had, new): (Vec<_>, Vec<_>) = listed.partition(is_here);
    outcome.had += had.len() as u64;
    if new.is_empty() {
        return Ok(outcome);
    }
    let folder = match PullFolder::make(&place.bundles, &host.board) {
        Ok(folder) => folder,
        Err(why) => {
            outcome.refused.push(why);
            return Ok(outcome);
        }
    };
    // The newest first: their names begin with their time.
    let new: Vec<ListedRun> = new.into_iter().rev().collect();
    let mut waiting: Vec<&[ListedRun]> = new.chunks(TOGETHER).rev().collect();
    while let Some(some) = waiting.pop() {
        match fetch(place, host, some, &folder, &mut outcome).await? {
            Ok(()) => {}
            // What one of them has may be the reason that all are refused.
            Err(RemoteFault::Refused(_)) if some.len() > 1 => waiting.extend(some.chunks(1).rev()),
            // Each further one would take as long.
            Err(RemoteFault::Unreached(why) | RemoteFault::Silent(why)) => {
                outcome.refused.push(why);
                break;
            }
            Err(fault) => outcome.refused.push(format!("{}: {}", some[0].name, words(fault))),
        }
    }
    Ok(outcome)
}

/// The digests of documents of which a board has more seconds than the bundle here: a run that was
/// killed keeps the document of its last checkpoint.
async fn gone_on(place: &PullPlace, board: &str, listed: &[ListedRun]) -> Result<BTreeSet<String>> {
    let listed: BTreeMap<&str, GrowingBytes> =
        listed.iter().map(|run| (run.digest.as_str(), run.growing)).collect();
    let mut found = BTreeSet::new();
    for (digest, bundle) in place.store.unended_bundles_of(board).await? {
        let Some(there) = listed.get(digest.as_str()) else { continue };
        let here = bytes_here(place, PathBuf::from(bundle)).await?;
        if here.is_some_and(|here| there.is_more_than(here)) {
            found.insert(digest);
        }
    }
    Ok(found)
}

/// How long these files are of a bundle that is kept; none where that is gone.
async fn bytes_here(place: &PullPlace, bundle: PathBuf) -> Result<Option<GrowingBytes>> {
    let bucket = place.bucket.as_ref().zip(name_in_bucket(&bundle, &place.bundles));
    let Some((bucket, name)) = bucket else { return blocking(move || bytes_of(&bundle)).await };
    match bucket.manifest(&name).await {
        Err(fault) if fault.is_of_bucket() => Err(fault.into()),
        Ok(Some(manifest)) => {
            let files = &manifest.files;
            let bytes = |path: &str| files.iter().find(|file| file.path == path).map_or(0, |file| file.bytes);
            Ok(Some(GrowingBytes { blocks: bytes("blocks.jsonl"), tail: bytes("tail") }))
        }
        Ok(None) | Err(_) => Ok(None),
    }
}

fn bytes_of(bundle: &Path) -> Option<GrowingBytes> {
    host::identity(&bundle.join("run.json"))?;
    let bytes = |path: &str| stored_file(bundle, path).map_or(0, |file| file.bytes);
    Some(GrowingBytes { blocks: bytes("blocks.jsonl"), tail: bytes("tail") })
}

fn words(fault: RemoteFault) -> String {
    match fault {
        RemoteFault::Measures => "it measures".to_owned(),
        RemoteFault::Failed(why)
        | RemoteFault::Unreached(why)
        | RemoteFault::Silent(why)
        | RemoteFault::Refused(why) => why,
    }
}

/// Fetches some runs and stores each; a refusal, a silence and a lost connection concern all of
/// them, and none is stored then.
async fn fetch(
    place: &PullPlace,
    host: &PullHost,
    some: &[ListedRun],
    folder: &PullFolder,
    outcome: &mut PullOutcome,
) -> Result<std::result::Result<(), RemoteFault>> {
    let left = place.quota.saturating_sub(place.store.kept_bytes_of(&host.board).await?);
    let names: BTreeSet<String> = some.iter().map(|run| run.name.clone()).collect();
    let (to, name, always) = (folder.place.clone(), host.target.clone(), place.always);
    let silence = place.silence;
    let fetched = blocking(move || {
        let into = emptied(&to).map_err(RemoteFault::Failed)?;
        RemoteRuns { target: &name, always, silence }.fetch(&names, &into, left)
    });
    let unpacked: UnpackedRuns = match fetched.await? {
        Ok(unpacked) => unpacked,
        Err(fault @ (RemoteFault::Measures | RemoteFault::Failed(_))) => {
            outcome.refused.push(words(fault));
            return Ok(Ok(()));
        }
        Err(fault) => return Ok(Err(fault)),
    };
    outcome.left_out += unpacked.left_out;
    let volumes: BTreeMap<String, u64> =
        unpacked.runs.into_iter().map(|(run, volume)| (run, volume.bytes)).collect();
    for run in some {
        let bytes = volumes.get(&run.name).copied().unwrap_or_default();
        match take_in(place, host, run, bytes, &folder.place.join(RUNS).join(&run.name)).await? {
            Ok((PutOutcome::Had, _)) => outcome.had += 1,
            Ok((_, remarks)) => {
                outcome.stored += 1;
                outcome.remarks.extend(remarks.iter().map(|remark| format!("{}: {remark}", run.name)));
            }
            Err(why) => outcome.refused.push(format!("{}: {why}", run.name)),
        }
    }
    Ok(Ok(()))
}

/// Reads, copies and stores a run; why not, in a line.
async fn take_in(
    place: &PullPlace,
    host: &PullHost,
    run: &ListedRun,
    bytes: u64,
    from: &Path,
) -> Result<std::result::Result<(PutOutcome, Vec<String>), String>> {
    let (from, bundles) = (from.to_owned(), place.bundles.clone());
    let (host, digest) = (host.clone(), run.digest.clone());
    let known = place.store.clone();
    let read = blocking(move || {
        let (mut record, remarks) = read(&FoundBundle { place: from.clone(), board: Some(host.name) })?;
        if hex(&record.digest) != digest {
            return Err("it changed while it was read: it is left for the next time".to_owned());
        }
        record.run.board = host.board;
        Ok((record, from, remarks))
    });
    let (mut record, from, remarks): (BundleRecord, PathBuf, Vec<String>) = match read.await? {
        Ok(read) => read,
        Err(why) => return Ok(Err(why)),
    };
    let turn = if place.bucket.is_none() { copying_turn(&place.bundles).await } else { Ok(None) };
    let _turn = match turn {
        Ok(turn) => turn,
        Err(why) => return Ok(Err(why)),
    };
    // What is refused, or there already, does not touch the copy of what is stored.
    match known.outcome_of(&record).await? {
        PutOutcome::Refused(why) => return Ok(Err(why)),
        PutOutcome::Had => return Ok(Ok((PutOutcome::Had, Vec::new()))),
        PutOutcome::Stored | PutOutcome::Replaced => {}
    }
    let (id, state) = (record.run.id.clone(), name_of_state(&record));
    let kept = match &place.bucket {
        None => blocking(move || keep(&from, &id, &bundles).map(|(kept, _)| kept)).await?,
        Some(bucket) => match bucket.put_folder(&state, &from, &record.digest).await {
            Err(fault) if fault.is_of_bucket() => return Err(fault.into()),
            Err(fault) => Err(fault.words().to_owned()),
            Ok(_) => Ok(bundles.join(&state)),
        },
    };
    match kept {
        Ok(kept) => record.run.place = kept.to_string_lossy().into_owned(),
        Err(why) => return Ok(Err(why)),
    }
    Ok(match known.put_pulled(&record, bytes).await? {
        PutOutcome::Refused(why) => Err(why),
        stored => Ok((stored, remarks)),
    })
}

/// Work that waits for files and other programs.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|_| Failure::internal("what a board sent made a parser fail: report this, with its runs"))
}

/// The folder in which a board's archives are unpacked, for this process alone.
struct PullFolder {
    place: PathBuf,
    _alone: host::FolderLock,
}

impl PullFolder {
    fn make(bundles: &Path, board: &str) -> std::result::Result<PullFolder, String> {
        // Ids of runs do not begin with a dot.
        let place = bundles.join(".pulled").join(board);
        let locked = RecordFolder::make(&place).and_then(|folder| folder.lock());
        let locked =
            locked.map_err(|error| format!("cannot write next to the store ({error}): look at its space"))?;
        let alone =
            locked.map_err(|owner| format!("process {} asks this board already: wait for it", owner.pid))?;
        Ok(PullFolder { place, _alone: alone })
    }
}

impl Drop for PullFolder {
    fn drop(&mut self) {
        let _ = emptied(&self.place);
    }
}

/// The folder for an archive, with nothing in it.
fn emptied(place: &Path) -> std::result::Result<Dir, String> {
    let trouble = |error: std::io::Error| format!("cannot write next to the store ({error})");
    let top = Dir::existing(place).map_err(trouble)?;
    remove_tree(&MachineFiles::folder(place), &top, RUNS, 0);
    top.subdir(RUNS).map_err(trouble)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::killed_run;
    use crate::objects::tests::{PlannedFault, hunt_that_is_on, in_memory};

    fn host(name: &str) -> PullHost {
        PullHost::parse(name).unwrap()
    }

    /// A farm with nothing, which pulls into a folder or a bucket.
    async fn place_in(bundles: PathBuf, bucket: Option<Arc<ObjectBucket>>) -> PullPlace {
        let store = FarmStore::in_memory().await.unwrap();
        PullPlace { store, bundles, bucket, quota: 1 << 30, always: true, silence: Nanos::SECOND }
    }

    #[test]
    fn a_run_that_was_fetched_is_in_the_bucket_before_it_is_stored() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
            let (bucket, folder) = (in_memory(), tempfile::tempdir().unwrap());
            let place = place_in(folder.path().to_owned(), Some(bucket.clone())).await;
            let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt");
            let record = read(&FoundBundle { place: from.clone(), board: None }).unwrap().0;
            let name = name_of_state(&record);
            let (id, digest) = (record.run.id, record.digest);
            let growing = GrowingBytes::default();
            let run = ListedRun { name: id.clone(), digest: hex(&digest), growing };
            for at in 1..=4 {
                bucket.planned.plan(Some((at, PlannedFault::Gone)));
                assert!(take_in(&place, &host("a"), &run, 9, &from).await.is_err());
                assert!(place.store.run(&id).await.unwrap().is_none(), "the request {at} failed");
            }
            bucket.planned.plan(None);
            let stored = take_in(&place, &host("a"), &run, 9, &from).await.unwrap();
            assert_eq!(stored.map(|(stored, _)| stored), Ok(PutOutcome::Stored));
            assert_eq!(bucket.faults(&name, &digest, true).await.unwrap(), [""; 0]);
            let kept = place.store.run(&id).await.unwrap().unwrap().place;
            assert_eq!(Path::new(&kept), folder.path().join(&name));
            assert!(!Path::new(&kept).exists(), "the folder is a cache");
        });
    }

    #[test]
    fn an_earlier_state_does_not_touch_the_copy_of_a_later_one() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
            for bucket in [None, Some(in_memory())] {
                let folder = tempfile::tempdir().unwrap();
                let place = place_in(folder.path().join("bundles"), bucket.clone()).await;
                let take = async |from: &PathBuf, board: &str| {
                    let record = read(&FoundBundle { place: from.to_owned(), board: None }).unwrap().0;
                    let growing = GrowingBytes::default();
                    let run = ListedRun { name: record.run.id, digest: hex(&record.digest), growing };
                    take_in(&place, &host(board), &run, 9, from).await.unwrap()
                };
                let (later, earlier) = (hunt_that_is_on(folder.path(), 0), hunt_that_is_on(folder.path(), 1));
                assert_eq!(take(&later, "a").await.map(|(stored, _)| stored), Ok(PutOutcome::Stored));
                assert!(take(&earlier, "a").await.unwrap_err().contains("a later state"));
                assert!(take(&later, "b").await.unwrap_err().contains("a run of a already"));
                assert_eq!(take(&later, "a").await, Ok((PutOutcome::Had, Vec::new())));
                let record = read(&FoundBundle { place: later, board: None }).unwrap().0;
                match &bucket {
                    Some(bucket) => {
                        let name = name_of_state(&record);
                        assert_eq!(bucket.faults(&name, &record.digest, true).await.unwrap(), [""; 0]);
                    }
                    None => {
                        let copy = FoundBundle { place: place.bundles.join(&record.run.id), board: None };
                        assert_eq!(read(&copy).unwrap().0.digest, record.digest);
                    }
                }
            }
        });
    }

    #[test]
    fn the_last_seconds_of_a_run_that_was_killed_are_fetched_beside_the_same_document() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
            for bucket in [None, Some(in_memory())] {
                let folder = tempfile::tempdir().unwrap();
                let place = place_in(folder.path().join("bundles"), bucket).await;
                let from = folder.path().join("run");
                let take = async || {
                    let record = read(&FoundBundle { place: from.clone(), board: None }).unwrap().0;
                    let (digest, growing) = (hex(&record.digest), bytes_of(&from).unwrap());
                    let run = ListedRun { name: record.run.id, digest, growing };
                    let gone_on = gone_on(&place, "a", std::slice::from_ref(&run)).await.unwrap();
                    let taken = take_in(&place, &host("a"), &run, 9, &from).await.unwrap();
                    let cycles = place.store.runs("a", 1).await.unwrap().remove(0).cycles;
                    (gone_on.len(), taken.map(|(stored, _)| stored), cycles)
                };
                killed_run(&from, 1);
                let (gone_on, stored, before) = take().await;
                assert_eq!((gone_on, stored), (0, Ok(PutOutcome::Stored)));
                assert_eq!(take().await, (0, Ok(PutOutcome::Had), before));
                killed_run(&from, 3);
                assert_eq!(take().await, (1, Ok(PutOutcome::Replaced), before + 20));
                assert_eq!(take().await, (0, Ok(PutOutcome::Had), before + 20));
            }
        });
    }
}
