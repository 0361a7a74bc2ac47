//! A farm over made-up boards, asked as a browser asks, for tests.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use tower::ServiceExt;

use crate::fixture::{MadeFleet, recorded_run};
use crate::store::FarmStore;
use crate::web::{App, FarmExposure, router};

/// Days up to 2026-11-22.
pub async fn app_of(store: FarmStore, boards: usize, days: i64) -> Arc<App> {
    let (measured, hunt) = (recorded_run("measured", "a"), recorded_run("hunt", "a"));
    let fleet = MadeFleet { boards, days, end: 1_795_392_000, measured, hunt, fine_days: days };
    fleet.fill(&store, |_| ()).await.unwrap();
    Arc::new(App::new(store, FarmExposure::Loopback, None))
}

pub async fn get(app: &Arc<App>, address: &str) -> (StatusCode, String) {
    let request = Request::get(address).header(header::HOST, "localhost:8377").body(Body::empty()).unwrap();
    let response = router(app.clone()).oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = to_bytes(response.into_body(), 64 << 20).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}
