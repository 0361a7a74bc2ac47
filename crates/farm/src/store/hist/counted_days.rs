//! Days with an invalid run: the largest latency of the valid data.
//!
//! The histogram of a day has the samples of all runs. Its maximum is of a valid run, or of a
//! recorder, if each invalid run has a smaller one. Otherwise it is recomputed from the five
//! minutes, which are stored by recording; a run without any counts for the day on which it began,
//! as in the histogram.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use crate::ingest::plausible::latest_now;
use crate::records::{SeriesKey, Tier};
use crate::store::hist::last_day::{COUNTS, HAS_SLOTS, LONGEST};
use crate::store::{FarmStore, nanos, trouble};
use crate::wall_clock::DAY;

/// A board, and the first second of a day.
type BoardDay = (i64, i64);

/// Largest latency of valid data by series; `None` without any.
type CountedSeries = BTreeMap<SeriesKey, Option<Nanos>>;

/// Largest latency of runs and the id of the run that has it, by series and the first second of a
/// day.
pub type WholeRuns = BTreeMap<(SeriesKey, i64), (Nanos, String)>;

/// The days whose histogram may have its maximum from an invalid run: text after `from`, with the
/// boards' keys as `$1` and `$2`, and lower bounds for the start of a run and for a day.
fn spoiled(started: &str, day: &str) -> String {
    // In this order: of most boards each run that is looked at counts.
    format!(
        "board b cross join run r cross join hist h where b.key >= $1 and b.key <= $2 \
         and r.board_id = b.id and r.invalid > 0 and r.started > {started} and h.board_id = r.board_id \
         and h.series = r.series and h.plan = r.plan and h.tier = 2 and h.t > {day} \
         and h.t > r.started - 86400 and h.t <= r.started + coalesce(r.length_ns, 0) / 1000000000 \
         and h.max_ns <= r.max_ns"
    )
}

impl FarmStore {
    /// For the last days of each board within a range of keys, the days that would be shown with
    /// the maximum of an invalid run, with the maximum of valid data over all series.
    pub async fn counted_days(
        &self,
        first: &str,
        last: &str,
        days: i64,
    ) -> Result<BTreeMap<BoardDay, Option<Nanos>>> {
        let after = |place: usize| {
            let latest = place + 1;
            format!(
                "${place} + (select max(l.t) from hist l where l.board_id = b.id and l.tier = 2 \
                 and l.t <= ${latest})"
            )
        };
        let of = spoiled(&after(3), &after(5));
        let latest = latest_now();
        let bounds = [-(days + LONGEST) * DAY, latest, -days * DAY, latest];
        let counted = self.counted_series(&of, first, last, &bounds).await?;
        if counted.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Other measurements of these days.
        let text = format!(
            "select o.board_id, o.t, o.series, o.plan, o.max_ns from (select distinct h.board_id, h.t \
             from {of}) d cross join hist o where o.board_id = d.board_id and o.t = d.t and o.tier = 2 \
             and o.max_ns is not null"
        );
        let select = sqlx::query_as(AssertSqlSafe(text)).bind(first).bind(last);
        let select = bounds.iter().fold(select, |select, bound| select.bind(*bound));
        let rows: Vec<(i64, i64, String, String, i64)> =
            select.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut all: BTreeMap<BoardDay, Option<Nanos>> = BTreeMap::new();
        for (board, t, series, plan, max) in rows {
            let known = counted.get(&(board, t)).and_then(|day| day.get(&SeriesKey { series, plan }));
            let most = all.entry((board, t)).or_default();
            *most = (*most).max(known.copied().unwrap_or(Some(Nanos(max))));
        }
        Ok(all)
    }

    /// The same for one board from a time on, with each series separate.
    pub async fn counted_days_of(
        &self,
        board: &str,
        from: i64,
    ) -> Result<BTreeMap<(SeriesKey, i64), Option<Nanos>>> {
        let bounds = [from.saturating_sub(LONGEST * DAY), from.saturating_sub(1)];
        let all = self.counted_series(&spoiled("$3", "$4"), board, board, &bounds).await?;
        let of_day = |((_, t), day): (BoardDay, CountedSeries)| {
            day.into_iter().map(move |(key, max_ns)| ((key, t), max_ns))
        };
        Ok(all.into_iter().flat_map(of_day).collect())
    }

    /// The runs of a board that count and have no five minutes, by the day on which they began,
    /// from a time on: that with the largest latency, of equal ones the last.
    pub async fn whole_runs(&self, board: &str, from: i64) -> Result<WholeRuns> {
        let text = format!(
            "select r.series, r.plan, r.started, r.max_ns, r.id from board b cross join run r \
             where b.key = $1 and r.board_id = b.id and r.started >= $2 and r.invalid = 0 \
             and r.max_ns is not null and not {HAS_SLOTS} order by r.started, r.id"
        );
        let select = sqlx::query_as(AssertSqlSafe(text)).bind(board).bind(from);
        let rows: Vec<(String, String, i64, i64, String)> =
            select.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut all = WholeRuns::new();
        for (series, plan, started, max, id) in rows {
            let day = (SeriesKey { series, plan }, Tier::Day.begin(started));
            let known = all.entry(day).or_default();
            if Nanos(max) >= known.0 {
                *known = (Nanos(max), id);
            }
        }
        Ok(all)
    }

    async fn counted_series(
        &self,
        of: &str,
        first: &str,
        last: &str,
        bounds: &[i64],
    ) -> Result<BTreeMap<BoardDay, CountedSeries>> {
        let text = format!(
            "select d.board_id, d.t, d.series, d.plan, (select max(x.max_ns) from slot x \
             where x.board_id = d.board_id and x.series = d.series and x.plan = d.plan and x.t >= d.t \
             and x.t < d.t + 86400 and {COUNTS}), (select max(v.max_ns) from run v \
             where v.board_id = d.board_id and v.series = d.series and v.plan = d.plan \
             and v.started >= d.t and v.started < d.t + 86400 and v.invalid = 0 and not exists \
             (select 1 from slot y where y.board_id = v.board_id and y.series = v.series \
             and y.plan = v.plan and y.t >= d.t and y.t < d.t + 172800 and y.recording = v.id)) \
             from (select distinct h.board_id, h.t, h.series, h.plan from {of}) d"
        );
        type Row = (i64, i64, String, String, Option<i64>, Option<i64>);
        let select = sqlx::query_as(AssertSqlSafe(text)).bind(first).bind(last);
        let select = bounds.iter().fold(select, |select, bound| select.bind(*bound));
        let rows: Vec<Row> = select.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut all: BTreeMap<BoardDay, CountedSeries> = BTreeMap::new();
        for (board, t, series, plan, of_slots, of_runs) in rows {
            let max_ns = nanos(of_slots.max(of_runs));
            all.entry((board, t)).or_default().insert(SeriesKey { series, plan }, max_ns);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::{BundleRecord, FarmBoard, FarmSlot, TierRow};
    use crate::store::engines::on_each_engine;
    use crate::store::{FarmStore, TimeStretch};

    const T: i64 = 1_795_305_600;
    const MILLI: i64 = 1_000_000;

    /// A run of such five minutes with their largest latencies; in the histogram of its day it is
    /// as a whole.
    fn run(id: &str, parts: &[(i64, i64)], invalid: u64) -> BundleRecord {
        let mut record = recorded_run("measured", "a");
        let slot = |&(t, max): &(i64, i64)| {
            let max_ns = Some(Nanos(max * MILLI));
            FarmSlot { t, n: 1, max_ns, run: id.to_owned(), ..FarmSlot::default() }
        };
        record.slots = parts.iter().map(slot).collect();
        let max_ns = record.slots.iter().filter_map(|slot| slot.max_ns).max();
        let (first, last) = (parts[0].0, parts[parts.len() - 1].0);
        record.whole = TierRow { t: first, n: 1, max_ns, ..TierRow::default() };
        record.digest = id.as_bytes().to_vec();
        let run = &mut record.run;
        (run.id, run.started, run.max_ns, run.invalid) = (id.to_owned(), first, max_ns, invalid);
        run.length_ns = Some(Nanos((last + 300 - first) * Nanos::SECOND.0));
        record
    }

    /// The same with a histogram of each of its five minutes.
    fn by_rows(mut record: BundleRecord) -> BundleRecord {
        let row = |slot: &FarmSlot| TierRow { t: slot.t, n: 1, max_ns: slot.max_ns, ..TierRow::default() };
        record.rows = record.slots.iter().map(row).collect();
        record
    }

    async fn board(store: &FarmStore) -> FarmBoard {
        store.boards().await.unwrap().remove(0)
    }

    /// Its days counted from the first, with their maxima in milliseconds.
    fn days(of: &FarmBoard) -> Vec<(i64, i64)> {
        of.days.iter().map(|day| ((day.t - T) / DAY, day.max_ns.0 / MILLI)).collect()
    }

    #[test]
    fn what_does_not_count_is_no_maximum_of_a_day_whatever_else_is_of_it() {
        on_each_engine(async |store| {
            store.put(&run("counts", &[(T, 3)], 0)).await.unwrap();
            store.put(&run("spoiled", &[(T + 600, 9)], 1)).await.unwrap();
            assert_eq!(days(&board(&store).await), [(0, 3)]);
            // Other measurements of the same day have a separate maximum.
            let mut other = run("other", &[(T, 6)], 0);
            other.run.key.plan = "other".to_owned();
            store.put(&other).await.unwrap();
            assert_eq!(days(&board(&store).await), [(0, 6)]);
            // A day with this run alone has none, and is a day with data.
            store.put(&run("alone", &[(T + DAY, 9)], 2)).await.unwrap();
            let found = board(&store).await;
            assert_eq!((days(&found), found.max_ns), (vec![(0, 6)], Some(Nanos(6 * MILLI))));
            assert_eq!((found.last_day, found.days_with_samples()), (T + DAY, vec![T, T + DAY]));
            // An invalid run with a smaller latency changes nothing.
            store.put(&run("large", &[(T + 2 * DAY, 5)], 0)).await.unwrap();
            store.put(&run("small", &[(T + 2 * DAY + 300, 1)], 1)).await.unwrap();
            // A run without known five minutes counts for its day.
            let mut without = run("without", &[(T + 3 * DAY, 4)], 0);
            without.slots.clear();
            store.put(&without).await.unwrap();
            store.put(&run("beside", &[(T + 3 * DAY + 300, 8)], 1)).await.unwrap();
            // Over midnight it is on two days.
            let night = [(T + 5 * DAY - 300, 2), (T + 5 * DAY, 9)];
            store.put(&by_rows(run("night", &night, 1))).await.unwrap();
            store.put(&by_rows(run("morning", &[(T + 5 * DAY + 600, 2)], 0))).await.unwrap();
            let found = board(&store).await;
            assert_eq!(days(&found), [(0, 6), (2, 5), (3, 4), (5, 2)]);
            assert_eq!(found.uncounted, [T + DAY, T + 4 * DAY]);
        });
    }

    #[test]
    fn of_runs_without_five_minutes_the_largest_of_each_day_is_told() {
        on_each_engine(async |store| {
            store.put(&run("slots", &[(T, 9)], 0)).await.unwrap();
            for (id, after, max, invalid) in [
                ("before", -DAY, 3, 0),
                ("first", 100, 5, 0),
                ("second", 200, 7, 0),
                ("third", 300, 7, 0),
                ("fourth", 400, 6, 0),
                ("spoiled", 500, 8, 1),
                ("next", DAY, 1, 0),
            ] {
                let mut record = run(id, &[(T + after, max)], invalid);
                record.slots.clear();
                store.put(&record).await.unwrap();
            }
            let found = store.whole_runs("a", T).await.unwrap();
            let told = found.into_iter().map(|((_, t), (max, id))| ((t - T) / DAY, max.0 / MILLI, id));
            let wanted = [(0, 7, "third".to_owned()), (1, 1, "next".to_owned())];
            assert_eq!(told.collect::<Vec<_>>(), wanted);
            assert!(store.whole_runs("b", T).await.unwrap().is_empty());
        });
    }

    #[test]
    fn the_worst_day_of_a_series_is_of_what_counts() {
        on_each_engine(async |store| {
            for (day, max, invalid) in [(0, 3, 0), (1, 4, 0), (2, 4, 0), (2, 9, 1), (3, 8, 1)] {
                let id = format!("r{day}-{invalid}");
                store.put(&run(&id, &[(T + day * DAY, max)], invalid)).await.unwrap();
            }
            let worst = async |from: i64, to: i64| -> Vec<(i64, i64)> {
                let found = store.worst_days("a", TimeStretch { from, to }).await.unwrap();
                found.into_values().map(|day| ((day.t - T) / DAY, day.max_ns.0 / MILLI)).collect()
            };
            assert_eq!(worst(i64::MIN, i64::MAX).await, [(2, 4)]);
            assert_eq!(worst(T, T + 2 * DAY).await, [(1, 4)]);
            assert_eq!(worst(T, T + DAY).await, [(0, 3)]);
            assert!(worst(T + 3 * DAY, T + 9 * DAY).await.is_empty());
        });
    }
}
