//! What is counted besides requests.

use std::sync::atomic::AtomicU64;

use super::count::of;
use super::refused_requests::RefusedRequests;

/// Counted since the server started; `pending` is what waits now.
#[derive(Debug, Default)]
pub struct FarmCounters {
    /// Connections that never came to a request, because they spoke no TLS or another one.
    pub tls_failures: AtomicU64,
    /// A certificate that was renewed and could not be used.
    pub certificate_failures: AtomicU64,
    pub webhook_sent: AtomicU64,
    /// Tries that failed; the change is sent again.
    pub webhook_failures: AtomicU64,
    /// Changes that were never told, after all tries or because too many waited.
    pub webhook_given_up: AtomicU64,
    pub webhook_pending: AtomicU64,
    /// Of boards.
    pub refused_requests: RefusedRequests,
}

impl FarmCounters {
    /// Name, help, value, of those that only grow.
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
