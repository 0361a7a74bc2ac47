//! Many rows in a statement, for made-up stores of years: the same tables as the other ways in,
//! without asking row by row what is there.

use std::fmt::Write;

use model::error::Result;
use sqlx::{Any, Transaction};

use super::tiers::put_tier;
use super::{FarmStore, plain, to_i64, trouble};
use crate::encoding::pack_peaks;
use crate::records::{FarmSlot, SeriesKey, Tier, TierRow};

/// Rows of one statement: the engines take some ten thousand values.
const AT_ONCE: usize = 64;
const SLOT: &str = "insert into slot (board_id, series, plan, t, recording, seq, n, missed, max_ns, max_cpu, \
                    max_at, culprit, victim, peaks) values ";
const KEY: &str = "insert into row_key (board_id, boot, recording, series, seq, digest) values ";

/// What a recording of a boot has of one series.
#[derive(Clone, Debug, Default)]
pub struct BulkRows {
    pub key: SeriesKey,
    pub boot: String,
    /// The number of the first slot.
    pub seq: i64,
    pub slots: Vec<FarmSlot>,
    pub tiers: Vec<(Tier, TierRow)>,
}

impl FarmStore {
    /// Stores rows of a board that is there, none of which may be there already.
    pub async fn put_bulk(&self, board: &str, rows: &BulkRows) -> Result<()> {
        let mut all = self.pool.begin().await.map_err(trouble)?;
        let id: i64 = sqlx::query_scalar("select id from board where key = $1")
            .bind(board)
            .fetch_one(&mut *all)
            .await
            .map_err(trouble)?;
        put(&mut all, id, rows).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)
    }
}

async fn put(all: &mut Transaction<'static, Any>, board: i64, rows: &BulkRows) -> sqlx::Result<()> {
    let key = &rows.key;
    for (at, slots) in rows.slots.chunks(AT_ONCE).enumerate() {
        let first = rows.seq + (at * AT_ONCE) as i64;
        let mut slot = sqlx::query(sqlx::AssertSqlSafe(places(SLOT, 14, slots.len())));
        let mut mark = sqlx::query(sqlx::AssertSqlSafe(places(KEY, 6, slots.len())));
        for (seq, one) in (first..).zip(slots) {
            slot = slot.bind(board).bind(&key.series).bind(&key.plan).bind(one.t).bind(&one.run).bind(seq);
            slot = slot.bind(to_i64(one.n)).bind(to_i64(one.missed)).bind(plain(one.max_ns));
            slot = slot.bind(one.max_cpu.map(|cpu| i64::from(cpu.0))).bind(one.max_at);
            slot = slot.bind(&one.culprit).bind(&one.victim).bind(pack_peaks(&one.cpus));
            let digest = seq.wrapping_mul(0x5851_f42d_4c95_7f2d).to_be_bytes().to_vec();
            mark = mark.bind(board).bind(&rows.boot).bind(&one.run).bind(&key.series).bind(seq).bind(digest);
        }
        slot.execute(&mut **all).await?;
        mark.execute(&mut **all).await?;
    }
    for (tier, row) in &rows.tiers {
        put_tier(all, board, key, *tier, row).await?;
    }
    Ok(())
}

/// `($1, $2), ($3, $4)`: so many places in so many rows.
fn places(head: &str, width: usize, rows: usize) -> String {
    let mut text = head.to_owned();
    for place in 0..width * rows {
        let before = match place % width {
            0 if place > 0 => "), (",
            0 => "(",
            _ => ", ",
        };
        let _ = write!(text, "{before}${}", place + 1);
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn places_are_numbered_through() {
        assert_eq!(places("values ", 2, 2), "values ($1, $2), ($3, $4)");
    }
}
