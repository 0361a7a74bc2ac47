//! Stored rows and their boots.

use model::error::Result;

use crate::ingest::rows::RowsOf;
use crate::store::{FarmStore, to_i64, to_u64, trouble};

impl FarmStore {
    /// Number of stored rows between two sequence numbers, both included.
    pub async fn count_rows(&self, board_id: i64, of: &RowsOf, from: u64, to: u64) -> Result<u64> {
        let count: i64 = sqlx::query_scalar(
            "select count(*) from row_key where board_id = $1 and boot = $2 and recording = $3 and \
             series = $4 and seq >= $5 and seq <= $6",
        )
        .bind(board_id)
        .bind(&of.boot)
        .bind(&of.recording)
        .bind(&of.series)
        .bind(to_i64(from))
        .bind(to_i64(to))
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(to_u64(count))
    }

    /// Ranges of a board's stored rows: boot, recording, series, and the first and last number of
    /// each range without a gap, in this order; at most `most` after a row.
    pub async fn row_stretches(
        &self,
        board_id: i64,
        of: &RowsOf,
        seq: i64,
        most: i64,
    ) -> Result<Vec<(String, String, String, i64, i64)>> {
        sqlx::query_as(
            "select boot, recording, series, min(seq), max(seq) from (select boot, recording, series, seq, \
             seq - row_number() over (partition by boot, recording, series order by seq) as stretch \
             from row_key where board_id = $1 and (boot, recording, series, seq) > ($2, $3, $4, $5)) k \
             group by boot, recording, series, stretch order by boot, recording, series, min(seq) limit $6",
        )
        .bind(board_id)
        .bind(&of.boot)
        .bind(&of.recording)
        .bind(&of.series)
        .bind(seq)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// Boots from which a board sent rows, latest start first, at most `most`.
    pub async fn boots_of(&self, board_id: i64, most: usize) -> Result<Vec<String>> {
        sqlx::query_scalar("select boot from boot where board_id = $1 order by offset_ns desc, boot limit $2")
            .bind(board_id)
            .bind(to_i64(most as u64))
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)
    }
}
