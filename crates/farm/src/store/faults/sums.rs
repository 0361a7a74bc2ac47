//! Consistency of sums that are stored in several places, and removal of the finer ones.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::QueryAs;
use sqlx::{Any, AnyConnection, AssertSqlSafe, FromRow, SqlSafeStr, Transaction};

use crate::records::Tier;
use crate::store::hist::dropped::{drop_histograms, dropped_until};
use crate::store::large_sums::of_halves;
use crate::store::{FarmStore, to_u64, trouble};

/// Series to check: a board with its name, a series and a plan.
pub type CheckedSeries = (i64, String, String, String);

/// Query on a series, whose key is in its first three arguments.
pub fn of_series<'q, O>(text: impl SqlSafeStr, key: &'q CheckedSeries) -> QueryAs<'q, Any, O, AnyArguments>
where
    O: for<'r> FromRow<'r, AnyRow>,
{
    let (board, _, series, plan) = key;
    sqlx::query_as(text).bind(board).bind(series).bind(plan)
}

/// Condition that a slot `s` is of a row from a board, and of no run of its series.
pub const OF_NO_RUN: &str = "not exists (select 1 from run r where r.board_id = s.board_id \
                             and r.id = s.recording and r.series = s.series and r.plan = s.plan)";

/// Samples by day.
type Days = BTreeMap<i64, i128>;

fn plural(tier: Tier) -> &'static str {
    match tier {
        Tier::Slot => "histograms of five minutes",
        Tier::Hour => "those of hours",
        Tier::Day => "those of days",
    }
}

/// Rows are counted in their slot, hour and day: the sums are the same.
pub async fn sum_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (_, name, series, _) = key;
    let slots = slot_days(all, key, "n").await?;
    let of_runs = cycles(all, key).await?;
    let mut finer: Option<Days> = None;
    for tier in Tier::ALL {
        let days = tier_days(all, key, "n", tier).await?;
        if let (Tier::Day, Some(cycles)) = (tier, of_runs) {
            // A run without rows of five minutes counts for the day of its start, its slots for
            // their times: only the sums over all days are equal.
            let there: i128 = days.values().sum();
            if there != cycles {
                let those = plural(tier);
                faults.push(format!(
                    "{name}: the runs of {series} have {cycles} samples, but {there} in {those}"
                ));
            }
            continue;
        }
        // Rows may have arrived for a day whose other histograms were dropped before.
        let from = noted_until(all, tier).await?;
        let each: Days = slots.iter().chain(&days).map(|(day, _)| (*day, 0)).collect();
        for day in each.into_keys().filter(|day| *day >= from) {
            let (n, there) = (slots.get(&day).copied().unwrap_or_default(), days.get(&day).copied());
            let is_right = match (there, of_runs.and(finer.as_ref()).and_then(|finer| finer.get(&day))) {
                (Some(there), Some(&finer)) => there == finer,
                (Some(there), None) if of_runs.is_some() => there <= n,
                (Some(there), None) => there == n,
                // Samples are in all tiers at once, and five minutes are dropped before hours.
                (None, _) if tier == Tier::Hour => {
                    finer.as_ref().and_then(|finer| finer.get(&day)).is_none_or(|n| *n == 0)
                }
                (None, _) => of_runs.is_some(),
            };
            if !is_right {
                let (there, those) = (there.unwrap_or_default(), plural(tier));
                faults.push(format!(
                    "{name}: {series} has {n} samples on the day of {day}, but {there} in {those}"
                ));
            }
        }
        finer = Some(days.into_iter().filter(|(day, _)| *day >= from).collect());
    }
    Ok(())
}

/// Samples of a series' runs, and of rows from boards; `None` if it has such rows but no run.
async fn cycles(all: &mut Transaction<'static, Any>, key: &CheckedSeries) -> Result<Option<i128>> {
    let text = "select cycles from run where board_id = $1 and series = $2 and plan = $3";
    let found: Vec<(i64,)> = of_series(text, key).fetch_all(&mut **all).await.map_err(trouble)?;
    if found.is_empty() {
        return Ok(None);
    }
    let of_runs: i128 = found.into_iter().map(|(cycles,)| i128::from(cycles)).sum();
    Ok(Some(of_runs + sent(all, key, "n").await?))
}

/// The sum of a column of all rows that a board sent for a series.
async fn sent(all: &mut Transaction<'static, Any>, key: &CheckedSeries, column: &str) -> Result<i128> {
    let text = format!(
        "select cast(coalesce(sum(s.{column} / 4294967296), 0) as bigint), \
         cast(coalesce(sum(s.{column} % 4294967296), 0) as bigint) from slot s where s.board_id = $1 \
         and s.series = $2 and s.plan = $3 and {OF_NO_RUN}"
    );
    let (high, low): (i64, i64) =
        of_series(AssertSqlSafe(text), key).fetch_one(&mut **all).await.map_err(trouble)?;
    Ok(of_halves(high, low))
}

/// Sums of a column by day, for a table whose rows have the columns of a series.
async fn days_of(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    column: &str,
    table: &str,
) -> Result<Days> {
    let text = format!(
        "select t - ((t % 86400) + 86400) % 86400 as day, cast(sum({column} / 4294967296) as bigint), \
         cast(sum({column} % 4294967296) as bigint) from {table} \
         and board_id = $1 and series = $2 and plan = $3 group by 1"
    );
    let rows: Vec<(i64, i64, i64)> =
        of_series(AssertSqlSafe(text), key).fetch_all(&mut **all).await.map_err(trouble)?;
    Ok(rows.into_iter().map(|(day, high, low)| (day, of_halves(high, low))).collect())
}

async fn slot_days(all: &mut Transaction<'static, Any>, key: &CheckedSeries, column: &str) -> Result<Days> {
    days_of(all, key, column, "slot where 1 = 1").await
}

async fn tier_days(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    column: &str,
    tier: Tier,
) -> Result<Days> {
    days_of(all, key, column, &format!("hist where tier = {}", tier.number())).await
}

/// Missed wake-ups are added up as samples are. A run that counts by its five minutes adds their
/// sum, and any other one the number in its document, which may differ: for a series that has both,
/// days are not checked.
pub async fn missed_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (_, name, series, _) = key;
    let runs = missed_of_runs(all, key).await?;
    let by_rows = runs.iter().all(|(how, _)| *how > 0);
    let by_day = !by_rows && runs.iter().all(|(how, _)| *how == 0);
    let slots = slot_days(all, key, "missed").await?;
    let mut finer = Days::new();
    for tier in Tier::ALL {
        let (days, those) = (tier_days(all, key, "missed", tier).await?, plural(tier));
        if tier == Tier::Day && by_day {
            let of_runs: i128 = runs.iter().map(|(_, missed)| i128::from(*missed)).sum();
            let wanted = of_runs + sent(all, key, "missed").await?;
            let there: i128 = days.values().sum();
            if wanted != there {
                faults.push(format!(
                    "{name}: the runs of {series} have {wanted} missed wake-ups, but {there} in {those}"
                ));
            }
            continue;
        }
        // Rows may have arrived for a day whose other histograms were dropped before.
        let from = noted_until(all, tier).await?;
        let kept: Days = days.into_iter().filter(|(day, _)| *day >= from).collect();
        for (day, there) in &kept {
            let n = slots.get(day).copied().unwrap_or_default();
            let is_right = match (tier, finer.get(day)) {
                _ if by_rows => *there == n,
                (Tier::Hour, Some(finer)) => there == finer,
                (Tier::Slot | Tier::Hour, _) => *there <= n,
                (Tier::Day, _) => true,
            };
            if !is_right {
                faults.push(format!(
                    "{name}: {series} has {n} missed wake-ups on the day of {day}, but {there} in {those}"
                ));
            }
        }
        finer = kept;
    }
    Ok(())
}

/// Way of counting and missed wake-ups of each run of a series.
async fn missed_of_runs(all: &mut Transaction<'static, Any>, key: &CheckedSeries) -> Result<Vec<(i64, i64)>> {
    let text =
        "select by_rows, coalesce(missed, 0) from run where board_id = $1 and series = $2 and plan = $3";
    of_series(text, key).fetch_all(&mut **all).await.map_err(trouble)
}

/// The day up to which histograms of a tier were dropped.
async fn noted_until(by: &mut AnyConnection, tier: Tier) -> Result<i64> {
    Ok(dropped_until(by, tier).await.map_err(trouble)?.unwrap_or(i64::MIN))
}

impl FarmStore {
    /// The day up to which histograms of a tier were dropped.
    pub(in crate::store) async fn dropped_until(&self, tier: Tier) -> Result<i64> {
        let mut one = self.pool.acquire().await.map_err(trouble)?;
        noted_until(&mut one, tier).await
    }

    /// Drops the histograms of a tier from before a day, whole days only; returns their number.
    /// Their samples are in the next tier.
    pub async fn prune(&self, tier: Tier, before: i64) -> Result<u64> {
        let mut all = self.begin().await?;
        let dropped = drop_histograms(&mut all, tier, Tier::Day.begin(before)).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(dropped)
    }

    /// Number of histograms of a tier that [`FarmStore::prune`] would drop.
    pub async fn prunable(&self, tier: Tier, before: i64) -> Result<u64> {
        let count = sqlx::query_scalar("select count(*) from hist where tier = $1 and t < $2");
        let count = count.bind(tier.number()).bind(Tier::Day.begin(before));
        let count: i64 = count.fetch_one(&self.pool).await.map_err(trouble)?;
        Ok(to_u64(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::fixture::recorded_run;

    use crate::ingest::rows::RowsOf;
    use crate::records::{BundleRecord, CpuRows, FarmSlot, SlotPeak, TierRow};
    use crate::store::RowBatch;
    use crate::store::engines::on_each_engine;
    use model::rows::RowCounts;
    use model::units::Cpu;
    use model::watch::WatchRow;

    const DAY: i64 = 86_400;

    /// A run over midnight, with histograms of its five minutes or without.
    fn run(id: &str, has_rows: bool) -> BundleRecord {
        let mut record = recorded_run("measured", "a");
        let row = |t: i64, n: u64| {
            let rows = RowCounts::of_rows([(200, n)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t, n, missed: n / 10, cpus, ..TierRow::default() }
        };
        record.rows = [(DAY - 300, 70), (DAY, 30)].map(|(t, n)| row(t, n)).to_vec();
        let slot = |row: &TierRow| FarmSlot {
            t: row.t,
            run: id.to_owned(),
            n: row.n,
            missed: row.missed,
            cpus: vec![SlotPeak { n: row.n, missed: row.missed, ..SlotPeak::default() }],
            ..FarmSlot::default()
        };
        record.slots = record.rows.iter().map(slot).collect();
        record.whole = row(DAY - 300, 100);
        record.run.missed = Some(record.whole.missed);
        (record.run.id, record.run.cycles, record.run.started) = (id.to_owned(), 100, DAY - 300);
        if !has_rows {
            record.rows.clear();
        }
        record
    }

    #[test]
    fn sums_of_runs_with_rows_and_without_are_looked_at() {
        on_each_engine(async |store| {
            store.put(&run("with", true)).await.unwrap();
            store.put(&run("without", false)).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let change = async |text: String| {
                sqlx::query(sqlx::AssertSqlSafe(text)).execute(&store.pool).await.unwrap();
            };
            for tier in Tier::ALL {
                let of = tier.number();
                for by in ["+ 1", "- 1"] {
                    change(format!("update hist set n = n {by} where tier = {of}")).await;
                    let faults = store.faults().await.unwrap();
                    // Besides, the histograms contradict their own number.
                    let is_told = faults.iter().any(|fault| !fault.contains("has a sum that differs"));
                    assert!(is_told, "{tier:?} {by}: {faults:?}");
                    let back = if by == "+ 1" { "- 1" } else { "+ 1" };
                    change(format!("update hist set n = n {back} where tier = {of}")).await;
                }
            }
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            change("delete from hist".to_owned()).await;
            let faults = store.faults().await.unwrap();
            assert!(faults.iter().any(|fault| fault.contains("have 200 samples, but 0 in those of days")));
        });
    }

    /// A row of each of the first five minutes of two days, as sent by a board.
    fn batch(name: &str) -> RowBatch {
        let of = RowsOf { recording: name.into(), ..recording("timer") };
        let line = |seq: u64| (seq, seq as i64 * DAY, vec![WatchRow { missed: 1 + seq, ..wakeups(3 + seq) }]);
        lines_of(of, "", (0..2).map(line))
    }

    #[test]
    fn hours_that_are_gone_are_told_as_long_as_their_five_minutes_are_there() {
        on_each_engine(async |store| {
            store.put(&run("a-board", true)).await.unwrap();
            store.put_rows(&[batch("first")]).await.unwrap();
            let gone = "delete from hist where tier = 1 and t < 86400";
            sqlx::query(gone).execute(&store.pool).await.unwrap();
            let faults = store.faults().await.unwrap();
            let of_hours = faults.iter().filter(|fault| fault.ends_with("but 0 in those of hours"));
            assert_eq!((of_hours.count(), faults.len()), (2, 2), "{faults:?}");
            // Hours are dropped after them.
            store.prune(Tier::Slot, DAY).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
        });
    }

    #[test]
    fn rows_that_come_after_their_day_was_dropped_are_no_fault() {
        on_each_engine(async |store| {
            store.put(&run("a-board", true)).await.unwrap();
            store.put_rows(&[batch("first")]).await.unwrap();
            for (tier, dropped) in [(Tier::Slot, 2), (Tier::Hour, 2)] {
                assert_eq!(store.prunable(tier, DAY + 7).await.unwrap(), dropped);
                assert_eq!(store.prune(tier, DAY + 7).await.unwrap(), dropped);
                // An earlier limit restores nothing.
                assert_eq!(store.prune(tier, 7).await.unwrap(), 0);
            }
            store.put_rows(&[batch("late")]).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let damage = "update hist set n = n + 1 where series = 'timer' and tier = 1 and t >= 86400";
            sqlx::query(damage).execute(&store.pool).await.unwrap();
            assert!(store.faults().await.unwrap().join("; ").contains("hours"));
        });
    }
    #[test]
    fn missed_wakeups_that_differ_are_told() {
        on_each_engine(async |store| {
            let told = async |change: String| {
                sqlx::query(AssertSqlSafe(change)).execute(&store.pool).await.unwrap();
                store.faults().await.unwrap()
            };
            // With runs that count for their day alone, then one more by its five minutes.
            store.put(&run("without", false)).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let faults = told("update hist set missed = missed + 1 where tier = 2".to_owned()).await;
            assert!(faults.len() == 1 && faults[0].contains("10 missed wake-ups, but 11"), "{faults:?}");
            assert_eq!(told("update hist set missed = missed - 1".to_owned()).await, [""; 0]);
            store.put(&run("with", true)).await.unwrap();
            store.put_rows(&[batch("first")]).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let of_rows = "series = 'timer' and t = 86400";
            for of in [
                "slot where",
                "hist where tier = 0 and",
                "hist where tier = 1 and",
                "hist where tier = 2 and",
            ] {
                let (table, rows) = of.split_once(" where").unwrap();
                for (by, back) in [("+ 1", "- 1"), ("- 1", "+ 1")] {
                    let change =
                        |by: &str| format!("update {table} set missed = missed {by} where{rows} {of_rows}");
                    let faults = told(change(by)).await;
                    assert!(
                        faults.iter().any(|fault| fault.contains("missed wake-ups on the day")),
                        "{of} {by}"
                    );
                    assert_eq!(told(change(back)).await, [""; 0], "{of} {by}");
                }
            }
            // With both kinds of runs, the difference between five minutes and hours.
            let damage =
                "update hist set missed = missed + 1 where tier = 1 and t = 86400 and series <> 'timer'";
            let faults = told(damage.to_owned()).await;
            assert!(faults.iter().any(|fault| fault.contains("4 in those of hours")), "{faults:?}");
        });
    }
}
