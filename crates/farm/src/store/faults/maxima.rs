//! Consistency of largest latencies that are stored in several places.
//!
//! Samples of a time span that are all from its five minutes have the maximum of those. Equal
//! numbers of samples prove this for five minutes and hours, to which only runs and recorders with
//! histograms of five minutes add. Days also contain whole runs without these, each on the day of
//! its start, including samples of the next; for runs stored before their way of counting was
//! recorded it is unknown. A day consists of its five minutes if its hours have as many samples, or
//! if its series has no such runs. Otherwise, or if its hours were dropped, it has at most the
//! maximum of its five minutes and of those runs that began on it: after the removal of a run it
//! may have that of any of these.
//!
//! It is not checked that a maximum is in the last row of its histogram. A line or a bundle
//! contains both and is stored without comparing them, imports may have wide rows, and another
//! tool's run may lack the row.

use std::collections::BTreeMap;

use crate::records::Tier;

/// Histograms of a series, each with the values of its five minutes.
#[derive(Debug, Default)]
pub struct SeriesMaxima {
    of: BTreeMap<(Tier, i64), TierMaximum>,
}

/// Values of a histogram, and those of its five minutes.
#[derive(Debug, Default)]
struct TierMaximum {
    n: i64,
    max_ns: Option<i64>,
    /// Samples of all five minutes, including runs that are not part of the histogram.
    slots_n: i128,
    /// Their largest latency.
    slots_max: Option<i64>,
    /// Largest latency of those with samples.
    counted_max: Option<i64>,
}

impl SeriesMaxima {
    /// Adds a histogram. All of them precede the first slot.
    pub fn add_histogram(&mut self, tier: Tier, t: i64, n: i64, max_ns: Option<i64>) {
        self.of.insert((tier, t), TierMaximum { n, max_ns, ..TierMaximum::default() });
    }

    /// Notes a slot in the histograms that are there of its time.
    pub fn add_slot(&mut self, t: i64, n: i64, max_ns: Option<i64>) {
        for tier in Tier::ALL {
            let Some(one) = self.of.get_mut(&(tier, tier.begin(t))) else { continue };
            one.slots_n += i128::from(n);
            one.slots_max = one.slots_max.max(max_ns);
            if n > 0 {
                one.counted_max = one.counted_max.max(max_ns);
            }
        }
    }

    /// Histograms with an impossible maximum, by their first seconds. `runs` has the start and the
    /// largest latency of each run of the series that may count for its day.
    pub fn wrong(&self, runs: &[(i64, Option<i64>)]) -> Vec<(Tier, i64)> {
        let mut hours: BTreeMap<i64, i128> = BTreeMap::new();
        for ((_, t), hour) in self.of.iter().filter(|((tier, _), _)| *tier == Tier::Hour) {
            *hours.entry(Tier::Day.begin(*t)).or_default() += i128::from(hour.n);
        }
        let mut began: BTreeMap<i64, Option<i64>> = BTreeMap::new();
        for (started, max_ns) in runs {
            let most = began.entry(Tier::Day.begin(*started)).or_default();
            *most = (*most).max(*max_ns);
        }
        let is_wrong = |(tier, t): (Tier, i64), one: &TierMaximum| {
            let n = i128::from(one.n);
            let (by_slots, of_runs) = match tier {
                Tier::Day => (runs.is_empty() || hours.get(&t) == Some(&n), began.get(&t).copied().flatten()),
                Tier::Slot | Tier::Hour => (true, None),
            };
            let lacks = by_slots && n == one.slots_n && one.max_ns < one.counted_max;
            lacks || one.max_ns > one.slots_max.max(of_runs)
        };
        self.of.iter().filter(|(place, one)| is_wrong(**place, one)).map(|(place, _)| *place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::fixture::recorded_run;
    use crate::ingest::rows::RowsOf;
    use crate::records::{BundleRecord, CpuRows, FarmSlot, SlotPeak, TierRow};
    use crate::store::engines::on_each_engine;
    use crate::store::{FarmStore, RowBatch, RunRemoval};
    use model::rows::{RowCounts, row_of};
    use model::units::{Cpu, Nanos};
    use model::watch::WatchRow;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 86_400;

    /// A run with such five minutes: time, number of samples, and maximum.
    fn run(id: &str, parts: &[(i64, u64, i64)]) -> BundleRecord {
        let mut record = recorded_run("measured", "a");
        let row = |&(t, n, max): &(i64, u64, i64)| {
            let rows = RowCounts::of_rows([(row_of(Nanos(max)), n)]);
            let cpus = vec![CpuRows { cpu: Cpu(0), rows }];
            TierRow { t, n, max_ns: Some(Nanos(max)), cpus, ..TierRow::default() }
        };
        let slot = |&(t, n, max): &(i64, u64, i64)| {
            let max_ns = Some(Nanos(max));
            let cpus = vec![SlotPeak { n, max_ns, ..SlotPeak::default() }];
            FarmSlot { t, n, max_ns, run: id.to_owned(), cpus, ..FarmSlot::default() }
        };
        record.rows = parts.iter().map(row).collect();
        record.slots = parts.iter().map(slot).collect();
        record.whole = TierRow { t: parts[0].0, ..TierRow::default() };
        record.rows.iter().for_each(|row| record.whole.add(row));
        let run = &mut record.run;
        (run.id, run.started, run.cycles) = (id.to_owned(), parts[0].0, record.whole.n);
        (run.max_ns, run.missed) = (record.whole.max_ns, Some(0));
        record.digest = id.as_bytes().to_vec();
        record
    }

    /// The same without histograms of its five minutes.
    fn whole_run(id: &str, parts: &[(i64, u64, i64)]) -> BundleRecord {
        let mut record = run(id, parts);
        record.rows.clear();
        record
    }

    /// A recorder's row of each hour of two days.
    fn batch(name: &str, largest: i64) -> RowBatch {
        let of = RowsOf { recording: name.into(), ..recording("timer") };
        let line = |seq: u64| {
            let max_ns = Some(Nanos(largest + seq as i64 * 7 % 48));
            (seq, seq as i64 * HOUR, vec![WatchRow { max_ns, ..wakeups(9) }])
        };
        lines_of(of, "", (0..48).map(line))
    }

    async fn change(store: &FarmStore, text: String) -> Vec<String> {
        sqlx::query(sqlx::AssertSqlSafe(text)).execute(&store.pool).await.unwrap();
        store.faults().await.unwrap()
    }

    /// With any data that count for a day, were dropped, arrived late or are invalid.
    #[test]
    fn a_store_as_it_was_written_has_no_fault() {
        on_each_engine(async |store| {
            let night = run("night", &[(DAY - 600, 9, 230), (DAY - 300, 5, 210), (DAY, 4, 900)]);
            // As many samples of the day before as it has on the next: the sums do not show it.
            let earlier = whole_run("earlier", &[(-300, 5, 800), (0, 5, 500)]);
            let whole = whole_run("whole", &[(DAY - 300, 5, 300), (DAY, 5, 450)]);
            let mut invalid = run("invalid", &[(DAY + 300, 5, 9_000)]);
            invalid.run.invalid = 1;
            let is_sound = async |step: &str| assert_eq!(store.faults().await.unwrap(), [""; 0], "{step}");
            for record in [&night, &earlier, &whole, &invalid] {
                store.put(record).await.unwrap();
                is_sound(&record.run.id).await;
            }
            store.put_rows(&[batch("first", 700)]).await.unwrap();
            is_sound("rows").await;
            for tier in [Tier::Slot, Tier::Hour] {
                assert!(store.prune(tier, DAY + 7).await.unwrap() > 0);
                is_sound("dropped").await;
                // The histograms of their time contain them only.
                store.put_rows(&[batch(&format!("late {}", tier.number()), 100)]).await.unwrap();
                is_sound("late").await;
            }
            store.put(&run("late", &[(600, 5, 100), (DAY + 600, 5, 100)])).await.unwrap();
            is_sound("a late run").await;
            for id in ["invalid", "whole"] {
                let removal = store.forget_run(id, None, None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{id}: {removal:?}");
                is_sound("removed").await;
            }
        });
    }

    #[test]
    fn a_maximum_that_was_changed_is_found() {
        on_each_engine(async |store| {
            let parts = [(DAY - 300, 5, 900), (DAY, 4, 210)];
            store.put(&run("rows", &parts)).await.unwrap();
            store.put_rows(&[batch("r", 700)]).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            for (tier, words) in
                Tier::ALL.into_iter().zip(["of the five minutes", "of the hour", "of the day"])
            {
                let of = tier.number();
                let count = "select count(*) from hist where tier = $1";
                let count: i64 = sqlx::query_scalar(count).bind(of).fetch_one(&store.pool).await.unwrap();
                for (by, back) in [("+ 1", "- 1"), ("- 1", "+ 1")] {
                    let faults =
                        change(&store, format!("update hist set max_ns = max_ns {by} where tier = {of}"))
                            .await;
                    assert_eq!(faults.len() as i64, count, "{tier:?} {by}: {faults:?}");
                    assert!(faults.iter().all(|fault| fault.contains(words)), "{tier:?} {by}: {faults:?}");
                    let back = format!("update hist set max_ns = max_ns {back} where tier = {of}");
                    assert_eq!(change(&store, back).await, [""; 0]);
                }
            }
            for by in ["+ 1", "- 1"] {
                let damage =
                    format!("update slot set max_ns = max_ns {by} where series = 'timer' and t = 3600");
                let faults = change(&store, damage).await;
                let told = faults.iter().any(|fault| {
                    fault.contains("at 3600 has a largest latency that differs from that of its")
                });
                assert!(told, "{by}: {faults:?}");
                assert!(faults.iter().any(|fault| fault.contains("of the five minutes")), "{by}: {faults:?}");
                let back = if by == "+ 1" { "- 1" } else { "+ 1" };
                let back =
                    format!("update slot set max_ns = max_ns {back} where series = 'timer' and t = 3600");
                assert_eq!(change(&store, back).await, [""; 0]);
            }
            // Without hours, a maximum that is too large is still found.
            store.prune(Tier::Slot, 9 * DAY).await.unwrap();
            store.prune(Tier::Hour, 9 * DAY).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let damage = "update hist set max_ns = 1000000 where series <> 'timer'".to_owned();
            assert_eq!(change(&store, damage).await.len(), 2);
        });
    }

    /// The largest latency of a run that counts by its five minutes is of no other day than that on
    /// which it was measured.
    #[test]
    fn a_maximum_of_the_run_s_other_day_is_found() {
        on_each_engine(async |store| {
            let night = [(DAY - 300, 5, 210), (DAY, 4, 900)];
            store.put(&run("night", &night)).await.unwrap();
            store.put(&whole_run("whole", &[(9_000, 3, 300)])).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let damage = "update hist set max_ns = 900 where tier = 2 and t = 0";
            let faults = change(&store, damage.to_owned()).await;
            assert!(faults.len() == 1 && faults[0].contains("of the day at 0 "), "{faults:?}");
        });
    }

    /// A run without histograms of five minutes has its samples on one day, even if it lasts
    /// longer: the day of its start is not compared with five minutes.
    #[test]
    fn a_day_of_whole_runs_has_at_most_the_largest_of_them() {
        on_each_engine(async |store| {
            store.put(&whole_run("whole", &[(DAY - 300, 5, 300), (DAY, 5, 950)])).await.unwrap();
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            let faults = change(&store, "update hist set max_ns = max_ns + 1".to_owned()).await;
            assert!(faults.len() == 1 && faults[0].contains("of the day at 0 "), "{faults:?}");
        });
    }
}
