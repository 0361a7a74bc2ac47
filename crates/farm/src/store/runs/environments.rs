//! Environments of boards and their times: by runs, and by the rows of recorders.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::error::Result;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::environments::KnownRecords;
use crate::history::BoardEnvironment;
use crate::history::{SaidOfDay, history};
use crate::records::{EnvironmentRecord, EnvironmentRuns, Tier};
use crate::store::many::{eights, pieces, values};
use crate::store::runs::dropped_environments::drop_oldest;
use crate::store::{FarmStore, storable, to_u64, trouble};
use crate::wall_clock::now;

/// Environment of a board in a row.
pub struct RowEnvironment<'a> {
    pub board: i64,
    /// The board's id of it.
    pub env: &'a str,
    /// The five minutes that the row is of.
    pub t: i64,
}

/// Time span of each statement on a board.
#[derive(Clone, Copy)]
enum SaidSpan {
    Day,
    Ever,
}

/// Limit of the environments of a board that are read together, in bytes.
const OF_BOARD: usize = 8 << 20;
/// Limit of the settings of all boards, in bytes.
const OF_ALL: usize = 48 << 20;

/// Memory of settings, as text and as values by name, each in an allocation.
fn held_bytes(settings: &str) -> usize {
    const EACH: usize = 160;
    settings.len() + settings.matches("\":\"").count() * EACH
}

/// True if two statements overlap in time.
fn lie_over_each_other(said: &[SaidOfDay]) -> bool {
    let mut spans: Vec<(i64, i64)> = said.iter().map(|one| (one.from, one.to)).collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 <= pair[0].1)
}

/// Number of an environment, which is inserted if it is new.
pub async fn environment_id(
    all: &mut Transaction<'static, Any>,
    of: &EnvironmentRecord,
) -> sqlx::Result<i64> {
    sqlx::query(
        "insert into environment (digest, model, release, preempt, settings) values ($1, $2, $3, $4, $5) \
         on conflict do nothing",
    )
    .bind(&of.digest)
    .bind(storable(&of.model))
    .bind(storable(&of.release))
    .bind(storable(&of.preempt))
    .bind(storable(&of.settings))
    .execute(&mut **all)
    .await?;
    let id = sqlx::query_scalar("select id from environment where digest = $1");
    id.bind(&of.digest).fetch_one(&mut **all).await
}

/// Notes of each day which environments a board had in it; the same again changes nothing.
pub async fn put_row_environments(
    all: &mut Transaction<'static, Any>,
    rows: &[RowEnvironment<'_>],
) -> sqlx::Result<()> {
    const DAY: &str = "insert into row_environment (board_id, t, env, from_t, to_t) values ";
    let mut days: BTreeMap<(i64, i64, &str), (i64, i64)> = BTreeMap::new();
    for row in rows {
        let day = days.entry((row.board, Tier::Day.begin(row.t), row.env)).or_insert((row.t, row.t));
        *day = (day.0.min(row.t), day.1.max(row.t));
    }
    for piece in pieces(&days.into_iter().collect::<Vec<_>>()) {
        let text = values(DAY, 5, piece.len())
            + " on conflict (board_id, t, env) do update set \
               from_t = case when excluded.from_t < row_environment.from_t then excluded.from_t \
                else row_environment.from_t end, \
               to_t = case when excluded.to_t > row_environment.to_t then excluded.to_t \
                else row_environment.to_t end";
        let mut insert = sqlx::query(AssertSqlSafe(text));
        for ((board, t, env), (from, to)) in piece {
            insert = insert.bind(*board).bind(*t).bind(*env).bind(*from).bind(*to);
        }
        insert.execute(&mut **all).await?;
    }
    Ok(())
}

/// Model, release, preemption and digest of an environment.
pub type EnvironmentNames = (String, String, String, String);

/// True if the known names of machine, kernel or preemption differ.
pub fn differ(a: &EnvironmentNames, b: &EnvironmentNames) -> bool {
    let known = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
    known(&a.0, &b.0) || known(&a.1, &b.1) || known(&a.2, &b.2)
}

/// Digest, model, release, preemption and settings.
type EnvironmentRow = (String, String, String, String, String);

fn known_records(rows: Vec<EnvironmentRow>) -> KnownRecords {
    let one = |(digest, model, release, preempt, settings): EnvironmentRow| {
        (digest.clone(), Arc::new(EnvironmentRecord { digest, model, release, preempt, settings }))
    };
    rows.into_iter().map(one).collect()
}

impl FarmStore {
    /// Environments of a board, the latest first; one may occur more than once.
    pub async fn environments(&self, board: &str) -> Result<Vec<BoardEnvironment>> {
        Ok(self.latest_environments(board).await?.0)
    }

    /// The same, with the number of omitted earlier ones, by their number and settings.
    pub async fn latest_environments(&self, board: &str) -> Result<(Vec<BoardEnvironment>, u64)> {
        let said = self.said_of(&[board]).await?.remove(board).unwrap_or_default();
        let (records, left_out) = self.records_of(&said, OF_BOARD).await?;
        let mut all = history(&said, &records);
        all.reverse();
        Ok((all, left_out))
    }

    /// Records for a board's statements, the last ones up to a limit in bytes, and the number of
    /// earlier ones.
    async fn records_of(&self, said: &[SaidOfDay], most: usize) -> Result<(KnownRecords, u64)> {
        let mut last: BTreeMap<&str, i64> = BTreeMap::new();
        for one in said {
            let known = last.entry(&one.digest).or_insert(one.to);
            *known = one.to.max(*known);
        }
        let mut latest: Vec<&str> = last.keys().copied().collect();
        latest.sort_by_key(|digest| Reverse(last[digest]));
        let (mut records, mut bytes) = (KnownRecords::new(), 0);
        'all: for digests in eights(&latest) {
            let found = sqlx::query_as(
                "select digest, model, release, preempt, settings from environment \
                 where digest in ($1, $2, $3, $4, $5, $6, $7, $8)",
            );
            let found = digests.iter().fold(found, |found, digest| found.bind(*digest));
            let found = known_records(found.fetch_all(&self.pool).await.map_err(trouble)?);
            for digest in digests {
                let Some(record) = found.get(digest).filter(|_| !records.contains_key(digest)) else {
                    continue;
                };
                bytes += held_bytes(&record.settings);
                if bytes > most {
                    break 'all;
                }
                records.insert(digest.to_owned(), record.clone());
            }
        }
        let left_out = (latest.len() - records.len()) as u64;
        Ok((records, left_out))
    }

    /// Every environment of any board; with settings for the latest ones alone, up to a limit: of
    /// the others these count as unknown.
    pub async fn environment_records(&self) -> Result<KnownRecords> {
        let rows: Vec<EnvironmentRow> =
            sqlx::query_as("select digest, model, release, preempt, '' from environment")
                .fetch_all(&self.pool)
                .await
                .map_err(trouble)?;
        let mut records = known_records(rows);
        let (mut before, mut bytes) = (i64::MAX, 0);
        loop {
            let rows: Vec<(i64, String, String)> = sqlx::query_as(
                "select id, digest, settings from environment where id < $1 order by id desc limit 32",
            )
            .bind(before)
            .fetch_all(&self.pool)
            .await
            .map_err(trouble)?;
            let Some(last) = rows.last() else { return Ok(records) };
            before = last.0;
            for (_, digest, settings) in rows {
                bytes += held_bytes(&settings);
                if bytes > OF_ALL {
                    return Ok(records);
                }
                if let Some(record) = records.get_mut(&digest) {
                    Arc::make_mut(record).settings = settings;
                }
            }
        }
    }

    /// Statements on boards, by their runs, valid or not, and by their rows: the input of
    /// [`history`]. If two environments of a board overlap, there is one per day, otherwise one per
    /// environment, which is equivalent and much less.
    pub async fn said_of(&self, boards: &[&str]) -> Result<BTreeMap<String, Vec<SaidOfDay>>> {
        let mut all = self.said_by(SaidSpan::Ever, boards).await?;
        let mixed: Vec<String> = all
            .iter()
            .filter(|(_, said)| lie_over_each_other(said))
            .map(|(board, _)| board.clone())
            .collect();
        let mixed: Vec<&str> = mixed.iter().map(String::as_str).collect();
        all.extend(self.said_by(SaidSpan::Day, &mixed).await?);
        Ok(all)
    }

    async fn said_by(&self, span: SaidSpan, boards: &[&str]) -> Result<BTreeMap<String, Vec<SaidOfDay>>> {
        let (of_runs, of_rows) = match span {
            SaidSpan::Day => (", started / 86400", ", d.t"),
            SaidSpan::Ever => ("", ""),
        };
        let by_runs = format!(
            "select b.key, e.digest, r.first_t, r.last_t, r.runs, r.first_run, r.last_run \
             from (select board_id, environment_id, min(started) as first_t, max(started) as last_t, \
             count(*) as runs, min(id) as first_run, max(id) as last_run from run where board_id in \
             (select id from board where key in ($1, $2, $3, $4, $5, $6, $7, $8)) \
             group by board_id, environment_id{of_runs}) r \
             join board b on b.id = r.board_id join environment e on e.id = r.environment_id \
             order by b.key, r.first_t, r.last_t, r.first_run"
        );
        let by_rows = format!(
            "select b.key, e.digest, min(d.from_t), max(d.to_t), cast(0 as bigint), '', '' \
             from row_environment d join watch_environment w on w.board_id = d.board_id and w.env = d.env \
             join board b on b.id = d.board_id join environment e on e.id = w.environment_id \
             where d.board_id in (select id from board where key in ($1, $2, $3, $4, $5, $6, $7, $8)) \
             group by b.key, e.digest{of_rows} order by b.key, 3, 4, e.digest"
        );
        type Row = (String, String, i64, i64, i64, String, String);
        let mut all: BTreeMap<String, Vec<SaidOfDay>> = BTreeMap::new();
        for boards in eights(boards) {
            for text in [&by_runs, &by_rows] {
                let query = sqlx::query_as(AssertSqlSafe(text.clone()));
                let query = boards.iter().fold(query, |query, board| query.bind(*board));
                let rows: Vec<Row> = query.fetch_all(&self.pool).await.map_err(trouble)?;
                for (board, digest, from, to, runs, first_run, last_run) in rows {
                    let one = SaidOfDay { digest, from, to, runs: to_u64(runs), first_run, last_run };
                    all.entry(board).or_default().push(one);
                }
            }
        }
        Ok(all)
    }

    /// Stores a board's id of an environment; returns true if it is new.
    pub async fn put_environment(&self, board_id: i64, env: &str, of: &EnvironmentRecord) -> Result<bool> {
        let mut all = self.begin().await?;
        let id = environment_id(&mut all, of).await.map_err(trouble)?;
        let named = sqlx::query(
            "insert into watch_environment (board_id, env, environment_id, arrived) \
             values ($1, $2, $3, $4) on conflict do nothing",
        )
        .bind(board_id)
        .bind(env)
        .bind(id)
        .bind(now())
        .execute(&mut *all)
        .await
        .map_err(trouble)?;
        drop_oldest(&mut all, board_id).await.map_err(trouble)?;
        all.commit().await.map_err(trouble)?;
        Ok(named.rows_affected() == 1)
    }

    /// Latest environment of each board within a range of keys that has rows, by its number, with
    /// the last five minutes in it.
    pub async fn recorded_now(
        &self,
        first: &str,
        last: &str,
    ) -> Result<BTreeMap<i64, (i64, EnvironmentNames)>> {
        let rows: Vec<(i64, i64, String, String, String, String)> = sqlx::query_as(
            "select b.id, (select d.to_t from row_environment d where d.board_id = s.board_id \
             order by d.t desc, d.to_t desc limit 1), e.model, e.release, e.preempt, e.digest from board b \
             join board_setting s on s.board_id = b.id \
             join watch_environment w on w.board_id = s.board_id and w.env = \
              (select d.env from row_environment d where d.board_id = s.board_id \
               order by d.t desc, d.to_t desc limit 1) \
             join environment e on e.id = w.environment_id where b.key >= $1 and b.key <= $2",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(id, at, model, release, preempt, digest)| (id, (at, (model, release, preempt, digest)));
        Ok(rows.into_iter().map(one).collect())
    }

    /// The first and the last five minutes of boards in each environment that their rows name.
    pub async fn recorded_environments(&self) -> Result<BTreeMap<String, Vec<EnvironmentRuns>>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
            "select b.key, e.digest, min(d.from_t), max(d.to_t) from row_environment d \
             join watch_environment w on w.board_id = d.board_id and w.env = d.env \
             join board b on b.id = d.board_id join environment e on e.id = w.environment_id \
             group by b.key, e.digest order by b.key, min(d.from_t)",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(by_board(rows))
    }
}

/// Boards, each with the environments of its rows: board, digest, when it was there first and last.
pub fn by_board(rows: Vec<(String, String, i64, i64)>) -> BTreeMap<String, Vec<EnvironmentRuns>> {
    let mut all: BTreeMap<String, Vec<EnvironmentRuns>> = BTreeMap::new();
    for (board, digest, first, last) in rows {
        all.entry(board).or_default().push(EnvironmentRuns { digest, first, last });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::fixture::recorded_run;
    use crate::ingest::environment::watch_environment;

    use crate::store::RowBatch;
    use crate::store::engines::on_each_engine;
    use crate::store::runs::dropped_environments::MOST_OF_BOARD;

    use model::watch::WatchEnvironment;

    fn known(env: &str) -> EnvironmentRecord {
        let settings = [("model", "a board"), ("preempt", "full-rt"), ("cmdline", "quiet")];
        watch_environment(&WatchEnvironment {
            env: env.into(),
            release: format!("6.12-{env}"),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..WatchEnvironment::default()
        })
        .record
    }

    /// Rows from one number to another, all in one environment.
    fn batch(from: u64, to: u64, env: &str) -> RowBatch {
        let line = |seq: u64| (seq, seq as i64 * 300, vec![wakeups(3)]);
        lines_of(recording("timer"), env, (from..to).map(line))
    }

    #[test]
    fn a_board_without_runs_was_what_its_rows_say_in_whatever_order_they_come() {
        on_each_engine(async |store| {
            store.add_code(&[1], 100, &[]).await.unwrap();
            store.enrol(&[1], 50, "a", "a", &[2]).await.unwrap();
            // The newest first; the definition of `y` arrives late.
            store.put_rows(&[batch(900, 1_000, "y"), batch(0, 300, "x")]).await.unwrap();
            assert!(store.put_environment(1, "x", &known("x")).await.unwrap());
            assert!(!store.put_environment(1, "x", &known("x")).await.unwrap());
            assert_eq!(store.boards().await.unwrap()[0].release, "");
            assert!(store.put_environment(1, "y", &known("y")).await.unwrap());
            store.put_rows(&[batch(600, 900, "y"), batch(300, 600, "x")]).await.unwrap();
            store.put_rows(&[batch(0, 300, "x")]).await.unwrap();

            let board = store.boards().await.unwrap().remove(0);
            assert_eq!((board.model.as_str(), board.release.as_str()), ("a board", "6.12-y"));
            assert_eq!((board.preempt.as_str(), &board.environment), ("full-rt", &known("y").digest));
            let found = store.environments("a").await.unwrap();
            let told = |one: &BoardEnvironment| (one.record.release.clone(), one.first, one.last, one.runs);
            let wanted =
                [("6.12-y".to_owned(), 600 * 300, 999 * 300, 0), ("6.12-x".to_owned(), 0, 599 * 300, 0)];
            assert_eq!(found.iter().map(told).collect::<Vec<_>>(), wanted);
            assert_eq!(*found[1].record, known("x"));
            assert!(found.iter().all(|one| one.recorded && one.example.is_empty()));
            assert_eq!(*store.environment_records().await.unwrap()[&known("y").digest], known("y"));
            let days = store.said_of(&["none", "a"]).await.unwrap();
            let said = |of: &SaidOfDay| (of.digest.clone(), of.from / 300, of.to / 300, of.runs);
            let day = |env: &str, from: i64, to: i64| (known(env).digest, from, to, 0_u64);
            assert_eq!(days.len(), 1);
            assert_eq!(
                days["a"].iter().map(said).collect::<Vec<_>>(),
                [day("x", 0, 599), day("y", 600, 999)]
            );
            let of_all = store.recorded_environments().await.unwrap();
            assert_eq!((of_all.len(), of_all["a"].len(), of_all["a"][1].first), (1, 2, 600 * 300));
            // Back again, on a later day.
            store.put_rows(&[batch(1_200, 1_300, "x")]).await.unwrap();
            let days = store.said_of(&["a"]).await.unwrap();
            let wanted = [day("x", 0, 287), day("x", 288, 575), day("x", 576, 599), day("y", 600, 863)];
            assert_eq!(days["a"].iter().map(said).take(4).collect::<Vec<_>>(), wanted);
            let found = store.environments("a").await.unwrap();
            let told = |one: &BoardEnvironment| (one.record.release.clone(), one.first, one.last);
            let again = ("6.12-x".to_owned(), 1_200 * 300, 1_299 * 300);
            assert_eq!((found.len(), told(&found[0])), (3, again));
            assert_eq!((&found[0].record, found[2].first), (&found[2].record, 0));
            assert_eq!(store.boards().await.unwrap()[0].release, "6.12-x");
        });
    }

    #[test]
    fn a_board_is_what_the_newer_of_its_last_run_and_its_last_row_says() {
        on_each_engine(async |store| {
            let run = recorded_run("measured", "a");
            store.put(&run).await.unwrap();
            store.put_environment(1, "x", &known("x")).await.unwrap();
            store.put_rows(&[batch(0, 300, "x")]).await.unwrap();
            let found = store.environments("a").await.unwrap();
            let digests = |all: &[BoardEnvironment]| -> Vec<String> {
                all.iter().map(|one| one.record.digest.clone()).collect()
            };
            assert_eq!(digests(&found), [run.environment.digest.clone(), known("x").digest]);
            let board = store.boards().await.unwrap().remove(0);
            assert_eq!((&board.environment, &board.release), (&run.environment.digest, &run.run.release));
            assert_eq!((found[0].first, &found[0].example), (run.run.started, &run.run.id));
            assert_eq!(store.environment_runs().await.unwrap()["a"].len(), 1);
            // Its recorder continues with another kernel.
            let next = run.run.started as u64 / 300 + 5;
            store.put_rows(&[batch(next, next + 9, "x")]).await.unwrap();
            let board = store.boards().await.unwrap().remove(0);
            assert_eq!((&board.environment, board.release.as_str()), (&known("x").digest, "6.12-x"));
            let found = store.environments("a").await.unwrap();
            let (x, of_run) = (known("x").digest, run.environment.digest.clone());
            assert_eq!(digests(&found), [x.clone(), of_run, x]);
        });
    }

    #[test]
    fn a_recorder_that_says_the_same_as_the_runs_changes_nothing() {
        on_each_engine(async |store| {
            let run = recorded_run("measured", "a");
            store.put(&run).await.unwrap();
            // A watch records a part of the settings of a run.
            let settings: BTreeMap<String, String> = serde_json::from_str(&run.environment.settings).unwrap();
            let told: BTreeMap<&str, &str> = settings
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .filter(|(name, _)| name.starts_with("host.") || name.starts_with("cmdline "))
                .filter(|(name, _)| *name != "host.online")
                .collect();
            let recorded = EnvironmentRecord {
                digest: "recorded".into(),
                settings: serde_json::to_string(&told).unwrap(),
                ..run.environment.clone()
            };
            store.put_environment(1, "x", &recorded).await.unwrap();
            let next = run.run.started as u64 / 300 + 5;
            store.put_rows(&[batch(next, next + 9, "x")]).await.unwrap();
            let found = store.environments("a").await.unwrap();
            assert_eq!((found.len(), &*found[0].record, found[0].runs), (1, &run.environment, 1));
            assert_eq!((found[0].first, found[0].last), (run.run.started, (next as i64 + 8) * 300));
            assert_eq!(store.boards().await.unwrap()[0].environment, run.environment.digest);
        });
    }

    #[test]
    fn the_latest_environments_are_read_up_to_a_limit_and_the_others_counted() {
        on_each_engine(async |store| {
            let board = store.board_for("hog", "hog").await.unwrap();
            // As large as possible: by its text, and by its number of settings.
            let large = |env: u64| {
                let settings = match env % 8 {
                    0 => [("s0".to_owned(), format!("{env:030000}"))].into(),
                    _ => (0..1_000).map(|n| (format!("s{n}"), (env + n).to_string())).collect(),
                };
                let of = WatchEnvironment { settings, ..WatchEnvironment::default() };
                let read = watch_environment(&of);
                assert!(read.left_out.is_none());
                read.record
            };
            for env in 0..60 {
                let name = format!("e{env}");
                store.put_environment(board, &name, &large(env)).await.unwrap();
                store.put_rows(&[batch(env * 300, env * 300 + 1, &name)]).await.unwrap();
            }
            let (found, left_out) = store.latest_environments("hog").await.unwrap();
            let held: usize = found.iter().map(|one| held_bytes(&one.record.settings)).sum();
            assert!(held <= OF_BOARD && held > OF_BOARD - (256 << 10), "{held}");
            assert_eq!(found.len() as u64 + left_out, 60);
            assert!(found[0].record.settings == large(59).settings && found.len() >= 40);
            let all = store.environment_records().await.unwrap();
            assert_eq!(all.len(), 60);
        });
    }

    #[test]
    fn the_oldest_go_beyond_a_number_and_those_that_no_row_names_after_a_day() {
        on_each_engine(async |store| {
            let board = store.board_for("hog", "hog").await.unwrap();
            let most = MOST_OF_BOARD as u64;
            // The first is named by rows until now.
            let later = (now() / 300) as u64 + 10;
            store.put_rows(&[batch(later, later + 1, "e0")]).await.unwrap();
            for env in 0..most + 3 {
                let name = format!("e{env}");
                store.put_environment(board, &name, &known(&name)).await.unwrap();
            }
            let names = async || -> Vec<String> {
                let names = sqlx::query_scalar("select env from watch_environment order by environment_id");
                names.fetch_all(&store.pool).await.unwrap()
            };
            let left = names().await;
            assert_eq!((left.len() as u64, left[0].as_str(), left[1].as_str()), (most, "e0", "e4"));
            assert_eq!(store.environment_records().await.unwrap().len() as u64, most);
            assert_eq!(store.unnamed_environments(now()).await.unwrap(), 0);
            let then = now() + 91 * crate::wall_clock::DAY;
            assert_eq!(store.unnamed_environments(then).await.unwrap(), most - 1);
            assert_eq!(store.drop_unnamed_environments(then).await.unwrap(), most - 1);
            assert_eq!(names().await, ["e0"]);
            assert_eq!(store.environment_records().await.unwrap().len(), 1);
        });
    }

    /// As `onbeat import` makes it of another tool's result.
    #[test]
    fn a_run_that_tells_nothing_takes_nothing_from_what_its_board_is() {
        on_each_engine(async |store| {
            let run = recorded_run("measured", "a");
            store.put(&run).await.unwrap();
            let put_nothing = async |id: &str, after: i64| {
                let mut nothing = run.clone();
                nothing.run.id = id.to_owned();
                nothing.run.started += after;
                nothing.environment = EnvironmentRecord {
                    digest: "nothing".into(),
                    preempt: "unknown".into(),
                    settings: r#"{"host.preempt":"unknown","host.siblings":"[]"}"#.into(),
                    ..EnvironmentRecord::default()
                };
                nothing.slots.clear();
                nothing.rows.clear();
                store.put(&nothing).await.unwrap();
            };
            put_nothing("imported", 60).await;
            let board = store.boards().await.unwrap().remove(0);
            assert_eq!((&board.environment, &board.release), (&run.environment.digest, &run.run.release));
            assert_eq!((board.runs, board.last), (2, run.run.started + 60));
            let found = store.environments("a").await.unwrap();
            assert_eq!((found.len(), &*found[0].record, found[0].runs), (1, &run.environment, 1));
            assert_eq!(found[0].last, run.run.started);
            // Also if its recorder continues, and another such run follows.
            store.put_environment(1, "x", &known("x")).await.unwrap();
            let next = run.run.started as u64 / 300 + 5;
            store.put_rows(&[batch(next, next + 9, "x")]).await.unwrap();
            put_nothing("again", 86_400).await;
            let board = store.boards().await.unwrap().remove(0);
            assert_eq!((&board.environment, board.release.as_str()), (&known("x").digest, "6.12-x"));
            let found = store.environments("a").await.unwrap();
            assert_eq!((found.len(), found[0].record.digest.as_str()), (2, known("x").digest.as_str()));
            assert_eq!((found[0].first, found[0].last), (next as i64 * 300, (next as i64 + 8) * 300));
        });
    }
}
