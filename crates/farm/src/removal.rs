//! Removes a run from the farm: first from the store, then its bundle from the folder or the
//! bucket, so that no run that is shown lacks its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::MachineFiles;
use host::dir::Dir;
use model::error::{ItemFailure, Result};
use model::text::{quoted, several};
use model::units::Nanos;
use serde::Serialize;

use crate::folders::{lies_in, name_in_bucket};
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::ingest::keep::lock_of_writers;
use crate::ingest::remove_tree::remove_tree;
use crate::objects::{ObjectBucket, is_state_of, remove_states};
use crate::records::{BundleRecord, FarmRun};
use crate::store::{FarmStore, RemovedRun, RunRemoval};

/// Location of the bundles.
#[derive(Clone, Copy)]
pub struct KeptBundles<'a> {
    /// The folder of copies; of a bucket its cache.
    pub folder: &'a Path,
    pub bucket: Option<&'a Arc<ObjectBucket>>,
    /// Time to wait for other writers into the folder.
    pub patience: Nanos,
}

/// A removed run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForgottenRun {
    #[serde(flatten)]
    pub of: RemovedRun,
    /// True if its bundle was removed as well.
    pub bundle_gone: bool,
    /// Reason for which it was not; empty if it was.
    pub bundle_left: String,
}

impl ForgottenRun {
    /// Removed data, in a line.
    pub fn words(&self) -> String {
        let RemovedRun { run, board, place, samples, slots, culprits, .. } = &self.of;
        let mut words = format!(
            "{run} of {board}: {}, {}, {}",
            several(*samples, "sample", "samples"),
            several(*slots, "maximum of five minutes", "maxima of five minutes"),
            several(*culprits, "culprit without other evidence", "culprits without other evidence"),
        );
        let with = [
            (self.of.environment, "its environment"),
            (self.of.board_gone, "the board, which is now empty"),
            (self.bundle_gone, "its bundle"),
        ];
        for (_, what) in with.iter().filter(|(is_gone, _)| *is_gone) {
            words += &format!(", {what}");
        }
        if !self.bundle_gone {
            words += &format!("; its bundle stays in {}: {}", quoted(place), self.bundle_left);
        }
        words
    }
}

/// The record of a run, read from a folder for its removal; `None` if it is unreadable.
pub fn bundle_of(run: &FarmRun, place: PathBuf) -> Option<BundleRecord> {
    let (record, _) = read(&FoundBundle { place, board: None }).ok()?;
    (record.run.id == run.id).then_some(record)
}

/// Removes a run. With a time in seconds since 1970 it does not come again.
///
/// # Errors
/// Refused: the run stays.
pub async fn forget(
    store: &FarmStore,
    run: &FarmRun,
    bundle: Option<&BundleRecord>,
    kept: KeptBundles<'_>,
    at: Option<i64>,
) -> Result<ForgottenRun, ItemFailure> {
    let id = &run.id;
    // Until the bundle is removed, no other program copies the run to the same place.
    let _lock = lock_of_writers(kept.folder, kept.patience)
        .await
        .map_err(|failure| ItemFailure::Refused(format!("{id} stays: {}", failure.message)))?;
    let of = match store.forget_run(id, bundle, at).await? {
        RunRemoval::Removed(of) => of,
        RunRemoval::Unknown => {
            return Err(ItemFailure::Refused(format!("this farm no longer has a run {id}")));
        }
        RunRemoval::Pinned => return Err(ItemFailure::Refused(pinned(id))),
        RunRemoval::Mixed => {
            return Err(ItemFailure::Refused(format!(
                "cannot subtract {id} from the histograms, because its samples were merged with others: give \
                 a complete copy of the run with `onbeat-farm forget --from DIR {id}`"
            )));
        }
    };
    let KeptBundles { folder, bucket, .. } = kept;
    // A run that may return may be arriving: `prune` removes the rest if it does not.
    let left = match at.is_none().then(|| left_in_bucket(Path::new(&of.place), kept)).flatten() {
        Some(why) => Some(why),
        None => remove_bundle(Path::new(&of.place), kept).await,
    };
    if at.is_some() {
        if let Some(bucket) = bucket {
            remove_states(bucket, store, id).await?;
        }
        remove_other_states(store, id, folder).await?;
    }
    let (bundle_gone, bundle_left) = (left.is_none(), left.unwrap_or_default());
    Ok(ForgottenRun { of, bundle_gone, bundle_left })
}

/// Message on a pinned run, with a remedy.
pub fn pinned(id: &str) -> String {
    format!("{id} is pinned: unpin it first, with `onbeat-farm pin --remove {id}` or on its page")
}

/// Reason to leave a bundle in a bucket if its board may be sending the run again: several machines
/// write to a bucket without a common lock, and each state has one name.
fn left_in_bucket(place: &Path, kept: KeptBundles<'_>) -> Option<String> {
    let bucket = kept.bucket.filter(|_| name_in_bucket(place, kept.folder).is_some())?;
    let has_state = place.file_name()?.to_str()?.contains('+');
    has_state.then(|| {
        format!(
            "its board may be sending it again; otherwise, `onbeat-farm prune` removes it from {} a day \
             after its arrival",
            bucket.name()
        )
    })
}

/// Removes a bundle; returns the reason of a failure.
async fn remove_bundle(place: &Path, kept: KeptBundles<'_>) -> Option<String> {
    let name = place.file_name()?.to_str()?.to_owned();
    let in_bucket = kept.bucket.filter(|_| name_in_bucket(place, kept.folder).is_some());
    if let Some(bucket) = in_bucket
        && let Err(fault) = bucket.remove(&name).await
    {
        return Some(fault.words().to_owned());
    }
    // A bundle in a bucket may have a copy here.
    let copy = kept.folder.join(&name);
    if (in_bucket.is_some() || lies_in(place, kept.folder))
        && let Ok(top) = Dir::existing(kept.folder)
    {
        remove_tree(&MachineFiles::folder(kept.folder), &top, &name, 0);
    }
    let left = if in_bucket.is_some() { copy.as_path() } else { place };
    host::identity(&left.join("run.json")).map(|_| {
        if lies_in(left, kept.folder) {
            "remove it as the user of the server".to_owned()
        } else {
            "it is shown from there and does not belong to the farm".to_owned()
        }
    })
}

/// Removes other states of a removed run from the folder of copies, as of one that was imported
/// while it was running, and then sent by its board: nothing refers to them any more.
async fn remove_other_states(store: &FarmStore, id: &str, folder: &Path) -> Result<()> {
    // It may have returned, if an admin has allowed that since.
    if store.run(id).await?.is_some() {
        return Ok(());
    }
    let files = MachineFiles::folder(folder);
    let names = files.list_as_it_is("/.").known().cloned().unwrap_or_default();
    let Ok(top) = Dir::existing(folder) else { return Ok(()) };
    for name in names {
        if is_state_of(&name, id) {
            remove_tree(&files, &top, &name, 0);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::{block_on, run_folder};
    use crate::ingest::keep::{PATIENCE, keep, name_of_state};
    use crate::objects::tests::in_memory;
    use crate::store::engines::on_each_engine;

    #[test]
    fn a_bundle_goes_with_its_run_but_for_one_that_is_shown_from_elsewhere() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let own = folder.path().join("own");
            let elsewhere = keep(&run_folder("hunt"), "elsewhere", folder.path()).unwrap().0;
            let copy = keep(&run_folder("hunt"), "copy", &own).unwrap().0;
            keep(&run_folder("hunt"), "other", &own).unwrap();
            for (place, is_gone) in [(&copy, true), (&elsewhere, false)] {
                let found = FoundBundle { place: place.clone(), board: Some("a".into()) };
                store.put(&read(&found).unwrap().0).await.unwrap();
                let run = store.runs("a", 1).await.unwrap().remove(0);
                let bundle = bundle_of(&run, place.clone());
                assert!(bundle.is_some());
                let kept = KeptBundles { folder: &own, bucket: None, patience: PATIENCE };
                let gone = forget(&store, &run, bundle.as_ref(), kept, None).await.unwrap();
                assert_eq!((gone.bundle_gone, place.exists()), (is_gone, !is_gone));
                let words = gone.words();
                assert!(words.starts_with(&format!("{} of a: ", run.id)), "{words}");
                assert_eq!(words.contains("does not belong to the farm"), !is_gone, "{words}");
                assert!(words.contains("the board, which is now empty") && !words.contains('\n'));
                let kept = KeptBundles { folder: &own, bucket: None, patience: PATIENCE };
                let again = forget(&store, &run, None, kept, None).await.unwrap_err().reason().unwrap();
                assert!(again.contains("no longer has a run"));
            }
            assert!(own.join("other/run.json").exists());
            let other = FarmRun { id: "another".into(), ..FarmRun::default() };
            assert!(bundle_of(&other, elsewhere).is_none() && bundle_of(&other, own).is_none());
        });
    }

    #[test]
    fn all_states_of_a_run_go_with_it() {
        on_each_engine(async |store| {
            let folder = tempfile::tempdir().unwrap();
            let found = FoundBundle { place: run_folder("hunt"), board: Some("a".into()) };
            let mut record = read(&found).unwrap().0;
            let id = record.run.id.clone();
            // One imported while it was running, one that was sent, and the final one.
            let names =
                [id.clone(), format!("{id}+1"), format!("{id}+2"), format!("{id}2"), "other".to_owned()];
            for name in &names {
                keep(&run_folder("hunt"), name, folder.path()).unwrap();
            }
            // A run that may return may be arriving: its board has sent the first part of `+1`.
            for (at, stays) in
                [(None, [true, true, false, true, true]), (Some(5), [false, false, false, true, true])]
            {
                keep(&run_folder("hunt"), &names[2], folder.path()).unwrap();
                record.run.place = folder.path().join(&names[2]).to_string_lossy().into_owned();
                store.put(&record).await.unwrap();
                let kept = KeptBundles { folder: folder.path(), bucket: None, patience: PATIENCE };
                let gone = forget(&store, &record.run, None, kept, at).await.unwrap();
                assert!(gone.bundle_gone, "{gone:?}");
                let there: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
                assert_eq!(there, stays, "{at:?}");
            }
        });
    }

    #[test]
    fn a_bundle_goes_from_the_bucket_and_its_copy_from_here() {
        block_on(async {
            let (store, bucket) = (FarmStore::in_memory().await.unwrap(), in_memory());
            let folder = tempfile::tempdir().unwrap();
            let found = FoundBundle { place: run_folder("hunt"), board: Some("a".into()) };
            let mut record = read(&found).unwrap().0;
            let (id, name) = (record.run.id.clone(), name_of_state(&record));
            let (earlier, alike) = (format!("{id}+0123456789abcdef"), format!("{id}2+0123456789abcdef"));
            let copy = folder.path().join(&name);
            record.run.place = copy.to_string_lossy().into_owned();
            let kept = KeptBundles { folder: folder.path(), bucket: Some(&bucket), patience: PATIENCE };
            let put = async || {
                for name in [&name, &earlier, &alike] {
                    bucket.put_folder(name, &run_folder("hunt"), &record.digest).await.unwrap();
                    keep(&run_folder("hunt"), name, folder.path()).unwrap();
                }
                store.put(&record).await.unwrap();
            };
            // A run that may return may be put there again, under the same name.
            put().await;
            let gone = forget(&store, &record.run, None, kept, None).await.unwrap();
            assert!(!gone.bundle_gone && gone.words().contains("`onbeat-farm prune`"), "{gone:?}");
            assert!(bucket.manifest(&name).await.unwrap().is_some());
            put().await;
            let gone = forget(&store, &record.run, None, kept, Some(5)).await.unwrap();
            assert!(gone.bundle_gone, "{gone:?}");
            for (name, stays) in [(&name, false), (&earlier, false), (&alike, true)] {
                assert_eq!(bucket.manifest(name).await.unwrap().is_some(), stays, "{name}");
                assert_eq!(folder.path().join(name).exists(), stays, "{name}");
            }
        });
    }
}
