//! Ensures that a database has one server at a time: its knowledge of its boards' requests is in
//! its memory, and the folder of bundles is on one machine. Rows would count once even with two.

use std::time::Duration;

use model::error::{Failure, Result};

use sqlx::{AnyConnection, ConnectOptions, Connection};

use crate::store::engine::StoreEngine;
use crate::store::{FarmStore, trouble};

/// The lock ends with its connection (PostgreSQL, "Advisory Locks").
const TAKE: &str = "select case when pg_try_advisory_lock(1869505125, \
                    hashtext(coalesce(current_schema()::text, ''))) then 1 else 0 end";
/// Interval between two attempts.
const EVERY: Duration = Duration::from_secs(5);
/// The connection of a killed server is closed within moments.
const TRIES: usize = 20;
const SOON: Duration = Duration::from_millis(250);
/// That of an unreachable one is closed within two minutes.
const LOOKS: usize = 36;

/// Lock that makes this the only server of a store.
pub struct ServerTurn {
    store: FarmStore,
    /// `None` for a store in a file, which has a lock file.
    connection: Option<AnyConnection>,
}

impl FarmStore {
    /// Makes this the only server of the store, as long as the value lives.
    pub async fn server_turn(&self) -> Result<ServerTurn> {
        let mut turn = ServerTurn { store: self.clone(), connection: None };
        if self.engine == StoreEngine::Sqlite {
            return Ok(turn);
        }
        for _ in 0..TRIES {
            if turn.take().await.map_err(trouble)? {
                return Ok(turn);
            }
            tokio::time::sleep(SOON).await;
        }
        Err(Failure::not_permitted("another server uses the database: end it first"))
    }

    /// The same if no server holds it, otherwise `None`.
    pub async fn free_turn(&self) -> Result<Option<ServerTurn>> {
        let mut turn = ServerTurn { store: self.clone(), connection: None };
        let is_free = self.engine == StoreEngine::Sqlite || turn.take().await.map_err(trouble)?;
        Ok(is_free.then_some(turn))
    }
}

impl ServerTurn {
    async fn take(&mut self) -> sqlx::Result<bool> {
        let mut connection = self.store.pool.connect_options().connect().await?;
        sqlx::raw_sql(StoreEngine::Postgres.session_pragmas()).execute(&mut connection).await?;
        let taken: i64 = sqlx::query_scalar(TAKE).fetch_one(&mut connection).await?;
        self.connection = (taken == 1).then_some(connection);
        Ok(taken == 1)
    }

    /// Holds it, also across an outage of the database; returns when another server has it.
    pub async fn lost(mut self) {
        if self.store.engine == StoreEngine::Sqlite {
            return std::future::pending().await;
        }
        let mut refused = 0;
        while refused < LOOKS {
            tokio::time::sleep(EVERY).await;
            if let Some(connection) = &mut self.connection
                && connection.ping().await.is_ok()
            {
                refused = 0;
                continue;
            }
            self.connection = None;
            // A missing answer is not a refusal: the database will return.
            refused += usize::from(matches!(self.take().await, Ok(false)));
        }
    }
}
