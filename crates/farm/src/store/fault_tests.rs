//! Each write of each transaction fails once: nothing of it is then there, and all of it when it is
//! done again.

use super::*;
use crate::ingest::bundle::read;
use crate::ingest::find::FoundBundle;
use crate::ingest::rows::{self, RowsOf};
use crate::records::BundleRecord;
use model::rows::RowCounts;
use model::units::Cpu;
use model::watch::WatchRow;
use std::path::PathBuf;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A store in which a chosen write fails; each row that a statement writes is one.
struct Faulty(FarmStore);

impl Faulty {
    async fn new() -> Faulty {
        let faulty = Faulty(FarmStore::in_memory().await.unwrap());
        faulty.tell("create table fault (remaining bigint not null)").await;
        faulty.tell("insert into fault values (-1)").await;
        for table in faulty.tables().await {
            for event in ["insert", "update", "delete"] {
                faulty
                    .tell(&format!(
                        "create trigger fault_{table}_{event} before {event} on {table} begin \
                         update fault set remaining = remaining - 1; \
                         select raise(abort, 'planted') where (select remaining from fault) = 0; end"
                    ))
                    .await;
            }
        }
        faulty
    }

    async fn tell(&self, statement: &str) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&self.0.pool).await.unwrap();
    }

    async fn tables(&self) -> Vec<String> {
        let all = "select name from sqlite_master where type = 'table' and name not in ('fault', 'meta') \
                   and name not like 'sqlite%' order by name";
        sqlx::query_scalar(all).fetch_all(&self.0.pool).await.unwrap()
    }

    /// Everything that is in it.
    async fn content(&self) -> Vec<String> {
        let mut all = Vec::new();
        for table in self.tables().await {
            let columns: Vec<String> = sqlx::query_scalar("select name from pragma_table_info($1)")
                .bind(&table)
                .fetch_all(&self.0.pool)
                .await
                .unwrap();
            let quoted: Vec<String> = columns.iter().map(|name| format!("quote({name})")).collect();
            let query =
                format!("select '{table} ' || {} as row from {table} order by 1", quoted.join(" || ' ' || "));
            let rows: Vec<String> =
                sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_all(&self.0.pool).await.unwrap();
            all.extend(rows);
        }
        all
    }

    /// Does something with its n-th write failing, for every n until it works; how many failed.
    async fn in_spite_of_faults(&self, act: impl AsyncFn(&FarmStore) -> bool) -> i64 {
        let before = self.content().await;
        for n in 1.. {
            self.tell(&format!("update fault set remaining = {n}")).await;
            let worked = act(&self.0).await;
            self.tell("update fault set remaining = -1").await;
            if worked {
                return n - 1;
            }
            assert_eq!(self.content().await, before, "something is left of what failed at its write {n}");
        }
        unreachable!("every number was tried")
    }
}

fn batch(from: u64, to: u64, samples: u64) -> RowBatch {
    let of = RowsOf { boot: "b".into(), recording: "r".into(), series: "timer".into() };
    let line = |seq: u64| {
        let hist = RowCounts::of_rows([(200, samples + seq)]);
        let row = WatchRow {
            cpu: Some(Cpu(0)),
            n: hist.total(),
            max_ns: Some(Nanos(900)),
            hist,
            ..WatchRow::default()
        };
        let mono = seq as i64 * 300 * Nanos::SECOND.0;
        let line = serde_json::json!({ "seq": seq, "mono_ns": mono, "wall_ns": mono, "cpus": [row] });
        line.to_string() + "\n"
    };
    let text: String = (from..to).map(line).collect();
    let rows = rows::read(&of, text.as_bytes()).unwrap();
    RowBatch { board_id: 1, of, clock: None, rows }
}

fn fixture(board: &str) -> BundleRecord {
    let runs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/runs");
    read(&FoundBundle { place: runs.join("hunt"), board: Some(board.into()) }).unwrap().0
}

#[test]
fn rows_are_stored_whole_or_not_at_all() {
    block_on(async {
        let (faulty, clean) = (Faulty::new().await, Faulty::new().await);
        // Two requests that overlap, and one row with another content.
        let together = [batch(0, 9, 10), batch(5, 14, 10), batch(13, 15, 77)];
        let put = async |store: &FarmStore| store.put_rows(&together).await.is_ok();
        let failed = faulty.in_spite_of_faults(put).await;
        // A key and a slot for each row, and three histograms.
        assert!(failed >= 2 * 15 + 3, "{failed}");
        assert!(put(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
        assert_eq!(clean.0.put_rows(&together).await.unwrap()[2].seq, [13]);
    });
}

#[test]
fn runs_are_stored_and_replaced_whole_or_not_at_all() {
    block_on(async {
        let (faulty, clean) = (Faulty::new().await, Faulty::new().await);
        let sent = SentBundle { board_id: 1, manifest: vec![7; 32], bytes: 99 };
        let later = fixture("a");
        let mut first = later.clone();
        (first.run.complete, first.digest) = (false, vec![1]);
        for record in [&first, &later] {
            let put = async |store: &FarmStore| store.put_sent(record, &sent).await.is_ok();
            assert!(faulty.in_spite_of_faults(put).await > 5);
            assert!(put(&clean.0).await);
            assert_eq!(faulty.content().await, clean.content().await);
        }
    });
}

#[test]
fn a_code_is_used_up_with_its_board_or_not_at_all() {
    block_on(async {
        let (faulty, clean) = (Faulty::new().await, Faulty::new().await);
        for store in [&faulty.0, &clean.0] {
            store.add_code(&[1], 100).await.unwrap();
        }
        let enrol = async |store: &FarmStore| {
            store.enrol(&[1], 50, "a", "A", &[2]).await.is_ok_and(|outcome| outcome == EnrolOutcome::Enrolled)
        };
        assert_eq!(faulty.in_spite_of_faults(enrol).await, 3);
        assert!(enrol(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
    });
}

#[test]
fn what_is_damaged_is_not_written_over() {
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        store.put_rows(&[batch(0, 3, 10)]).await.unwrap();
        sqlx::query("update hist set cpus = $1").bind(vec![9u8, 9]).execute(&store.pool).await.unwrap();
        let failure = store.put_rows(&[batch(3, 4, 10)]).await.unwrap_err();
        assert!(failure.message.contains("damaged"), "{}", failure.message);
        let kept: Vec<u8> =
            sqlx::query_scalar("select cpus from hist limit 1").fetch_one(&store.pool).await.unwrap();
        assert_eq!(kept, [9, 9]);
    });
}

/// Every time a page of the disk is missing: nothing is acknowledged that is not there.
#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    block_on(async {
        let store = FarmStore::in_memory().await.unwrap();
        let pages: i64 = sqlx::query_scalar("pragma page_count").fetch_one(&store.pool).await.unwrap();
        let (mut next, mut refused) = (0, 0);
        for more in 0..12 {
            let limit = format!("pragma max_page_count = {}", pages + more);
            sqlx::query(sqlx::AssertSqlSafe(limit)).fetch_one(&store.pool).await.unwrap();
            while store.put_rows(&[batch(next, next + 40, 10)]).await.is_ok() {
                next += 40;
            }
            refused += 1;
            let there: i64 =
                sqlx::query_scalar("select count(*) from row_key").fetch_one(&store.pool).await.unwrap();
            let slots: i64 =
                sqlx::query_scalar("select count(*) from slot").fetch_one(&store.pool).await.unwrap();
            assert_eq!((there, slots), (next as i64, next as i64), "at {more} pages more");
        }
        assert!(next > 0 && refused == 12);
    });
}
