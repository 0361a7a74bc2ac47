//! Forgets what was measured, for a store that follows folders: what they hold is taken in again.

use model::error::Result;

use super::dropped::drop_all_added;
use super::{FarmStore, trouble};

/// What runs and rows fill, boards and environments with them; not what people set.
const MEASURED: [&str; 16] = [
    "delete from label",
    "delete from thinned",
    "delete from culprit_run",
    "delete from culprit_day",
    "delete from culprit",
    "delete from row_environment",
    "delete from watch_environment",
    "delete from slot",
    "delete from hist",
    "delete from row_key",
    "delete from boot",
    "delete from run",
    "delete from plan",
    "delete from environment",
    "delete from board_setting",
    "delete from board",
];

impl FarmStore {
    /// Empties it of boards and of all that was measured on them. What of a sum is a run's own may
    /// be in its bundle alone, which is gone, so that no run goes by itself here.
    pub async fn forget_measured(&self) -> Result<()> {
        let mut all = self.begin().await?;
        for statement in MEASURED {
            sqlx::query(statement).execute(&mut *all).await.map_err(trouble)?;
        }
        drop_all_added(&mut all).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::MEASURED;
    use crate::fixture::recorded_run;
    use crate::records::{SeriesKey, Tier};
    use crate::store::engines::on_each_engine;
    use crate::store::{PutOutcome, TimeStretch};

    /// A table that is new has to be thought of: what stays in it would be counted once more.
    #[test]
    fn each_table_is_emptied_or_is_of_what_people_and_boards_that_send_have() {
        const STAYS: [&str; 14] = [
            "meta",
            "code",
            "token",
            "upload",
            "kept",
            "told",
            "person",
            "session",
            "audit",
            "budget",
            "acknowledged",
            "pin",
            "code_tag",
            "code_board",
        ];
        let made = include_str!("schema.sql").split("create table if not exists ").skip(1);
        let tables: Vec<&str> = made.map(|rest| rest.split(' ').next().unwrap()).collect();
        let emptied = |table: &str| MEASURED.iter().any(|one| *one == format!("delete from {table}"));
        for table in &tables {
            assert!(emptied(table) != STAYS.contains(table), "{table}");
        }
        assert_eq!(tables.len(), MEASURED.len() + STAYS.len());
    }

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
