//! The requests as seen by an S3 server: signed, path-style, with paginated lists.

#![allow(clippy::disallowed_methods)] // Tests make folders of their own.

use crate::fixture::{block_on, run_folder};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use model::error::{Exit, Failure};
use sha2::{Digest, Sha256};

use super::tests::PlannedFault;
use super::{BucketAddress, BundleCache, ObjectKeys};
use crate::ingest::environment::hex;
use crate::ingest::stored::stored_files;

/// Objects by `/bucket/key`, and the requests.
#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Bytes>,
    methods: BTreeMap<String, u64>,
}

type Shared = Arc<Mutex<Server>>;

const DATE: &str = "2026-01-02T03:04:05.000Z";
const HTTP_DATE: &str = "Fri, 02 Jan 2026 03:04:05 GMT";
/// Objects of a page of a list.
const PAGE: usize = 2;

async fn answer(State(server): State<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 8 << 20).await.unwrap();
    let header =
        |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let authorization = header("authorization");
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=key/"), "{authorization}");
    assert!(authorization.contains("/eu-west-9/s3/aws4_request") && authorization.contains("Signature="));
    assert_eq!(header("x-amz-security-token"), "session");
    assert_eq!(header("x-amz-content-sha256"), hex(&Sha256::digest(&body)));
    let mut server = server.lock().unwrap();
    *server.methods.entry(head.method.to_string()).or_default() += 1;
    let path = head.uri.path().replace("%2B", "+");
    match path.split('/').nth(1) {
        Some("runs") => {}
        Some("others") => return StatusCode::FORBIDDEN.into_response(),
        Some("moved") => {
            return (StatusCode::FOUND, [("location", "http://127.0.0.1:1/runs")]).into_response();
        }
        _ => return (StatusCode::NOT_FOUND, "<Error><Code>NoSuchBucket</Code></Error>").into_response(),
    }
    if path == "/runs" {
        return listed(&server, head.uri.query().unwrap_or_default()).into_response();
    }
    match head.method {
        Method::PUT => {
            assert_eq!(header("content-length"), body.len().to_string());
            server.objects.insert(path, body);
            [("etag", "\"e\"")].into_response()
        }
        Method::DELETE => {
            server.objects.remove(&path);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => match server.objects.get(&path) {
            Some(found) => ([("etag", "\"e\""), ("last-modified", HTTP_DATE)], found.clone()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

fn listed(server: &Server, query: &str) -> String {
    let value = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.unwrap_or_default().replace("%2F", "/").replace("%2B", "+")
    };
    assert_eq!(value("list-type"), "2");
    let (prefix, after) = (value("prefix"), value("continuation-token"));
    let keys = server.objects.keys().filter_map(|path| path.strip_prefix("/runs/"));
    let keys: Vec<&str> = keys.filter(|key| key.starts_with(&prefix) && **key > *after).collect();
    let mut xml = "<ListBucketResult>".to_owned();
    for key in keys.iter().take(PAGE) {
        let bytes = server.objects[&format!("/runs/{key}")].len();
        let _ = write!(
            xml,
            "<Contents><Key>{key}</Key><LastModified>{DATE}</LastModified><Size>{bytes}</Size>\
             <ETag>\"e\"</ETag></Contents>"
        );
    }
    if keys.len() > PAGE {
        let _ = write!(xml, "<NextContinuationToken>{}</NextContinuationToken>", keys[PAGE - 1]);
    }
    let _ = write!(xml, "<IsTruncated>{}</IsTruncated></ListBucketResult>", keys.len() > PAGE);
    xml
}

#[test]
fn requests_are_signed_and_a_bundle_comes_back_over_http() {
    block_on(async {
        let server = Shared::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let service = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        let keys = |endpoint: &str| ObjectKeys {
            id: Some("key".into()),
            secret: Some("secret".into()),
            session: Some("session".into()),
            region: Some("eu-west-9".into()),
            endpoint: Some(endpoint.into()),
        };
        let of = |name: &str, endpoint: &str| {
            BucketAddress::of(Path::new(name)).unwrap().unwrap().open(&keys(endpoint)).unwrap()
        };
        let bucket = of("s3://runs/lab", &endpoint);
        let hunt = run_folder("hunt");
        let document = std::fs::read(hunt.join("run.json")).unwrap();
        let digest = Sha256::digest(&document);
        bucket.put_object("run+1", "stray", "x".into()).await.unwrap();
        bucket.put_folder("run+1", &hunt, &digest).await.unwrap();
        assert!(server.lock().unwrap().objects.contains_key("/runs/lab/run+1/manifest.json"));
        assert_eq!(bucket.objects("run+1").await.unwrap().len(), 4, "without the stray one, in two pages");
        assert_eq!(bucket.faults("run+1", &digest, true).await.unwrap(), [""; 0]);
        let folder = tempfile::tempdir().unwrap();
        let cache = BundleCache::start(bucket.clone(), folder.path(), 1 << 30);
        let lease = cache.open(&folder.path().join("run+1"), Some(&digest)).await.unwrap();
        assert_eq!(std::fs::read(lease.join("run.json")).unwrap(), document);
        assert_eq!(stored_files(&lease), stored_files(&hunt));
        bucket.remove("run+1").await.unwrap();
        assert!(server.lock().unwrap().objects.is_empty());
        let methods: Vec<String> = server.lock().unwrap().methods.keys().cloned().collect();
        assert_eq!(methods, ["DELETE", "GET", "PUT"]);
        // Each fault has a line with its remedy and its exit code, for every request; and redirects
        // are not followed.
        let told = async |name: &str, endpoint: &str, words: &str, exit: Exit| {
            let bucket = of(name, endpoint);
            let faults = [
                bucket.put_object("run", "x", "x".into()).await.unwrap_err(),
                bucket.manifest("run").await.unwrap_err(),
                bucket.objects("run").await.unwrap_err(),
                bucket.bundles().await.unwrap_err(),
                bucket.probe().await.unwrap_err(),
            ];
            for fault in faults {
                assert!(fault.is_of_bucket() && fault.words().contains(words), "{fault:?}");
                assert!(!fault.words().contains('\n'), "{fault:?}");
                assert_eq!(Failure::from(fault).exit, exit, "{name}");
            }
        };
        told("s3://others", &endpoint, "refuses the keys", Exit::NotPermitted).await;
        told("s3://none", &endpoint, "create it", Exit::Usage).await;
        told("s3://moved", &endpoint, "cannot reach", Exit::Internal).await;
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let closed = format!("http://{closed}");
        told("s3://runs", &closed, "cannot reach", Exit::Internal).await;
        // The displayed fault is the current one.
        let bucket = of("s3://others", &endpoint);
        bucket.planned.plan(Some((1, PlannedFault::Lost)));
        for words in ["cannot reach", "refuses the keys"] {
            bucket.probe().await.unwrap_err();
            let shown = bucket.trouble().borrow().clone();
            assert!(shown.is_some_and(|shown| shown.contains(words)), "{words}");
        }
    });
}
