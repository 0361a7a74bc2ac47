//! Rows under clocks that are set and machines that suspend: each counts once, at its time.

use model::rng::SplitMix64;
use model::rows::RowCounts;
use model::units::{Cpu, Nanos};
use model::watch::{Holder, WatchCulprit, WatchRow, WatchTask};

use crate::ingest::rows::{self, RowsOf};
use crate::records::{SeriesKey, Tier};
use crate::store::engines::on_each_engine;
use crate::store::{BoardClock, FarmStore, RowBatch, RowsStored, TimeStretch};

const S: i64 = Nanos::SECOND.0;
const HOUR: i64 = 3_600;
/// Start of the synthetic machines, in seconds since 1970: at the beginning of five minutes.
const START: i64 = 1_790_000_100;
const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

/// A row: CLOCK_MONOTONIC, the true time, and the board's wall clock, in seconds.
type MadeRow = (i64, i64, i64);

/// Rows of five minutes by their numbers.
fn batch(rows: &[MadeRow], numbers: &[usize], clock: Option<BoardClock>, received: i64) -> RowBatch {
    let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "timer".into() };
    let line = |at: &usize| {
        let hist = RowCounts::of_rows([(200, 1 + *at as u64)]);
        let (cpu, max_mono_ns) = (Some(Cpu(0)), Some(Nanos(rows[*at].0 * S)));
        let (n, max_ns) = (hist.total(), Some(Nanos(200)));
        let row = WatchRow { cpu, n, max_ns, max_mono_ns, hist, ..WatchRow::default() };
        let (mono, wall) = (rows[*at].0 * S, rows[*at].2 * S);
        let line = serde_json::json!({
            "seq": at, "mono_ns": mono, "span_ns": 300 * S, "wall_ns": wall, "cpus": [row],
        });
        line.to_string() + "\n"
    };
    let text: String = numbers.iter().map(line).collect();
    RowBatch {
        board_id: 1,
        of: of.clone(),
        clock,
        received_ns: received * S,
        rows: rows::read(&of, text.as_bytes()).unwrap(),
    }
}

fn clock(mono: i64, wall: i64, asleep: i64) -> Option<BoardClock> {
    Some(BoardClock { boot: "b".into(), mono_ns: mono * S, wall_ns: wall * S, asleep_ns: asleep * S })
}

async fn put(store: &FarmStore, batch: RowBatch) -> RowsStored {
    store.put_rows(&[batch]).await.unwrap().remove(0)
}

/// Number and time of each five minutes, by the time of its largest latency.
async fn times(store: &FarmStore) -> Vec<(u64, i64)> {
    let key = SeriesKey { series: "timer".into(), plan: String::new() };
    let slots = store.slots("a", &key, ALL, 1_000).await.unwrap();
    slots.iter().map(|slot| (slot.n - 1, slot.max_at.unwrap().div_euclid(S))).collect()
}

/// Among CPUs with the same largest latency the first has the time and the names.
#[test]
fn the_largest_of_five_minutes_is_of_one_cpu() {
    on_each_engine(async |store| {
        let board_id = store.board_for("a", "a").await.unwrap();
        let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "timer".into() };
        let row = |cpu: u32, max: i64, at: i64, name: &str| {
            let (hist, max_mono_ns) = (RowCounts::of_rows([(100, 1)]), Some(Nanos(at * S)));
            let (cpu, n, max_ns) = (Some(Cpu(cpu)), hist.total(), Some(Nanos(max)));
            let victim = WatchTask { comm: name.into(), ..WatchTask::default() };
            let culprit = WatchCulprit { name: name.into(), ..WatchCulprit::default() };
            WatchRow { cpu, n, max_ns, max_mono_ns, hist, victim, culprit, ..WatchRow::default() }
        };
        // The last is the first CPU's again, for wake-ups with a known holder.
        let last = WatchRow { holder: Holder::Lower.into(), ..row(0, 200, 34, "late") };
        let cpus = [row(0, 100, 31, "small"), row(1, 200, 32, "first"), row(2, 200, 33, "second"), last];
        let line = serde_json::json!({
            "seq": 1, "mono_ns": 30 * S, "span_ns": 300 * S, "wall_ns": START * S, "cpus": cpus,
        });
        let rows = rows::read(&of, line.to_string().as_bytes()).unwrap();
        let batch = RowBatch { board_id, of, clock: None, received_ns: i64::MAX, rows };
        put(&store, batch).await;
        let key = SeriesKey { series: "timer".into(), plan: String::new() };
        let slot = store.slots("a", &key, ALL, 9).await.unwrap().remove(0);
        assert_eq!((slot.max_ns, slot.max_cpu), (Some(Nanos(200)), Some(Cpu(1))));
        let at = |cpu: u32| slot.cpus.iter().find(|peak| peak.cpu == Cpu(cpu)).unwrap().max_at;
        assert!(slot.max_at == at(1) && at(0) != at(1) && at(1) != at(2), "{slot:?}");
        assert_eq!((slot.victim.as_str(), slot.culprit.as_str()), ("first", "first"));
    });
}

#[test]
fn a_board_that_slept_goes_on_where_it_is() {
    on_each_engine(async |store| {
        store.board_for("a", "a").await.unwrap();
        let at = |number: i64, asleep: i64| (30 + 300 * number, START + 300 * number + asleep);
        let row =
            |number: i64, asleep: i64| (at(number, asleep).0, at(number, asleep).1, at(number, asleep).1);
        let rows = [row(0, 0), row(1, HOUR), row(2, HOUR), row(3, HOUR + 39), row(4, 9 * HOUR)];
        // The first request is after an hour of suspend; earlier rows follow.
        let heard = |number: i64, asleep: i64| {
            let (mono, wall) = at(number, asleep);
            (clock(mono + 299, wall + 299, asleep), wall + 300)
        };
        for (numbers, number, asleep) in
            [(vec![2], 2, HOUR), (vec![0, 1], 2, HOUR), (vec![3], 3, HOUR + 39), (vec![4], 4, 9 * HOUR)]
        {
            let (clock, received) = heard(number, asleep);
            put(&store, batch(&rows, &numbers, clock, received)).await;
        }
        let wanted: Vec<(u64, i64)> = (0..).zip(rows.map(|row| row.1)).collect();
        assert_eq!(times(&store).await, wanted);
    });
}

#[test]
fn rows_without_any_clock_are_told_and_give_way_to_one_that_is_known_later() {
    on_each_engine(async |store| {
        store.board_for("a", "a").await.unwrap();
        let rows = [(30, START, 30), (330, START + 300, 330), (630, START + 600, START + 600)];
        let received = START + 99 * HOUR;
        let stored = put(&store, batch(&rows, &[0], None, received)).await;
        assert_eq!((stored.stored, stored.undated), (1, 1));
        let stored = put(&store, batch(&rows, &[0, 1, 2], None, received)).await;
        assert_eq!((stored.stored, stored.had, stored.undated), (2, 1, 0));
        assert_eq!(times(&store).await, [(0, 30), (1, START + 300), (2, START + 600)]);
    });
}

/// With any settings of the clocks, rows are stored once, in order, and add up.
#[test]
fn clocks_that_are_set_suspends_and_cuts_lose_and_double_nothing_and_keep_the_order() {
    on_each_engine(async |store| {
        store.board_for("a", "a").await.unwrap();
        for seed in 0..12 {
            let mut draw = SplitMix64::new(seed);
            let mut below = |most: u64| (draw.next_u64() % most) as usize;
            let (mut asleep, mut error, mut rows) = (0, 0, Vec::new());
            let slept = [0, 0, 0, 40, 8 * HOUR, 3 * 24 * HOUR];
            let set = [0, 0, HOUR, -HOUR, -START, 20 * 365 * 24 * HOUR];
            for number in 0..40 {
                asleep += slept[below(6)];
                error = if below(4) == 0 { set[below(6)] } else { error };
                let right = START + 300 * number + asleep;
                rows.push((30 + 300 * number, right, right + error));
            }
            let (mut sent, mut made) = (vec![false; 40], 0);
            while sent.contains(&false) {
                let is_over = made == 40;
                made = (made + 1 + below(15)).min(40);
                let (mono, right, wall) = rows[made - 1];
                let asleep = right - START - mono + 30;
                let heard = if is_over { None } else { clock(mono + 299, wall + 299, asleep) };
                let open: Vec<usize> = (0..made).filter(|at| !sent[*at]).collect();
                let last = open.last().copied();
                let mut left = last.into_iter().chain(open).collect::<Vec<_>>();
                while !left.is_empty() {
                    let mut cut: Vec<usize> = left.drain(..(1 + below(9)).min(left.len())).collect();
                    // Something of before once more.
                    cut.extend((below(3) == 0).then(|| below(made as u64)));
                    cut.sort_unstable();
                    cut.dedup();
                    let batch = batch(&rows, &cut, heard.clone(), right + 299);
                    let stored = put(&store, batch).await;
                    assert!(stored.seq.is_empty() && stored.future.is_none(), "{seed}: {stored:?}");
                    cut.into_iter().for_each(|at| sent[at] = true);
                }
            }
            let shown = times(&store).await;
            let numbers: Vec<u64> = shown.iter().map(|one| one.0).collect();
            assert_eq!(numbers, (0..40).collect::<Vec<_>>(), "{seed}: {rows:?}");
            assert!(shown.windows(2).all(|two| two[1].1 - two[0].1 >= 300), "{seed}: {shown:?}");
            let key = SeriesKey { series: "timer".into(), plan: String::new() };
            for tier in Tier::ALL {
                let all = store.tiers("a", &key, tier, ALL).await.unwrap();
                assert_eq!(
                    all.iter().map(|row| row.n).sum::<u64>(),
                    (1..=40).sum::<u64>(),
                    "{seed} {tier:?}"
                );
            }
            store.forget_measured().await.unwrap();
            sqlx::query("insert into board (id, key, name) values (1, 'a', 'a')")
                .execute(&store.pool)
                .await
                .unwrap();
        }
    });
}
