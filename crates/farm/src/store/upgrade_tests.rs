//! Stores of earlier versions, each made by its own schema and with rows in all its tables: this
//! program opens them, keeps what is there, and serves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use model::rows::RowCounts;
use model::units::Cpu;
use model::watch::WatchRow;
use sha2::{Digest, Sha256};
use tower::ServiceExt;

use super::engines::{database, on_each_engine};
use super::*;
use crate::board_settings::{BoardSettings, BoardState};
use crate::changes::{Acknowledgement, ChangeIdentity};
use crate::ingest::bundle::read;
use crate::ingest::environment::hex;
use crate::ingest::find::FoundBundle;
use crate::ingest::fingerprint::fingerprint_of;
use crate::ingest::rows::{self, RowsOf};
use crate::people::{FarmPerson, Role};
use crate::records::BundleRecord;
use crate::web::{App, FarmExposure, router};

/// The schemas of earlier versions, of which stores may be there; the first is version 1.
const EARLIER: [&str; open::VERSION as usize - 1] = [
    include_str!("../../tests/schema_1.sql"),
    include_str!("../../tests/schema_2.sql"),
    include_str!("../../tests/schema_3.sql"),
    include_str!("../../tests/schema_4.sql"),
    include_str!("../../tests/schema_5.sql"),
    include_str!("../../tests/schema_6.sql"),
];
const NOW: &str = include_str!("schema.sql");

/// The names of a schema's tables.
fn tables(schema: &str) -> Vec<String> {
    let name = |rest: &str| rest.split(' ').next().unwrap_or_default().to_owned();
    schema.split("create table if not exists ").skip(1).map(name).collect()
}

async fn tell(store: &FarmStore, text: String) {
    sqlx::query(sqlx::AssertSqlSafe(text)).execute(&store.pool).await.unwrap();
}

async fn texts(store: &FarmStore, query: &str) -> Vec<String> {
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()));
    query.fetch_all(&store.pool).await.unwrap()
}

async fn count(store: &FarmStore, table: &str) -> i64 {
    let all = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {table}")));
    all.fetch_one(&store.pool).await.unwrap()
}

fn hunt() -> BundleRecord {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs/hunt");
    read(&FoundBundle { place: place.canonicalize().unwrap(), board: Some("a".into()) }).unwrap().0
}

fn batch(board_id: i64, from: u64, to: u64) -> RowBatch {
    let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "timer".into() };
    let line = |seq: u64| {
        let hist = RowCounts::of_rows([(200, 10 + seq)]);
        let row = WatchRow { cpu: Some(Cpu(0)), n: hist.total(), hist, ..WatchRow::default() };
        let mono = seq as i64 * 300 * Nanos::SECOND.0;
        let line =
            serde_json::json!({ "seq": seq, "mono_ns": mono, "span_ns": 1, "wall_ns": mono, "cpus": [row] });
        line.to_string() + "\n"
    };
    let text: String = (from..to).map(line).collect();
    let rows = rows::read(&of, text.as_bytes()).unwrap();
    let clock = Some(BoardClock { boot: "b".into(), mono_ns: 0, wall_ns: 0, asleep_ns: 0 });
    RowBatch { board_id, of, clock, received_ns: i64::MAX, rows }
}

/// Puts something into each table that a version before this one has.
pub async fn fill(store: &FarmStore) {
    let sent = SentBundle { board_id: 1, manifest: vec![1], bytes: 100 };
    let mut hunt = hunt();
    hunt.run.labels = [("build".to_owned(), "1".to_owned())].into_iter().collect();
    store.put_sent(&hunt, &sent).await.unwrap();
    let bundle = store.bundles().await.unwrap().remove(0);
    assert!(store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap().is_some());
    assert!(store.pin(&hunt.run.id, "ann", "", 9).await.unwrap());
    store.put_rows(&[batch(1, 0, 300)]).await.unwrap();
    store.add_code(&[1], 100, &["lab=x".into()]).await.unwrap();
    store.add_code(&[2], 100, &[]).await.unwrap();
    assert!(store.add_code_for("c", &[4], 100, &[]).await.unwrap());
    assert_eq!(store.enrol(&[2], 50, "b", "B", &[3]).await.unwrap(), EnrolOutcome::Enrolled);
    let identity = ChangeIdentity {
        board: "a".into(),
        kind: "silent".into(),
        subject: String::new(),
        began: 5,
        until: 5,
        since: None,
    };
    let notice = ChangeNotice { identity, document: "{}".into() };
    store.note_changes(&[notice], 9, 10).await.unwrap();
    let ann = FarmPerson { name: "ann".into(), role: Role::Admin, created: 5 };
    assert!(store.add_person(&ann, "digest").await.unwrap());
    assert!(store.begin_session("ann", "digest", &[9], 5, i64::MAX).await.unwrap());
    store.note(&AuditEntry { t_ns: 5, who: "ann".into(), what: "logged in".into() }).await.unwrap();
    let settings = BoardSettings { state: BoardState::Muted, state_since: 5, ..BoardSettings::default() };
    assert!(store.set_settings("a", "A", &settings).await.unwrap());
    store.set_budget("lab=west", Some(Nanos(5_000))).await.unwrap();
    let by = Acknowledgement { who: "ann".into(), note: String::new(), at: 9 };
    let change = AcknowledgedChange { board: "a".into(), subject: "s".into(), t: 5, by };
    store.acknowledge(&change).await.unwrap();
    for said in [
        "insert into culprit_day (board_id, culprit_id, t, series, slots, total_ns, from_t, to_t) \
         select 1, min(id), 0, 'timer', 1, 5, 0, 0 from culprit",
        "insert into watch_environment (board_id, env, environment_id) \
         select 1, 'e', min(id) from environment",
        "insert into row_environment (board_id, t, env, from_t, to_t) values (1, 0, 'e', 0, 0)",
    ] {
        tell(store, said.to_owned()).await;
    }
}

/// Makes a store one of an earlier version: by that version's text, with the rows that it would
/// have.
async fn set_back(store: &FarmStore, version: usize) {
    let schema = EARLIER[version - 1];
    for table in tables(schema) {
        tell(store, format!("create table old_{table} as select * from {table}")).await;
    }
    for table in tables(NOW) {
        tell(store, format!("drop table {table}")).await;
    }
    for statement in store.engine.schema(schema).split(";\n") {
        tell(store, statement.to_owned()).await;
    }
    for table in tables(schema) {
        tell(store, format!("insert into {table} select * from old_{table}")).await;
        tell(store, format!("drop table old_{table}")).await;
        if store.engine == StoreEngine::Postgres && ["board", "environment", "culprit"].contains(&&*table) {
            let next =
                format!("select setval(pg_get_serial_sequence('{table}', 'id'), max(id)) from {table}");
            tell(store, next).await;
        }
        assert!(count(store, &table).await > 0, "nothing in {table}");
    }
    if version < 4 && tables(schema).contains(&"board_setting".to_owned()) {
        // Boards of which nothing was set had none before the fourth version.
        tell(store, "delete from board_setting where since = 0 and tags = ''".to_owned()).await;
        assert_eq!(count(store, "board_setting").await, 1);
    }
    // How a run counts is noted since then.
    tell(store, "delete from meta where name like 'counted %'".to_owned()).await;
    tell(store, format!("update meta set value = {version} where name = 'schema'")).await;
}

/// Tables with their columns, and indexes, as the database has them.
async fn shape(store: &FarmStore) -> Vec<String> {
    let all = match store.engine {
        StoreEngine::Sqlite => {
            "select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_master order by 1"
        }
        StoreEngine::Postgres => {
            "select cast(table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' \
             || coalesce(collation_name, '') as text) from information_schema.columns \
             where table_schema = current_schema() union all \
             select replace(indexdef, schemaname || '.', '') from pg_indexes \
             where schemaname = current_schema() order by 1"
        }
    };
    texts(store, all).await
}

/// A test with how a store of each engine is opened that is there, and whose rows are those of an
/// earlier version.
fn on_each_earlier(test: impl AsyncFn(usize, FarmStore)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for version in 1..=EARLIER.len() {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("farm.db");
            let old = FarmStore::file(&file).await.unwrap();
            fill(&old).await;
            set_back(&old, version).await;
            old.pool.close().await;
            test(version, FarmStore::file(&file).await.unwrap()).await;
            let Some(url) = database().await else { continue };
            let old = FarmStore::postgres(&url).await.unwrap();
            fill(&old).await;
            set_back(&old, version).await;
            old.pool.close().await;
            test(version, FarmStore::postgres(&url).await.unwrap()).await;
        }
    });
}

#[test]
fn a_store_of_each_earlier_version_becomes_one_of_this() {
    on_each_earlier(async |version, store| {
        let found: i64 = sqlx::query_scalar("select value from meta where name = 'schema'")
            .fetch_one(&store.pool)
            .await
            .unwrap();
        assert_eq!(found, open::VERSION);
        // It is as one that was made new.
        let new = match store.engine {
            StoreEngine::Sqlite => Some(FarmStore::in_memory().await.unwrap()),
            StoreEngine::Postgres => match database().await {
                Some(url) => Some(FarmStore::postgres(&url).await.unwrap()),
                None => None,
            },
        };
        let new = new.unwrap();
        assert_eq!(shape(&store).await, shape(&new).await, "from {version}");
        assert_eq!(new.rows_named_since().await.unwrap(), None);
        // What was there is there, and nothing counts twice.
        let hunt = hunt();
        assert_eq!(store.run(&hunt.run.id).await.unwrap().unwrap().cycles, hunt.run.cycles);
        assert_eq!(store.put(&hunt).await.unwrap(), PutOutcome::Had);
        let again = store.put_rows(&[batch(1, 299, 301)]).await.unwrap();
        assert_eq!((again[0].had, again[0].stored), (1, 1));
        assert_eq!(count(&store, "row_key").await, 301);
        assert_eq!(store.owner(&[3]).await.unwrap().unwrap().board, "b");
        assert_eq!(store.faults().await.unwrap(), [""; 0]);
        assert_eq!(store.missing_parts().await.unwrap(), [""; 0], "from {version}");
        assert_eq!(store.broken_references().await.unwrap(), [""; 0], "from {version}");
        let mut own = store.own_faults().await.unwrap();
        // The day of a culprit that is filled in is of no row.
        own.retain(|line| !line.contains("the culprit "));
        assert_eq!(own, [""; 0], "from {version}");
        assert_eq!(count(&store, "board_setting").await, 2);
        assert!(store.add_code_for("a", &[5], 100, &[]).await.unwrap());
        assert_eq!(store.enrol(&[5], 50, "a", "A", &[6]).await.unwrap(), EnrolOutcome::Enrolled);
        // Numbers are given on from where they were.
        let outcome = store.enrol(&[1], 50, "c", "C", &[4]).await.unwrap();
        assert_eq!((outcome, store.boards_of(None).await.unwrap().len()), (EnrolOutcome::Enrolled, 3));
        assert_eq!(store.rows_named_since().await.unwrap().is_some(), version < 6);
        // Nothing is done twice.
        let before = shape(&store).await;
        open::prepare(&store).await.unwrap();
        assert_eq!(shape(&store).await, before);
    });
}

#[test]
fn what_came_with_the_third_version_works_on_stores_of_those_before() {
    on_each_earlier(async |version, store| {
        if version >= 3 {
            return;
        }
        let hunt = hunt();
        let run = store.run(&hunt.run.id).await.unwrap().unwrap();
        assert_eq!((run.pinned, run.thinned.as_str(), run.labels.is_empty()), (false, "", true));
        for table in ["label", "pin", "thinned", "code_tag"] {
            assert_eq!(count(&store, table).await, 0, "{table}");
        }
        assert!(store.pin(&run.id, "ann", "kept", 9).await.unwrap());
        let bundle = store.bundles().await.unwrap().remove(0);
        assert!(store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap().is_none());
        assert!(store.unpin(&run.id).await.unwrap());
        assert!(store.begin_thinning(&bundle, ThinnedPart::Blocks, 9).await.unwrap().is_some());
        let mut other = hunt.clone();
        other.run.id = "later".into();
        other.slots.iter_mut().for_each(|slot| slot.run = "later".into());
        other.run.labels = [("build".to_owned(), "7".to_owned())].into_iter().collect();
        assert_eq!(store.put(&other).await.unwrap(), PutOutcome::Stored);
        assert_eq!(store.labels("a", 9).await.unwrap()[0].value, "7");
        store.add_code(&[7], 100, &["lab=x".into()]).await.unwrap();
        store.enrol(&[7], 50, "c", "C", &[8]).await.unwrap();
        let settings = store.settings("c", "c").await.unwrap();
        assert!(settings.values().any(|one| one.tags == ["lab=x"]), "{settings:?}");
    });
}

/// What stood for a culprit before the sixth version.
fn fingerprint_of_before(rule: &str, kind: &str, name: &str) -> String {
    let name = if rule.is_empty() { name } else { "" };
    hex(&Sha256::digest(format!("{rule}\0{kind}\0{name}"))[..8])
}

#[test]
fn culprits_of_before_have_names_of_their_own_and_stay_known() {
    const HOG: (&str, &str) = ("realtime-thread", "a real-time thread that goes first: fault_hogger");
    on_each_engine(async |store| {
        store.put(&hunt()).await.unwrap();
        for table in ["culprit_run", "culprit"] {
            tell(&store, format!("delete from {table}")).await;
        }
        let culprits = [HOG, ("", "irq/35-eth0"), ("", "irq/36-eth0")];
        let before = culprits.map(|(rule, name)| fingerprint_of_before(rule, "thread", name));
        for (id, ((rule, name), was)) in (100..).zip(culprits.iter().zip(&before)) {
            tell(
                &store,
                format!(
                    "insert into culprit (id, fingerprint, rule, name, kind, remedy) \
                     values ({id}, '{was}', '{rule}', '{name}', 'thread', 'what to do')"
                ),
            )
            .await;
        }
        for (run, culprit, t, spikes) in
            [("r1", 100, 100, 3), ("r1", 101, 100, 3), ("r1", 102, 100, 4), ("r0", 102, 50, 1)]
        {
            tell(&store, format!("insert into culprit_run values (1, '{run}', {culprit}, {t}, {spikes}, 9)"))
                .await;
        }
        let notice = |fingerprint: &str| {
            let (board, subject) = ("a".to_owned(), format!("culprit {fingerprint}"));
            let kind = "new-culprit".to_owned();
            let identity = ChangeIdentity { board, kind, subject, began: 100, until: 100, since: None };
            ChangeNotice { identity, document: "{}".into() }
        };
        for was in &before[..2] {
            let by = Acknowledgement { who: "ann".into(), note: String::new(), at: 200 };
            let subject = format!("culprit {was}");
            let change = AcknowledgedChange { board: "a".into(), subject, t: 100, by };
            store.acknowledge(&change).await.unwrap();
            store.note_changes(&[notice(was)], 200, 9).await.unwrap();
        }
        tell(&store, "update meta set value = 5 where name = 'schema'".to_owned()).await;
        open::prepare(&store).await.unwrap();

        let [hog, irq] = [HOG, ("", "irq/99-eth0")].map(|(rule, name)| fingerprint_of(rule, "thread", name));
        assert_eq!(store.culprits(None, 9).await.unwrap().len(), 2);
        let (one, both) = (store.culprit(&hog).await.unwrap(), store.culprit(&irq).await.unwrap());
        let (one, both) = (one.unwrap(), both.unwrap());
        assert_eq!((one.name.as_str(), one.runs, one.spikes), (HOG.1, 1, 3));
        assert_eq!((both.name.as_str(), both.runs, both.spikes, both.first), ("irq/N-eth0", 2, 8, 50));
        // A change of it is found where its first run began, and was looked at.
        let looked = store.acknowledged(0).await.unwrap();
        let looked = looked.into_iter().map(|one| (one.subject, one.t)).collect::<BTreeMap<_, _>>();
        let wanted = [(format!("culprit {hog}"), 100), (format!("culprit {irq}"), 50)];
        assert_eq!(looked, BTreeMap::from(wanted));
        let again = [notice(&hog), notice(&irq)];
        assert_eq!(store.note_changes(&again, 300, 9).await.unwrap(), NoticesNoted::default());
        // Another program of the same rule is another culprit, and told.
        let zeta = fingerprint_of(HOG.0, "thread", "a real-time thread that goes first: zeta_thread");
        assert_eq!(store.note_changes(&[notice(&zeta)], 300, 9).await.unwrap().new, 1);
    });
}

#[test]
fn a_store_of_each_earlier_version_is_served() {
    on_each_earlier(async |version, store| {
        // Stores from the second version on have people; without them every page is open.
        store.remove_person("ann").await.unwrap();
        let run = hunt().run.id;
        let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
        for address in [
            "/".to_owned(),
            "/runs".to_owned(),
            "/changes".to_owned(),
            "/culprits".to_owned(),
            "/kernels".to_owned(),
            "/metrics".to_owned(),
            "/b/a".to_owned(),
            "/b/a/env".to_owned(),
            "/v1/boards/a".to_owned(),
            format!("/runs/{run}"),
        ] {
            let asked = Request::get(&address).header(header::HOST, "localhost:8377").body(Body::empty());
            let response = router(app.clone()).oneshot(asked.unwrap()).await.unwrap();
            let status = response.status();
            let body = to_bytes(response.into_body(), 64 << 20).await.unwrap();
            assert_eq!(
                status,
                StatusCode::OK,
                "{address} from {version}: {}",
                String::from_utf8_lossy(&body)
            );
        }
    });
}
