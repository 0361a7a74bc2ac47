//! Rows of five minutes, each once: the line is the unit, however often and in whatever cuts it
//! is sent.

pub mod latest;
pub mod row_keys;
pub mod row_times;
pub mod slot_parts;

use std::collections::BTreeSet;

use bundle::record::lines::CLOCK_SET;
use model::error::Result;
use model::units::Nanos;
use sqlx::{Any, Transaction};

use crate::ingest::rows::{ReceivedRow, RowPart, RowsOf};
use crate::records::{FarmSlot, SlotPeak, Tier};
use crate::store::changes::culprits::{RowCulprit, put_row_culprits};
use crate::store::hist::tiers::{SlotPlace, add_to_tiers, put_slots};
use crate::store::many::{pieces, statement, values};
use crate::store::rows::row_times::{RowBatch, RowOffsets, place_rows};
use crate::store::runs::environments::{RowEnvironment, put_row_environments};
use crate::store::runs::labels::{LabelledRow, put_row_labels};
use crate::store::{FarmStore, to_i64, trouble};

/// Outcome for a request's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RowsStored {
    pub stored: u64,
    pub had: u64,
    /// Number of the stored rows whose boot never had its clock set: they are in 1970.
    #[serde(skip_serializing_if = "is_zero")]
    pub undated: u64,
    /// Rows that are there with other content: these are not stored.
    pub seq: Vec<u64>,
    /// Index of the first row that is in the future by its boot's clock: its time would be unknown,
    /// so that none of the request is stored.
    #[serde(skip)]
    pub future: Option<usize>,
}

/// Condition for serde.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Parts of a slot's name. A recording continues over a restart of its machine and its numbers
/// begin again: a board that is up again within the same five minutes has two with one number.
/// Waits for an equal priority are a separate series, whose name a sender may use as well: then
/// there are two of one boot.
#[derive(Clone, Copy, Debug)]
enum SlotName {
    Recording,
    WithBoot,
    WithSeries,
}

impl SlotName {
    fn of(self, RowsOf { boot, recording, series }: &RowsOf) -> String {
        match self {
            SlotName::Recording => recording.clone(),
            SlotName::WithBoot => format!("{recording}@{boot}"),
            SlotName::WithSeries => format!("{recording}@{boot}@{series}"),
        }
    }
}

fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|told| told.is_unique_violation())
}

/// A row of a request, and the offset for its boot's CLOCK_MONOTONIC.
struct PlacedRow<'a> {
    request: usize,
    batch: &'a RowBatch,
    row: &'a ReceivedRow,
    offset: i64,
}

impl FarmStore {
    /// Stores the rows of simultaneous requests, all or none; returns an outcome for each.
    pub async fn put_rows(&self, batches: &[RowBatch]) -> Result<Vec<RowsStored>> {
        let mut outcome = self.put_named(batches, SlotName::Recording).await;
        for name in [SlotName::WithBoot, SlotName::WithSeries] {
            // The request at fault is unknown among several: each is repeated separately.
            if batches.len() != 1 || !outcome.as_ref().is_err_and(is_taken) {
                break;
            }
            outcome = self.put_named(batches, name).await;
        }
        outcome.map_err(trouble)
    }

    async fn put_named(&self, batches: &[RowBatch], name: SlotName) -> sqlx::Result<Vec<RowsStored>> {
        let mut all = self.transaction().await?;
        let answers = put_batches(&mut all, batches, name).await?;
        all.commit().await?;
        Ok(answers)
    }
}

async fn put_batches(
    all: &mut Transaction<'static, Any>,
    batches: &[RowBatch],
    name: SlotName,
) -> sqlx::Result<Vec<RowsStored>> {
    let placed = place_rows(all, batches).await?;
    let answer = |of: &RowOffsets| RowsStored { future: of.as_ref().err().copied(), ..RowsStored::default() };
    let mut answers: Vec<RowsStored> = placed.iter().map(answer).collect();
    let rows = batches.iter().zip(placed).enumerate().flat_map(|(request, (batch, placed))| {
        let offsets = placed.unwrap_or_default();
        let row = move |(row, offset)| PlacedRow { request, batch, row, offset };
        batch.rows.iter().zip(offsets).map(row)
    });
    let new = new_rows(all, rows.collect(), &mut answers).await?;
    put_row_culprits(all, &culprits(&new)).await?;
    add_slots(all, &new, name).await?;
    let mut parts = Vec::new();
    for row in &new {
        parts.extend(row.row.parts.iter().map(|part| (row.batch.board_id, &part.key, row.t(), &part.sums)));
    }
    add_to_tiers(all, &Tier::ALL, &parts).await?;
    put_row_environments(all, &environments(&new)).await?;
    put_row_labels(all, &labelled(&new, name)).await?;
    Ok(answers)
}

/// Marks rows as stored; returns the new ones, and the outcome for each request.
async fn new_rows<'a>(
    all: &mut Transaction<'static, Any>,
    rows: Vec<PlacedRow<'a>>,
    answers: &mut [RowsStored],
) -> sqlx::Result<Vec<PlacedRow<'a>>> {
    let mut marked = mark(all, &rows).await?;
    let mut new = Vec::new();
    for row in rows {
        let Some(answer) = answers.get_mut(row.request) else { continue };
        if marked.remove(&row.key()) {
            answer.stored += 1;
            answer.undated += u64::from(row.at_ns() < CLOCK_SET.0);
            new.push(row);
        } else if known_digest(all, &row).await? == row.row.digest {
            answer.had += 1;
        } else {
            answer.seq.push(row.row.seq);
        }
    }
    Ok(new)
}

/// Board, boot, recording, series and number.
type RowKey = (i64, String, String, String, i64);

impl PlacedRow<'_> {
    fn key(&self) -> RowKey {
        let of = &self.batch.of;
        let seq = to_i64(self.row.seq);
        (self.batch.board_id, of.boot.clone(), of.recording.clone(), of.series.clone(), seq)
    }
}

/// Marks rows; the keys that were not there.
async fn mark(all: &mut Transaction<'static, Any>, rows: &[PlacedRow<'_>]) -> sqlx::Result<BTreeSet<RowKey>> {
    const KEY: &str = "insert into row_key (board_id, boot, recording, series, seq, digest) values ";
    let mut marked = BTreeSet::new();
    for piece in pieces(rows) {
        let text = values(KEY, 6, piece.len())
            + " on conflict do nothing returning board_id, boot, recording, series, seq";
        let mut insert = sqlx::query_as::<_, RowKey>(statement(all, text));
        for PlacedRow { batch, row, .. } in piece {
            insert = insert.bind(batch.board_id).bind(&batch.of.boot).bind(&batch.of.recording);
            insert = insert.bind(&batch.of.series).bind(to_i64(row.seq)).bind(&row.digest);
        }
        marked.extend(insert.fetch_all(&mut **all).await?);
    }
    Ok(marked)
}

async fn known_digest(all: &mut Transaction<'static, Any>, row: &PlacedRow<'_>) -> sqlx::Result<Vec<u8>> {
    let of = &row.batch.of;
    sqlx::query_scalar(
        "select digest from row_key where board_id = $1 and boot = $2 and recording = $3 and series = $4 \
         and seq = $5",
    )
    .bind(row.batch.board_id)
    .bind(&of.boot)
    .bind(&of.recording)
    .bind(&of.series)
    .bind(to_i64(row.row.seq))
    .fetch_one(&mut **all)
    .await
}

async fn add_slots(
    all: &mut Transaction<'static, Any>,
    rows: &[PlacedRow<'_>],
    name: SlotName,
) -> sqlx::Result<()> {
    let places = rows.iter().flat_map(|row| {
        let seq = to_i64(row.row.seq);
        row.row.parts.iter().map(move |part| SlotPlace { board: row.batch.board_id, key: &part.key, seq })
    });
    let slots: Vec<FarmSlot> =
        rows.iter().flat_map(|row| row.row.parts.iter().map(|part| slot(row, part, name))).collect();
    put_slots(all, &places.zip(&slots).collect::<Vec<_>>()).await
}

fn slot(row: &PlacedRow<'_>, part: &RowPart, name: SlotName) -> FarmSlot {
    let wall = |mono: i64| mono.saturating_add(row.offset);
    let place = |peak: &SlotPeak| SlotPeak { max_at: peak.max_at.map(wall), ..*peak };
    let cpus: Vec<SlotPeak> = part.peaks.iter().map(place).collect();
    let worst = cpus.iter().find(|peak| Some(peak.cpu) == part.max_cpu).copied();
    FarmSlot {
        t: Tier::Slot.begin(row.t()),
        n: part.sums.n,
        missed: part.sums.missed,
        max_ns: part.sums.max_ns,
        max_cpu: worst.map(|peak| peak.cpu),
        max_at: worst.and_then(|peak| peak.max_at),
        culprit: part.culprit.clone(),
        victim: part.victim.clone(),
        run: name.of(&row.batch.of),
        invalid: false,
        cpus,
    }
}

/// Culprits of the rows.
fn culprits<'a>(rows: &'a [PlacedRow<'a>]) -> Vec<RowCulprit<'a>> {
    let mut all = Vec::new();
    for row in rows {
        let (board, t) = (row.batch.board_id, Tier::Slot.begin(row.t()));
        for part in &row.row.parts {
            all.extend(part.culprits.iter().map(|of| RowCulprit { board, key: &part.key, t, of }));
        }
    }
    all
}

/// Environments of the rows.
fn environments<'a>(rows: &'a [PlacedRow<'a>]) -> Vec<RowEnvironment<'a>> {
    let one = |row: &'a PlacedRow<'a>| {
        let (board, t) = (row.batch.board_id, Tier::Slot.begin(row.t()));
        RowEnvironment { board, env: &row.row.env, t }
    };
    rows.iter().filter(|row| !row.row.env.is_empty()).map(one).collect()
}

/// Rows that have labels.
fn labelled<'a>(rows: &'a [PlacedRow<'a>], name: SlotName) -> Vec<LabelledRow<'a>> {
    let one = |placed: &'a PlacedRow<'a>| {
        let (row, from) = (placed.row, Tier::Slot.begin(placed.t()));
        let last = placed.t().saturating_add((row.span_ns.0 - 1).div_euclid(Nanos::SECOND.0));
        let recording = name.of(&placed.batch.of);
        let to = Tier::Slot.begin(last).max(from);
        LabelledRow { board: placed.batch.board_id, recording, from, to, labels: &row.labels }
    };
    rows.iter().filter(|placed| !placed.row.labels.is_empty()).map(one).collect()
}

impl PlacedRow<'_> {
    /// Start of the row, in ns since 1970.
    fn at_ns(&self) -> i64 {
        self.row.mono_ns.0.saturating_add(self.offset)
    }

    /// Start of the row, in seconds since 1970.
    fn t(&self) -> i64 {
        self.at_ns().div_euclid(Nanos::SECOND.0)
    }
}

#[cfg(test)]
pub mod row_time_tests;
