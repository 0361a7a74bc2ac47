//! Number of a histogram's samples that are in none of its rows.
//!
//! A run of another tool may have samples beyond its histogram, or no histogram; it counts for the
//! day of its start, so that exactly its missing samples are missing in that day, if its way of
//! counting is known. A row from a board has all its samples in its histogram, or its recorder has
//! dropped that: such a row may lack samples. Five minutes of runs lack nothing. Missing samples
//! are equal in five minutes, hour and day.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::encoding::unpack_rows;
use crate::records::{CpuRows, Tier};
use crate::store::faults::sums::{CheckedSeries, OF_NO_RUN, of_series};
use crate::store::hist::dropped::dropped_until;
use crate::store::hist::largest_left::counted;
use crate::store::trouble;

/// Runs that are looked at together.
const AT_ONCE: i64 = 200;

/// Histograms of a series: the samples of each, and those in its rows.
#[derive(Debug, Default)]
pub struct CheckedTotals {
    of: BTreeMap<(Tier, i64), CheckedTotal>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CheckedTotal {
    n: i128,
    counted: i128,
    /// See [`sum_of_rows`].
    rows: u64,
}

const OTHER_SUM: &str = "has a sum that differs from its number of samples";
const OTHER_ROWS: &str = "has rows that differ from the sum of the shorter histograms";

/// Checksum of histograms that is additive as they are, and changes if a sample moves to another
/// row or CPU.
fn sum_of_rows(cpus: &[CpuRows]) -> u64 {
    let of_row = |cpu: u64, row: u64| {
        // The mixing of splitmix64.
        let mixed = ((cpu << 32) ^ row).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut sum = 0u64;
    for one in cpus {
        for (row, count) in one.rows.iter() {
            sum = sum.wrapping_add(count.wrapping_mul(of_row(one.cpu.0.into(), row as u64)));
        }
    }
    sum
}

/// Numbers of samples that histograms may lack.
#[derive(Default)]
struct LackingSamples {
    /// For runs that count for a day, minimum and maximum.
    runs: BTreeMap<i64, (i128, i128)>,
    /// For rows of boards, maximum by five minutes.
    rows: BTreeMap<i64, i128>,
}

impl LackingSamples {
    fn of(&self, tier: Tier, t: i64) -> std::ops::RangeInclusive<i128> {
        let (least, most) = match tier {
            Tier::Day => self.runs.get(&t).copied().unwrap_or_default(),
            Tier::Slot | Tier::Hour => (0, 0),
        };
        let rows: i128 = self.rows.range(t..t.saturating_add(tier.seconds())).map(|(_, n)| *n).sum();
        least..=most + rows
    }
}

impl CheckedTotals {
    /// Notes a histogram.
    pub fn add(&mut self, tier: Tier, t: i64, n: i64, cpus: &[CpuRows]) {
        let one = CheckedTotal { n: n.into(), counted: counted(cpus).into(), rows: sum_of_rows(cpus) };
        self.of.insert((tier, t), one);
    }

    /// Histograms with an impossible number of samples in their rows, or with rows other than the
    /// sums of the shorter ones, each with its fault. Each tier is complete from a day on.
    fn wrong(
        &self,
        lacking: &LackingSamples,
        whole: &BTreeMap<Tier, i64>,
    ) -> BTreeMap<(Tier, i64), &'static str> {
        let is_wrong = |(tier, t): (Tier, i64), one: &CheckedTotal| {
            !lacking.of(tier, t).contains(&(one.n - one.counted))
        };
        let found = self.of.iter().filter(|(place, one)| is_wrong(**place, one));
        let mut found: BTreeMap<(Tier, i64), &'static str> =
            found.map(|(place, _)| (*place, OTHER_SUM)).collect();
        for (part, tier) in [(Tier::Slot, Tier::Hour), (Tier::Hour, Tier::Day)] {
            let mut sums: BTreeMap<i64, CheckedTotal> = BTreeMap::new();
            for ((_, t), one) in self.of.iter().filter(|((of, _), _)| *of == part) {
                let sum = sums.entry(tier.begin(*t)).or_default();
                sum.n += one.n;
                sum.counted += one.counted;
                sum.rows = sum.rows.wrapping_add(one.rows);
            }
            let from = whole.get(&part).max(whole.get(&tier)).copied().unwrap_or(i64::MIN);
            for (t, sum) in sums.range(from..) {
                // With other samples it has more parts than these.
                let Some(of) = self.of.get(&(tier, *t)).filter(|of| of.n == sum.n) else { continue };
                if of.counted != sum.counted {
                    found.insert((tier, *t), OTHER_SUM);
                } else if of.rows != sum.rows {
                    found.entry((tier, *t)).or_insert(OTHER_ROWS);
                }
            }
        }
        found
    }
}

/// Names the histograms of a series with other samples in their rows than there can be.
pub async fn total_faults(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
    totals: &CheckedTotals,
    faults: &mut Vec<String>,
) -> Result<()> {
    let (_, name, series, _) = key;
    let mut lacking = LackingSamples { runs: lacking_of_runs(all, key).await?, ..LackingSamples::default() };
    if totals.of.values().any(|one| one.n != one.counted) {
        lacking.rows = sent_rows(all, key).await?;
    }
    let mut whole = BTreeMap::new();
    for tier in Tier::ALL {
        if let Some(until) = dropped_until(all, tier).await.map_err(trouble)? {
            whole.insert(tier, until);
        }
    }
    for ((tier, t), what) in totals.wrong(&lacking, &whole) {
        let time = match tier {
            Tier::Slot => "five minutes",
            Tier::Hour => "hour",
            Tier::Day => "day",
        };
        faults.push(format!("{name}: the histogram of {series} of the {time} at {t} {what}"));
    }
    Ok(())
}

/// Samples in no row of the runs that count on one day, by its first second: minimum and maximum.
async fn lacking_of_runs(
    all: &mut Transaction<'static, Any>,
    key: &CheckedSeries,
) -> Result<BTreeMap<i64, (i128, i128)>> {
    let text = "select id, started, cycles, whole from run where board_id = $1 and series = $2 and plan = $3 \
                and by_rows = 0 and id > $4 order by id limit $5";
    let (mut found, mut last) = (BTreeMap::new(), String::new());
    loop {
        let runs: Vec<(String, i64, i64, Vec<u8>)> =
            of_series(text, key).bind(&last).bind(AT_ONCE).fetch_all(&mut **all).await.map_err(trouble)?;
        let Some((id, ..)) = runs.last() else { break };
        last = id.clone();
        for (_, started, cycles, whole) in runs {
            let cycles = i128::from(cycles);
            let (least, most) = match unpack_rows(&whole) {
                // Its fault is reported separately.
                None => (0, cycles),
                Some(cpus) => {
                    let lack = cycles - i128::from(counted(&cpus));
                    (lack, lack)
                }
            };
            let sum: &mut (i128, i128) = found.entry(Tier::Day.begin(started)).or_default();
            *sum = (sum.0 + least, sum.1 + most);
        }
    }
    Ok(found)
}

/// The samples of the rows that boards sent, by five minutes.
async fn sent_rows(all: &mut Transaction<'static, Any>, key: &CheckedSeries) -> Result<BTreeMap<i64, i128>> {
    let text = format!(
        "select s.t, s.n from slot s where s.board_id = $1 and s.series = $2 and s.plan = $3 and {OF_NO_RUN}"
    );
    let rows: Vec<(i64, i64)> =
        of_series(AssertSqlSafe(text), key).fetch_all(&mut **all).await.map_err(trouble)?;
    let mut found = BTreeMap::new();
    for (t, n) in rows {
        *found.entry(Tier::Slot.begin(t)).or_default() += i128::from(n);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::pack_rows;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::fixture::recorded_run;

    use crate::records::{BundleRecord, FarmSlot, SlotPeak, TierRow};
    use crate::store::engines::on_each_engine;
    use crate::store::{FarmStore, RowBatch, RunRemoval};
    use model::rows::RowCounts;
    use model::units::{Cpu, Nanos};
    use model::watch::WatchRow;

    fn of_cpu(n: u64) -> Vec<CpuRows> {
        let rows = RowCounts::of_rows([(200, n)]);
        if n > 0 { vec![CpuRows { cpu: Cpu(0), rows }] } else { Vec::new() }
    }

    /// A run of another tool, with `n` samples, of which `held` are in its histogram.
    fn import(id: &str, n: u64, held: u64) -> BundleRecord {
        let mut record = recorded_run("measured", "a");
        let max_ns = Some(Nanos(9));
        record.whole = TierRow { t: 300, n, missed: 2, max_ns, cpus: of_cpu(held) };
        record.slots.clear();
        record.rows.clear();
        record.digest = id.as_bytes().to_vec();
        let run = &mut record.run;
        (run.id, run.started, run.cycles) = (id.to_owned(), 300, n);
        (run.missed, run.max_ns) = (Some(2), max_ns);
        record
    }

    /// A run of onbeat with the histogram of five minutes.
    fn by_rows(id: &str, n: u64) -> BundleRecord {
        let mut record = import(id, n, n);
        let (max_ns, missed) = (record.run.max_ns, 2);
        let peak = SlotPeak { cpu: Cpu(0), n, missed, max_ns, ..SlotPeak::default() };
        let run = id.to_owned();
        let slot = FarmSlot { t: 300, run, n, missed, max_ns, cpus: vec![peak], ..FarmSlot::default() };
        (record.rows, record.slots) = (vec![record.whole.clone()], vec![slot]);
        record
    }

    /// Rows of five minutes, each with its samples, and with a histogram or without.
    fn batch(parts: &[(u64, bool)]) -> RowBatch {
        let line = |(seq, &(n, has_hist)): (u64, &(u64, bool))| {
            let hist = if has_hist { wakeups(n).hist } else { RowCounts::default() };
            (seq, seq as i64 * 300, vec![WatchRow { missed: 1, hist, ..wakeups(n) }])
        };
        lines_of(recording("timer"), "", (0..).zip(parts).map(line))
    }

    /// Faults after these histograms got that many samples in their rows.
    async fn damaged(store: &FarmStore, held: u64, of: &str) -> String {
        let text = format!("update hist set cpus = $1 where {of}");
        let damage = sqlx::query(AssertSqlSafe(text)).bind(pack_rows(&of_cpu(held)));
        assert_eq!(damage.execute(&store.pool).await.unwrap().rows_affected(), 1);
        store.faults().await.unwrap().join("; ")
    }

    #[test]
    fn a_day_lacks_what_its_imports_lack_to_the_sample() {
        on_each_engine(async |store| {
            for record in [import("beyond", 100, 97), import("bare", 50, 0), by_rows("own", 7)] {
                store.put(&record).await.unwrap();
                assert_eq!(store.faults().await.unwrap(), [""; 0], "{}", record.run.id);
            }
            for held in [103, 105, 157, 158, 0] {
                let told = damaged(&store, held, "tier = 2").await;
                assert!(told.contains("of the day at 0 has a sum that differs"), "{held}: {told}");
            }
            assert_eq!(damaged(&store, 104, "tier = 2").await, "");
            assert!(damaged(&store, 103, "tier = 2").await.contains("a sum that differs"));
            let told = damaged(&store, 6, "tier = 0").await;
            assert!(told.contains("of the five minutes at 300 has a sum that differs"), "{told}");
        });
    }

    #[test]
    fn rows_without_a_histogram_lack_their_samples_in_every_tier() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            store.put_rows(&[batch(&[(5, false), (3, true)])]).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            // More than may be missing, and fewer than others have of the same samples.
            assert!(damaged(&store, 4, "tier = 0 and t = 300").await.contains("of the five minutes at 300"));
            assert!(damaged(&store, 2, "tier = 0 and t = 300").await.contains("of the hour at 0"));
            assert_eq!(damaged(&store, 3, "tier = 0 and t = 300").await, "");
            assert!(damaged(&store, 2, "tier = 2").await.contains("of the day at 0"));
        });
    }

    #[test]
    fn a_sample_that_is_in_another_row_is_told_by_what_is_made_of_it() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            store.put_rows(&[batch(&[(5, true), (3, true)])]).await.unwrap();
            store.put(&by_rows("own", 7)).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let rows = |row: usize, cpu: u32| {
                let rows = RowCounts::of_rows([(200, 4), (row, 1)]);
                pack_rows(&[CpuRows { cpu: Cpu(cpu), rows }])
            };
            for damage in [rows(201, 0), rows(199, 0), rows(200, 1)] {
                let text = "update hist set cpus = $1 where series = 'timer' and tier = 0 and t = 0";
                sqlx::query(text).bind(damage).execute(&store.pool).await.unwrap();
                let told = store.faults().await.unwrap();
                assert!(
                    told.len() == 1 && told[0].contains("of the hour at 0 has rows that differ"),
                    "{told:?}"
                );
            }
            // Nothing is known of dropped five minutes.
            store.prune(Tier::Slot, 86_400).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
        });
    }

    /// A board may send rows under the very series and plan of a run.
    #[test]
    fn rows_beside_runs_of_their_series_are_no_fault() {
        on_each_engine(async |store| {
            for record in [import("whole", 40, 30), by_rows("rows", 40)] {
                store.put(&record).await.unwrap();
                let mut beside = batch(&[(5, false), (3, true)]);
                beside.board_id = store.board_for("a", "a").await.unwrap();
                let parts = beside.rows.iter_mut().flat_map(|row| &mut row.parts);
                parts.for_each(|part| part.key = record.run.key.clone());
                store.put_rows(&[beside]).await.unwrap();
                assert_eq!(store.faults().await.unwrap(), [""; 0], "{}", record.run.id);
                for column in ["n", "missed"] {
                    for (by, back) in [("+ 1", "- 1"), ("- 1", "+ 1")] {
                        let change =
                            |by: &str| format!("update hist set {column} = {column} {by} where tier = 2");
                        sqlx::query(AssertSqlSafe(change(by))).execute(&store.pool).await.unwrap();
                        assert!(!store.faults().await.unwrap().is_empty(), "{column} {by}");
                        sqlx::query(AssertSqlSafe(change(back))).execute(&store.pool).await.unwrap();
                    }
                }
                let id = &record.run.id;
                let removal = store.forget_run(id, Some(&record), None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{id}: {removal:?}");
                assert_eq!(store.faults().await.unwrap(), [""; 0], "without {id}");
                store.forget_measured().await.unwrap();
            }
        });
    }
}
