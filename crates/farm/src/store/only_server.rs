//! One server at a time on a database: what it knows of its boards' requests is in its memory, and
//! the folder of bundles is one machine's. Rows would count once even with two.

use std::time::Duration;

use model::error::{Failure, Result};

use sqlx::{AnyConnection, ConnectOptions, Connection};

use super::engine::StoreEngine;
use super::{FarmStore, trouble};

/// The lock ends with its connection (PostgreSQL, "Advisory Locks").
const TAKE: &str = "select case when pg_try_advisory_lock(1869505125, \
                    hashtext(coalesce(current_schema()::text, ''))) then 1 else 0 end";
/// Between two looks.
const EVERY: Duration = Duration::from_secs(5);
/// The connection of a server that was killed is closed within moments,
const TRIES: usize = 20;
const SOON: Duration = Duration::from_millis(250);
/// one that the network swallowed within two minutes.
const LOOKS: usize = 36;

/// That this is the only server of a store.
pub struct ServerTurn {
    store: FarmStore,
    /// None for a store in a file: the lock beside it says the same.
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
        Err(Failure::not_permitted("the database has a server already: end that one first"))
    }

    /// The same where no server has it now, else none.
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

    /// Keeps it, also over an end of the database; comes back when another server has it.
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
            // No answer is no refusal: the database will be there again.
            refused += usize::from(matches!(self.take().await, Ok(false)));
        }
    }
}
