//! Rows of five minutes, each once: the line is the unit, however often and in whatever cuts it
//! is sent.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use sqlx::{Any, Transaction};

use super::put::put_slot;
use super::tiers::{put_tier, tier_row};
use super::{FarmStore, to_i64, trouble};
use crate::ingest::rows::{ReceivedRow, RowsOf};
use crate::records::{FarmSlot, SeriesKey, SlotPeak, Tier, TierRow};

/// The board's clocks as a request tells them, and the time at which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardClock {
    pub boot: String,
    pub mono_ns: i64,
    pub wall_ns: i64,
    pub received_ns: i64,
}

/// Rows of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBatch {
    pub board_id: i64,
    pub of: RowsOf,
    pub clock: Option<BoardClock>,
    pub rows: Vec<ReceivedRow>,
}

/// What became of a request's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RowsStored {
    pub stored: u64,
    pub had: u64,
    /// Rows that are there with other content: these are not stored.
    pub seq: Vec<u64>,
}

/// Two clocks that differ by less are taken for the same.
const AGREE_NS: u64 = 2_000_000_000;

/// A row that lies this far in the future is not one of this time: a farm's own clock may have been
/// wrong by less when it first heard of the boot.
const FUTURE_NS: i64 = 86_400 * Nanos::SECOND.0;

/// Histograms that rows are added to, each read and written once in a transaction.
type Sums = BTreeMap<(i64, SeriesKey, i64, i64), TierRow>;

impl FarmStore {
    /// Stores the rows of requests that wait together, all or none of them: an answer for each.
    pub async fn put_rows(&self, batches: &[RowBatch]) -> Result<Vec<RowsStored>> {
        let mut all = self.begin().await?;
        let mut sums = Sums::new();
        let mut answers = Vec::new();
        for batch in batches {
            answers.push(put_batch(&mut all, batch, &mut sums).await.map_err(trouble)?);
        }
        for ((board, key, tier, _), row) in &sums {
            let Some(tier) = Tier::ALL.into_iter().find(|known| known.number() == *tier) else { continue };
            put_tier(&mut all, *board, key, tier, row).await.map_err(trouble)?;
        }
        all.commit().await.map_err(trouble)?;
        Ok(answers)
    }

    /// The first row that by its boot's clock lies in the future, counted from 0: nothing would say
    /// when it was.
    pub async fn future_row(&self, batch: &RowBatch, now_ns: i64) -> Result<Option<usize>> {
        let Some(first) = batch.rows.first() else { return Ok(None) };
        let known: Option<i64> =
            sqlx::query_scalar("select offset_ns from boot where board_id = $1 and boot = $2")
                .bind(batch.board_id)
                .bind(&batch.of.boot)
                .fetch_optional(&self.pool)
                .await
                .map_err(trouble)?;
        let offset = known.unwrap_or_else(|| offset_by(batch, first).0);
        let latest = now_ns.saturating_add(FUTURE_NS);
        Ok(batch.rows.iter().position(|row| row.mono_ns.0.saturating_add(offset) > latest))
    }

    /// What the farm has of a board's rows: boot, first and last number.
    pub async fn rows_of(&self, board_id: i64) -> Result<Vec<(String, i64, i64)>> {
        sqlx::query_as(
            "select boot, min(seq), max(seq) from row_key where board_id = $1 group by boot order by boot",
        )
        .bind(board_id)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }
}

async fn put_batch(
    all: &mut Transaction<'static, Any>,
    batch: &RowBatch,
    sums: &mut Sums,
) -> sqlx::Result<RowsStored> {
    let mut answer = RowsStored::default();
    let Some(first) = batch.rows.first() else { return Ok(answer) };
    let offset = offset(all, batch, first).await?;
    for row in &batch.rows {
        match is_new(all, batch, row).await? {
            Novelty::New => {
                answer.stored += 1;
                add(all, batch, row, offset, sums).await?;
            }
            Novelty::Had => answer.had += 1,
            Novelty::Other => answer.seq.push(row.seq),
        }
    }
    Ok(answer)
}

/// What is added to CLOCK_MONOTONIC of a boot: fixed when the farm first hears of it, so that a
/// row's time is the same however often it is sent.
async fn offset(
    all: &mut Transaction<'static, Any>,
    batch: &RowBatch,
    first: &ReceivedRow,
) -> sqlx::Result<i64> {
    let (offset, source) = offset_by(batch, first);
    sqlx::query(
        "insert into boot (board_id, boot, offset_ns, source) values ($1, $2, $3, $4) on conflict do nothing",
    )
    .bind(batch.board_id)
    .bind(&batch.of.boot)
    .bind(offset)
    .bind(source)
    .execute(&mut **all)
    .await?;
    sqlx::query_scalar("select offset_ns from boot where board_id = $1 and boot = $2")
        .bind(batch.board_id)
        .bind(&batch.of.boot)
        .fetch_one(&mut **all)
        .await
}

/// By what a request says, and by which clock.
fn offset_by(batch: &RowBatch, first: &ReceivedRow) -> (i64, &'static str) {
    match batch.clock.as_ref().filter(|clock| clock.boot == batch.of.boot) {
        Some(clock) if clock.wall_ns.abs_diff(clock.received_ns) < AGREE_NS => {
            (clock.wall_ns.saturating_sub(clock.mono_ns), "board")
        }
        Some(clock) => (clock.received_ns.saturating_sub(clock.mono_ns), "receipt"),
        // A boot that ended before it could send: only the board itself knows.
        None => (first.own_wall_ns.0.saturating_sub(first.mono_ns.0), "row"),
    }
}

enum Novelty {
    New,
    Had,
    Other,
}

async fn is_new(
    all: &mut Transaction<'static, Any>,
    batch: &RowBatch,
    row: &ReceivedRow,
) -> sqlx::Result<Novelty> {
    let of = &batch.of;
    let inserted = sqlx::query(
        "insert into row_key (board_id, boot, recording, series, seq, digest) values ($1, $2, $3, $4, $5, \
         $6) on conflict do nothing",
    )
    .bind(batch.board_id)
    .bind(&of.boot)
    .bind(&of.recording)
    .bind(&of.series)
    .bind(to_i64(row.seq))
    .bind(&row.digest)
    .execute(&mut **all)
    .await?;
    if inserted.rows_affected() == 1 {
        return Ok(Novelty::New);
    }
    let digest: Vec<u8> = sqlx::query_scalar(
        "select digest from row_key where board_id = $1 and boot = $2 and recording = $3 and series = $4 \
         and seq = $5",
    )
    .bind(batch.board_id)
    .bind(&of.boot)
    .bind(&of.recording)
    .bind(&of.series)
    .bind(to_i64(row.seq))
    .fetch_one(&mut **all)
    .await?;
    Ok(if digest == row.digest { Novelty::Had } else { Novelty::Other })
}

async fn add(
    all: &mut Transaction<'static, Any>,
    batch: &RowBatch,
    row: &ReceivedRow,
    offset: i64,
    sums: &mut Sums,
) -> sqlx::Result<()> {
    let t = row.mono_ns.0.saturating_add(offset).div_euclid(Nanos::SECOND.0);
    for part in &row.parts {
        let wall = |mono: i64| mono.saturating_add(offset);
        let place = |peak: &SlotPeak| SlotPeak { max_at: peak.max_at.map(wall), ..*peak };
        let cpus: Vec<SlotPeak> = part.peaks.iter().map(place).collect();
        let worst = cpus.iter().filter(|peak| peak.max_ns.is_some()).max_by_key(|peak| peak.max_ns).copied();
        let slot = FarmSlot {
            t: Tier::Slot.begin(t),
            n: part.sums.n,
            missed: part.sums.missed,
            max_ns: part.sums.max_ns,
            max_cpu: worst.map(|peak| peak.cpu),
            max_at: worst.and_then(|peak| peak.max_at),
            culprit: part.culprit.clone(),
            victim: part.victim.clone(),
            run: batch.of.recording.clone(),
            cpus,
        };
        put_slot(all, batch.board_id, &part.key, to_i64(row.seq), &slot).await?;
        for tier in Tier::ALL {
            let begin = tier.begin(t);
            let place = (batch.board_id, part.key.clone(), tier.number(), begin);
            if !sums.contains_key(&place) {
                let known = tier_row(all, batch.board_id, &part.key, tier, begin).await?;
                sums.insert(place.clone(), known.unwrap_or(TierRow { t: begin, ..TierRow::default() }));
            }
            if let Some(sum) = sums.get_mut(&place) {
                sum.add(&part.sums);
            }
        }
    }
    Ok(())
}
