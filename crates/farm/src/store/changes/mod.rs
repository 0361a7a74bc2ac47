//! Input for the search of changes: the largest latency of each day and of each five minutes,
//! culprits and the first time of each on a board, and invalid runs.

pub mod acknowledged;
pub mod change_marks;
pub mod culprit_days;
pub mod culprits;
pub mod kernels;
pub mod notifications;
pub mod recorded_kernels;

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;

use crate::changes::{CulpritSeen, InvalidRun};
use crate::records::{DayMaximum, SeriesKey};
use crate::store::large_sums::shown;
use crate::store::{FarmStore, TimeStretch, to_u64, trouble};
use crate::wall_clock::DAY;

/// A culprit in the rows of a board's recorder.
struct RecordedCulprit {
    fingerprint: String,
    name: String,
    first: i64,
    five_minutes: u64,
    /// Start of the first valid run with it.
    run_first: Option<i64>,
    /// The series of the first five minutes.
    series: String,
}

impl FarmStore {
    /// The five minutes of a stretch, oldest first: the first second and the largest latency of
    /// each, of all recordings that have it but runs that do not count.
    pub async fn slot_maxima(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
    ) -> Result<Vec<(i64, Nanos)>> {
        let rows: Vec<(i64, i64)> = sqlx::query_as(
            "select s.t, max(s.max_ns) from slot s join board b on b.id = s.board_id \
             where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5 \
             and s.max_ns is not null and not exists (select 1 from run r where r.board_id = s.board_id \
             and r.id = s.recording and r.invalid > 0) group by s.t order by s.t",
        )
        .bind(board)
        .bind(&key.series)
        .bind(&key.plan)
        .bind(within.from)
        .bind(within.to)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        Ok(rows.into_iter().map(|(t, max)| (t, Nanos(max))).collect())
    }

    /// Largest latency of each day from one on and of each series, oldest first, including invalid
    /// runs.
    pub async fn day_maxima(&self, board: &str, from: i64) -> Result<Vec<(SeriesKey, DayMaximum)>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
            "select h.series, h.plan, h.t, h.max_ns from hist h join board b on b.id = h.board_id \
             where b.key = $1 and h.tier = 2 and h.t >= $2 and h.max_ns is not null \
             order by h.t, h.series, h.plan",
        )
        .bind(board)
        .bind(from)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one =
            |(series, plan, t, max_ns)| (SeriesKey { series, plan }, DayMaximum { t, max_ns: Nanos(max_ns) });
        Ok(rows.into_iter().map(one).collect())
    }

    /// The runs of a board that do not count and were on at some time or later.
    pub async fn invalid_runs(&self, board: &str, from: i64) -> Result<Vec<InvalidRun>> {
        let rows: Vec<(String, String, String, i64, i64)> = sqlx::query_as(
            "select r.id, r.series, r.plan, r.started, r.started + coalesce(r.length_ns, 0) / 1000000000 \
             from run r join board b on b.id = r.board_id where b.key = $1 and r.invalid > 0 \
             and r.started + coalesce(r.length_ns, 0) / 1000000000 >= $2 order by r.started, r.id",
        )
        .bind(board)
        .bind(from)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(id, series, plan, started, ended)| {
            let key = SeriesKey { series, plan };
            InvalidRun { id, key, started, ended }
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// Culprits of a board that are new since a time, in runs and in its recorder's five minutes.
    /// After a replacement of its hardware, earlier hunts and days do not count.
    pub async fn culprits_since(
        &self,
        board: &str,
        since: i64,
        hardware: Option<i64>,
    ) -> Result<Vec<CulpritSeen>> {
        let hardware = hardware.unwrap_or(i64::MIN);
        let in_runs = self.culprits_of_runs_since(board, since, hardware).await?.into_iter();
        let mut all: BTreeMap<String, CulpritSeen> =
            in_runs.map(|one| (one.fingerprint.clone(), one)).collect();
        let recorded = self.culprits_of_recorder(board).await?;
        let is_first = |one: &RecordedCulprit| one.run_first.is_none_or(|first| one.first < first);
        let some = recorded.iter().any(|one| is_first(one) && one.first >= since);
        let days = if some { self.days_with_culprits(board).await? } else { Vec::new() };
        for one in recorded {
            let is_first = is_first(&one);
            if is_first && one.first < since {
                all.remove(&one.fingerprint);
            } else if is_first {
                let seen = all.entry(one.fingerprint.clone()).or_default();
                (seen.board, seen.fingerprint, seen.name) = (board.to_owned(), one.fingerprint, one.name);
                (seen.first, seen.five_minutes, seen.series) = (one.first, one.five_minutes, one.series);
                let is_before = |day: &&i64| **day >= hardware && **day + DAY <= one.first;
                seen.days_before = days.iter().filter(is_before).count() as u64;
            } else if let Some(seen) = all.get_mut(&one.fingerprint) {
                seen.five_minutes = one.five_minutes;
            }
        }
        let mut all: Vec<CulpritSeen> = all.into_values().collect();
        all.sort_by(|a, b| (a.first, &a.fingerprint).cmp(&(b.first, &b.fingerprint)));
        Ok(all)
    }

    /// Culprits whose first run began at some time or later.
    async fn culprits_of_runs_since(
        &self,
        board: &str,
        since: i64,
        hardware: i64,
    ) -> Result<Vec<CulpritSeen>> {
        type Row = (String, String, String, i64, i64, i64, i64, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select b.key, c.fingerprint, c.name, f.first, f.spikes, f.low, \
             (select count(*) from run r where r.board_id = f.board_id and r.series = 'hunt' \
              and r.started >= $3 and r.started < f.first and r.invalid = 0), \
             (select min(k.run) from culprit_run k where k.board_id = f.board_id and \
              k.culprit_id = f.culprit_id and k.t = f.first and not exists (select 1 from run i \
              where i.board_id = k.board_id and i.id = k.run and i.invalid > 0)) \
             from board b join (select board_id, culprit_id, min(t) as first, \
              cast(sum(spikes / 4294967296) as bigint) as spikes, \
              cast(sum(spikes % 4294967296) as bigint) as low from culprit_run a \
              where a.board_id = (select id from board where key = $1) and not exists (select 1 \
              from run i where i.board_id = a.board_id and i.id = a.run and i.invalid > 0) \
              group by board_id, culprit_id) f \
              on f.board_id = b.id join culprit c on c.id = f.culprit_id \
             where b.key = $1 and f.first >= $2 order by f.first, c.fingerprint",
        )
        .bind(board)
        .bind(since)
        .bind(hardware)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let seen = |(board, fingerprint, name, first, spikes, low, hunts, run): Row| CulpritSeen {
            board,
            fingerprint,
            name,
            first,
            spikes: to_u64(shown(spikes, low)),
            hunts_before: to_u64(hunts),
            run,
            ..CulpritSeen::default()
        };
        Ok(rows.into_iter().map(seen).collect())
    }

    async fn culprits_of_recorder(&self, board: &str) -> Result<Vec<RecordedCulprit>> {
        type Row = (String, String, i64, i64, Option<i64>, String);
        let rows: Vec<Row> = sqlx::query_as(
            "select c.fingerprint, c.name, d.first, d.slots, \
             (select min(k.t) from culprit_run k where k.board_id = d.board_id and \
              k.culprit_id = d.culprit_id and not exists (select 1 from run i \
              where i.board_id = k.board_id and i.id = k.run and i.invalid > 0)), \
             (select min(x.series) from culprit_day x where x.board_id = d.board_id and \
              x.culprit_id = d.culprit_id and x.t = d.day and x.from_t = d.first) \
             from (select board_id, culprit_id, min(t) as day, min(first) as first, \
              cast(sum(slots) as bigint) as slots from \
              (select board_id, culprit_id, t, max(slots) as slots, min(from_t) as first from culprit_day \
               where board_id = (select id from board where key = $1) group by board_id, culprit_id, t) s \
              group by board_id, culprit_id) d join culprit c on c.id = d.culprit_id order by c.fingerprint",
        )
        .bind(board)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one = |(fingerprint, name, first, slots, run_first, series): Row| RecordedCulprit {
            fingerprint,
            name,
            first,
            five_minutes: to_u64(slots),
            run_first,
            series,
        };
        Ok(rows.into_iter().map(one).collect())
    }

    /// The days on which its recorder named any.
    async fn days_with_culprits(&self, board: &str) -> Result<Vec<i64>> {
        let days = sqlx::query_scalar(
            "select distinct t from culprit_day where board_id = (select id from board where key = $1)",
        );
        days.bind(board).fetch_all(&self.pool).await.map_err(trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::named_rows::{lines_of, named, recording};
    use crate::fixture::recorded_run;

    use crate::store::engines::on_each_engine;
    use crate::store::{CulpritDaysFrom, RowBatch};

    use model::units::{Cpu, Nanos};
    use model::watch::WatchRow;

    /// Rows of a day, each of which names a culprit by its part of the largest latency.
    fn day(series: &str, day: u64, name: impl Fn(u64) -> &'static str) -> RowBatch {
        let line = |seq: u64| {
            let mut row = named(1, name(seq % 288));
            (row.culprit.rule, row.culprit.kind) = (Some("realtime-thread".into()), "thread".into());
            (seq, seq as i64 * 300, vec![row])
        };
        lines_of(recording(series), "", (day * 288..(day + 1) * 288).map(line))
    }

    #[test]
    fn what_recorders_name_counts_once_and_is_new_after_days_without() {
        on_each_engine(async |store| {
            store.put(&recorded_run("hunt", "a")).await.unwrap();
            let hunted = store.culprits(None, 99).await.unwrap();
            let hog = |seq: u64| if seq < 200 { "hog" } else { "" };
            let first: Vec<RowBatch> = (0..10).map(|at| day("wakeup", at, hog)).collect();
            for batch in first.iter().chain(&first) {
                store.put_rows(std::slice::from_ref(batch)).await.unwrap();
            }
            // The same wake-ups in another series.
            let fewer = |seq: u64| if seq < 100 { "hog" } else { "" };
            store.put_rows(&[day("timer+wakeup", 0, fewer)]).await.unwrap();
            let late = |seq: u64| if (20..32).contains(&seq) { "zeta" } else { "hog" };
            store.put_rows(&[day("wakeup", 10, late)]).await.unwrap();

            let all = store.culprits(Some("a"), 99).await.unwrap();
            assert_eq!(all.len(), hunted.len() + 2);
            let of = |name: &str| all.iter().find(|one| one.name.ends_with(name)).unwrap().clone();
            let (hog, zeta) = (of(": hog"), of(": zeta"));
            assert_eq!((hog.five_minutes, hog.total_ns), (10 * 200 + 276, Nanos(100 * (10 * 200 + 276))));
            assert_eq!((hog.runs, hog.spikes, hog.boards, hog.first), (0, 0, 1, 0));
            assert_eq!((zeta.five_minutes, zeta.first), (12, 10 * DAY + 20 * 300));
            assert_eq!((zeta.last, zeta.example.as_str()), (10 * DAY + 31 * 300, ""));
            assert!(!zeta.remedy.is_empty());
            assert_eq!(store.culprit(&zeta.fingerprint).await.unwrap().unwrap(), zeta);
            let days = store.culprit_days(&hog.fingerprint, &CulpritDaysFrom::default(), 99).await.unwrap();
            assert_eq!((days.len(), days[10].five_minutes, days[10].series.as_str()), (11, 200, "wakeup"));
            assert!(store.culprits(Some("b"), 9).await.unwrap().is_empty());

            let seen = store.culprits_since("a", 10 * DAY, None).await.unwrap();
            let seen: BTreeMap<_, _> = seen.iter().map(|one| (one.fingerprint.as_str(), one)).collect();
            assert!(!seen.contains_key(hog.fingerprint.as_str()), "it was there before");
            let new = seen[zeta.fingerprint.as_str()];
            assert_eq!((new.five_minutes, new.days_before, new.series.as_str()), (12, 10, "wakeup"));
            assert_eq!(crate::changes::new_culprits(std::slice::from_ref(new), 0).len(), 1);
            // The findings of hunts are unchanged.
            assert_eq!(seen.len(), 1 + hunted.len());
            assert!(hunted.iter().all(|one| seen[one.fingerprint.as_str()].spikes == one.spikes));
        });
    }

    #[test]
    fn five_minutes_count_once_for_however_many_cpus() {
        on_each_engine(async |store| {
            store.put(&recorded_run("measured", "a")).await.unwrap();
            let row = |cpu: u32| WatchRow { cpu: Some(Cpu(cpu)), ..named(1, "hog") };
            let lines = [(0, 0, vec![row(0), row(1), row(3)]), (1, 300, vec![row(2)])];
            let batch = lines_of(recording("wakeup"), "", lines);
            store.put_rows(&[batch]).await.unwrap();
            let hog = store.culprits(None, 9).await.unwrap().remove(0);
            assert_eq!((hog.name.as_str(), hog.five_minutes, hog.total_ns), ("hog", 2, Nanos(400)));
        });
    }

    #[test]
    fn a_hunt_and_a_recorder_that_name_the_same_thread_name_one_culprit() {
        on_each_engine(async |store| {
            let hunt = recorded_run("hunt", "a");
            store.put(&hunt).await.unwrap();
            store.put_rows(&[day("wakeup", 0, |_| "fault_hogger")]).await.unwrap();
            let all = store.culprits(None, 99).await.unwrap();
            assert_eq!(all.len(), hunt.culprits.len());
            let both = all.iter().find(|one| one.five_minutes > 0).unwrap();
            assert_eq!((both.five_minutes, both.runs, both.boards), (288, 1, 1));
            let known = hunt.culprits.iter().find(|one| one.fingerprint == both.fingerprint).unwrap();
            assert_eq!((&both.name, both.spikes), (&known.name, known.spikes));
            // The recorder had it first: of the time after it nothing is new.
            let seen = store.culprits_since("a", DAY, None).await.unwrap();
            assert!(seen.iter().all(|one| one.fingerprint != both.fingerprint));
        });
    }

    #[test]
    fn a_hunt_that_does_not_count_hides_nothing_that_a_recorder_names() {
        on_each_engine(async |store| {
            store.board_for("a", "a").await.unwrap();
            for at in 0..10 {
                store.put_rows(&[day("wakeup", at, |_| "other")]).await.unwrap();
            }
            store.put_rows(&[day("wakeup", 10, |_| "fault_hogger")]).await.unwrap();
            let new = async || -> Vec<i64> {
                let seen = store.culprits_since("a", 10 * DAY, None).await.unwrap();
                crate::changes::new_culprits(&seen, 0).into_iter().map(|one| one.from).collect()
            };
            assert_eq!(new().await, [10 * DAY]);
            let mut hunt = recorded_run("hunt", "a");
            hunt.run.started = 5 * DAY;
            (hunt.slots, hunt.rows) = (Vec::new(), Vec::new());
            (hunt.run.id, hunt.run.invalid) = ("spoiled".into(), 1);
            store.put(&hunt).await.unwrap();
            assert_eq!(new().await, [10 * DAY]);
            // A valid one had it before.
            (hunt.run.id, hunt.run.invalid) = ("counts".into(), 0);
            hunt.digest = b"another".to_vec();
            store.put(&hunt).await.unwrap();
            assert!(new().await.is_empty());
        });
    }

    #[test]
    fn what_other_hardware_had_none_of_is_not_new_by_its_hunts_and_days() {
        on_each_engine(async |store| {
            let recorded = recorded_run("hunt", "a");
            for at in 0..12 {
                let mut record = recorded.clone();
                (record.run.id, record.run.started) = (format!("hunt-{at}"), at * DAY + 3_600);
                (record.slots, record.rows) = (Vec::new(), Vec::new());
                if at < 11 {
                    record.culprits.clear();
                }
                store.put(&record).await.unwrap();
            }
            for at in 0..11 {
                store.put_rows(&[day("wakeup", at, |_| "other")]).await.unwrap();
            }
            store.put_rows(&[day("wakeup", 11, |_| "zeta")]).await.unwrap();
            let before = async |hardware: Option<i64>| -> Vec<(u64, u64)> {
                let seen = store.culprits_since("a", 11 * DAY, hardware).await.unwrap();
                let mut all: Vec<_> = seen.iter().map(|one| (one.hunts_before, one.days_before)).collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            assert_eq!(before(None).await, [(0, 11), (11, 0)]);
            // Data of the day of the exchange may be of either.
            assert_eq!(before(Some(9 * DAY)).await, [(0, 2), (2, 0)]);
            assert_eq!(before(Some(9 * DAY + 7_200)).await, [(0, 1), (1, 0)]);
            assert_eq!(before(Some(11 * DAY)).await, [(0, 0)]);
        });
    }

    #[test]
    fn a_culprit_is_of_the_first_run_that_counts() {
        on_each_engine(async |store| {
            let recorded = recorded_run("hunt", "a");
            for at in 0..4 {
                let mut record = recorded.clone();
                record.run.id = format!("hunt-{at}");
                record.run.started += at;
                record.run.invalid = u64::from(at < 2);
                record.slots.clear();
                record.rows.clear();
                // The third counts, and has none.
                if at == 2 {
                    record.culprits.clear();
                }
                store.put(&record).await.unwrap();
            }
            let found = store.culprits_since("a", 0, None).await.unwrap();
            assert_eq!(found.len(), recorded.culprits.len());
            let one = &found[0];
            assert_eq!((one.first, one.run.as_str()), (recorded.run.started + 3, "hunt-3"));
            assert_eq!(one.hunts_before, 1, "those that do not count saw nothing");
            let spikes = recorded.culprits.iter().find(|known| known.fingerprint == one.fingerprint);
            assert_eq!(Some(one.spikes), spikes.map(|known| known.spikes));
        });
    }
}
