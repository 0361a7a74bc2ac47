//! Faults within a table, or between two with the same counts: histograms of runs, environments,
//! and rows against their five minutes.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::text::several;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::encoding::unpack_rows;
use crate::environments::read_settings;
use crate::store::{FarmStore, to_u64, trouble};

/// Histograms that are looked at together.
const AT_ONCE: i64 = 200;

impl FarmStore {
    /// Each of these, in sentences.
    pub async fn own_faults(&self) -> Result<Vec<String>> {
        let mut faults = self.run_faults().await?;
        faults.extend(self.environment_faults().await?);
        let boards: Vec<(i64, String)> = sqlx::query_as("select id, key from board order by key")
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
        for (id, name) in boards {
            // One snapshot of both tables: rows may arrive between two reads.
            let mut all = self.snapshot().await?;
            row_faults(&mut all, id, &name, &mut faults).await?;
            all.rollback().await.map_err(trouble)?;
        }
        Ok(faults)
    }

    /// The histogram that a run has itself. An import may have less of it than it has samples, and
    /// never more.
    async fn run_faults(&self) -> Result<Vec<String>> {
        let (mut board, mut id) = (i64::MIN, String::new());
        let mut faults = Vec::new();
        loop {
            let runs: Vec<(i64, String, i64, Vec<u8>)> = sqlx::query_as(
                "select board_id, id, cycles, whole from run where (board_id, id) > ($1, $2) \
                 order by board_id, id limit $3",
            )
            .bind(board)
            .bind(&id)
            .bind(AT_ONCE)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
            let Some(last) = runs.last() else { break };
            (board, id) = (last.0, last.1.clone());
            for (_, run, cycles, whole) in runs {
                let counted = unpack_rows(&whole)
                    .map(|cpus| cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.rows.total())));
                let what = match counted {
                    None => "is damaged",
                    Some(counted) if counted > to_u64(cycles) => "has more samples than the run",
                    Some(_) => continue,
                };
                faults.push(format!("{run}: its histogram in the store {what}: restore a backup"));
            }
        }
        Ok(faults)
    }

    /// Finds environments with unreadable settings, which count as unknown.
    async fn environment_faults(&self) -> Result<Vec<String>> {
        let (mut id, mut faults) = (i64::MIN, Vec::new());
        loop {
            let all: Vec<(i64, String, String)> = sqlx::query_as(
                "select id, digest, settings from environment where id > $1 order by id limit $2",
            )
            .bind(id)
            .bind(AT_ONCE)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
            let Some(last) = all.last() else { break };
            id = last.0;
            for (_, digest, _) in all.iter().filter(|one| read_settings(&one.2).is_none()) {
                faults.push(format!(
                    "the environment {digest}: its settings in the store are damaged: restore a backup"
                ));
            }
        }
        Ok(faults)
    }
}

/// A series without the suffixes of its rows' kinds of wait, as its five minutes are named.
const BASE: &str = "replace(replace(series, '.priority', ''), '.kernel', '')";

/// Compares five minutes that belong to no run with the rows that made them, which are identified
/// by boot, recording, series and number. A row that is no longer known would count again if it is
/// sent again. The reverse is not checked: a row had no five minutes before a recorder without
/// wake-ups was known by its rows.
async fn row_faults(
    all: &mut Transaction<'static, Any>,
    board: i64,
    name: &str,
    faults: &mut Vec<String>,
) -> Result<()> {
    let text = format!(
        "select k.recording, k.base, count(*) from (select distinct recording, t, seq, {BASE} as base \
         from slot where board_id = $1) k where not exists (select 1 from run r where r.board_id = $2 \
         and r.id = k.recording) group by k.recording, k.base order by k.recording, k.base"
    );
    let slots: Vec<(String, String, i64)> = sqlx::query_as(AssertSqlSafe(text))
        .bind(board)
        .bind(board)
        .fetch_all(&mut **all)
        .await
        .map_err(trouble)?;
    let text = format!(
        "select boot, recording, series, {BASE}, count(*) from row_key where board_id = $1 \
         group by boot, recording, series"
    );
    let keys: Vec<(String, String, String, String, i64)> =
        sqlx::query_as(AssertSqlSafe(text)).bind(board).fetch_all(&mut **all).await.map_err(trouble)?;
    for (recording, lacking) in lacking_rows(&slots, keys) {
        let rows = several(lacking, "row", "rows");
        faults.push(format!(
            "{name}: {rows} of {recording} are counted in five minutes but not recorded as stored, or were \
             of a removed run: restore a backup"
        ));
    }
    Ok(())
}

/// Recordings with more five minutes than rows, and the number of missing rows.
fn lacking_rows(
    slots: &[(String, String, i64)],
    keys: Vec<(String, String, String, String, i64)>,
) -> Vec<(String, u64)> {
    let mut rows: BTreeMap<(String, String), i64> = BTreeMap::new();
    // As five minutes are named after rows, and the recordings that these may be of.
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (boot, recording, series, base, count) in keys {
        for name in [format!("{recording}@{boot}@{series}"), format!("{recording}@{boot}"), recording.clone()]
        {
            named.entry(name).or_default().insert(recording.clone());
        }
        *rows.entry((recording, base)).or_default() += count;
    }
    let mut lacking = Vec::new();
    for (name, base, count) in slots {
        let places = named.get(name).into_iter().flatten().map(|one| (one.clone(), base.clone()));
        let places: Vec<_> = places.filter(|place| rows.contains_key(place)).collect();
        match places.as_slice() {
            [] => lacking.push((name.clone(), count.unsigned_abs())),
            [one] => *rows.entry(one.clone()).or_default() -= count,
            // It may be of either.
            _ => {}
        }
    }
    let less = rows.into_iter().filter(|(_, left)| *left < 0);
    lacking.extend(less.map(|((recording, _), left)| (recording, left.unsigned_abs())));
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{named_rows, recorded_run};
    use crate::store::engines::on_each_engine;

    async fn change(store: &FarmStore, text: &str) -> Vec<String> {
        sqlx::query(AssertSqlSafe(text.to_owned())).execute(&store.pool).await.unwrap();
        store.own_faults().await.unwrap()
    }

    /// A run, and two days of rows that name two culprits; some come late, and again.
    async fn filled(store: &FarmStore) {
        store.put(&recorded_run("hunt", "a")).await.unwrap();
        for (from, to, name) in [(0, 100, "hog"), (200, 500, "zeta"), (100, 200, "hog"), (100, 150, "hog")] {
            store.put_rows(&[named_rows::batch(from, to, name, "e")]).await.unwrap();
        }
        // The same numbers after a start of the machine, and as another series.
        let mut again = named_rows::batch(0, 20, "hog", "e");
        again.of.boot = "c".into();
        store.put_rows(&[again]).await.unwrap();
        let mut other = named_rows::batch(0, 20, "hog", "e");
        other.of.series = "timer".into();
        let parts = other.rows.iter_mut().flat_map(|row| &mut row.parts);
        parts.for_each(|part| part.key.series = "timer.priority".into());
        store.put_rows(&[other]).await.unwrap();
    }

    #[test]
    fn what_was_stored_is_without_fault_and_what_was_damaged_is_told() {
        on_each_engine(async |store| {
            filled(&store).await;
            assert_eq!(store.own_faults().await.unwrap(), [""; 0]);
            let back = "update run set cycles = cycles";
            for (damage, undo, words) in [
                (
                    "update environment set settings = '{' || settings",
                    "update environment set settings = substr(settings, 2)",
                    "its settings in the store are damaged",
                ),
                ("update run set cycles = 5", back, "has more samples than the run"),
                ("delete from row_key where seq = 400", back, "a: 1 row of r "),
            ] {
                let told = change(&store, damage).await;
                assert!(told.iter().any(|line| line.contains(words)), "{damage}: {told:?}");
                change(&store, undo).await;
            }
            let damage = sqlx::query("update run set whole = $1").bind(vec![9u8, 9, 9]);
            damage.execute(&store.pool).await.unwrap();
            let told = change(&store, "delete from run where id = 'none'").await;
            assert!(
                told.iter().any(|line| line.contains("its histogram in the store is damaged")),
                "{told:?}"
            );
            let told = change(&store, "delete from run").await;
            let words = format!("of {} are counted in five minutes", recorded_run("hunt", "a").run.id);
            assert!(told.iter().any(|line| line.contains(&words)), "{told:?}");
        });
    }
}
