//! Data on a moment of a board: the active run, and the worst five minutes.

use std::collections::BTreeMap;

use model::error::Result;
use model::units::Nanos;
use sqlx::AssertSqlSafe;

use crate::joined_slots::SlotSums;
use crate::records::{DayMaximum, FarmRun, FarmSlot, SeriesKey};
use crate::store::hist::last_day::COUNTS;
use crate::store::hist::tiers::{RUN_OF_SLOT, SLOT_COLUMNS, SlotRow, made_slot};
use crate::store::large_sums::shown;
use crate::store::{FarmStore, TimeStretch, to_u64, trouble};

impl FarmStore {
    /// The runs that were on within a stretch of time, the latest first.
    pub async fn runs_within(&self, board: &str, within: TimeStretch, most: i64) -> Result<Vec<FarmRun>> {
        let ids: Vec<(String,)> = sqlx::query_as(
            "select r.id from run r join board b on b.id = r.board_id \
             where b.key = $1 and r.started < $2 and r.started + coalesce(r.length_ns, 0) / 1000000000 >= $3 \
             order by r.started desc, r.id desc limit $4",
        )
        .bind(board)
        .bind(within.to)
        .bind(within.from)
        .bind(most)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let mut runs = Vec::new();
        for (id,) in ids {
            runs.extend(self.run(&id).await?);
        }
        Ok(runs)
    }

    /// Five minutes of a time span with the largest latencies, the largest first. A recorder with
    /// shorter intervals has several rows of the same five minutes, represented by the worst.
    pub async fn worst_slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
        most: i64,
    ) -> Result<Vec<FarmSlot>> {
        self.largest_slots(board, key, within, "", most).await
    }

    /// The worst five minutes of valid data.
    pub async fn worst_counted(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
    ) -> Result<Option<FarmSlot>> {
        let which = format!(" and {COUNTS}");
        Ok(self.largest_slots(board, key, within, &which, 1).await?.pop())
    }

    /// The largest slots of which a condition on a slot `x` holds, at most `most`.
    async fn largest_slots(
        &self,
        board: &str,
        key: &SeriesKey,
        within: TimeStretch,
        which: &str,
        most: i64,
    ) -> Result<Vec<FarmSlot>> {
        // The database selects them: a day of a recorder may have 86,400 rows.
        let text = format!(
            "select {SLOT_COLUMNS} from (select x.board_id, x.series, x.plan, x.t, x.recording, \
             max(x.max_ns) as max_ns from board b cross join slot x where b.key = $1 and x.board_id = b.id \
             and x.series = $2 and x.plan = $3 and x.t >= $4 and x.t < $5 and x.max_ns is not null{which} \
             group by x.board_id, x.series, x.plan, x.t, x.recording \
             order by max(x.max_ns) desc, x.t, x.recording limit $6) w cross join slot s {RUN_OF_SLOT} \
             where s.board_id = w.board_id and s.series = w.series and s.plan = w.plan and s.t = w.t \
             and s.recording = w.recording and s.max_ns = w.max_ns \
             order by s.max_ns desc, s.t, s.recording, s.seq"
        );
        let select = sqlx::query_as(AssertSqlSafe(text)).bind(board).bind(&key.series).bind(&key.plan);
        let select = select.bind(within.from).bind(within.to).bind(most);
        let rows: Vec<SlotRow> = select.fetch_all(&self.pool).await.map_err(trouble)?;
        let mut slots: Vec<FarmSlot> =
            rows.into_iter().map(made_slot).collect::<sqlx::Result<_>>().map_err(trouble)?;
        // Of several rows with the same latency the first.
        slots.dedup_by(|later, first| (later.t, &later.run) == (first.t, &first.run));
        Ok(slots)
    }

    /// Sums of all slots of a time span.
    pub async fn slot_sums(&self, board: &str, key: &SeriesKey, within: TimeStretch) -> Result<SlotSums> {
        let (count, n, low_n, missed, low_missed): (i64, i64, i64, i64, i64) = sqlx::query_as(
            "select count(*), cast(coalesce(sum(s.n / 4294967296), 0) as bigint), \
             cast(coalesce(sum(s.n % 4294967296), 0) as bigint), \
             cast(coalesce(sum(s.missed / 4294967296), 0) as bigint), \
             cast(coalesce(sum(s.missed % 4294967296), 0) as bigint) \
             from slot s join board b on b.id = s.board_id \
             where b.key = $1 and s.series = $2 and s.plan = $3 and s.t >= $4 and s.t < $5",
        )
        .bind(board)
        .bind(&key.series)
        .bind(&key.plan)
        .bind(within.from)
        .bind(within.to)
        .fetch_one(&self.pool)
        .await
        .map_err(trouble)?;
        let (n, missed) = (to_u64(shown(n, low_n)), to_u64(shown(missed, low_missed)));
        Ok(SlotSums { count: to_u64(count), n, missed })
    }

    /// Last five minutes before a time, and first after it, whose largest latency exceeds a limit;
    /// those of invalid runs are skipped.
    pub async fn beside_over(
        &self,
        board: &str,
        key: &SeriesKey,
        t: i64,
        limit: Nanos,
    ) -> Result<[Option<i64>; 2]> {
        const BEFORE: &str = "select max(s.t) from slot s join board b on b.id = s.board_id \
                              where b.key = $1 and s.series = $2 and s.plan = $3 and s.max_ns > $4 \
                              and s.t < $5 and not exists (select 1 from run r \
                              where r.board_id = s.board_id and r.id = s.recording and r.invalid > 0)";
        const AFTER: &str = "select min(s.t) from slot s join board b on b.id = s.board_id \
                             where b.key = $1 and s.series = $2 and s.plan = $3 and s.max_ns > $4 \
                             and s.t > $5 and not exists (select 1 from run r \
                             where r.board_id = s.board_id and r.id = s.recording and r.invalid > 0)";
        let mut found = [None, None];
        for (at, text) in [BEFORE, AFTER].into_iter().enumerate() {
            let select = sqlx::query_scalar(text).bind(board).bind(&key.series).bind(&key.plan);
            found[at] = select.bind(limit.0).bind(t).fetch_one(&self.pool).await.map_err(trouble)?;
        }
        Ok(found)
    }

    /// Day with the largest latency of each series of a board within a time span, of valid data; of
    /// equal ones the last.
    pub async fn worst_days(
        &self,
        board: &str,
        within: TimeStretch,
    ) -> Result<BTreeMap<SeriesKey, DayMaximum>> {
        let mut counted = self.counted_days_of(board, within.from).await?;
        counted.retain(|(_, t), _| *t < within.to);
        if counted.is_empty() {
            return self.worst_histograms(board, within).await;
        }
        let mut worst: BTreeMap<SeriesKey, DayMaximum> = BTreeMap::new();
        for (key, day) in self.day_maxima(board, within.from).await? {
            let place = (key, day.t);
            let max_ns = counted.get(&place).copied().unwrap_or(Some(day.max_ns));
            let Some(max_ns) = max_ns.filter(|_| day.t < within.to) else { continue };
            let known = worst.entry(place.0).or_insert(DayMaximum { max_ns, ..day });
            // They are oldest first.
            if max_ns >= known.max_ns {
                *known = DayMaximum { max_ns, ..day };
            }
        }
        Ok(worst)
    }

    /// The same of all runs.
    async fn worst_histograms(
        &self,
        board: &str,
        within: TimeStretch,
    ) -> Result<BTreeMap<SeriesKey, DayMaximum>> {
        let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
            "select series, plan, t, max_ns from (select h.series, h.plan, h.t, h.max_ns, row_number() over \
             (partition by h.series, h.plan order by h.max_ns desc, h.t desc) as place \
             from hist h join board b on b.id = h.board_id where b.key = $1 and h.tier = 2 \
             and h.t >= $2 and h.t < $3 and h.max_ns is not null) worst where place = 1",
        )
        .bind(board)
        .bind(within.from)
        .bind(within.to)
        .fetch_all(&self.pool)
        .await
        .map_err(trouble)?;
        let one =
            |(series, plan, t, max_ns)| (SeriesKey { series, plan }, DayMaximum { t, max_ns: Nanos(max_ns) });
        Ok(rows.into_iter().map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recorded_run;
    use crate::records::Tier;
    use crate::store::engines::on_each_engine;

    #[test]
    fn each_series_has_its_worst_day_within_the_stretch() {
        on_each_engine(async |store| {
            sqlx::query("insert into board (id, key, name) values (1, 'a', 'A')")
                .execute(&store.pool)
                .await
                .unwrap();
            for (series, tier, t, max) in [
                ("m", 2, 100, Some(5)),
                ("m", 2, 200, Some(9)),
                ("m", 2, 300, Some(9)),
                ("m", 2, 400, None),
                ("m", 2, 900, Some(99)),
                ("m", 1, 100, Some(77)),
                ("h", 2, 100, Some(7)),
            ] {
                sqlx::query("insert into hist values (1, $1, 'p', $2, $3, 1, 0, $4, $5)")
                    .bind(series)
                    .bind(tier)
                    .bind(t)
                    .bind(max)
                    .bind(vec![0u8])
                    .execute(&store.pool)
                    .await
                    .unwrap();
            }
            let found = store.worst_days("a", TimeStretch { from: 0, to: 900 }).await.unwrap();
            let shown: Vec<_> =
                found.iter().map(|(key, day)| (key.series.as_str(), day.t, day.max_ns.0)).collect();
            assert_eq!(shown, [("h", 100, 7), ("m", 300, 9)]);
            assert!(store.worst_days("b", TimeStretch { from: 0, to: 900 }).await.unwrap().is_empty());
        });
    }

    /// A recorder that looks every ten seconds has 8,640 rows a day.
    #[test]
    fn the_worst_five_minutes_of_a_day_are_of_all_its_rows() {
        on_each_engine(async |store| {
            let t = 1_795_305_600;
            let mut record = recorded_run("measured", "a");
            let key = record.run.key.clone();
            let slot = |at: i64, max: i64| {
                let max_ns = Some(Nanos(max));
                let (t, n, culprit) = (Tier::Slot.begin(t + at), 1 << 44, format!("c{max}"));
                FarmSlot { t, n, missed: 1, max_ns, culprit, run: "rows".into(), ..FarmSlot::default() }
            };
            record.run.id = "rows".into();
            record.slots = (0..4_500).map(|at| slot(at * 10, 5)).collect();
            record.slots.extend([slot(80_000, 7), slot(80_010, 9), slot(80_020, 9), slot(83_000, 8)]);
            record.slots.push(FarmSlot { max_ns: None, ..slot(83_300, 0) });
            store.put(&record).await.unwrap();
            let mut spoiled = recorded_run("measured", "a");
            (spoiled.run.id, spoiled.run.invalid) = ("spoiled".into(), 1);
            spoiled.slots = vec![FarmSlot { run: "spoiled".into(), ..slot(80_010, 99) }];
            spoiled.digest = vec![1];
            store.put(&spoiled).await.unwrap();
            let within = TimeStretch { from: t, to: t + 86_400 };
            let told = |slot: &FarmSlot| (slot.t - t, slot.culprit.clone(), slot.invalid);
            let worst: Vec<_> =
                store.worst_slots("a", &key, within, 3).await.unwrap().iter().map(told).collect();
            let wanted = |at: i64, culprit: &str, invalid| (at, culprit.to_owned(), invalid);
            assert_eq!(
                worst,
                [wanted(79_800, "c99", true), wanted(79_800, "c9", false), wanted(82_800, "c8", false)]
            );
            let counted = store.worst_counted("a", &key, within).await.unwrap();
            assert_eq!(counted.as_ref().map(told), Some(wanted(79_800, "c9", false)));
            let sums = SlotSums { count: 4_506, n: 4_506 << 44, missed: 4_506 };
            assert_eq!(store.slot_sums("a", &key, within).await.unwrap(), sums);
            let none = TimeStretch { from: 0, to: 300 };
            assert_eq!(store.slot_sums("a", &key, none).await.unwrap(), SlotSums::default());
            assert_eq!(store.worst_counted("a", &key, none).await.unwrap(), None);
        });
    }

    #[test]
    fn what_is_over_a_limit_is_found_on_both_sides_of_a_time() {
        on_each_engine(async |store| {
            sqlx::query("insert into board (id, key, name) values (1, 'a', 'A')")
                .execute(&store.pool)
                .await
                .unwrap();
            for (series, t, max) in [
                ("m", 300, Some(9)),
                ("m", 600, Some(9)),
                ("m", 900, Some(5)),
                ("m", 1_200, Some(9)),
                ("m", 1_500, None),
                ("m", 1_800, Some(7)),
                ("h", 1_500, Some(99)),
            ] {
                sqlx::query(
                    "insert into slot (board_id, series, plan, t, recording, seq, n, missed, max_ns, \
                     max_cpu, max_at, culprit, victim, peaks) \
                     values (1, $1, 'p', $2, 'r', $3, 1, 0, $4, null, null, '', '', $5)",
                )
                .bind(series)
                .bind(t)
                .bind(t / 300)
                .bind(max)
                .bind(vec![0u8])
                .execute(&store.pool)
                .await
                .unwrap();
            }
            let key = SeriesKey { series: "m".into(), plan: "p".into() };
            let beside = async |t, limit| store.beside_over("a", &key, t, Nanos(limit)).await.unwrap();
            assert_eq!(beside(1_200, 5).await, [Some(600), Some(1_800)]);
            assert_eq!(beside(900, 7).await, [Some(600), Some(1_200)]);
            assert_eq!(beside(300, 7).await, [None, Some(600)]);
            assert_eq!(beside(1_200, 9).await, [None, None]);
            assert_eq!(store.beside_over("b", &key, 900, Nanos(1)).await.unwrap(), [None, None]);
        });
    }

    #[test]
    fn five_minutes_say_whether_their_run_counts_and_one_that_does_not_is_over_no_limit() {
        on_each_engine(async |store| {
            let t = 1_795_305_600;
            let mut record = recorded_run("measured", "a");
            let key = record.run.key.clone();
            for (id, at, max, invalid) in [("counts", t, 5, 0), ("spoiled", t + 300, 9, 2)] {
                (record.run.id, record.run.started, record.run.invalid) = (id.to_owned(), at, invalid);
                let max_ns = Some(Nanos(max));
                record.slots =
                    vec![FarmSlot { t: at, n: 1, max_ns, run: id.to_owned(), ..FarmSlot::default() }];
                record.digest = id.as_bytes().to_vec();
                store.put(&record).await.unwrap();
            }
            let within = TimeStretch { from: t, to: t + 600 };
            let slots = store.slots("a", &key, within, 9).await.unwrap();
            assert_eq!(slots.iter().map(|slot| slot.invalid).collect::<Vec<_>>(), [false, true]);
            let beside = async |limit| store.beside_over("a", &key, t + 900, Nanos(limit)).await.unwrap();
            assert_eq!((beside(4).await, beside(6).await), ([Some(t), None], [None, None]));
        });
    }
}
