//! Late wake-ups that come more often.

use super::*;
use crate::changes::JudgedSeries;

#[test]
fn a_change_of_the_last_of_many_series_is_found() {
    on_page_engines(async |store| {
        let record = recorded_run("measured", "a");
        store.put(&record).await.unwrap();
        let last = record.run.started;
        let mut rng = Rng::new(SEED);
        for name in ["switch", "timer", "timer+wakeup", "timer+wakeup+switch"] {
            put_series(&store, "a", name, last, &poisson_counts(15.0, 112, &mut rng)).await;
        }
        let mut counts = poisson_counts(15.0, 100, &mut rng);
        counts.extend(poisson_counts(45.0, 12, &mut rng));
        put_series(&store, "a", "wakeup", last, &counts).await;
        let changes = FoundChanges::default();
        let all = found(&store, &changes).await;
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].says.starts_with("Latencies of wakeup of "), "{}", all[0].says);
        let boards = store.boards().await.unwrap();
        let judged = changes.scope(&boards, "a").await.series;
        let rates = rates_of(&store, &boards, "a").await.unwrap().unwrap();
        let seen = rates.iter().filter(|one| one.factor.is_some_and(|factor| factor < 2.1));
        let mut seen: Vec<&str> = seen.map(|one| one.key.series.as_str()).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["switch", "timer", "timer+wakeup", "timer+wakeup+switch"]);
        let changed = rates.iter().find(|one| one.key.series == "wakeup").unwrap();
        assert!(changed.changed && changed.a_day.is_none(), "{changed:?}");
        assert!(rates_of(&store, &boards, "b").await.unwrap().is_none());
        // The run has a series of its own, of one day.
        assert_eq!(judged, JudgedSeries { judged: 5, too_few: 1, left_out: 0 });
        for at in 0..40 {
            put_series(&store, "a", &format!("more-{at}"), last, &[1]).await;
        }
        let changes = FoundChanges::default();
        assert_eq!(found(&store, &changes).await.len(), 1);
        let judged = changes.scope(&boards, "").await.series;
        assert_eq!(judged, JudgedSeries { judged: 5, too_few: 27, left_out: 14 });
        assert_eq!(changes.scope(&boards, "b").await, ChangesScope::default());
    });
}

#[test]
fn days_of_a_run_that_does_not_count_say_nothing_of_a_rate() {
    on_page_engines(async |store| {
        let record = recorded_run("measured", "a");
        store.put(&record).await.unwrap();
        let last = record.run.started;
        let mut rng = Rng::new(SEED);
        let mut counts = poisson_counts(15.0, 100, &mut rng);
        counts.extend(poisson_counts(45.0, 12, &mut rng));
        put_series(&store, "a", "wakeup", last, &counts).await;
        assert_eq!(found(&store, &FoundChanges::default()).await.len(), 1);
        // One that was on all the twelve days, and on the one that has its samples.
        let mut record = record;
        record.run.id = "spoiled".into();
        record.run.key = SeriesKey { series: "wakeup".into(), plan: "p".into() };
        record.run.invalid = 1;
        record.run.started = Tier::Day.begin(last) - 12 * DAY;
        record.run.length_ns = Some(Nanos((13 * DAY - 1) * Nanos::SECOND.0));
        record.slots.clear();
        record.rows.clear();
        store.put(&record).await.unwrap();
        let left = found(&store, &FoundChanges::default()).await;
        assert!(left.is_empty(), "{left:#?}");
    });
}

#[test]
fn the_last_day_of_a_board_is_judged_once_it_is_over() {
    let board = FarmBoard { last_day: 20_790 * DAY, ..FarmBoard::default() };
    for (day, until) in [(20_789, 20_790), (20_790, 20_790), (20_791, 20_790), (20_792, 20_791)] {
        assert_eq!(judged_until(&board, day * DAY + DAY - 1), until * DAY, "{day}");
    }
    // A board whose last day is over meanwhile is looked at again.
    assert_eq!(LookedAt::of(&FarmBoard { last_day: DAY, ..board }).judged_until, 2 * DAY);
    on_page_engines(async |store| {
        let today = Tier::Day.begin(believed(now()));
        let reach = async |board: &str| {
            let boards = store.boards().await.unwrap();
            rates_of(&store, &boards, board).await.unwrap().unwrap().remove(0)
        };
        for (board, last) in [("a", today), ("b", today - 9 * DAY)] {
            store.board_for(board, board).await.unwrap();
            put_series(&store, board, "wakeup", last + DAY, &[15; 56]).await;
        }
        let sends = reach("a").await;
        assert_eq!((sends.days, sends.left_out), (55, Some(today)));
        assert!(sends.says().contains("it has 55 days with samples") && sends.says().contains("is excluded"));
        let silent = reach("b").await;
        assert_eq!((silent.days, silent.left_out), (56, None));
        assert!(silent.a_day.is_some() && !silent.says().contains("excluded"), "{}", silent.says());
        let changes = FoundChanges::default();
        found(&store, &changes).await;
        let judged = changes.scope(&store.boards().await.unwrap(), "").await.series;
        assert_eq!(judged, JudgedSeries { judged: 1, too_few: 1, left_out: 0 });
    });
}
