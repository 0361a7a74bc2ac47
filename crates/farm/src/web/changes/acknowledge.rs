//! Acknowledgements of changes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, State};
use axum::response::Response;
use serde::Deserialize;

use crate::changes::{Acknowledgement, ChangeIdentity, ChangeKind, FarmChange};
use crate::pages::parts::escaped;
use crate::store::AcknowledgedChange;
use crate::wall_clock::now;
use crate::web::edge::answer::Refusal;
use crate::web::edge::visitor::Visitor;
use crate::web::login::moved;
use crate::web::state::app::App;

const LONGEST_NOTE: usize = 1_000;

/// Marks changes with their acknowledgements.
pub async fn mark(app: &App, all: &mut [FarmChange]) -> Result<(), Refusal> {
    let Some(first) = all.iter().map(|one| one.acknowledged_within().0).min() else { return Ok(()) };
    let known = app.store.acknowledged(first).await?;
    for one in all {
        one.acknowledged = looked_at(&known, one).map(|known| known.by.clone());
    }
    Ok(())
}

/// Extends the acknowledgement of an exceeded budget, whose time moves out of the examined days.
pub async fn follow(app: &App, all: &[FarmChange]) -> model::error::Result<()> {
    let over: Vec<&FarmChange> = all.iter().filter(|one| one.kind == ChangeKind::OverBudget).collect();
    let Some(first) = over.iter().map(|one| one.acknowledged_within().0).min() else { return Ok(()) };
    let known = app.store.acknowledged(first).await?;
    for one in over {
        let until = ChangeIdentity::of(one).until;
        if let Some(known) = looked_at(&known, one).filter(|known| known.t < until) {
            app.store.move_acknowledged(known, until).await?;
        }
    }
    Ok(())
}

/// Latest valid acknowledgement of a change; `None` if it is open.
fn looked_at<'a>(all: &'a [AcknowledgedChange], of: &FarmChange) -> Option<&'a AcknowledgedChange> {
    let is_of = |known: &&AcknowledgedChange| {
        known.board == of.board && of.is_acknowledged_by(&known.subject, known.t, known.by.at)
    };
    all.iter().filter(is_of).max_by_key(|known| known.t)
}

/// Stored part of a change, by which it is recognised when it has more data.
fn acknowledged(of: &FarmChange, by: Acknowledgement) -> AcknowledgedChange {
    let ChangeIdentity { board, subject, until, .. } = ChangeIdentity::of(of);
    AcknowledgedChange { board, subject, t: until, by }
}

/// Removes all acknowledgements of a change.
async fn reopen(app: &App, of: &FarmChange) -> model::error::Result<()> {
    let known = app.store.acknowledged(of.acknowledged_within().0).await?;
    for one in known.iter().filter(|one| one.board == of.board && of.is_known_as(&one.subject, one.t)) {
        app.store.reopen(one).await?;
    }
    Ok(())
}

/// Change to acknowledge, with a note.
#[derive(Deserialize)]
pub struct AcknowledgeForm {
    board: String,
    subject: String,
    t: i64,
    #[serde(default)]
    note: String,
    /// Not empty if the change is to be reopened.
    #[serde(default)]
    reopen: String,
}

pub async fn acknowledge(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(form): Form<AcknowledgeForm>,
) -> Result<Response, Refusal> {
    let boards = app.store.boards().await?;
    let all = app.changes.all(&app.store, &boards).await?;
    let is_asked =
        |one: &&FarmChange| one.board == form.board && one.subject == form.subject && one.t == form.t;
    let found = all
        .iter()
        .find(is_asked)
        .ok_or_else(|| Refusal::not_found("the change no longer exists: see the list of changes"))?;
    let (board, said) = (&form.board, model::text::excerpt(&found.says));
    if form.reopen.is_empty() {
        let note: String = form.note.trim().chars().take(LONGEST_NOTE).collect();
        let by = Acknowledgement { who: visitor.name().to_owned(), note, at: now() };
        app.store.acknowledge(&acknowledged(found, by)).await?;
        app.note(visitor.name(), &format!("acknowledged of {board}: {said}")).await?;
    } else {
        reopen(&app, found).await?;
        app.note(visitor.name(), &format!("reopened of {board}: {said}")).await?;
    }
    Ok(moved(&format!("/changes?board={}", escaped(board)), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::EnvironmentSince;
    use crate::changes::made::made_change;
    use crate::store::engines::on_page_engines;
    use crate::web::FarmExposure;

    const DAY: i64 = 86_400;

    #[test]
    fn what_was_acknowledged_stays_so_where_older_rows_and_runs_of_it_come() {
        on_page_engines(async |store| {
            store.board_for("a", "a").await.unwrap();
            let app = App::new(store, FarmExposure::Loopback, None);
            // Each as it was found, as it is found when more has come, and another one.
            let changes = [
                (ChangeKind::Worse, [(60_000, 60_000), (9_000, 9_000), (4 * DAY, 4 * DAY)]),
                (ChangeKind::NewCulprit, [(9 * DAY, 9 * DAY), (3 * DAY, 3 * DAY), (99 * DAY, 99 * DAY)]),
                (ChangeKind::MoreOften, [(20 * DAY, 29 * DAY), (8 * DAY, 12 * DAY), (62 * DAY, 70 * DAY)]),
                (ChangeKind::OverBudget, [(6 * DAY, 14 * DAY), (2 * DAY, 40 * DAY), (48 * DAY, 49 * DAY)]),
            ];
            let by = Acknowledgement { who: "ann".into(), note: "known".into(), at: 50 * DAY };
            for (kind, times) in changes {
                let [first, again, other] = times.map(|(from, t)| {
                    let subject = format!("{kind:?}");
                    FarmChange { from, subject, ..made_change("a", kind, t) }
                });
                app.store.acknowledge(&acknowledged(&first, by.clone())).await.unwrap();
                let mut all = [first, again, other];
                mark(&app, &mut all).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
                let open = all.map(|one| one.is_open());
                assert_eq!(open, [false, false, true], "{kind:?}");
            }
        });
    }

    #[test]
    fn an_environment_is_open_again_under_whichever_subject_it_was_acknowledged() {
        on_page_engines(async |store| {
            store.board_for("a", "a").await.unwrap();
            let app = App::new(store, FarmExposure::Loopback, None);
            let all = |names: &[&str]| Arc::new(names.iter().map(|&name| name.to_owned()).collect());
            let (digests, before) = (all(&["rows", "run"]), all(&["old"]));
            let since = EnvironmentSince { digests, before, until: 9 * DAY };
            let worse = |named: &str, day: i64| FarmChange {
                subject: format!("environment {named}"),
                since: Some(since.clone()),
                ..made_change("a", ChangeKind::Worse, day * DAY)
            };
            // One that is another stays as it is.
            for named in ["rows", "old"] {
                let kept = acknowledged(&worse(named, 8), Acknowledgement::default());
                app.store.acknowledge(&kept).await.unwrap();
            }
            let mut found = [worse("run", 3)];
            for open in [false, true] {
                mark(&app, &mut found).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
                assert_eq!(found[0].is_open(), open);
                reopen(&app, &found[0]).await.unwrap();
            }
            let left = app.store.acknowledged(0).await.unwrap();
            assert_eq!(left.iter().map(|one| one.subject.as_str()).collect::<Vec<_>>(), ["environment old"]);
        });
    }

    #[test]
    fn a_budget_that_was_acknowledged_stays_so_however_long_it_is_broken() {
        on_page_engines(async |store| {
            store.board_for("a", "a").await.unwrap();
            let app = App::new(store, FarmExposure::Loopback, None);
            let over = |from: i64, last: i64| FarmChange {
                from: from * DAY,
                subject: "budget 5".into(),
                ..made_change("a", ChangeKind::OverBudget, last * DAY)
            };
            app.store.acknowledge(&acknowledged(&over(6, 14), Acknowledgement::default())).await.unwrap();
            let is_open = async |of: FarmChange| {
                let mut all = [of];
                follow(&app, &all).await.unwrap();
                mark(&app, &mut all).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
                all[0].is_open()
            };
            for last in [15, 40, 90, 130, 180] {
                assert!(!is_open(over((last - 89).max(6), last)).await, "{last}");
            }
            // After seven days within it.
            assert!(is_open(over(188, 188)).await);
            assert_eq!(app.store.acknowledged(0).await.unwrap().len(), 1);
        });
    }
}
