//! Pages of a run and of its spikes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use model::units::Nanos;
use report::run::repeat::repeat;
use stats::bounds::Question;
use study::page::ReportedRun;

use crate::ingest::stored::whole_files;
use crate::pages;
use crate::pages::run::RunWays;
use crate::web::answers::known::known_run;
use crate::web::answers::protection::policy_of;
use crate::web::edge::answer::{Refusal, WebAnswer, WebOutcome};
use crate::web::edge::visitor::Visitor;
use crate::web::run::judged;
use crate::web::state::app::App;
use crate::web::state::made_reports::{MadeReport, MadeReports};

/// Horizon for a run without a limit in its document, as in the report command.
const HORIZON: Nanos = Nanos(86_400_000_000_000);

pub async fn run(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> WebOutcome {
    let run = known_run(&app, &id).await?;
    let place = app.bundle(&run).await?;
    let key = MadeReports::key(&run, &place);
    let made = match key.as_ref().and_then(|key| app.reports.get(key)) {
        Some(made) => made,
        None => {
            let name = run.id.clone();
            let made = Arc::new(app.heavy(move || report_of(&place, &name)).await?);
            if let Some(key) = key {
                app.reports.keep(key, made.clone());
            }
            made
        }
    };
    let MadeReport { parts, again, kept_spikes, lacking } = MadeReport::clone(&made);
    let policy = policy_of(&parts);
    let audit = judged::may_have(&app, &run);
    let ways = RunWays { by: visitor.role(), audit, kept_spikes, lacking };
    let names = app.store.names_of(vec![run.board.as_str()]).await?;
    Ok(WebAnswer::page(pages::run::run(&run, &names, again.as_deref(), ways, parts)).under(policy))
}

pub async fn spike(State(app): State<Arc<App>>, Path((id, number)): Path<(String, String)>) -> WebOutcome {
    let run = known_run(&app, &id).await?;
    let missing = || Refusal::not_found("the run has no spike of this number: its page lists them");
    let asked: usize = number.parse().map_err(|_| missing())?;
    let place = app.bundle(&run).await?;
    let read = app.heavy(move || {
        let found = study::page::spike(&place, asked)?.ok_or_else(missing)?;
        let parts = report::hunt::spike_page::parts(&found.run, asked, found.window.as_ref());
        Ok((parts.ok_or_else(missing)?, repeat(&found.run), found.run.spikes.len() as u64))
    });
    let (parts, again, kept) = read.await?;
    let policy = policy_of(&parts);
    let names = app.store.names_of(vec![run.board.as_str()]).await?;
    let page = pages::spike::spike(&run, &names, asked as u64, kept, again.as_deref(), parts);
    Ok(WebAnswer::page(page).under(policy))
}

/// The report, and the command that repeats its run.
fn report_of(place: &std::path::Path, name: &str) -> Result<MadeReport, Refusal> {
    let mut run = ReportedRun::open(place)?.named(name);
    run.ask(&Question { horizon: HORIZON, ..Question::default() });
    let input = run.input().ok_or_else(|| Refusal::not_found("this bundle holds no run"))?;
    let (again, kept_spikes) = (repeat(input.run), input.run.spikes.len() as u64);
    let lacking = whole_files(place).err();
    Ok(MadeReport { parts: report::run::page::parts(&[input])?, again, kept_spikes, lacking })
}
