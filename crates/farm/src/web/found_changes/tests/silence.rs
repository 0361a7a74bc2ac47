//! Boards of which nothing comes any more.

use super::*;
use crate::store::EnrolOutcome;

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
    on_each_engine(async |store| {
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
