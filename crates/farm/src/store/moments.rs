//! What is known of a moment of a board: the run that was on, and the worst five minutes.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;

use super::{FarmStore, TimeStretch, trouble};
use crate::records::{DayMaximum, FarmRun, FarmSlot, SeriesKey};

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

    /// The day with the largest latency of each series of a board within a stretch; of equal ones
    /// the last.
    pub async fn worst_days(
        &self,
        board: &str,
        within: TimeStretch,
    ) -> Result<BTreeMap<SeriesKey, DayMaximum>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
            "select series, plan, t, max_ns from (select h.series, h.plan, h.t, h.max_ns, row_number() over \
             (partition by h.series, h.plan order by h.max_ns desc, h.t desc) as place \
             from hist h join board b on b.id = h.board_id where b.key = $1 and h.tier = 2 \
             and h.t >= $2 and h.t < $3 and h.max_ns is not null) worst where place = 1",
        )
        .bind(board)
        .bind(within.from)
        .bind(within.to)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one =
            |(series, plan, t, max_ns)| (SeriesKey { series, plan }, DayMaximum { t, max_ns: Nanos(max_ns) });
        Ok(rows.into_iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn each_series_has_its_worst_day_within_the_stretch() {
        on_each_engine(async |store| {
            sqlx::query("insert into board (id, key, name) values (1, 'a', 'A')")
                .execute(&store.pool)
                .await
                .unwrap();
            for (series, tier, t, max) in [
                ("m", 2, 100, Some(5)),
                ("m", 2, 200, Some(9)),
                ("m", 2, 300, Some(9)),
                ("m", 2, 400, None),
                ("m", 2, 900, Some(99)),
                ("m", 1, 100, Some(77)),
                ("h", 2, 100, Some(7)),
            ] {
                sqlx::query("insert into hist values (1, $1, 'p', $2, $3, 1, 0, $4, $5)")
                    .bind(series)
                    .bind(tier)
                    .bind(t)
                    .bind(max)
                    .bind(vec![0u8])
                    .execute(&store.pool)
                    .await
                    .unwrap();
            }
            let found = store.worst_days("a", TimeStretch { from: 0, to: 900 }).await.unwrap();
            let shown: Vec<_> =
                found.iter().map(|(key, day)| (key.series.as_str(), day.t, day.max_ns.0)).collect();
            assert_eq!(shown, [("h", 100, 7), ("m", 300, 9)]);
            assert!(store.worst_days("b", TimeStretch { from: 0, to: 900 }).await.unwrap().is_empty());
        });
    }
}
