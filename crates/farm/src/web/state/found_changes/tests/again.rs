//! A change of environment that is found again where what comes late says it of an earlier day, or
//! tells more of it.

use super::*;
use crate::changes::{Acknowledgement, ChangeIdentity};
use crate::environments::fixture::record;
use crate::fixture::named_rows::batch;
use crate::records::EnvironmentRecord;
use crate::store::{AcknowledgedChange, ChangeNotice};
use crate::web::changes::acknowledge::mark;
use crate::web::{App, FarmExposure};

const HOUR: i64 = 3_600;

/// What a recorder says of two kernels, and what runs say: the second kernel has one of two values
/// of a setting that no recorder tells.
fn environment(name: &str) -> EnvironmentRecord {
    let (old, new) = (("host.release", "6.1"), ("host.release", "6.12"));
    match name {
        "rows-a" => record(name, &[old]),
        "rows-b" => record(name, &[new]),
        "run-b" => record(name, &[new, ("/proc/x", "1")]),
        _ => record(name, &[new, ("/proc/x", "2")]),
    }
}

async fn app(store: FarmStore) -> App {
    store.board_for("a", "a").await.unwrap();
    for name in ["rows-a", "rows-b"] {
        store.put_environment(1, name, &environment(name)).await.unwrap();
    }
    // What is there when the first is noted is told to nobody.
    store.note_changes(&[], 0, 9).await.unwrap();
    App::new(store, FarmExposure::Loopback, None)
}

/// Five minutes of the recorder from one time to another.
async fn put_rows(app: &App, name: &str, from: i64, to: i64) {
    let slot = |t: i64| (t / 300).unsigned_abs();
    for day in (from..to).step_by(DAY as usize) {
        let rows = batch(slot(day), slot(to.min(day + DAY)), "hog", name);
        app.store.put_rows(&[rows]).await.unwrap();
    }
}

/// A run that began at a time.
async fn put_run(app: &App, name: &str, t: i64) {
    let mut run = recorded_run("measured", "a");
    run.run.id = format!("run-{t}");
    (run.run.started, run.whole.t) = (t, t);
    run.environment = environment(name);
    run.slots.clear();
    run.rows.clear();
    app.store.put(&run).await.unwrap();
}

/// What a look finds.
#[derive(Debug, PartialEq)]
struct Look {
    /// When each change of environment began, the newest first, and whether somebody looked at it.
    changes: Vec<(i64, bool)>,
    /// How many are told that were not before.
    new: u64,
}

async fn environments(app: &App) -> Vec<FarmChange> {
    let mut all = found(&app.store, &FoundChanges::default()).await;
    all.retain(|one| one.subject.starts_with("environment "));
    mark(app, &mut all).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
    all
}

async fn look(app: &App, now: i64) -> Look {
    let all = environments(app).await;
    let seen: Vec<ChangeIdentity> = all.iter().map(ChangeIdentity::of).collect();
    app.store.note_found(&seen, now).await.unwrap();
    let notice = |identity: ChangeIdentity| ChangeNotice { identity, document: String::new() };
    let notices: Vec<ChangeNotice> = seen.into_iter().rev().map(notice).collect();
    let new = app.store.note_changes(&notices, now, 9).await.unwrap().new;
    let changes = all.iter().map(|one| (one.from, one.acknowledged.is_some())).collect();
    Look { changes, new }
}

/// Somebody looks at the change that began at a time.
async fn acknowledge(app: &App, began: i64) {
    let all = environments(app).await;
    let one = all.iter().find(|one| one.from == began).unwrap();
    let by = Acknowledgement { who: "ann".into(), note: "known".into(), at: began };
    let (board, subject) = (one.board.clone(), one.subject.clone());
    app.store.acknowledge(&AcknowledgedChange { board, subject, t: began, by }).await.unwrap();
}

/// The ids by which changes wait to be told.
async fn ids(app: &App) -> Vec<String> {
    app.store.due_notices(i64::MAX, 9).await.unwrap().into_iter().map(|one| one.id).collect()
}

#[test]
fn a_run_that_tells_more_than_a_recorder_that_told_it_first_makes_no_other_change() {
    on_page_engines(async |store| {
        let app = app(store).await;
        put_rows(&app, "rows-a", 0, 8 * DAY).await;
        put_rows(&app, "rows-b", 8 * DAY + 10 * HOUR, 9 * DAY).await;
        let began = 8 * DAY + 10 * HOUR;
        assert_eq!(look(&app, 9 * DAY).await, Look { changes: vec![(began, false)], new: 1 });
        acknowledge(&app, began).await;
        let before = ids(&app).await;
        let began = 8 * DAY + 8 * HOUR;
        put_run(&app, "run-b", began).await;
        assert_eq!(environments(&app).await[0].subject, "environment run-b");
        for now in [9, 10] {
            assert_eq!(look(&app, now * DAY).await, Look { changes: vec![(began, true)], new: 0 });
        }
        assert_eq!(ids(&app).await, before);
    });
}

#[test]
fn an_environment_that_began_days_before_it_was_told_is_the_same_change() {
    on_page_engines(async |store| {
        let app = app(store).await;
        put_rows(&app, "rows-a", 0, 3 * DAY).await;
        put_rows(&app, "rows-b", 8 * DAY, 9 * DAY).await;
        assert_eq!(look(&app, 9 * DAY).await, Look { changes: vec![(8 * DAY, false)], new: 1 });
        acknowledge(&app, 8 * DAY).await;
        let before = ids(&app).await;
        // Rows of three days before, then a run that tells more, five days before.
        put_rows(&app, "rows-b", 5 * DAY, 6 * DAY).await;
        assert_eq!(look(&app, 10 * DAY).await, Look { changes: vec![(5 * DAY, true)], new: 0 });
        let began = 3 * DAY + HOUR;
        put_run(&app, "run-b", began).await;
        assert_eq!(look(&app, 11 * DAY).await, Look { changes: vec![(began, true)], new: 0 });
        assert_eq!(ids(&app).await, before);
    });
}

#[test]
fn to_come_back_to_an_environment_stays_another_change() {
    on_page_engines(async |store| {
        let app = app(store).await;
        for (name, from, to) in [("rows-a", 0, 2), ("rows-b", 4, 8), ("rows-a", 8, 10), ("rows-b", 12, 16)] {
            put_rows(&app, name, from * DAY, to * DAY).await;
        }
        let open = |times: [i64; 3]| times.map(|t| (t, false)).to_vec();
        let times = [12 * DAY, 8 * DAY, 4 * DAY];
        assert_eq!(look(&app, 16 * DAY).await, Look { changes: open(times), new: 3 });
        acknowledge(&app, 4 * DAY).await;
        let before = ids(&app).await;
        let times = [11 * DAY, 8 * DAY, 2 * DAY + HOUR];
        for t in [times[0], times[2]] {
            put_run(&app, "run-b", t).await;
        }
        for now in [17, 18] {
            let mut changes = open(times);
            changes[2].1 = true;
            assert_eq!(look(&app, now * DAY).await, Look { changes, new: 0 });
        }
        assert_eq!(ids(&app).await, before);
    });
}

#[test]
fn what_changes_a_few_hours_later_and_no_recorder_tells_is_another_change() {
    on_page_engines(async |store| {
        let app = app(store).await;
        put_rows(&app, "rows-a", 0, 8 * DAY).await;
        let began = 8 * DAY + 23 * HOUR;
        put_rows(&app, "rows-b", began, 10 * DAY).await;
        assert_eq!(look(&app, 9 * DAY).await, Look { changes: vec![(began, false)], new: 1 });
        acknowledge(&app, began).await;
        let next = 9 * DAY + 10 * HOUR;
        put_run(&app, "run-b", 9 * DAY + 5 * HOUR).await;
        put_run(&app, "run-c", next).await;
        let changes = vec![(next, false), (began, true)];
        assert_eq!(look(&app, 10 * DAY).await, Look { changes, new: 1 });
    });
}
