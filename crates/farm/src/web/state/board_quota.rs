//! Quota of a board: its runs, its rows and its environments together.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use model::units::Nanos;

use crate::store::{FarmStore, TokenOwner};
use crate::web::edge::answer::Refusal;

/// Part of the quota that is accepted before the store is measured again.
const UNMEASURED: u64 = 16;
/// Time after which a board over its quota is measured again.
const AGAIN: Nanos = Nanos(60 * Nanos::SECOND.0);

/// The quota of each board, and how much of it is used.
#[derive(Debug)]
pub struct BoardQuota {
    pub bytes: u64,
    of: Mutex<BTreeMap<i64, UsedQuota>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct UsedQuota {
    /// Bytes in the store, and the time of that measurement.
    measured: Option<(u64, Nanos)>,
    /// Bytes received since then, or since the start of the server.
    added: u64,
}

impl BoardQuota {
    pub fn of(bytes: u64) -> BoardQuota {
        BoardQuota { bytes, of: Mutex::default() }
    }

    /// Counts bytes of rows or of an environment from a board; refuses them over its quota.
    pub async fn take(&self, store: &FarmStore, owner: &TokenOwner, bytes: u64) -> Result<(), Refusal> {
        let used = {
            let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
            let used = all.entry(owner.board_id).or_default();
            used.added = used.added.saturating_add(bytes);
            *used
        };
        let now = host::clock::monotonic();
        let is_unknown = used.added > self.bytes / UNMEASURED
            || used.measured.is_some_and(|(known, at)| {
                known.saturating_add(used.added) > self.bytes && now.0 - at.0 > AGAIN.0
            });
        let used = if is_unknown { self.measure(store, owner, now, bytes).await? } else { used };
        let known = used.measured.map_or(0, |(known, _)| known);
        if known.saturating_add(used.added) > self.bytes { Err(self.full(known)) } else { Ok(()) }
    }

    /// Refuses a run that would exceed the quota; an earlier state with its id is replaced.
    pub async fn admit_run(
        &self,
        store: &FarmStore,
        owner: &TokenOwner,
        id: &str,
        bytes: u64,
    ) -> Result<(), Refusal> {
        let of_runs = store.kept_bytes(owner.board_id, id).await?;
        let known = of_runs.saturating_add(store.stored_bytes(&owner.board).await?.all());
        if known.saturating_add(bytes) <= self.bytes {
            return Ok(());
        }
        // The same bundle is refused again: the board has to prune first.
        Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, ..self.full(known) })
    }

    async fn measure(
        &self,
        store: &FarmStore,
        owner: &TokenOwner,
        now: Nanos,
        bytes: u64,
    ) -> Result<UsedQuota, Refusal> {
        let of_runs = store.kept_bytes(owner.board_id, "").await?;
        let known = of_runs.saturating_add(store.stored_bytes(&owner.board).await?.all());
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let used = UsedQuota { measured: Some((known, now)), added: bytes };
        all.insert(owner.board_id, used);
        Ok(used)
    }

    fn full(&self, known: u64) -> Refusal {
        let detail = format!(
            "this board's runs, rows and environments use {known} of {} bytes: prune some, or serve with a \
             larger --board-quota",
            self.bytes
        );
        Refusal::new(StatusCode::INSUFFICIENT_STORAGE, detail)
    }
}
