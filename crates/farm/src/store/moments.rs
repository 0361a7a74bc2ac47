//! What is known of a moment of a board: the run that was on, and the worst five minutes.

use model::error::Result;

use super::{FarmStore, TimeStretch, trouble};
use crate::records::{FarmRun, FarmSlot, SeriesKey};

impl FarmStore {
    /// The runs that were on within a stretch of time, the latest first.
    pub async fn runs_within(&self, board: &str, within: TimeStretch, most: i64) -> Result<Vec<FarmRun>> {
        let ids: Vec<(String,)> = sqlx::query_as(
            "select r.id from run r join board b on b.id = r.board_id \
             where b.key = $1 and r.started < $2 and r.started + coalesce(r.length_ns, 0) / 1000000000 >= $3 \
             order by r.started desc, r.id desc limit $4",
        )
        .bind(board)
        .bind(within.to)
        .bind(within.from)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut runs = Vec::new();
        for (id,) in ids {
            runs.extend(self.run(&id).await?);
        }
        Ok(runs)
    }

    /// The five minutes of a stretch with the largest latencies, the largest first.
    pub async fn worst_slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
        most: usize,
    ) -> Result<Vec<FarmSlot>> {
        // A day has 288 of them, and one per run that was on besides.
        let mut slots = self.slots(board, key, within, 4_000).await?;
        slots.retain(|slot| slot.max_ns.is_some());
        slots.sort_by_key(|slot| (std::cmp::Reverse(slot.max_ns), slot.t));
        slots.truncate(most);
        Ok(slots)
    }
}
