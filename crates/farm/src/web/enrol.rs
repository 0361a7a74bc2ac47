//! How a board gets its token: by a code, and how often one may be wrong.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::answer::Refusal;
use super::app::App;
use super::attempts::LoginAttempts;
use super::login::counted_as;
use super::receive::{Received, with};
use super::sender::{TOKEN, digest_of, intake, now, random};
use crate::ingest::environment::hex;
use crate::ingest::find::board_key;
use crate::store::EnrolOutcome;

/// Wrong codes of an hour, of all addresses together, from which on each request waits. A code has
/// 128 bits, so that none is guessed: this is for the store, and keeps no board out.
const MOST_AT_ONCE: u64 = 3_600;
const WAITS: Duration = Duration::from_secs(1);

/// Wrong codes: so many of an address as wrong passwords, and how many there are in all.
#[derive(Debug, Default)]
pub struct WrongCodes {
    by_address: LoginAttempts,
    /// Of which hour, and how many.
    all: Mutex<(i64, u64)>,
}

impl WrongCodes {
    /// Takes an attempt of an address, and waits where the farm is flooded; what to give back where
    /// the code was right.
    async fn admit(&self, from: String) -> Result<[String; 1], Refusal> {
        let keys = [from];
        let taken = self.by_address.take(&keys, host::clock::monotonic());
        taken.map_err(|wait_s| Refusal::too_often("too many wrong codes from this address", wait_s))?;
        if self.is_flooded(now()) {
            tokio::time::sleep(WAITS).await;
        }
        Ok(keys)
    }

    fn give_back(&self, keys: [String; 1]) {
        self.by_address.give_back(&keys);
    }

    fn count(&self, now: i64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let hour = now.div_euclid(3_600);
        *all = if all.0 == hour { (hour, all.1.saturating_add(1)) } else { (hour, 1) };
    }

    fn is_flooded(&self, now: i64) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 == now.div_euclid(3_600) && all.1 >= MOST_AT_ONCE
    }
}

#[derive(Deserialize)]
struct EnrolRequest {
    code: String,
    name: String,
}

pub async fn enrol(
    State(app): State<Arc<App>>,
    address: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let codes = &intake(&app)?.codes;
    let asked: EnrolRequest = serde_json::from_slice(&body)
        .map_err(|_| Refusal::bad("no enrolment: send {\"code\":\"..\",\"name\":\"..\"}"))?;
    let name: String = model::text::clean(asked.name.trim()).chars().take(64).collect();
    if name.is_empty() {
        return Err(Refusal::bad("the board has no name: send one"));
    }
    let (token, key) = (format!("{TOKEN}{}", hex(&random()?)), board_key(&name));
    let code = digest_of(asked.code.trim());
    let from = codes.admit(counted_as(&app, address, &headers)).await?;
    let outcome = app.store.enrol(&code, now(), &key, &name, &digest_of(&token)).await;
    match outcome {
        Ok(EnrolOutcome::BadCode) => codes.count(now()),
        // Who has a good code guesses none, and a store that is away says nothing of a code.
        _ => codes.give_back(from),
    }
    match outcome? {
        EnrolOutcome::Enrolled => with(StatusCode::CREATED, &json!({ "board": key, "token": token })),
        EnrolOutcome::NameTaken => Err(conflict(format!(
            "a board of this name is there: choose another, or where it is this board have its token \
             revoked, if it has one (onbeat-farm enrol --revoke {key}), then a code made for it (onbeat-farm \
             enrol --name {key}); this code stays good"
        ))),
        EnrolOutcome::HasToken => Err(conflict(format!(
            "{key} has a token: have it revoked first (onbeat-farm enrol --revoke {key}); the code stays good"
        ))),
        EnrolOutcome::OtherBoard(other) => Err(conflict(format!(
            "the code was made for {other}: enrol under that name (onbeat-push enrol --name {other}), or \
             have one made for this board; the code stays good"
        ))),
        EnrolOutcome::BadCode => {
            Err(Refusal::new(StatusCode::FORBIDDEN, "the code is used up or too old: have a new one made"))
        }
    }
}

fn conflict(detail: String) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_flood_of_wrong_codes_slows_and_for_its_hour() {
        let codes = WrongCodes::default();
        for _ in 1..MOST_AT_ONCE {
            codes.count(7_200);
        }
        assert!(!codes.is_flooded(7_201));
        codes.count(10_799);
        assert!(codes.is_flooded(10_799) && !codes.is_flooded(10_800));
        codes.count(10_800);
        assert!(!codes.is_flooded(10_800));
    }
}
