//! Slots, and the histograms of five minutes, hours and days.

use model::error::Result;
use model::units::Cpu;
use sqlx::{Any, Transaction};

use super::{FarmStore, nanos, plain, to_i64, to_u64, trouble};
use crate::encoding::{pack_rows, unpack_peaks, unpack_rows};
use crate::records::{FarmSlot, SeriesKey, Tier, TierRow};

type Row = (i64, i64, i64, Option<i64>, Vec<u8>);

fn made(row: Row) -> sqlx::Result<TierRow> {
    let (t, n, missed, max_ns, cpus) = row;
    let cpus = unpack_rows(&cpus).ok_or_else(|| damaged("histogram", t))?;
    Ok(TierRow { t, n: to_u64(n), missed: to_u64(missed), max_ns: nanos(max_ns), cpus })
}

/// What would be lost if it were taken for empty, and written over.
pub fn damaged(what: &str, t: i64) -> sqlx::Error {
    sqlx::Error::Decode(format!("a {what} at {t} is damaged: `onbeat-farm check` lists all of them").into())
}

/// One row of a tier.
pub async fn tier_row(
    all: &mut Transaction<'static, Any>,
    board: i64,
    key: &SeriesKey,
    tier: Tier,
    t: i64,
) -> sqlx::Result<Option<TierRow>> {
    let row: Option<Row> = sqlx::query_as(
        "select t, n, missed, max_ns, cpus from hist \
         where board_id = $1 and series = $2 and plan = $3 and tier = $4 and t = $5",
    )
    .bind(board)
    .bind(&key.series)
    .bind(&key.plan)
    .bind(tier.number())
    .bind(t)
    .fetch_optional(&mut **all)
    .await?;
    row.map(made).transpose()
}

/// Puts a row of a tier into the place of what was there.
pub async fn put_tier(
    all: &mut Transaction<'static, Any>,
    board: i64,
    key: &SeriesKey,
    tier: Tier,
    row: &TierRow,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into hist (board_id, series, plan, tier, t, n, missed, max_ns, cpus) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (board_id, series, plan, tier, t) \
         do update set n = excluded.n, missed = excluded.missed, max_ns = excluded.max_ns, cpus = \
          excluded.cpus",
    )
    .bind(board)
    .bind(&key.series)
    .bind(&key.plan)
    .bind(tier.number())
    .bind(row.t)
    .bind(to_i64(row.n))
    .bind(to_i64(row.missed))
    .bind(plain(row.max_ns))
    .bind(pack_rows(&row.cpus))
    .execute(&mut **all)
    .await?;
    Ok(())
}

/// A stretch of time, its end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeStretch {
    pub from: i64,
    pub to: i64,
}

impl FarmStore {
    /// The histograms of a stretch, oldest first.
    pub async fn tiers(
        &self,
        board: &str,
        key: &SeriesKey,
        tier: Tier,
        within: TimeStretch,
    ) -> Result<Vec<TierRow>> {
        let rows: Vec<Row> = sqlx::query_as(
            "select h.t, h.n, h.missed, h.max_ns, h.cpus from hist h join board b on b.id = h.board_id \
             where b.key = $1 and h.series = $2 and h.plan = $3 and h.tier = $4 and h.t >= $5 and h.t < $6 \
             order by h.t",
        )
        .bind(board)
        .bind(&key.series)
        .bind(&key.plan)
        .bind(tier.number())
        .bind(within.from)
        .bind(within.to)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        rows.into_iter().map(made).collect::<sqlx::Result<_>>().map_err(trouble)
    }

    /// The slots of a stretch, oldest first, and no more than a number of them.
    pub async fn slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
        most: i64,
    ) -> Result<Vec<FarmSlot>> {
        type SlotRow =
            (i64, i64, i64, Option<i64>, Option<i64>, Option<i64>, String, String, String, Vec<u8>);
        let rows: Vec<SlotRow> = sqlx::query_as(
            "select s.t, s.n, s.missed, s.max_ns, s.max_cpu, s.max_at, s.culprit, s.victim, s.recording, \
             s.peaks \
             from slot s join board b on b.id = s.board_id \
             where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5 \
             order by s.t, s.recording, s.seq limit $6",
        )
        .bind(board)
        .bind(&key.series)
        .bind(&key.plan)
        .bind(within.from)
        .bind(within.to)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let slot = |(t, n, missed, max_ns, max_cpu, max_at, culprit, victim, run, peaks): SlotRow| {
            Ok(FarmSlot {
                t,
                n: to_u64(n),
                missed: to_u64(missed),
                max_ns: nanos(max_ns),
                max_cpu: max_cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu),
                max_at,
                culprit,
                victim,
                run,
                cpus: unpack_peaks(&peaks).ok_or_else(|| damaged("slot", t))?,
            })
        };
        rows.into_iter().map(slot).collect::<sqlx::Result<_>>().map_err(trouble)
    }
}
