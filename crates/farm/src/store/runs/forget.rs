//! Drops all measurements, for a store that follows folders: their contents are imported again.

use model::error::Result;

use crate::store::{FarmStore, trouble};

/// Statements that drop boards with their measurements. Changes found again are not notified again.
const MEASURED: [&str; 5] = [
    "delete from board",
    "delete from culprit",
    "delete from plan",
    "delete from environment",
    "delete from meta where name = 'notified since'",
];

impl FarmStore {
    /// Drops all boards and their measurements. The part of a sum that belongs to a run may be only
    /// in its bundle, which is gone, so that single runs cannot be dropped here.
    pub async fn forget_measured(&self) -> Result<()> {
        let mut all = self.begin().await?;
        for statement in MEASURED {
            sqlx::query(statement).execute(&mut *all).await.map_err(trouble)?;
        }
        all.commit().await.map_err(trouble)
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::recorded_run;
    use crate::records::{SeriesKey, Tier};
    use crate::store::engines::on_each_engine;
    use crate::store::{PutOutcome, TimeStretch};

    #[test]
    fn what_was_forgotten_can_be_taken_in_again() {
        on_each_engine(async |store| {
            let (hunt, measured) = (recorded_run("hunt", "a"), recorded_run("measured", "b"));
            let all = TimeStretch { from: i64::MIN, to: i64::MAX };
            let days =
                async |board: &str, key: &SeriesKey| store.tiers(board, key, Tier::Day, all).await.unwrap();
            for record in [&hunt, &measured] {
                assert_eq!(store.put(record).await.unwrap(), PutOutcome::Stored);
            }
            let before = days("a", &hunt.run.key).await;
            store.forget_measured().await.unwrap();
            assert!(store.boards().await.unwrap().is_empty());
            assert!(store.run(&measured.run.id).await.unwrap().is_none());
            assert_eq!(store.put(&hunt).await.unwrap(), PutOutcome::Stored);
            let boards = store.boards().await.unwrap();
            assert_eq!(boards.iter().map(|one| one.board.as_str()).collect::<Vec<_>>(), ["a"]);
            assert_eq!(days("a", &hunt.run.key).await, before);
            assert!(days("b", &measured.run.key).await.is_empty());
        });
    }
}
