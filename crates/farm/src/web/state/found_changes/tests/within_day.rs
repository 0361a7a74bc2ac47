//! What comes on a day that was looked at already.

use super::*;
use crate::fixture::named_rows::batch;
use crate::records::EnvironmentRecord;

async fn kinds(store: &FarmStore, of: &FoundChanges) -> Vec<ChangeKind> {
    let all = of.look_through(store).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
    let mut kinds: Vec<ChangeKind> = all.into_iter().map(|one| one.kind).collect();
    kinds.sort_unstable();
    kinds
}

/// A board whose recorder has been in two environments.
async fn board_with_environments(store: &FarmStore) {
    store.board_for("a", "a").await.unwrap();
    for env in ["x", "y"] {
        let settings = format!("{{\"host.release\":\"{env}\"}}");
        let (digest, release) = (env.to_owned(), env.to_owned());
        let of = EnvironmentRecord { digest, release, settings, ..EnvironmentRecord::default() };
        store.put_environment(1, env, &of).await.unwrap();
    }
}

#[test]
fn another_environment_and_a_new_culprit_of_the_same_day_are_found() {
    on_page_engines(async |store| {
        board_with_environments(&store).await;
        for day in 0..10 {
            store.put_rows(&[batch(day * 288, (day + 1) * 288, "hog", "x")]).await.unwrap();
        }
        store.put_rows(&[batch(2_880, 2_900, "hog", "x")]).await.unwrap();
        let changes = FoundChanges::default();
        assert!(kinds(&store, &changes).await.is_empty());
        store.put_rows(&[batch(2_900, 2_901, "hog", "y")]).await.unwrap();
        assert_eq!(kinds(&store, &changes).await, [ChangeKind::Environment]);
        store.put_rows(&[batch(2_901, 2_912, "zeta", "y")]).await.unwrap();
        assert_eq!(kinds(&store, &changes).await, [ChangeKind::Environment]);
        store.put_rows(&[batch(2_912, 2_913, "zeta", "y")]).await.unwrap();
        let both = [ChangeKind::Environment, ChangeKind::NewCulprit];
        assert_eq!(kinds(&store, &changes).await, both);
        assert_eq!(kinds(&store, &FoundChanges::default()).await, both, "as after a restart");
    });
}

/// The days of a board's changes of environment and of its new culprits.
async fn days(store: &FarmStore, of: &FoundChanges) -> Vec<(String, i64)> {
    let all = of.look_through(store).await.unwrap_or_else(|refusal| panic!("{}", refusal.detail));
    let day = |one: FarmChange| Some((one.subject.split_once(' ')?.0.to_owned(), one.t / DAY));
    let mut days: Vec<(String, i64)> = all.into_iter().filter_map(day).collect();
    days.retain(|(what, _)| ["culprit", "environment"].contains(&what.as_str()));
    days.sort_unstable();
    days
}

#[test]
fn changes_have_the_days_that_a_board_sends_after_its_newest_rows() {
    on_page_engines(async |store| {
        board_with_environments(&store).await;
        for day in 0..10 {
            store.put_rows(&[batch(day * 288, (day + 1) * 288, "hog", "x")]).await.unwrap();
        }
        store.put_rows(&[batch(40 * 288, 40 * 288 + 20, "zeta", "y")]).await.unwrap();
        let changes = FoundChanges::default();
        let both =
            |culprit: i64, environment: i64| [("culprit", culprit), ("environment", environment)].map(owned);
        assert_eq!(days(&store, &changes).await, both(40, 40));
        // One environment, and then the other; the culprit was there before that.
        for day in 10..40 {
            let (name, env) = (if day < 20 { "hog" } else { "zeta" }, if day < 25 { "x" } else { "y" });
            store.put_rows(&[batch(day * 288, (day + 1) * 288, name, env)]).await.unwrap();
        }
        assert_eq!(days(&store, &changes).await, both(20, 25));
        assert_eq!(days(&store, &FoundChanges::default()).await, both(20, 25), "as after a restart");
    });
}

fn owned((what, day): (&str, i64)) -> (String, i64) {
    (what.to_owned(), day)
}

#[test]
fn what_a_hunt_sees_after_its_first_state_is_found() {
    on_page_engines(async |store| {
        let recorded = recorded_run("hunt", "a");
        let mut hunt = recorded.clone();
        (hunt.slots, hunt.rows) = (Vec::new(), Vec::new());
        hunt.culprits.clear();
        for at in 0..10 {
            let mut before = hunt.clone();
            before.run.id = format!("hunt-{at}");
            before.run.started -= (10 - at) * DAY;
            before.whole.t = before.run.started;
            store.put(&before).await.unwrap();
        }
        (hunt.run.complete, hunt.digest) = (false, b"earlier".to_vec());
        store.put(&hunt).await.unwrap();
        let changes = FoundChanges::default();
        assert!(kinds(&store, &changes).await.is_empty());
        (hunt.run.complete, hunt.digest) = (true, recorded.digest.clone());
        hunt.culprits.clone_from(&recorded.culprits);
        store.put(&hunt).await.unwrap();
        let often = recorded.culprits.iter().filter(|one| one.spikes >= 3).count();
        assert_eq!(kinds(&store, &changes).await, vec![ChangeKind::NewCulprit; often]);
        assert!(often > 0);
    });
}
