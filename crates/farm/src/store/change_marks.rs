//! What says that changes of a board are to be looked for again on a day that was looked at: counts
//! and names that stay the same with each row or sample that tells nothing new.

use std::collections::BTreeMap;

use model::error::Result;
use sqlx::AssertSqlSafe;

use super::{FarmStore, to_i64, to_u64, trouble};
use crate::changes::{LEAST_FIVE_MINUTES, LEAST_SPIKES};

/// What a board has of what its changes are found from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeMarks {
    /// The environments of the last day of its recorder that are known,
    environments: u64,
    /// and the number of the last one.
    environment: Option<i64>,
    /// Culprits that the recorder named often enough in the last days for one that is new,
    recorded_culprits: u64,
    /// and those that hunts of these days saw often enough.
    hunted_culprits: u64,
    /// Runs of these days that do not count.
    invalid_runs: u64,
}

impl FarmStore {
    /// Those of the boards from one to another by their names that have any, by what is there since
    /// some time. What is asked of each day goes by the indexes of culprits and of runs: it takes
    /// what the last days have, not what a store has.
    pub async fn change_marks(
        &self,
        first: &str,
        last: &str,
        since: i64,
    ) -> Result<BTreeMap<String, ChangeMarks>> {
        let mut all = self.environment_marks(first, last).await?;
        // In this order: few of the days of a culprit are that late.
        let recorded = "select f.board_id, f.culprit_id from \
             (select d.board_id, d.culprit_id, d.t, max(d.slots) as slots \
              from culprit c cross join culprit_day d where d.culprit_id = c.id and d.t >= $3 \
              group by d.board_id, d.culprit_id, d.t) f \
             group by f.board_id, f.culprit_id having cast(sum(f.slots) as bigint) >= $4";
        for (board, count) in self.marked(recorded, first, last, since, LEAST_FIVE_MINUTES).await? {
            all.entry(board).or_default().recorded_culprits = count;
        }
        let hunted = "select k.board_id, k.culprit_id from culprit c cross join culprit_run k \
             where k.culprit_id = c.id and k.t >= $3 and not exists (select 1 from run i \
             where i.board_id = k.board_id and i.id = k.run and i.invalid > 0) \
             group by k.board_id, k.culprit_id \
             having cast(sum(case when k.spikes < $4 then k.spikes else $4 end) as bigint) >= $4";
        for (board, count) in self.marked(hunted, first, last, since, LEAST_SPIKES).await? {
            all.entry(board).or_default().hunted_culprits = count;
        }
        let invalid = "select o.id as board_id from board o cross join run r where r.board_id = o.id \
             and r.started >= $3 and r.invalid >= $4";
        for (board, count) in self.marked(invalid, first, last, since, 1).await? {
            all.entry(board).or_default().invalid_runs = count;
        }
        Ok(all)
    }

    /// Of each board with its name how often a statement has it, which asks for a time and how many
    /// of something are enough.
    async fn marked(
        &self,
        of: &str,
        first: &str,
        last: &str,
        since: i64,
        least: u64,
    ) -> Result<Vec<(String, u64)>> {
        let text = format!(
            "select b.key, count(*) from ({of}) m join board b on b.id = m.board_id \
             where b.key >= $1 and b.key <= $2 group by b.key"
        );
        let counts = sqlx::query_as::<_, (String, i64)>(AssertSqlSafe(text)).bind(first).bind(last);
        let counts = counts.bind(since).bind(to_i64(least)).fetch_all(&self.pool).await.map_err(trouble)?;
        Ok(counts.into_iter().map(|(board, count)| (board, to_u64(count))).collect())
    }

    async fn environment_marks(&self, first: &str, last: &str) -> Result<BTreeMap<String, ChangeMarks>> {
        let rows: Vec<(String, i64, Option<i64>)> = sqlx::query_as(
            "select b.key, (select count(*) from row_environment d join watch_environment w \
              on w.board_id = d.board_id and w.env = d.env where d.board_id = s.board_id and d.t = \
              (select max(m.t) from row_environment m where m.board_id = s.board_id)), \
             (select w.environment_id from watch_environment w where w.board_id = s.board_id and w.env = \
              (select d.env from row_environment d where d.board_id = s.board_id \
               order by d.t desc, d.to_t desc limit 1)) \
             from board b join board_setting s on s.board_id = b.id where b.key >= $1 and b.key <= $2",
        )
        .bind(first)
        .bind(last)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(board, count, environment): (String, i64, Option<i64>)| {
            let environments = to_u64(count);
            (board, ChangeMarks { environments, environment, ..ChangeMarks::default() })
        };
        Ok(rows.into_iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::batch;
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
            // What it is, is told later.
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
