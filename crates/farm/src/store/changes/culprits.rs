//! Culprits, over the fleet or on one board.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::records::{CulpritOfRun, FarmCulprit, SeriesKey, Tier};
use crate::store::large_sums::shown;
use crate::store::many::{by_keys, pieces, values};
use crate::store::{FarmStore, storable, to_u64, trouble};

/// A culprit in a recorder's line.
pub struct RowCulprit<'a> {
    pub board: i64,
    pub key: &'a SeriesKey,
    /// The five minutes that the line is of.
    pub t: i64,
    pub of: &'a CulpritOfRun,
}

/// Board, culprit, day and series.
type CulpritPlace<'a> = (i64, i64, i64, &'a str);

/// Addition to a day.
struct AddedCulprit<'a> {
    /// Name in its five minutes.
    name: String,
    /// Plans of the rows that name it.
    plans: BTreeSet<&'a str>,
    /// The five minutes; a recorder may have several lines in each.
    slots: BTreeSet<i64>,
    total: i64,
}

impl<'a> AddedCulprit<'a> {
    fn of(named: &CulpritOfRun) -> AddedCulprit<'a> {
        AddedCulprit { name: storable(&named.name), plans: BTreeSet::new(), slots: BTreeSet::new(), total: 0 }
    }

    fn add(&mut self, row: &RowCulprit<'a>) {
        self.plans.insert(row.key.plan.as_str());
        self.slots.insert(Tier::Slot.begin(row.t));
        self.total = self.total.saturating_add(row.of.total_ns.0);
    }

    /// Its five minutes between the first and the last that a day has already.
    fn between(&self, first: i64, last: i64) -> impl Iterator<Item = i64> {
        self.slots.iter().copied().filter(move |t| first < *t && *t < last)
    }
}

/// Adds new lines, before these are among the five minutes of the store.
pub async fn put_row_culprits(
    all: &mut Transaction<'static, Any>,
    rows: &[RowCulprit<'_>],
) -> sqlx::Result<()> {
    let named: BTreeMap<&str, &CulpritOfRun> =
        rows.iter().map(|row| (row.of.fingerprint.as_str(), row.of)).collect();
    let named: Vec<&CulpritOfRun> = named.into_values().collect();
    let mut ids = numbers(all, &named).await?;
    let new: Vec<&CulpritOfRun> =
        named.into_iter().filter(|one| !ids.contains_key(&one.fingerprint)).collect();
    add_named(all, &new).await?;
    ids.extend(numbers(all, &new).await?);
    let mut days: BTreeMap<CulpritPlace<'_>, AddedCulprit<'_>> = BTreeMap::new();
    for row in rows {
        let Some(&id) = ids.get(&row.of.fingerprint) else { continue };
        let place = (row.board, id, Tier::Day.begin(row.t), row.key.series.as_str());
        days.entry(place).or_insert_with(|| AddedCulprit::of(row.of)).add(row);
    }
    let days: Vec<_> = days.into_iter().collect();
    let counted = counted_before(all, &days).await?;
    add_days(all, &days, &counted).await
}

/// Number of each day's five minutes that were counted by an earlier request, in any order of rows.
/// The first and the last of a day are stored; those between, if rows are late, are found by the
/// culprit that the store's five minutes name for their largest latency.
async fn counted_before(
    all: &mut Transaction<'static, Any>,
    days: &[(CulpritPlace<'_>, AddedCulprit<'_>)],
) -> sqlx::Result<Vec<usize>> {
    let ends = ends_of_days(all, days).await?;
    let ends_of = |(board, culprit, t, series): &CulpritPlace<'_>| {
        ends.get(&(*board, *culprit, *t, (*series).to_owned())).copied()
    };
    let mut late: BTreeMap<(i64, &str, &str), (i64, i64)> = BTreeMap::new();
    for (place, day) in days {
        let Some(ends) = ends_of(place) else { continue };
        let between = || day.between(ends.0, ends.1);
        let (Some(first), Some(last)) = (between().min(), between().max()) else { continue };
        for plan in &day.plans {
            let (from, to) = late.entry((place.0, place.3, *plan)).or_insert((first, last));
            (*from, *to) = (first.min(*from), last.max(*to));
        }
    }
    let mut named: BTreeSet<(i64, &str, i64, String)> = BTreeSet::new();
    for ((board, series, plan), (from, to)) in late {
        let rows: Vec<(i64, String)> = sqlx::query_as(
            "select distinct t, culprit from slot where board_id = $1 and series = $2 and plan = $3 \
             and t >= $4 and t <= $5 and culprit <> ''",
        )
        .bind(board)
        .bind(series)
        .bind(plan)
        .bind(from)
        .bind(to)
        .fetch_all(&mut **all)
        .await?;
        named.extend(rows.into_iter().map(|(t, culprit)| (board, series, t, culprit)));
    }
    let counted = |(place, day): &(CulpritPlace<'_>, AddedCulprit<'_>)| {
        let Some(ends) = ends_of(place) else { return 0 };
        let is_named = |t: &i64| named.contains(&(place.0, place.3, *t, day.name.clone()));
        let at_ends = BTreeSet::from([ends.0, ends.1]);
        at_ends.intersection(&day.slots).count() + day.between(ends.0, ends.1).filter(is_named).count()
    };
    Ok(days.iter().map(counted).collect())
}

/// The first and the last five minutes of the days that are there.
async fn ends_of_days(
    all: &mut Transaction<'static, Any>,
    days: &[(CulpritPlace<'_>, AddedCulprit<'_>)],
) -> sqlx::Result<BTreeMap<(i64, i64, i64, String), (i64, i64)>> {
    const DAY: &str = "select board_id, culprit_id, t, series, from_t, to_t from culprit_day";
    let mut found = BTreeMap::new();
    for piece in pieces(days) {
        let text = by_keys(DAY, &["board_id", "culprit_id", "t", "series"], piece.len());
        let mut select = sqlx::query_as::<_, (i64, i64, i64, String, i64, i64)>(AssertSqlSafe(text));
        for ((board, culprit, t, series), _) in piece {
            select = select.bind(*board).bind(*culprit).bind(*t).bind(*series);
        }
        for (board, culprit, t, series, first, last) in select.fetch_all(&mut **all).await? {
            found.insert((board, culprit, t, series), (first, last));
        }
    }
    Ok(found)
}

/// Numbers of the stored ones, by their fingerprints.
async fn numbers(
    all: &mut Transaction<'static, Any>,
    of: &[&CulpritOfRun],
) -> sqlx::Result<BTreeMap<String, i64>> {
    let mut found = BTreeMap::new();
    for piece in pieces(of) {
        let text = by_keys("select fingerprint, id from culprit", &["fingerprint"], piece.len());
        let mut select = sqlx::query_as::<_, (String, i64)>(AssertSqlSafe(text));
        for one in piece {
            select = select.bind(&one.fingerprint);
        }
        found.extend(select.fetch_all(&mut **all).await?);
    }
    Ok(found)
}

async fn add_named(all: &mut Transaction<'static, Any>, of: &[&CulpritOfRun]) -> sqlx::Result<()> {
    const CULPRIT: &str = "insert into culprit (fingerprint, rule, name, kind, remedy) values ";
    for piece in pieces(of) {
        let mut insert = sqlx::query(AssertSqlSafe(values(CULPRIT, 5, piece.len())));
        for one in piece {
            insert = insert.bind(&one.fingerprint).bind(storable(&one.rule)).bind(storable(&one.name));
            insert = insert.bind(storable(&one.kind)).bind(storable(&one.remedy));
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// Adds to days, each of which occurs once, without five minutes that were counted before.
async fn add_days(
    all: &mut Transaction<'static, Any>,
    days: &[(CulpritPlace<'_>, AddedCulprit<'_>)],
    counted: &[usize],
) -> sqlx::Result<()> {
    const DAY: &str = "insert into culprit_day (board_id, culprit_id, t, series, slots, total_ns, from_t, \
                       to_t) values ";
    let days: Vec<_> = days.iter().zip(counted).collect();
    for piece in pieces(&days) {
        let text = values(DAY, 8, piece.len())
            + " on conflict (board_id, culprit_id, t, series) do update set \
               slots = culprit_day.slots + excluded.slots, \
               total_ns = culprit_day.total_ns + excluded.total_ns, \
               from_t = case when excluded.from_t < culprit_day.from_t then excluded.from_t \
                else culprit_day.from_t end, \
               to_t = case when excluded.to_t > culprit_day.to_t then excluded.to_t \
                else culprit_day.to_t end";
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for (((board, culprit, t, series), day), counted) in piece {
            insert = insert.bind(*board).bind(*culprit).bind(*t).bind(*series);
            let (first, last) = (day.slots.first().copied(), day.slots.last().copied());
            insert = insert.bind((day.slots.len() - *counted) as i64).bind(day.total);
            insert = insert.bind(first.unwrap_or_default()).bind(last.unwrap_or_default());
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

impl FarmStore {
    /// Culprits with the largest total time first; of one board if it is given.
    pub async fn culprits(&self, board: Option<&str>, most: i64) -> Result<Vec<FarmCulprit>> {
        let of = |place: usize| format!("where board_id = (select id from board where key = ${place})");
        match board {
            Some(board) => self.culprits_of(&[of(1), of(2)], board, most).await,
            None => self.culprits_of(&[String::new(), String::new()], "", most).await,
        }
    }

    /// One culprit, by its fingerprint.
    pub async fn culprit(&self, fingerprint: &str) -> Result<Option<FarmCulprit>> {
        let of = |place: usize| {
            format!("where culprit_id = (select id from culprit where fingerprint = ${place})")
        };
        Ok(self.culprits_of(&[of(1), of(2)], fingerprint, 1).await?.pop())
    }

    /// Culprits of runs and of days that meet these conditions, with `asked` as their argument.
    async fn culprits_of(&self, of: &[String; 2], asked: &str, most: i64) -> Result<Vec<FarmCulprit>> {
        type Row =
            (String, String, String, String, String, i64, i64, i64, i64, i64, i64, i64, i64, i64, String);
        let [runs, days] = of;
        let limit = if runs.is_empty() { 1 } else { 3 };
        // A wake-up is in several series of a recorder.
        let text = format!(
            "select c.fingerprint, c.rule, c.name, c.kind, c.remedy, count(distinct k.board_id), \
             cast(sum(k.runs) as bigint), cast(sum(k.spikes) as bigint), cast(sum(k.spikes_low) as bigint), \
             cast(sum(k.slots) as bigint), cast(sum(k.total) as bigint), cast(sum(k.total_low) as bigint), \
             min(k.first), max(k.last), max(k.run) from culprit c join \
             (select board_id, culprit_id, count(*) as runs, sum(spikes / 4294967296) as spikes, \
              sum(spikes % 4294967296) as spikes_low, 0 as slots, sum(total_ns / 4294967296) as total, \
              sum(total_ns % 4294967296) as total_low, min(t) as first, max(t) as last, max(run) as run \
              from culprit_run {runs} group by board_id, culprit_id union all \
              select board_id, culprit_id, 0, 0, 0, sum(slots), sum(total / 4294967296), \
              sum(total % 4294967296), min(first), max(last), '' from \
              (select board_id, culprit_id, max(slots) as slots, max(total_ns) as total, \
               min(from_t) as first, max(to_t) as last from culprit_day {days} \
               group by board_id, culprit_id, t) d group by board_id, culprit_id) k \
             on k.culprit_id = c.id group by c.fingerprint, c.rule, c.name, c.kind, c.remedy \
             order by sum(k.total) + sum(k.total_low) / 4294967296 desc, sum(k.total_low) desc, \
             c.fingerprint limit ${limit}"
        );
        let mut select = sqlx::query_as::<_, Row>(AssertSqlSafe(text));
        if limit > 1 {
            select = select.bind(asked).bind(asked);
        }
        let rows = select.bind(most).fetch_all(&self.pool).await.map_err(trouble)?;
        let one = |row: Row| {
            let (
                fingerprint,
                rule,
                name,
                kind,
                remedy,
                boards,
                runs,
                spikes,
                spikes_low,
                slots,
                total,
                total_low,
                first,
                last,
                example,
            ) = row;
            FarmCulprit {
                fingerprint,
                remedy: remedy_of(&rule, remedy),
                rule,
                name,
                kind,
                boards: to_u64(boards),
                runs: to_u64(runs),
                spikes: to_u64(shown(spikes, spikes_low)),
                total_ns: Nanos(shown(total, total_low)),
                first,
                last,
                example,
                five_minutes: to_u64(slots),
            }
        };
        Ok(rows.into_iter().map(one).collect())
    }
}

/// Remedy for any board: the one in a run may contain the PID and the CPUs of that run.
fn remedy_of(rule: &str, of_run: String) -> String {
    rules::culprits::find(rule).map_or(of_run, |known| known.remedy.to_owned())
}

#[cfg(test)]
mod tests {

    use crate::fixture::named_rows::{lines_of, named, recording};

    use crate::store::RowBatch;
    use crate::store::engines::on_each_engine;

    /// Rows of a minute each by their numbers: the last one of each five minutes names another
    /// culprit.
    fn minutes(board_id: i64, of_rows: std::ops::Range<u64>) -> RowBatch {
        let name = |seq: u64| if seq % 5 == 4 { "zeta" } else { "hog" };
        let line = |seq: u64| (seq, seq as i64 * 60, vec![named(1, name(seq))]);
        RowBatch { board_id, ..lines_of(recording("wakeup"), "", of_rows.map(line)) }
    }

    #[test]
    fn what_to_do_about_a_culprit_is_told_without_what_one_run_had() {
        on_each_engine(async |store| {
            let mut record = crate::fixture::recorded_run("hunt", "a");
            record.culprits.truncate(1);
            record.slots.clear();
            record.rows.clear();
            let of_run = "give it another CPU (`taskset -pc CPUS 26987`)";
            record.culprits[0].remedy = of_run.into();
            for (rule, is_kept) in [("realtime-thread", false), ("of-a-later-version", true)] {
                record.culprits[0].rule = rule.into();
                record.culprits[0].fingerprint = format!("f {rule}");
                record.run.id = format!("r {rule}");
                store.put(&record).await.unwrap();
                let found = store.culprit(&format!("f {rule}")).await.unwrap().unwrap();
                assert_eq!(found.remedy == of_run, is_kept, "{rule}: {found:?}");
                assert!(!found.remedy.is_empty());
            }
        });
    }

    #[test]
    fn five_minutes_count_once_in_whatever_order_and_cuts_their_rows_come() {
        on_each_engine(async |store| {
            let orders: [Vec<std::ops::Range<u64>>; 6] = [
                vec![0..30, 30..60],
                vec![0..23, 23..60],
                // The newest first, as of a board that was away.
                vec![59..60, 0..23, 23..41, 41..59],
                vec![57..60, 38..57, 22..38, 0..22],
                (0..60).rev().map(|seq| seq..seq + 1).collect(),
                vec![0..3, 57..60, 3..4, 56..57, 29..31, 4..29, 31..56],
            ];
            for (number, order) in orders.into_iter().enumerate() {
                let board = format!("b{number}");
                let id = store.board_for(&board, &board).await.unwrap();
                for of_rows in order.clone() {
                    store.put_rows(&[minutes(id, of_rows)]).await.unwrap();
                }
                let found = store.culprits(Some(&board), 9).await.unwrap();
                let told: Vec<_> =
                    found.iter().map(|one| (one.name.as_str(), one.five_minutes, one.total_ns.0)).collect();
                assert_eq!(told, [("hog", 12, 4_800), ("zeta", 12, 1_200)], "{order:?}");
                assert_eq!((found[0].first, found[0].last), (0, 55 * 60), "{order:?}");
            }
        });
    }
}
