//! Audits of the machines of runs, from their bundles. A bundle is not trusted: the work is bounded
//! and runs outside of the request's task.

use std::collections::BTreeSet;
use std::path::Path;

use axum::http::StatusCode;
use rules::audit::VerdictCounts;
use rules::intent::Profile;
use study::audit::{Audited, MachineSource, judge};

use crate::history::BoardEnvironment;
use crate::pages::audit::BoardAudit;
use crate::records::FarmRun;
use crate::web::edge::answer::Refusal;
use crate::web::state::app::App;

/// File of each bundle with data of its machine; it is written once.
const NOTED: &str = "host.errors";
/// Limit of a board's latest runs or environments that are examined: imports have no machine.
const LOOKED_AT: usize = 20;

/// Audits the machine of a bundle. Refusals do not contain its path.
pub fn judged(place: &Path) -> Result<Audited, Refusal> {
    if host::identity(&place.join(NOTED)).is_none() {
        return Err(Refusal::not_found(
            "this run has no data of its machine, or its files are gone: choose another of its board",
        ));
    }
    judge(MachineSource::Foreign(place), Profile::default(), None).map_err(|_| unreadable())
}

pub fn unreadable() -> Refusal {
    Refusal::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "the data of the machine in this run is damaged or too large: measure again",
    )
}

/// True if a run may have an audit, by the files on this disk; a run only in a bucket may.
pub fn may_have(app: &App, run: &FarmRun) -> bool {
    let place = Path::new(&run.place);
    let has = |name: &str| host::identity(&place.join(name)).is_some();
    has(NOTED) || (app.cache.is_some() && !has("run.json"))
}

/// Audit of a board's latest run that has one.
pub async fn latest(app: &App, runs: &[FarmRun]) -> Option<BoardAudit> {
    let run = runs.iter().take(LOOKED_AT).find(|run| may_have(app, run))?;
    Some(BoardAudit { run: run.id.clone(), started: run.started, summary: counts(app, run).await })
}

async fn counts(app: &App, run: &FarmRun) -> Option<VerdictCounts> {
    // A page of a board fetches nothing out of a bucket.
    let file = host::identity(&Path::new(&run.place).join(NOTED))?;
    let key = format!("{} {} {file:?}", run.id, run.place);
    if let Some(known) = app.verdicts.get(&key) {
        return known;
    }
    let place = app.bundle(run).await.ok()?;
    let made = app.heavy(move || Ok(judged(&place)?.audit.summary)).await.ok();
    app.verdicts.keep(key, made);
    made
}

/// Runs of a board's latest environments that may have an audit.
pub async fn of_environments(app: &App, all: &[BoardEnvironment]) -> Result<BTreeSet<String>, Refusal> {
    let mut found = BTreeSet::new();
    for one in all.iter().take(LOOKED_AT).filter(|one| one.runs > 0) {
        let run = app.store.run(&one.example).await?;
        found.extend(run.filter(|run| may_have(app, run)).map(|run| run.id));
    }
    Ok(found)
}
