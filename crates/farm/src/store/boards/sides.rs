//! Input for a comparison of days: environments of boards, and the maxima of their days.

use std::collections::BTreeMap;

use model::error::{Failure, Result};
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use crate::changes::InvalidRun;
use crate::records::{EnvironmentRuns, SeriesDays, SeriesKey, TierRow};
use crate::store::hist::tiers::made;
use crate::store::many::eights;
use crate::store::runs::environments::by_board;
use crate::store::{FarmStore, TimeStretch, trouble};

impl FarmStore {
    /// The first boards by key, limited in number.
    pub async fn board_names(&self, most: i64) -> Result<Vec<String>> {
        sqlx::query_scalar("select key from board order by key limit $1")
            .bind(most)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)
    }

    /// First and last run of each board in each environment, by the index `run_of_environment`: a
    /// failed one shows the environment, too, as in [`FarmStore::said_of`].
    pub async fn environment_runs(&self) -> Result<BTreeMap<String, Vec<EnvironmentRuns>>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
            "select b.key, e.digest, r.first, r.last from (select environment_id, board_id, \
             min(started) as first, max(started) as last from run group by environment_id, board_id) r \
             join board b on b.id = r.board_id join environment e on e.id = r.environment_id \
             order by b.key, r.first",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(by_board(rows))
    }

    /// Boards, among those given with a time span, that have a maximum of five minutes in it, on a
    /// day without an invalid run of the same series.
    pub async fn boards_with_maxima(&self, boards: &[(&str, TimeStretch)]) -> Result<Vec<String>> {
        let probes: Vec<String> = (0..8).map(|at| probe(3 * at + 1)).collect();
        let probes = probes.join(" union all ");
        let mut all = Vec::new();
        for boards in eights(boards) {
            let query = sqlx::query_scalar(AssertSqlSafe(probes.clone()));
            let query = boards
                .iter()
                .fold(query, |query, (board, within)| query.bind(*board).bind(within.from).bind(within.to));
            let found: Vec<String> = query.fetch_all(&self.pool).await.map_err(trouble)?;
            all.extend(found);
        }
        // A board that filled up the last eight is there more than once.
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Series of boards in a time span, as far as they have maxima of five minutes.
    pub async fn days_with_slots(
        &self,
        boards: &[&str],
        within: TimeStretch,
    ) -> Result<BTreeMap<String, Vec<SeriesDays>>> {
        // A row for each day would take longer than to find it.
        let days = "select b.key, h.series, h.plan, coalesce(p.words, ''), \
                    string_agg(cast(h.t as text), ' ') from board b cross join hist h \
                    left join plan p on p.series = h.series and p.plan = h.plan \
                    where b.key in ($1, $2, $3, $4, $5, $6, $7, $8) and h.board_id = b.id and h.tier = 2 \
                    and h.t >= $9 and h.t < $10 and exists (select 1 from slot s \
                    where s.board_id = h.board_id and s.series = h.series and s.plan = h.plan \
                    and s.t >= h.t and s.t < h.t + 86400 and s.max_ns is not null) \
                    group by h.board_id, b.key, h.series, h.plan, p.words";
        type Row = (String, String, String, String, Option<String>);
        let mut all: BTreeMap<String, Vec<SeriesDays>> = BTreeMap::new();
        for boards in eights(boards) {
            let query = boards.iter().fold(sqlx::query_as(days), |query, board| query.bind(*board));
            let query = query.bind(within.from).bind(within.to);
            let rows: Vec<Row> = query.fetch_all(&self.pool).await.map_err(trouble)?;
            for (board, series, plan, words, days) in rows {
                let mut days = numbers(days)?;
                days.sort_unstable();
                let found = SeriesDays { key: SeriesKey { series, plan }, words, days };
                all.entry(board).or_default().push(found);
            }
        }
        Ok(all)
    }

    /// The runs of boards that do not count and were on in a stretch.
    pub async fn invalid_runs_within(
        &self,
        boards: &[&str],
        within: TimeStretch,
    ) -> Result<BTreeMap<String, Vec<InvalidRun>>> {
        let runs = "select b.key, r.id, r.series, r.plan, r.started, \
                    r.started + coalesce(r.length_ns, 0) / 1000000000 from board b cross join run r \
                    where b.key in ($1, $2, $3, $4, $5, $6, $7, $8) and r.board_id = b.id \
                    and r.invalid > 0 and r.started < $9 \
                    and r.started + coalesce(r.length_ns, 0) / 1000000000 >= $10 \
                    order by b.key, r.started, r.id";
        type Row = (String, String, String, String, i64, i64);
        let mut all: BTreeMap<String, Vec<InvalidRun>> = BTreeMap::new();
        for boards in eights(boards) {
            let query = boards.iter().fold(sqlx::query_as(runs), |query, board| query.bind(*board));
            let query = query.bind(within.to).bind(within.from);
            let rows: Vec<Row> = query.fetch_all(&self.pool).await.map_err(trouble)?;
            for (board, id, series, plan, started, ended) in rows {
                let run = InvalidRun { id, key: SeriesKey { series, plan }, started, ended };
                all.entry(board).or_default().push(run);
            }
        }
        Ok(all)
    }

    /// Largest latency of each five minutes of some days that has one, oldest first.
    pub async fn maxima_of_days(&self, board: &str, key: &SeriesKey, days: &[i64]) -> Result<Vec<Nanos>> {
        // SQLite keeps the order of a cross join: by itself it would read all slots of the board.
        let maxima = "select string_agg(cast(s.t as text) || ' ' || cast(s.max_ns as text), ' ') \
                      from board b cross join hist h cross join slot s where b.key = $1 \
                      and h.board_id = b.id and h.series = $2 and h.plan = $3 and h.tier = 2 \
                      and h.t in ($4, $5, $6, $7, $8, $9, $10, $11) and s.board_id = h.board_id \
                      and s.series = h.series and s.plan = h.plan and s.t >= h.t and s.t < h.t + 86400 \
                      and s.max_ns is not null";
        let mut slots: Vec<(i64, i64)> = Vec::new();
        for days in eights(days) {
            let query = sqlx::query_scalar(maxima).bind(board).bind(&key.series).bind(&key.plan);
            let query = days.iter().fold(query, |query, day| query.bind(*day));
            let found = numbers(query.fetch_one(&self.pool).await.map_err(trouble)?)?;
            slots.extend(found.chunks_exact(2).map(|slot| (slot[0], slot[1])));
        }
        slots.sort_unstable_by_key(|&(t, max_ns)| (t, std::cmp::Reverse(max_ns)));
        // Two recordings may have the same five minutes: the larger one is first.
        slots.dedup_by_key(|&mut (t, _)| t);
        Ok(slots.into_iter().map(|(_, max_ns)| Nanos(max_ns)).collect())
    }

    /// The histograms of some days, oldest first.
    pub async fn histograms_of_days(
        &self,
        board: &str,
        key: &SeriesKey,
        days: &[i64],
    ) -> Result<Vec<TierRow>> {
        let rows = "select h.t, h.n, h.missed, h.max_ns, h.cpus from hist h \
                    join board b on b.id = h.board_id where b.key = $1 and h.series = $2 and h.plan = $3 \
                    and h.tier = 2 and h.t in ($4, $5, $6, $7, $8, $9, $10, $11) order by h.t";
        let mut all = Vec::new();
        for days in eights(days) {
            let query = sqlx::query_as(rows).bind(board).bind(&key.series).bind(&key.plan);
            let query = days.iter().fold(query, |query, day| query.bind(*day));
            let rows = query.fetch_all(&self.pool).await.map_err(trouble)?;
            all.extend(rows.into_iter().map(made).collect::<sqlx::Result<Vec<_>>>().map_err(trouble)?);
        }
        Ok(all)
    }
}

/// Query for a board with a maximum within a time span: it stops at the first day that has one. An
/// invalid run is assumed to last at most sixty days.
fn probe(first: usize) -> String {
    let (from, to) = (first + 1, first + 2);
    format!(
        "select p.key from (select b.key from board b cross join hist h where b.key = ${first} \
         and h.board_id = b.id and h.tier = 2 and h.t >= ${from} and h.t < ${to} and exists (select 1 \
         from slot s where s.board_id = h.board_id and s.series = h.series and s.plan = h.plan \
         and s.t >= h.t and s.t < h.t + 86400 and s.max_ns is not null) and not exists (select 1 \
         from run r where r.board_id = h.board_id and r.started > h.t - 5184000 \
         and r.started < h.t + 86400 and r.invalid > 0 and r.series = h.series and r.plan = h.plan \
         and r.started + coalesce(r.length_ns, 0) / 1000000000 >= h.t) limit 1) p"
    )
}

/// Parses numbers from one text with blanks between: a row for each takes ten times as long as to
/// find it. An invalid one is an error: a comparison without it would be of other days, and in
/// pairs each later number would be misplaced.
fn numbers(text: Option<String>) -> Result<Vec<i64>> {
    let text = text.unwrap_or_default();
    let all: Option<Vec<i64>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
    all.ok_or_else(|| {
        Failure::internal(
            "a time or latency in the store is not a number, so nothing is compared: restore a backup; \
             `onbeat-farm check` finds other damage",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::Tier;
    use crate::store::engines::on_each_engine;

    const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

    /// The environment of a board is known from each of its runs, valid or not.
    #[test]
    fn runs_that_do_not_count_say_what_a_board_was() {
        on_each_engine(async |store| {
            let mut record = recorded_run("measured", "a");
            let begin = record.run.started;
            record.slots.clear();
            for (day, (complete, invalid)) in [(false, 0), (true, 0), (true, 1)].into_iter().enumerate() {
                record.run.id = format!("r{day}");
                record.run.started = begin + day as i64 * 86_400;
                (record.run.complete, record.run.invalid) = (complete, invalid);
                store.put(&record).await.unwrap();
            }
            let all = store.environment_runs().await.unwrap();
            let history = store.environments("a").await.unwrap();
            assert_eq!((all["a"].len(), history.len(), history[0].runs), (1, 1, 3));
            assert_eq!((all["a"][0].first, all["a"][0].last), (begin, begin + 2 * 86_400));
            assert_eq!((history[0].first, history[0].last), (begin, begin + 2 * 86_400));
            assert_eq!(history[0].record.digest, all["a"][0].digest);
        });
    }

    #[test]
    fn runs_that_do_not_count_are_told_by_board_and_time() {
        on_each_engine(async |store| {
            let begin = recorded_run("measured", "a").run.started;
            for (board, at, invalid) in [("a", 0, 1), ("a", 1, 0), ("a", 2, 2), ("b", 0, 0), ("c", 1, 1)] {
                let mut record = recorded_run("measured", board);
                record.run.id = format!("{board}{at}");
                (record.run.started, record.run.invalid) = (begin + at * 86_400, invalid);
                record.run.length_ns = Some(Nanos(60 * Nanos::SECOND.0));
                record.slots.clear();
                store.put(&record).await.unwrap();
            }
            let told = async |boards: &[&str], within: TimeStretch| -> Vec<String> {
                let found = store.invalid_runs_within(boards, within).await.unwrap();
                let all = found.into_iter().flat_map(|(board, runs)| {
                    runs.into_iter().map(move |run| {
                        assert_eq!(run.ended - run.started, 60);
                        format!("{board} {}", run.id)
                    })
                });
                all.collect()
            };
            assert_eq!(told(&["a", "b", "c"], ALL).await, ["a a0", "a a2", "c c1"]);
            assert_eq!(told(&["a"], TimeStretch { from: begin + 60, to: begin + 9 }).await, ["a a0"]);
            assert!(told(&["a"], TimeStretch { from: begin + 61, to: begin + 99 }).await.is_empty());
            assert_eq!(
                told(&["c", "a"], TimeStretch { from: begin + 61, to: i64::MAX }).await,
                ["a a2", "c c1"]
            );
            assert!(told(&[], ALL).await.is_empty());
        });
    }

    /// Five minutes without samples do not make a day.
    #[test]
    fn days_without_a_maximum_are_none() {
        on_each_engine(async |store| {
            let mut record = recorded_run("measured", "a");
            let first = record.slots[0].clone();
            for (day, max_ns) in [None, Some(Nanos(1_000)), None].into_iter().enumerate() {
                record.run.id = format!("r{day}");
                let mut slot = first.clone();
                slot.run.clone_from(&record.run.id);
                (slot.t, slot.max_ns) = (Tier::Day.begin(first.t) + day as i64 * 86_400 + 600, max_ns);
                (record.run.started, record.whole.t) = (slot.t, slot.t);
                record.slots = vec![slot];
                store.put(&record).await.unwrap();
            }
            let found = store.days_with_slots(&["a"], ALL).await.unwrap();
            let day = Tier::Day.begin(first.t) + 86_400;
            assert_eq!(found["a"][0].days, [day]);
            for (from, to, wanted) in
                [(0, i64::MAX, true), (day, day + 1, true), (0, day, false), (day + 1, i64::MAX, false)]
            {
                let asked = [("a", TimeStretch { from, to }), ("of which there is nothing", ALL)];
                let found = store.boards_with_maxima(&asked).await.unwrap();
                assert_eq!(found, ["a"].into_iter().filter(|_| wanted).collect::<Vec<_>>(), "{from} {to}");
            }
            assert!(store.boards_with_maxima(&[]).await.unwrap().is_empty());
            // A day without valid data is excluded from comparisons of maxima.
            let own = record.run.key.plan.clone();
            for (id, plan, began, is_there) in [
                ("another plan", "another", day + 600, true),
                ("the day before", own.as_str(), day - 7_200, true),
                ("the same day", own.as_str(), day + 600, false),
            ] {
                record.run.id = id.to_owned();
                plan.clone_into(&mut record.run.key.plan);
                (record.run.invalid, record.run.started, record.whole.t) = (1, began, began);
                record.run.length_ns = Some(Nanos(3_600 * Nanos::SECOND.0));
                record.slots.clear();
                store.put(&record).await.unwrap();
                let found = store.boards_with_maxima(&[("a", ALL)]).await.unwrap();
                assert_eq!(found.len() == 1, is_there, "{id}");
            }
        });
    }

    /// Ten days with a run each; on the last one two recordings have the same five minutes.
    #[test]
    fn five_minutes_of_days_have_the_largest_of_their_recordings() {
        on_each_engine(async |store| {
            let mut record = recorded_run("measured", "a");
            let (key, first) = (record.run.key.clone(), record.slots[0].clone());
            let begin = Tier::Day.begin(first.t);
            let days: Vec<i64> = (0..10).map(|day| begin + day * Tier::Day.seconds()).collect();
            for (number, at) in days.iter().chain(days.last()).enumerate() {
                record.run.id = format!("r{number}");
                let mut slot = first.clone();
                slot.run.clone_from(&record.run.id);
                (slot.t, slot.max_ns) = (at + 600, Some(Nanos(1_000 + number as i64)));
                (record.run.started, record.whole.t) = (slot.t, slot.t);
                record.slots = vec![slot];
                store.put(&record).await.unwrap();
            }
            let found = store.days_with_slots(&["a", "of which there is nothing"], ALL).await.unwrap();
            assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
            assert_eq!(found["a"].iter().map(|one| &one.key).collect::<Vec<_>>(), [&key]);
            assert_eq!(found["a"][0].days, days);
            let within = TimeStretch { from: days[2], to: days[4] };
            assert_eq!(store.days_with_slots(&["a"], within).await.unwrap()["a"][0].days, days[2..4]);
            let maxima = async |days: &[i64]| store.maxima_of_days("a", &key, days).await.unwrap();
            let wanted: Vec<Nanos> = (0..9).chain([10]).map(|number| Nanos(1_000 + number)).collect();
            assert_eq!(maxima(&days).await, wanted);
            assert_eq!(maxima(&days[3..4]).await, wanted[3..4]);
            assert_eq!(maxima(&[begin - Tier::Day.seconds()]).await, []);
            let histograms = store.histograms_of_days("a", &key, &days).await.unwrap();
            let one_by_one = store.tiers("a", &key, Tier::Day, ALL).await.unwrap();
            assert_eq!((histograms.len(), &histograms), (10, &one_by_one));
            assert!(maxima(&[]).await.is_empty());
            let failure = numbers(Some("1 x".to_owned())).unwrap_err();
            assert!(failure.message.contains("is not a number"), "{failure}");
        });
    }
}
