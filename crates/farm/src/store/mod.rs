//! The store: all SQL is in this folder, one text for SQLite and PostgreSQL.
//!
//! What both engines take: `$1`, `on conflict`, bigint, text, blob. Histograms are added up here
//! and never in SQL.

mod acknowledged;
mod audit;
mod board_settings;
mod boards;
#[cfg(any(test, feature = "fixture"))]
mod bulk;
mod changes;
mod culprits;
mod environments;
mod kernels;
mod moments;
mod overview;
mod people;
mod put;
mod rows;
mod runs;
mod tiers;
mod tokens;
mod upkeep;
mod uploads;

pub use acknowledged::AcknowledgedChange;
pub use audit::AuditEntry;
#[cfg(any(test, feature = "fixture"))]
pub use bulk::BulkRows;
pub use put::PutOutcome;
pub use rows::{BoardClock, RowBatch, RowsStored};
pub use tiers::TimeStretch;
pub use tokens::{EnrolOutcome, TokenOwner};
pub use uploads::SentBundle;

use std::path::Path;

use model::error::{Exit, Failure, Result};
use model::units::Nanos;
use sqlx::any::AnyPoolOptions;
use sqlx::{Any, AnyPool, Executor, Transaction};

/// The version of the schema that this program writes.
const VERSION: i64 = 1;

/// The database.
#[derive(Clone)]
pub struct FarmStore {
    pool: AnyPool,
}

impl FarmStore {
    /// A store in memory, which ends with the program.
    pub async fn in_memory() -> Result<FarmStore> {
        // One connection, because each would have a database of its own.
        FarmStore::opened(AnyPoolOptions::new().max_connections(1), "sqlite::memory:").await
    }

    /// A store in a file, which is made where there is none.
    pub async fn file(path: &Path) -> Result<FarmStore> {
        let path = path.to_str().filter(|path| !path.contains(['?', '#', '%'])).ok_or_else(|| {
            Failure::usage(
                "--store: the file's name is not one that can stand in an address, choose a plain one",
            )
        })?;
        let options = AnyPoolOptions::new().max_connections(4).after_connect(|connection, _| {
            Box::pin(async move {
                // A commit is on the disk before anything is said to be there. Of histograms of
                // 2 kB a page of 4 kB would hold one.
                connection
                    .execute(
                        "pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full; \
                         pragma busy_timeout = 10000",
                    )
                    .await
                    .map(|_| ())
            })
        });
        FarmStore::opened(options, &format!("sqlite://{path}?mode=rwc")).await
    }

    async fn opened(options: AnyPoolOptions, url: &str) -> Result<FarmStore> {
        sqlx::any::install_default_drivers();
        let options = options.idle_timeout(None).max_lifetime(None);
        let pool = options.connect(url).await.map_err(|error| {
            let message =
                format!("cannot open the store ({error}): give --store a file in a folder that is writable");
            Failure { exit: Exit::Internal, message }
        })?;
        let store = FarmStore { pool };
        store.prepare().await?;
        Ok(store)
    }

    async fn prepare(&self) -> Result<()> {
        let schema = include_str!("schema.sql").replace("/* clustered */", "without rowid");
        for statement in schema.split(";\n") {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&self.pool).await.map_err(trouble)?;
        }
        let insert = "insert into meta (name, value) values ('schema', $1) on conflict do nothing";
        sqlx::query(insert).bind(VERSION).execute(&self.pool).await.map_err(trouble)?;
        let found: i64 = sqlx::query_scalar("select value from meta where name = 'schema'")
            .fetch_one(&self.pool)
            .await
            .map_err(trouble)?;
        match found == VERSION {
            true => Ok(()),
            false => Err(Failure::not_supported(format!(
                "the store has schema {found} and this program knows {VERSION}: use the version that wrote it"
            ))),
        }
    }

    /// A transaction that writes: it waits for its turn when it begins, not when it has read
    /// already and could no longer write (SQLite, "BEGIN TRANSACTION").
    async fn begin(&self) -> Result<Transaction<'static, Any>> {
        self.pool.begin_with("begin immediate").await.map_err(trouble)
    }

    /// Whether the store answers.
    pub async fn answers(&self) -> bool {
        sqlx::query_scalar::<_, i64>("select 1").fetch_one(&self.pool).await.is_ok()
    }
}

/// A failed statement, for people.
fn trouble(error: sqlx::Error) -> Failure {
    Failure::internal(format!("the store failed ({error}): look at its disk, and try again"))
}

fn to_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn to_u64(n: i64) -> u64 {
    n.max(0).unsigned_abs()
}

fn nanos(value: Option<i64>) -> Option<Nanos> {
    value.map(Nanos)
}

fn plain(value: Option<Nanos>) -> Option<i64> {
    value.map(|value| value.0)
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
