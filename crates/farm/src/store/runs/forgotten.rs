//! Removed runs, which are not imported again automatically: boards send what a farm has lost, and
//! folders are scanned again and again.

use model::error::Result;
use model::units::Nanos;
use model::wall_time::wall_time;
use sqlx::{Any, AnyConnection, Transaction};

use crate::records::BundleRecord;
use crate::store::many::eights;
use crate::store::runs::earlier::{EarlierRun, PutOutcome, judged};
use crate::store::{FarmStore, trouble};

/// Name in `meta` of the number of removed runs.
const REMOVALS: &str = "runs removed";

/// Outcome for a bundle: that of [`judged`], but a removed run is refused.
pub async fn judged_now(
    by: &mut AnyConnection,
    known: Option<&EarlierRun>,
    record: &BundleRecord,
) -> sqlx::Result<PutOutcome> {
    if known.is_none()
        && let Some(at) = forgotten_at(by, &record.run.id).await?
    {
        return Ok(PutOutcome::Refused(why(&record.run.id, at)));
    }
    Ok(judged(known, record))
}

/// Notes that a run is not to come again, and when it was removed, in seconds since 1970.
pub async fn mark(all: &mut Transaction<'static, Any>, id: &str, at: i64) -> sqlx::Result<()> {
    sqlx::query(
        "insert into forgotten_run (id, t) values ($1, $2) on conflict (id) do update set t = excluded.t",
    )
    .bind(id)
    .bind(at)
    .execute(&mut **all)
    .await?;
    Ok(())
}

/// Counts a removal, so that caches of imported runs notice that one may be absent.
pub async fn count_removal(all: &mut Transaction<'static, Any>) -> sqlx::Result<()> {
    let count = sqlx::query(
        "insert into meta (name, value) values ($1, 1) \
         on conflict (name) do update set value = meta.value + 1",
    );
    count.bind(REMOVALS).execute(&mut **all).await?;
    Ok(())
}

async fn forgotten_at(by: &mut AnyConnection, id: &str) -> sqlx::Result<Option<i64>> {
    let at = sqlx::query_scalar("select t from forgotten_run where id = $1").bind(id);
    at.fetch_optional(by).await
}

fn why(id: &str, at: i64) -> String {
    let moment = wall_time(Nanos(at.saturating_mul(Nanos::SECOND.0)));
    let date = moment.get(..10).unwrap_or_default();
    format!(
        "it was removed from this farm on {date} and is not stored again: `onbeat-farm forget --allow {id}` \
         allows it"
    )
}

impl FarmStore {
    /// Reason for which an absent run may not return; `None` if it may.
    pub async fn why_not_again(&self, id: &str) -> Result<Option<String>> {
        let mut one = self.pool.acquire().await.map_err(trouble)?;
        let at = forgotten_at(&mut one, id).await.map_err(trouble)?;
        Ok(at.map(|at| why(id, at)))
    }

    /// Number of removed runs, including those that may return.
    pub async fn removals(&self) -> Result<i64> {
        let count = sqlx::query_scalar("select value from meta where name = $1").bind(REMOVALS);
        let count: Option<i64> = count.fetch_optional(&self.pool).await.map_err(trouble)?;
        Ok(count.unwrap_or_default())
    }

    /// Allows a removed run to return; returns false if it was not removed.
    pub async fn allow_again(&self, id: &str) -> Result<bool> {
        let allow = sqlx::query("delete from forgotten_run where id = $1").bind(id);
        Ok(allow.execute(&self.pool).await.map_err(trouble)?.rows_affected() > 0)
    }

    /// Ids among the given ones that may not return, sorted.
    pub async fn not_again(&self, ids: &[&str]) -> Result<Vec<String>> {
        const NAMED: &str = "select id from forgotten_run where id in ($1, $2, $3, $4, $5, $6, $7, $8)";
        let mut found: Vec<String> = Vec::new();
        for some in eights(ids) {
            let select = some.iter().fold(sqlx::query_scalar(NAMED), |select, id| select.bind(*id));
            let there: Vec<String> = select.fetch_all(&self.pool).await.map_err(trouble)?;
            found.extend(there);
        }
        // Padding of the last eight repeats an id.
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// All runs that may not return, with the times of their removal.
    pub async fn forgotten(&self) -> Result<Vec<(String, i64)>> {
        let all = sqlx::query_as("select id, t from forgotten_run order by t, id");
        all.fetch_all(&self.pool).await.map_err(trouble)
    }
}
