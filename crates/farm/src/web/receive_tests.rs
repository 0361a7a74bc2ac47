//! What boards send, each request repeated, refused and answered as the contract says.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::WatchRow;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use super::sender::{digest_of, now};
use super::{AccessPolicy, App, FarmExposure, Intake, PublicReading, router};
use crate::ingest::environment::hex;
use crate::objects::tests::{PlannedFault, in_memory};
use crate::objects::{BundleCache, ObjectBucket};
use crate::records::{SeriesKey, Tier};
use crate::store::engines::database;
use crate::store::{FarmStore, TimeStretch};

const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// A farm that takes in, in a folder of its own.
struct Farm {
    app: Arc<App>,
    _folder: tempfile::TempDir,
}

/// A test over each engine that can be had.
fn on_each_engine(quota: u64, test: impl AsyncFn(Farm)) {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = FarmStore::file(&folder.path().join("farm.db")).await.unwrap();
        test(Farm::new(store, folder, quota)).await;
        if let Some(url) = database().await {
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

    async fn text(&self, address: &str) -> (u16, String) {
        let request = Request::builder().uri(address).body(Body::empty()).unwrap();
        let response = router(self.app.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 16 << 20).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
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
}

/// The names of bundles in a folder.
fn bundle_folders(bundles: &Path) -> Vec<String> {
    let names = host::MachineFiles::folder(bundles).list("/.").known().cloned().unwrap_or_default();
    names.into_iter().filter(|name| !name.starts_with('.')).collect()
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
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs").join(name);
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

#[test]
fn a_code_enrols_once_and_a_revoked_token_ends() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("press-3").await;
        assert!(token.starts_with("obt_") && token.len() == 68);
        let (status, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!((status, me), (200, json!({ "board": "press-3", "rows": [], "runs": [] })));
        let again = json!({ "code": "press-3", "name": "other" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", again).await.0, 403);
        farm.app.store.add_code(&digest_of("old"), now() - 1, &[]).await.unwrap();
        assert_eq!(
            farm.ask("POST", "/v1/enrol", "", json!({ "code": "old", "name": "x" }).to_string()).await.0,
            403
        );
        // A name that is taken leaves the code good.
        farm.app.store.add_code(&digest_of("new"), now() + 60, &[]).await.unwrap();
        let taken = json!({ "code": "new", "name": "press-3" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", taken).await.0, 409);
        let free = json!({ "code": "new", "name": "press-4" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", free).await.0, 201);
        for wrong in ["", "obt_", "obt_0000", &token[..67]] {
            assert_eq!(farm.ask("GET", "/v1/me", wrong, "").await.0, 401, "{wrong}");
        }
        assert_eq!(farm.app.store.revoke("press-3", now()).await.unwrap(), 1);
        assert_eq!(farm.app.refusals.all().len(), 0);
        assert_eq!(farm.ask("GET", "/v1/me", &token, "").await.0, 401);
        let noted = farm.app.refusals.all();
        assert!(noted[0].board == "press-3" && noted[0].detail.contains("was revoked"), "{noted:?}");
        assert_eq!(farm.ask("POST", "/v1/enrol", "", "no JSON").await.0, 400);
        // Who is not known cannot send much, and each refusal is a document.
        let (status, answer) = farm.ask("POST", "/v1/enrol", "", "x".repeat(10_000)).await;
        assert_eq!((status, &answer["status"]), (413, &json!(413)));
        for (method, address) in [("PUT", "/v1/rows/b/r/s/none"), ("DELETE", "/v1/me")] {
            let (status, answer) = farm.ask(method, address, &token, "").await;
            assert_eq!(answer["status"], json!(status), "{answer}");
        }
    });
}

#[test]
fn wrong_codes_come_to_an_end() {
    on_each_engine(1 << 30, async |farm| {
        let guess = json!({ "code": "guess", "name": "x" }).to_string();
        let mut seen = Vec::new();
        // A new hour may begin meanwhile, and only once.
        for _ in 0..130 {
            seen.push(farm.ask("POST", "/v1/enrol", "", guess.clone()).await.0);
        }
        assert!(seen[0] == 403 && seen.contains(&429), "{seen:?}");
    });
}

#[test]
fn a_bundle_is_sent_once_however_often_it_is_cut_and_repeated() {
    on_each_engine(1 << 30, async |farm| {
        let (token, other) = (farm.enrolled("a").await, farm.enrolled("b").await);
        let (id, files) = fixture("hunt");
        let (address, text) = (format!("/v1/runs/{id}"), manifest(&files));
        let (status, answer) = farm.ask("PUT", &address, &token, text.clone()).await;
        let missing: Vec<&str> =
            answer["missing"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(status, 202);
        let mut pieces: Vec<&[u8]> = files.iter().flat_map(|file| file.1.chunks(4 << 20)).collect();
        pieces.sort_unstable();
        pieces.dedup();
        assert!(pieces.iter().all(|bytes| missing.contains(&piece(bytes).as_str())));
        for (at, bytes) in pieces.iter().enumerate() {
            let address = format!("/v1/pieces/{}", piece(bytes));
            assert_eq!(farm.ask("PUT", &address, &token, bytes.to_vec()).await.0, 201, "piece {at}");
            assert_eq!(farm.ask("PUT", &address, &token, bytes.to_vec()).await.0, 200);
            assert_eq!(farm.ask("PUT", &address, &token, "other".to_owned()).await.0, 422);
            let whole = at + 1 == pieces.len();
            let wanted = if whole { 201 } else { 202 };
            assert_eq!(
                farm.ask("PUT", &address.replace("pieces", "runs"), &token, "{}".to_owned()).await.0,
                422
            );
            if at % 5 == 0 || whole {
                assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, text.clone()).await.0, wanted);
            }
        }
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, text.clone()).await.0, 200);
        let run = farm.app.store.run(&id).await.unwrap().unwrap();
        let days = farm.app.store.tiers("a", &run.key, Tier::Day, ALL).await.unwrap();
        assert_eq!((run.board.as_str(), days[0].n), ("a", run.cycles));
        // What is over does not change, and is nobody else's.
        let less = manifest(&files[..files.len() - 1]);
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &other, text).await.0, 409);
        let changed = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, less).await.0;
        assert!(changed == 409 || changed == 422, "{changed}");
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!((&me["runs"][0]["id"], &me["runs"][0]["complete"]), (&json!(id), &json!(run.complete)));
        assert_eq!(farm.ask("PUT", "/v1/runs/..", &token, "{}").await.0 / 100, 4);
    });
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

#[test]
fn rows_are_stored_once_in_whatever_cuts() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let lines: Vec<String> = (0..40).map(|seq| line(seq, &[(200 + seq as usize, seq + 1)])).collect();
        let address = |first: usize| format!("/v1/rows/boot-1/rec/timer/{first}");
        for (from, to, status) in
            [(30, 40, 201), (0, 7, 201), (3, 12, 201), (0, 12, 200), (5, 40, 201), (0, 40, 200)]
        {
            let (got, answer) = farm.ask("PUT", &address(from), &token, lines[from..to].concat()).await;
            assert_eq!(got, status, "{from}..{to}: {answer}");
        }
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let wanted: u64 = (1..=40).sum();
        for tier in Tier::ALL {
            let rows = farm.app.store.tiers("a", &key, tier, ALL).await.unwrap();
            assert_eq!(rows.iter().map(|row| row.n).sum::<u64>(), wanted, "{tier:?}");
            let samples = rows.iter().flat_map(|row| &row.cpus).map(|cpu| cpu.rows.total()).sum::<u64>();
            assert_eq!(samples, wanted);
        }
        let slots = farm.app.store.slots("a", &key, ALL, 999).await.unwrap();
        assert_eq!((slots.len(), slots[39].max_ns), (40, Some(Nanos(239))));
        // Another content under a number is named, and what is new beside it is stored.
        let beside = line(39, &[(9, 9)]) + &line(40, &[(9, 1)]);
        let (status, answer) = farm.ask("PUT", &address(39), &token, beside).await;
        assert_eq!((status, &answer["seq"], &answer["stored"]), (409, &json!([39]), &json!(1)));
        let (status, answer) = farm.ask("PUT", &address(50), &token, lines[0].clone() + "no row\n").await;
        assert_eq!((status, &answer["line"]), (422, &json!(2)));
        assert_eq!(farm.ask("PUT", &address(7), &token, lines[0].clone()).await.0, 400);
        assert_eq!(farm.ask("PUT", "/v1/rows/../r/s/0", &token, "").await.0 / 100, 4);
        let (_, me) = farm.ask("GET", "/v1/me", &token, "").await;
        assert_eq!(me["rows"], json!([{ "boot": "boot-1", "first": 0, "last": 40 }]));
        let page = router(farm.app.clone())
            .oneshot(Request::get("/b/a").body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(page.status().as_u16(), 200);
    });
}

#[test]
fn clocks_that_are_wrong_place_rows_right_and_the_future_is_refused() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |boot: &str, clock: &str, text: String| {
            let request = Request::put(format!("/v1/rows/{boot}/rec/timer/0"))
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header("onbeat-clock", clock.to_owned());
            let request = request.body(Body::from(text)).unwrap();
            let response = router(farm.app.clone()).oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, serde_json::from_slice::<Value>(&bytes).unwrap_or_default())
        };
        let rows = (0..3).map(|seq| line(seq, &[(200, 1)])).collect::<String>();
        let mono = 900 * Nanos::SECOND.0;
        // It believes that it is 1970.
        let clock = format!("boot=b1;mono={mono};wall={mono}");
        assert_eq!(put("b1", &clock, rows.clone()).await.0, 201);
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let slots = farm.app.store.slots("a", &key, ALL, 9).await.unwrap();
        assert!((now() - 1_300..now()).contains(&slots[0].t), "{}", slots[0].t);
        // A row of a later time than the board's own clock that counts from its boot.
        let future = line(0, &[(200, 1)]) + &line(2_000, &[(200, 1)]);
        let (status, answer) = put("b2", &format!("boot=b2;mono={mono};wall=0"), future).await;
        assert_eq!((status, &answer["line"]), (422, &json!(2)));
        // An earlier boot, of which only the board says when it was: in 2106.
        let wall = 4_300_000_000 * Nanos::SECOND.0;
        let late = line(0, &[(200, 1)]).replace("\"wall_ns\":0", &format!("\"wall_ns\":{wall}"));
        assert_eq!(put("b0", &format!("boot=b2;mono={mono};wall=0"), late).await.0, 422);
        // The machine before was copied, and is still alive.
        let (status, answer) = put("b1", &clock, rows).await;
        assert_eq!(status, 403, "{answer}");
    });
}

#[test]
fn a_board_that_is_up_again_within_five_minutes_has_the_rows_of_both_boots() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let put = async |boot: &str, counts: &[(usize, u64)]| {
            let address = format!("/v1/rows/{boot}/rec/timer/0");
            farm.ask("PUT", &address, &token, line(0, counts)).await
        };
        for stored in
            [json!({ "stored": 1, "had": 0, "seq": [] }), json!({ "stored": 0, "had": 1, "seq": [] })]
        {
            assert_eq!(put("b1", &[(200, 1)]).await.1, stored);
            assert_eq!(put("b2", &[(200, 2)]).await.1, stored);
        }
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let slots = farm.app.store.slots("a", &key, ALL, 9).await.unwrap();
        assert_eq!(slots.iter().map(|slot| (slot.t, slot.n)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
        let days = farm.app.store.tiers("a", &key, Tier::Day, ALL).await.unwrap();
        assert_eq!(days.iter().map(|day| day.n).sum::<u64>(), 3);
        assert_eq!(put("b2", &[(200, 3)]).await, (409, json!({ "stored": 0, "had": 0, "seq": [0] })));
    });
}

#[test]
fn a_board_has_its_quota() {
    on_each_engine(1_000, async |farm| {
        let token = farm.enrolled("a").await;
        let (id, files) = fixture("measured");
        let (status, answer) = farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await;
        assert_eq!(status, 413, "{answer}");
    });
}

#[test]
fn a_run_that_came_on_a_stick_is_there() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/measured");
        let found = crate::ingest::find::FoundBundle { place, board: Some("a".into()) };
        let record = crate::ingest::bundle::read(&found).unwrap().0;
        farm.app.store.put(&record).await.unwrap();
        let (id, files) = fixture("measured");
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 200);
    });
}

#[test]
fn a_farm_that_keeps_nothing_says_so() {
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let app = Arc::new(App::new(store, FarmExposure::BehindProxy, None));
        let request = Request::put("/v1/pieces/x").body(Body::empty()).unwrap();
        assert_eq!(router(app).oneshot(request).await.unwrap().status().as_u16(), 501);
    });
}

impl Farm {
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

/// A fixture whose document is another one.
fn with_document(of: impl Fn(&str) -> String) -> (String, Vec<(String, Vec<u8>)>) {
    let (id, mut files) = fixture("measured");
    let document = files.iter_mut().find(|file| file.0 == "run.json").unwrap();
    document.1 = of(std::str::from_utf8(&document.1).unwrap()).into_bytes();
    (id, files)
}

#[test]
fn labels_come_with_runs_and_rows_and_lists_go_by_them() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let labels = r#""labels":{"build":"123","job":"https:/ci/7?x=<1>","bad name":"x"},"#;
        let (id, files) = with_document(|text| text.replacen("\"id\"", &format!("{labels}\"id\""), 1));
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
        let (_, run) = farm.ask("GET", &format!("/v1/runs/{id}"), "", "").await;
        assert_eq!(run["labels"], json!({ "build": "123", "job": "https:/ci/7?x=<1>" }));
        let job = "job%3Dhttps%3A%2Fci%2F7%3Fx%3D%3C1%3E";
        for (query, found) in [
            ("label=build%3D123", 1),
            ("label=build=123&board=a", 1),
            ("label=build=123&board=b", 0),
            (&format!("label={job}&label=build%3D123"), 1),
            ("label=build=124", 0),
        ] {
            let (status, answer) = farm.ask("GET", &format!("/v1/runs?{query}"), "", "").await;
            assert_eq!((status, answer["runs"].as_array().unwrap().len()), (200, found), "{query}");
        }
        let (_, csv) = farm.shown("/v1/runs.csv?label=build=123").await;
        assert!(csv.lines().nth(1).unwrap().ends_with(",build=123 job=https:/ci/7?x=<1>"), "{csv}");
        for address in ["/runs?label=build=123".to_owned(), format!("/runs/{id}"), "/b/a".to_owned()] {
            let (status, page) = farm.shown(&address).await;
            assert!(status == 200 && page.contains(&format!("/runs?label={job}")), "{address}");
            assert!(!page.contains("x=<1>"), "{address}");
        }
        for wrong in ["label=build", "limit=0", "before=x"] {
            let (status, answer) = farm.ask("GET", &format!("/v1/runs?{wrong}"), "", "").await;
            assert!(status == 400 && !answer["detail"].as_str().unwrap().contains('\n'), "{answer}");
        }

        // The schema comes first.
        let of = json!({ "boot": "boot-1", "recording": "rec", "series": "timer", "plan": "",
            "labels": { "image": "i7", "\u{202e}": "x" } });
        let header = of.to_string().replacen('{', "{\"schema\":\"onbeat.rows/1\",", 1);
        let rows = format!("{header}\n{}{}", line(0, &[(200, 1)]), line(1, &[(200, 1)]));
        assert_eq!(farm.ask("PUT", "/v1/rows/boot-1/rec/timer/0", &token, rows).await.0, 201);
        let rows = line(2, &[(200, 1)]);
        assert_eq!(farm.ask("PUT", "/v1/rows/boot-1/rec/timer/2", &token, rows).await.0, 201);
        let slots = async |query: &str| {
            let (_, answer) =
                farm.ask("GET", &format!("/v1/boards/a/slots?series=timer{query}"), "", "").await;
            answer["slots"].as_array().map_or(0, Vec::len)
        };
        assert_eq!(
            (slots("").await, slots("&label=image=i7").await, slots("&label=image=x").await),
            (3, 2, 0)
        );
        let (_, of_board) = farm.ask("GET", "/v1/boards/a/labels", "", "").await;
        let image = of_board["labels"].as_array().unwrap().iter().find(|label| label["name"] == "image");
        assert_eq!(image.unwrap()["last"], json!(300), "{of_board}");
    });
}

#[test]
fn a_code_of_a_lab_tags_its_board() {
    on_each_engine(1 << 30, async |farm| {
        farm.app.store.add_code(&digest_of("code"), now() + 60, &["lab=west".into()]).await.unwrap();
        let asked = json!({ "code": "code", "name": "press-3" }).to_string();
        assert_eq!(farm.ask("POST", "/v1/enrol", "", asked).await.0, 201);
        farm.enrolled("press-4").await;
        let (_, board) = farm.ask("GET", "/v1/boards/press-3", "", "").await;
        assert_eq!((&board["board"]["lab"], &board["board"]["tags"]), (&json!("west"), &json!(["lab=west"])));
        assert_eq!(farm.ask("GET", "/v1/boards/press-4", "", "").await.1["board"]["lab"], json!(""));
        let (_, page) = farm.shown("/?q=lab%3Dwest").await;
        assert!(page.contains("/b/press-3") && !page.contains("/b/press-4"));
    });
}

type Damage = Box<dyn Fn(&str) -> String>;

/// What is wrong is one line on the board and on the administration page, and nothing else stops.
#[test]
fn what_is_no_bundle_is_one_line_there_and_here_and_the_next_is_stored() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let bad: [(&str, Damage); 7] = [
            ("cut short", Box::new(|text| text[..text.len() / 2].to_owned())),
            ("expected a run", Box::new(|text| text.replace("onbeat.run/1", "other.tool/7"))),
            ("newer", Box::new(|text| text.replace("onbeat.run/1", "onbeat.run/2"))),
            ("another id", Box::new(|text| text.replacen("\"id\":\"", "\"id\":\"x", 1))),
            ("its id", Box::new(|text| text.replacen("\"id\":\"", "\"id\":\"../\\u001b[2J", 1))),
            ("nested", Box::new(|_| "[".repeat(100_000))),
            ("contradicts", Box::new(|text| text.replacen("\"cycles\":", "\"cycles\":9", 1))),
        ];
        for (words, of) in &bad {
            let (id, files) = with_document(of);
            let (status, answer) = farm.send(&token, &id, &files).await;
            let detail = answer["detail"].as_str().unwrap_or_default();
            assert_eq!(status, 422, "{words}: {answer}");
            assert!(detail.contains(words) && detail.len() < 600, "{words}: {detail}");
            assert!(!detail.contains(model::text::steers), "{detail:?}");
            let noted = farm.app.refusals.all();
            assert_eq!(
                (noted[0].board.as_str(), noted[0].detail.as_str()),
                ("a", &detail[..detail.len().min(300)])
            );
            assert!(farm.app.store.run(&id).await.unwrap().is_none());
        }
        let (id, files) = fixture("measured");
        assert_eq!(farm.send(&token, &id, &files).await.0, 201);
    });
}

#[test]
fn bombs_and_paths_that_climb_are_refused_and_nothing_is_written() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::copy(&mut std::io::repeat(b'\n').take(64 << 20), &mut encoder).unwrap();
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 1 << 20);
        let pieces = format!("/v1/pieces/{}", "a".repeat(64));
        for address in ["/v1/rows/b/r/timer/0", &pieces, "/v1/runs/x"] {
            let request = Request::put(address)
                .header(header::AUTHORIZATION, format!("Bearer {token}"))
                .header(header::CONTENT_ENCODING, "gzip");
            let response = router(farm.app.clone())
                .oneshot(request.body(Body::from(bomb.clone())).unwrap())
                .await
                .unwrap();
            assert_eq!(response.status().as_u16(), 413, "{address}");
            assert!(farm.app.refusals.all()[0].detail.contains("bytes"));
        }
        for path in ["../../climbed", "/climbed", "host/../../climbed", "host/\u{202e}x", "events/a/b"] {
            let files = [("run.json".to_owned(), b"{}".to_vec()), (path.to_owned(), b"x".to_vec())];
            let (status, answer) = farm.ask("PUT", "/v1/runs/x", &token, manifest(&files)).await;
            assert!(
                status == 422 && !answer["detail"].as_str().unwrap().contains(model::text::steers),
                "{answer}"
            );
        }
    });
}

#[test]
fn a_token_that_ends_in_the_middle_leaves_what_was_acknowledged() {
    on_each_engine(1 << 30, async |farm| {
        let token = farm.enrolled("a").await;
        assert_eq!(farm.ask("PUT", "/v1/rows/b/r/timer/0", &token, line(0, &[(200, 1)])).await.0, 201);
        let (id, files) = fixture("measured");
        let first = piece(files[0].1.chunks(4 << 20).next().unwrap());
        let bytes = files[0].1.clone();
        assert_eq!(farm.ask("PUT", &format!("/v1/runs/{id}"), &token, manifest(&files)).await.0, 202);
        assert_eq!(farm.ask("PUT", &format!("/v1/pieces/{first}"), &token, bytes.clone()).await.0, 201);
        farm.app.store.revoke("a", now()).await.unwrap();
        for (address, body) in [
            (format!("/v1/pieces/{first}"), bytes),
            (format!("/v1/runs/{id}"), manifest(&files).into_bytes()),
            ("/v1/rows/b/r/timer/1".to_owned(), line(1, &[(200, 1)]).into_bytes()),
        ] {
            let (status, answer) = farm.ask("PUT", &address, &token, body).await;
            assert!(
                status == 401 && answer["detail"].as_str().unwrap().contains("enrol the board again"),
                "{answer}"
            );
        }
        assert!(farm.app.refusals.all()[0].detail.contains("was revoked"));
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        assert_eq!(farm.app.store.slots("a", &key, ALL, 9).await.unwrap().len(), 1);
    });
}

#[test]
fn a_full_disk_is_said_to_the_board_and_here_and_ends_with_room() {
    // A database server's disk is not this program's to fill.
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let farm = Farm::new(store, tempfile::tempdir().unwrap(), 1 << 30);
        let token = farm.enrolled("a").await;
        farm.app.store.fill_up(true).await;
        let put = async |seq: u64| {
            let text: String = (seq..seq + 100).map(|seq| line(seq, &[(200 + seq as usize, 7)])).collect();
            farm.ask("PUT", &format!("/v1/rows/b/r/timer/{seq}"), &token, text).await
        };
        let mut answers = Vec::new();
        for at in 0..20 {
            answers.push(put(at * 100).await);
        }
        let (status, answer) = answers.iter().find(|answer| answer.0 != 201).expect("no room is left");
        let detail = answer["detail"].as_str().unwrap();
        assert!(*status == 503 && detail.contains("look at its disk") && !detail.contains('\n'), "{answer}");
        assert_eq!(farm.app.refusals.all()[0].detail, detail);
        assert_eq!(farm.shown("/").await.0, 200, "pages go on");
        farm.app.store.fill_up(false).await;
        for (at, before) in (0..).zip(&answers) {
            let again = put(at * 100).await;
            assert_eq!(again.0, if before.0 == 201 { 200 } else { 201 }, "{again:?}");
        }
    });
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
                    assert_eq!(farm.text(&format!("/runs/{id}")).await.0, 404);
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
            before.push(farm.text(address).await);
        }
        assert_eq!(bucket.planned.asked(), asked_before, "the copy is read");
        for (address, known) in addresses.iter().zip(&before) {
            farm.lose_cache();
            assert_eq!(known.0, 200, "{address}");
            assert!(farm.text(address).await == *known, "{address}");
        }
        for address in &addresses {
            farm.lose_cache();
            // Its sides are alike, which is no comparison, and it was fetched all the same.
            assert!(matches!(farm.text(address).await.0, 200 | 422), "{address}");
            assert_eq!(bundle_folders(&farm._folder.path().join("bundles")).len(), 1, "{address}");
        }
        let metrics = farm.text("/metrics").await.1;
        assert!(metrics.contains("onbeat_farm_bundles_fetched_total 10"), "{metrics}");
        farm.lose_cache();
        bucket.planned.plan(Some((1, PlannedFault::Gone)));
        for address in &addresses {
            let (status, text) = farm.text(address).await;
            assert!(status == 503 && text.contains("is not reached"), "{address}: {status} {text}");
        }
        assert!(farm.text("/metrics").await.1.contains("\nonbeat_farm_bucket_away 1\n"));
        // The numbers are the store's.
        let (status, text) = farm.text(&format!("/b/{board}/at/{minute}")).await;
        assert!(
            status == 200 && text.contains("Spikes of a run are not shown: the bucket s3://runs/lab"),
            "{text}"
        );
        bucket.planned.plan(None);
        let name = Path::new(&run.place).file_name().unwrap().to_str().unwrap();
        bucket.remove(name).await.unwrap();
        let (status, text) = farm.text(&addresses[0]).await;
        assert!(status == 404 && text.contains("backup of the bucket"), "{text}");
    });
}
