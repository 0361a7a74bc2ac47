//! Environments that came and went, and what they did.

use super::*;
use crate::board_settings::{BoardSettings, BoardState};
use crate::changes::{JudgedEnvironments, MOST_STEPS};

/// A run of each of 24 days, of five hours: eight days of A, which is late, eight of B, eight
/// of A. The first second of the first day.
async fn put_back_and_forth(store: &FarmStore) -> i64 {
    let recorded = recorded_run("measured", "a");
    let (begin, mut rng) = (Tier::Day.begin(recorded.run.started) - 23 * DAY, Rng::new(SEED));
    for day in 0..24 {
        let (name, late) = if (8..16).contains(&day) { ("B", 20) } else { ("A", 500) };
        let mut record = recorded.clone();
        record.run.id = format!("r{day:02}");
        (record.run.started, record.whole.t) = (begin + day * DAY, begin + day * DAY);
        record.environment.digest = name.to_owned();
        record.environment.release = name.to_owned();
        record.environment.settings = format!("{{\"host.release\":\"{name}\"}}");
        let slot = |at: i64| {
            let mut slot = recorded.slots[0].clone();
            slot.run.clone_from(&record.run.id);
            let max = if rng.below(1_000) < late { 200_000 } else { 20_000 + rng.below(9_000) as i64 };
            (slot.t, slot.max_ns) = (begin + day * DAY + at * 300, Some(Nanos(max)));
            slot
        };
        record.slots = (0..60).map(slot).collect();
        record.rows.clear();
        store.put(&record).await.unwrap();
    }
    begin
}

/// What came with environments: which, the day, what it did.
async fn effects(store: &FarmStore, begin: i64) -> Vec<(String, i64, ChangeKind)> {
    let all = found(store, &FoundChanges::default()).await;
    let of = all.into_iter().filter(|one| one.subject.starts_with("environment "));
    of.map(|one| (one.subject, (one.t - begin) / DAY, one.kind)).collect()
}

#[test]
fn to_go_back_to_an_environment_is_a_change_with_its_effect() {
    on_page_engines(async |store| {
        let begin = put_back_and_forth(&store).await;
        let wanted = [
            ("environment A".to_owned(), 16, ChangeKind::Worse),
            ("environment B".to_owned(), 8, ChangeKind::Better),
        ];
        assert_eq!(effects(&store, begin).await, wanted);
        // Two days with both, for an hour, are of none.
        for day in [12, 20] {
            let mut record = recorded_run("measured", "a");
            record.run.id = format!("tried{day}");
            (record.run.started, record.whole.t) = (begin + day * DAY + 40_000, begin + day * DAY + 40_000);
            record.environment.digest = "C".to_owned();
            record.environment.settings = "{\"host.governor\":\"powersave\"}".to_owned();
            record.slots.clear();
            record.rows.clear();
            store.put(&record).await.unwrap();
            record.run.id = format!("after{day}");
            (record.run.started, record.whole.t) = (begin + day * DAY + 50_000, begin + day * DAY + 50_000);
            let name = if day == 12 { "B" } else { "A" };
            record.environment.digest = name.to_owned();
            record.environment.release = name.to_owned();
            record.environment.settings = format!("{{\"host.release\":\"{name}\"}}");
            store.put(&record).await.unwrap();
        }
        assert_eq!(effects(&store, begin).await, wanted);
        let all = found(&store, &FoundChanges::default()).await;
        let better = all.iter().find(|one| one.kind == ChangeKind::Better).unwrap();
        assert!(better.evidence[0].starts_with("7 days before against 6 days after"), "{better:?}");
    });
}

#[test]
fn a_change_after_other_hardware_is_found_where_the_environment_stayed_with_it() {
    on_page_engines(async |store| {
        let begin = put_back_and_forth(&store).await;
        let worse = ("environment A".to_owned(), 16, ChangeKind::Worse);
        let better = ("environment B".to_owned(), 8, ChangeKind::Better);
        for (day, wanted) in [
            (3, vec![worse.clone(), better]),
            // Its first day with this hardware is the one on which it changed.
            (8, vec![worse.clone()]),
            (11, vec![worse]),
            (16, Vec::new()),
        ] {
            let settings = BoardSettings {
                state: BoardState::Replaced,
                state_since: begin + day * DAY,
                ..BoardSettings::default()
            };
            assert!(store.set_settings("a", "a", &settings).await.unwrap());
            assert_eq!(effects(&store, begin).await, wanted, "{day}");
        }
    });
}

#[test]
fn environments_beyond_those_that_are_looked_at_are_counted() {
    on_page_engines(async |store| {
        let recorded = recorded_run("measured", "a");
        for at in 0..MOST_STEPS as i64 + 4 {
            let mut record = recorded.clone();
            record.run.id = format!("r{at}");
            record.run.started -= (30 - at) * DAY;
            record.environment.digest = format!("d{at}");
            record.environment.settings = format!("{{\"host.cmdline\":\"{at}\"}}");
            record.slots.clear();
            record.rows.clear();
            store.put(&record).await.unwrap();
        }
        let changes = FoundChanges::default();
        let all = found(&store, &changes).await;
        let of: Vec<&str> = all
            .iter()
            .filter(|one| one.kind == ChangeKind::Environment)
            .map(|one| one.subject.as_str())
            .collect();
        assert_eq!((of.len(), of[0]), (MOST_STEPS, "environment d23"), "the latest are looked at");
        let scope = changes.scope(&store.boards().await.unwrap(), "").await;
        assert_eq!(scope.environments, JudgedEnvironments { looked_at: MOST_STEPS, left_out: 3 });
    });
}
