//! Kinds of machines and kernels.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use model::units::Nanos;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::pages;
use crate::records::KernelRecord;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, WebAnswer, WebOutcome};
use crate::web::state::app::App;

const COLUMNS: &str = "machine,kernel,preempt,series,boards,runs,length_ns,median_p9999_ns,max_ns,worst_run,\
                       worst_board,days,worst_day,latest";

/// Runs of a kind of machine with a kernel.
#[derive(Serialize, JsonSchema)]
pub struct KernelAnswer<'a> {
    machine: &'a str,
    kernel: &'a str,
    preempt: &'a str,
    series: &'a str,
    boards: u64,
    runs: u64,
    /// Total length of the runs.
    length_ns: u64,
    #[schemars(with = "Option<i64>")]
    median_p9999_ns: Option<Nanos>,
    #[schemars(with = "Option<i64>")]
    max_ns: Option<Nanos>,
    worst_run: &'a str,
    worst_board: &'a str,
    latest: &'a [String],
    days: u64,
    /// Of recorders: the day with the largest latency, in seconds since 1970.
    worst_day: Option<i64>,
}

impl KernelAnswer<'_> {
    fn of(of: &KernelRecord) -> KernelAnswer<'_> {
        KernelAnswer {
            machine: &of.model,
            kernel: &of.release,
            preempt: &of.preempt,
            series: &of.series,
            boards: of.boards,
            runs: of.runs,
            length_ns: of.length_ns,
            median_p9999_ns: of.median_p9999(),
            max_ns: of.max_ns,
            worst_run: &of.worst_run,
            worst_board: &of.worst_board,
            latest: &of.latest,
            days: of.days,
            worst_day: of.is_recorded().then_some(of.worst_day),
        }
    }
}

pub async fn kernels(State(app): State<Arc<App>>, Extension(form): Extension<AnswerForm>) -> WebOutcome {
    let all = app.store.kernels().await?;
    if form == AnswerForm::Page {
        return Ok(WebAnswer::page(pages::kernels::kernels(&all)));
    }
    let all: Vec<KernelAnswer> = all.iter().map(KernelAnswer::of).collect();
    match form {
        AnswerForm::Csv => table(COLUMNS, &all),
        _ => WebAnswer::json(&json!({ "schema": "onbeat.farm-kernels/1", "kernels": all })),
    }
}
