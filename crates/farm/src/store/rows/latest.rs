//! End of each board's rows, for boards that only record.

use std::collections::BTreeMap;

use model::error::Result;
use model::watch::WatchSeries;
use sqlx::AssertSqlSafe;

use crate::store::{FarmStore, trouble};

/// Suffixes of its series' names by kind of wait: see `ingest::rows`.
const CLASSES: [&str; 3] = ["", ".priority", ".kernel"];

impl FarmStore {
    /// Start of the last five minutes of `onbeat watch`, in seconds since 1970, for each board
    /// within a range of keys that has some.
    pub async fn last_rows(&self, first: &str, last: &str) -> Result<BTreeMap<String, i64>> {
        let names = WatchSeries::ALL.iter().flat_map(|series| CLASSES.map(|class| (series.name(), class)));
        let names: Vec<String> = names.map(|(series, class)| format!("'{series}{class}'")).collect();
        let series = names.join(", ");
        // The last day with rows by the index of days, then one look-up in each series' slots.
        let text = format!(
            "select b.key, max((select max(x.t) from slot x where x.board_id = h.board_id \
             and x.series = h.series and x.plan = h.plan)) \
             from board_setting s join board b on b.id = s.board_id join hist h on h.board_id = s.board_id \
             where h.tier = 2 and h.series in ({series}) and h.t = (select max(l.t) from hist l \
             where l.board_id = s.board_id and l.tier = 2 and l.series in ({series})) \
             and b.key >= $1 and b.key <= $2 group by s.board_id, b.key"
        );
        let rows: Vec<(String, Option<i64>)> = sqlx::query_as(AssertSqlSafe(text))
            .bind(first)
            .bind(last)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
        Ok(rows.into_iter().filter_map(|(board, t)| Some((board, t?))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn rows_end_with_the_last_five_minutes_of_a_watch_and_a_run_has_none() {
        on_each_engine(async |store| {
            for (id, key) in [(1i64, "a"), (2, "b"), (3, "c")] {
                sqlx::query("insert into board (id, key, name) values ($1, $2, '')")
                    .bind(id)
                    .bind(key)
                    .execute(&store.pool)
                    .await
                    .unwrap();
                sqlx::query(
                    "insert into board_setting (board_id, state, since, tags) values ($1, 'active', 0, '')",
                )
                .bind(id)
                .execute(&store.pool)
                .await
                .unwrap();
            }
            for (board, series, t) in [
                (1i64, "timer", 300i64),
                (1, "timer", 86_700),
                (1, "wakeup.kernel", 87_000),
                // A later run does not count, and a board may have nothing else.
                (1, "measure", 900_000),
                (2, "hunt", 600),
            ] {
                sqlx::query(
                    "insert into hist values ($1, $2, 'p', 2, $3, 1, 0, 5, $4) on conflict do nothing",
                )
                .bind(board)
                .bind(series)
                .bind(t - t % 86_400)
                .bind(vec![0u8])
                .execute(&store.pool)
                .await
                .unwrap();
                sqlx::query("insert into slot values ($1, $2, 'p', $3, 'r', 0, 1, 0, 5, 0, 1, '', '', $4)")
                    .bind(board)
                    .bind(series)
                    .bind(t)
                    .bind(vec![0u8])
                    .execute(&store.pool)
                    .await
                    .unwrap();
            }
            let found = store.last_rows("a", "c").await.unwrap();
            assert_eq!(found, BTreeMap::from([("a".to_owned(), 87_000)]));
            assert!(store.last_rows("b", "c").await.unwrap().is_empty());
        });
    }
}
