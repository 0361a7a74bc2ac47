//! The largest latency of each of a board's series in a time span.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;

use crate::records::SeriesKey;
use crate::store::{FarmStore, TimeStretch, trouble};

impl FarmStore {
    /// Largest latency of each series of a board within a time span by its five minutes, including
    /// those of invalid runs: one index look-up for each series.
    pub async fn largest_of_series(
        &self,
        board: &str,
        within: TimeStretch,
    ) -> Result<BTreeMap<SeriesKey, Nanos>> {
        let rows: Vec<(String, String, Option<i64>)> = sqlx::query_as(
            "select k.series, k.plan, (select max(x.max_ns) from slot x where x.board_id = k.board_id \
             and x.series = k.series and x.plan = k.plan and x.t >= $1 and x.t < $2) \
             from (select distinct h.board_id, h.series, h.plan from hist h \
             join board b on b.id = h.board_id where b.key = $3 and h.tier = 2) k",
        )
        .bind(within.from)
        .bind(within.to)
        .bind(board)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(series, plan, max): (String, String, Option<i64>)| {
            Some((SeriesKey { series, plan }, Nanos(max?)))
        };
        Ok(rows.into_iter().filter_map(one).collect())
    }
}
