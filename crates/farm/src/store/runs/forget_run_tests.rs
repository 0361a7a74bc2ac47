//! Removed runs: the rest is as if they had never been stored.

use model::units::{Cpu, Nanos};

use crate::fixture::made_runs::made;
use crate::fixture::named_rows::batch_of;
use crate::fixture::recorded_run;
use crate::records::{BundleRecord, SeriesKey, Tier};
use crate::store::engines::on_each_engine;
use crate::store::{FarmStore, PutOutcome, RowBatch, RunRemoval, TimeStretch};

const DAY: i64 = 86_400;
const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

/// The run without histograms of its five minutes.
fn without_rows(mut record: BundleRecord) -> BundleRecord {
    record.rows.clear();
    record
}

/// All that pages show of a series.
async fn shown(store: &FarmStore) -> String {
    let key = recorded_run("hunt", "a").run.key;
    let mut all = String::new();
    for tier in Tier::ALL {
        all += &format!("{:?}\n", store.tiers("a", &key, tier, ALL).await.unwrap());
    }
    all += &format!("{:?}\n", store.slots("a", &key, ALL, 99).await.unwrap());
    all += &format!("{:?}\n", store.culprits(None, 99).await.unwrap());
    all += &format!("{:?}\n", store.runs("a", 99).await.unwrap());
    all + &format!("{:?}\n", store.environments("a").await.unwrap())
}

#[test]
fn without_a_run_the_store_is_as_if_it_had_never_come() {
    on_each_engine(async |store| {
        // Before midnight both were on.
        let first = made("first", &[(DAY - 600, 9, 230), (DAY - 300, 5, 210), (2 * DAY, 3, 220)]);
        let second = made("second", &[(DAY - 300, 7, 330), (DAY, 4, 310), (DAY + 3_600, 2, 320)]);
        for (stays, goes) in [(&first, &second), (&second, &first)] {
            for (stays, goes) in [
                (stays.clone(), goes.clone()),
                (without_rows(stays.clone()), without_rows(goes.clone())),
                (without_rows(stays.clone()), goes.clone()),
            ] {
                store.put(&stays).await.unwrap();
                let before = shown(&store).await;
                store.put(&goes).await.unwrap();
                assert_ne!(shown(&store).await, before);
                for bundle in [Some(&goes), None] {
                    let removal = store.forget_run(&goes.run.id, bundle, None).await.unwrap();
                    let RunRemoval::Removed(gone) = removal else { panic!("{removal:?}") };
                    assert_eq!((gone.board.as_str(), gone.samples), ("a", goes.run.cycles));
                    assert_eq!((gone.slots, gone.culprits, gone.environment), (3, 0, false));
                    assert_eq!(shown(&store).await, before, "{} goes", goes.run.id);
                    assert_eq!(store.faults().await.unwrap(), [""; 0]);
                    assert_eq!(store.put(&goes).await.unwrap(), PutOutcome::Stored);
                }
                store.forget_measured().await.unwrap();
            }
        }
    });
}

#[test]
fn five_minutes_that_were_sent_as_rows_too_are_no_part_of_the_run() {
    on_each_engine(async |store| {
        let board_id = store.board_for("a", "a").await.unwrap();
        // They name the run as their recording.
        let rows = RowBatch { board_id, ..batch_of("hunt", 0, 4, "a", "") };
        assert_eq!(rows.of.recording, "r");
        store.put_rows(&[rows]).await.unwrap();
        let key = SeriesKey { series: "hunt".into(), plan: String::new() };
        let all = async || {
            let slots = store.slots("a", &key, ALL, 99).await.unwrap();
            assert_eq!(slots.len(), 4);
            format!("{}{slots:?}{:?}", shown(&store).await, store.faults().await.unwrap())
        };
        let before = all().await;
        let over = made("r", &[(0, 9, 200), (300, 5, 210), (DAY, 3, 220)]);
        let mut on = made("r", &[(0, 9, 200), (300, 5, 210)]);
        on.run.complete = false;
        for bundle in [Some(&over), None] {
            assert_eq!(store.put(&on).await.unwrap(), PutOutcome::Stored);
            assert_eq!(store.put(&over).await.unwrap(), PutOutcome::Replaced);
            let removal = store.forget_run("r", bundle, None).await.unwrap();
            let RunRemoval::Removed(gone) = removal else { panic!("{removal:?}") };
            assert_eq!((gone.samples, gone.slots), (17, 3));
            assert_eq!(all().await, before);
        }
    });
}

/// The same, measured on another CPU.
fn on_cpu(mut record: BundleRecord, cpu: Cpu) -> BundleRecord {
    for row in record.rows.iter_mut().chain([&mut record.whole]) {
        row.cpus.iter_mut().for_each(|of| of.cpu = cpu);
    }
    for slot in &mut record.slots {
        slot.cpus.iter_mut().for_each(|peak| peak.cpu = cpu);
    }
    record
}

#[test]
fn a_cpu_that_only_the_run_had_goes_with_it() {
    on_each_engine(async |store| {
        let stays = made("stays", &[(0, 9, 200), (300, 5, 210)]);
        let goes = on_cpu(made("goes", &[(300, 7, 300), (DAY, 2, 310)]), Cpu(1));
        store.put(&stays).await.unwrap();
        let before = shown(&store).await;
        for goes in [goes.clone(), without_rows(goes)] {
            for bundle in [Some(&goes), None] {
                store.put(&goes).await.unwrap();
                let removal = store.forget_run("goes", bundle, None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
                assert_eq!(shown(&store).await, before);
                assert_eq!(store.faults().await.unwrap(), [""; 0]);
            }
        }
    });
}

#[test]
fn what_cannot_be_told_apart_stays_until_a_bundle_tells_it() {
    on_each_engine(async |store| {
        let first = made("first", &[(0, 9, 200), (300, 5, 210), (DAY, 3, 220)]);
        let second = made("second", &[(0, 7, 300), (300, 4, 310), (DAY, 2, 320)]);
        store.put(&first).await.unwrap();
        store.put(&second).await.unwrap();
        let before = shown(&store).await;
        assert_eq!(store.forget_run("first", None, Some(5)).await.unwrap(), RunRemoval::Mixed);
        let other = BundleRecord { digest: vec![9], ..first.clone() };
        assert_eq!(store.forget_run("first", Some(&other), None).await.unwrap(), RunRemoval::Mixed);
        assert_eq!((shown(&store).await, store.forgotten().await.unwrap()), (before, Vec::new()));
        store.forget_run("first", Some(&first), None).await.unwrap();
        assert_eq!(store.totals().await.unwrap(), (1, 1));
        assert_eq!(store.faults().await.unwrap(), [""; 0]);
    });
}

/// A run that counts for its day is in no histogram of five minutes or hours, even if another run
/// has histograms of the same five minutes.
#[test]
fn a_run_takes_nothing_of_histograms_that_it_is_no_part_of() {
    on_each_engine(async |store| {
        let five_minutes = |n: u64, row: usize| vec![(DAY - 300, n, row), (DAY, 2 * n, row + 5)];
        for (own, others) in [(20, 30), (30, 30), (30, 20), (1, 50)] {
            let stays = made("stays", &five_minutes(others, 300));
            let goes = without_rows(made("goes", &five_minutes(own, 200)));
            store.put(&stays).await.unwrap();
            let before = shown(&store).await;
            store.put(&goes).await.unwrap();
            assert!(!store.counted_seconds_of("goes").await.unwrap().by_rows);
            let removal = store.forget_run("goes", None, None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(_)), "{own} {others}: {removal:?}");
            assert_eq!(shown(&store).await, before, "{own} {others}");
            assert_eq!(store.faults().await.unwrap(), [""; 0]);
            store.forget_measured().await.unwrap();
        }
    });
}

/// The way in which a run counts is that of its last state, and is removed with it.
#[test]
fn how_a_run_counts_is_that_of_its_last_state() {
    on_each_engine(async |store| {
        let over = made("one", &[(0, 9, 200), (300, 5, 210)]);
        let mut on = made("one", &[(0, 9, 200)]);
        (on.run.complete, on.digest) = (false, vec![1]);
        let beside = made("beside", &[(0, 20, 300), (300, 30, 310)]);
        store.put(&beside).await.unwrap();
        let before = shown(&store).await;
        for (on, over) in
            [(without_rows(on.clone()), over.clone()), (without_rows(on.clone()), without_rows(over.clone()))]
        {
            store.put(&on).await.unwrap();
            assert!(!store.counted_seconds_of("one").await.unwrap().by_rows);
            assert_eq!(store.put(&over).await.unwrap(), PutOutcome::Replaced);
            let by_rows = !over.rows.is_empty();
            assert_eq!(store.counted_seconds().await.unwrap()["one"].by_rows, by_rows);
            let removal = store.forget_run("one", Some(&over), None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
            assert_eq!(shown(&store).await, before);
        }
    });
}

/// Also when histograms of short times were dropped.
#[test]
fn runs_go_as_they_came() {
    on_each_engine(async |store| {
        let night = [(DAY - 600, 9, 230), (DAY - 300, 5, 210), (DAY, 3, 220)];
        let by_rows = made("goes", &night);
        let of_day = without_rows(by_rows.clone());
        let stays = made("stays", &[(DAY - 600, 40, 330), (DAY - 300, 50, 310)]);
        let also = without_rows(made("also", &[(DAY - 300, 60, 340), (DAY, 70, 350)]));
        let fill = async |records: &[&BundleRecord], dropped: &[Tier]| {
            store.forget_measured().await.unwrap();
            for record in records {
                store.put(record).await.unwrap();
            }
            for tier in dropped {
                store.prune(*tier, 9 * DAY).await.unwrap();
            }
        };
        for goes in [&by_rows, &of_day] {
            for dropped in [&[][..], &[Tier::Slot], &[Tier::Slot, Tier::Hour]] {
                fill(&[&stays, &also], dropped).await;
                let before = shown(&store).await;
                fill(&[&stays, &also, goes], dropped).await;
                let removal = store.forget_run("goes", Some(goes), None).await.unwrap();
                let case = format!("{} {dropped:?}", goes.rows.len());
                assert!(matches!(removal, RunRemoval::Removed(_)), "{case}: {removal:?}");
                assert_eq!(shown(&store).await, before, "{case}");
            }
        }
    });
}

/// After the removal of the worst of a time, the largest of the rest may be of a run that counts
/// for another time: it is removed with that run.
#[test]
fn no_maximum_stays_of_a_run_that_went() {
    on_each_engine(async |store| {
        let stays = made("stays", &[(DAY - 600, 3, 200), (DAY + 600, 5, 100)]);
        let worst = made("worst", &[(DAY - 900, 1, 700), (DAY + 900, 2, 600)]);
        // One counts for the day on which it began, and has its largest on the next; the other has
        // its largest on a day other than that of its start.
        let of_its_day = without_rows(made("day", &[(DAY - 300, 4, 220), (DAY + 300, 9, 450)]));
        let of_two_days = made("two", &[(DAY - 1_200, 6, 210), (2 * DAY, 7, 300)]);
        for other in [&of_its_day, &of_two_days] {
            store.put(&stays).await.unwrap();
            let before = shown(&store).await;
            store.put(other).await.unwrap();
            store.put(&worst).await.unwrap();
            for id in ["worst", other.run.id.as_str()] {
                let removal = store.forget_run(id, None, None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{id}: {removal:?}");
                assert_eq!(store.faults().await.unwrap(), [""; 0], "without {id}");
            }
            assert_eq!(shown(&store).await, before, "without {}", other.run.id);
            store.forget_measured().await.unwrap();
        }
    });
}

/// The remaining maximum is of a part of the histogram, whatever else was measured then.
#[test]
fn the_maximum_that_is_left_is_of_what_counts_there() {
    on_each_engine(async |store| {
        let night = made("night", &[(DAY - 600, 3, 100), (DAY, 3, 450)]);
        let day = made("day", &[(3_600, 3, 100), (DAY + 3_600, 3, 110)]);
        let of_its_day = without_rows(made("whole", &[(DAY - 300, 4, 220), (DAY + 3_600, 9, 450)]));
        let of_one_hour = without_rows(made("hour", &[(3_600, 4, 450)]));
        let worst = made("worst", &[(3_900, 1, 700), (DAY + 3_900, 2, 600)]);
        for stays in [
            // Samples after midnight of a run that counts by its five minutes.
            vec![&night, &day],
            // Samples of one that counts for its day.
            vec![&day, &of_its_day],
            // An hour to whose histogram it adds nothing.
            vec![&day, &of_one_hour],
            vec![&night, &of_its_day, &of_one_hour],
        ] {
            for record in &stays {
                store.put(record).await.unwrap();
            }
            let before = shown(&store).await;
            store.put(&worst).await.unwrap();
            let removal = store.forget_run("worst", Some(&worst), None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
            let ids: Vec<&str> = stays.iter().map(|record| record.run.id.as_str()).collect();
            assert_eq!(shown(&store).await, before, "{ids:?}");
            assert_eq!(store.faults().await.unwrap(), [""; 0], "{ids:?}");
            store.forget_measured().await.unwrap();
        }
    });
}

/// After a removal the maximum is that of a sample in the histogram.
#[test]
fn no_maximum_is_that_of_a_run_which_is_no_part_of_the_histogram() {
    on_each_engine(async |store| {
        let stays = made("stays", &[(DAY + 300, 3, 200), (DAY + 600, 4, 200)]);
        let goes = made("goes", &[(DAY + 300, 3, 1_400), (DAY + 600, 4, 1_400)]);
        // Beyond the maximum that there was, and below it.
        for largest in [1_500, 1_350] {
            let other = [(DAY - 600, 7, 100), (DAY + 300, 2, largest)];
            store.put(&stays).await.unwrap();
            store.put(&without_rows(made("other", &other))).await.unwrap();
            let before = shown(&store).await;
            store.put(&goes).await.unwrap();
            remove(&store, &goes, true).await;
            assert_eq!(shown(&store).await, before, "{largest}");
            store.forget_measured().await.unwrap();
        }
        // The rows of another tool's run may be wide: its maximum is beyond their values.
        let mut foreign = without_rows(made("foreign", &[(DAY + 300, 2, 100)]));
        foreign.slots.clear();
        (foreign.run.max_ns, foreign.whole.max_ns) = (Some(Nanos(1_350)), Some(Nanos(1_350)));
        store.put(&stays).await.unwrap();
        store.put(&foreign).await.unwrap();
        let before = shown(&store).await;
        store.put(&goes).await.unwrap();
        remove(&store, &goes, true).await;
        assert_eq!(shown(&store).await, before);
    });
}

/// Hours replace dropped five minutes, and days replace dropped hours.
#[test]
fn a_run_goes_also_where_histograms_of_short_times_were_dropped() {
    on_each_engine(async |store| {
        let stays = made("stays", &[(0, 9, 200), (300, 5, 210)]);
        let goes = made("goes", &[(300, 7, 300), (4 * 3_600, 4, 310), (DAY, 2, 320), (DAY + 300, 1, 330)]);
        for dropped in [&[][..], &[Tier::Slot], &[Tier::Slot, Tier::Hour]] {
            for before in [DAY, 3 * DAY] {
                store.put(&stays).await.unwrap();
                store.put(&goes).await.unwrap();
                for tier in dropped {
                    store.prune(*tier, before).await.unwrap();
                }
                let removal = store.forget_run("goes", None, None).await.unwrap();
                assert!(matches!(removal, RunRemoval::Removed(_)), "{dropped:?} {before}: {removal:?}");
                assert_eq!(store.faults().await.unwrap(), [""; 0]);
                let key = &stays.run.key;
                let days = store.tiers("a", key, Tier::Day, ALL).await.unwrap();
                assert_eq!((days.len(), days[0].n, days[0].max_ns), (1, 14, Some(Nanos(210))));
                assert_eq!(days[0].cpus, stays.whole.cpus);
                store.forget_measured().await.unwrap();
                sqlx::query("delete from dropped_tier").execute(&store.pool).await.unwrap();
            }
        }
    });
}

/// Samples of each histogram of a tier.
async fn samples(store: &FarmStore, tier: Tier) -> Vec<(i64, u64)> {
    let key = recorded_run("hunt", "a").run.key;
    let rows = store.tiers("a", &key, tier, ALL).await.unwrap();
    for row in &rows {
        assert_eq!(row.cpus.iter().map(|cpu| cpu.rows.total()).sum::<u64>(), row.n, "{tier:?} {}", row.t);
    }
    rows.into_iter().map(|row| (row.t, row.n)).collect()
}

async fn remove(store: &FarmStore, record: &BundleRecord, has_bundle: bool) {
    let removal = store.forget_run(&record.run.id, has_bundle.then_some(record), None).await.unwrap();
    assert!(matches!(removal, RunRemoval::Removed(_)), "{removal:?}");
    assert_eq!(store.faults().await.unwrap(), [""; 0]);
}

#[test]
fn a_run_takes_nothing_of_what_came_after_its_histograms_were_dropped() {
    on_each_engine(async |store| {
        let first = made("first", &[(300, 5, 200), (600, 5, 200)]);
        for (others, has_bundle) in [(5, true), (5, false), (9, true), (9, false)] {
            let late = made("late", &[(300, others, 200), (600, others, 200)]);
            store.put(&first).await.unwrap();
            for tier in [Tier::Slot, Tier::Hour] {
                store.prune(tier, 9 * DAY).await.unwrap();
            }
            store.put(&late).await.unwrap();
            remove(&store, &first, has_bundle).await;
            assert_eq!(samples(&store, Tier::Slot).await, [(300, others), (600, others)]);
            assert_eq!(samples(&store, Tier::Hour).await, [(0, 2 * others)]);
            assert_eq!(samples(&store, Tier::Day).await, [(0, 2 * others)]);
            // Later data have their part there, until that is dropped, too.
            store.put(&first).await.unwrap();
            remove(&store, &late, true).await;
            assert_eq!(samples(&store, Tier::Slot).await, [(300, 5), (600, 5)]);
            assert_eq!(samples(&store, Tier::Hour).await, [(0, 10)]);
            remove(&store, &first, true).await;
            for tier in Tier::ALL {
                assert!(samples(&store, tier).await.is_empty(), "{tier:?}");
            }
            let notes = "select count(*) from later_run";
            let notes: i64 = sqlx::query_scalar(notes).fetch_one(&store.pool).await.unwrap();
            assert_eq!(notes, 0);
            sqlx::query("delete from dropped_tier").execute(&store.pool).await.unwrap();
        }
    });
}

/// The same applies if a later state of a run replaces an earlier one.
#[test]
fn a_later_state_takes_nothing_of_what_came_after_histograms_were_dropped() {
    on_each_engine(async |store| {
        let mut first = made("on", &[(300, 5, 200), (600, 5, 200)]);
        (first.run.complete, first.digest) = (false, vec![1]);
        let late = made("late", &[(300, 5, 200), (600, 9, 200)]);
        store.put(&first).await.unwrap();
        for tier in [Tier::Slot, Tier::Hour] {
            store.prune(tier, 9 * DAY).await.unwrap();
        }
        store.put(&late).await.unwrap();
        let over = made("on", &[(300, 5, 200), (600, 5, 200), (900, 2, 200)]);
        assert_eq!(store.put(&over).await.unwrap(), PutOutcome::Replaced);
        assert_eq!(samples(&store, Tier::Slot).await, [(300, 10), (600, 14), (900, 2)]);
        assert_eq!(samples(&store, Tier::Hour).await, [(0, 26)]);
        assert_eq!(samples(&store, Tier::Day).await, [(0, 26)]);
        remove(&store, &over, true).await;
        assert_eq!(samples(&store, Tier::Slot).await, [(300, 5), (600, 9)]);
        assert_eq!(samples(&store, Tier::Hour).await, [(0, 14)]);
    });
}

/// A retention longer than the previous one keeps the data received in between.
#[test]
fn a_late_run_takes_what_is_its_own_where_some_of_it_was_dropped() {
    on_each_engine(async |store| {
        let at = |n: u64| [(DAY, n, 200usize), (5 * DAY, n, 200)];
        let (late, other) = (made("late", &at(5)), made("other", &at(9)));
        store.prune(Tier::Slot, 9 * DAY).await.unwrap();
        store.put(&late).await.unwrap();
        assert_eq!(store.prune(Tier::Slot, 3 * DAY).await.unwrap(), 1);
        store.put(&other).await.unwrap();
        assert_eq!(samples(&store, Tier::Slot).await, [(DAY, 9), (5 * DAY, 14)]);
        remove(&store, &late, true).await;
        assert_eq!(samples(&store, Tier::Slot).await, [(DAY, 9), (5 * DAY, 9)]);
        assert_eq!(samples(&store, Tier::Hour).await, [(DAY, 9), (5 * DAY, 9)]);
    });
}

#[test]
fn a_run_that_is_unknown_or_pinned_stays_and_one_that_went_does_not_come_again() {
    on_each_engine(async |store| {
        let record = recorded_run("hunt", "a");
        let id = &record.run.id;
        let forget = async || store.forget_run(id, None, Some(1_700_000_000)).await.unwrap();
        assert_eq!(forget().await, RunRemoval::Unknown);
        store.put(&record).await.unwrap();
        store.pin(id, "ann", "", 5).await.unwrap();
        assert_eq!(forget().await, RunRemoval::Pinned);
        store.unpin(id).await.unwrap();
        let RunRemoval::Removed(gone) = forget().await else { panic!("it stayed") };
        assert!(gone.board_gone && gone.environment && gone.culprits > 0, "{gone:?}");
        for table in ["run", "slot", "hist", "culprit", "culprit_run", "environment", "label", "board"] {
            let count = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
            let count: i64 = sqlx::query_scalar(count).fetch_one(&store.pool).await.unwrap();
            assert_eq!(count, 0, "{table}");
        }
        assert_eq!(store.forgotten().await.unwrap(), [(id.clone(), 1_700_000_000)]);
        let why = store.why_not_again(id).await.unwrap().unwrap();
        assert!(why.contains("on 2023-11-14") && why.contains(&format!("--allow {id}")), "{why}");
        for _ in 0..2 {
            assert_eq!(store.put(&record).await.unwrap(), PutOutcome::Refused(why.clone()));
            assert_eq!(store.outcome_of(&record).await.unwrap(), PutOutcome::Refused(why.clone()));
        }
        let asked = [id.as_str(), "another"];
        assert_eq!(store.not_again(&asked).await.unwrap(), [id.as_str()]);
        assert!(store.not_again(&[]).await.unwrap().is_empty());
        assert!(store.allow_again(id).await.unwrap() && !store.allow_again(id).await.unwrap());
        assert!(store.why_not_again(id).await.unwrap().is_none());
        assert!(store.not_again(&asked).await.unwrap().is_empty());
        assert_eq!(store.put(&record).await.unwrap(), PutOutcome::Stored);
    });
}

#[test]
fn a_board_stays_that_has_anything_else() {
    on_each_engine(async |store| {
        let record = recorded_run("hunt", "a");
        for statement in [
            "insert into token select $1, id, 5, 0 from board",
            "update board_setting set tags = 'lab=west' where since >= 0",
        ] {
            store.put(&record).await.unwrap();
            let mut more = sqlx::query(statement);
            if statement.contains("$1") {
                more = more.bind(vec![7u8]);
            }
            more.execute(&store.pool).await.unwrap();
            let removal = store.forget_run(&record.run.id, None, None).await.unwrap();
            assert!(matches!(removal, RunRemoval::Removed(gone) if !gone.board_gone), "{statement}");
            assert_eq!(store.boards().await.unwrap()[0].runs, 0);
            sqlx::query("delete from token").execute(&store.pool).await.unwrap();
        }
    });
}
