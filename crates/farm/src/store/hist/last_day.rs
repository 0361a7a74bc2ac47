//! The largest latency of each board's last 24 hours, for comparison with its budget: of data that
//! count.
//!
//! They end with the last valid sample, to the five minutes, however it is stored. A run with five
//! minutes counts by these, one without any at its start. Five minutes are stored for ever and
//! suffice, but a day of them for each board takes too long for the first page: they are read only
//! if histograms of whole hours do not suffice.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use crate::ingest::plausible::latest_now;
use crate::records::Tier;
use crate::store::{FarmStore, trouble};
use crate::wall_clock::DAY;

const HOUR: i64 = 3_600;
/// Number of days before the first requested day in which runs are searched: a run that is still on
/// then is assumed to have begun within them.
pub const LONGEST: i64 = 60;
/// Condition that a slot `x` is of no invalid run.
pub const COUNTS: &str = "not exists (select 1 from run r where r.board_id = x.board_id and \
                      r.id = x.recording and r.invalid > 0)";
/// Condition that a run `r` has five minutes: the first of them are at its start, unless its clock
/// was set.
pub const HAS_SLOTS: &str = "exists (select 1 from slot y where y.board_id = r.board_id \
                             and y.series = r.series and y.plan = r.plan and y.t > r.started - 3600 \
                             and y.t < r.started + 172800 and y.recording = r.id)";
/// Series of a board `h`.
const SERIES: &str = "(select distinct h.board_id, h.series, h.plan from hist h where h.board_id = $1 \
                      and h.tier = 2) k";

/// The histograms of a board's last hours.
struct LastHours {
    /// First second of the last day that has samples.
    day: i64,
    /// First second of the last hour that has a histogram.
    last: Option<i64>,
    /// Largest latency of the 24 hours up to and including this one.
    max: Option<i64>,
    /// Largest latency of the hour before these: in it the 24 hours up to the last sample begin.
    before: Option<i64>,
}

/// A run of a board's last days.
struct RecentRun {
    started: i64,
    /// Time of its last sample: one without five minutes has all samples at its start.
    ended: i64,
    max: Option<i64>,
    counts: bool,
    has_slots: bool,
}

impl LastHours {
    /// Largest latency, if hours and the known runs of the board suffice. Histograms from before
    /// `dropped` are gone.
    fn told(&self, runs: &[RecentRun], dropped: i64) -> Option<i64> {
        let counted = || runs.iter().filter(|run| run.counts);
        let largest = |from: i64, to: i64| {
            let within = counted().filter(|run| !run.has_slots && (from..to).contains(&run.started));
            within.filter_map(|run| run.max).max()
        };
        let Some(last) = self.last else {
            let last = counted().map(|run| run.started).max()?;
            let alone = runs.iter().all(|run| run.counts && !run.has_slots) && self.day - DAY >= dropped;
            return largest(last - DAY + 1, i64::MAX).filter(|_| alone);
        };
        let (before, end) = (last - DAY, last + HOUR);
        let max = self.max.max(largest(before + HOUR, end));
        // Histograms of hours have the samples of all runs that have five minutes.
        let of_others = runs.iter().any(|run| !run.counts && run.ended >= before);
        let is_later = |run: &RecentRun| run.ended >= end;
        let is_larger = |run: &RecentRun| run.ended >= before && run.max > max;
        let is_told = self.before <= max
            && before >= dropped
            && !of_others
            && !counted().any(|run| is_later(run) || is_larger(run));
        max.filter(|_| is_told)
    }
}

impl FarmStore {
    /// Largest latency of the 24 hours up to each board's last valid sample, for boards within a
    /// range of keys; a run without five minutes counts at its start.
    pub async fn last_day_maxima(&self, first: &str, last: &str) -> Result<BTreeMap<i64, Nanos>> {
        let dropped = self.dropped_until(Tier::Hour).await?;
        let runs = self.recent_runs(first, last).await?;
        let mut found = BTreeMap::new();
        for (board, hours) in self.last_hours(first, last).await? {
            let max = match hours.told(runs.get(&board).map(Vec::as_slice).unwrap_or_default(), dropped) {
                Some(max) => Some(max),
                None => self.last_day_by_slots(board).await?,
            };
            found.extend(max.map(|max| (board, Nanos(max))));
        }
        Ok(found)
    }

    /// The last hours of each board that has samples.
    async fn last_hours(&self, first: &str, last: &str) -> Result<Vec<(i64, LastHours)>> {
        // Board by board, so that a day of each is looked up and the index is not scanned.
        const HOURS: &str = "select s.board_id, \
             (select max(d.t) from hist d where d.board_id = s.board_id and d.tier = 2 and d.t <= $1 \
             and d.max_ns is not null), \
             (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 1 and l.t <= $2 \
             and l.max_ns is not null), \
             (select max(h.max_ns) from hist h where h.board_id = s.board_id and h.tier = 1 and h.t <= $3 \
             and h.t > $4 + (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 1 \
             and l.t <= $5 and l.max_ns is not null)), \
             (select max(h.max_ns) from hist h where h.board_id = s.board_id and h.tier = 1 \
             and h.t = $6 + (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 1 \
             and l.t <= $7 and l.max_ns is not null)) \
             from board_setting s join board b on b.id = s.board_id where b.key >= $8 and b.key <= $9";
        type Row = (i64, Option<i64>, Option<i64>, Option<i64>, Option<i64>);
        // A run in the future, stored while the clock was ahead, is not the last one.
        let latest = latest_now();
        let rows = sqlx::query_as(HOURS).bind(latest).bind(latest).bind(latest).bind(-DAY).bind(latest);
        let rows = rows.bind(-DAY).bind(latest).bind(first).bind(last);
        let rows: Vec<Row> = rows.fetch_all(&self.pool).await.map_err(trouble)?;
        let hours = |(board, day, last, max, before): Row| {
            let day = day?;
            Some((board, LastHours { day, last, max, before }))
        };
        Ok(rows.into_iter().filter_map(hours).collect())
    }

    /// Runs of the two days up to each board's last one with samples, and longer ones that began
    /// before these; some appear twice.
    async fn recent_runs(&self, first: &str, last: &str) -> Result<BTreeMap<i64, Vec<RecentRun>>> {
        type Row = (i64, i64, Option<i64>, Option<i64>, i64, i64);
        let mut found: BTreeMap<i64, Vec<RecentRun>> = BTreeMap::new();
        for (days, which) in [(2, ""), (LONGEST, " and r.length_ns >= 86400000000000")] {
            let text = format!(
                "select r.board_id, r.started, r.length_ns, r.max_ns, r.invalid, \
                 cast(case when {HAS_SLOTS} then 1 else 0 end as bigint) from board b cross join run r \
                 where b.key >= $1 and b.key <= $2 and r.board_id = b.id and r.started <= $3 \
                 and r.started > $4 + (select max(d.t) from hist d where d.board_id = b.id and d.tier = 2 \
                 and d.t <= $5 and d.max_ns is not null){which}"
            );
            let rows = sqlx::query_as(AssertSqlSafe(text)).bind(first).bind(last);
            let rows = rows.bind(latest_now()).bind(-days * DAY).bind(latest_now());
            let rows: Vec<Row> = rows.fetch_all(&self.pool).await.map_err(trouble)?;
            for (board, started, length, max, invalid, slots) in rows {
                let (counts, has_slots) = (invalid == 0, slots != 0);
                let length = length.filter(|_| has_slots || !counts).unwrap_or_default();
                let ended = started.saturating_add(length / Nanos::SECOND.0);
                found.entry(board).or_default().push(RecentRun { started, ended, max, counts, has_slots });
            }
        }
        Ok(found)
    }

    /// Largest latency of one board's last day by its five minutes, which name their runs.
    async fn last_day_by_slots(&self, board: i64) -> Result<Option<i64>> {
        let ends = format!(
            "select (select max(l.t) from (select (select x.t from slot x where x.board_id = k.board_id \
             and x.series = k.series and x.plan = k.plan and x.t <= $2 and x.max_ns is not null \
             and {COUNTS} order by x.t desc limit 1) as t from {SERIES}) l), (select max(v.started) \
             from run v where v.board_id = $3 and v.invalid = 0 and v.started <= $4)"
        );
        let latest = latest_now();
        let ends = sqlx::query_as(AssertSqlSafe(ends)).bind(board).bind(latest).bind(board).bind(latest);
        let (slot, run): (Option<i64>, Option<i64>) = ends.fetch_one(&self.pool).await.map_err(trouble)?;
        // If the last run has five minutes, these end after its start.
        let Some(about) = slot.max(run.map(|started| started - HOUR)) else { return Ok(None) };
        let runs = format!(
            "select r.started, r.max_ns from run r where r.board_id = $1 and r.invalid = 0 \
             and r.started <= $2 and r.started > $3 and not {HAS_SLOTS}"
        );
        let runs = sqlx::query_as(AssertSqlSafe(runs)).bind(board).bind(latest).bind(about - DAY);
        let runs: Vec<(i64, Option<i64>)> = runs.fetch_all(&self.pool).await.map_err(trouble)?;
        let Some(last) = runs.iter().map(|run| run.0).max().max(slot) else { return Ok(None) };
        let largest = format!(
            "select max(l.max_ns) from (select (select max(x.max_ns) from slot x \
             where x.board_id = k.board_id and x.series = k.series and x.plan = k.plan and x.t > $2 \
             and x.t <= $3 and {COUNTS}) as max_ns from {SERIES}) l"
        );
        let largest = sqlx::query_scalar(AssertSqlSafe(largest)).bind(board).bind(last - DAY).bind(last);
        let of_slots: Option<i64> = largest.fetch_one(&self.pool).await.map_err(trouble)?;
        let of_runs = runs.iter().filter(|run| run.0 > last - DAY).filter_map(|run| run.1).max();
        Ok(of_slots.max(of_runs))
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
        record.whole.t = t;
        record
    }

    /// The same without a histogram of its five minutes.
    fn without_rows(mut record: BundleRecord) -> BundleRecord {
        record.rows.clear();
        record
    }

    /// The same without any five minutes.
    fn without_slots(mut record: BundleRecord) -> BundleRecord {
        record.slots.clear();
        without_rows(record)
    }

    /// Stores data of a recorder, which has no run.
    async fn put_recorded(store: &FarmStore, record: BundleRecord) {
        store.put(&record).await.unwrap();
        sqlx::query("delete from run where id = $1").bind(&record.run.id).execute(&store.pool).await.unwrap();
    }

    async fn maximum(store: &FarmStore) -> Vec<i64> {
        store.last_day_maxima("a", "b").await.unwrap().into_values().map(|max| max.0).collect()
    }

    #[test]
    fn the_24_hours_end_at_one_time_whatever_is_measured() {
        on_each_engine(async |store| {
            // An active recorder, and runs on the day before the last.
            put_recorded(&store, run("recorder", "a", T, MILLI / 2, 0)).await;
            for (id, hours, max) in [("early", 40, 9 * MILLI), ("late", 20, MILLI)] {
                store.put(&run(id, "a", T - hours * HOUR, max, 0)).await.unwrap();
            }
            // And a board on which only a run without five minutes is as late.
            for (id, hours, max) in [("early b", 40, 9 * MILLI), ("late b", 20, MILLI)] {
                store.put(&run(id, "b", T - hours * HOUR, max, 0)).await.unwrap();
            }
            store.put(&without_slots(run("whole b", "b", T, MILLI / 2, 0))).await.unwrap();
            assert_eq!(maximum(&store).await, [MILLI, MILLI]);
        });
    }

    #[test]
    fn the_24_hours_end_with_a_sample_where_a_recorder_goes_on_and_sees_none() {
        on_each_engine(async |store| {
            put_recorded(&store, run("before", "a", T - 30 * HOUR, 9 * MILLI, 0)).await;
            put_recorded(&store, run("last", "a", T, 3 * MILLI, 0)).await;
            let mut idle = run("idle", "a", T + 30 * HOUR, 0, 0);
            (idle.slots[0].n, idle.slots[0].max_ns, idle.whole.max_ns) = (0, None, None);
            idle.rows = vec![TierRow { t: T + 30 * HOUR, ..TierRow::default() }];
            put_recorded(&store, idle).await;
            assert_eq!(maximum(&store).await, [3 * MILLI]);
            // Five minutes show it.
            store.put(&run("spoiled", "a", T + HOUR, 8 * MILLI, 1)).await.unwrap();
            assert_eq!(maximum(&store).await, [3 * MILLI]);
        });
    }

    #[test]
    fn the_24_hours_are_no_whole_hours() {
        on_each_engine(async |store| {
            put_recorded(&store, run("last", "a", T + 1_800, MILLI, 0)).await;
            put_recorded(&store, run("before", "a", T + 1_800 - DAY, 9 * MILLI, 0)).await;
            assert_eq!(maximum(&store).await, [MILLI]);
            put_recorded(&store, run("within", "a", T + 2_100 - DAY, 5 * MILLI, 0)).await;
            assert_eq!(maximum(&store).await, [5 * MILLI]);
            put_recorded(&store, run("next", "a", T + 2_100, MILLI, 0)).await;
            assert_eq!(maximum(&store).await, [MILLI]);
        });
    }

    #[test]
    fn a_run_without_five_minutes_counts_for_when_it_began() {
        on_each_engine(async |store| {
            let whole = |id: &str, hours: i64, max: i64| {
                let mut record = without_slots(run(id, "a", T + hours * HOUR, max * MILLI, 0));
                record.run.length_ns = Some(Nanos(50 * HOUR * Nanos::SECOND.0));
                record
            };
            store.put(&whole("first", -30, 9)).await.unwrap();
            store.put(&whole("second", -20, 4)).await.unwrap();
            assert_eq!(maximum(&store).await, [9 * MILLI]);
            put_recorded(&store, run("recorder", "a", T, MILLI, 0)).await;
            assert_eq!(maximum(&store).await, [4 * MILLI]);
            store.put(&whole("third", 5, 2)).await.unwrap();
            assert_eq!(maximum(&store).await, [2 * MILLI]);
            // An invalid one changes nothing.
            let mut spoiled = whole("spoiled", 90, 8);
            spoiled.run.invalid = 1;
            store.put(&spoiled).await.unwrap();
            assert_eq!(maximum(&store).await, [2 * MILLI]);
        });
    }

    #[test]
    fn a_run_with_five_minutes_counts_by_these_alone() {
        on_each_engine(async |store| {
            put_recorded(&store, run("recorder", "a", T, MILLI, 0)).await;
            let mut long = run("long", "a", T - 26 * HOUR, 9 * MILLI, 0);
            let max_ns = Some(Nanos(3 * MILLI));
            let later = FarmSlot { t: T - 20 * HOUR, max_ns, ..long.slots[0].clone() };
            long.slots.push(later);
            long.run.length_ns = Some(Nanos(7 * HOUR * Nanos::SECOND.0));
            // Its histogram is of the day on which it began.
            store.put(&without_rows(long)).await.unwrap();
            assert_eq!(maximum(&store).await, [3 * MILLI]);
            // After hourly histograms are dropped, five minutes show it.
            put_recorded(&store, run("old", "a", T - 12 * HOUR, 4 * MILLI, 0)).await;
            store.prune(Tier::Hour, T).await.unwrap();
            assert_eq!(maximum(&store).await, [4 * MILLI]);
        });
    }

    #[test]
    fn a_run_that_does_not_count_is_no_maximum_and_no_last_sample() {
        on_each_engine(async |store| {
            let maximum = async || maximum(&store).await;
            store.put(&run("early", "a", T - 20 * 3_600, 3 * MILLI, 0)).await.unwrap();
            store.put(&run("counts", "a", T, 2 * MILLI, 0)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            store.put(&run("spoiled", "a", T + 600, 9 * MILLI, 1)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            // Days later it hides nothing either.
            store.put(&run("later", "a", T + 5 * DAY, MILLI, 1)).await.unwrap();
            assert_eq!(maximum().await, [3 * MILLI]);
            store.put(&run("again", "a", T + 8 * 3_600, MILLI, 0)).await.unwrap();
            assert_eq!(maximum().await, [2 * MILLI]);
            // A board with nothing else has none.
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
