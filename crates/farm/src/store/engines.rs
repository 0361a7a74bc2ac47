//! An empty store of each engine, for tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sqlx::{Connection, Executor, PgConnection};

use crate::fixture::IS_NIGHT;
use crate::fixture::cluster::MadeCluster;
use crate::store::FarmStore;

/// A test over each engine that can be had.
pub fn on_each_engine(test: impl AsyncFn(FarmStore)) {
    on_engines(true, test);
}

/// A test of pages and answers: over SQLite, and in the long gate over PostgreSQL as well, since
/// the statements behind them have tests over each engine of their own.
pub fn on_page_engines(test: impl AsyncFn(FarmStore)) {
    on_engines(IS_NIGHT, test);
}

fn on_engines(each: bool, test: impl AsyncFn(FarmStore)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        test(FarmStore::in_memory().await.unwrap()).await;
        if each && let Some(schema) = LentSchema::take().await {
            let store = FarmStore::postgres(&schema.url).await.unwrap();
            test(store.clone()).await;
            schema.give_back(store).await;
        }
    });
}

/// A schema with the tables of a store, which serves one test after the other: to create the tables
/// takes longer than most tests.
struct LentSchema {
    url: String,
}

/// Deletion of all rows, without checks of foreign keys, and restart of all sequences.
const EMPTY: &str = "do $$ declare one record; begin \
                     set local session_replication_role = replica; \
                     for one in select tablename as name from pg_tables \
                     where schemaname = current_schema() and tablename <> '_sqlx_migrations' loop \
                     execute format('delete from %I', one.name); end loop; \
                     for one in select sequencename as name from pg_sequences \
                     where schemaname = current_schema() loop \
                     execute format('alter sequence %I restart', one.name); end loop; end $$";

impl LentSchema {
    fn free() -> MutexGuard<'static, Vec<String>> {
        static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
        FREE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take() -> Option<LentSchema> {
        let free = LentSchema::free().pop();
        let url = if free.is_some() { free } else { database().await };
        url.map(|url| LentSchema { url })
    }

    /// Empties the schema for the next test; the schema of a failed test is not used again.
    async fn give_back(self, store: FarmStore) {
        store.pool.execute(EMPTY).await.unwrap();
        store.pool.close().await;
        LentSchema::free().push(self.url);
    }
}

/// Address of an empty database in PostgreSQL, if available.
pub async fn database() -> Option<String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let cluster = cluster()?;
    let schema = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut connection = PgConnection::connect(&cluster.url("public")).await.unwrap();
    connection.execute(sqlx::AssertSqlSafe(format!("create schema {schema}"))).await.unwrap();
    connection.close().await.unwrap();
    Some(cluster.url(&schema))
}

/// One cluster for all tests of the program. Without it these are skipped, with a message.
fn cluster() -> Option<&'static MadeCluster> {
    static SHARED: OnceLock<Result<MadeCluster, String>> = OnceLock::new();
    match SHARED.get_or_init(|| MadeCluster::start(false)) {
        Ok(cluster) => Some(cluster),
        Err(why) => {
            eprintln!("left out: PostgreSQL ({why})");
            None
        }
    }
}

impl FarmStore {
    /// Makes the disk of a store in memory full, or provides room again. The limit is per
    /// connection, and the store has one.
    pub async fn fill_up(&self, full: bool) {
        let pages: i64 = sqlx::query_scalar("pragma page_count").fetch_one(&self.pool).await.unwrap();
        let most = if full { pages } else { 1 << 30 };
        let limit = sqlx::AssertSqlSafe(format!("pragma max_page_count = {most}"));
        sqlx::query(limit).fetch_one(&self.pool).await.unwrap();
    }
}
