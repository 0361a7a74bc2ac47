//! Marks that show when a board has to be searched for changes again on a day that was searched:
//! counts and times that stay the same with each row or sample without new information.
//!
//! A board that sends again after days offline sends its newest rows first, and then the waiting
//! ones series by series, the oldest first. Each earlier day that arrives so changes a mark. All
//! marks are in the database: each server that uses it sees the data received by any of them.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use crate::changes::{LEAST_FIVE_MINUTES, LEAST_SPIKES, SHOWN_DAYS};
use crate::ingest::plausible::latest_now;
use crate::store::{FarmStore, to_i64, to_u64, trouble};
use crate::wall_clock::DAY;

/// Range of a board's days that are marked, in seconds, up to its own last day: a day of another
/// board changes none of its marks.
const MARKED: i64 = SHOWN_DAYS * DAY;

/// Marks of the data in which a board's changes are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeMarks {
    /// Number of known environments of its recorder.
    environments: u64,
    /// Number of the last one.
    environment: Option<i64>,
    rows: RowMarks,
    /// Days with histograms of its series, each series separately, without the last day, on which
    /// its series begin one after the other.
    series_days: u64,
    /// Number of culprits that the recorder named often enough in the last days to be new, and the
    /// sum of the times of their first ones, without those of the first day.
    recorded_culprits: u64,
    recorded_first: i64,
    /// Number of culprits that hunts of these days saw often enough.
    hunted_culprits: u64,
    /// Runs of these days that do not count.
    invalid_runs: u64,
}

/// Environments of a board's days in the store, by the rows of its recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RowMarks {
    /// Number of environments of each day, summed up over the days.
    environments: u64,
    /// Sums of the first and of the last five minutes of the environments on each day, without the
    /// end of the current one.
    begun: i64,
    ended: i64,
}

impl FarmStore {
    /// Marks of the boards within a range of keys that have any; culprits and runs are limited to a
    /// time. The per-day queries use indexes: their cost depends on the last days, and not on the
    /// size of the store.
    pub async fn change_marks(
        &self,
        first: &str,
        last: &str,
        since: i64,
    ) -> Result<BTreeMap<String, ChangeMarks>> {
        let mut all = self.day_marks(first, last).await?;
        // In this order: few of the days of a culprit are that late.
        let recorded = "select f.board_id, f.culprit_id, \
             case when min(f.t) > $3 then min(f.first) else 0 end as seen from \
             (select d.board_id, d.culprit_id, d.t, max(d.slots) as slots, min(d.from_t) as first \
              from culprit c cross join culprit_day d where d.culprit_id = c.id and d.t >= $3 \
              group by d.board_id, d.culprit_id, d.t) f \
             group by f.board_id, f.culprit_id having cast(sum(f.slots) as bigint) >= $4";
        for (board, count, seen) in self.marked(recorded, first, last, since, LEAST_FIVE_MINUTES).await? {
            let marks = all.entry(board).or_default();
            (marks.recorded_culprits, marks.recorded_first) = (count, seen);
        }
        let hunted = "select k.board_id, k.culprit_id, 0 as seen from culprit c cross join culprit_run k \
             where k.culprit_id = c.id and k.t >= $3 and not exists (select 1 from run i \
             where i.board_id = k.board_id and i.id = k.run and i.invalid > 0) \
             group by k.board_id, k.culprit_id \
             having cast(sum(case when k.spikes < $4 then k.spikes else $4 end) as bigint) >= $4";
        for (board, count, _) in self.marked(hunted, first, last, since, LEAST_SPIKES).await? {
            all.entry(board).or_default().hunted_culprits = count;
        }
        let invalid = "select o.id as board_id, 0 as seen from board o cross join run r \
             where r.board_id = o.id and r.started >= $3 and r.invalid >= $4";
        for (board, count, _) in self.marked(invalid, first, last, since, 1).await? {
            all.entry(board).or_default().invalid_runs = count;
        }
        Ok(all)
    }

    /// Number of a statement's results for each board by key, given a time and a minimum count,
    /// with the sum of its column `seen`.
    async fn marked(
        &self,
        of: &str,
        first: &str,
        last: &str,
        since: i64,
        least: u64,
    ) -> Result<Vec<(String, u64, i64)>> {
        let text = format!(
            "select b.key, count(*), cast(sum(m.seen) as bigint) from ({of}) m \
             join board b on b.id = m.board_id where b.key >= $1 and b.key <= $2 group by b.key"
        );
        let counts = sqlx::query_as::<_, (String, i64, i64)>(AssertSqlSafe(text)).bind(first).bind(last);
        let counts = counts.bind(since).bind(to_i64(least)).fetch_all(&self.pool).await.map_err(trouble)?;
        Ok(counts.into_iter().map(|(board, count, seen)| (board, to_u64(count), seen)).collect())
    }

    /// Marks without culprits and runs. The query of each board is separate, so that a database
    /// uses its indexes board by board, however few the boards are.
    async fn day_marks(&self, first: &str, last: &str) -> Result<BTreeMap<String, ChangeMarks>> {
        let rows =
            format!("from row_environment d where d.board_id = l.board_id and d.t > l.last_row - {MARKED}");
        let text = format!(
            "select b.key, (select count(*) from watch_environment k where k.board_id = l.board_id), \
             (select w.environment_id from watch_environment w where w.board_id = l.board_id and w.env = \
              (select d.env from row_environment d where d.board_id = l.board_id \
               order by d.t desc, d.to_t desc, d.from_t desc limit 1)), (select count(*) {rows}), \
             (select cast(sum(d.from_t) as bigint) {rows}), \
             (select cast(sum(d.to_t) - max(d.to_t) as bigint) {rows}), \
             (select count(*) from hist h where h.board_id = l.board_id and h.tier = 2 \
              and h.t > l.last_day - {MARKED} and h.t < l.last_day) \
             from board b join (select s.board_id, (select max(m.t) from row_environment m \
              where m.board_id = s.board_id) as last_row, (select max(n.t) from hist n \
              where n.board_id = s.board_id and n.tier = 2 and n.t <= $3) as last_day \
              from board_setting s) l on l.board_id = b.id where b.key >= $1 and b.key <= $2"
        );
        type Row = (String, i64, Option<i64>, i64, Option<i64>, Option<i64>, i64);
        let found = sqlx::query_as(AssertSqlSafe(text)).bind(first).bind(last).bind(latest_now());
        let found: Vec<Row> = found.fetch_all(&self.pool).await.map_err(trouble)?;
        let one = |(board, known, environment, count, begun, ended, days): Row| {
            let rows = RowMarks {
                environments: to_u64(count),
                begun: begun.unwrap_or_default(),
                ended: ended.unwrap_or_default(),
            };
            let (environments, series_days) = (to_u64(known), to_u64(days));
            (board, ChangeMarks { environments, environment, rows, series_days, ..ChangeMarks::default() })
        };
        Ok(found.into_iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{batch, batch_of};
    use crate::fixture::recorded_run;
    use crate::records::EnvironmentRecord;
    use crate::store::engines::on_each_engine;

    const DAY: i64 = 86_400;

    fn known(env: &str) -> EnvironmentRecord {
        EnvironmentRecord { digest: env.into(), release: env.into(), ..EnvironmentRecord::default() }
    }

    #[test]
    fn rows_that_tell_nothing_new_leave_the_marks_of_a_board_as_they_are() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            store.board_for("b", "b").await.unwrap();
            let marks = async || store.change_marks("a", "a", 0).await.unwrap()["a"];
            assert_eq!(marks().await, ChangeMarks::default());
            store.put_environment(1, "x", &known("x")).await.unwrap();
            store.put_rows(&[batch(0, 12, "hog", "x")]).await.unwrap();
            let before = marks().await;
            assert_eq!((before.environments, before.recorded_culprits), (1, 1));
            store.put_rows(&[batch(12, 200, "hog", "x")]).await.unwrap();
            store.put_rows(&[batch(200, 211, "zeta", "x")]).await.unwrap();
            assert_eq!(marks().await, before, "zeta might be an accident");
            store.put_rows(&[batch(211, 212, "zeta", "x")]).await.unwrap();
            assert_eq!(marks().await, ChangeMarks { recorded_culprits: 2, ..before });
            // The definition of the environment arrives later.
            store.put_rows(&[batch(212, 213, "zeta", "y")]).await.unwrap();
            assert_eq!(marks().await.environment, None);
            store.put_environment(1, "y", &known("y")).await.unwrap();
            let other = marks().await;
            assert!(other.environments == 2 && other.environment != before.environment, "{other:?}");
            store.put_rows(&[batch(213, 214, "zeta", "x")]).await.unwrap();
            assert_eq!(marks().await.environment, before.environment);
            assert_eq!(store.change_marks("a", "b", DAY).await.unwrap()["b"], ChangeMarks::default());
            assert_eq!(store.change_marks("a", "b", DAY).await.unwrap()["a"].recorded_culprits, 0);
        });
    }

    #[test]
    fn rows_of_an_earlier_day_that_tell_something_move_the_marks_of_their_board() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            store.board_for("b", "b").await.unwrap();
            let marks = async || store.change_marks("a", "b", 6 * DAY).await.unwrap();
            // The newest day first.
            store.put_rows(&[batch(20 * 288 + 10, 20 * 288 + 50, "hog", "x")]).await.unwrap();
            let of_b = marks().await["b"];
            let mut before = marks().await["a"];
            store.put_rows(&[batch(20 * 288 + 50, 20 * 288 + 60, "hog", "x")]).await.unwrap();
            assert_eq!(marks().await["a"], before, "it goes on");
            let late = [
                ("a day", batch(10 * 288, 10 * 288 + 50, "hog", "x")),
                ("the next part of it", batch(10 * 288 + 50, 10 * 288 + 60, "hog", "x")),
                ("another environment of it", batch(10 * 288 + 80, 10 * 288 + 81, "hog", "y")),
                ("an earlier time of that", batch(10 * 288 + 70, 10 * 288 + 71, "hog", "y")),
                ("another series of it", batch_of("timer", 10 * 288, 10 * 288 + 9, "hog", "x")),
                ("a part of the last day", batch(20 * 288, 20 * 288 + 1, "hog", "x")),
            ];
            for (what, rows) in late {
                store.put_rows(&[rows]).await.unwrap();
                let now = marks().await["a"];
                assert_ne!(now, before, "{what}");
                before = now;
            }
            assert_eq!((before.rows.environments, before.series_days), (3, 2), "{before:?}");
            // A culprit that was named often enough is named earlier.
            store.put_rows(&[batch(20 * 288 + 200, 20 * 288 + 220, "zeta", "x")]).await.unwrap();
            before = marks().await["a"];
            store.put_rows(&[batch(20 * 288 + 100, 20 * 288 + 101, "zeta", "x")]).await.unwrap();
            let now = marks().await["a"];
            assert_eq!(now, ChangeMarks { recorded_first: now.recorded_first, ..before });
            assert_eq!(now.recorded_first, before.recorded_first - 100 * 300);
            assert_eq!(marks().await["b"], of_b);
        });
    }

    #[test]
    fn a_later_state_of_a_hunt_and_one_that_does_not_count_are_seen() {
        on_each_engine(async |store| {
            let recorded = recorded_run("hunt", "a");
            let mut hunt = recorded.clone();
            (hunt.run.complete, hunt.digest) = (false, b"earlier".to_vec());
            (hunt.slots, hunt.rows) = (Vec::new(), Vec::new());
            hunt.culprits.clear();
            store.put(&hunt).await.unwrap();
            let marks = async || store.change_marks("a", "a", 0).await.unwrap()["a"];
            assert_eq!(marks().await, ChangeMarks::default());
            let culprits = recorded.culprits.iter().filter(|one| one.spikes >= 3).count() as u64;
            (hunt.run.complete, hunt.digest) = (true, recorded.digest.clone());
            hunt.culprits.clone_from(&recorded.culprits);
            store.put(&hunt).await.unwrap();
            let found = marks().await;
            assert!(culprits > 0 && found.hunted_culprits == culprits, "{found:?}");
            (hunt.run.id, hunt.run.invalid) = ("spoiled".into(), 1);
            store.put(&hunt).await.unwrap();
            assert_eq!(marks().await, ChangeMarks { invalid_runs: 1, ..found });
        });
    }
}
