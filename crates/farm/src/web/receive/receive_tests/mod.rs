//! What boards send, each request repeated, refused and answered as the contract says. Here is the
//! farm that they send to.

mod boards;
mod bucket;
mod rows;
mod runs;

use crate::fixture::{IS_NIGHT, block_on, run_folder};
use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use crate::ingest::environment::hex;
use crate::records::{SeriesKey, Tier};
use crate::store::engines::database;
use crate::store::{FarmStore, TimeStretch};
use crate::wall_clock::now;
use crate::web::login::sender::digest_of;
use crate::web::{AccessPolicy, App, FarmExposure, Intake, PublicReading, router};

const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

/// A farm that takes in, in a folder of its own.
struct Farm {
    app: Arc<App>,
    _folder: tempfile::TempDir,
}

/// A test over SQLite, and in the long gate over PostgreSQL as well: the statements have tests over
/// each engine of their own.
fn on_each_engine(quota: u64, test: impl AsyncFn(Farm)) {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = FarmStore::file(&folder.path().join("farm.db")).await.unwrap();
        test(Farm::new(store, folder, quota)).await;
        if IS_NIGHT && let Some(url) = database().await {
            let store = FarmStore::postgres(&url).await.unwrap();
            test(Farm::new(store, tempfile::tempdir().unwrap(), quota)).await;
        }
    });
}

impl Farm {
    fn new(store: FarmStore, folder: tempfile::TempDir, quota: u64) -> Farm {
        let intake = Intake::start(store.clone(), &folder.path().join("bundles"), quota);
        let policy = AccessPolicy { public: Some(PublicReading::All), metrics_open: false };
        let app = App::new(store, FarmExposure::BehindProxy, Some(intake)).with_policy(policy);
        Farm { app: Arc::new(app), _folder: folder }
    }

    async fn ask(&self, method: &str, address: &str, token: &str, body: impl Into<Body>) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(address)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(body.into())
            .unwrap();
        let response = router(self.app.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn enrolled(&self, name: &str) -> String {
        self.app.store.add_code(&digest_of(name), now() + 60, &[]).await.unwrap();
        let (status, answer) =
            self.ask("POST", "/v1/enrol", "", json!({ "code": name, "name": name }).to_string()).await;
        assert_eq!(status, 201, "{answer}");
        answer["token"].as_str().unwrap().to_owned()
    }

    /// What an address shows, as text.
    async fn shown(&self, address: &str) -> (u16, String) {
        let response = router(self.app.clone())
            .oneshot(Request::get(address).body(Body::empty()).unwrap())
            .await
            .unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 8 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends a bundle; the answer to its manifest.
    async fn send(&self, token: &str, id: &str, files: &[(String, Vec<u8>)]) -> (u16, Value) {
        for bytes in files.iter().flat_map(|file| file.1.chunks(4 << 20)) {
            let address = format!("/v1/pieces/{}", piece(bytes));
            assert!(self.ask("PUT", &address, token, bytes.to_vec()).await.0 / 100 == 2);
        }
        self.ask("PUT", &format!("/v1/runs/{id}"), token, manifest(files)).await
    }
}

/// A bundle's files below a folder, by their paths.
fn files_of(folder: &Path, below: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap().map(|entry| entry.unwrap()) {
        let path = format!("{below}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => found.extend(files_of(&entry.path(), &format!("{path}/"))),
            false => found.push((path, host::read_user_file(&entry.path(), 64 << 20).unwrap())),
        }
    }
    found
}

fn fixture(name: &str) -> (String, Vec<(String, Vec<u8>)>) {
    let place = run_folder(name);
    let mut files = files_of(&place, "");
    let parts = ["run.json", "blocks.jsonl", "rows.jsonl", "tail"];
    files.retain(|(path, _)| {
        parts.contains(&path.as_str()) || path.starts_with("host/") || path.starts_with("events/")
    });
    let document = files.iter().find(|file| file.0 == "run.json").unwrap();
    let run: Value = serde_json::from_slice(&document.1).unwrap();
    (run["id"].as_str().unwrap().to_owned(), files)
}

fn piece(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn manifest(files: &[(String, Vec<u8>)]) -> String {
    let file = |(path, bytes): &(String, Vec<u8>)| {
        let pieces: Vec<String> = bytes.chunks(4 << 20).map(piece).collect();
        json!({ "path": path, "bytes": bytes.len(), "pieces": pieces })
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({ "schema": "onbeat.manifest/1", "files": files, "signature": null }).to_string()
}

/// A fixture whose document is another one.
fn with_document(of: impl Fn(&str) -> String) -> (String, Vec<(String, Vec<u8>)>) {
    let (id, mut files) = fixture("measured");
    let document = files.iter_mut().find(|file| file.0 == "run.json").unwrap();
    document.1 = of(std::str::from_utf8(&document.1).unwrap()).into_bytes();
    (id, files)
}

fn line(seq: u64, counts: &[(usize, u64)]) -> String {
    let hist = RowCounts::of_rows(counts.iter().copied());
    let max_ns = counts.iter().map(|count| Nanos(count.0 as i64)).max();
    let row = WatchRow {
        cpu: Some(Cpu(0)),
        n: hist.total(),
        max_ns,
        max_mono_ns: Some(Nanos(1)),
        hist,
        ..WatchRow::default()
    };
    let mono = seq as i64 * 300 * Nanos::SECOND.0;
    json!({ "seq": seq, "mono_ns": mono, "span_ns": 300_000_000_000i64, "wall_ns": mono, "cpus": [row] })
        .to_string()
        + "\n"
}
