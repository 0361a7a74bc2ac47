//! A bucket that fails at each request in turn: reported bundles exist, and partial ones are never
//! visible.

#![allow(clippy::disallowed_methods)] // Tests make folders of their own.

use crate::fixture::{block_on, run_folder};
use crate::store::ThinnedPart;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bundle::manifest::{BundleManifest, MANIFEST_SCHEMA, ManifestFile, PIECE};
use object_store::memory::InMemory;
use sha2::{Digest, Sha256};

use super::put::MANIFEST;
use super::{BucketBundle, BucketFault, BundleCache, ObjectBucket, manifest_of, swept};
use crate::ingest::bundle::read;
use crate::ingest::environment::hex;
use crate::ingest::find::FoundBundle;
use crate::ingest::keep::keep;
use crate::ingest::stored::{StoredBytes, stored_files};
use crate::ingest::thin::WindowsKept;
use crate::store::FarmStore;

/// Way in which a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedFault {
    /// The request takes no effect.
    Lost,
    /// The request takes effect, and the response is lost.
    AnswerLost,
    /// Neither it nor any later one takes effect: the bucket is gone, or this program was killed.
    Gone,
}

const ALL_FAULTS: [PlannedFault; 3] = [PlannedFault::Lost, PlannedFault::AnswerLost, PlannedFault::Gone];

/// The request that fails, counted from one.
#[derive(Debug, Default)]
pub struct PlannedFaults {
    state: Mutex<(u64, Option<(u64, PlannedFault)>)>,
}

impl PlannedFaults {
    pub fn plan(&self, fault: Option<(u64, PlannedFault)>) {
        *self.state.lock().unwrap() = (0, fault);
    }

    /// Number of requests since the plan was made.
    pub fn asked(&self) -> u64 {
        self.state.lock().unwrap().0
    }

    pub async fn or_fail<T>(
        &self,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> object_store::Result<T> {
        let now = {
            let mut state = self.state.lock().unwrap();
            state.0 += 1;
            match state.1 {
                Some((at, fault)) if state.0 == at => Some(fault),
                Some((at, PlannedFault::Gone)) if state.0 > at => Some(PlannedFault::Gone),
                _ => None,
            }
        };
        let failed =
            || object_store::Error::Generic { store: "planned", source: "it does not answer".into() };
        match now {
            None => request.await,
            Some(PlannedFault::AnswerLost) => request.await.and_then(|_| Err(failed())),
            Some(_) => Err(failed()),
        }
    }
}

pub fn in_memory() -> Arc<ObjectBucket> {
    Arc::new(ObjectBucket::new(Arc::new(InMemory::new()), "s3://runs/lab".into(), "lab"))
}

/// A state of the hunt before its end, that many cycles short; returns its place below a folder.
pub fn hunt_that_is_on(folder: &Path, short: u64) -> PathBuf {
    let place = keep(&run_folder("hunt"), &format!("short-{short}"), folder).unwrap().0;
    let document = place.join("run.json");
    let mut run: serde_json::Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    run["complete"] = false.into();
    let cpu = &mut run["cpus"][0];
    cpu["cycles"] = (cpu["cycles"].as_u64().unwrap() - short).into();
    cpu["missed"] = (cpu["missed"].as_u64().unwrap() + short).into();
    let rows = cpu["histogram"].as_array_mut().unwrap();
    let row = rows.iter_mut().find(|row| row[2].as_u64() > Some(short)).unwrap();
    row[2] = (row[2].as_u64().unwrap() - short).into();
    fs::write(&document, serde_json::to_vec(&run).unwrap()).unwrap();
    place
}

fn digest_of(bundle: &Path) -> Vec<u8> {
    Sha256::digest(fs::read(bundle.join("run.json")).unwrap()).to_vec()
}

/// A folder with a bundle of some files, identified by its document.
fn made(word: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("host/proc")).unwrap();
    let tail = word.repeat(9);
    for (path, text) in [("run.json", word), ("host/proc/a", "same"), ("host/proc/none", ""), ("tail", &tail)]
    {
        fs::write(folder.path().join(path), text).unwrap();
    }
    folder
}

/// All files of a bundle with their contents.
fn content(place: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = stored_files(place).into_iter();
    files.map(|file| (file.path.clone(), fs::read(place.join(&file.path)).unwrap())).collect()
}

/// Contents of a bundle in the bucket by its manifest.
async fn there(bucket: &ObjectBucket, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for file in bucket.manifest(name).await.unwrap().unwrap().files {
        let mut bytes = Vec::new();
        for digest in &file.pieces {
            bytes.extend_from_slice(&bucket.piece(name, digest).await.unwrap());
        }
        all.insert(file.path, bytes);
    }
    all
}

struct Cached {
    folder: tempfile::TempDir,
    cache: Arc<BundleCache>,
}

impl Cached {
    fn new(bucket: &Arc<ObjectBucket>, most: u64) -> Cached {
        let folder = tempfile::tempdir().unwrap();
        let cache = BundleCache::start(bucket.clone(), folder.path(), most);
        Cached { folder, cache }
    }

    async fn content(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, BucketFault> {
        let lease = self.cache.open(&self.folder.path().join(name), None).await?;
        Ok(content(&lease))
    }

    /// Entries under names of bundles, and true if something partial is left.
    fn names(&self) -> (Vec<String>, bool) {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|one| one.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        let hidden = self.folder.path().join(".fetched");
        (names, hidden.is_dir() && fs::read_dir(hidden).unwrap().count() > 0)
    }
}

#[test]
fn what_was_put_is_fetched_into_an_empty_folder_and_nothing_else_is() {
    block_on(async {
        let (bucket, hunt) = (in_memory(), run_folder("hunt"));
        // A file of two pieces.
        let large = made("large");
        fs::write(large.path().join("tail"), "large".repeat(PIECE as usize / 5 + 9)).unwrap();
        bucket.put_folder("large", large.path(), &digest_of(large.path())).await.unwrap();
        assert_eq!(bucket.objects("large").await.unwrap().len(), 5);
        let cached = Cached::new(&bucket, 1 << 30);
        assert_eq!(cached.content("large").await.unwrap(), content(large.path()));
        bucket.put_folder("hunt", &hunt, &digest_of(&hunt)).await.unwrap();
        let objects = bucket.objects("hunt").await.unwrap();
        assert!(objects.iter().any(|object| object.name == MANIFEST));
        assert_eq!(objects.len(), manifest_of(&hunt).unwrap().0.pieces().len() + 1);
        // A cache that was lost, twice.
        for _ in 0..2 {
            let cached = Cached::new(&bucket, 1 << 30);
            assert_eq!(cached.content("hunt").await.unwrap(), content(&hunt));
            let asked = bucket.planned.asked();
            let place = cached.folder.path().join("hunt");
            let lease = cached.cache.open(&place, Some(&digest_of(&hunt))).await.unwrap();
            assert!(study::page::ReportedRun::open(&lease).is_ok());
            assert_eq!((bucket.planned.asked(), cached.cache.fetched.load(Ordering::Relaxed)), (asked, 1));
            assert!(matches!(cached.content("other").await, Err(BucketFault::Missing(_))));
            assert_eq!(cached.names(), (vec!["hunt".to_owned()], false));
        }
        // Bundles elsewhere are shown from there.
        let cached = Cached::new(&bucket, 1 << 30);
        assert_eq!(&*cached.cache.open(&hunt, None).await.unwrap(), &*hunt);
        // The document is not the one that was read.
        let changed = bucket.put_folder("hunt", &hunt, b"another").await.unwrap_err();
        assert!(changed.words().contains("changed"), "{changed:?}");
    });
}

#[test]
fn a_put_that_fails_anywhere_leaves_the_state_before_or_the_new_one() {
    block_on(async {
        let (old, new) = (made("old"), made("new"));
        for kind in ALL_FAULTS {
            for at in 1.. {
                let bucket = in_memory();
                bucket.put_folder("run", old.path(), &digest_of(old.path())).await.unwrap();
                bucket.planned.plan(Some((at, kind)));
                let put = bucket.put_folder("run", new.path(), &digest_of(new.path())).await;
                let is_over = bucket.planned.asked() < at;
                bucket.planned.plan(None);
                let found = there(&bucket, "run").await;
                let expected = [content(old.path()), content(new.path())];
                assert!(expected.contains(&found), "{kind:?} at {at}");
                assert!(put.is_err() || found == expected[1], "{kind:?} at {at}: said and not there");
                if let Err(fault) = put {
                    assert!(
                        matches!(&fault, BucketFault::Unreachable(words) if words.contains("s3://runs/lab"))
                    );
                    bucket.put_folder("run", new.path(), &digest_of(new.path())).await.unwrap();
                    assert_eq!(there(&bucket, "run").await, expected[1]);
                    assert_eq!(
                        bucket.objects("run").await.unwrap().len(),
                        4,
                        "{kind:?} at {at}: stray pieces"
                    );
                }
                if is_over {
                    break;
                }
            }
        }
    });
}

#[test]
fn a_fetch_that_fails_anywhere_shows_nothing_and_the_next_one_all() {
    block_on(async {
        let run = made("run");
        let bucket = in_memory();
        bucket.put_folder("run", run.path(), &digest_of(run.path())).await.unwrap();
        for kind in [PlannedFault::Lost, PlannedFault::Gone] {
            for at in 1.. {
                let cached = Cached::new(&bucket, 1 << 30);
                bucket.planned.plan(Some((at, kind)));
                let fetched = cached.content("run").await;
                let is_over = bucket.planned.asked() < at;
                match fetched {
                    Ok(all) => assert_eq!(all, content(run.path())),
                    Err(fault) => {
                        assert!(matches!(fault, BucketFault::Unreachable(_)), "{fault:?}");
                        assert_eq!(cached.names(), (vec![], false), "{kind:?} at {at}");
                        // Simultaneous requests may have been answered after it.
                        if kind == PlannedFault::Gone {
                            assert!(cached.content("run").await.is_err());
                            assert!(bucket.trouble().borrow().is_some());
                        }
                    }
                }
                bucket.planned.plan(None);
                assert_eq!(cached.content("run").await.unwrap(), content(run.path()));
                assert_eq!(*bucket.trouble().borrow(), None);
                if is_over {
                    break;
                }
            }
        }
    });
}

#[test]
fn thinning_that_fails_anywhere_leaves_a_whole_bundle_and_the_next_one_ends_it() {
    block_on(async {
        let hunt = run_folder("hunt");
        let work = tempfile::tempdir().unwrap();
        let work = work.path().join("work");
        let kept = WindowsKept { worst: true, ..WindowsKept::default() };
        let thin = async |bucket: &Arc<ObjectBucket>, dry| {
            let mut found = BucketBundle::look(bucket, "hunt").await?;
            let mut of = found.thin(&work, ThinnedPart::Windows, &kept, dry).await?;
            of.blocks = found.thin(&work, ThinnedPart::Blocks, &kept, dry).await?.blocks;
            if !dry {
                found.remove_unnamed().await?;
            }
            Ok::<_, BucketFault>(of)
        };
        let bucket = in_memory();
        bucket.put_folder("hunt", &hunt, &digest_of(&hunt)).await.unwrap();
        let tried = thin(&bucket, true).await.unwrap();
        assert_eq!(there(&bucket, "hunt").await, content(&hunt));
        let done = thin(&bucket, false).await.unwrap();
        assert_eq!(done, tried);
        assert!(done.blocks > 0 && done.windows > 0 && done.windows_kept == 1);
        let thinned = Cached::new(&bucket, 1 << 30).content("hunt").await.unwrap();
        assert!(!thinned.contains_key("blocks.jsonl") && thinned.contains_key("events/spikes.jsonl"));
        assert_eq!(thinned["run.json"], content(&hunt)["run.json"]);
        let objects = bucket.objects("hunt").await.unwrap().len();
        let mut between = thinned.clone();
        between.insert("blocks.jsonl".into(), content(&hunt)["blocks.jsonl"].clone());
        for kind in [PlannedFault::AnswerLost, PlannedFault::Gone] {
            for at in 1.. {
                let bucket = in_memory();
                bucket.put_folder("hunt", &hunt, &digest_of(&hunt)).await.unwrap();
                bucket.planned.plan(Some((at, kind)));
                let outcome = thin(&bucket, false).await;
                let is_over = bucket.planned.asked() < at;
                bucket.planned.plan(None);
                let found = there(&bucket, "hunt").await;
                assert!([&thinned, &between, &content(&hunt)].contains(&&found), "{kind:?} at {at}");
                assert!(outcome.is_err() || found == thinned);
                thin(&bucket, false).await.unwrap();
                assert_eq!(there(&bucket, "hunt").await, thinned);
                assert_eq!(bucket.objects("hunt").await.unwrap().len(), objects, "{kind:?} at {at}");
                if is_over {
                    break;
                }
            }
        }
    });
}

#[test]
fn what_is_damaged_or_missing_is_a_line_and_is_found_by_the_check() {
    block_on(async {
        let run = made("run");
        let digest = digest_of(run.path());
        let bucket = in_memory();
        bucket.put_folder("run", run.path(), &digest).await.unwrap();
        assert_eq!(bucket.faults("run", &digest, true).await.unwrap(), [""; 0]);
        assert!(bucket.faults("run", b"another", false).await.unwrap()[0].contains("run.json"));
        let piece = hex(&Sha256::digest("same"));
        let told = async |words: &str, is_deep: bool| {
            let fault = Cached::new(&bucket, 1 << 30).content("run").await.unwrap_err();
            assert!(fault.words().contains(words) && !fault.words().contains('\n'), "{fault:?}");
            assert!(matches!(fault, BucketFault::Damaged(_) | BucketFault::Missing(_)));
            assert_eq!(bucket.faults("run", &digest, false).await.unwrap().len(), usize::from(!is_deep));
            assert_eq!(bucket.faults("run", &digest, true).await.unwrap().len(), 1);
        };
        bucket.put_object("run", &piece, "lame".into()).await.unwrap();
        told("wrong bytes", true).await;
        bucket.put_object("run", &piece, vec![0; PIECE as usize + 1].into()).await.unwrap();
        told("more than", false).await;
        bucket.remove_object("run", &piece).await.unwrap();
        told("no piece", false).await;
        // Paths outside the folder, and bytes that are not a manifest.
        let file = |path: &str| ManifestFile { path: path.into(), bytes: 0, pieces: vec![] };
        let files = vec![file("run.json"), file("../climbed")];
        let climbing = BundleManifest { schema: MANIFEST_SCHEMA.into(), files, signature: None };
        for text in [serde_json::to_vec(&climbing).unwrap(), b"{".to_vec()] {
            bucket.put_object("run", MANIFEST, text.into()).await.unwrap();
            told("damaged", false).await;
        }
        bucket.remove_object("run", MANIFEST).await.unwrap();
        told("nothing", false).await;
    });
}

#[test]
fn a_bundle_of_another_run_is_not_shown_as_the_one_that_was_asked_for() {
    block_on(async {
        let bucket = in_memory();
        let (run, other) = (made("run"), made("other"));
        let digest = digest_of(run.path());
        bucket.put_folder("run", run.path(), &digest).await.unwrap();
        let cached = Cached::new(&bucket, 1 << 30);
        let open = async || {
            let lease = cached.cache.open(&cached.folder.path().join("run"), Some(&digest)).await?;
            Ok::<_, BucketFault>(content(&lease))
        };
        let told = async || {
            let fault = open().await.unwrap_err();
            assert!(matches!(fault, BucketFault::Damaged(_)), "{fault:?}");
            assert!(fault.words().contains("a different run.json of run") && !fault.words().contains('\n'));
            assert!(!cached.names().1, "nothing half is left");
        };
        assert_eq!(open().await.unwrap(), content(run.path()));
        bucket.put_folder("run", other.path(), &digest_of(other.path())).await.unwrap();
        // The copy is the one in the store: no request is made.
        assert_eq!(open().await.unwrap(), content(run.path()));
        fs::remove_dir_all(cached.folder.path().join("run")).unwrap();
        told().await;
        assert_eq!(cached.names().0, [""; 0]);
        // Nor is a copy shown that is of the other run, too.
        assert_eq!(cached.content("run").await.unwrap(), content(other.path()));
        told().await;
        // A document of two pieces, whose digest is in no manifest.
        fs::write(other.path().join("run.json"), "other".repeat(PIECE as usize / 5 + 9)).unwrap();
        bucket.put_folder("run", other.path(), &digest_of(other.path())).await.unwrap();
        assert_eq!(bucket.manifest("run").await.unwrap().unwrap().run_digest(), None);
        told().await;
        bucket.put_folder("run", run.path(), &digest).await.unwrap();
        assert_eq!(open().await.unwrap(), content(run.path()));
    });
}

#[test]
fn what_was_not_read_for_longest_goes_and_what_is_read_stays() {
    block_on(async {
        let bucket = in_memory();
        let runs: Vec<_> = ["aaa", "bbb", "ccc"].map(|word| (word, made(word))).into();
        for (name, run) in &runs {
            bucket.put_folder(name, run.path(), &digest_of(run.path())).await.unwrap();
        }
        let one: u64 = content(runs[0].1.path()).values().map(|bytes| bytes.len() as u64).sum();
        let cached = Cached::new(&bucket, one + 1);
        let place = |name: &str| cached.folder.path().join(name);
        let evicted = || cached.cache.evicted.load(Ordering::Relaxed);
        let archive = |at: &Path| StoredBytes::of_archive(at, stored_files(at), "r");
        let lease = cached.cache.open(&place("aaa"), None).await.unwrap();
        let mut reading = archive(&lease);
        assert!(reading.next().unwrap().is_ok());
        drop(cached.cache.open(&place("bbb"), None).await.unwrap());
        assert_eq!(evicted(), 0, "both were read when room was made");
        drop(cached.cache.open(&place("ccc"), None).await.unwrap());
        assert_eq!((cached.names().0, evicted()), (vec!["aaa".to_owned(), "ccc".to_owned()], 1));
        assert!(reading.all(|part| part.is_ok()), "it was read to its end");
        drop(lease);
        // Bundles that are absent or different in the bucket are never removed.
        let here = made("ddd");
        fs::rename(here.path(), place("ddd")).unwrap();
        fs::create_dir(here.path()).unwrap();
        let lease = cached.cache.hold("ddd");
        cached.cache.added(&lease).await;
        drop(lease);
        cached.cache.open(&place("bbb"), None).await.unwrap();
        let (names, is_half) = cached.names();
        assert!(names.contains(&"ddd".to_owned()) && !is_half, "{names:?}");
        assert_eq!(cached.content("ddd").await.unwrap()["run.json"], b"ddd");
        // A copy older than the store's state is fetched again.
        let newer = made("newer");
        bucket.put_folder("bbb", newer.path(), &digest_of(newer.path())).await.unwrap();
        let lease = cached.cache.open(&place("bbb"), Some(&digest_of(newer.path()))).await.unwrap();
        assert_eq!(content(&lease), content(newer.path()));
        // While the bucket is away nothing is removed.
        bucket.planned.plan(Some((1, PlannedFault::Gone)));
        let before = evicted();
        cached.cache.make_room().await;
        assert_eq!(evicted(), before);
    });
}

#[test]
fn bundles_of_no_run_go_when_they_are_old() {
    block_on(async {
        let (bucket, store) = (in_memory(), FarmStore::in_memory().await.unwrap());
        let hunt = run_folder("hunt");
        let mut record = read(&FoundBundle { place: hunt.clone(), board: Some("a".into()) }).unwrap().0;
        record.run.place = "/elsewhere/known+1".into();
        store.put(&record).await.unwrap();
        for name in ["known+1", "left+1", "imported"] {
            bucket.put_folder(name, &hunt, &digest_of(&hunt)).await.unwrap();
        }
        let now = crate::wall_clock::now();
        assert_eq!(swept(&bucket, &store, now, false).await.unwrap(), 0, "it may be about to be stored");
        let later = now + 2 * 86_400;
        assert_eq!(swept(&bucket, &store, later, true).await.unwrap(), 1);
        assert_eq!(swept(&bucket, &store, later, false).await.unwrap(), 1);
        assert_eq!(bucket.bundles().await.unwrap(), ["imported", "known+1"]);
        assert_eq!(swept(&bucket, &store, later, false).await.unwrap(), 0);
    });
}
