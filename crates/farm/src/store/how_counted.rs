//! How a run is counted: by its five minutes, or with all its samples on the day on which it began.
//!
//! Histograms do not say whose samples they have, so it is noted in `meta` when a run that is over
//! is put. Of one that is on `run.complete` says it; of one that was over before there were notes
//! nothing does.

use sqlx::{Any, Transaction};

/// What stands before a run's id in `meta`.
const NOTE: &str = "counted ";

/// How a run `r` is counted that is joined to its note: by its five minutes where it is more than
/// 0, on its day where it is 0, and less than 0 where nothing says so.
pub const HOW_COUNTED: &str = "coalesce(m.value, case when r.complete = 1 then -1 else r.complete end)";

/// Joins the note on a run, as `m`, to what has the run's id.
pub fn join_note(id: &str) -> String {
    format!("left join meta m on m.name = '{NOTE}' || {id}")
}

/// Notes whether a run counts by its five minutes.
pub async fn note(all: &mut Transaction<'static, Any>, id: &str, by_rows: bool) -> sqlx::Result<()> {
    sqlx::query(
        "insert into meta (name, value) values ($1, $2) \
         on conflict (name) do update set value = excluded.value",
    )
    .bind(format!("{NOTE}{id}"))
    .bind(i64::from(by_rows))
    .execute(&mut **all)
    .await?;
    Ok(())
}

/// Whether a run counts by its five minutes, as it was noted.
pub async fn noted(all: &mut Transaction<'static, Any>, id: &str) -> sqlx::Result<Option<bool>> {
    let value = sqlx::query_scalar("select value from meta where name = $1").bind(format!("{NOTE}{id}"));
    let value: Option<i64> = value.fetch_optional(&mut **all).await?;
    Ok(value.map(|value| value != 0))
}

/// Drops the note on a run that goes.
pub async fn drop_note(all: &mut Transaction<'static, Any>, id: &str) -> sqlx::Result<()> {
    let drop = sqlx::query("delete from meta where name = $1").bind(format!("{NOTE}{id}"));
    drop.execute(&mut **all).await?;
    Ok(())
}

/// Drops those on all runs.
pub async fn drop_notes(all: &mut Transaction<'static, Any>) -> sqlx::Result<()> {
    let drop = sqlx::query("delete from meta where name like $1").bind(format!("{NOTE}%"));
    drop.execute(&mut **all).await?;
    Ok(())
}
