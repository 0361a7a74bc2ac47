//! HTTP: which address asks the store what, and shows it by which page. No SQL, no markup.

pub mod answer;
mod api;
mod app;
mod changes;
mod clones;
mod compare;
mod counters;
pub mod data;
mod five_minutes;
mod found_changes;
mod intake;
mod kernels;
mod metrics;
mod pages;
mod protection;
mod rate;
mod receive;
pub mod sender;
mod tls;
mod webhook;

pub use app::{App, FarmExposure};
pub use changes::keep_changes;
pub use counters::{FarmCounters, add};
pub use found_changes::FoundChanges;
pub use intake::Intake;
pub use tls::{ServerCertificate, TlsListener};
pub use webhook::{Webhook, keep_telling};

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};

/// A piece that does not get smaller by packing.
const LARGEST_BODY: usize = 5 << 20;

/// A code and a name, of who is not known yet.
const LARGEST_ENROLMENT: usize = 4 << 10;

/// All addresses.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(pages::fleet))
        .route("/b/{board}", get(pages::board))
        .route("/b/{board}/env", get(pages::environments))
        .route("/b/{board}/at/{t}", get(five_minutes::page))
        .route("/changes", get(changes::page))
        .route("/kernels", get(kernels::page))
        .route("/runs/{id}", get(pages::run))
        .route("/culprits", get(pages::culprits))
        .route("/culprits/{fingerprint}", get(pages::culprit))
        .route("/compare", get(compare::page))
        .route("/assets/farm.css", get(pages::styles))
        .route("/healthz", get(metrics::health))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/boards", get(api::boards))
        .route("/v1/boards/{board}", get(api::board))
        .route("/v1/boards/{board}/slots", get(api::slots))
        .route("/v1/boards/{board}/slots.csv", get(api::slots_csv))
        .route("/v1/boards/{board}/histograms", get(api::histograms))
        .route("/v1/runs/{id}", get(api::run).put(receive::put_run))
        .route("/v1/culprits", get(api::culprits))
        .route("/v1/kernels", get(kernels::json))
        .route("/v1/changes", get(changes::json))
        .route("/v1/compare", get(compare::json))
        .route("/v1/refused", get(api::refused))
        .route("/v1/enrol", post(receive::enrol).layer(DefaultBodyLimit::max(LARGEST_ENROLMENT)))
        .route("/v1/me", get(receive::me))
        .route("/v1/rows/{boot}/{recording}/{series}/{seq}", put(receive::put_rows))
        .route("/v1/pieces/{piece}", put(receive::put_piece))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .fallback(pages::nowhere)
        .layer(from_fn_with_state(app.clone(), protection::protect))
        .with_state(app)
}

#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod receive_tests;
#[cfg(test)]
mod tests;
