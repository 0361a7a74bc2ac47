//! Data of the pages of a run and its spikes: the report, the spikes, and the command that repeats
//! the run.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use model::run::Culprit;
use model::units::Nanos;
use report::ReportFormat;
use report::hunt::parts::by_latency;
use report::hunt::spike_page::named;
use report::run::repeat::repeat;
use serde::Serialize;
use serde_json::{Value, json};
use study::page::{ReportedRun, spiked_run};

use crate::ingest::spikes::{FarmSpike, spikes_within};
use crate::web::answers::files::bundle_of;
use crate::web::answers::tables::table;
use crate::web::edge::answer::{AnswerForm, Refusal, WebAnswer, WebOutcome};
use crate::web::state::app::App;

async fn read_bundle<T: Send + 'static>(
    app: &App,
    id: &str,
    read: impl FnOnce(&FilePath) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let place = bundle_of(app, id).await?;
    app.heavy(move || read(&place)).await
}

pub async fn report(
    State(app): State<Arc<App>>,
    Extension(form): Extension<AnswerForm>,
    Path(id): Path<String>,
) -> WebOutcome {
    let format = if form == AnswerForm::Csv { ReportFormat::Csv } else { ReportFormat::Json };
    let name = id.clone();
    let read = move |place: &FilePath| -> Result<String, Refusal> {
        let run = ReportedRun::open(place)?.named(&name);
        let input = run.input().ok_or_else(|| Refusal::not_found("this bundle holds no run"))?;
        Ok(report::render(&[input], format)?)
    };
    let text = read_bundle(&app, &id, read).await?;
    Ok(if form == AnswerForm::Csv { WebAnswer::csv(text) } else { WebAnswer::text("application/json", text) })
}

/// The command that repeats a run; null if its record lacks it.
pub async fn again(State(app): State<Arc<App>>, Path(id): Path<String>) -> WebOutcome {
    let command = read_bundle(&app, &id, |place| Ok(repeat(&bundle::read::Bundle::open(place)?.run))).await?;
    WebAnswer::json(&json!({ "schema": "onbeat.farm-again/1", "run": id, "again": command }))
}

/// All spikes of a run, each with the number of its page.
pub async fn spikes(
    State(app): State<Arc<App>>,
    Extension(form): Extension<AnswerForm>,
    Path(id): Path<String>,
) -> WebOutcome {
    let all = read_bundle(&app, &id, |place| Ok(spikes_within(place, i64::MIN..i64::MAX)?)).await?;
    let key = app.store.run(&id).await?.map(|run| run.key).unwrap_or_default();
    // In its address a run is called as the store calls it.
    let named = |one: FarmSpike| FarmSpike { run: id.clone(), key: key.clone(), ..one };
    let all: Vec<FarmSpike> = all.into_iter().map(named).collect();
    match form {
        AnswerForm::Csv => table("number,at,cpu,latency_ns,culprit,victim", &all),
        _ => WebAnswer::json(&json!({ "schema": "onbeat.farm-spikes/1", "run": id, "spikes": all })),
    }
}

/// A culprit of a spike, with its time in that spike.
#[derive(Serialize)]
struct SpikeCulprit<'a> {
    took_ns: Nanos,
    #[serde(flatten)]
    culprit: &'a Culprit,
}

pub async fn spike(State(app): State<Arc<App>>, Path((id, number)): Path<(String, String)>) -> WebOutcome {
    let missing =
        || Refusal::not_found("the run has no spike of this number: /v1/runs/RUN/spikes lists them");
    let asked: usize = number.parse().map_err(|_| missing())?;
    let name = id.clone();
    let read = move |place: &FilePath| -> Result<Value, Refusal> {
        let run = spiked_run(place)?;
        let order = by_latency(&run);
        let at = asked.checked_sub(1).and_then(|at| order.get(at).copied()).ok_or_else(missing)?;
        let of = |(at, took_ns): (usize, Nanos)| SpikeCulprit { took_ns, culprit: &run.culprits[at] };
        let culprits: Vec<SpikeCulprit> = named(&run, &run.spikes[at]).into_iter().map(of).collect();
        Ok(json!({
            "schema": "onbeat.farm-spike/1", "run": name, "number": asked, "spike": run.spikes[at],
            "culprits": culprits, "again": repeat(&run),
        }))
    };
    WebAnswer::json(&read_bundle(&app, &id, read).await?)
}
