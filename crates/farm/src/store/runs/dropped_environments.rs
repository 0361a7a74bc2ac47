//! Environments of recorders that go: the oldest of a board beyond a number, and those that no row
//! names.

use model::error::Result;
use sqlx::{Any, Transaction};

use crate::store::runs::forget_run::drop_environment;
use crate::store::{FarmStore, trouble};
use crate::wall_clock::DAY;

/// Environments of a board's recorder that stay, those that it had or sent last.
pub const MOST_OF_BOARD: i64 = 512;

/// Time for which an environment waits for rows that name it: a board whose rows were refused sends
/// them again, but not their environment.
const WAITS: i64 = 90 * DAY;

/// Drops the oldest of a board beyond the limit.
pub async fn drop_oldest(all: &mut Transaction<'static, Any>, board: i64) -> sqlx::Result<()> {
    let count = sqlx::query_scalar::<_, i64>("select count(*) from watch_environment where board_id = $1");
    if count.bind(board).fetch_one(&mut **all).await? <= MOST_OF_BOARD {
        return Ok(());
    }
    let oldest: Vec<(String, i64)> = sqlx::query_as(
        "select w.env, w.environment_id from watch_environment w left join \
         (select env, max(to_t) as last from row_environment where board_id = $1 group by env) d \
         on d.env = w.env where w.board_id = $2 \
         order by case when d.last > w.arrived then d.last else w.arrived end desc, w.environment_id desc \
         limit 100000 offset $3",
    )
    .bind(board)
    .bind(board)
    .bind(MOST_OF_BOARD)
    .fetch_all(&mut **all)
    .await?;
    for (env, environment) in oldest {
        let drop = sqlx::query("delete from watch_environment where board_id = $1 and env = $2");
        drop.bind(board).bind(env).execute(&mut **all).await?;
        drop_environment(all, environment).await?;
    }
    Ok(())
}

const UNNAMED: &str = "from watch_environment where arrived < $1 and not exists (select 1 from \
                       row_environment d where d.board_id = watch_environment.board_id \
                       and d.env = watch_environment.env)";
const UNUSED: &str = "from environment where not exists (select 1 from run r \
                      where r.environment_id = environment.id) and not exists (select 1 from \
                      watch_environment w where w.environment_id = environment.id)";

impl FarmStore {
    /// Drops environments of recorders that are unnamed after 90 days; returns their number.
    pub async fn drop_unnamed_environments(&self, now: i64) -> Result<u64> {
        let mut all = self.begin().await?;
        let unnamed = sqlx::query(sqlx::AssertSqlSafe(format!("delete {UNNAMED}"))).bind(now - WAITS);
        let gone = unnamed.execute(&mut *all).await.map_err(trouble)?.rows_affected();
        let unused = sqlx::query(sqlx::AssertSqlSafe(format!("delete {UNUSED}")));
        unused.execute(&mut *all).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(gone)
    }

    /// Number of environments that [`Self::drop_unnamed_environments`] would drop.
    pub async fn unnamed_environments(&self, now: i64) -> Result<u64> {
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) {UNNAMED}")));
        let count: i64 = count.bind(now - WAITS).fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(crate::store::to_u64(count))
    }
}
