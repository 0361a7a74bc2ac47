//! The store: all SQL is in this folder, one text for SQLite and PostgreSQL.
//!
//! Common to both engines: `$1`, `on conflict`, bigint, text, blob; [`engine`] has the differences.
//! Histograms are added up here and never in SQL.

mod audit;
mod boards;
#[cfg(any(test, feature = "fixture"))]
mod bulk;
mod changes;
mod engine;
mod faults;
mod file;
mod hist;
mod large_sums;
mod many;
mod only_server;
mod open;
mod own_folder;
mod rows;
mod runs;
mod tokens;
mod users;

pub use audit::AuditEntry;
pub use boards::overview::BoardBytes;
#[cfg(any(test, feature = "fixture"))]
pub use bulk::{BulkRows, StoreTotals};
pub use changes::acknowledged::AcknowledgedChange;
pub use changes::change_marks::ChangeMarks;
pub use changes::culprit_days::CulpritDaysFrom;
pub use changes::notifications::{ChangeNotice, FoundChange, NoticesNoted, WaitingNotice};
pub use engine::StoreEngine;
pub use faults::upkeep::{BundlePlace, ShownNumbers};
pub use hist::tiers::TimeStretch;
pub use only_server::ServerTurn;
pub use rows::RowsStored;
pub use rows::row_times::{BoardClock, RowBatch};
pub use rows::slot_parts::{AfterSlot, AskedSlots};
pub use runs::counted::CountedSeconds;
pub use runs::earlier::PutOutcome;
pub use runs::forget_run::{RemovedRun, RunRemoval};
pub use runs::labels::BoardLabel;
pub use runs::pins::RunPin;
pub use runs::retention::{BegunThinning, KeptBundle, ThinnedPart};
pub use runs::uploads::SentBundle;
pub use tokens::{EnrolOutcome, TokenOwner};

use model::error::Failure;
use model::units::Nanos;
use own_folder::OwnFolder;
use sqlx::AnyPool;

/// The database.
#[derive(Clone)]
pub struct FarmStore {
    pool: AnyPool,
    engine: StoreEngine,
    folder: OwnFolder,
}

impl FarmStore {
    /// Engine of the database.
    pub fn engine(&self) -> StoreEngine {
        self.engine
    }

    /// True if the store answers.
    pub async fn answers(&self) -> bool {
        sqlx::query_scalar::<_, i64>("select 1").fetch_one(&self.pool).await.is_ok()
    }

    /// Closes all connections. SQLite's log is then merged into the store's file.
    pub async fn close(&self) {
        if self.engine == StoreEngine::Sqlite {
            // The last connection merges it as well, if nothing prevents that.
            let _ = sqlx::query("pragma wal_checkpoint(truncate)").execute(&self.pool).await;
        }
        self.pool.close().await;
    }
}

/// A failed statement, for people.
fn trouble(error: sqlx::Error) -> Failure {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut, Tls, WorkerCrashed};
    let code = error.as_database_error().and_then(|told| told.code()).unwrap_or_default();
    // A database that queries others passes on their messages, which may have several lines.
    let said = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let is_away = matches!(error, Io(_) | PoolClosed | PoolTimedOut | Tls(_) | WorkerCrashed);
    if code == "22021" {
        // PostgreSQL's character_not_in_repertoire: its texts have no NUL, nor has a name here.
        return Failure::usage("a text contains a NUL character: remove it");
    }
    let broken = error.as_database_error();
    if broken.is_some_and(|of| of.is_check_violation() || of.is_foreign_key_violation()) {
        return Failure::internal(format!(
            "the store refuses contradictory rows ({said}): report this, with the data that was stored"
        ));
    }
    // PostgreSQL's undefined_table and undefined_column; SQLite has no separate codes for them.
    let lacks = ["no such table", "no such column"];
    if ["42P01", "42703"].contains(&&*code) || lacks.iter().any(|words| said.contains(words)) {
        return Failure::internal(format!("the store is incomplete ({said}): restore a backup"));
    }
    // Classes of PostgreSQL's error codes: insufficient resources; connection, a lock that is not
    // given, operator intervention.
    Failure::internal(match code.get(..2) {
        Some("53") => format!("the store has no space or connections left ({said}): give its database more"),
        Some("08" | "55" | "57") => away(&said),
        _ if is_away => away(&said),
        _ => format!("the store failed ({said}): check its disk, and try again"),
    })
}

fn away(said: &str) -> String {
    format!("the store does not answer ({said}): check that its database runs; acknowledged data is not lost")
}

/// A text that both engines accept: PostgreSQL's contain no NUL.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
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
pub mod engines;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;
