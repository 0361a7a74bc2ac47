//! Measurements by kind of machine and kernel.
//!
//! A run's row contains its histogram; all queries here are answered from the index `run_counted`,
//! so that a page reads no histogram.

use std::collections::{BTreeMap, BTreeSet};

use model::error::Result;
use model::units::Nanos;

use crate::records::KernelRecord;
use crate::store::large_sums::shown;
use crate::store::{FarmStore, nanos, to_u64, trouble};

/// Model, release and preemption of environments by their numbers.
pub type EnvironmentKernels = BTreeMap<i64, (String, String, String)>;

/// Runs of an environment, by series.
type EnvironmentSeries = (i64, String);

impl FarmStore {
    /// Each kind of machine with each of its kernels, by name: from runs, and from recorders. A run
    /// that is invalid, or not over, is excluded.
    pub async fn kernels(&self) -> Result<Vec<KernelRecord>> {
        let environments = self.environment_names().await?;
        let mut groups: BTreeMap<[String; 4], KernelGroup> = BTreeMap::new();
        let place = |environment: i64, series: &str| {
            let (model, release, preempt) = environments.get(&environment)?.clone();
            Some([model, series.to_owned(), release, preempt])
        };
        for (environment, series, board, runs, length, low, max) in self.counted_runs().await? {
            let Some(key) = place(environment, &series) else { continue };
            let group = groups.entry(key).or_default();
            group.boards.insert(board);
            group.record.runs += to_u64(runs);
            group.record.length_ns = group.record.length_ns.saturating_add(to_u64(shown(length, low)));
            if nanos(max) > group.record.max_ns {
                group.record.max_ns = nanos(max);
                group.worst.clear();
            }
            if max.is_some() && nanos(max) == group.record.max_ns {
                group.worst.insert((environment, series));
            }
        }
        for (environment, series, p9999, runs) in self.counted_quantiles().await? {
            let group = place(environment, &series).and_then(|key| groups.get_mut(&key));
            let times = usize::try_from(runs).unwrap_or_default();
            group.into_iter().for_each(|group| {
                group.record.p9999_ns.extend(std::iter::repeat_n(Nanos(p9999), times));
            });
        }
        for (environment, series, started, id, plan, cpus) in self.latest_runs().await? {
            let group = place(environment, &series).and_then(|key| groups.get_mut(&key));
            let plan = format!("{plan}/{cpus}");
            group.into_iter().for_each(|group| group.latest.push((started, id.clone(), plan.clone())));
        }
        let mut all = Vec::new();
        for ([model, series, release, preempt], group) in groups {
            // Of several with the same maximum the latest, regardless of the engine's order.
            let mut worst = None;
            for of in &group.worst {
                let max = group.record.max_ns.unwrap_or_default();
                worst = worst.max(self.run_with_maximum(of.0, &of.1, max).await?);
            }
            let (_, worst_run, worst_board) = worst.unwrap_or_default();
            let boards = group.boards.len() as u64;
            let (latest, latest_plans) = group.latest();
            all.push(KernelRecord {
                model,
                release,
                preempt,
                series,
                boards,
                worst_run,
                worst_board,
                latest,
                latest_plans,
                ..group.record
            });
        }
        all.extend(self.recorded_kernels(&environments).await?);
        // 6.12 comes after 6.6.
        let version = |of: &KernelRecord| -> Vec<u64> {
            of.release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
        };
        all.sort_by_cached_key(|one| (one.model.clone(), one.series.clone(), version(one)));
        Ok(all)
    }

    /// Names of all environments by their numbers.
    pub async fn environment_names(&self) -> Result<EnvironmentKernels> {
        let rows: Vec<(i64, String, String, String)> =
            sqlx::query_as("select id, model, release, preempt from environment")
                .fetch_all(&self.pool)
                .await
                .map_err(trouble)?;
        Ok(rows.into_iter().map(|(id, model, release, preempt)| (id, (model, release, preempt))).collect())
    }

    async fn counted_runs(&self) -> Result<Vec<(i64, String, i64, i64, i64, i64, Option<i64>)>> {
        sqlx::query_as(
            "select environment_id, series, board_id, count(*), \
             cast(coalesce(sum(length_ns / 4294967296), 0) as bigint), \
             cast(coalesce(sum(length_ns % 4294967296), 0) as bigint), max(max_ns) from run \
             where invalid = 0 and complete = 1 group by environment_id, series, board_id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// Each p99.99 with its number of runs: these are edges of a histogram's rows, and few.
    async fn counted_quantiles(&self) -> Result<Vec<(i64, String, i64, i64)>> {
        sqlx::query_as(
            "select environment_id, series, p9999_ns, count(*) from run \
             where invalid = 0 and complete = 1 and p9999_ns is not null \
             group by environment_id, series, p9999_ns",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// Latest runs with their plans and numbers of CPUs, the only columns outside the index.
    async fn latest_runs(&self) -> Result<Vec<(i64, String, i64, String, String, i64)>> {
        sqlx::query_as(
            "select l.environment_id, l.series, l.started, l.id, r.plan, r.cpus from \
             (select environment_id, series, started, id, board_id, \
              row_number() over (partition by environment_id, series order by started desc, id desc) \
               as place from run where invalid = 0 and complete = 1) l \
             join run r on r.board_id = l.board_id and r.id = l.id where l.place <= $1",
        )
        .bind(KernelRecord::LATEST as i64)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)
    }

    /// The latest run of an environment and series with this maximum, and its board.
    async fn run_with_maximum(
        &self,
        environment: i64,
        series: &str,
        max: Nanos,
    ) -> Result<Option<(i64, String, String)>> {
        sqlx::query_as(
            "select r.started, r.id, b.key from run r join board b on b.id = r.board_id \
             where r.environment_id = $1 and r.series = $2 and r.max_ns = $3 \
             and r.invalid = 0 and r.complete = 1 order by r.started desc, r.id desc limit 1",
        )
        .bind(environment)
        .bind(series)
        .bind(max.0)
        .fetch_optional(&self.pool)
        .await
        .map_err(trouble)
    }
}

/// A kind of machine with a kernel, while it is put together.
#[derive(Default)]
struct KernelGroup {
    record: KernelRecord,
    boards: BTreeSet<i64>,
    /// Environments and series with its largest latency.
    worst: BTreeSet<EnvironmentSeries>,
    /// Start of each, its id and its plan.
    latest: Vec<(i64, String, String)>,
}

impl KernelGroup {
    /// The ids of the latest, and their plans.
    fn latest(&self) -> (Vec<String>, Vec<String>) {
        let mut all: Vec<&(i64, String, String)> = self.latest.iter().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().take(KernelRecord::LATEST).map(|(_, id, plan)| (id.clone(), plan.clone())).unzip()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::recorded_run;
    use crate::store::engines::on_each_engine;

    #[test]
    fn the_latest_runs_of_a_kernel_are_told_with_their_plans() {
        on_each_engine(async |store| {
            for (number, plan) in ["p", "q", "q"].into_iter().enumerate() {
                let mut record = recorded_run("measured", "a");
                record.run.id = format!("r{number}");
                record.run.started += number as i64 * 3_600;
                (record.run.key.plan, record.run.cpus) = (plan.into(), 2);
                record.slots.clear();
                record.rows.clear();
                store.put(&record).await.unwrap();
            }
            let all = store.kernels().await.unwrap();
            let of_runs = all.iter().find(|one| !one.is_recorded()).unwrap();
            assert_eq!(of_runs.latest.join(" "), "r2 r1 r0");
            assert_eq!(of_runs.latest_plans.join(" "), "q/2 q/2 p/2");
            assert!(of_runs.is_mixed());
        });
    }
}
