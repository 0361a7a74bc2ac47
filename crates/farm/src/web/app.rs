//! What all requests share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use super::answer::Refusal;
use super::counters::FarmCounters;
use super::found_changes::FoundChanges;
use super::intake::Intake;
use crate::pages::fleet::RefusedBundle;
use crate::store::FarmStore;

/// Reports and comparisons that are made at the same time: each may read hundreds of megabytes.
const AT_ONCE: usize = 2;
/// Folders that are remembered as refused.
const MOST_REFUSED: usize = 1_000;

/// Who can reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmExposure {
    /// This machine alone: a page elsewhere must not reach it by a name of its own either.
    Loopback,
    /// Whoever a proxy lets through.
    BehindProxy,
    /// Whoever reaches it, over its own TLS: a foreign name has no certificate here.
    Encrypted,
}

/// What all requests share.
pub struct App {
    pub store: FarmStore,
    pub exposure: FarmExposure,
    pub changes: FoundChanges,
    /// None where nothing is kept.
    pub intake: Option<Intake>,
    refused: Mutex<Vec<RefusedBundle>>,
    pub requests: AtomicU64,
    pub failures: AtomicU64,
    pub counters: Arc<FarmCounters>,
    heavy: Semaphore,
}

impl App {
    pub fn new(store: FarmStore, exposure: FarmExposure, intake: Option<Intake>) -> App {
        App {
            store,
            exposure,
            changes: FoundChanges::default(),
            intake,
            refused: Mutex::default(),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            counters: Arc::default(),
            heavy: Semaphore::new(AT_ONCE),
        }
    }

    /// What could not be taken in.
    pub fn refused(&self) -> Vec<RefusedBundle> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces that list.
    pub fn set_refused(&self, mut all: Vec<RefusedBundle>) {
        all.truncate(MOST_REFUSED);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Does what takes long, or may panic on what a bundle holds, beside the other requests.
    pub async fn heavy<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(_turn) = self.heavy.acquire().await else {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the farm is about to end: try again"));
        };
        let guarded = move || catch_unwind(AssertUnwindSafe(work));
        match tokio::task::spawn_blocking(guarded).await {
            Ok(Ok(outcome)) => outcome,
            _ => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                Err(Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "a parser failed on what this bundle holds: report this, with the bundle",
                ))
            }
        }
    }
}
