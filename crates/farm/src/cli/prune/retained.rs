//! Places of bundles under retention: a folder, or a bucket with the copies of its bundles on this
//! machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::RecordFolder;
use host::dir::Dir;
use model::error::{Exit, Failure, ItemFailure, Result};
use model::text::quoted;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::cli::prune::times::RetentionTimes;
use crate::folders::{lies_in, name_in_bucket};
use crate::ingest::remove_tree::remove_tree;
use crate::ingest::thin::{ThinnedBundle, WindowsKept, thin_blocks, thin_windows};
use crate::intake::PARSER_FAILED;
use crate::objects::{BucketBundle, BucketFault, ObjectBucket};
use crate::store::{KeptBundle, ThinnedPart};
use crate::wall_clock::DAY;

/// Folder in which bundles are thinned, next to their copies.
const THINNED: &str = ".thinned";
const WORK: &str = "work";

impl From<BucketFault> for ItemFailure {
    /// A bucket that does not answer or refuses ends the command; other faults concern the run.
    fn from(fault: BucketFault) -> ItemFailure {
        if fault.is_of_bucket() {
            ItemFailure::Fatal(fault.into())
        } else {
            ItemFailure::Refused(fault.words().to_owned())
        }
    }
}

/// The bundles of a farm.
pub struct RetainedBundles<'a> {
    folder: &'a Path,
    bucket: Option<(&'a Arc<ObjectBucket>, ThinningFolder)>,
}

/// A bundle with old parts.
pub struct RetainedBundle<'a> {
    /// The bundle, or the copy of one in a bucket.
    place: PathBuf,
    /// The one in the bucket, with the folder in which it is thinned.
    in_bucket: Option<(Mutex<BucketBundle>, &'a Path)>,
}

impl<'a> RetainedBundles<'a> {
    pub fn open(folder: &'a Path, bucket: Option<&'a Arc<ObjectBucket>>) -> Result<RetainedBundles<'a>> {
        let bucket = bucket.map(|bucket| ThinningFolder::make(folder).map(|work| (bucket, work)));
        Ok(RetainedBundles { folder, bucket: bucket.transpose()? })
    }

    /// A bundle with its old parts; `None` if it has none, or does not belong to the farm.
    pub async fn old(
        &self,
        bundle: &KeptBundle,
        times: &RetentionTimes,
    ) -> Result<Option<(RetainedBundle<'_>, Vec<ThinnedPart>)>, ItemFailure> {
        let place = PathBuf::from(&bundle.place);
        let (retained, old) = if let Some((bucket, work)) = &self.bucket {
            // No request is needed for a recent bundle, or one with nothing left to remove.
            let may_go = left_of(bundle, times.old(bundle, i64::MIN), times.now);
            let name = name_in_bucket(&place, self.folder);
            let Some(name) = name.filter(|_| !may_go.is_empty()) else { return Ok(None) };
            let found = BucketBundle::look(bucket, &name).await?;
            let old = left_of(bundle, times.old(bundle, found.came), times.now);
            let in_bucket = Some((Mutex::new(found), work.place.as_path()));
            (RetainedBundle { place: self.folder.join(name), in_bucket }, old)
        } else {
            // Bundles elsewhere are only shown, and do not belong to the farm.
            let came = host::written_at(&place.join("run.json")).filter(|_| lies_in(&place, self.folder));
            let Some(came) = came else { return Ok(None) };
            (RetainedBundle { place, in_bucket: None }, times.old(bundle, came))
        };
        Ok((!old.is_empty()).then_some((retained, old)))
    }
}

impl RetainedBundle<'_> {
    /// Removes a part, unless `dry`.
    pub async fn thin(
        &self,
        part: ThinnedPart,
        kept: &WindowsKept,
        dry: bool,
    ) -> Result<ThinnedBundle, ItemFailure> {
        if let Some((found, work)) = &self.in_bucket {
            return Ok(found.lock().await.thin(work, part, kept, dry).await?);
        }
        let (place, kept) = (self.place.clone(), kept.clone());
        let thinned = spawn_blocking(move || thin(&place, part, &kept, dry)).await;
        thinned.unwrap_or_else(|_| Err(PARSER_FAILED.to_owned())).map_err(ItemFailure::Refused)
    }

    /// Removes from a bucket what its bundle no longer names, and the same parts from the copy.
    pub async fn finish(&self, old: Vec<ThinnedPart>, kept: &WindowsKept) -> Result<()> {
        let Some((found, _)) = &self.in_bucket else { return Ok(()) };
        // Also if an earlier, interrupted attempt already wrote the manifest.
        found.lock().await.remove_unnamed().await?;
        let (copy, kept) = (self.place.clone(), kept.clone());
        // A copy that stays whole shows more than there is, and nothing wrong.
        let all = move || old.into_iter().try_for_each(|part| thin(&copy, part, &kept, false).map(drop));
        let _ = spawn_blocking(all).await;
        Ok(())
    }
}

/// Removes a part of a bundle in a folder.
fn thin(
    place: &Path,
    part: ThinnedPart,
    kept: &WindowsKept,
    dry: bool,
) -> std::result::Result<ThinnedBundle, String> {
    match part {
        ThinnedPart::Windows => thin_windows(place, kept, dry),
        ThinnedPart::Blocks => Ok(ThinnedBundle { blocks: thin_blocks(place, dry)?, ..Default::default() }),
    }
}

/// A part is recorded before it is removed: for this time its removal is verified again.
const LOOKED_AT_AGAIN: i64 = 3 * DAY;

/// Old parts of a bundle that were not removed before.
fn left_of(bundle: &KeptBundle, old: Vec<ThinnedPart>, now: i64) -> Vec<ThinnedPart> {
    let is_gone = |part: &ThinnedPart| {
        bundle.thinned.contains(part.word()) && bundle.thinned_at < now - LOOKED_AT_AGAIN
    };
    old.into_iter().filter(|part| !is_gone(part)).collect()
}

/// A folder to work in, for this process alone.
struct ThinningFolder {
    place: PathBuf,
    above: PathBuf,
    _alone: host::FolderLock,
}

impl ThinningFolder {
    fn make(folder: &Path) -> Result<ThinningFolder> {
        let above = folder.join(THINNED);
        let locked = RecordFolder::make(&above).and_then(|folder| folder.lock()).map_err(|error| {
            let what = format!("cannot write to {}", quoted(&above));
            Failure::of_call(what, &error, Exit::NotPermitted, "run this as the user of the server")
        })?;
        let alone = locked.ok_or_else(|owner| {
            Failure::not_permitted(format!("process {} is pruning already: wait for it", owner.pid))
        })?;
        Ok(ThinningFolder { place: above.join(WORK), above, _alone: alone })
    }
}

impl Drop for ThinningFolder {
    fn drop(&mut self) {
        if let Ok(top) = Dir::existing(&self.above) {
            remove_tree(&host::MachineFiles::folder(&self.above), &top, WORK, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::progress::CommandProgress;
    use crate::cli::prune::retention::{PrunedBundles, thin_out};
    use crate::fixture::{block_on, run_folder};
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::objects::tests::{PlannedFault, in_memory};
    use crate::store::FarmStore;
    use crate::wall_clock::now;

    #[test]
    fn what_is_old_goes_from_the_bucket_and_from_its_copy_and_is_noted_afterwards() {
        block_on(async {
            let (store, bucket) = (FarmStore::in_memory().await.unwrap(), in_memory());
            let hunt = run_folder("hunt");
            let folder = tempfile::tempdir().unwrap();
            for id in ["first", "second", "pinned"] {
                let copy = crate::ingest::keep::keep(&hunt, id, folder.path()).unwrap().0;
                let mut record = read(&FoundBundle { place: copy, board: Some("a".into()) }).unwrap().0;
                record.run.id = id.into();
                record.slots.iter_mut().for_each(|slot| slot.run = id.into());
                store.put(&record).await.unwrap();
                bucket.put_folder(id, &hunt, &record.digest).await.unwrap();
            }
            store.pin("pinned", "ann", "", 1).await.unwrap();
            let later = now() + 86_400;
            let times = RetentionTimes { blocks: later, windows: later, now: later };
            let quiet = CommandProgress::begin(false);
            let prune = async |times, dry| {
                let from = RetainedBundles::open(folder.path(), Some(&bucket))?;
                thin_out(&store, &from, times, dry, &quiet).await
            };
            // A recently received bundle stays, however long ago its run began.
            let lately = RetentionTimes { blocks: now() - 60, windows: now() - 60, now: now() };
            assert_eq!(prune(lately, false).await.unwrap(), PrunedBundles::default());
            let tried = prune(times, true).await.unwrap();
            assert_eq!((tried.all.len(), tried.pinned), (2, 1));
            let thinned = async |id: &str| store.run(id).await.unwrap().unwrap().thinned;
            bucket.planned.plan(Some((9, PlannedFault::Gone)));
            assert!(prune(times, false).await.is_err());
            // Its windows went, and are noted, before the bucket did.
            assert_eq!(thinned("first").await, "windows");
            bucket.planned.plan(None);
            let done = prune(times, false).await.unwrap();
            assert_eq!((done.pinned, done.failed.len()), (1, 0));
            for id in ["first", "second"] {
                assert!(!folder.path().join(id).join("blocks.jsonl").exists(), "{id}");
                let files = bucket.manifest(id).await.unwrap().unwrap().files;
                assert!(files.iter().all(|file| file.path != "blocks.jsonl"), "{id}");
            }
            assert!(folder.path().join("pinned/blocks.jsonl").exists());
            assert_eq!(thinned("second").await, "blocks windows");
            // After days, a recorded part is not requested again, and no bundle is left to thin.
            let days_later = RetentionTimes { now: later + 2 * LOOKED_AT_AGAIN, ..times };
            bucket.planned.plan(None);
            assert!(prune(days_later, false).await.unwrap().all.is_empty());
            assert!(bucket.planned.asked() <= 8, "{}", bucket.planned.asked());
            assert!(!folder.path().join(THINNED).join(WORK).exists());
            // A missing bundle is reported, and the others are handled.
            bucket.remove("pinned").await.unwrap();
            let failed = prune(times, false).await.unwrap().failed;
            assert_eq!(failed[0].0, "pinned");
        });
    }
}
