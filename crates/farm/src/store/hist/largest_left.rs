//! The largest latency of a histogram after a subtraction.

use model::units::Nanos;
use sqlx::{Any, Transaction};

use crate::records::{CpuRows, SeriesKey, Tier, TierRow};
use crate::store::{nanos, plain};

/// The samples in the rows of a histogram.
pub fn counted(cpus: &[CpuRows]) -> u64 {
    cpus.iter().fold(0, |sum, cpu| sum.saturating_add(cpu.rows.total()))
}

/// Largest latency of the rest of a board's histogram, which still has the previous one: of the
/// slots of its time, except for those of runs that count for the day on which they began, and of
/// these runs if it is of that day; never more than it was.
pub async fn largest_left(
    all: &mut Transaction<'static, Any>,
    board: i64,
    key: &SeriesKey,
    tier: Tier,
    t: i64,
    left: &TierRow,
) -> sqlx::Result<Option<Nanos>> {
    let end = t.saturating_add(tier.seconds());
    let of_slots = "select max(s.max_ns) from slot s left join run r on r.board_id = s.board_id \
         and r.id = s.recording where s.board_id = $1 and s.series = $2 and s.plan = $3 \
         and s.t >= $4 and s.t < $5 and s.max_ns <= $6 and (r.id is null or r.by_rows = 1)";
    let of_runs = "select max(max_ns) from run where board_id = $1 and series = $2 and plan = $3 \
         and started >= $4 and started < $5 and max_ns <= $6 and by_rows = 0";
    let mut found = None;
    for text in [Some(of_slots), Some(of_runs).filter(|_| tier == Tier::Day)].into_iter().flatten() {
        let one: Option<i64> = sqlx::query_scalar(text)
            .bind(board)
            .bind(&key.series)
            .bind(&key.plan)
            .bind(t)
            .bind(end)
            .bind(plain(left.max_ns))
            .fetch_one(&mut **all)
            .await?;
        found = found.max(nanos(one));
    }
    Ok(found)
}
