//! Data on the farm for its administrators.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use crate::store::{FarmStore, StoreEngine, to_u64, trouble};

/// Bytes of a board in the store, apart from the bundles of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardBytes {
    pub rows: u64,
    pub environments: u64,
}

impl BoardBytes {
    pub fn all(self) -> u64 {
        self.rows.saturating_add(self.environments)
    }
}

impl FarmStore {
    /// Number of valid tokens of each board.
    pub async fn tokens(&self) -> Result<BTreeMap<String, u64>> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "select b.key, count(*) from token t join board b on b.id = t.board_id where t.revoked = 0 \
             group by b.key",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(rows.into_iter().map(|(board, count)| (board, to_u64(count))).collect())
    }

    /// Number of valid codes at a time.
    pub async fn open_codes(&self, now: i64) -> Result<u64> {
        let count: i64 = sqlx::query_scalar("select count(*) from code where used = 0 and until > $1")
            .bind(now)
            .fetch_one(&self.pool)
            .await
            .map_err(trouble)?;
        Ok(to_u64(count))
    }

    /// Bytes of the runs that boards sent or that were fetched from them.
    pub async fn sent_bytes(&self) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar("select cast(coalesce(sum(bytes), 0) as bigint) from sent_run")
            .fetch_one(&self.pool)
            .await
            .map_err(trouble)?;
        Ok(to_u64(bytes))
    }

    /// Bytes of the rows and the environments of a board in the store, estimated by their values
    /// and a number for each row.
    pub async fn stored_bytes(&self, board: &str) -> Result<BoardBytes> {
        const OF: &str = "where board_id = (select id from board where key = ";
        let rows = format!(
            "select cast((select coalesce(sum(length(peaks) + 150), 0) from slot {OF}$1)) \
             + (select coalesce(sum(length(cpus) + 80), 0) from hist {OF}$2)) \
             + (select count(*) * 120 from row_key {OF}$3)) + (select count(*) * 120 from label {OF}$4)) \
             + (select count(*) * 80 from row_environment {OF}$5)) \
             + (select count(*) * 100 from culprit_day {OF}$6)) as bigint)"
        );
        let environments = format!(
            "select cast(coalesce(sum(length(settings) + 700), 0) as bigint) from environment where id in \
             (select environment_id from watch_environment {OF}$1) \
             union select environment_id from run {OF}$2))"
        );
        let mut all = [0; 2];
        for (bytes, (text, places)) in all.iter_mut().zip([(rows, 6), (environments, 2)]) {
            let query = sqlx::query_scalar(AssertSqlSafe(text));
            let query = (0..places).fold(query, |query, _| query.bind(board));
            let found: i64 = query.fetch_one(&self.pool).await.map_err(trouble)?;
            *bytes = to_u64(found);
        }
        let [rows, environments] = all;
        Ok(BoardBytes { rows, environments })
    }

    /// Bytes of the database; `None` if the engine does not report them.
    pub async fn database_bytes(&self) -> Option<u64> {
        let query = match self.engine {
            StoreEngine::Sqlite => {
                "select page_count * page_size from pragma_page_count(), pragma_page_size()"
            }
            StoreEngine::Postgres => "select pg_database_size(current_database())",
        };
        let bytes: i64 = sqlx::query_scalar(query).fetch_one(&self.pool).await.ok()?;
        Some(to_u64(bytes))
    }

    /// Number of a board's rows, and of sequence numbers between them that never arrived.
    pub async fn gaps(&self, board: &str) -> Result<(u64, u64)> {
        let row: (i64, i64) = sqlx::query_as(
            "select cast(coalesce(sum(k.there), 0) as bigint), \
             cast(coalesce(sum(k.last - k.first - k.there + 1), 0) as bigint) from \
             (select count(*) as there, min(seq) as first, max(seq) as last from row_key \
              where board_id = (select id from board where key = $1) group by boot, recording, series) k",
        )
        .bind(board)
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        Ok((to_u64(row.0), to_u64(row.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EnrolOutcome;
    use crate::store::engines::on_each_engine;

    #[test]
    fn tokens_codes_and_gaps_are_counted() {
        on_each_engine(async |store| {
            store.add_code(&[1], 50, &[]).await.unwrap();
            store.add_code(&[2], 50, &[]).await.unwrap();
            assert_eq!(store.enrol(&[1], 9, "a", "A", &[3]).await.unwrap(), EnrolOutcome::Enrolled);
            assert_eq!((store.open_codes(9).await.unwrap(), store.open_codes(50).await.unwrap()), (1, 0));
            assert_eq!(store.tokens().await.unwrap(), BTreeMap::from([("a".to_owned(), 1)]));
            assert_eq!((store.sent_bytes().await.unwrap(), store.gaps("a").await.unwrap()), (0, (0, 0)));
            for (boot, seq) in [("x", 3), ("x", 4), ("x", 9), ("y", 0)] {
                sqlx::query("insert into row_key values (1, $1, 'r', 's', $2, $3)")
                    .bind(boot)
                    .bind(seq)
                    .bind(vec![0u8])
                    .execute(&store.pool)
                    .await
                    .unwrap();
            }
            assert_eq!(store.gaps("a").await.unwrap(), (4, 4));
            assert!(store.database_bytes().await.is_some_and(|bytes| bytes > 4_096));
            store.revoke("a", 10).await.unwrap();
            assert!(store.tokens().await.unwrap().is_empty());
        });
    }
}
