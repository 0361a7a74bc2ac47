//! Cache folder of a bucket's bundles: missing ones are fetched, the least recently read are
//! removed.
//!
//! A bundle is fetched under a hidden name and renamed when it is complete, and renamed before it
//! is removed. Bundles that are not in the bucket are never removed.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bundle::manifest::{BundleManifest, RUN_LIMIT};
use host::dir::Dir;
use host::{MachineFiles, RecordFolder};
use model::fact::Fact;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::bucket::{BucketFault, ObjectBucket, blocking};
use super::fetch::here;
use crate::ingest::environment::hex;
use crate::ingest::remove_tree::remove_tree;
use crate::ingest::stored::stored_files;

/// Places of incomplete bundles, and of those being removed; names of bundles do not begin with a
/// dot.
const FETCHED: &str = ".fetched";
const GONE: &str = ".gone";
/// Bundles that are fetched at the same time.
const FETCHES: usize = 2;

/// The bundles of a bucket on this machine.
pub struct BundleCache {
    pub bucket: Arc<ObjectBucket>,
    folder: PathBuf,
    whole: Option<PathBuf>,
    most: u64,
    state: Mutex<CacheState>,
    fetches: Semaphore,
    /// Number of fetched bundles since the server started.
    pub fetched: AtomicU64,
    pub fetched_bytes: AtomicU64,
    pub evicted: AtomicU64,
}

#[derive(Default)]
struct CacheState {
    bundles: BTreeMap<String, CachedBundle>,
    /// Counts uses.
    uses: u64,
}

#[derive(Default)]
struct CachedBundle {
    /// `None` if it is not here, or was not counted yet.
    bytes: Option<u64>,
    used: u64,
    readers: u64,
    /// The bucket does not have it.
    only_here: bool,
    gate: Arc<tokio::sync::Mutex<()>>,
}

impl BundleCache {
    /// Starts the cache in a folder that no other server uses, with a limit in bytes.
    pub fn start(bucket: Arc<ObjectBucket>, folder: &Path, most: u64) -> Arc<BundleCache> {
        [FETCHED, GONE].iter().for_each(|left| drop_tree(folder, left));
        let cache = Arc::new(BundleCache {
            bucket,
            folder: folder.to_owned(),
            whole: host::whole_path(folder).ok(),
            most,
            state: Mutex::default(),
            fetches: Semaphore::new(FETCHES),
            fetched: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        });
        let counting = cache.clone();
        tokio::spawn(async move {
            let counted = counting.clone();
            let _ = tokio::task::spawn_blocking(move || counted.count()).await;
            counting.make_room().await;
        });
        cache
    }

    /// Locates a run's bundle for reading, for as long as the lease lives. The digest is that of
    /// its document in the store: a different copy is fetched again, and a different bundle in the
    /// bucket is a fault.
    pub async fn open(
        self: &Arc<Self>,
        place: &Path,
        digest: Option<&[u8]>,
    ) -> Result<BundleLease, BucketFault> {
        // Runs shown from elsewhere are not in the bucket.
        if !self.is_own(place) && host::identity(&place.join("run.json")).is_some() {
            return Ok(BundleLease::of_folder(place));
        }
        let name = place.file_name().and_then(|name| name.to_str()).filter(|name| is_name(name));
        let name =
            name.ok_or_else(|| BucketFault::Missing("the run's files are gone: import it again".to_owned()))?;
        let lease = self.hold(name);
        let gate = lease.gate.clone();
        let _turn = gate.lock().await;
        let at = lease.place.clone();
        let local = blocking(move || Ok(run_digest(&at))).await?;
        if local.is_some() && digest.is_none_or(|known| local.as_deref() == Some(&hex(known))) {
            return Ok(lease);
        }
        match (self.bucket.manifest(name).await?, local) {
            (None, None) => Err(self.bucket.missing(name, "nothing")),
            // It predates the bucket, or is newer than the store.
            (None, Some(_)) => Ok(lease),
            (Some(manifest), _) => {
                // It continues if the client disconnects.
                let (cache, of, digest) = (self.clone(), name.to_owned(), digest.map(<[u8]>::to_vec));
                let taken =
                    tokio::spawn(async move { cache.take(&of, manifest, digest.as_deref()).await }).await;
                let failed = |_| Err(BucketFault::Here("a thread failed: try again".to_owned()));
                taken.unwrap_or_else(failed).map(|()| lease)
            }
        }
    }

    /// Protects a bundle from removal, even before it is here.
    pub fn hold(self: &Arc<Self>, name: &str) -> BundleLease {
        let mut state = self.state();
        state.uses += 1;
        let uses = state.uses;
        let one = state.bundles.entry(name.to_owned()).or_default();
        one.readers += 1;
        one.used = uses;
        let (place, gate) = (self.folder.join(name), one.gate.clone());
        BundleLease { place, gate, of: Some((self.clone(), name.to_owned())) }
    }

    /// Counts a bundle that was put together here, and makes room for it.
    pub async fn added(self: &Arc<Self>, lease: &BundleLease) {
        let Some((_, name)) = &lease.of else { return };
        let at = lease.place.clone();
        let bytes = blocking(move || Ok(bytes_of(&at))).await.unwrap_or_default();
        {
            let mut state = self.state();
            let one = state.bundles.entry(name.clone()).or_default();
            (one.bytes, one.only_here) = (Some(bytes), false);
        }
        self.make_room().await;
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_own(&self, place: &Path) -> bool {
        let Some(above) = place.parent() else { return false };
        // The same folder may be written in several ways.
        above == self.folder || self.whole.is_some() && host::whole_path(above).ok() == self.whole
    }

    fn count(&self) {
        let names =
            MachineFiles::folder(&self.folder).list_as_it_is("/.").known().cloned().unwrap_or_default();
        for name in names.into_iter().filter(|name| is_name(name)) {
            let bytes = bytes_of(&self.folder.join(&name));
            let mut state = self.state();
            state.bundles.entry(name).or_default().bytes.get_or_insert(bytes);
        }
    }

    /// Fetches a bundle and puts it into its place.
    async fn take(
        self: &Arc<Self>,
        name: &str,
        mut manifest: BundleManifest,
        digest: Option<&[u8]>,
    ) -> Result<(), BucketFault> {
        let _turn = self.fetches.acquire().await;
        let hidden = format!("{FETCHED}/{name}.{:016x}", host::random_u64());
        let mut outcome = self.fetch_hidden(name, &hidden, &manifest, digest).await;
        if matches!(outcome, Err(BucketFault::Missing(_))) {
            // Another program may have thinned or replaced it since.
            match self.bucket.manifest(name).await {
                Ok(Some(newer)) if newer != manifest => {
                    outcome = self.fetch_hidden(name, &hidden, &newer, digest).await;
                    manifest = newer;
                }
                _ => {}
            }
        }
        let (folder, of, is_whole) = (self.folder.clone(), name.to_owned(), outcome.is_ok());
        let placed = blocking(move || {
            let placed = if is_whole { installed(&folder, &hidden, &of) } else { Ok(()) };
            drop_tree(&folder, &hidden);
            placed
        });
        outcome.and(placed.await)?;
        let bytes = manifest.bytes();
        self.fetched.fetch_add(1, Ordering::Relaxed);
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.state().bundles.entry(name.to_owned()).or_default().bytes = Some(bytes);
        self.make_room().await;
        Ok(())
    }

    async fn fetch_hidden(
        &self,
        name: &str,
        hidden: &str,
        manifest: &BundleManifest,
        digest: Option<&[u8]>,
    ) -> Result<(), BucketFault> {
        if let Some(digest) = digest {
            self.bucket.check_document(name, manifest.run_digest(), digest)?;
        }
        let (folder, of) = (self.folder.clone(), hidden.to_owned());
        let into = blocking(move || made_empty(&folder, &of)).await?;
        self.bucket.fetch(name, manifest.files.clone(), &into).await?;
        let Some(digest) = digest else { return Ok(()) };
        // A document of several pieces has its digest in no manifest.
        let found = blocking(move || Ok(run_digest(&into))).await?;
        self.bucket.check_document(name, found.as_deref(), digest)
    }

    /// Removes the least recently read bundles until the rest fits.
    pub async fn make_room(&self) {
        loop {
            let Some(name) = self.least_used() else { return };
            let place = self.folder.join(&name);
            let local = blocking(move || Ok(run_digest(&place))).await.unwrap_or_default();
            let is_there = match self.bucket.manifest(&name).await {
                // Nothing is removed before the contents of the bucket are known.
                Err(fault) if fault.is_of_bucket() => return,
                Ok(Some(manifest)) => local.is_none() || manifest.run_digest() == local.as_deref(),
                _ => false,
            };
            if !is_there {
                self.state().bundles.entry(name).or_default().only_here = true;
                continue;
            }
            if !self.moved_away(&name) {
                return;
            }
            let folder = self.folder.clone();
            let _ = tokio::task::spawn_blocking(move || drop_tree(&folder, GONE)).await;
        }
    }

    fn least_used(&self) -> Option<String> {
        let state = self.state();
        let total = state.bundles.values().filter_map(|one| one.bytes).fold(0, u64::saturating_add);
        if total <= self.most {
            return None;
        }
        let idle = |one: &CachedBundle| one.readers == 0 && one.bytes.is_some() && !one.only_here;
        let least = state.bundles.iter().filter(|(_, one)| idle(one)).min_by_key(|(_, one)| one.used)?;
        Some(least.0.clone())
    }

    /// Renames a bundle that is to go, unless it is being read by now.
    fn moved_away(&self, name: &str) -> bool {
        let mut state = self.state();
        match state.bundles.get(name) {
            Some(one) if one.readers > 0 => return true,
            None => return true,
            Some(_) => {}
        }
        let Ok(top) = Dir::existing(&self.folder) else { return false };
        if host::identity(&self.folder.join(name)).is_some() && set_aside(&top, name).is_err() {
            return false;
        }
        state.bundles.remove(name);
        self.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// A bundle that is read: it does not go before this does.
pub struct BundleLease {
    place: PathBuf,
    gate: Arc<tokio::sync::Mutex<()>>,
    of: Option<(Arc<BundleCache>, String)>,
}

impl BundleLease {
    /// A bundle in a folder that is not a cache, and never removed.
    pub fn of_folder(place: &Path) -> BundleLease {
        BundleLease { place: place.to_owned(), gate: Arc::default(), of: None }
    }
}

impl Deref for BundleLease {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.place
    }
}

impl Drop for BundleLease {
    fn drop(&mut self) {
        let Some((cache, name)) = &self.of else { return };
        let mut state = cache.state();
        let Some(one) = state.bundles.get_mut(name) else { return };
        one.readers = one.readers.saturating_sub(1);
        if one.readers == 0 && one.bytes.is_none() {
            state.bundles.remove(name);
        }
    }
}

/// True for the name of a bundle in the folder and in the bucket.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    (1..=200).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.')
}

/// Digest of a bundle's document; `None` if there is no bundle.
fn run_digest(place: &Path) -> Option<String> {
    match MachineFiles::folder(place).read_as_it_is("/run.json", RUN_LIMIT) {
        Fact::Known(bytes) => Some(hex(&Sha256::digest(&bytes))),
        _ => None,
    }
}

fn bytes_of(place: &Path) -> u64 {
    stored_files(place).iter().map(|file| file.bytes).fold(0, u64::saturating_add)
}

/// Creates an empty folder for a new bundle, by its path below the cache.
fn made_empty(folder: &Path, hidden: &str) -> Result<PathBuf, BucketFault> {
    // The cache itself may have been removed.
    RecordFolder::make(folder).map_err(here)?;
    drop_tree(folder, hidden);
    let mut at = Dir::existing(folder).map_err(here)?;
    for name in hidden.split('/') {
        at = at.subdir(name).map_err(here)?;
    }
    Ok(folder.join(hidden))
}

fn drop_tree(folder: &Path, path: &str) {
    if let Ok(top) = Dir::existing(folder) {
        remove_tree(&MachineFiles::folder(folder), &top, path, 0);
    }
}

/// Renames a complete bundle to its name.
fn installed(folder: &Path, hidden: &str, name: &str) -> Result<(), BucketFault> {
    let top = Dir::existing(folder).map_err(here)?;
    if host::identity(&folder.join(name)).is_some() {
        set_aside(&top, name).map_err(here)?;
    }
    top.rename(hidden, name, true).map_err(here)?;
    drop_tree(folder, GONE);
    Ok(())
}

fn set_aside(top: &Dir, name: &str) -> std::io::Result<()> {
    top.subdir(GONE)?;
    top.rename(name, &format!("{GONE}/{name}.{:016x}", host::random_u64()), false)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::super::tests::in_memory;
    use super::*;
    use crate::fixture::block_on;

    #[test]
    fn a_bundle_is_counted_and_compared_as_it_is_whatever_looks_like_an_address() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (name, document) = ("r1+ffff0123456789ab", "ffff0123456789ab");
            let place = folder.path().join(name);
            std::fs::create_dir(&place).unwrap();
            std::fs::write(place.join("run.json"), document).unwrap();
            let cache = BundleCache::start(in_memory(), folder.path(), 1 << 30);
            cache.count();
            let bytes = cache.state().bundles.get(name).and_then(|one| one.bytes);
            assert_eq!(bytes, Some(document.len() as u64));
            assert_eq!(run_digest(&place), Some(hex(&Sha256::digest(document))));
        });
    }
}
