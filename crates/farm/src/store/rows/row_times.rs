//! Wall-clock times of the rows of requests, and the stored data on their boots.

use std::collections::{BTreeMap, BTreeSet};

use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::ingest::boot_clock::{AGREE_NS, BootClock, HeardBoot, RowClock};
use crate::ingest::rows::{ReceivedRow, RowsOf};
use crate::store::many::{by_keys, pieces, values};
use crate::wall_clock::DAY;

/// The board's clocks as in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardClock {
    pub boot: String,
    pub mono_ns: i64,
    pub wall_ns: i64,
    /// Time in suspend since the boot; 0 if unknown.
    pub asleep_ns: i64,
}

/// Rows of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct RowBatch {
    pub board_id: i64,
    pub of: RowsOf,
    pub clock: Option<BoardClock>,
    /// Time of receipt, in ns since 1970.
    pub received_ns: i64,
    pub rows: Vec<ReceivedRow>,
}

/// Distance from which a row in the future is refused: a smaller one may result from an error of
/// the farm's clock when it first heard of the boot.
const FUTURE_NS: i64 = DAY * Nanos::SECOND.0;

/// A boot of a board.
type BoardBoot = (i64, String);

/// Offset for each row of a request; or the index of the first one in the future.
pub type RowOffsets = Result<Vec<i64>, usize>;

/// Offsets from CLOCK_MONOTONIC to wall-clock time for each row of each request.
pub async fn place_rows(
    all: &mut Transaction<'static, Any>,
    batches: &[RowBatch],
) -> sqlx::Result<Vec<RowOffsets>> {
    let boot = |batch: &RowBatch| -> BoardBoot { (batch.board_id, batch.of.boot.clone()) };
    let boots: BTreeSet<BoardBoot> = batches.iter().map(boot).collect();
    let mut clocks = known_clocks(all, &boots.into_iter().collect::<Vec<_>>()).await?;
    let (mut changed, mut placed) = (BTreeSet::new(), Vec::new());
    for batch in batches {
        let known = clocks.get(&boot(batch)).cloned().unwrap_or_default();
        let (clock, offsets) = placed_by(known.clone(), batch);
        let future = first_of_future(batch, &offsets);
        placed.push(future.map_or(Ok(offsets), Err));
        if future.is_none() && clock != known {
            clocks.insert(boot(batch), clock);
            changed.insert(boot(batch));
        }
    }
    clocks.retain(|boot, _| changed.contains(boot));
    put_clocks(all, &clocks).await?;
    Ok(placed)
}

fn placed_by(mut clock: BootClock, batch: &RowBatch) -> (BootClock, Vec<i64>) {
    let row = |row: &ReceivedRow| RowClock { mono: row.mono_ns.0, wall: row.own_wall_ns.0 };
    let rows: Vec<RowClock> = batch.rows.iter().map(row).collect();
    let offsets = if rows.is_empty() { Vec::new() } else { clock.place(&heard(batch), &rows) };
    (clock, offsets)
}

/// Information in a request on the boot of its rows.
fn heard(batch: &RowBatch) -> HeardBoot {
    // A boot that ended before it could send: only its rows show its time.
    let Some(clock) = &batch.clock else { return HeardBoot::Over { before: batch.received_ns } };
    let (mono, asleep) = (clock.mono_ns, clock.asleep_ns);
    let is_right = clock.wall_ns.abs_diff(batch.received_ns) < AGREE_NS.unsigned_abs();
    let wall = if is_right { clock.wall_ns } else { batch.received_ns };
    let (offset, error) = (wall.saturating_sub(mono), clock.wall_ns.saturating_sub(wall));
    if clock.boot == batch.of.boot {
        HeardBoot::Now { mono, offset, error, asleep }
    } else {
        // The board was started again after it.
        HeardBoot::Over { before: offset }
    }
}

fn first_of_future(batch: &RowBatch, offsets: &[i64]) -> Option<usize> {
    let latest = batch.received_ns.saturating_add(FUTURE_NS);
    let mut times = batch.rows.iter().zip(offsets).map(|(row, offset)| row.mono_ns.0.saturating_add(*offset));
    times.position(|time| time > latest)
}

async fn known_clocks(
    all: &mut Transaction<'static, Any>,
    boots: &[BoardBoot],
) -> sqlx::Result<BTreeMap<BoardBoot, BootClock>> {
    let mut known = BTreeMap::new();
    for piece in pieces(boots) {
        let text = "select board_id, boot, offset_ns, source from boot";
        let text = by_keys(text, &["board_id", "boot"], piece.len());
        let mut select = sqlx::query_as::<_, (i64, String, i64, String)>(AssertSqlSafe(text));
        for (board, boot) in piece {
            select = select.bind(board).bind(boot);
        }
        let found = select.fetch_all(&mut **all).await?;
        let clock = |(board, boot, offset, source): (i64, String, i64, String)| {
            ((board, boot), BootClock::stored(offset, &source))
        };
        known.extend(found.into_iter().map(clock));
    }
    Ok(known)
}

async fn put_clocks(
    all: &mut Transaction<'static, Any>,
    clocks: &BTreeMap<BoardBoot, BootClock>,
) -> sqlx::Result<()> {
    const BOOT: &str = "insert into boot (board_id, boot, offset_ns, source) values ";
    let stored: Vec<(&BoardBoot, (i64, String))> =
        clocks.iter().filter_map(|(boot, clock)| Some((boot, clock.to_store()?))).collect();
    for piece in pieces(&stored) {
        let text = values(BOOT, 4, piece.len())
            + " on conflict (board_id, boot) do update set offset_ns = excluded.offset_ns, \
               source = excluded.source";
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for ((board, boot), (offset, source)) in piece {
            insert = insert.bind(board).bind(boot).bind(offset).bind(source);
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}
