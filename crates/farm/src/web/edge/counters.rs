//! Counters of events other than requests.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::web::edge::refused_requests::RefusedRequests;

pub fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

pub fn of(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Counts since the server started; `webhook_pending` is the current number.
#[derive(Debug, Default)]
pub struct FarmCounters {
    /// Connections without a request, because their TLS handshake failed.
    pub tls_failures: AtomicU64,
    /// Renewed certificates that could not be used.
    pub certificate_failures: AtomicU64,
    pub webhook_sent: AtomicU64,
    /// Failed attempts; the change is sent again.
    pub webhook_failures: AtomicU64,
    /// Changes that were never reported, after all attempts or because too many were waiting.
    pub webhook_given_up: AtomicU64,
    pub webhook_pending: AtomicU64,
    /// Of boards.
    pub refused_requests: RefusedRequests,
}

impl FarmCounters {
    /// Name, help and value of each counter.
    pub fn counted(&self) -> [(&'static str, &'static str, u64); 5] {
        [
            ("onbeat_farm_tls_failures", "Connections without a handshake.", of(&self.tls_failures)),
            (
                "onbeat_farm_certificate_failures",
                "New certificates that could not be used.",
                of(&self.certificate_failures),
            ),
            ("onbeat_farm_webhook_sent", "Changes accepted by the webhook.", of(&self.webhook_sent)),
            (
                "onbeat_farm_webhook_failures",
                "Failed attempts to report a change.",
                of(&self.webhook_failures),
            ),
            ("onbeat_farm_webhook_given_up", "Changes that were never reported.", of(&self.webhook_given_up)),
        ]
    }
}
