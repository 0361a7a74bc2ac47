//! Reports changes to an address of the administrator: a signed request for each, until it is
//! accepted.
//!
//! The signature follows the Standard Webhooks specification (standard-webhooks/webhooks, "spec"),
//! so that its libraries verify it: HMAC-SHA256 of id, time and body with a shared secret.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use host::is_this_machine;
use model::error::{Failure, Result};
use model::text::quoted_value;
use model::units::Nanos;
use model::wall_time::wall_time;
use serde_json::json;
use sha2::Sha256;
use ureq::Agent;
use ureq::http::Uri;

use crate::changes::{ChangeIdentity, FarmChange};
use crate::store::{ChangeNotice, FarmStore, WaitingNotice};
use crate::wall_clock::now;
use crate::web::changes::note_found;
use crate::web::edge::counters::add;
use crate::web::state::app::App;

/// Interval of the search for changes and of retries.
const EVERY: Duration = Duration::from_secs(60);
/// Limits of waiting changes, of changes per search, and of attempts for each: about fifteen hours.
const MOST_WAITING: u64 = 1_000;
const AT_ONCE: i64 = 50;
const TRIES: u64 = 12;
/// The first wait after a failure; it doubles up to the longest.
const FIRST_WAIT: i64 = 30;
const LONGEST_WAIT: i64 = 6 * 3_600;
const TIMEOUT: Duration = Duration::from_secs(20);
/// Limit of the bytes read of a response.
const ANSWER_LIMIT: u64 = 64 << 10;
/// Status of a receiver that wants no further requests (RFC 9110, section 15.5.11).
const GONE: u16 = 410;
const SECRET: &str = "whsec_";
const LEAST_SECRET: usize = 24;

/// Address for notifications, with the secret of their signature.
#[derive(Clone)]
pub struct Webhook {
    agent: Agent,
    url: String,
    secret: Vec<u8>,
}

impl Webhook {
    /// An address with https, or of this machine; a secret in the form `whsec_` and base64.
    pub fn new(url: &str, secret: &str) -> Result<Webhook> {
        let wrong = |why: &str| Failure::usage(format!("--webhook: {} {why}", quoted_value(url)));
        let uri: Uri =
            url.parse().map_err(|_| wrong("is not an address: write https, its name and its path"))?;
        let host = uri.host().ok_or_else(|| wrong("has no host name: write it after https"))?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("contains a user: remove it, the signature identifies the sender"));
        }
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if is_this_machine(host) => false,
            _ => return Err(wrong("would send changes unencrypted: write https")),
        };
        let encoded = secret.trim().strip_prefix(SECRET).and_then(|text| STANDARD.decode(text).ok());
        let secret = encoded.filter(|secret| secret.len() >= LEAST_SECRET).ok_or_else(|| {
            Failure::usage(format!(
                "--webhook-secret: the file holds no secret: write {SECRET} and at least {LEAST_SECRET} \
                 bytes in base64, for example from `openssl rand -base64 32`"
            ))
        })?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Where it leads is not what the administrator named.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .https_only(is_encrypted)
            .user_agent(concat!("onbeat-farm/", env!("CARGO_PKG_VERSION")))
            .timeout_global(Some(TIMEOUT));
        let config = if is_encrypted { config } else { config.proxy(None) };
        Ok(Webhook { agent: Agent::new_with_config(config.build()), url: url.to_owned(), secret })
    }

    /// Sends a document; the error is the reason for which it was not accepted.
    fn send(&self, id: &str, now: i64, document: &str) -> std::result::Result<(), WebhookFault> {
        let request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", self.signature(id, now, document));
        let mut answer = request.send(document).map_err(|_| WebhookFault::Unreachable)?;
        let status = answer.status().as_u16();
        // Read, so that the connection can be used again.
        let _ = answer.body_mut().with_config().limit(ANSWER_LIMIT).read_to_vec();
        match status {
            200..=299 => Ok(()),
            GONE => Err(WebhookFault::Gone),
            _ => Err(WebhookFault::Refused),
        }
    }

    fn signature(&self, id: &str, now: i64, document: &str) -> String {
        // A key of any length is one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return String::new() };
        mac.update(format!("{id}.{now}.{document}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// Reason for which a document was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WebhookFault {
    /// No answer: other notifications would not arrive, either.
    Unreachable,
    Refused,
    Gone,
}

/// Reports changes while the server runs.
pub async fn keep_telling(app: Arc<App>, hook: Webhook) {
    loop {
        // A failure is the store's and is retried; pages show it.
        if let Ok(boards) = app.store.boards().await
            && let Ok(all) = app.changes.all(&app.store, &boards).await
        {
            let _ = note(&app, &all, now()).await;
        }
        let _ = deliver(&app, &hook, now()).await;
        tokio::time::sleep(EVERY).await;
    }
}

/// Notes changes that are new.
async fn note(app: &App, all: &[FarmChange], now: i64) -> Result<()> {
    note_found(app, all, now).await?;
    // The oldest first: they are reported in order.
    let notices: Vec<ChangeNotice> = all.iter().rev().map(|change| notice(change, now)).collect();
    let noted = app.store.note_changes(&notices, now, MOST_WAITING).await?;
    add(&app.counters.webhook_given_up, noted.given_up);
    Ok(())
}

fn notice(change: &FarmChange, now: i64) -> ChangeNotice {
    let identity = ChangeIdentity::of(change);
    let document = json!({
        "schema": "onbeat.farm-change/1", "type": "change", "id": identity.id(),
        "timestamp": wall_time(Nanos(now.saturating_mul(Nanos::SECOND.0))),
        "worse": change.kind.is_bad(), "data": change,
    });
    ChangeNotice { identity, document: document.to_string() }
}

/// Sends what is due.
async fn deliver(app: &App, hook: &Webhook, now: i64) -> Result<()> {
    for notice in app.store.due_notices(now, AT_ONCE).await? {
        let (sender, sent) = (hook.clone(), notice.clone());
        let answer = tokio::task::spawn_blocking(move || sender.send(&sent.id, now, &sent.document)).await;
        let outcome = answer.unwrap_or(Err(WebhookFault::Refused));
        match outcome {
            Ok(()) => {
                app.store.notice_told(&notice).await?;
                add(&app.counters.webhook_sent, 1);
            }
            Err(fault) => failed(app, &app.store, &notice, fault, now).await?,
        }
        if outcome == Err(WebhookFault::Unreachable) {
            break;
        }
    }
    app.counters.webhook_pending.store(app.store.waiting_notices().await?, Ordering::Relaxed);
    Ok(())
}

async fn failed(
    app: &App,
    store: &FarmStore,
    notice: &WaitingNotice,
    fault: WebhookFault,
    now: i64,
) -> Result<()> {
    add(&app.counters.webhook_failures, 1);
    let again = (fault != WebhookFault::Gone && notice.tries + 1 < TRIES).then(|| now + wait(notice.tries));
    if again.is_none() {
        add(&app.counters.webhook_given_up, 1);
    }
    store.notice_failed(notice, again).await
}

/// Wait after a number of attempts, half of it random, so that simultaneous failures are not
/// retried together.
fn wait(tries: u64) -> i64 {
    let doubled = FIRST_WAIT << tries.min(20);
    let most = doubled.min(LONGEST_WAIT);
    most / 2 + i64::try_from(host::random_u64() % (most as u64 / 2)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
