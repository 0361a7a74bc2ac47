//! The largest latency of each board's last 24 hours, which is held against its budget: that of
//! what counts.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;

use super::{FarmStore, trouble};
use crate::ingest::plausible::latest_now;
use crate::records::Tier;

const DAY: i64 = 86_400;
/// That a slot `x` is of no run that does not count.
pub const COUNTS: &str = "not exists (select 1 from run r where r.board_id = x.board_id and \
                      r.id = x.recording and r.invalid > 0)";

/// The last 24 hours of a board up to its last sample.
#[derive(Clone, Copy)]
struct LastDay {
    /// When that sample was,
    last: i64,
    /// and the largest latency, in ns.
    max: i64,
}

impl LastDay {
    /// Of two that were found in two ways: the later one, or both where they lie within a day.
    fn joined(self, other: LastDay) -> LastDay {
        match other.last - self.last {
            later if later >= DAY => other,
            earlier if earlier <= -DAY => self,
            _ => LastDay { last: self.last.max(other.last), max: self.max.max(other.max) },
        }
    }
}

impl FarmStore {
    /// The largest latency of the 24 hours up to each board's last sample that counts; a run
    /// without rows of five minutes counts for when it began. Of the boards from one to another by
    /// their names.
    pub async fn last_day_maxima(&self, first: &str, last: &str) -> Result<BTreeMap<i64, Nanos>> {
        // Board by board, so that the index is asked for a day of each and not read as a whole.
        const HOURS: &str = "select s.board_id, \
             (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 1 and l.t <= $1), \
             (select max(h.max_ns) from hist h where h.board_id = s.board_id and h.tier = 1 and h.t <= $2 \
             and h.t > $3 + \
             (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 1 and l.t <= $4)) \
             from board_setting s join board b on b.id = s.board_id where b.key >= $5 and b.key <= $6";
        const RUNS: &str = "select s.board_id, (select max(l.started) from run l \
             where l.board_id = s.board_id and l.invalid = 0 and l.started <= $1), \
             (select max(r.max_ns) from run r where r.board_id = s.board_id and r.invalid = 0 \
             and r.started <= $2 and r.started > $3 + (select max(l.started) from run l \
             where l.board_id = s.board_id and l.invalid = 0 and l.started <= $4)) \
             from board_setting s join board b on b.id = s.board_id where b.key >= $5 and b.key <= $6";
        let mut found = self.last_days(HOURS, first, last).await?;
        for (id, ended) in self.invalid_runs_end(first, last).await? {
            // Histograms of hours have the samples of all runs.
            if found.get(&id).is_none_or(|day| ended < day.last - DAY) {
                continue;
            }
            match self.last_day_by_slots(id).await? {
                Some(counted) => found.insert(id, counted),
                None => found.remove(&id),
            };
        }
        for (id, by_runs) in self.last_days(RUNS, first, last).await? {
            found.entry(id).and_modify(|day| *day = day.joined(by_runs)).or_insert(by_runs);
        }
        Ok(found.into_iter().map(|(id, day)| (id, Nanos(day.max))).collect())
    }

    async fn last_days(
        &self,
        statement: &'static str,
        first: &str,
        last: &str,
    ) -> Result<BTreeMap<i64, LastDay>> {
        // A run of the future, which an older version took in, is no last one.
        let latest = latest_now();
        let rows = sqlx::query_as(statement).bind(latest).bind(latest).bind(-DAY).bind(latest);
        let rows = rows.bind(first).bind(last);
        let rows: Vec<(i64, Option<i64>, Option<i64>)> = rows.fetch_all(&self.pool).await.map_err(trouble)?;
        let day =
            |(id, last, max): (i64, Option<i64>, Option<i64>)| Some((id, LastDay { last: last?, max: max? }));
        Ok(rows.into_iter().filter_map(day).collect())
    }

    /// When the last run of each board that does not count ended.
    async fn invalid_runs_end(&self, first: &str, last: &str) -> Result<Vec<(i64, i64)>> {
        sqlx::query_as(
            "select r.board_id, max(r.started + coalesce(r.length_ns, 0) / 1000000000) from run r \
             join board b on b.id = r.board_id where r.invalid > 0 and b.key >= $1 and b.key <= $2 \
             group by r.board_id",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// The last day of one board by its five minutes, which say of which run they are.
    async fn last_day_by_slots(&self, board: i64) -> Result<Option<LastDay>> {
        let last = format!(
            "select max(l.t) from (select (select x.t from slot x where x.board_id = h.board_id \
             and x.series = h.series and x.plan = h.plan and x.t <= $1 and {COUNTS} order by x.t desc \
             limit 1) as t from hist h where h.board_id = $2 and h.tier = 2 \
             group by h.board_id, h.series, h.plan) l"
        );
        let last = sqlx::query_scalar(sqlx::AssertSqlSafe(last)).bind(latest_now()).bind(board);
        let last: Option<i64> = last.fetch_one(&self.pool).await.map_err(trouble)?;
        let Some(last) = last.map(|t| Tier::Hour.begin(t)) else { return Ok(None) };
        // As many hours as of a board that has no such run.
        let from = last - DAY + Tier::Hour.seconds();
        let largest = format!(
            "select max(x.max_ns) from hist h cross join slot x where h.board_id = $1 and h.tier = 2 \
             and h.t >= $2 and x.board_id = h.board_id and x.series = h.series and x.plan = h.plan \
             and x.t >= h.t and x.t < h.t + 86400 and x.t >= $3 and {COUNTS}"
        );
        let largest = sqlx::query_scalar(sqlx::AssertSqlSafe(largest)).bind(board);
        let largest = largest.bind(Tier::Day.begin(from)).bind(from);
        let max: Option<i64> = largest.fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(max.map(|max| LastDay { last, max }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::{BundleRecord, CpuRows, FarmSlot, TierRow};
    use crate::store::engines::on_each_engine;
    use model::rows::RowCounts;
    use model::units::Cpu;

    const T: i64 = 1_795_305_600;
    const MILLI: i64 = 1_000_000;

    /// A run of five minutes, which counts or does not.
    fn run(id: &str, board: &str, t: i64, max: i64, invalid: u64) -> BundleRecord {
        let mut record = recorded_run("measured", board);
        let max_ns = Some(Nanos(max));
        record.run.id = id.to_owned();
        record.digest = id.as_bytes().to_vec();
        (record.run.started, record.run.max_ns, record.run.invalid) = (t, max_ns, invalid);
        record.run.length_ns = Some(Nanos(300 * Nanos::SECOND.0));
        let cpus = vec![CpuRows { cpu: Cpu(0), rows: RowCounts::of_rows([(200, 1)]) }];
        record.slots = vec![FarmSlot { t, n: 1, max_ns, run: id.to_owned(), ..FarmSlot::default() }];
        record.rows = vec![TierRow { t, n: 1, max_ns, cpus, ..TierRow::default() }];
        record
    }

    #[test]
    fn a_run_that_does_not_count_is_no_maximum_and_no_last_sample() {
        on_each_engine(async |store| {
            let maximum = async || -> Vec<i64> {
                let found = store.last_day_maxima("a", "b").await.unwrap();
                found.into_values().map(|max| max.0).collect()
            };
            store.put(&run("early", "a", T - 20 * 3_600, 3 * MILLI, 0)).await.unwrap();
            store.put(&run("counts", "a", T, 2 * MILLI, 0)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            store.put(&run("spoiled", "a", T + 600, 9 * MILLI, 1)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            // Days later it takes nothing away either.
            store.put(&run("later", "a", T + 5 * DAY, MILLI, 1)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            store.put(&run("again", "a", T + 8 * 3_600, MILLI, 0)).await.unwrap();
            assert_eq!(maximum().await, [2 * MILLI]);
            // One that has nothing else has none.
            store.put(&run("alone", "b", T, 9 * MILLI, 2)).await.unwrap();
            assert_eq!(maximum().await, [2 * MILLI]);
        });
    }

    #[test]
    fn a_run_that_does_not_count_makes_no_board_over_its_budget() {
        on_each_engine(async |store| {
            store.set_budget("", Some(Nanos(MILLI))).await.unwrap();
            let is_over = async || store.boards_of(Some("a")).await.unwrap()[0].settings.is_over();
            store.put(&run("spoiled", "a", T, 9 * MILLI, 1)).await.unwrap();
            assert!(!is_over().await);
            store.put(&run("within", "a", T + 900, MILLI / 2, 0)).await.unwrap();
            assert!(!is_over().await);
            store.put(&run("over", "a", T + 1_800, 2 * MILLI, 0)).await.unwrap();
            assert!(is_over().await);
        });
    }
}
