//! What was measured on which kind of machine with which kernel.

use model::error::Result;

use super::{FarmStore, nanos, to_u64, trouble};
use crate::records::KernelRecord;

/// Runs that quantiles are taken of, the latest of all.
const MOST_RUNS: i64 = 100_000;

impl FarmStore {
    /// Each kind of machine with each kernel it had, by their names. A run that does not count, or
    /// is not over, is left out.
    pub async fn kernels(&self) -> Result<Vec<KernelRecord>> {
        type Row =
            (String, String, String, String, i64, Option<i64>, Option<i64>, Option<i64>, String, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select e.model, e.release, e.preempt, r.series, r.board_id, r.length_ns, r.p9999_ns, r.max_ns, \
             r.id, b.key from run r join environment e on e.id = r.environment_id \
             join board b on b.id = r.board_id where r.invalid = 0 and r.complete = 1 \
             order by r.started desc limit $1",
        )
        .bind(MOST_RUNS)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut all: std::collections::BTreeMap<(String, String, String, String), KernelRecord> =
            std::collections::BTreeMap::new();
        for (model, release, preempt, series, board, length, p9999, max, id, key) in rows {
            let place = (model.clone(), series.clone(), release.clone(), preempt.clone());
            let known = all.entry(place).or_insert_with(|| KernelRecord {
                model,
                release,
                preempt,
                series,
                ..KernelRecord::default()
            });
            known.runs += 1;
            known.board_ids.insert(board);
            known.length_ns = known.length_ns.saturating_add(to_u64(length.unwrap_or_default()));
            known.p9999_ns.extend(nanos(p9999));
            if nanos(max) > known.max_ns {
                (known.max_ns, known.worst_run, known.worst_board) = (nanos(max), id.clone(), key);
            }
            if known.latest.len() < KernelRecord::LATEST {
                known.latest.push(id);
            }
        }
        let mut all: Vec<KernelRecord> = all.into_values().collect();
        // 6.12 comes after 6.6.
        let version = |of: &KernelRecord| -> Vec<u64> {
            of.release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
        };
        all.sort_by_cached_key(|one| (one.model.clone(), one.series.clone(), version(one)));
        Ok(all)
    }
}
