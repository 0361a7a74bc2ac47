//! Runs whose bundles go to a bucket: acknowledged when they are there, fetched when the folder is
//! lost.

use super::*;
use crate::fixture::{block_on, run_folder};
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::objects::tests::{PlannedFault, in_memory};
use crate::objects::{BundleCache, ObjectBucket};

impl Farm {
    /// One whose bundles are in a bucket.
    async fn with_bucket(bucket: Arc<ObjectBucket>) -> Farm {
        let (store, folder) = (FarmStore::in_memory().await.unwrap(), tempfile::tempdir().unwrap());
        let bundles = folder.path().join("bundles");
        let intake = Intake::start(store.clone(), &bundles, 1 << 30);
        let policy = AccessPolicy { public: Some(PublicReading::All), metrics_open: true };
        let app = App::new(store, FarmExposure::BehindProxy, Some(intake)).with_policy(policy);
        let cache = BundleCache::start(bucket, &bundles, 1 << 30);
        Farm { app: Arc::new(app.with_cache(Some(cache))), _folder: folder }
    }

    /// Loses the folder of bundles.
    #[allow(clippy::disallowed_methods)] // Nothing else removes it.
    fn lose_cache(&self) {
        std::fs::remove_dir_all(self._folder.path().join("bundles")).unwrap();
    }
}

/// The names of bundles in a folder.
fn bundle_folders(bundles: &Path) -> Vec<String> {
    let names = host::MachineFiles::folder(bundles).list_as_it_is("/.").known().cloned().unwrap_or_default();
    names.into_iter().filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn a_run_is_acknowledged_once_it_is_whole_in_the_bucket() {
    block_on(async {
        let (id, files) = fixture("hunt");
        let text = manifest(&files);
        for kind in [PlannedFault::AnswerLost, PlannedFault::Gone] {
            for at in 1.. {
                let bucket = in_memory();
                let farm = Farm::with_bucket(bucket.clone()).await;
                let token = farm.enrolled("a").await;
                for (_, bytes) in &files {
                    farm.ask("PUT", &format!("/v1/pieces/{}", piece(bytes)), &token, bytes.clone()).await;
                }
                let address = format!("/v1/runs/{id}");
                bucket.planned.plan(Some((at, kind)));
                let (status, answer) = farm.ask("PUT", &address, &token, text.clone()).await;
                let is_over = bucket.planned.asked() < at;
                bucket.planned.plan(None);
                if status != 201 {
                    assert_eq!(status, 503, "{kind:?} at {at}: {answer}");
                    let detail = answer["detail"].as_str().unwrap();
                    assert!(detail.contains("s3://runs/lab") && !detail.contains('\n'), "{detail}");
                    assert!(farm.app.store.run(&id).await.unwrap().is_none(), "{kind:?} at {at}");
                    assert_eq!(farm.shown(&format!("/runs/{id}")).await.0, 404);
                    // The pieces are not asked for again.
                    let (status, answer) = farm.ask("PUT", &address, &token, text.clone()).await;
                    assert_eq!(status, 201, "{kind:?} at {at}: {answer}");
                }
                let run = farm.app.store.run(&id).await.unwrap().unwrap();
                let name = Path::new(&run.place).file_name().unwrap().to_str().unwrap();
                let digest = farm.app.store.run_digest(&id).await.unwrap().unwrap();
                assert_eq!(bucket.faults(name, &digest, true).await.unwrap(), [""; 0], "{kind:?} at {at}");
                assert_eq!(farm.ask("PUT", &address, &token, text.clone()).await.0, 200);
                if is_over {
                    break;
                }
            }
        }
    });
}

#[test]
fn a_cache_that_was_lost_is_fetched_and_a_bucket_that_lost_is_a_line() {
    block_on(async {
        let bucket = in_memory();
        let farm = Farm::with_bucket(bucket.clone()).await;
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("hunt");
        for (_, bytes) in &files {
            farm.ask("PUT", &format!("/v1/pieces/{}", piece(bytes)), &token, bytes.clone()).await;
        }
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 201);
        let run = farm.app.store.run(&id).await.unwrap().unwrap();
        let (board, minute) = (run.board.clone(), run.started);
        let addresses = [
            format!("/runs/{id}"),
            format!("/runs/{id}/spike/1"),
            format!("/v1/runs/{id}/files/run.json"),
            format!("/v1/runs/{id}/perfetto.json"),
            format!("/v1/runs/{id}.tar"),
            format!("/v1/compare?a={id}&b={board}"),
        ];
        let asked_before = bucket.planned.asked();
        let mut before = Vec::new();
        for address in &addresses[..4] {
            before.push(farm.shown(address).await);
        }
        assert_eq!(bucket.planned.asked(), asked_before, "the copy is read");
        for (address, known) in addresses.iter().zip(&before) {
            farm.lose_cache();
            assert_eq!(known.0, 200, "{address}");
            assert!(farm.shown(address).await == *known, "{address}");
        }
        for address in &addresses {
            farm.lose_cache();
            // Its sides are alike, which is no comparison, and it was fetched all the same.
            assert!(matches!(farm.shown(address).await.0, 200 | 422), "{address}");
            assert_eq!(bundle_folders(&farm._folder.path().join("bundles")).len(), 1, "{address}");
        }
        let metrics = farm.shown("/metrics").await.1;
        assert!(metrics.contains("onbeat_farm_bundles_fetched_total 10"), "{metrics}");
        farm.lose_cache();
        bucket.planned.plan(Some((1, PlannedFault::Gone)));
        for address in &addresses {
            let (status, text) = farm.shown(address).await;
            assert!(status == 503 && text.contains("annot reach"), "{address}: {status} {text}");
        }
        assert!(farm.shown("/metrics").await.1.contains("\nonbeat_farm_bucket_away 1\n"));
        // The numbers are the store's.
        let (status, text) = farm.shown(&format!("/b/{board}/at/{minute}")).await;
        assert!(
            status == 200
                && text.contains("Spikes of a run are not shown: cannot reach the bucket s3://runs/lab"),
            "{text}"
        );
        bucket.planned.plan(None);
        let name = Path::new(&run.place).file_name().unwrap().to_str().unwrap();
        // What is another run's is not shown as this one's.
        let place = run_folder("measured");
        let other = FoundBundle { place: place.clone(), board: None };
        let digest = read(&other).unwrap().0.digest;
        bucket.put_folder(name, &place, &digest).await.unwrap();
        for address in &addresses {
            let (status, text) = farm.shown(address).await;
            assert!(status == 422 && text.contains("different run.json"), "{address}: {status} {text}");
        }
        bucket.remove(name).await.unwrap();
        let (status, text) = farm.shown(&addresses[0]).await;
        assert!(status == 404 && text.contains("backup of the bucket"), "{text}");
    });
}
