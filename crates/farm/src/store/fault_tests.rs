//! Each write of each transaction fails once: nothing of it is then there, and all of it when it is
//! done again.

use crate::fixture::named_rows::{lines_of, named, recording};
use crate::fixture::{block_on, recorded_run};
use crate::records::BundleRecord;
use crate::store::engines::{self, database};
use crate::store::*;
use model::watch::WatchRow;

/// A store in which a chosen write fails; each row that a statement writes is one.
struct Faulty(FarmStore);

/// Runs a test with a store that fails and one that does not, for each engine.
fn on_each_engine(test: impl AsyncFn(Faulty, Faulty)) {
    block_on(async {
        let empty = async || Faulty::of(FarmStore::in_memory().await.unwrap()).await;
        test(empty().await, empty().await).await;
        let (Some(one), Some(other)) = (database().await, database().await) else { return };
        let of = async |url: String| Faulty::of(FarmStore::postgres(&url).await.unwrap()).await;
        test(of(one).await, of(other).await).await;
    });
}

impl Faulty {
    async fn of(store: FarmStore) -> Faulty {
        let faulty = Faulty(store);
        let tables = faulty.tables().await;
        faulty.tell("create table fault (remaining bigint not null)").await;
        faulty.tell("insert into fault values (-1)").await;
        if faulty.0.engine == StoreEngine::Postgres {
            let planted = "create function planted() returns trigger language plpgsql as $$ begin \
                           update fault set remaining = remaining - 1; \
                           if (select remaining from fault) = 0 then raise exception 'planted'; end if; \
                           if tg_op = 'DELETE' then return old; end if; return new; end $$";
            faulty.tell(planted).await;
        }
        for table in tables {
            for event in ["insert", "update", "delete"] {
                let when = format!("create trigger fault_{table}_{event} before {event} on {table}");
                let what = match faulty.0.engine {
                    StoreEngine::Postgres => "for each row execute function planted()",
                    StoreEngine::Sqlite => {
                        "begin update fault set remaining = remaining - 1; \
                         select raise(abort, 'planted') where (select remaining from fault) = 0; end"
                    }
                };
                faulty.tell(&format!("{when} {what}")).await;
            }
        }
        faulty
    }

    async fn tell(&self, statement: &str) {
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&self.0.pool).await.unwrap();
    }

    async fn texts(&self, query: &str) -> Vec<String> {
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()));
        query.fetch_all(&self.0.pool).await.unwrap()
    }

    async fn tables(&self) -> Vec<String> {
        let all = match self.0.engine {
            StoreEngine::Sqlite => {
                "select name from sqlite_master where type = 'table' \
                 and name not in ('fault', '_sqlx_migrations') and name not like 'sqlite%' order by name"
            }
            StoreEngine::Postgres => {
                "select cast(table_name as text) from information_schema.tables \
                 where table_schema = current_schema() \
                 and table_name not in ('fault', '_sqlx_migrations') order by 1"
            }
        };
        self.texts(all).await
    }

    /// Everything that is in it.
    async fn content(&self) -> Vec<String> {
        let mut all = Vec::new();
        for table in self.tables().await {
            let row = match self.0.engine {
                StoreEngine::Postgres => format!("{table}::text"),
                StoreEngine::Sqlite => {
                    let columns = self.texts(&format!("select name from pragma_table_info('{table}')")).await;
                    let quoted: Vec<String> = columns.iter().map(|name| format!("quote({name})")).collect();
                    quoted.join(" || ' ' || ")
                }
            };
            all.extend(
                self.texts(&format!("select '{table} ' || {row} as line from {table} order by 1")).await,
            );
        }
        all
    }

    /// PostgreSQL does not reuse numbers of a failed transaction; nothing depends on them, and with
    /// the same numbers two stores can be compared.
    async fn number_on(&self) {
        if self.0.engine == StoreEngine::Postgres {
            for table in ["board", "environment", "culprit"] {
                let next = format!(
                    "select setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 0) + 1, false) \
                     from {table}"
                );
                self.tell(&next).await;
            }
        }
    }

    /// Fails the n-th write of an action, for every n until it succeeds; returns the failures.
    async fn in_spite_of_faults(&self, act: impl AsyncFn(&FarmStore) -> bool) -> i64 {
        let before = self.content().await;
        for n in 1.. {
            self.tell(&format!("update fault set remaining = {n}")).await;
            let worked = act(&self.0).await;
            self.tell("update fault set remaining = -1").await;
            if worked {
                return n - 1;
            }
            self.number_on().await;
            assert_eq!(self.content().await, before, "something is left of what failed at its write {n}");
        }
        unreachable!("every number was tried")
    }
}

fn batch(from: u64, to: u64, samples: u64) -> RowBatch {
    let row = |n: u64| WatchRow { max_ns: Some(Nanos(900)), ..named(n, "hog") };
    let line = |seq: u64| (seq, seq as i64 * 300, vec![row(samples + seq)]);
    lines_of(recording("timer"), "e", (from..to).map(line))
}

fn fixture(board: &str) -> BundleRecord {
    let mut record = recorded_run("hunt", board);
    record.run.labels = [("build".to_owned(), "1".to_owned())].into_iter().collect();
    record
}

#[test]
fn rows_are_stored_whole_or_not_at_all() {
    on_each_engine(async |faulty, clean| {
        for store in [&faulty.0, &clean.0] {
            store.board_for("a", "a").await.unwrap();
        }
        // Two overlapping requests, and one row with different contents.
        let together = [batch(0, 9, 10), batch(5, 14, 10), batch(13, 15, 77)];
        let put = async |store: &FarmStore| store.put_rows(&together).await.is_ok();
        let failed = faulty.in_spite_of_faults(put).await;
        // A key and a slot for each row, three histograms, a culprit with its day, an environment's
        // day.
        assert!(failed >= 2 * 15 + 6, "{failed}");
        assert!(put(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
        assert_eq!(clean.0.put_rows(&together).await.unwrap()[2].seq, [13]);
    });
}

#[test]
fn runs_are_stored_and_replaced_whole_or_not_at_all() {
    on_each_engine(async |faulty, clean| {
        let sent = SentBundle { board_id: 1, manifest: vec![7; 32], bytes: 99 };
        let later = fixture("a");
        let mut first = later.clone();
        (first.run.complete, first.digest) = (false, vec![1]);
        for record in [&first, &later] {
            let put = async |store: &FarmStore| store.put_sent(record, &sent).await.is_ok();
            assert!(faulty.in_spite_of_faults(put).await > 5);
            clean.number_on().await;
            assert!(put(&clean.0).await);
            assert_eq!(faulty.content().await, clean.content().await);
        }
    });
}

#[test]
fn a_run_is_removed_whole_or_not_at_all() {
    on_each_engine(async |faulty, clean| {
        let record = fixture("a");
        let sent = SentBundle { board_id: 1, manifest: vec![7; 32], bytes: 99 };
        for store in [&faulty.0, &clean.0] {
            store.put_sent(&record, &sent).await.unwrap();
        }
        let forget = async |store: &FarmStore| {
            let removal = store.forget_run(&record.run.id, None, Some(5)).await;
            removal.is_ok_and(|removal| matches!(removal, RunRemoval::Removed(_)))
        };
        assert!(faulty.in_spite_of_faults(forget).await > 9);
        assert!(forget(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
        // The conditions of a series may be shared with another board.
        let left = clean.content().await;
        let stays =
            |line: &String| ["plan ", "meta ", "forgotten_run "].iter().any(|of| line.starts_with(of));
        assert!(left.len() == 3 && left.iter().all(stays), "{left:?}");
    });
}

#[test]
fn a_code_is_used_up_with_its_board_or_not_at_all() {
    on_each_engine(async |faulty, clean| {
        for store in [&faulty.0, &clean.0] {
            store.add_code(&[1], 100, &["lab=x".into()]).await.unwrap();
        }
        let enrol = async |store: &FarmStore| {
            store.enrol(&[1], 50, "a", "A", &[2]).await.is_ok_and(|outcome| outcome == EnrolOutcome::Enrolled)
        };
        assert_eq!(faulty.in_spite_of_faults(enrol).await, 4);
        assert!(enrol(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
    });
}

#[test]
fn a_board_that_is_there_gets_its_new_token_whole_or_not_at_all() {
    on_each_engine(async |faulty, clean| {
        for store in [&faulty.0, &clean.0] {
            store.put(&fixture("a")).await.unwrap();
        }
        let make =
            async |store: &FarmStore| store.add_code_for("a", &[1], 100, &[]).await.is_ok_and(|made| made);
        let enrol = async |store: &FarmStore| {
            store.enrol(&[1], 50, "a", "A", &[2]).await.is_ok_and(|outcome| outcome == EnrolOutcome::Enrolled)
        };
        assert_eq!(faulty.in_spite_of_faults(make).await, 1);
        assert!(faulty.in_spite_of_faults(enrol).await >= 2);
        assert!(make(&clean.0).await && enrol(&clean.0).await);
        assert_eq!(faulty.content().await, clean.content().await);
    });
}

#[test]
fn what_is_damaged_is_not_written_over() {
    engines::on_each_engine(async |store| {
        store.board_for("a", "a").await.unwrap();
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
    engines::on_each_engine(async |store| {
        // A database server's disk is not this program's to fill.
        if store.engine == StoreEngine::Postgres {
            return;
        }
        store.board_for("a", "a").await.unwrap();
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
