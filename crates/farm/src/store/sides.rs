//! What a comparison of days is made from: what boards were when, and the maxima of their days.

use model::error::Result;
use model::units::Nanos;

use super::{FarmStore, TimeStretch, trouble};
use crate::records::{EnvironmentRecord, SeriesKey};

impl FarmStore {
    /// The first boards by name, and no more than a number of them.
    pub async fn board_names(&self, most: i64) -> Result<Vec<String>> {
        sqlx::query_scalar("select key from board order by key limit $1")
            .bind(most)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)
    }

    /// Every environment that a board had.
    pub async fn environment_records(&self) -> Result<Vec<EnvironmentRecord>> {
        type Row = (String, String, String, String, String);
        let rows: Vec<Row> =
            sqlx::query_as("select digest, model, release, preempt, settings from environment order by id")
                .fetch_all(&self.pool)
                .await
                .map_err(trouble)?;
        let one = |(digest, model, release, preempt, settings): Row| EnvironmentRecord {
            digest,
            model,
            release,
            preempt,
            settings,
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// Boards with the digests of the environments that a run of theirs had which counts. All of it
    /// is in the index `run_counted`.
    pub async fn boards_of_environments(&self) -> Result<Vec<(String, String)>> {
        sqlx::query_as(
            "select b.key, e.digest from (select distinct environment_id, board_id from run \
             where invalid = 0 and complete = 1) r join board b on b.id = r.board_id \
             join environment e on e.id = r.environment_id order by b.key, e.digest",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// From when on a board had which environment, by its digest, oldest first: its runs say so.
    pub async fn environment_steps(&self, board: &str) -> Result<Vec<(i64, String)>> {
        sqlx::query_as(
            "select s.started, e.digest from (select r.started, r.id, r.environment_id, \
             lag(r.environment_id) over (order by r.started, r.id) as before \
             from run r join board b on b.id = r.board_id where b.key = $1) s \
             join environment e on e.id = s.environment_id \
             where s.before is null or s.before <> s.environment_id order by s.started, s.id",
        )
        .bind(board)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// The first seconds of the days of a stretch that have maxima of five minutes, oldest first.
    pub async fn days_with_slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
    ) -> Result<Vec<i64>> {
        let days = "select h.t from hist h join board b on b.id = h.board_id where b.key = $1 \
                    and h.series = $2 and h.plan = $3 and h.tier = 2 and h.t >= $4 and h.t < $5 \
                    and exists (select 1 from slot s where s.board_id = h.board_id \
                    and s.series = h.series and s.plan = h.plan and s.t >= h.t and s.t < h.t + 86400) \
                    order by h.t";
        self.within(days, board, key, within).await
    }

    /// The largest latency of each five minutes of a stretch that has one, oldest first.
    pub async fn slot_maxima(&self, board: &str, key: &SeriesKey, within: TimeStretch) -> Result<Vec<Nanos>> {
        let maxima = "select max(s.max_ns) from slot s join board b on b.id = s.board_id \
                      where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5 \
                      and s.max_ns is not null group by s.t order by s.t";
        Ok(self.within(maxima, board, key, within).await?.into_iter().map(Nanos).collect())
    }

    /// Numbers of a stretch of a board's series: `$1` to `$5` are the board, the series, its plan,
    /// and the stretch.
    async fn within(
        &self,
        query: &'static str,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
    ) -> Result<Vec<i64>> {
        let query = sqlx::query_scalar(query).bind(board).bind(&key.series).bind(&key.plan);
        query.bind(within.from).bind(within.to).fetch_all(&self.pool).await.map_err(trouble)
    }
}
