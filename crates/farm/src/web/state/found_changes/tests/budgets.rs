//! Days on which a latency is above the budget, and which runs do not count for it.

use super::*;
use crate::store::TimeStretch;

/// A run of each of six days, that counts or does not; the latest began when the recorded one
/// did.
async fn put_runs(store: &FarmStore, board: &str, invalid: u64, max: Nanos) -> i64 {
    let recorded = recorded_run("measured", board);
    for at in 0..6 {
        let (mut record, back) = (recorded.clone(), (5 - at) * DAY);
        record.run.id = format!("{board}-{invalid}-{at}");
        (record.run.invalid, record.run.max_ns) = (invalid, Some(max));
        (record.run.started, record.whole.t) = (record.run.started - back, record.whole.t - back);
        record.whole.max_ns = Some(max);
        for slot in &mut record.slots {
            (slot.t, slot.max_ns) = (slot.t - back, Some(max));
            slot.run.clone_from(&record.run.id);
        }
        record.rows.clear();
        store.put(&record).await.unwrap();
    }
    recorded.run.started
}

#[test]
fn runs_that_do_not_count_break_no_budget() {
    on_page_engines(async |store| {
        let limit = Nanos(1_000_000);
        store.set_budget("", Some(limit)).await.unwrap();
        let last = put_runs(&store, "a", 1, Nanos(9_000_000)).await;
        let changes = FoundChanges::default();
        let over = async || {
            let all = found(&store, &changes).await.into_iter();
            all.filter(|one| one.kind == ChangeKind::OverBudget).collect::<Vec<_>>()
        };
        assert!(over().await.is_empty());
        // On the same days others count: with their own maxima.
        put_runs(&store, "a", 0, Nanos(900_000)).await;
        assert!(over().await.is_empty());
        store.set_budget("", Some(Nanos(800_000))).await.unwrap();
        let all = over().await;
        assert_eq!((all.len(), &*all[0].subject), (1, "budget 800000"));
        assert!(all[0].evidence[0].contains("900 us"), "{all:?}");
        assert!(all[0].evidence[1].starts_with("6 days of 6"), "{all:?}");
        let invalid = store.invalid_runs("a", last - 3 * DAY).await.unwrap();
        assert_eq!(invalid.len(), 4, "{invalid:?}");
        let key = recorded_run("measured", "a").run.key;
        let within = TimeStretch { from: last - 10 * DAY, to: last + DAY };
        let maxima = store.slot_maxima("a", &key, within).await.unwrap();
        assert!(!maxima.is_empty() && maxima.iter().all(|slot| slot.1 == Nanos(900_000)), "{maxima:?}");
        assert!(maxima.windows(2).all(|pair| pair[0].0 < pair[1].0));
        store.set_budget("", None).await.unwrap();
        let boards = store.boards().await.unwrap();
        assert!(changes.known(&boards).await.is_empty(), "told before the next look");
    });
}

#[test]
fn a_run_without_five_minutes_breaks_a_budget_also_beside_one_that_does_not_count() {
    on_page_engines(async |store| {
        store.set_budget("", Some(Nanos(1_000_000))).await.unwrap();
        let recorded = recorded_run("measured", "a");
        let put = async |id: &str, invalid: u64, max: Nanos, has_slots: bool| {
            let mut record = recorded.clone();
            (record.run.id, record.run.invalid, record.run.max_ns) = (id.to_owned(), invalid, Some(max));
            record.whole.max_ns = Some(max);
            record.digest = id.as_bytes().to_vec();
            for slot in &mut record.slots {
                (slot.run, slot.max_ns) = (id.to_owned(), Some(max));
            }
            record.slots.retain(|_| has_slots);
            record.rows.clear();
            store.put(&record).await.unwrap();
        };
        let changes = FoundChanges::default();
        let over = async || {
            let all = found(&store, &changes).await.into_iter();
            let over = all.filter(|one| one.kind == ChangeKind::OverBudget);
            over.map(|one| (one.evidence[0].clone(), one.address)).collect::<Vec<_>>()
        };
        let is_told = |told: &[(String, String)], max: Nanos, address: &str| {
            assert_eq!(told.len(), 1, "{told:?}");
            let said = format!("The largest latency was {} on ", report::words::span(max));
            assert!(told[0].0.starts_with(&said) && told[0].1.starts_with(address), "{told:?}");
        };
        put("small", 0, Nanos(900_000), false).await;
        assert!(over().await.is_empty());
        put("imported", 0, Nanos(5_000_000), false).await;
        is_told(&over().await, Nanos(5_000_000), "/runs/imported");
        put("spoiled", 1, Nanos(9_000_000), true).await;
        is_told(&over().await, Nanos(5_000_000), "/runs/imported");
        // Where five minutes have something larger they are shown.
        put("measured", 0, Nanos(7_000_000), true).await;
        is_told(&over().await, Nanos(7_000_000), "/b/a/at/");
    });
}

#[test]
fn a_budget_that_was_broken_on_any_of_the_days_shown_is_told() {
    on_page_engines(async |store| {
        let record = recorded_run("measured", "a");
        store.put(&record).await.unwrap();
        let last = Tier::Day.begin(record.run.started);
        let key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
        let row = |back: i64| {
            let max = if back == 70 || back > 89 { 50_000_000 } else { 90_000 };
            let (t, max_ns) = (last - back * DAY, Some(Nanos(max)));
            (Tier::Day, TierRow { t, n: 9, max_ns, ..TierRow::default() })
        };
        let tiers = (1..130).rev().map(row).collect();
        store.put_bulk("a", &BulkRows { key, tiers, ..BulkRows::default() }).await.unwrap();
        let highest = record.run.max_ns.unwrap();
        assert!(highest < Nanos(50_000_000), "{highest:?}");
        store.set_budget("", Some(highest)).await.unwrap();
        let changes = FoundChanges::default();
        let all = found(&store, &changes).await;
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].kind, all[0].from), (ChangeKind::OverBudget, last - 70 * DAY));
        assert!(!all[0].says.contains("before"), "{}", all[0].says);
        // Broken every day, it is not known since when.
        store.set_budget("", Some(Nanos(80_000))).await.unwrap();
        let all = found(&store, &changes).await;
        assert_eq!((all.len(), all[0].from), (1, last - 89 * DAY));
        assert!(all[0].says.ends_with(" or before."), "{}", all[0].says);
    });
}
