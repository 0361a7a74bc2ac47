//! Causes of spikes, over the fleet or on one board.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use sqlx::{Any, AssertSqlSafe, Transaction};

use super::large_sums::shown;
use super::many::{by_keys, pieces, values};
use super::{FarmStore, storable, to_u64, trouble};
use crate::records::{CulpritDay, CulpritOfRun, FarmCulprit, Tier};

/// What a line of a recorder says of a culprit.
pub struct RowCulprit<'a> {
    pub board: i64,
    pub series: &'a str,
    /// The five minutes that the line is of.
    pub t: i64,
    pub of: &'a CulpritOfRun,
}

/// Board, culprit, day and series.
type CulpritPlace<'a> = (i64, i64, i64, &'a str);

/// What is added to a day.
struct AddedCulprit {
    /// The five minutes; a recorder may have several lines in each.
    slots: BTreeSet<i64>,
    total: i64,
}

/// Adds what lines that are new say.
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
    let mut days: BTreeMap<CulpritPlace<'_>, AddedCulprit> = BTreeMap::new();
    for row in rows {
        let Some(&id) = ids.get(&row.of.fingerprint) else { continue };
        let place = (row.board, id, Tier::Day.begin(row.t), row.series);
        let day = days.entry(place).or_insert(AddedCulprit { slots: BTreeSet::new(), total: 0 });
        day.slots.insert(Tier::Slot.begin(row.t));
        day.total = day.total.saturating_add(row.of.total_ns.0);
    }
    add_days(all, &days.into_iter().collect::<Vec<_>>()).await
}

/// The numbers of those that have one, by their fingerprints.
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

/// Adds to days, of which each comes once.
async fn add_days(
    all: &mut Transaction<'static, Any>,
    days: &[(CulpritPlace<'_>, AddedCulprit)],
) -> sqlx::Result<()> {
    const DAY: &str = "insert into culprit_day (board_id, culprit_id, t, series, slots, total_ns, from_t, \
                       to_t) values ";
    for piece in pieces(days) {
        let text = values(DAY, 8, piece.len())
            + " on conflict (board_id, culprit_id, t, series) do update set \
               slots = culprit_day.slots + excluded.slots - \
                case when excluded.from_t = culprit_day.to_t then 1 else 0 end, \
               total_ns = culprit_day.total_ns + excluded.total_ns, \
               from_t = case when excluded.from_t < culprit_day.from_t then excluded.from_t \
                else culprit_day.from_t end, \
               to_t = case when excluded.to_t > culprit_day.to_t then excluded.to_t \
                else culprit_day.to_t end";
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for ((board, culprit, t, series), day) in piece {
            insert = insert.bind(*board).bind(*culprit).bind(*t).bind(*series);
            let (first, last) = (day.slots.first().copied(), day.slots.last().copied());
            insert = insert.bind(day.slots.len() as i64).bind(day.total);
            insert = insert.bind(first.unwrap_or_default()).bind(last.unwrap_or_default());
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

impl FarmStore {
    /// Those that took most first; of one board where that is named.
    pub async fn culprits(&self, board: Option<&str>, most: i64) -> Result<Vec<FarmCulprit>> {
        let of = |place: usize| format!("where board_id = (select id from board where key = ${place})");
        match board {
            Some(board) => self.culprits_of(&[of(1), of(2)], board, most).await,
            None => self.culprits_of(&[String::new(), String::new()], "", most).await,
        }
    }

    /// One of them, by its address.
    pub async fn culprit(&self, fingerprint: &str) -> Result<Option<FarmCulprit>> {
        let of = |place: usize| {
            format!("where culprit_id = (select id from culprit where fingerprint = ${place})")
        };
        Ok(self.culprits_of(&[of(1), of(2)], fingerprint, 1).await?.pop())
    }

    /// Those of runs and of days of which these are true; `asked` is what each of them asks for.
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
                remedy,
                five_minutes: to_u64(slots),
            }
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// From when on what recorders name is counted, in seconds since 1970; none where all of it is.
    pub async fn rows_named_since(&self) -> Result<Option<i64>> {
        let since = sqlx::query_scalar("select value from meta where name = 'rows named since'");
        since.fetch_optional(&self.pool).await.map_err(trouble)
    }

    /// The latest days on which recorders named a culprit. At most `most` rows are read, one for
    /// each series of a day; of a board's day the series with the most five minutes stands.
    pub async fn culprit_days(&self, fingerprint: &str, most: i64) -> Result<Vec<CulpritDay>> {
        let rows: Vec<(String, i64, i64, String, i64, i64)> = sqlx::query_as(
            "select b.key, d.t, d.from_t, d.series, d.slots, d.total_ns from culprit_day d \
             join board b on b.id = d.board_id \
             where d.culprit_id = (select id from culprit where fingerprint = $1) \
             order by d.t desc, b.key, d.slots desc, d.series limit $2",
        )
        .bind(fingerprint)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let day = |(board, t, first, series, slots, total)| CulpritDay {
            board,
            t,
            first,
            series,
            five_minutes: to_u64(slots),
            total_ns: Nanos(total),
        };
        let mut days: Vec<CulpritDay> = rows.into_iter().map(day).collect();
        days.dedup_by(|next, one| (next.t, &next.board) == (one.t, &one.board));
        Ok(days)
    }
}
