//! Counted seconds of runs, for comparison with files.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use crate::store::large_sums::of_halves;
use crate::store::{FarmStore, nanos, trouble};

/// The five minutes of a run, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedSeconds {
    pub n: i128,
    pub missed: i128,
    pub max_ns: Option<Nanos>,
    /// True if its samples count in the five minutes of their time, false if on its first day.
    pub by_rows: bool,
}

type SumsRow = (String, i64, i64, i64, i64, Option<i64>, i64);

const SUMS: &str = "cast(sum(s.n / 4294967296) as bigint), \
                    cast(sum(s.n % 4294967296) as bigint), cast(sum(s.missed / 4294967296) as bigint), \
                    cast(sum(s.missed % 4294967296) as bigint), max(s.max_ns), max(r.by_rows)";

/// Slots `s` of runs `r`, and the conditions on them.
struct SlotsOfRuns<'a> {
    from: &'a str,
    conditions: &'a str,
    /// Value of `$1`.
    run: Option<&'a str>,
}

impl FarmStore {
    /// Counts of all runs that have slots. Each slot is read once, and looks up its run.
    pub async fn counted_seconds(&self) -> Result<BTreeMap<String, CountedSeconds>> {
        let of = SlotsOfRuns {
            from: "from slot s cross join run r",
            conditions: "where r.board_id = s.board_id and r.id = s.recording",
            run: None,
        };
        self.counted_seconds_in(&of).await
    }

    /// Counts of one run, for which its series is scanned.
    pub async fn counted_seconds_of(&self, run: &str) -> Result<CountedSeconds> {
        let of = SlotsOfRuns {
            from: "from run r join slot s on s.board_id = r.board_id and s.series = r.series \
                   and s.plan = r.plan and s.recording = r.id",
            conditions: "where r.id = $1",
            run: Some(run),
        };
        Ok(self.counted_seconds_in(&of).await?.remove(run).unwrap_or_default())
    }

    async fn counted_seconds_in(&self, of: &SlotsOfRuns<'_>) -> Result<BTreeMap<String, CountedSeconds>> {
        let SlotsOfRuns { from, conditions, run } = of;
        let text = format!("select r.id, {SUMS} {from} {conditions} group by r.id");
        let query = sqlx::query_as::<_, SumsRow>(AssertSqlSafe(text));
        let query = run.iter().fold(query, |query, run| query.bind(*run));
        let rows = query.fetch_all(&self.pool).await.map_err(trouble)?;
        Ok(rows.into_iter().map(counted).collect())
    }
}

fn counted(row: SumsRow) -> (String, CountedSeconds) {
    let (run, n, low_n, missed, low_missed, max, by_rows) = row;
    let counted = CountedSeconds {
        n: of_halves(n, low_n),
        missed: of_halves(missed, low_missed),
        max_ns: nanos(max),
        by_rows: by_rows != 0,
    };
    (run, counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::{FarmSlot, Tier, TierRow};
    use crate::store::engines::on_each_engine;

    #[test]
    fn a_run_has_the_seconds_that_were_stored_with_it() {
        on_each_engine(async |store| {
            assert!(store.counted_seconds().await.unwrap().is_empty());
            for (name, board) in [("measured", "a"), ("hunt", "b")] {
                let mut record = recorded_run(name, board);
                if name == "hunt" {
                    assert_eq!(record.slots.len(), 1);
                    record.rows = vec![TierRow { t: record.slots[0].t, ..record.whole.clone() }];
                }
                store.put(&record).await.unwrap();
                let sums = |of: fn(&FarmSlot) -> u64| -> i128 {
                    record.slots.iter().map(|slot| i128::from(of(slot))).sum()
                };
                let wanted = CountedSeconds {
                    n: sums(|slot| slot.n),
                    missed: sums(|slot| slot.missed),
                    max_ns: record.slots.iter().filter_map(|slot| slot.max_ns).max(),
                    by_rows: !record.rows.is_empty(),
                };
                assert!(wanted.n > 0, "{name} has no seconds");
                let id = &record.run.id;
                assert_eq!(store.counted_seconds_of(id).await.unwrap(), wanted);
                assert_eq!(store.counted_seconds().await.unwrap().get(id), Some(&wanted));
            }
            let by_rows = async || {
                let counted = store.counted_seconds().await.unwrap();
                assert!(counted.values().all(|one| one.n > 0));
                counted.into_values().filter(|one| one.by_rows).count()
            };
            assert_eq!(by_rows().await, 1);
            // Even after their histograms are dropped.
            store.prune(Tier::Slot, i64::MAX / 2).await.unwrap();
            assert_eq!(by_rows().await, 1);
            assert_eq!(store.counted_seconds_of("none").await.unwrap(), CountedSeconds::default());
        });
    }
}
