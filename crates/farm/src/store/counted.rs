//! What was counted of the seconds of runs, for who compares files with it.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use super::how_counted::{HOW_COUNTED, join_note};
use super::large_sums::of_halves;
use super::{FarmStore, nanos, trouble};

/// The five minutes of a run, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedSeconds {
    pub n: i128,
    pub missed: i128,
    pub max_ns: Option<Nanos>,
    /// Whether it is known to count by its five minutes.
    pub by_rows: bool,
}

type SumsRow = (String, i64, i64, i64, i64, Option<i64>, i64, i64, i64);

const SUMS: &str = "cast(sum(s.n / 4294967296) as bigint), \
                    cast(sum(s.n % 4294967296) as bigint), cast(sum(s.missed / 4294967296) as bigint), \
                    cast(sum(s.missed % 4294967296) as bigint), max(s.max_ns), count(*), count(h.t)";
const HISTOGRAMS: &str = "left join hist h on h.board_id = s.board_id and h.series = s.series \
                          and h.plan = s.plan and h.tier = 0 and h.t = s.t";

/// Slots `s` of runs `r`, and the conditions on them.
struct SlotsOfRuns<'a> {
    from: &'a str,
    conditions: &'a str,
    /// What stands for `$1`.
    run: Option<&'a str>,
}

impl FarmStore {
    /// Those of all runs that have some. Each slot is looked at once, and asked for its run.
    pub async fn counted_seconds(&self) -> Result<BTreeMap<String, CountedSeconds>> {
        let of = SlotsOfRuns {
            from: "from slot s cross join run r",
            conditions: "where r.board_id = s.board_id and r.id = s.recording",
            run: None,
        };
        self.counted_seconds_in(&of).await
    }

    /// Those of one run, for which its series is looked through.
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
        let note = join_note("r.id");
        let text = format!(
            "select r.id, {SUMS}, cast(max({HOW_COUNTED}) as bigint) {from} {HISTOGRAMS} {note} {conditions} \
             group by r.id"
        );
        let query = sqlx::query_as::<_, SumsRow>(AssertSqlSafe(text));
        let query = run.iter().fold(query, |query, run| query.bind(*run));
        let rows = query.fetch_all(&self.pool).await.map_err(trouble)?;
        let shared = match rows.iter().any(|row| row.8 < 0) {
            true => self.shared(of).await?,
            false => BTreeSet::new(),
        };
        Ok(rows.into_iter().map(|row| made(row, &shared)).collect())
    }

    /// Those of these runs of which nothing was noted and that have five minutes in which others
    /// were on: whose the histograms of these are is not known.
    async fn shared(
        &self,
        SlotsOfRuns { from, conditions, run }: &SlotsOfRuns<'_>,
    ) -> Result<BTreeSet<String>> {
        let note = join_note("r.id");
        let text = format!(
            "select distinct r.id {from} {note} cross join slot o {conditions} and r.complete = 1 \
             and m.value is null and o.board_id = s.board_id and o.series = s.series and o.plan = s.plan \
             and o.t = s.t and o.recording <> s.recording"
        );
        let query = sqlx::query_scalar::<_, String>(AssertSqlSafe(text));
        let query = run.iter().fold(query, |query, run| query.bind(*run));
        let shared = query.fetch_all(&self.pool).await.map_err(trouble)?;
        Ok(shared.into_iter().collect())
    }
}

/// Nothing was noted of a run of before: it counts by its five minutes where each has a histogram
/// that is no other's.
fn made(
    (run, n, low_n, missed, low_missed, max, slots, histograms, how): SumsRow,
    shared: &BTreeSet<String>,
) -> (String, CountedSeconds) {
    let counted = CountedSeconds {
        n: of_halves(n, low_n),
        missed: of_halves(missed, low_missed),
        max_ns: nanos(max),
        by_rows: match how {
            0 => false,
            1.. => true,
            _ => histograms == slots && !shared.contains(&run),
        },
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
            // Of runs of before it was noted their histograms say it,
            sqlx::query("delete from meta where name like 'counted %'").execute(&store.pool).await.unwrap();
            assert_eq!(by_rows().await, 1);
            // where nothing else was measured in their time.
            let mut beside = recorded_run("hunt", "b");
            (beside.run.id, beside.digest) = ("beside".into(), vec![9]);
            beside.slots[0].run = "beside".into();
            store.put(&beside).await.unwrap();
            assert_eq!(by_rows().await, 0);
            let one = store.counted_seconds_of(&recorded_run("hunt", "b").run.id).await.unwrap();
            assert!(!one.by_rows && one.n > 0);
            store.forget_run("beside", None, None).await.unwrap();
            assert_eq!(by_rows().await, 1);
            store.prune(Tier::Slot, i64::MAX / 2).await.unwrap();
            assert_eq!(by_rows().await, 0);
            assert_eq!(store.counted_seconds_of("none").await.unwrap(), CountedSeconds::default());
        });
    }
}
