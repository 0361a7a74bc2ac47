//! Boards of which nothing comes any more.

use crate::fixture::named_rows::{lines_of, recording, wakeups};
use std::ops::Range;

use model::watch::WatchRow;

use super::*;
use crate::store::{EnrolOutcome, RowBatch};

/// Five days of a board, long ago.
async fn put_days(store: &FarmStore, board: &str) {
    let mut record = recorded_run("measured", board);
    let begin = record.run.started - 400 * DAY;
    for day in 0..5 {
        record.run.id = format!("{board}-{day}");
        (record.run.started, record.whole.t) = (begin + day * DAY, begin + day * DAY);
        record.slots.clear();
        store.put(&record).await.unwrap();
    }
}

#[test]
fn a_farm_of_which_no_board_sends_any_more_says_so() {
    on_page_engines(async |store| {
        store.add_code(b"code", i64::MAX, &[]).await.unwrap();
        let enrolled = store.enrol(b"code", 1, "sends", "sends", b"token").await.unwrap();
        assert_eq!(enrolled, EnrolOutcome::Enrolled);
        put_days(&store, "sends").await;
        put_days(&store, "imported").await;
        let silent = async |store: &FarmStore| {
            let of = found(store, &FoundChanges::default())
                .await
                .into_iter()
                .filter(|one| one.kind == ChangeKind::Silent);
            of.map(|one| one.board).collect::<Vec<_>>()
        };
        assert_eq!(silent(&store).await, ["sends"]);
        store.add_code(b"more", i64::MAX, &[]).await.unwrap();
        store.enrol(b"more", 86_400, "never", "never", b"other").await.unwrap();
        let boards = store.boards().await.unwrap();
        let enrolled = boards.iter().map(|board| (board.board.as_str(), board.enrolled));
        assert_eq!(enrolled.collect::<Vec<_>>(), [("imported", 0), ("never", 86_400), ("sends", 1)]);
        let mut both = silent(&store).await;
        both.sort_unstable();
        assert_eq!(both, ["never", "sends"]);
        store.revoke("never", 2).await.unwrap();
        store.revoke("sends", 2).await.unwrap();
        assert!(silent(&store).await.is_empty());
    });
}

/// Five minutes of each of these days, with samples or without any.
async fn put_rows(store: &FarmStore, board_id: i64, days: Range<i64>, has_samples: bool) {
    let row = || WatchRow { max_ns: Some(Nanos(200)), ..wakeups(1) };
    let line = |day: i64| (day as u64, day * DAY, Vec::from_iter(has_samples.then(row)));
    let rows = lines_of(recording("timer+wakeup"), "", days.map(line));
    store.put_rows(&[RowBatch { board_id, ..rows }]).await.unwrap();
}

#[test]
fn a_recorder_that_sees_no_wakeup_is_not_silent() {
    on_page_engines(async |store| {
        for (board, samples, until) in [("busy", 12, 12), ("idle", 5, 12), ("off", 5, 5)] {
            let id = store.board_for(board, board).await.unwrap();
            put_rows(&store, id, 0..samples, true).await;
            put_rows(&store, id, samples..until, false).await;
        }
        let boards = store.boards().await.unwrap();
        let idle = boards.iter().find(|one| one.board == "idle").unwrap();
        assert_eq!((idle.last_day, idle.last_slot, idle.days.len()), (4 * DAY, 11 * DAY, 5));
        let series = store.series("idle").await.unwrap();
        assert_eq!((series.len(), series[0].days, series[0].last), (1, 5, 4 * DAY));
        let all = found(&store, &FoundChanges::default()).await.into_iter();
        let silent = all.filter(|one| one.kind == ChangeKind::Silent).map(|one| one.board);
        assert_eq!(silent.collect::<Vec<_>>(), ["off"]);
        assert_eq!(store.last_rows("busy", "off").await.unwrap()["idle"], 11 * DAY);
        assert_eq!(store.faults().await.unwrap(), [""; 0]);
    });
}
