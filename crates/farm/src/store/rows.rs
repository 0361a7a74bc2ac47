//! Rows of five minutes, each once: the line is the unit, however often and in whatever cuts it
//! is sent.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use super::culprits::{RowCulprit, put_row_culprits};
use super::environments::{RowEnvironment, put_row_environments};
use super::labels::{LabelledRow, put_row_labels};
use super::many::{by_keys, pieces, values};
use super::tiers::{SlotPlace, add_to_tiers, put_slots};
use super::{FarmStore, to_i64, trouble};
use crate::ingest::rows::{ReceivedRow, RowPart, RowsOf};
use crate::records::{FarmSlot, SlotPeak, Tier};

/// The board's clocks as a request tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardClock {
    pub boot: String,
    pub mono_ns: i64,
    pub wall_ns: i64,
}

/// Rows of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBatch {
    pub board_id: i64,
    pub of: RowsOf,
    pub clock: Option<BoardClock>,
    /// The time at which it came, in ns since 1970.
    pub received_ns: i64,
    pub rows: Vec<ReceivedRow>,
}

/// What became of a request's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RowsStored {
    pub stored: u64,
    pub had: u64,
    /// Rows that are there with other content: these are not stored.
    pub seq: Vec<u64>,
    /// The first row that by its boot's clock lies in the future, counted from 0: nothing would say
    /// when it was, so that none of the request is stored.
    #[serde(skip)]
    pub future: Option<usize>,
}

/// Two clocks that differ by less are taken for the same.
const AGREE_NS: u64 = 2_000_000_000;

/// A row that lies this far in the future is not one of this time: a farm's own clock may have been
/// wrong by less when it first heard of the boot.
const FUTURE_NS: i64 = 86_400 * Nanos::SECOND.0;

/// What a slot is named after. A recording goes on over a start of its machine and its numbers
/// begin again: a board that is up again within the same five minutes has two of one number.
#[derive(Clone, Copy, Debug)]
enum SlotName {
    Recording,
    WithBoot,
}

impl SlotName {
    fn of(self, RowsOf { boot, recording, .. }: &RowsOf) -> String {
        match self {
            SlotName::Recording => recording.clone(),
            SlotName::WithBoot => format!("{recording}@{boot}"),
        }
    }
}

fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|told| told.is_unique_violation())
}

/// A boot of a board.
type BoardBoot = (i64, String);

/// A row of a request, and what its boot's CLOCK_MONOTONIC is ahead of 1970 by.
struct PlacedRow<'a> {
    request: usize,
    batch: &'a RowBatch,
    row: &'a ReceivedRow,
    offset: i64,
}

impl FarmStore {
    /// Stores the rows of requests that wait together, all or none of them: an answer for each.
    pub async fn put_rows(&self, batches: &[RowBatch]) -> Result<Vec<RowsStored>> {
        match (self.put_named(batches, SlotName::Recording).await, batches) {
            (Err(error), [_]) if is_taken(&error) => self.put_named(batches, SlotName::WithBoot).await,
            (other, _) => other,
        }
        .map_err(trouble)
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
    let (offsets, mut answers) = placed(all, batches).await?;
    let rows = batches.iter().zip(offsets).enumerate().flat_map(|(request, (batch, offset))| {
        let row = move |row| offset.map(|offset| PlacedRow { request, batch, row, offset });
        batch.rows.iter().filter_map(row)
    });
    let new = new_rows(all, rows.collect(), &mut answers).await?;
    add_slots(all, &new, name).await?;
    let mut parts = Vec::new();
    for row in &new {
        parts.extend(row.row.parts.iter().map(|part| (row.batch.board_id, &part.key, row.t(), &part.sums)));
    }
    add_to_tiers(all, &Tier::ALL, &parts).await?;
    put_row_culprits(all, &culprits(&new)).await?;
    put_row_environments(all, &environments(&new)).await?;
    put_row_labels(all, &labelled(&new, name)).await?;
    Ok(answers)
}

/// What is added to the clock of each request's boot, none where the request is refused for it. It
/// is fixed when the farm first hears of the boot, so that a row's time is the same however often
/// it is sent.
async fn placed(
    all: &mut Transaction<'static, Any>,
    batches: &[RowBatch],
) -> sqlx::Result<(Vec<Option<i64>>, Vec<RowsStored>)> {
    let boot = |batch: &RowBatch| -> BoardBoot { (batch.board_id, batch.of.boot.clone()) };
    let boots: BTreeSet<BoardBoot> = batches.iter().map(boot).collect();
    let mut known = known_offsets(all, &boots.into_iter().collect::<Vec<_>>()).await?;
    let (mut heard, mut offsets, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for batch in batches {
        let told = batch.rows.first().map(|first| offset_by(batch, first));
        let there = known.get(&boot(batch)).copied();
        let offset = there.or(told.map(|(offset, _)| offset));
        let future = offset.and_then(|offset| first_of_future(batch, offset));
        if let (None, None, Some((offset, source))) = (there, future, told) {
            known.insert(boot(batch), offset);
            heard.push((boot(batch), offset, source));
        }
        offsets.push(offset.filter(|_| future.is_none()));
        answers.push(RowsStored { future, ..RowsStored::default() });
    }
    put_boots(all, &heard).await?;
    Ok((offsets, answers))
}

fn first_of_future(batch: &RowBatch, offset: i64) -> Option<usize> {
    let latest = batch.received_ns.saturating_add(FUTURE_NS);
    batch.rows.iter().position(|row| row.mono_ns.0.saturating_add(offset) > latest)
}

async fn known_offsets(
    all: &mut Transaction<'static, Any>,
    boots: &[BoardBoot],
) -> sqlx::Result<BTreeMap<BoardBoot, i64>> {
    let mut known = BTreeMap::new();
    for piece in pieces(boots) {
        let text = by_keys("select board_id, boot, offset_ns from boot", &["board_id", "boot"], piece.len());
        let mut select = sqlx::query_as::<_, (i64, String, i64)>(AssertSqlSafe(text));
        for (board, boot) in piece {
            select = select.bind(board).bind(boot);
        }
        let found = select.fetch_all(&mut **all).await?;
        known.extend(found.into_iter().map(|(board, boot, offset)| ((board, boot), offset)));
    }
    Ok(known)
}

async fn put_boots(
    all: &mut Transaction<'static, Any>,
    boots: &[(BoardBoot, i64, &'static str)],
) -> sqlx::Result<()> {
    const BOOT: &str = "insert into boot (board_id, boot, offset_ns, source) values ";
    for piece in pieces(boots) {
        let mut insert = sqlx::query(AssertSqlSafe(values(BOOT, 4, piece.len())));
        for ((board, boot), offset, source) in piece {
            insert = insert.bind(board).bind(boot).bind(offset).bind(*source);
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// By what a request says, and by which clock.
fn offset_by(batch: &RowBatch, first: &ReceivedRow) -> (i64, &'static str) {
    match batch.clock.as_ref().filter(|clock| clock.boot == batch.of.boot) {
        Some(clock) if clock.wall_ns.abs_diff(batch.received_ns) < AGREE_NS => {
            (clock.wall_ns.saturating_sub(clock.mono_ns), "board")
        }
        Some(clock) => (batch.received_ns.saturating_sub(clock.mono_ns), "receipt"),
        // A boot that ended before it could send: only the board itself knows.
        None => (first.own_wall_ns.0.saturating_sub(first.mono_ns.0), "row"),
    }
}

/// Marks rows as stored; those that were not, and what becomes of each request's.
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
        let mut insert = sqlx::query_as::<_, RowKey>(AssertSqlSafe(text));
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
    let worst = cpus.iter().filter(|peak| peak.max_ns.is_some()).max_by_key(|peak| peak.max_ns).copied();
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

/// Who took the time in each of them.
fn culprits<'a>(rows: &'a [PlacedRow<'a>]) -> Vec<RowCulprit<'a>> {
    let mut all = Vec::new();
    for row in rows {
        let (board, t) = (row.batch.board_id, Tier::Slot.begin(row.t()));
        for part in &row.row.parts {
            let series = part.key.series.as_str();
            all.extend(part.culprits.iter().map(|of| RowCulprit { board, series, t, of }));
        }
    }
    all
}

/// What the board was in each of them.
fn environments<'a>(rows: &'a [PlacedRow<'a>]) -> Vec<RowEnvironment<'a>> {
    let one = |row: &'a PlacedRow<'a>| {
        let (board, t) = (row.batch.board_id, Tier::Slot.begin(row.t()));
        RowEnvironment { board, env: &row.row.env, t }
    };
    rows.iter().filter(|row| !row.row.env.is_empty()).map(one).collect()
}

/// Those that have labels.
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
    /// When it began, in seconds since 1970.
    fn t(&self) -> i64 {
        self.row.mono_ns.0.saturating_add(self.offset).div_euclid(Nanos::SECOND.0)
    }
}
