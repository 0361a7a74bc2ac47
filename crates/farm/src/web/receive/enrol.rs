//! Enrolment: a board exchanges a code for a token; wrong codes are limited.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::ingest::board_key::board_of;
use crate::ingest::environment::hex;
use crate::store::EnrolOutcome;
use crate::wall_clock::now;
use crate::web::edge::answer::Refusal;
use crate::web::login::counted_as;
use crate::web::login::sender::{TOKEN, digest_of, intake, random};
use crate::web::receive::{Received, with};
use crate::web::state::app::App;

#[derive(Deserialize)]
struct EnrolRequest {
    code: String,
    name: String,
    /// 64 hexadecimal digits that only the board knows; `""` without a secret.
    #[serde(default)]
    secret: String,
}

impl EnrolRequest {
    /// The token; with a secret it is the same each time, so that a board whose answer was lost can
    /// repeat the request.
    fn token(&self) -> Result<String, Refusal> {
        let secret = self.secret.as_bytes();
        let made = match secret.len() {
            0 => random()?.to_vec(),
            64 if secret.iter().all(u8::is_ascii_hexdigit) => {
                Sha256::digest(format!("onbeat token\0{}\0{}", self.code.trim(), self.secret)).to_vec()
            }
            _ => return Err(Refusal::bad("invalid secret: send 64 hexadecimal digits, or omit it")),
        };
        Ok(format!("{TOKEN}{}", hex(&made)))
    }
}

pub async fn enrol(
    State(app): State<Arc<App>>,
    address: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Received {
    let codes = &intake(&app)?.codes;
    let asked: EnrolRequest = serde_json::from_slice(&body)
        .map_err(|_| Refusal::bad("invalid enrolment: send {\"code\":\"..\",\"name\":\"..\"}"))?;
    if asked.name.trim().is_empty() {
        return Err(Refusal::bad("the board has no name: send one"));
    }
    let (key, name) = board_of(asked.name.trim());
    let token = asked.token()?;
    let code = digest_of(asked.code.trim());
    let from = [counted_as(&app, address.as_deref(), &headers)];
    let taken = codes.take(&from, host::clock::monotonic());
    taken.map_err(|wait_s| Refusal::too_often("too many wrong codes from this address", wait_s))?;
    let outcome = app.store.enrol(&code, now(), &key, &name, &digest_of(&token)).await;
    // Only a wrong code counts: neither a valid one nor an unreachable store is a guess.
    if !matches!(outcome, Ok(EnrolOutcome::BadCode)) {
        codes.give_back(&from);
    }
    match outcome? {
        EnrolOutcome::Enrolled => with(StatusCode::CREATED, &json!({ "board": key, "token": token })),
        EnrolOutcome::NameTaken => Err(conflict(format!(
            "a board has this name: choose another; or, if it is this board, have its token revoked, if any \
             (onbeat-farm enrol --revoke {key}), and a code created for it (onbeat-farm enrol --name {key}); \
             this code stays valid"
        ))),
        EnrolOutcome::HasToken => Err(conflict(format!(
            "{key} has a token: have it revoked first (onbeat-farm enrol --revoke {key}); the code stays \
             valid"
        ))),
        EnrolOutcome::OtherBoard(other) => Err(conflict(format!(
            "the code was created for {other}: enrol under that name (onbeat-push enrol --name {other}), or \
             have one created for this board; the code stays valid"
        ))),
        EnrolOutcome::BadCode => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the code is mistyped, used or expired: check it, or have a new one created",
        )),
    }
}

fn conflict(detail: String) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, detail)
}
