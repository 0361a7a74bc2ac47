//! The folder of bundles next to a store in a file. For a bundle in it the store has the name
//! alone, so that it finds its bundles wherever both are moved or copied to, and a copy of a store
//! never uses the bundles of the original.

use std::path::Path;
use std::sync::Arc;

use bundle::manifest::RUN_LIMIT;
use model::error::Result;
use sha2::{Digest, Sha256};
use sqlx::{Any, Transaction};

use crate::folders::{bundles_beside, lies_in};
use crate::store::{BundlePlace, FarmStore, trouble};

/// Folder of a store in a file; `None` for other stores, whose places are absolute.
#[derive(Clone, Debug, Default)]
pub struct OwnFolder(Option<Arc<Path>>);

impl OwnFolder {
    /// Folder of a store in a file; a link is resolved.
    pub fn beside(file: &Path) -> OwnFolder {
        let file = host::whole_path(file).unwrap_or_else(|_| file.to_owned());
        OwnFolder(Some(bundles_beside(&file).into()))
    }

    /// The place of a bundle as the store holds it.
    pub fn written(&self, place: &str) -> String {
        let path = Path::new(place);
        let is_own = self.0.as_deref().is_some_and(|own| lies_in(path, own));
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| is_own);
        name.unwrap_or(place).to_owned()
    }

    /// The place of a bundle from the root on.
    pub fn shown(&self, written: &str) -> String {
        match &self.0 {
            Some(own) if !written.is_empty() && !written.contains('/') => {
                own.join(written).to_string_lossy().into_owned()
            }
            _ => written.to_owned(),
        }
    }
}

impl FarmStore {
    /// Adopts the places of runs in a given folder of bundles, if they are missing at their places
    /// and the same bundles are in the folder: both were moved, or are those of a backup.
    pub async fn take_places_in(&self, bundles: &Path) -> Result<()> {
        let Ok(bundles) = host::whole_path(bundles) else { return Ok(()) };
        let found = |run: &BundlePlace| {
            let path = Path::new(&run.place);
            let place = bundles.join(path.file_name()?);
            let is_gone = path != place && host::identity(&path.join("run.json")).is_none();
            let is_there = is_gone && is_document(&place.join("run.json"), &run.digest);
            is_there.then(|| self.folder.written(&place.to_string_lossy()))
        };
        let all = self.places().await?;
        let found: Vec<_> = all.iter().filter_map(|run| Some((run, found(run)?))).collect();
        if found.is_empty() {
            return Ok(());
        }
        let mut all = self.begin().await?;
        for (run, place) in found {
            rename(&mut all, &run.id, &self.folder.written(&run.place), &place).await?;
        }
        all.commit().await.map_err(trouble)
    }
}

/// Changes the place of a run, unless it was changed since.
async fn rename(all: &mut Transaction<'static, Any>, id: &str, from: &str, to: &str) -> Result<()> {
    let moved = sqlx::query("update run set place = $1 where id = $2 and place = $3");
    moved.bind(to).bind(id).bind(from).execute(&mut **all).await.map_err(trouble)?;
    Ok(())
}

/// True if a file is a document with this digest.
fn is_document(file: &Path, digest: &[u8]) -> bool {
    host::read_user_file(file, RUN_LIMIT).is_ok_and(|text| Sha256::digest(&text)[..] == *digest)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make and move folders.
mod tests {
    use super::*;
    use crate::fixture::{block_on, recorded_run, run_folder};
    use crate::ingest::keep::keep;
    use crate::records::BundleRecord;
    use crate::store::RunRemoval;
    use crate::store::engines::on_each_engine;
    use std::fs;
    use std::path::PathBuf;

    /// A run whose bundle is in the folder of a store.
    fn kept(name: &str, own: &Path) -> BundleRecord {
        let mut record = recorded_run(name, name);
        let from = run_folder(name);
        record.run.place = keep(&from, &record.run.id, own).unwrap().0.to_string_lossy().into_owned();
        record
    }

    async fn places(store: &FarmStore) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> =
            store.places().await.unwrap().into_iter().map(|run| run.place.into()).collect();
        for bundle in store.bundles().await.unwrap() {
            let run = store.run(&bundle.run).await.unwrap().unwrap();
            assert!(run.place == bundle.place && places.contains(&PathBuf::from(&run.place)));
            assert!(store.run_digest_at(&run.id, &run.place).await.unwrap().is_some());
        }
        places.sort();
        places
    }

    #[test]
    fn a_store_that_is_moved_or_copied_has_the_bundles_that_lie_beside_it() {
        block_on(async {
            let top = tempfile::tempdir().unwrap();
            let top = host::whole_path(top.path()).unwrap();
            let first = top.join("a");
            fs::create_dir(&first).unwrap();
            let store = FarmStore::file(&first.join("farm.db")).await.unwrap();
            let own = first.join("farm.db.bundles");
            let (hunt, mut shown) = (kept("hunt", &own), recorded_run("measured", "measured"));
            shown.run.place = "/srv/runs/measured".into();
            store.put(&hunt).await.unwrap();
            store.put(&shown).await.unwrap();
            let elsewhere = PathBuf::from(&shown.run.place);
            let wanted = |own: &Path| vec![elsewhere.clone(), own.join(&hunt.run.id)];
            let sorted = |mut places: Vec<PathBuf>| {
                places.sort();
                places
            };
            assert_eq!(places(&store).await, sorted(wanted(&own)));
            store.close().await;
            // Under another name, and without its bundles while the first one has them.
            fs::copy(first.join("farm.db"), top.join("copy.db")).unwrap();
            let copy = FarmStore::file(&top.join("copy.db")).await.unwrap();
            assert_eq!(places(&copy).await, sorted(wanted(&top.join("copy.db.bundles"))));
            for to in ["b", "c"] {
                let mut all = fs::read_dir(&top).unwrap().map(|entry| entry.unwrap().path());
                let from = all.find(|path| path.join("farm.db").exists()).unwrap();
                fs::rename(from, top.join(to)).unwrap();
                let moved = FarmStore::file(&top.join(to).join("farm.db")).await.unwrap();
                let own = top.join(to).join("farm.db.bundles");
                assert_eq!(places(&moved).await, sorted(wanted(&own)));
                moved.close().await;
            }
            let moved = FarmStore::file(&top.join("c/farm.db")).await.unwrap();
            let gone = moved.forget_run(&hunt.run.id, Some(&hunt), None).await.unwrap();
            let RunRemoval::Removed(of) = gone else { panic!("it is there") };
            assert_eq!(PathBuf::from(of.place), top.join("c/farm.db.bundles").join(&hunt.run.id));
        });
    }

    #[test]
    fn runs_that_are_gone_from_their_places_are_found_in_a_folder_that_is_named() {
        on_each_engine(async |store| {
            let top = tempfile::tempdir().unwrap();
            let top = host::whole_path(top.path()).unwrap();
            let (before, after) = (top.join("before"), top.join("after"));
            let (hunt, measured) = (kept("hunt", &before), kept("measured", &before));
            store.put(&hunt).await.unwrap();
            store.put(&measured).await.unwrap();
            let ids = [&hunt.run.id, &measured.run.id];
            let at = |folders: [&Path; 2]| {
                let mut places: Vec<PathBuf> = folders.iter().zip(ids).map(|(at, id)| at.join(id)).collect();
                places.sort();
                places
            };
            // As long as they exist there, they are shown from there.
            kept("hunt", &after);
            kept("measured", &after);
            store.take_places_in(&after).await.unwrap();
            assert_eq!(places(&store).await, at([&before, &before]));
            fs::remove_dir_all(&before).unwrap();
            fs::write(after.join(&measured.run.id).join("run.json"), "{}").unwrap();
            store.take_places_in(&top.join("none")).await.unwrap();
            assert_eq!(places(&store).await, at([&before, &before]));
            store.take_places_in(&after).await.unwrap();
            assert_eq!(places(&store).await, at([&after, &before]), "another run.json is another run's");
        });
    }
}
