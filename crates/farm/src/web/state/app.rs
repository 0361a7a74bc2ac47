//! State shared by all requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::changes::NotedChanges;
use crate::objects::{BundleCache, BundleLease};
use crate::records::FarmRun;
use crate::refused::{RefusedBundle, RefusedFolders};
use crate::store::{AuditEntry, FarmStore, FoundChange};
use crate::users::{PasswordCost, PasswordMemory, digest_password};
use crate::wall_clock::now_ns;
use crate::web::edge::answer::Refusal;
use crate::web::edge::answer_budget::AnswerBudget;
use crate::web::edge::counters::FarmCounters;
use crate::web::edge::tls::ServerCertificate;
use crate::web::edge::visitor::AccessPolicy;
use crate::web::state::attempts::LimitedAttempts;
use crate::web::state::found_changes::FoundChanges;
use crate::web::state::intake::Intake;
use crate::web::state::known_verdicts::KnownVerdicts;
use crate::web::state::made_reports::MadeReports;
use crate::web::state::refusals::BoardRefusals;

/// Limit of simultaneous reports and comparisons: each may read hundreds of megabytes.
const AT_ONCE: usize = 2;
/// Limit of simultaneous downloads: each has a thread and half a megabyte.
const FILES_AT_ONCE: usize = 8;
/// Limit of refused folders with a stored reason.
const MOST_REFUSED: usize = 1_000;
/// Limit of passwords that wait to be checked, one after the other: each takes 19 MiB.
const PASSWORDS_WAITING: usize = 32;

/// Exposure of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarmExposure {
    /// Reachable from this machine only, and not by another name that a foreign page uses.
    Loopback,
    /// Reachable through a proxy.
    BehindProxy,
    /// Reachable over its own TLS: a foreign name has no certificate here.
    Encrypted,
}

/// State shared by all requests.
pub struct App {
    pub store: FarmStore,
    pub exposure: FarmExposure,
    pub policy: AccessPolicy,
    /// Attempts to log in.
    pub attempts: LimitedAttempts,
    /// Requests with an unknown token.
    pub unknown_tokens: LimitedAttempts,
    pub refusals: BoardRefusals,
    pub changes: FoundChanges,
    pub reports: MadeReports,
    pub verdicts: KnownVerdicts,
    /// `None` without a store.
    pub intake: Option<Intake>,
    refused: Mutex<RefusedFolders>,
    pub requests: AtomicU64,
    pub failures: AtomicU64,
    pub counters: Arc<FarmCounters>,
    heavy: Arc<Semaphore>,
    /// Budget of responses that are generated or wait for their client.
    pub budget: AnswerBudget,
    /// Permits for downloads.
    pub handed_out: Arc<Semaphore>,
    /// Cache of bundles in a bucket.
    pub cache: Option<Arc<BundleCache>>,
    /// `None` if the farm itself does no TLS.
    certificate: Option<Arc<ServerCertificate>>,
    passwords: Arc<Semaphore>,
    password_memory: Arc<Mutex<PasswordMemory>>,
}

impl App {
    pub fn new(store: FarmStore, exposure: FarmExposure, intake: Option<Intake>) -> App {
        App {
            store,
            exposure,
            policy: AccessPolicy::default(),
            attempts: LimitedAttempts::default(),
            unknown_tokens: LimitedAttempts::of_tokens(),
            refusals: BoardRefusals::default(),
            changes: FoundChanges::default(),
            reports: MadeReports::default(),
            verdicts: KnownVerdicts::default(),
            intake,
            refused: Mutex::default(),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            counters: Arc::default(),
            heavy: Arc::new(Semaphore::new(AT_ONCE)),
            budget: AnswerBudget::default(),
            cache: None,
            certificate: None,
            handed_out: Arc::new(Semaphore::new(FILES_AT_ONCE)),
            passwords: Arc::new(Semaphore::new(PASSWORDS_WAITING)),
            password_memory: Arc::default(),
        }
    }

    /// Sets the policy on readers.
    pub fn with_policy(mut self, policy: AccessPolicy) -> App {
        self.policy = policy;
        self
    }

    /// Sets the cache of a bucket.
    pub fn with_cache(mut self, cache: Option<Arc<BundleCache>>) -> App {
        self.cache = cache;
        self
    }

    /// Sets the server's certificate.
    pub fn with_certificate(mut self, certificate: Option<Arc<ServerCertificate>>) -> App {
        self.certificate = certificate;
        self
    }

    /// True if the farm itself does TLS.
    pub fn has_certificate(&self) -> bool {
        self.certificate.is_some()
    }

    /// Expiry of the certificate, in seconds since 1970.
    pub fn certificate_ends(&self) -> Option<i64> {
        self.certificate.as_ref().and_then(|certificate| certificate.ends())
    }

    /// Readable bundle of a run, until the lease is dropped. All reads of bundles use this.
    pub async fn bundle(&self, run: &FarmRun) -> Result<BundleLease, Refusal> {
        let place = Path::new(&run.place);
        let Some(cache) = &self.cache else { return Ok(BundleLease::of_folder(place)) };
        // `None` if another state has replaced it since the request began.
        let digest = self.store.run_digest_at(&run.id, &run.place).await?;
        Ok(cache.open(place, digest.as_deref()).await?)
    }

    /// Reason for which the bucket does not answer; `None` if it does, or without a bucket.
    pub fn bucket_trouble(&self) -> Option<String> {
        self.cache.as_ref().and_then(|cache| cache.bucket.trouble().borrow().clone())
    }

    /// True if browsers use TLS: everywhere except on this machine.
    pub fn is_secure(&self) -> bool {
        self.exposure != FarmExposure::Loopback
    }

    /// The changes that were found before; none at a farm that keeps nothing.
    pub async fn found_changes(&self) -> model::error::Result<NotedChanges<FoundChange>> {
        match &self.intake {
            Some(_) => self.store.found_changes().await,
            None => Ok(NotedChanges::from_iter([])),
        }
    }

    /// Adds an entry to the audit log.
    pub async fn note(&self, who: &str, what: &str) -> Result<(), Refusal> {
        let entry = AuditEntry { t_ns: now_ns().0, who: who.to_owned(), what: what.to_owned() };
        Ok(self.store.note(&entry).await?)
    }

    /// True if a password matches a digest; without a digest it takes as long and is false.
    pub async fn is_password(&self, password: String, digest: Option<String>) -> Result<bool, Refusal> {
        let busy =
            || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many simultaneous logins: try again");
        // It continues if the client has gone, and counts until it is done.
        let place = self.passwords.clone().try_acquire_owned().map_err(|_| busy())?;
        let memory = self.password_memory.clone();
        let compare = move || {
            let _place = place;
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            // Computed once, before the first comparison of either kind.
            let nobodys = nobodys_digest();
            let is_known = digest.is_some();
            let is_same = memory.is_password(&password, digest.as_deref().unwrap_or(nobodys));
            is_known && is_same
        };
        tokio::task::spawn_blocking(compare).await.map_err(|_| busy())
    }

    /// Folders that could not be read completely.
    pub fn refused(&self) -> RefusedFolders {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces that list.
    pub fn set_refused(&self, all: Vec<RefusedBundle>) {
        let all = RefusedFolders::of(all, MOST_REFUSED);
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Runs long work, or work that may panic on a bundle, outside of the request's task.
    pub async fn heavy<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let Ok(turn) = self.heavy.clone().acquire_owned().await else {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the farm is shutting down: try again",
            ));
        };
        // It continues if the client has gone, and holds its permit until it is done.
        let guarded = move || {
            let _turn = turn;
            catch_unwind(AssertUnwindSafe(work))
        };
        match tokio::task::spawn_blocking(guarded).await {
            Ok(Ok(outcome)) => outcome,
            _ => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                Err(Refusal::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "a parser failed on the contents of this bundle: report this, with the bundle",
                ))
            }
        }
    }
}

/// A digest of the usual cost that no password has.
fn nobodys_digest() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| digest_password("", &[0; 16], PasswordCost::Usual).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn what_goes_on_after_its_request_ended_keeps_its_turn() {
        let store = FarmStore::in_memory().await.unwrap();
        let app = Arc::new(App::new(store, FarmExposure::Loopback, None));
        let (begun, has_begun) = mpsc::channel();
        let (end, to_end) = mpsc::channel::<()>();
        let asked = app.clone();
        let work = move || {
            begun.send(()).unwrap();
            to_end.recv().unwrap();
            Ok(())
        };
        let request = tokio::spawn(async move { asked.heavy(work).await });
        while has_begun.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(app.heavy.available_permits(), AT_ONCE - 1);
        end.send(()).unwrap();
        let all = app.heavy.acquire_many(AT_ONCE as u32).await;
        assert!(all.is_ok());
    }
}
