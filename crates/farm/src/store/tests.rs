//! Every statement, on a real database.

use crate::fixture::{block_on, cases, recorded_run};
use crate::records::{BundleRecord, CpuRows, FarmSlot, SlotPeak, Tier, TierRow};
use crate::store::engines::{database, on_each_engine};
use crate::store::*;
use model::error::Exit;
use model::rows::RowCounts;
use model::units::Cpu;
use proptest::prelude::*;

const ALL: TimeStretch = TimeStretch { from: i64::MIN, to: i64::MAX };

/// A run with some samples, on a day.
fn made(id: &str, board: &str, day: i64, samples: u64, complete: bool) -> BundleRecord {
    let mut record = recorded_run("measured", "a");
    let t = day * 86_400 + 60;
    let rows = RowCounts::of_rows([(200, samples)]);
    record.run.id = id.to_owned();
    record.run.board = board.to_owned();
    (record.run.started, record.run.cycles, record.run.complete) = (t, samples, complete);
    record.whole = TierRow {
        t,
        n: samples,
        missed: 0,
        max_ns: Some(Nanos(5_000 + day)),
        cpus: vec![CpuRows { cpu: Cpu(0), rows }],
    };
    record.run.missed = Some(0);
    let cpus =
        vec![SlotPeak { cpu: Cpu(0), n: samples, max_ns: Some(Nanos(5_000 + day)), ..SlotPeak::default() }];
    record.slots = vec![FarmSlot {
        t: Tier::Slot.begin(t),
        n: samples,
        max_ns: Some(Nanos(5_000 + day)),
        max_cpu: Some(Cpu(0)),
        run: id.to_owned(),
        cpus,
        ..FarmSlot::default()
    }];
    record.digest = format!("{id}{samples}{complete}").into_bytes();
    record
}

#[test]
fn what_is_stored_is_found_again() {
    on_each_engine(async |store| {
        assert!(store.answers().await && store.boards().await.unwrap().is_empty());
        let hunt = recorded_run("hunt", "a");
        assert_eq!(store.put(&hunt).await.unwrap(), PutOutcome::Stored);
        assert_eq!(store.run(&hunt.run.id).await.unwrap().unwrap(), hunt.run);
        assert_eq!(store.runs("a", 9).await.unwrap(), std::slice::from_ref(&hunt.run));
        let (series, boards) = (store.series("a").await.unwrap(), store.boards().await.unwrap());
        assert_eq!((series.len(), boards.len(), boards[0].max_ns), (1, 1, hunt.run.max_ns));
        assert_eq!(series[0].words, hunt.plan_words);
        let slots = store.slots("a", &hunt.run.key, ALL, 1_000).await.unwrap();
        assert_eq!(boards[0].last_slot, slots.last().unwrap().t);
        let days = store.tiers("a", &hunt.run.key, Tier::Day, ALL).await.unwrap();
        assert_eq!((days[0].n, &days[0].cpus), (hunt.whole.n, &hunt.whole.cpus));
        assert_eq!(store.slots("a", &hunt.run.key, ALL, 99).await.unwrap(), hunt.slots);
        let culprits = store.culprits(None, 99).await.unwrap();
        assert_eq!(culprits.len(), hunt.culprits.len());
        let one = store.culprit(&culprits[0].fingerprint).await.unwrap().unwrap();
        assert_eq!((&one, one.example.as_str()), (&culprits[0], hunt.run.id.as_str()));
        assert_eq!(store.runs_with(&one.fingerprint, 9).await.unwrap().len(), 1);
        assert!(
            store.culprit("").await.unwrap().is_none()
                && store.culprits(Some("b"), 9).await.unwrap().is_empty()
        );
        let environments = store.environments("a").await.unwrap();
        assert_eq!(*environments[0].record, hunt.environment);
        assert_eq!(store.totals().await.unwrap(), (1, u64::from(hunt.run.complete)));
        store.moved(&hunt.run.id, "/elsewhere").await.unwrap();
        assert_eq!(store.run(&hunt.run.id).await.unwrap().unwrap().place, "/elsewhere");
        assert!(store.moved("none", "/").await.is_err());
    });
}

#[test]
fn the_same_twice_adds_nothing_and_what_contradicts_is_refused() {
    on_each_engine(async |store| {
        let record = recorded_run("hunt", "a");
        store.put(&record).await.unwrap();
        assert_eq!(store.put(&record).await.unwrap(), PutOutcome::Had);
        let other = BundleRecord { digest: b"other".to_vec(), ..record.clone() };
        assert!(matches!(store.put(&other).await.unwrap(), PutOutcome::Refused(_)));
        let mut elsewhere = record.clone();
        elsewhere.run.board = "b".into();
        assert!(matches!(store.put(&elsewhere).await.unwrap(), PutOutcome::Refused(_)));
        let days = store.tiers("a", &record.run.key, Tier::Day, ALL).await.unwrap();
        assert_eq!(days[0].n, record.run.cycles);
        assert!(store.runs("b", 9).await.unwrap().is_empty());
    });
}

#[test]
fn what_storing_would_come_to_is_known_before() {
    on_each_engine(async |store| {
        let mut told = Vec::new();
        for (board, samples, complete) in [
            ("a", 5, false),
            ("a", 5, false),
            ("a", 4, false),
            ("b", 6, false),
            ("a", 6, false),
            ("a", 6, true),
            ("a", 7, true),
        ] {
            let record = made("r", board, 3, samples, complete);
            let outcome = store.outcome_of(&record).await.unwrap();
            assert_eq!(store.put(&record).await.unwrap(), outcome);
            told.push(match outcome {
                PutOutcome::Refused(why) => why,
                outcome => format!("{outcome:?}"),
            });
        }
        let words =
            ["Stored", "Had", "a later state", "run of a already", "Replaced", "Replaced", "has ended"];
        for (told, words) in told.iter().zip(words) {
            assert!(told.contains(words), "{told}");
            assert_eq!(told.contains("has ended"), words == "has ended", "{told}");
        }
    });
}

#[test]
fn a_run_that_was_killed_counts_up_to_its_last_second_though_its_document_stays_the_same() {
    on_each_engine(async |store| {
        let state = |(samples, seconds): (u64, u64), complete: bool| {
            let mut record = made("r", "a", 3, samples, complete);
            record.digest = vec![u8::from(complete)];
            record.slots[0].n = seconds;
            record
        };
        for (of, wanted) in [
            ((5, 5), "Stored"),
            ((5, 5), "Had"),
            ((8, 8), "Replaced"),
            ((8, 8), "Had"),
            ((5, 5), "a later state"),
            ((8, 7), "Had"),
            ((8, 9), "Replaced"),
            ((8, 9), "Had"),
        ] {
            let record = state(of, false);
            let outcome = format!("{:?}", store.outcome_of(&record).await.unwrap());
            assert!(outcome.contains(wanted), "{of:?}: {outcome}");
            assert_eq!(format!("{:?}", store.put(&record).await.unwrap()), outcome);
        }
        let spikes = |spikes: u64| {
            let mut record = state((8, 9), false);
            record.run.spikes += spikes;
            record
        };
        for (more, wanted) in [(1, PutOutcome::Replaced), (1, PutOutcome::Had), (0, PutOutcome::Had)] {
            assert_eq!(store.put(&spikes(more)).await.unwrap(), wanted);
        }
        let run = store.run("r").await.unwrap().unwrap();
        let samples = async || {
            let days = store.tiers("a", &run.key, Tier::Day, ALL).await.unwrap();
            days.iter().map(|day| day.n).sum::<u64>()
        };
        assert_eq!((run.cycles, run.complete, samples().await), (8, false, 8));
        // The document of a completed one has everything.
        for (of, wanted) in [((8, 8), PutOutcome::Replaced), ((9, 9), PutOutcome::Had)] {
            assert_eq!(store.put(&state(of, true)).await.unwrap(), wanted);
        }
        assert_eq!(samples().await, 8);
    });
}

#[test]
fn a_file_is_read_again_and_a_newer_one_refused() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("farm.db");
        let store = FarmStore::file(&file).await.unwrap();
        store.put(&made("r", "a", 3, 5, true)).await.unwrap();
        store.pool.close().await;
        let again = FarmStore::file(&file).await.unwrap();
        assert_eq!(again.totals().await.unwrap(), (1, 1));
        sqlx::query(
            "insert into _sqlx_migrations select 99, description, installed_on, success, checksum, \
                     execution_time from _sqlx_migrations",
        )
        .execute(&again.pool)
        .await
        .unwrap();
        again.pool.close().await;
        let refused = FarmStore::file(&file).await.err().unwrap();
        assert_eq!(refused.exit, Exit::NotSupported);
        assert!(FarmStore::file(&folder.path().join("a?b")).await.is_err());
        assert!(FarmStore::file(&folder.path().join("none/farm.db")).await.is_err());
    });
}

#[test]
fn a_database_is_read_again_and_a_newer_one_refused() {
    block_on(async {
        let Some(url) = database().await else { return };
        let store = FarmStore::postgres(&url).await.unwrap();
        assert_eq!(store.engine(), StoreEngine::Postgres);
        store.put(&made("r", "a", 3, 5, true)).await.unwrap();
        let turn = store.server_turn().await.unwrap();
        let again = FarmStore::postgres(&url).await.unwrap();
        assert_eq!(again.totals().await.unwrap(), (1, 1));
        // Others may look, and no other may serve.
        assert_eq!(again.server_turn().await.err().unwrap().exit, Exit::NotPermitted);
        assert!(again.free_turn().await.unwrap().is_none());
        drop(turn);
        assert!(again.server_turn().await.is_ok());
        sqlx::query(
            "insert into _sqlx_migrations select 99, description, installed_on, success, checksum, \
                     execution_time from _sqlx_migrations",
        )
        .execute(&again.pool)
        .await
        .unwrap();
        let refused = FarmStore::postgres(&url).await.err().unwrap();
        assert_eq!(refused.exit, Exit::NotSupported);
        let nowhere = FarmStore::postgres("postgres://farm:secret@localhost/x?host=/nowhere").await;
        let told = nowhere.err().unwrap().message;
        assert!(told.contains("PostgreSQL") && !told.contains("secret"), "{told}");
    });
}

/// Requirements of Citus for distributed tables: each unique key contains the board, as does each
/// reference to another such table.
#[test]
fn each_key_of_what_grows_with_boards_has_the_board() {
    let schema = include_str!("../../migrations/0001.sql");
    let mut distributed = Vec::new();
    for statement in schema.split(";\n") {
        let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(table) = words.split("create table ").nth(1) else { continue };
        let name = table.split(' ').next().unwrap();
        if name == "token" || !table.contains("board_id") {
            assert!(!table.contains("references run"), "{name}");
            continue;
        }
        let keys = |after: &str| -> Vec<String> {
            let lists = words.split(after).skip(1);
            lists.map(|rest| rest.split(')').next().unwrap_or_default().to_owned()).collect()
        };
        let of_column = table.contains("board_id bigint primary key").then(|| "board_id".to_owned());
        let unique = [keys("primary key ("), keys("unique ("), of_column.into_iter().collect()].concat();
        assert!(
            !unique.is_empty() && unique.iter().all(|key| key.contains("board_id")),
            "{name}: {unique:?}"
        );
        assert_eq!(table.matches("primary key").count() + table.matches("unique").count(), unique.len());
        assert!(keys("references run (").iter().all(|key| key.starts_with("board_id")), "{name}");
        assert!(
            table.contains("references board on delete cascade") || table.contains("references run"),
            "{name} stays when its board goes"
        );
        distributed.push(name.to_owned());
    }
    assert!(["slot", "hist", "run", "row_key"].iter().all(|name| distributed.contains(&(*name).to_owned())));
}

#[test]
fn texts_are_taken_whatever_they_hold() {
    on_each_engine(async |store| {
        let mut record = made("r", "a", 3, 5, true);
        record.plan_words = "a\0b".into();
        record.environment.settings = "\0".into();
        record.slots[0].victim = "'\0\u{202e}".into();
        store.put(&record).await.unwrap();
        assert_eq!(store.series("a").await.unwrap()[0].words, "a\u{fffd}b");
    });
}

#[test]
fn names_are_in_the_order_of_their_letters_numbers() {
    on_each_engine(async |store| {
        for name in ["b", "a", "B", "a-1", "a1", "A"] {
            store.put(&made(&format!("r-{name}"), name, 3, 5, true)).await.unwrap();
        }
        let boards = store.boards().await.unwrap();
        let names: Vec<&str> = boards.iter().map(|board| board.board.as_str()).collect();
        assert_eq!(names, ["A", "B", "a", "a-1", "a1", "b"]);
    });
}

#[test]
fn older_runs_go_on_where_a_list_ended_also_within_a_second() {
    on_each_engine(async |store| {
        for (id, day) in [("a", 3), ("b", 3), ("c", 3), ("d", 4), ("e", 2)] {
            store.put(&made(id, "x", day, 5, true)).await.unwrap();
        }
        let (mut filter, mut found) = (crate::records::RunFilter::default(), Vec::new());
        loop {
            let runs = store.find_runs(&filter, 2).await.unwrap();
            let Some(last) = runs.last() else { break };
            (filter.before, filter.before_run) = (Some(last.started), Some(last.id.clone()));
            found.extend(runs.into_iter().map(|run| run.id));
        }
        assert_eq!(found, ["d", "c", "b", "a", "e"]);
        // Of a time alone those that began before it.
        filter.before_run = None;
        filter.before = store.run("b").await.unwrap().map(|run| run.started);
        assert_eq!(store.find_runs(&filter, 9).await.unwrap().len(), 1);
    });
}

#[test]
fn a_hostile_name_is_a_value() {
    on_each_engine(async |store| {
        let name = "'; drop table run; --";
        let mut record = made("r", name, 3, 5, true);
        record.board_name = name.into();
        store.put(&record).await.unwrap();
        assert_eq!(store.boards_of(Some(name)).await.unwrap()[0].name, name);
        assert_eq!(store.totals().await.unwrap(), (1, 1));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24, 8), ..ProptestConfig::default() })]
    /// In any order, repeated, or as a checkpoint first: the days have the samples of the runs.
    #[test]
    fn days_add_up_to_the_runs(
        puts in prop::collection::vec((0usize..6, 0i64..3, 1u64..100, any::<bool>()), 1..30)
    ) {
        on_each_engine(async |store| {
            let mut runs: std::collections::BTreeMap<usize, (i64, u64, bool)> = Default::default();
            for (at, day, samples, complete) in puts.clone() {
                let day = runs.get(&at).map_or(day, |known| known.0);
                let record = made(&format!("r{at}"), "a", day, samples, complete);
                let outcome = store.put(&record).await.unwrap();
                let wanted = match runs.get(&at) {
                    None => PutOutcome::Stored,
                    Some(&(_, n, done)) if (n, done) == (samples, complete) => PutOutcome::Had,
                    Some(&(_, n, done)) if !done && samples >= n => PutOutcome::Replaced,
                    Some(_) => PutOutcome::Refused(String::new()),
                };
                assert_eq!(std::mem::discriminant(&outcome), std::mem::discriminant(&wanted), "{outcome:?}");
                if matches!(outcome, PutOutcome::Stored | PutOutcome::Replaced) {
                    runs.insert(at, (day, samples, complete));
                }
            }
            let key = made("x", "a", 0, 1, true).run.key;
            let days = store.tiers("a", &key, Tier::Day, ALL).await.unwrap();
            let slots = store.slots("a", &key, ALL, 999).await.unwrap();
            for day in 0..3 {
                let of_runs: u64 = runs.values().filter(|run| run.0 == day).map(|run| run.1).sum();
                let t = day * 86_400;
                let found = days.iter().find(|row| row.t == t);
                assert_eq!(found.map_or(0, |row| row.n), of_runs);
                assert_eq!(found.map_or(0, |row| row.cpus.iter().map(|cpu| cpu.rows.total()).sum()), of_runs);
                assert_eq!(slots.iter().filter(|slot| slot.t == t).map(|slot| slot.n).sum::<u64>(), of_runs);
            }
        });
    }
}
