//! Runs that stay whole for ever.

use model::error::Result;
use serde::Serialize;

use crate::store::{FarmStore, trouble};

const LONGEST_NOTE: usize = 200;

/// A run that `prune` keeps whole, and the user who pinned it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunPin {
    pub run: String,
    pub board: String,
    pub who: String,
    pub note: String,
    /// Time of the pin, in seconds since 1970.
    pub t: i64,
}

impl FarmStore {
    /// Pins a run; returns false for an unknown one. A pin and [`FarmStore::begin_thinning`] are
    /// serialized: both are transactions that take the write lock.
    pub async fn pin(&self, run: &str, who: &str, note: &str, t: i64) -> Result<bool> {
        let pin = sqlx::query(
            "insert into pin (board_id, run, who, note, t) \
             select board_id, id, $1, $2, $3 from run where id = $4 \
             on conflict (board_id, run) do update set who = excluded.who, note = excluded.note, \
             t = excluded.t",
        );
        let note: String = model::text::clean(note.trim()).chars().take(LONGEST_NOTE).collect();
        let pin = pin.bind(who).bind(note).bind(t).bind(run);
        let mut all = self.begin().await?;
        let pinned = pin.execute(&mut *all).await.map_err(trouble)?.rows_affected() > 0;
        all.commit().await.map_err(trouble)?;
        Ok(pinned)
    }

    /// Removes a pin; returns false if the run was not pinned.
    pub async fn unpin(&self, run: &str) -> Result<bool> {
        let unpin = sqlx::query("delete from pin where run = $1").bind(run);
        Ok(unpin.execute(&self.pool).await.map_err(trouble)?.rows_affected() > 0)
    }

    /// All pins, the latest first.
    pub async fn pins(&self) -> Result<Vec<RunPin>> {
        let rows: Vec<(String, String, String, String, i64)> = sqlx::query_as(
            "select p.run, b.key, p.who, p.note, p.t from pin p join board b on b.id = p.board_id \
             order by p.t desc, p.run",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(rows.into_iter().map(|(run, board, who, note, t)| RunPin { run, board, who, note, t }).collect())
    }
}
