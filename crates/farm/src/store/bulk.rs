//! Bulk inserts for synthetic stores of years: the same tables as the regular ways in, without row
//! by row look-ups.

use model::error::Result;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::encoding::pack_rows;
use crate::records::{FarmSlot, SeriesKey, Tier, TierRow};
use crate::store::hist::tiers::{SlotPlace, TierPlace, put_slots, put_tiers};
use crate::store::many::{pieces, statement, values};
use crate::store::{FarmStore, StoreEngine, plain, to_i64, trouble};

const BOARD: &str = "insert into board (key, name) values ";
const TOKEN: &str = "insert into token (hash, board_id, created, revoked) values ";
const HIST: &str = "insert into hist (board_id, series, plan, tier, t, n, missed, max_ns, cpus) values ";
const KEY: &str = "insert into row_key (board_id, boot, recording, series, seq, digest) values ";

/// Rows of one series in a recording of a boot.
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
    let marks: Vec<(i64, &FarmSlot)> = (rows.seq..).zip(&rows.slots).collect();
    for piece in pieces(&marks) {
        let mut mark = sqlx::query(statement(all, values(KEY, 6, piece.len())));
        for (seq, one) in piece {
            let digest = seq.wrapping_mul(0x5851_f42d_4c95_7f2d).to_be_bytes().to_vec();
            mark = mark.bind(board).bind(&rows.boot).bind(&one.run).bind(&key.series).bind(seq).bind(digest);
        }
        mark.execute(&mut **all).await?;
    }
    let slots = marks.into_iter().map(|(seq, slot)| (SlotPlace { board, key, seq }, slot));
    put_slots(all, &slots.collect::<Vec<_>>()).await?;
    let place = |tier: Tier, t: i64| TierPlace { board, key: key.clone(), tier, t };
    let tiers: Vec<_> = rows.tiers.iter().map(|(tier, row)| (place(*tier, row.t), row)).collect();
    put_tiers(all, &tiers.iter().map(|(place, row)| (place, *row)).collect::<Vec<_>>()).await
}

/// Sums over a store's contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// Rows by their keys, and by their slots.
    pub rows: (i64, i64),
    /// Samples in slots, and in each tier.
    pub samples: Vec<i64>,
}

impl FarmStore {
    /// Makes boards with the digests of their tokens, and their hour and day as they were before.
    pub async fn put_boards(
        &self,
        boards: &[(String, Vec<u8>)],
        key: &SeriesKey,
        before: &[(Tier, TierRow)],
    ) -> Result<()> {
        let mut all = self.begin().await?;
        for boards in pieces(boards) {
            fill(&mut all, boards, key, before).await.map_err(trouble)?;
        }
        all.commit().await.map_err(trouble)
    }

    /// Updates PostgreSQL's statistics, as it does by itself in time: its plans depend on them.
    pub async fn analyze(&self) -> Result<()> {
        if self.engine == StoreEngine::Postgres {
            sqlx::query("analyze").execute(&self.pool).await.map_err(trouble)?;
        }
        Ok(())
    }

    /// Stored sums, for a comparison with the sent ones.
    pub async fn stored_totals(&self) -> Result<StoreTotals> {
        let count = async |query: &'static str| -> Result<i64> {
            sqlx::query_scalar(query).fetch_one(&self.pool).await.map_err(trouble)
        };
        let rows = (count("select count(*) from row_key").await?, count("select count(*) from slot").await?);
        let mut samples = vec![count("select cast(coalesce(sum(n), 0) as bigint) from slot").await?];
        for tier in Tier::ALL {
            let query =
                sqlx::query_scalar("select cast(coalesce(sum(n), 0) as bigint) from hist where tier = $1");
            samples.push(query.bind(tier.number()).fetch_one(&self.pool).await.map_err(trouble)?);
        }
        Ok(StoreTotals { rows, samples })
    }
}

async fn fill(
    all: &mut Transaction<'static, Any>,
    boards: &[(String, Vec<u8>)],
    key: &SeriesKey,
    before: &[(Tier, TierRow)],
) -> sqlx::Result<()> {
    let mut board = sqlx::query(AssertSqlSafe(values(BOARD, 2, boards.len())));
    for (name, _) in boards {
        board = board.bind(name).bind(name);
    }
    board.execute(&mut **all).await?;
    // Made together they have numbers that follow each other.
    let last: i64 = sqlx::query_scalar("select max(id) from board").fetch_one(&mut **all).await?;
    let first = last + 1 - boards.len() as i64;
    let settings = "insert into board_setting (board_id, state, since, tags) \
                    select id, 'active', 0, '' from board where id >= $1";
    sqlx::query(settings).bind(first).execute(&mut **all).await?;
    let mut token = sqlx::query(AssertSqlSafe(values(TOKEN, 4, boards.len())));
    for (id, (_, digest)) in (first..).zip(boards) {
        token = token.bind(digest).bind(id).bind(0i64).bind(0i64);
    }
    token.execute(&mut **all).await?;
    for (tier, row) in before {
        let cpus = pack_rows(&row.cpus);
        let mut hist = sqlx::query(AssertSqlSafe(values(HIST, 9, boards.len())));
        for id in first..=last {
            hist = hist.bind(id).bind(&key.series).bind(&key.plan).bind(tier.number()).bind(row.t);
            hist = hist.bind(to_i64(row.n)).bind(to_i64(row.missed)).bind(plain(row.max_ns)).bind(&cpus[..]);
        }
        hist.execute(&mut **all).await?;
    }
    Ok(())
}
