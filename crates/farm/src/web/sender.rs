//! Who sends: a board by its token, and what it sends unpacked within limits.

use std::io::Read;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::answer::Refusal;
use super::app::App;
use super::clones::MOST_BOOTS;
use super::intake::Intake;
use super::refusals::BoardDropped;
pub use super::wall_clock::{now, now_ns};
use crate::store::{BoardClock, TokenOwner};

/// What a token begins with.
pub const TOKEN: &str = "obt_";

/// The digest under which a secret is kept: it is random, so that no slow one is needed.
pub fn digest_of(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

/// The part of the farm that boards send to.
pub fn intake(app: &App) -> Result<&Intake, Refusal> {
    app.intake.as_ref().ok_or_else(|| {
        Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "this farm keeps nothing: start it with --store sqlite:PATH to have boards send to it",
        )
    })
}

/// A board that is known by its token: asked before the content is read.
pub struct BoardSender(pub TokenOwner);

impl FromRequestParts<Arc<App>> for BoardSender {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<BoardSender, Refusal> {
        // The route's row asked for it.
        parts.extensions.get().cloned().map(BoardSender).ok_or_else(unknown)
    }
}

fn unknown() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "the token is none of this farm's: enrol the board again")
}

/// The board whose token a request has, where it may send now.
pub async fn admit_board(app: &App, headers: &HeaderMap) -> Result<TokenOwner, Refusal> {
    let intake = intake(app)?;
    let owner = board_of(app, headers).await?;
    let refused = |refusal: Refusal| {
        app.refusals.note(&owner, now(), String::new(), &refusal.detail);
        refusal
    };
    let taken = intake.rates.take(owner.board_id, host::clock::monotonic());
    taken.map_err(|wait_s| refused(Refusal::too_often("this board asks too often", wait_s)))?;
    if let Some(dropped) = dropped_of(headers) {
        app.refusals.note_dropped(&owner, now(), dropped);
    }
    // A board that leaves none out does not say so.
    let left_out = headers.get("onbeat-left-out").and_then(|value| value.to_str().ok()?.parse().ok());
    app.refusals.note_left_out(&owner, now(), left_out.unwrap_or(0));
    if let Some(clock) = clock_of(headers) {
        if !intake.boots.is_known(owner.board_id) {
            let before = app.store.boots_of(owner.board_id, MOST_BOOTS).await?;
            intake.boots.learn(owner.board_id, &before);
        }
        let one = intake.boots.is_one(owner.board_id, &clock.boot, host::clock::monotonic());
        if !one {
            let detail = format!(
                "two machines send with the token of {}: enrol this one with a code of its own",
                owner.board
            );
            return Err(refused(Refusal::new(StatusCode::FORBIDDEN, detail)));
        }
    }
    Ok(owner)
}

/// What was wrong with a request whose answer is no refusal of the usual form.
#[derive(Clone, Debug)]
pub struct SentFault(pub String);

/// Remembers what a board was refused; also what it is to send later, as on a full disk, so that
/// operators see it on the farm and need not look on each board.
pub fn note_refusal(app: &App, owner: &TokenOwner, what: String, response: &Response) {
    if !response.status().is_client_error() && response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return;
    }
    let refusal = response.extensions().get::<Refusal>().map(|refusal| refusal.detail.as_str());
    let fault = response.extensions().get::<SentFault>().map(|fault| fault.0.as_str());
    let detail =
        refusal.or(fault).unwrap_or_else(|| response.status().canonical_reason().unwrap_or_default());
    app.refusals.note(owner, now(), what, detail);
}

/// 256 bits that nobody can guess.
pub fn random() -> Result<[u8; 32], Refusal> {
    host::secret().map_err(|error| {
        let detail = format!("the kernel gives no random numbers ({error}): try again");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })
}

async fn board_of(app: &App, headers: &HeaderMap) -> Result<TokenOwner, Refusal> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token =
        bearer.and_then(|value| value.strip_prefix("Bearer ")).filter(|token| token.starts_with(TOKEN));
    let digest = digest_of(token.ok_or_else(unknown)?);
    if let Some(owner) = app.store.owner(&digest).await? {
        return Ok(owner);
    }
    // A board that goes on after its token ended is not seen anywhere else.
    if let Some(owner) = app.store.revoked_owner(&digest).await? {
        let detail = "its token was revoked, and it still sends: enrol it again, or stop its onbeat-push";
        app.refusals.note(&owner, now(), String::new(), detail);
    }
    Err(unknown())
}

/// What was sent, unpacked; refused where it is larger, or other than its digest says.
pub fn content(headers: &HeaderMap, body: &Bytes, limit: u64) -> Result<Vec<u8>, Refusal> {
    if let Some(named) = headers.get("content-digest").and_then(|value| value.to_str().ok()) {
        let encoded = named.strip_prefix("sha-256=:").and_then(|rest| rest.strip_suffix(':'));
        let is_same =
            encoded.and_then(|text| STANDARD.decode(text).ok()) == Some(Sha256::digest(body).to_vec());
        if !is_same {
            return Err(Refusal::bad("the content is not what its digest says: send it again"));
        }
    }
    let packed = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value == "gzip");
    let mut bytes = Vec::new();
    if packed {
        // A file of gzip may be several, one after the other (RFC 1952, 2.2).
        let read = MultiGzDecoder::new(&body[..]).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::bad(format!("the content is no gzip ({error}): send it again")))?;
    } else {
        bytes.extend_from_slice(body);
    }
    match bytes.len() as u64 > limit {
        true => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("more than {limit} bytes: send fewer at once"),
        )),
        false => Ok(bytes),
    }
}

/// What a board says that it dropped: `runs=..;rows=..`.
fn dropped_of(headers: &HeaderMap) -> Option<BoardDropped> {
    let (runs, rows) = headers.get("onbeat-dropped")?.to_str().ok()?.split_once(';')?;
    let number = |text: &str, name: &str| text.trim().strip_prefix(name)?.parse().ok();
    Some(BoardDropped { runs: number(runs, "runs=")?, rows: number(rows, "rows=")? })
}

/// The clocks that a board tells: `boot=..;mono=..;wall=..;asleep=..`, in ns; the last may be
/// missing.
pub fn clock_of(headers: &HeaderMap) -> Option<BoardClock> {
    let text = headers.get("onbeat-clock")?.to_str().ok()?;
    let field = |name: &str| {
        text.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    Some(BoardClock {
        boot: field("boot")?,
        mono_ns: field("mono")?.parse().ok()?,
        wall_ns: field("wall")?.parse().ok()?,
        asleep_ns: field("asleep").and_then(|text| text.parse().ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn zipped(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn a_bomb_is_cut_and_a_wrong_digest_refused() {
        let mut headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, "gzip".parse().unwrap())]);
        let bomb = zipped(&vec![0; 10 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(content(&headers, &bomb, 1 << 20).unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(content(&headers, &zipped(b"rows"), 9).unwrap(), b"rows");
        assert_eq!(
            content(&headers, &Bytes::from_static(b"rows"), 9).unwrap_err().status,
            StatusCode::BAD_REQUEST
        );
        headers.insert("content-digest", "sha-256=:AAAA:".parse().unwrap());
        assert!(content(&headers, &zipped(b"rows"), 9).is_err());
        let named = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(zipped(b"rows"))));
        headers.insert("content-digest", named.parse().unwrap());
        assert!(content(&headers, &zipped(b"rows"), 9).is_ok());
    }

    #[test]
    fn clocks_are_read_or_not_there() {
        let read = |text: &str| {
            clock_of(&HeaderMap::from_iter([(
                header::HeaderName::from_static("onbeat-clock"),
                text.parse().unwrap(),
            )]))
        };
        let clock = read("boot=b-1;mono=5; wall=7").unwrap();
        assert_eq!((clock.boot.as_str(), clock.mono_ns, clock.wall_ns), ("b-1", 5, 7));
        assert_eq!((clock.asleep_ns, read("boot=b;asleep=9;mono=5;wall=7").unwrap().asleep_ns), (0, 9));
        assert!(read("boot=b;mono=x;wall=7").is_none() && read("").is_none());
        let read = |text: &str| {
            let name = header::HeaderName::from_static("onbeat-dropped");
            dropped_of(&HeaderMap::from_iter([(name, text.parse().unwrap())]))
        };
        assert_eq!(read("runs=3;rows=17"), Some(BoardDropped { runs: 3, rows: 17 }));
        assert!(read("runs=3").is_none() && read("runs=-1;rows=1").is_none());
    }
}
