//! Kinds of machines and kernels.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};

use super::answer::{Refusal, WebAnswer};
use super::app::App;
use super::pages::WebOutcome;
use crate::pages;

pub async fn page(State(app): State<Arc<App>>) -> WebOutcome {
    Ok(WebAnswer::page(pages::kernels::kernels(&app.store.kernels().await?)))
}

pub async fn json(State(app): State<Arc<App>>) -> WebOutcome {
    WebAnswer::json(&json!({ "schema": "onbeat.farm-kernels/1", "kernels": documents(&app).await? }))
}

/// Each as its JSON has it.
pub async fn documents(app: &App) -> Result<Vec<Value>, Refusal> {
    let all = app.store.kernels().await?;
    let one = |of: &crate::records::KernelRecord| {
        json!({
            "machine": of.model, "kernel": of.release, "preempt": of.preempt, "series": of.series,
            "boards": of.boards, "runs": of.runs, "length_ns": of.length_ns,
            "median_p9999_ns": of.median_p9999(), "max_ns": of.max_ns, "worst_run": of.worst_run,
            "worst_board": of.worst_board, "latest": of.latest, "days": of.days,
            "worst_day": of.is_recorded().then_some(of.worst_day),
        })
    };
    Ok(all.iter().map(one).collect())
}
