//! Measurements of recorders by kind of machine and kernel, from their rows.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;
use model::watch::WatchSeries;
use sqlx::AssertSqlSafe;

use crate::records::KernelRecord;
use crate::store::changes::kernels::EnvironmentKernels;
use crate::store::{FarmStore, nanos, to_u64, trouble};

/// An environment, a series, a board, its days, and the largest latency of these.
type RecordedDays = (i64, String, i64, i64, Option<i64>);

/// A kind of machine with a kernel, while it is put together.
#[derive(Default)]
struct RecordedGroup {
    boards: BTreeSet<i64>,
    days: u64,
    max_ns: Option<Nanos>,
    /// The environment and the board that it is of.
    worst: (i64, i64),
}

impl FarmStore {
    /// Each kind of machine with each kernel under a recorder, over all days with it. A day on
    /// which a board had another environment, too, is excluded.
    pub async fn recorded_kernels(&self, names: &EnvironmentKernels) -> Result<Vec<KernelRecord>> {
        let mut groups: BTreeMap<[String; 4], RecordedGroup> = BTreeMap::new();
        for (environment, series, board, days, max) in self.recorded_days().await? {
            let Some((model, release, preempt)) = names.get(&environment).cloned() else { continue };
            let group = groups.entry([model, series, release, preempt]).or_default();
            group.boards.insert(board);
            group.days += to_u64(days);
            if nanos(max) > group.max_ns {
                (group.max_ns, group.worst) = (nanos(max), (environment, board));
            }
        }
        let mut all = Vec::new();
        for ([model, series, release, preempt], group) in groups {
            let worst = self.worst_recorded(&series, &group).await?;
            let (worst_board, worst_plan, worst_day) = worst.unwrap_or_default();
            all.push(KernelRecord {
                model,
                release,
                preempt,
                series,
                boards: group.boards.len() as u64,
                days: group.days,
                max_ns: group.max_ns,
                worst_board,
                worst_plan,
                worst_day,
                ..KernelRecord::default()
            });
        }
        Ok(all)
    }

    async fn recorded_days(&self) -> Result<Vec<RecordedDays>> {
        let series: Vec<String> =
            WatchSeries::ALL.iter().map(|series| format!("'{}'", series.name())).collect();
        let series = series.join(", ");
        // Years of every board, but of the index alone: of fewer days the largest latency of a
        // kernel would not be the largest.
        let text = format!(
            "select w.environment_id, k.series, k.board_id, k.days, k.max_ns from \
             (select d.board_id, d.env, h.series, count(distinct h.t) as days, max(h.max_ns) as max_ns from \
              (select board_id, t, min(env) as env from row_environment \
               group by board_id, t having count(*) = 1) d \
              cross join hist h where h.board_id = d.board_id and h.tier = 2 and h.t = d.t \
              and h.series in ({series}) and h.max_ns is not null group by d.board_id, d.env, h.series) k \
             join watch_environment w on w.board_id = k.board_id and w.env = k.env \
             order by w.environment_id, k.series, k.board_id"
        );
        let days = sqlx::query_as(AssertSqlSafe(text));
        days.fetch_all(&self.pool).await.map_err(trouble)
    }

    /// The board, the plan and the last day of a group's largest latency.
    async fn worst_recorded(
        &self,
        series: &str,
        of: &RecordedGroup,
    ) -> Result<Option<(String, String, i64)>> {
        let Some(max) = of.max_ns else { return Ok(None) };
        let (environment, board) = of.worst;
        sqlx::query_as(
            "select b.key, h.plan, h.t from hist h join board b on b.id = h.board_id \
             join row_environment d on d.board_id = h.board_id and d.t = h.t \
             join watch_environment w on w.board_id = d.board_id and w.env = d.env \
             where h.board_id = $1 and h.tier = 2 and h.series = $2 and h.max_ns = $3 \
             and w.environment_id = $4 and not exists (select 1 from row_environment o \
             where o.board_id = d.board_id and o.t = d.t and o.env <> d.env) order by h.t desc limit 1",
        )
        .bind(board)
        .bind(series)
        .bind(max.0)
        .bind(environment)
        .fetch_optional(&self.pool)
        .await
        .map_err(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, recording, wakeups};
    use crate::ingest::environment::watch_environment;
    use crate::ingest::rows::RowsOf;
    use crate::store::RowBatch;
    use crate::store::engines::on_each_engine;

    use model::watch::{WatchEnvironment, WatchRow};

    const DAY: i64 = 86_400;

    /// A row of a day.
    fn row(board_id: i64, day: i64, env: &str, max: i64) -> RowBatch {
        let of = RowsOf { recording: format!("r{env}"), ..recording("timer") };
        let row = WatchRow { max_ns: Some(Nanos(max)), ..wakeups(3) };
        let line = (day as u64, day * DAY + 600, vec![row]);
        RowBatch { board_id, ..lines_of(of, env, [line]) }
    }

    #[test]
    fn recorders_are_on_the_kernels_that_their_rows_name() {
        on_each_engine(async |store| {
            let (a, b) = (store.board_for("a", "a").await.unwrap(), store.board_for("b", "b").await.unwrap());
            for id in [a, b] {
                for env in ["old", "new"] {
                    let known = watch_environment(&WatchEnvironment {
                        env: env.into(),
                        release: format!("6.12-{env}"),
                        settings: [("model".to_owned(), "a board".to_owned())].into(),
                        ..WatchEnvironment::default()
                    })
                    .record;
                    store.put_environment(id, env, &known).await.unwrap();
                }
            }
            for (board, day, env, max) in [
                (a, 10, "old", 50),
                (a, 11, "old", 70),
                (b, 11, "old", 70),
                // A day with two environments counts for neither.
                (a, 12, "old", 900),
                (a, 12, "new", 900),
                (a, 13, "new", 40),
            ] {
                store.put_rows(&[row(board, day, env, max)]).await.unwrap();
            }
            let all = store.kernels().await.unwrap();
            let told: Vec<_> = all
                .iter()
                .map(|one| (one.release.as_str(), one.boards, one.days, one.max_ns, one.worst_day / DAY))
                .collect();
            assert_eq!(
                told,
                [("6.12-new", 1, 1, Some(Nanos(40)), 13), ("6.12-old", 2, 3, Some(Nanos(70)), 11)]
            );
            assert!(all.iter().all(|one| one.runs == 0 && one.series == "timer" && one.model == "a board"));
            assert_eq!((all[0].worst_board.as_str(), all[0].worst_plan.as_str()), ("a", ""));
            // The maximum counts however old it is; a larger value on a day with two environments
            // does not.
            for day in 14..75 {
                store.put_rows(&[row(a, day, "new", 30)]).await.unwrap();
            }
            for env in ["old", "new"] {
                store.put_rows(&[row(a, 75, env, 40)]).await.unwrap();
            }
            let all = store.kernels().await.unwrap();
            assert_eq!((all[0].days, all[0].max_ns, all[0].worst_day / DAY), (62, Some(Nanos(40)), 13));
            // Another setting is the same kernel.
            let known = watch_environment(&WatchEnvironment {
                env: "set".into(),
                release: "6.12-new".into(),
                settings: [("model", "a board"), ("governor", "powersave")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                ..WatchEnvironment::default()
            })
            .record;
            store.put_environment(a, "set", &known).await.unwrap();
            for day in 76..80 {
                store.put_rows(&[row(a, day, "set", 20)]).await.unwrap();
            }
            let all = store.kernels().await.unwrap();
            assert_eq!((all.len(), all[0].boards, all[0].days, all[0].max_ns), (2, 1, 66, Some(Nanos(40))));
            assert_eq!(all[0].worst_day / DAY, 13);
        });
    }
}
