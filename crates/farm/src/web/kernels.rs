//! Kinds of machines and kernels.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde_json::{Value, json};

use crate::pages;
use crate::records::KernelRecord;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, WebAnswer, WebOutcome};
use crate::web::state::app::App;

const COLUMNS: &str = "machine,kernel,preempt,series,boards,runs,length_ns,median_p9999_ns,max_ns,worst_run,\
                       worst_board,days,worst_day,latest";

pub async fn kernels(State(app): State<Arc<App>>, Extension(form): Extension<AnswerForm>) -> WebOutcome {
    let all = app.store.kernels().await?;
    if form == AnswerForm::Page {
        return Ok(WebAnswer::page(pages::kernels::kernels(&all)));
    }
    let one = |of: &KernelRecord| {
        json!({
            "machine": of.model, "kernel": of.release, "preempt": of.preempt, "series": of.series,
            "boards": of.boards, "runs": of.runs, "length_ns": of.length_ns,
            "median_p9999_ns": of.median_p9999(), "max_ns": of.max_ns, "worst_run": of.worst_run,
            "worst_board": of.worst_board, "latest": of.latest, "days": of.days,
            "worst_day": of.is_recorded().then_some(of.worst_day),
        })
    };
    let all: Vec<Value> = all.iter().map(one).collect();
    match form {
        AnswerForm::Csv => table(COLUMNS, &all),
        _ => WebAnswer::json(&json!({ "schema": "onbeat.farm-kernels/1", "kernels": all })),
    }
}
