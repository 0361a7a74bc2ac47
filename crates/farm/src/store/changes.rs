//! What changes are found from: culprits and when each board first had them.

use model::error::Result;

use super::{FarmStore, to_u64, trouble};
use crate::changes::CulpritSeen;

impl FarmStore {
    /// Culprits of a board whose first run began at some time or later.
    pub async fn culprits_since(&self, board: &str, since: i64) -> Result<Vec<CulpritSeen>> {
        type Row = (String, String, String, i64, i64, i64, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select b.key, c.fingerprint, c.name, f.first, f.spikes, \
             (select count(*) from run r where r.board_id = f.board_id and r.series = 'hunt' \
              and r.started < f.first), \
             (select min(k.run) from culprit_run k where k.board_id = f.board_id and \
              k.culprit_id = f.culprit_id and k.t = f.first) \
             from board b join (select board_id, culprit_id, min(t) as first, \
              cast(sum(spikes) as bigint) as spikes from culprit_run \
              where board_id = (select id from board where key = $1) group by board_id, culprit_id) f \
              on f.board_id = b.id join culprit c on c.id = f.culprit_id \
             where b.key = $1 and f.first >= $2 order by f.first, c.fingerprint",
        )
        .bind(board)
        .bind(since)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let seen = |(board, fingerprint, name, first, spikes, hunts, run): Row| CulpritSeen {
            board,
            fingerprint,
            name,
            first,
            spikes: to_u64(spikes),
            hunts_before: to_u64(hunts),
            run,
        };
        Ok(rows.into_iter().map(seen).collect())
    }
}
