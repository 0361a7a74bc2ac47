//! HTTP: which address asks the store what, and shows it by which page. No SQL, no markup.

mod access;
mod acknowledge;
mod admin;
mod admin_users;
pub mod answer;
mod answer_budget;
mod answer_parts;
mod answer_turns;
mod answering;
mod api;
mod app;
mod asked_names;
mod attempts;
mod audits;
mod board_changes;
mod board_list;
mod board_page;
mod board_quota;
mod changes;
mod chosen_boards;
mod clones;
mod compare;
mod compare_days;
mod compare_sides;
mod connections;
mod counters;
mod culprits;
pub mod data;
mod enrol;
mod environment_parts;
mod files;
mod five_minutes;
mod folder_turn;
mod found_changes;
mod heat_bytes;
mod histogram_parts;
mod intake;
mod judged;
mod kernels;
mod known;
mod known_verdicts;
mod last_write;
mod lists;
mod login;
mod made_reports;
mod me;
mod metrics;
mod openapi;
mod paced_body;
mod pins;
mod protection;
mod receive;
mod receive_rows;
mod refusals;
mod refused_requests;
mod routes;
mod run_data;
mod run_page;
mod runs;
pub mod sender;
mod session;
mod slot_parts;
mod tables;
mod tls;
mod unnamed;
mod visitor;
mod webhook;

pub use answering::answer_requests;
pub use app::{App, FarmExposure};
pub use changes::keep_changes;
pub use connections::{ConnectionLimits, OpenConnections};
pub use counters::{FarmCounters, add};
pub use found_changes::FoundChanges;
pub use intake::Intake;
pub use tls::ServerCertificate;
pub use visitor::{AccessPolicy, PublicReading};
pub use webhook::{Webhook, keep_telling};

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
        .layer(protection::compression())
        .layer(from_fn_with_state(app.clone(), protection::protect))
        .with_state(app)
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod admin_tests;
#[cfg(test)]
mod asked_tests;
#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod board_tests;
#[cfg(test)]
mod compare_tests;
#[cfg(test)]
pub mod made_app;
#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod receive_tests;
#[cfg(test)]
mod tests;
