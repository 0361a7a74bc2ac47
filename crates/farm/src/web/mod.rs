//! HTTP: which address asks the store what, and shows it by which page. No SQL, no markup.

mod admin;
mod answer_schemas;
pub mod answers;
mod board;
mod changes;
mod compare;
mod culprits;
pub mod edge;
mod kernels;
pub mod login;
mod metrics;
mod openapi;
mod receive;
mod routes;
mod run;
mod state;

pub use changes::keep_changes;
pub use changes::webhook::{Webhook, keep_telling};
pub use edge::answering::answer_requests;
pub use edge::connections::{ConnectionLimits, OpenConnections};
pub use edge::counters::{FarmCounters, add};
pub use edge::tls::ServerCertificate;
pub use edge::visitor::{AccessPolicy, PublicReading};
pub use state::app::{App, FarmExposure};
pub use state::found_changes::FoundChanges;
pub use state::intake::Intake;

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};

/// All addresses.
pub fn router(app: Arc<App>) -> Router {
    let routes = routes::routes();
    let requests: openapi::ApiRequests = routes.iter().map(routes::FarmRoute::request).collect();
    let guarded = routes.into_iter().map(|route| route.guarded(&app));
    let all = guarded.fold(Router::new(), |all, (path, handler)| all.route(path, handler));
    all.fallback(routes::nowhere)
        .layer(Extension(requests))
        .layer(answers::protection::compression())
        .layer(from_fn_with_state(app.clone(), answers::protection::protect))
        .with_state(app)
}

#[cfg(test)]
mod asked_tests;
#[cfg(test)]
pub mod made_app;
#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod tests;
