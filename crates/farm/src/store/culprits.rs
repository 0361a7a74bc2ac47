//! Causes of spikes, over the fleet or on one board.

use model::error::Result;
use model::units::Nanos;

use super::{FarmStore, to_u64, trouble};
use crate::records::FarmCulprit;

impl FarmStore {
    /// Those that took most first; of one board where that is named.
    pub async fn culprits(&self, board: Option<&str>, most: i64) -> Result<Vec<FarmCulprit>> {
        self.culprits_of(board.unwrap_or_default(), "", most).await
    }

    /// One of them, by its address.
    pub async fn culprit(&self, fingerprint: &str) -> Result<Option<FarmCulprit>> {
        if fingerprint.is_empty() {
            return Ok(None);
        }
        Ok(self.culprits_of("", fingerprint, 1).await?.pop())
    }

    async fn culprits_of(&self, board: &str, fingerprint: &str, most: i64) -> Result<Vec<FarmCulprit>> {
        type Row = (String, String, String, String, String, i64, i64, i64, i64, i64, i64, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select c.fingerprint, c.rule, c.name, c.kind, c.remedy, count(distinct k.board_id), count(*), \
             cast(sum(k.spikes) as bigint), cast(sum(k.total_ns) as bigint), min(k.t), max(k.t), max(k.run) \
             from culprit c join culprit_run k on k.culprit_id = c.id join board b on b.id = k.board_id \
             where ($1 = '' or b.key = $1) and ($2 = '' or c.fingerprint = $2) \
             group by c.fingerprint, c.rule, c.name, c.kind, c.remedy \
             order by sum(k.total_ns) desc, c.fingerprint limit $3",
        )
        .bind(board)
        .bind(fingerprint)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |row: Row| {
            let (fingerprint, rule, name, kind, remedy, boards, runs, spikes, total, first, last, example) =
                row;
            FarmCulprit {
                fingerprint,
                rule,
                name,
                kind,
                boards: to_u64(boards),
                runs: to_u64(runs),
                spikes: to_u64(spikes),
                total_ns: Nanos(total),
                first,
                last,
                example,
                remedy,
            }
        };
        Ok(rows.into_iter().map(one).collect())
    }
}
