//! Boards, and their values on the first page. At most the last slot of a series is read here, and
//! data of the future are ignored: the clock of the farm may have been ahead when they arrived.

pub mod board_settings;
pub mod names;
pub mod overview;
pub mod sent_days;
pub mod sides;

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use model::vocabulary::Command;
use model::watch::WatchSeries;

use crate::board_settings::{BoardSettings, FarmBudgets};
use crate::ingest::plausible::latest_now;
use crate::records::{DayMaximum, FarmBoard, SeriesKey, SeriesOfBoard, Tier};
use crate::store::runs::environments::differ;
use crate::store::{FarmStore, to_u64, trouble};

/// The days that a line on the first page has.
pub const DAYS: i64 = 30;
/// Upper bound of all keys of boards.
const LAST_KEY: &str = "\u{10ffff}";
/// Number of days without samples after which a series counts as no longer measured.
const STILL_DAYS: i64 = 7;

/// Boards with the values of their last run that has a machine or kernel, else their last one.
const BOARDS: &str = "select b.id, b.key, b.name, \
     (select count(*) from run r where r.board_id = s.board_id), \
     coalesce((select max(r.started) from run r where r.board_id = s.board_id \
       and r.started <= $1), 0), \
     (select count(*) from token t where t.board_id = s.board_id and t.revoked = 0), \
     coalesce((select max(t.created) from token t where t.board_id = s.board_id \
       and t.revoked = 0), 0), \
     coalesce(l.started, 0), coalesce(e.model, ''), coalesce(e.release, ''), \
     coalesce(e.preempt, ''), coalesce(e.digest, '') from board b \
     join board_setting s on s.board_id = b.id left join run l on l.board_id = s.board_id \
     and l.id = coalesce((select r.id from run r where r.board_id = s.board_id and r.started <= $2 \
     and (select x.model || x.release from environment x where x.id = r.environment_id) <> '' \
       order by r.started desc, r.id desc limit 1), \
       (select id from run where board_id = s.board_id and started <= $3 \
       order by started desc, id desc limit 1)) \
     left join environment e on e.id = l.environment_id \
     where b.key >= $4 and b.key <= $5 order by b.key";

impl FarmStore {
    /// All boards by key, each with the maxima of the last days up to its last one with samples.
    pub async fn boards(&self) -> Result<Vec<FarmBoard>> {
        self.boards_between("", LAST_KEY).await
    }

    /// All boards; only one if it is given.
    pub async fn boards_of(&self, board: Option<&str>) -> Result<Vec<FarmBoard>> {
        match board {
            Some(board) => self.boards_between(board, board).await,
            None => self.boards().await,
        }
    }

    /// Number of boards.
    pub async fn count_boards(&self) -> Result<u64> {
        let count: i64 =
            sqlx::query_scalar("select count(*) from board").fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(to_u64(count))
    }

    /// First and last key of the next boards, at most `most`.
    pub async fn next_boards(&self, after: &str, most: i64) -> Result<Option<(String, String)>> {
        let range: (Option<String>, Option<String>) = sqlx::query_as(
            "select min(k.key), max(k.key) from \
             (select key from board where key > $1 order by key limit $2) k",
        )
        .bind(after)
        .bind(most)
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(range.0.zip(range.1))
    }

    /// The boards within a range of keys.
    pub async fn boards_between(&self, first: &str, last: &str) -> Result<Vec<FarmBoard>> {
        type Row = (i64, String, String, i64, i64, i64, i64, i64, String, String, String, String);
        let now = latest_now();
        let rows = sqlx::query_as(BOARDS).bind(now).bind(now).bind(now).bind(first).bind(last);
        let rows: Vec<Row> = rows.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut days = self.days(first, last).await?;
        let mut sent = self.sent_days(&days).await?;
        let counted = self.counted_days(first, last, DAYS).await?;
        let slots = self.last_slots(first, last).await?;
        let mut settings = self.settings_with_budgets(first, last).await?;
        let mut recorded = self.recorded_now(first, last).await?;
        let mut undated = self.undated_maxima(first, last).await?;
        let board = |row: Row| {
            let (id, board, name, runs, last, tokens, enrolled, told, model, release, preempt, environment) =
                row;
            let of_runs = (model, release, preempt, environment);
            // Values of its recorder if no run has them, or if they are newer and differ.
            let is_untold = of_runs.0.is_empty() && of_runs.1.is_empty();
            let (model, release, preempt, environment) = match recorded.remove(&id) {
                Some((at, now)) if is_untold || (at > told && differ(&of_runs, &now)) => now,
                _ => of_runs,
            };
            let mut days = days.remove(&id).unwrap_or_default();
            let last_day = days.last().map_or(0, |day: &DayMaximum| day.t).max(Tier::Day.begin(last));
            let uncounted = take_uncounted(&mut days, |t| counted.get(&(id, t)).copied());
            let max_ns = days.iter().map(|day| day.max_ns).max().max(undated.remove(&id));
            let runs = to_u64(runs);
            let settings = settings(id);
            FarmBoard {
                board,
                name,
                runs,
                last,
                last_day,
                last_slot: slots.get(&id).copied().unwrap_or_default(),
                sends: tokens > 0,
                enrolled,
                model,
                release,
                preempt,
                environment,
                max_ns,
                days,
                uncounted,
                sent: sent.remove(&id).unwrap_or_default(),
                settings,
            }
        };
        Ok(rows.into_iter().map(board).collect())
    }

    /// Properties of a board by its number, with its effective budget and the latency to compare
    /// with that.
    async fn settings_with_budgets(
        &self,
        first: &str,
        last: &str,
    ) -> Result<impl FnMut(i64) -> BoardSettings> {
        let mut said = self.settings(first, last).await?;
        let budgets = self.budgets().await?;
        let has_any = budgets != FarmBudgets::default() || said.values().any(|one| one.own_budget.is_some());
        let maxima = if has_any { self.last_day_maxima(first, last).await? } else { BTreeMap::new() };
        Ok(move |id: i64| {
            let mut one = said.remove(&id).unwrap_or_default();
            budgets.apply(&mut one);
            one.max24_ns = one.budget_ns.and(maxima.get(&id).copied());
            one
        })
    }

    /// Daily maxima of the last days that each board has samples of, including invalid runs; for
    /// one board if it is given.
    async fn days(&self, first: &str, last: &str) -> Result<BTreeMap<i64, Vec<DayMaximum>>> {
        let rows: Vec<(i64, i64, i64)> = sqlx::query_as(
            "select h.board_id, h.t, max(h.max_ns) from board b join board_setting s on s.board_id = b.id \
             join hist h on h.board_id = s.board_id where h.tier = 2 and h.max_ns is not null \
             and b.key >= $1 and b.key <= $2 and h.t > $3 + \
             (select max(l.t) from hist l where l.board_id = s.board_id and l.tier = 2 and l.t <= $4) \
             and h.t <= $5 group by h.board_id, h.t order by h.board_id, h.t",
        )
        .bind(first)
        .bind(last)
        .bind(-DAYS * Tier::Day.seconds())
        .bind(latest_now())
        .bind(latest_now())
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut days: BTreeMap<i64, Vec<DayMaximum>> = BTreeMap::new();
        for (board, t, max) in rows {
            days.entry(board).or_default().push(DayMaximum { t, max_ns: Nanos(max) });
        }
        Ok(days)
    }

    /// Largest latencies of the runs without a date that count: no window of days has them.
    async fn undated_maxima(&self, first: &str, last: &str) -> Result<BTreeMap<i64, Nanos>> {
        let rows: Vec<(i64, i64)> = sqlx::query_as(
            "select r.board_id, max(r.max_ns) from board b cross join run r where b.key >= $1 \
             and b.key <= $2 and r.board_id = b.id and r.started = 0 and r.invalid = 0 \
             and r.max_ns is not null group by r.board_id",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(rows.into_iter().map(|(board, max)| (board, Nanos(max))).collect())
    }

    /// First second of the last five minutes in each board's series of its last day: one look-up in
    /// the index of slots for each series.
    async fn last_slots(&self, first: &str, last: &str) -> Result<BTreeMap<i64, i64>> {
        let rows: Vec<(i64, Option<i64>)> = sqlx::query_as(
            "select h.board_id, (select max(l.t) from slot l where l.board_id = h.board_id \
             and l.series = h.series and l.plan = h.plan and l.t <= $1) \
             from board b join board_setting s on s.board_id = b.id \
             join hist h on h.board_id = s.board_id where h.tier = 2 and b.key >= $2 and b.key <= $3 \
             and h.t = (select max(d.t) from hist d where d.board_id = s.board_id and d.tier = 2 \
             and d.t <= $4)",
        )
        .bind(latest_now())
        .bind(first)
        .bind(last)
        .bind(latest_now())
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut slots = BTreeMap::new();
        for (board, t) in rows {
            let known: &mut i64 = slots.entry(board).or_default();
            *known = t.unwrap_or_default().max(*known);
        }
        Ok(slots)
    }

    /// Series of a board: those still measured first, and of these the ones with the most days with
    /// samples. Of equal ones, thread switches and hunts are last: nothing was late in a switch,
    /// and the latencies of a hunt include its cost.
    pub async fn series(&self, board: &str) -> Result<Vec<SeriesOfBoard>> {
        let rows: Vec<(String, String, String, i64, i64)> = sqlx::query_as(
            "select h.series, h.plan, coalesce(p.words, ''), count(h.max_ns), \
             coalesce(max(case when h.max_ns is not null then h.t end), max(h.t)) from hist h \
             join board b on b.id = h.board_id left join plan p on p.series = h.series and p.plan = h.plan \
             where b.key = $1 and h.tier = 2 group by h.series, h.plan, p.words \
             order by max(h.t) desc, h.series, h.plan",
        )
        .bind(board)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(series, plan, words, days, last): (String, String, String, i64, i64)| SeriesOfBoard {
            key: SeriesKey { series, plan },
            words,
            days: to_u64(days),
            last,
        };
        let mut all: Vec<SeriesOfBoard> = rows.into_iter().map(one).collect();
        let is_past = |last: i64| last <= latest_now();
        let newest = all.iter().map(|one| one.last).filter(|last| is_past(*last)).max().unwrap_or_default();
        let gone =
            |one: &SeriesOfBoard| newest - one.last > STILL_DAYS * Tier::Day.seconds() || !is_past(one.last);
        let is_last = |one: &SeriesOfBoard| {
            let is = |name: &str| one.key.series.split(['.', '-']).next() == Some(name);
            is(WatchSeries::Switch.name()) || is(Command::Hunt.name())
        };
        all.sort_by_key(|one| (gone(one), std::cmp::Reverse(one.days), is_last(one)));
        Ok(all)
    }
}

/// Replaces maxima of days by those that count; removes and returns days without any.
fn take_uncounted(days: &mut Vec<DayMaximum>, counted: impl Fn(i64) -> Option<Option<Nanos>>) -> Vec<i64> {
    let mut uncounted = Vec::new();
    days.retain_mut(|day| {
        match counted(day.t) {
            Some(Some(max_ns)) => day.max_ns = max_ns,
            Some(None) => uncounted.push(day.t),
            None => {}
        }
        uncounted.last() != Some(&day.t)
    });
    uncounted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::store::RunRemoval;
    use crate::store::engines::on_each_engine;

    #[test]
    fn a_run_without_a_date_counts_for_the_maximum_of_its_board_and_is_on_no_day_of_it() {
        on_each_engine(async |store| {
            let max = |millis: i64| Some(Nanos(millis * 1_000_000));
            let undated = |id: &str, millis: i64, invalid: u64| {
                let mut record = recorded_run("measured", "a");
                (record.run.id, record.run.started, record.run.invalid) = (id.into(), 0, invalid);
                (record.run.max_ns, record.whole.max_ns, record.whole.t) = (max(millis), max(millis), 0);
                record.slots.clear();
                record
            };
            let board = async || store.boards().await.unwrap().remove(0);
            store.put(&undated("alone", 70, 0)).await.unwrap();
            assert_eq!(board().await.max_ns, max(70));
            let mut dated = recorded_run("hunt", "a");
            dated.run.id = "dated".into();
            store.put(&dated).await.unwrap();
            let found = board().await;
            assert_eq!((found.max_ns, found.worst_day()), (max(70), None));
            assert!(found.days.iter().all(|day| day.t > 0) && !found.days.is_empty(), "{:?}", found.days);
            // One that does not count changes nothing, nor does a smaller one.
            store.put(&undated("invalid", 90, 1)).await.unwrap();
            store.put(&undated("smaller", 1, 0)).await.unwrap();
            assert_eq!(board().await.max_ns, max(70));
        });
    }

    /// In the year 2255.
    const FAR: i64 = 9_000_000_000;

    #[test]
    fn a_run_of_the_future_moves_nothing_of_its_board_and_can_be_removed() {
        on_each_engine(async |store| {
            let record = recorded_run("hunt", "a");
            store.put(&record).await.unwrap();
            store.set_budget("", Some(Nanos(1))).await.unwrap();
            let before = store.boards().await.unwrap();
            assert!(before[0].last_seen() > 1_700_000_000 && before[0].settings.max24_ns.is_some());
            let mut future = record.clone();
            let max = Some(Nanos(9 * Nanos::SECOND.0));
            (future.run.id, future.run.started, future.run.max_ns) = ("future".into(), FAR, max);
            (future.run.key.plan, future.whole.t, future.whole.max_ns) = ("other".into(), FAR, max);
            future.environment.digest = "other".into();
            for slot in &mut future.slots {
                (slot.t, slot.run, slot.max_ns) = (FAR, "future".into(), max);
            }
            // By its five minutes, so that it has hours, too.
            future.rows = vec![crate::records::TierRow { t: FAR, ..future.whole.clone() }];
            store.put(&future).await.unwrap();
            let mut after = store.boards().await.unwrap();
            assert_eq!(std::mem::replace(&mut after[0].runs, 1), 2);
            assert_eq!(after, before);
            let series = store.series("a").await.unwrap();
            assert_eq!((series.len(), &series[0].key), (2, &record.run.key));
            let removal = store.forget_run("future", None, None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(gone) if gone.environment), "it stays");
            assert_eq!(store.boards().await.unwrap(), before);
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
        });
    }
}
