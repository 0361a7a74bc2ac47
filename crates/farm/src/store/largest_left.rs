//! The largest latency of a histogram that something was taken out of.

use model::rows::row_edges;
use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use super::how_counted::{HOW_COUNTED, join_note};
use super::last_day::HAS_SLOTS;
use super::{nanos, plain};
use crate::records::{CpuRows, SeriesKey, Tier, TierRow};

/// The samples in the rows of a histogram.
pub fn counted(cpus: &[CpuRows]) -> u64 {
    cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.rows.total()))
}

/// The largest latency that a histogram can have; what it had where some of its samples are in no
/// row, as of another tool's run.
fn largest_in(row: &TierRow) -> Option<Nanos> {
    let last = row.cpus.iter().flat_map(|cpu| cpu.rows.iter().map(|(at, _)| at)).max();
    let edge = last.filter(|_| counted(&row.cpus) == row.n).map(|last| Nanos(row_edges(last).1.0 - 1));
    edge.map_or(row.max_ns, |edge| row.max_ns.map(|most| most.min(edge)))
}

/// The largest latency of what is left in a board's histogram of a time, which still has the one of
/// before: of the slots of its time, but for those of runs that count for the day on which they
/// began, and of these runs where it is of that day; never more than it was. Of runs of which it is
/// not known how they count both are looked at, and what is beyond the last row of the histogram is
/// no part of it. Within that row it may be more than is right. A run without slots is a part of
/// its day, whatever its rows are.
pub async fn largest_left(
    all: &mut Transaction<'static, Any>,
    (board, key): (i64, &SeriesKey),
    (tier, t): (Tier, i64),
    left: &TierRow,
) -> sqlx::Result<Option<Nanos>> {
    let largest = largest_in(left);
    let end = t.saturating_add(tier.seconds());
    let of_slots = format!(
        "select max(s.max_ns) from slot s left join run r on r.board_id = s.board_id \
         and r.id = s.recording {} where s.board_id = $1 and s.series = $2 and s.plan = $3 \
         and s.t >= $4 and s.t < $5 and s.max_ns <= $6 and (r.id is null or {HOW_COUNTED} > 0 \
         or {HOW_COUNTED} < 0 and s.max_ns <= $7)",
        join_note("s.recording")
    );
    let of_runs = format!(
        "select max(r.max_ns) from run r {} where r.board_id = $1 and r.series = $2 and r.plan = $3 \
         and r.started >= $4 and r.started < $5 and r.max_ns <= $6 and ({HOW_COUNTED} = 0 \
         or {HOW_COUNTED} < 0 and (r.max_ns <= $7 or not {HAS_SLOTS}))",
        join_note("r.id")
    );
    let mut found = None;
    for text in [Some(of_slots), Some(of_runs).filter(|_| tier == Tier::Day)].into_iter().flatten() {
        let one: Option<i64> = sqlx::query_scalar(AssertSqlSafe(text))
            .bind(board)
            .bind(&key.series)
            .bind(&key.plan)
            .bind(t)
            .bind(end)
            .bind(plain(left.max_ns))
            .bind(plain(largest))
            .fetch_one(&mut **all)
            .await?;
        found = found.max(nanos(one));
    }
    Ok(found)
}
