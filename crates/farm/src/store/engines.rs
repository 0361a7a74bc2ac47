//! An empty store of each engine, for tests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{Connection, Executor, PgConnection};

use super::FarmStore;
use crate::fixture::cluster::MadeCluster;

/// A test over each engine that can be had.
pub fn on_each_engine(test: impl AsyncFn(FarmStore)) {
    on_engines(true, test);
}

/// A test of pages and answers: over SQLite, and in the long gate over PostgreSQL as well, since
/// the statements behind them have tests over each engine of their own.
pub fn on_page_engines(test: impl AsyncFn(FarmStore)) {
    on_engines(option_env!("ONBEAT_NIGHT").is_some(), test);
}

fn on_engines(each: bool, test: impl AsyncFn(FarmStore)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        test(FarmStore::in_memory().await.unwrap()).await;
        if each && let Some(url) = database().await {
            test(FarmStore::postgres(&url).await.unwrap()).await;
        }
    });
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
