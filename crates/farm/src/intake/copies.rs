//! Bundles that `import` copies next to the store, or into a bucket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::error::{Failure, ItemFailure, Result};
use model::text::several;

use super::kept_copy::mend;
use crate::folders::name_in_bucket;
use crate::ingest::keep::{PATIENCE, keep, name_of_state, writer_lock};
use crate::objects::ObjectBucket;
use crate::records::{BundleRecord, FarmRun};
use crate::store::{FarmStore, PutOutcome};

/// Place of the copies.
pub struct BundleCopies {
    pub bundles: PathBuf,
    pub bucket: Option<Arc<ObjectBucket>>,
}

impl BundleCopies {
    /// Stores a bundle with its copy. The copy is made first, so that no run in the store lacks it.
    pub async fn put(
        &self,
        store: &FarmStore,
        from: &Path,
        record: &mut BundleRecord,
        remarks: &mut Vec<String>,
    ) -> Result<PutOutcome> {
        let _lock = match &self.bucket {
            // Each state has a separate name there.
            Some(_) => None,
            None => writer_lock(&self.bundles, PATIENCE).await?,
        };
        // A bundle that is refused, or stored already, does not change the copy of the stored one.
        match store.outcome_of(record).await? {
            PutOutcome::Stored | PutOutcome::Replaced => {}
            PutOutcome::Had => {
                return match self.put_back(store, from, record, remarks).await {
                    Ok(()) => Ok(PutOutcome::Had),
                    Err(failure) => failure.reason().map(PutOutcome::Refused),
                };
            }
            refused => return Ok(refused),
        }
        match self.keep(from, record).await {
            Ok((place, left_out)) => {
                record.run.place = place.to_string_lossy().into_owned();
                if left_out > 0 {
                    let files = several(left_out, "file", "files");
                    remarks.push(format!("{files} skipped: links, or unreadable"));
                }
            }
            Err(failure) => return failure.reason().map(PutOutcome::Refused),
        }
        let outcome = store.put(record).await?;
        if !matches!(outcome, PutOutcome::Stored | PutOutcome::Replaced) {
            self.take_back(store, record).await?;
        }
        Ok(outcome)
    }

    /// Copies a bundle; returns its path, and the number of skipped files.
    async fn keep(&self, from: &Path, record: &BundleRecord) -> Result<(PathBuf, u64), ItemFailure> {
        let Some(bucket) = &self.bucket else {
            let (place, left_out) =
                keep(from, &record.run.id, &self.bundles).map_err(ItemFailure::Refused)?;
            // A server that is started elsewhere has to find it.
            return Ok((host::whole_path(&place).unwrap_or(place), left_out));
        };
        let bundles = host::whole_path(&self.bundles).unwrap_or_else(|_| self.bundles.clone());
        let name = name_of_state(record);
        let left_out = bucket.put_folder(&name, from, &record.digest).await?;
        Ok((bundles.join(&name), left_out))
    }

    /// Puts a run back that the store has and the bucket has not, or puts its copy right.
    async fn put_back(
        &self,
        store: &FarmStore,
        from: &Path,
        record: &BundleRecord,
        remarks: &mut Vec<String>,
    ) -> Result<(), ItemFailure> {
        let Some(bucket) = &self.bucket else {
            return mend(store, from, record, &self.bundles, remarks).await;
        };
        let id = &record.run.id;
        let Some(known) = store.run(id).await? else { return Ok(()) };
        let place = Path::new(&known.place);
        let Some(name) = place.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
        // A folder elsewhere may have the name of another run: it is not a name in the bucket.
        if !name.strip_prefix(id.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('+')) {
            if name_in_bucket(place, &self.bundles).is_none() {
                return Ok(());
            }
            let (place, _) = self.keep(from, record).await?;
            store.moved(id, &place.to_string_lossy()).await?;
            remarks.push(format!("{id} is in {} again", bucket.name()));
            return Ok(());
        }
        if bucket.faults(name, &record.digest, false).await.map_err(Failure::from)?.is_empty() {
            return Ok(());
        }
        bucket.put_folder(name, from, &record.digest).await?;
        remarks.push(format!("{id} is in {} again", bucket.name()));
        Ok(())
    }

    /// Removes from the bucket a bundle that was put and then not stored, unless the store has a
    /// run in it: another program may have stored the same one since.
    async fn take_back(&self, store: &FarmStore, record: &BundleRecord) -> Result<()> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let put = name_of_state(record);
        let is_its =
            |run: &FarmRun| Path::new(&run.place).file_name().is_some_and(|name| name == put.as_str());
        if !store.run(&record.run.id).await?.as_ref().is_some_and(is_its) {
            // A bundle that stays there belongs to no run.
            let _ = bucket.remove(&put).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{block_on, killed_run, run_folder};
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use crate::intake::{IntakeOutcome, Keeping, Rejection, take};
    use crate::objects::tests::{PlannedFault, hunt_that_is_on, in_memory};
    use sha2::{Digest, Sha256};

    fn kept_in(bundles: PathBuf, bucket: Option<&Arc<ObjectBucket>>) -> BundleCopies {
        BundleCopies { bundles, bucket: bucket.cloned() }
    }

    async fn take_in(store: &FarmStore, one: &FoundBundle, to: &BundleCopies) -> Result<PutOutcome> {
        Ok(match take(store, one, &Keeping::Copied(to)).await? {
            IntakeOutcome::Stored(run) if run.is_replaced => PutOutcome::Replaced,
            IntakeOutcome::Stored(_) => PutOutcome::Stored,
            IntakeOutcome::Duplicate(_) => PutOutcome::Had,
            IntakeOutcome::Rejected(Rejection::Unreadable(why) | Rejection::Refused(why)) => {
                PutOutcome::Refused(why)
            }
        })
    }

    #[test]
    fn a_run_goes_into_the_bucket_before_it_is_stored_and_is_put_back_where_it_was_lost() {
        block_on(async {
            let (store, bucket) = (FarmStore::in_memory().await.unwrap(), in_memory());
            let folder = tempfile::tempdir().unwrap();
            let to = kept_in(folder.path().join("none"), Some(&bucket));
            let one = FoundBundle { place: run_folder("hunt"), board: Some("a".into()) };
            let record = read(&one).unwrap().0;
            let (id, name) = (record.run.id.clone(), name_of_state(&record));
            for at in 1..=4 {
                bucket.planned.plan(Some((at, PlannedFault::Gone)));
                let failure = take_in(&store, &one, &to).await.unwrap_err();
                assert!(failure.message.contains("s3://runs/lab"), "{}", failure.message);
                assert!(store.run(&id).await.unwrap().is_none(), "the request {at} failed");
            }
            bucket.planned.plan(None);
            assert_eq!(take_in(&store, &one, &to).await.unwrap(), PutOutcome::Stored);
            let (run, digest) =
                (store.run(&id).await.unwrap().unwrap(), store.run_digest(&id).await.unwrap());
            assert_eq!(run.place, folder.path().join("none").join(&name).to_string_lossy());
            assert!(!folder.path().join("none").exists(), "the folder is a cache");
            let faults = async || bucket.faults(&name, digest.as_ref().unwrap(), true).await.unwrap();
            assert_eq!(faults().await, [""; 0]);
            bucket.planned.plan(None);
            assert_eq!(take_in(&store, &one, &to).await.unwrap(), PutOutcome::Had);
            assert_eq!(bucket.planned.asked(), 2, "a manifest and a list: nothing is put again");
            bucket.remove(&name).await.unwrap();
            assert_eq!(faults().await.len(), 1);
            assert_eq!(take_in(&store, &one, &to).await.unwrap(), PutOutcome::Had);
            assert_eq!(faults().await, [""; 0]);
        });
    }

    #[test]
    fn a_run_whose_folder_elsewhere_is_gone_is_put_under_a_name_of_its_own() {
        block_on(async {
            let (store, bucket) = (FarmStore::in_memory().await.unwrap(), in_memory());
            let folder = tempfile::tempdir().unwrap();
            let to = kept_in(folder.path().join("cache"), Some(&bucket));
            let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
            for name in ["hunt", "measured"] {
                let one = FoundBundle { place: fixtures.join(name), board: Some(name.into()) };
                let mut record = read(&one).unwrap().0;
                let shown = keep(&one.place, "today", &folder.path().join(name)).unwrap().0;
                record.run.place = shown.to_string_lossy().into_owned();
                store.put(&record).await.unwrap();
                // It is not put while it is shown from there.
                assert_eq!(take_in(&store, &one, &to).await.unwrap(), PutOutcome::Had);
                assert_eq!(bucket.manifest("today").await.unwrap(), None);
                let gone = format!("{}-gone", record.run.place);
                store.moved(&record.run.id, &gone).await.unwrap();
                assert_eq!(take_in(&store, &one, &to).await.unwrap(), PutOutcome::Had);
                let name = name_of_state(&record);
                assert!(store.run(&record.run.id).await.unwrap().unwrap().place.ends_with(&name));
                assert_eq!(bucket.faults(&name, &record.digest, true).await.unwrap(), [""; 0]);
            }
        });
    }

    #[test]
    fn what_is_refused_does_not_touch_the_copy_of_what_is_stored() {
        block_on(async {
            for bucket in [None, Some(in_memory())] {
                let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
                let bundles = folder.path().join("bundles");
                let to = kept_in(bundles.clone(), bucket.as_ref());
                let of = |place: &Path, board: &str| FoundBundle {
                    place: place.to_owned(),
                    board: Some(board.into()),
                };
                let (later, earlier) = (hunt_that_is_on(folder.path(), 0), hunt_that_is_on(folder.path(), 1));
                let over = run_folder("hunt");
                let id = read(&of(&over, "a")).unwrap().0.run.id;
                // True if the copy is of this state.
                let is_copy_of = async |place: &PathBuf| {
                    let digest = read(&of(place, "a")).unwrap().0.digest;
                    let copy = PathBuf::from(store.run(&id).await.unwrap().unwrap().place);
                    let name = copy.file_name().unwrap().to_str().unwrap();
                    match &bucket {
                        Some(bucket) => bucket.faults(name, &digest, true).await.unwrap().is_empty(),
                        None => {
                            assert_eq!(name, id);
                            let copy = bundles.join(&id).join("run.json");
                            let text = host::read_user_file(&copy, bundle::manifest::RUN_LIMIT).unwrap();
                            Sha256::digest(&text)[..] == digest[..]
                        }
                    }
                };
                let refused = async |place: &PathBuf, board: &str| {
                    let outcome = take_in(&store, &of(place, board), &to).await.unwrap();
                    let PutOutcome::Refused(why) = outcome else { panic!("{outcome:?}") };
                    why
                };
                let stored = take_in(&store, &of(&later, "a"), &to).await.unwrap();
                assert_eq!(stored, PutOutcome::Stored);
                let why = refused(&earlier, "a").await;
                assert!(why.contains("a later state") && !why.contains("has ended"), "{why}");
                for place in [&later, &over] {
                    let why = refused(place, "other").await;
                    assert!(why.contains("a run of a already"), "{why}");
                }
                assert!(is_copy_of(&later).await);
                let stored = take_in(&store, &of(&over, "a"), &to).await.unwrap();
                assert_eq!(stored, PutOutcome::Replaced);
                let why = refused(&later, "a").await;
                assert!(why.contains("a run that has ended does not change"), "{why}");
                assert!(is_copy_of(&over).await);
            }
        });
    }

    /// In either order, the store and the copy end with the same state, the later one.
    #[test]
    fn of_two_states_at_once_the_later_one_is_stored_and_copied() {
        block_on(async {
            for (bucket, swapped) in
                [(None, false), (None, true), (Some(in_memory()), false), (Some(in_memory()), true)]
            {
                let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
                let bundles = folder.path().join("bundles");
                let to = kept_in(bundles.clone(), bucket.as_ref());
                let over = run_folder("hunt");
                let of = |place: PathBuf| FoundBundle { place, board: Some("a".into()) };
                let (earlier, over) = (of(hunt_that_is_on(folder.path(), 1)), of(over));
                let (one, other) = if swapped { (&over, &earlier) } else { (&earlier, &over) };
                let (one, other) = tokio::join!(take_in(&store, one, &to), take_in(&store, other, &to));
                let outcomes = [one.unwrap(), other.unwrap()];
                assert!(outcomes.iter().any(|one| matches!(one, PutOutcome::Stored | PutOutcome::Replaced)));
                let record = read(&over).unwrap().0;
                let run = store.run(&record.run.id).await.unwrap().unwrap();
                assert!(run.complete && store.faults().await.unwrap().is_empty(), "{outcomes:?}");
                match &bucket {
                    Some(bucket) => {
                        let name = name_of_state(&record);
                        assert!(run.place.ends_with(&name), "{}", run.place);
                        assert_eq!(bucket.faults(&name, &record.digest, true).await.unwrap(), [""; 0]);
                    }
                    None => assert_eq!(read(&of(bundles.join(&run.id))).unwrap().0.digest, record.digest),
                }
            }
        });
    }

    #[test]
    fn what_another_program_has_stored_meanwhile_stays_in_the_bucket() {
        block_on(async {
            let (store, bucket) = (FarmStore::in_memory().await.unwrap(), in_memory());
            let folder = tempfile::tempdir().unwrap();
            let to = kept_in(folder.path().to_owned(), Some(&bucket));
            let place = run_folder("hunt");
            let one = FoundBundle { place: place.clone(), board: Some("a".into()) };
            let record = read(&one).unwrap().0;
            let (id, name) = (record.run.id.as_str(), name_of_state(&record));
            let name = name.as_str();
            // Both look before either has stored it.
            let (first, second) = tokio::join!(take_in(&store, &one, &to), take_in(&store, &one, &to));
            let outcomes = [first.unwrap(), second.unwrap()];
            assert!(outcomes.contains(&PutOutcome::Stored) && outcomes.contains(&PutOutcome::Had));
            assert_eq!(bucket.faults(name, &record.digest, true).await.unwrap(), [""; 0]);
            to.take_back(&store, &record).await.unwrap();
            assert_eq!(bucket.faults(name, &record.digest, true).await.unwrap(), [""; 0]);
            // No run is in this one, or the run is in another bundle.
            let mut other = record.clone();
            other.run.id = "none".into();
            bucket.put_folder(&name_of_state(&other), &place, &record.digest).await.unwrap();
            to.take_back(&store, &other).await.unwrap();
            assert_eq!(bucket.manifest(&name_of_state(&other)).await.unwrap(), None);
            store.moved(id, "/elsewhere/sent+1").await.unwrap();
            to.take_back(&store, &record).await.unwrap();
            assert_eq!(bucket.manifest(name).await.unwrap(), None);
        });
    }

    #[test]
    fn the_last_seconds_of_a_run_that_was_killed_are_taken_and_copied() {
        block_on(async {
            for bucket in [None, Some(in_memory())] {
                let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
                let (from, bundles) = (folder.path().join("run"), folder.path().join("bundles"));
                let to = kept_in(bundles.clone(), bucket.as_ref());
                let one = FoundBundle { place: from.clone(), board: Some("a".into()) };
                let mut cycles = Vec::new();
                for (seconds, wanted) in
                    [(1, PutOutcome::Stored), (3, PutOutcome::Replaced), (3, PutOutcome::Had)]
                {
                    killed_run(&from, seconds);
                    assert_eq!(take_in(&store, &one, &to).await.unwrap(), wanted, "{seconds}");
                    let record = read(&one).unwrap().0;
                    let run = store.run(&record.run.id).await.unwrap().unwrap();
                    cycles.push(run.cycles);
                    match &bucket {
                        Some(bucket) => {
                            let name = name_of_state(&record);
                            assert!(run.place.ends_with(&name), "{}", run.place);
                            assert_eq!(bucket.faults(&name, &record.digest, true).await.unwrap(), [""; 0]);
                        }
                        None => {
                            let copy = FoundBundle { place: bundles.join(&run.id), board: None };
                            assert_eq!(read(&copy).unwrap().0.run.cycles, record.run.cycles);
                        }
                    }
                }
                assert_eq!(cycles, [cycles[0], cycles[0] + 20, cycles[0] + 20]);
            }
        });
    }
}
