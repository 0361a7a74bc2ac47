//! Opens a store, and creates the tables of a new one.

use std::path::Path;
use std::time::Duration;

use model::error::{Exit, Failure, Result};
use model::text::quoted;
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Any, AssertSqlSafe, Connection, Executor, SqlSafeStr, Transaction};

use crate::store::engine::{StoreEngine, checked};
use crate::store::file::{SCHEMA, look_at};
use crate::store::own_folder::OwnFolder;
use crate::store::{FarmStore, trouble};

/// Timeout for a free connection, shorter than those of clients.
const PATIENCE: Duration = Duration::from_secs(5);

impl FarmStore {
    /// A store in memory, which ends with the program.
    pub async fn in_memory() -> Result<FarmStore> {
        // One connection, because each would have a separate database.
        let options = AnyPoolOptions::new().max_connections(1);
        opened(StoreEngine::Sqlite, options, "sqlite::memory:").await?.prepared().await
    }

    /// Opens a store in a file, which is created if it does not exist.
    pub async fn file(path: &Path) -> Result<FarmStore> {
        FarmStore::in_file(path, true).await
    }

    /// A store in a file that is there: none is made.
    pub async fn existing_file(path: &Path) -> Result<FarmStore> {
        let shown = quoted(path);
        if let Err(error) = host::is_dir(path)
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            let remedy = "run this as the owner of the store";
            return Err(Failure::of_call(
                format!("cannot inspect {shown}"),
                &error,
                Exit::NotPermitted,
                remedy,
            ));
        }
        if host::identity(path).is_none() {
            return Err(Failure::usage(format!(
                "no store exists at {shown}: name one with --store sqlite:PATH"
            )));
        }
        FarmStore::in_file(path, false).await
    }

    async fn in_file(path: &Path, may_be_new: bool) -> Result<FarmStore> {
        let is_plain = |path: &&str| !path.contains(|c: char| c.is_control() || "?#%".contains(c));
        let path = path.to_str().filter(is_plain).ok_or_else(|| {
            Failure::usage(format!(
                "invalid --store name {}: expected UTF-8 without ?, #, %, newlines and other control \
                 characters",
                quoted(path)
            ))
        })?;
        let options = prepared_by(StoreEngine::Sqlite, AnyPoolOptions::new().max_connections(4));
        let url = format!("sqlite://{path}?mode=rwc");
        sqlx::any::install_default_drivers();
        if !look_at(Path::new(path), &url).await? && !may_be_new {
            return Err(Failure::usage(format!(
                "{} is empty, perhaps from an interrupted backup: name a store with --store sqlite:PATH",
                quoted(Path::new(path))
            )));
        }
        let folder = OwnFolder::beside(Path::new(path));
        let store = opened(StoreEngine::Sqlite, options, &url).await?.prepared().await?;
        Ok(FarmStore { folder, ..store })
    }

    /// A store in a database of PostgreSQL that is there already; its tables are made.
    pub async fn postgres(url: &str) -> Result<FarmStore> {
        in_database(url).await?.prepared().await
    }

    /// The same for an existing store: no tables are created.
    pub async fn existing_postgres(url: &str) -> Result<FarmStore> {
        let store = in_database(url).await?;
        let schema = sqlx::query_scalar::<_, Option<i64>>(SCHEMA).fetch_one(&store.pool).await;
        // PostgreSQL's undefined_table.
        let is_undefined = |error: &sqlx::Error| {
            error.as_database_error().and_then(|told| told.code()).is_some_and(|code| code == "42P01")
        };
        match schema {
            Ok(Some(_)) => store.prepared().await,
            Err(error) if !is_undefined(&error) => Err(trouble(error)),
            _ => Err(Failure::usage(
                "this database contains no store: name one with --store postgres://USER@HOST/DATABASE",
            )),
        }
    }

    async fn prepared(self) -> Result<FarmStore> {
        prepare(&self).await?;
        Ok(self)
    }

    /// A transaction that writes.
    pub async fn begin(&self) -> Result<Transaction<'static, Any>> {
        self.transaction().await.map_err(trouble)
    }

    /// Begins a write transaction, and returns the raw error for callers that match on it.
    pub async fn transaction(&self) -> sqlx::Result<Transaction<'static, Any>> {
        self.begun(self.engine.begin(), self.engine.turn()).await
    }

    /// Begins a read transaction, which is isolated from concurrent writes.
    pub async fn snapshot(&self) -> Result<Transaction<'static, Any>> {
        self.begun(self.engine.begin_reading(), None).await.map_err(trouble)
    }

    async fn begun(
        &self,
        begin: &'static str,
        turn: Option<&'static str>,
    ) -> sqlx::Result<Transaction<'static, Any>> {
        let pool = self.pool.clone();
        // In a separate task: a client may disconnect between the statement and its result, which
        // would leave the connection in an unknown transaction.
        let begun = tokio::spawn(async move {
            let mut all = pool.begin_with(begin).await?;
            if let Some(turn) = turn {
                sqlx::query(turn).execute(&mut *all).await?;
            }
            Ok(all)
        });
        begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }
}

fn prepared_by(engine: StoreEngine, options: AnyPoolOptions) -> AnyPoolOptions {
    let options = options.after_connect(move |connection, _| {
        Box::pin(async move { connection.execute(engine.session_pragmas()).await.map(|_| ()) })
    });
    // On a full disk SQLite ends a transaction by itself ("Response To Errors Within A
    // Transaction"), the driver still counts it, and nothing could begin on that connection any
    // more.
    options.after_release(|connection, _| {
        Box::pin(async move {
            if connection.is_in_transaction() {
                // Its rollback may be on the way.
                connection.ping().await?;
            }
            Ok(!connection.is_in_transaction())
        })
    })
}

async fn in_database(url: &str) -> Result<FarmStore> {
    let options = AnyPoolOptions::new().max_connections(8).acquire_timeout(PATIENCE);
    opened(StoreEngine::Postgres, prepared_by(StoreEngine::Postgres, options), &checked(url)?).await
}

/// Connects to a store without checking its tables.
async fn opened(engine: StoreEngine, options: AnyPoolOptions, url: &str) -> Result<FarmStore> {
    sqlx::any::install_default_drivers();
    let options = options.idle_timeout(None).max_lifetime(None);
    let pool = options.connect(url).await.map_err(|error| {
        let remedy = match engine {
            StoreEngine::Sqlite => "give --store a file in a folder that is writable",
            StoreEngine::Postgres => "check that PostgreSQL runs and that --store names it",
        };
        Failure { exit: Exit::Internal, message: format!("cannot open the store ({error}): {remedy}") }
    })?;
    Ok(FarmStore { pool, engine, folder: OwnFolder::default() })
}

/// Creates the tables of an empty store; refuses one of another schema.
async fn prepare(store: &FarmStore) -> Result<()> {
    let text = AssertSqlSafe(store.engine.schema(include_str!("../../migrations/0001.sql")));
    let schema = Migration::new(1, "schema".into(), MigrationType::Simple, text.into_sql_str(), false);
    let migrator = Migrator::with_migrations(vec![schema]);
    let mut made = migrator.run(&store.pool).await;
    if store.engine == StoreEngine::Sqlite && matches!(made, Err(MigrateError::ExecuteMigration(..))) {
        // SQLite has no lock for this: another program may have made the tables since the look.
        made = migrator.run(&store.pool).await;
    }
    made.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => trouble(error),
        other => Failure::not_supported(format!(
            "unsupported schema of the store ({other}): use the version of onbeat-farm that wrote it"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::block_on;

    #[test]
    fn a_transaction_that_the_database_ended_by_itself_keeps_no_other_from_beginning() {
        block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let store = FarmStore::file(&folder.path().join("farm.db")).await.unwrap();
            // As on a full disk: the transaction ends before the program ends it.
            for _ in 0..8 {
                let mut all = store.transaction().await.unwrap();
                sqlx::query("rollback").execute(&mut *all).await.unwrap();
            }
            for _ in 0..8 {
                store.transaction().await.unwrap().commit().await.unwrap();
            }
        });
    }

    #[test]
    fn in_a_database_that_has_no_store_none_is_made_where_one_has_to_be_there() {
        block_on(async {
            let Some(url) = crate::store::engines::database().await else { return };
            for _ in 0..2 {
                let refused = FarmStore::existing_postgres(&url).await.err().unwrap();
                assert!(refused.exit == Exit::Usage && refused.message.contains("contains no store"));
            }
            FarmStore::postgres(&url).await.unwrap().close().await;
            assert!(FarmStore::existing_postgres(&url).await.is_ok());
        });
    }
}
