//! Every address, with what is there, what is not, and what is hostile. Here is the farm that is
//! asked, over recorded runs.

mod data;
mod lists;
mod pages;
mod parts;
mod refused;

use crate::fixture::run_folder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tower::ServiceExt;

use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::store::FarmStore;
use crate::store::engines::on_page_engines;
use crate::web::{App, FarmExposure, router};

pub fn place(name: &str) -> PathBuf {
    run_folder(name)
}

pub async fn app_of(store: FarmStore, bundles: &[(&Path, &str)]) -> Arc<App> {
    for (place, board) in bundles {
        let found = FoundBundle { place: place.to_path_buf(), board: Some((*board).to_owned()) };
        store.put(&read(&found).unwrap().0).await.unwrap();
    }
    Arc::new(App::new(store, FarmExposure::Loopback, None))
}

pub async fn get(app: &Arc<App>, address: &str) -> Response {
    let request = Request::get(address).header(header::HOST, "localhost:8377").body(Body::empty()).unwrap();
    router(app.clone()).oneshot(request).await.unwrap()
}

pub async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 64 << 20).await.unwrap().to_vec()).unwrap()
}

pub fn header_of(response: &Response, name: &str) -> String {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// What is there as JSON.
async fn document(app: &Arc<App>, address: &str) -> Value {
    let response = get(app, address).await;
    assert_eq!(response.status(), StatusCode::OK, "{address}");
    assert_eq!(header_of(&response, "content-type"), "application/json", "{address}");
    serde_json::from_str(&text(response).await).unwrap()
}
