//! What boards were, and when.

use model::error::Result;

use super::{FarmStore, to_u64, trouble};
use crate::records::{BoardEnvironment, EnvironmentRecord};

impl FarmStore {
    /// The environments of a board, the latest first.
    pub async fn environments(&self, board: &str) -> Result<Vec<BoardEnvironment>> {
        type Row = (String, String, String, String, String, i64, i64, i64, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select e.digest, e.model, e.release, e.preempt, e.settings, min(r.started), max(r.started), \
             count(*), \
             max(r.id) from run r join board b on b.id = r.board_id join environment e on e.id = \
              r.environment_id \
             where b.key = $1 group by e.digest, e.model, e.release, e.preempt, e.settings \
             order by max(r.started) desc, e.digest",
        )
        .bind(board)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one =
            |(digest, model, release, preempt, settings, first, last, runs, example): Row| BoardEnvironment {
                record: EnvironmentRecord { digest, model, release, preempt, settings },
                first,
                last,
                runs: to_u64(runs),
                example,
            };
        Ok(rows.into_iter().map(one).collect())
    }
}
