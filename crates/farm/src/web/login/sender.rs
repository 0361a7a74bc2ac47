//! Authentication of boards by token, and bounded decompression of their content.

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

use crate::store::{BoardClock, TokenOwner};
use crate::wall_clock::now;
use crate::web::edge::answer::Refusal;
use crate::web::state::app::App;
use crate::web::state::clones::MOST_BOOTS;
use crate::web::state::intake::Intake;
use crate::web::state::refusals::BoardDropped;

/// Prefix of a token.
pub const TOKEN: &str = "obt_";

/// Digest of a stored secret. The secret is random, so that no slow digest is needed.
pub fn digest_of(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

/// The part of the farm that boards send to.
pub fn intake(app: &App) -> Result<&Intake, Refusal> {
    app.intake.as_ref().ok_or_else(|| {
        Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "this farm has no store: start it with --store sqlite:PATH to let boards send to it",
        )
    })
}

/// Board identified by its token, before the content is read.
pub struct BoardSender(pub TokenOwner);

impl FromRequestParts<Arc<App>> for BoardSender {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<BoardSender, Refusal> {
        // The route's row asked for it.
        parts.extensions.get().cloned().map(BoardSender).ok_or_else(unknown)
    }
}

fn unknown() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "this farm does not know the token: enrol the board again")
}

/// Board of a request's token, if it may send now.
pub async fn admit_board(app: &App, headers: &HeaderMap) -> Result<TokenOwner, Refusal> {
    let intake = intake(app)?;
    let owner = board_of(app, headers).await?;
    let refused = |refusal: Refusal| {
        app.refusals.note(&owner, now(), String::new(), &refusal.detail);
        refusal
    };
    let taken = intake.rates.take(&[owner.board_id], host::clock::monotonic());
    taken.map_err(|wait_s| refused(Refusal::too_often("too many requests of this board", wait_s)))?;
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
                "two machines send with the token of {}: enrol this one with its own code",
                owner.board
            );
            return Err(refused(Refusal::new(StatusCode::FORBIDDEN, detail)));
        }
    }
    Ok(owner)
}

/// Reason for a response that is not a problem document.
#[derive(Clone, Debug)]
pub struct SentFault(pub String);

/// Notes a refused request of a board, also a temporary one, as with a full disk: operators then
/// see it on the farm.
pub fn note_refusal(app: &App, owner: &TokenOwner, what: String, response: &Response) {
    let is_no_room =
        |status| [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE].contains(&status);
    if !response.status().is_client_error() && !is_no_room(response.status()) {
        return;
    }
    let refusal = response.extensions().get::<Refusal>().map(|refusal| refusal.detail.as_str());
    let fault = response.extensions().get::<SentFault>().map(|fault| fault.0.as_str());
    let detail =
        refusal.or(fault).unwrap_or_else(|| response.status().canonical_reason().unwrap_or_default());
    app.refusals.note(owner, now(), what, detail);
}

/// 256 random bits.
pub fn random() -> Result<[u8; 32], Refusal> {
    host::secret().map_err(|error| {
        let detail = format!("cannot get random numbers from the kernel ({error}): try again");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })
}

async fn board_of(app: &App, headers: &HeaderMap) -> Result<TokenOwner, Refusal> {
    let digest = digest_of(token_of(headers).ok_or_else(unknown)?);
    if let Some(owner) = app.store.owner(&digest).await? {
        return Ok(owner);
    }
    // A board that still sends after its token was revoked is not visible anywhere else.
    if let Some(owner) = app.store.revoked_owner(&digest).await? {
        let detail = "its token was revoked, and it still sends: enrol it again, or stop its onbeat-push";
        app.refusals.note(&owner, now(), String::new(), detail);
    }
    Err(unknown())
}

/// Token of a request; its scheme is case-insensitive (RFC 9110, 11.1).
fn token_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && token.starts_with(TOKEN)).then_some(token)
}

/// Items of a header that may occur several times (RFC 9110, 5.3).
fn listed<'a>(headers: &'a HeaderMap, name: &'static str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|one| !one.is_empty())
}

/// True if the content is compressed with gzip, the only supported coding.
fn is_packed(headers: &HeaderMap) -> Result<bool, Refusal> {
    let is = |one: &str, coding: &str| one.eq_ignore_ascii_case(coding);
    let codings: Vec<&str> = listed(headers, "content-encoding").filter(|one| !is(one, "identity")).collect();
    match codings.as_slice() {
        [] => Ok(false),
        [one] if is(one, "gzip") || is(one, "x-gzip") => Ok(true),
        _ => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported Content-Encoding: send the content with gzip, or uncompressed",
        )),
    }
}

/// True if the content matches its digest; other kinds of digests are ignored (RFC 9530).
fn is_as_digested(headers: &HeaderMap, body: &Bytes) -> bool {
    let named = listed(headers, "content-digest").filter_map(|one| one.split_once('='));
    let mut digests = named.filter(|(kind, _)| kind.eq_ignore_ascii_case("sha-256"));
    digests.all(|(_, value)| {
        let value = value.split(';').next().unwrap_or_default().trim();
        let encoded = value.strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
        encoded.and_then(|text| STANDARD.decode(text).ok()) == Some(Sha256::digest(body).to_vec())
    })
}

/// Decompressed content; refused if it is too large or does not match its digest.
pub fn content(headers: &HeaderMap, body: &Bytes, limit: u64) -> Result<Vec<u8>, Refusal> {
    if !is_as_digested(headers, body) {
        return Err(Refusal::bad("the content does not match its digest: send it again"));
    }
    let mut bytes = Vec::new();
    if is_packed(headers)? {
        // A file of gzip may be several, one after the other (RFC 1952, 2.2).
        let read = MultiGzDecoder::new(&body[..]).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::bad(format!("the content is not gzip ({error}): send it again")))?;
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

/// Losses that a board reports: `runs=..;rows=..`.
fn dropped_of(headers: &HeaderMap) -> Option<BoardDropped> {
    let (runs, rows) = headers.get("onbeat-dropped")?.to_str().ok()?.split_once(';')?;
    let number = |text: &str, name: &str| text.trim().strip_prefix(name)?.parse().ok();
    Some(BoardDropped { runs: number(runs, "runs=")?, rows: number(rows, "rows=")? })
}

/// Clocks of a board: `boot=..;mono=..;wall=..;asleep=..`, in ns; the last may be absent.
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
    fn codings_digests_and_schemes_are_read_as_http_has_them() {
        let of = |name: header::HeaderName, lines: &[&str]| -> HeaderMap {
            lines.iter().map(|line| (name.clone(), line.parse().unwrap())).collect()
        };
        let packed = |lines: &[&str]| is_packed(&of(header::CONTENT_ENCODING, lines));
        for lines in [&["gzip"][..], &["GZIP"], &["x-gzip"], &["identity, Gzip"], &["identity", "gzip,"]] {
            assert_eq!(packed(lines), Ok(true), "{lines:?}");
        }
        assert_eq!((packed(&[]), packed(&["Identity"])), (Ok(false), Ok(false)));
        for lines in [&["br"][..], &["gzip, gzip"], &["gzip", "br"], &["gzip;q=1"]] {
            assert_eq!(packed(lines).unwrap_err().status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{lines:?}");
        }
        let body = Bytes::from_static(b"rows");
        let right = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&body)));
        let wrong = "sha-256=:AAAA:";
        for (lines, is_right) in [
            (vec![right.clone()], true),
            (vec![format!("sha-512=:AAAA:, {right}"), "unixsum=7".to_owned()], true),
            (vec![format!("{right};noted=1")], true),
            (vec!["sha-512=:AAAA:".to_owned()], true),
            (vec![format!("sha-512=:AAAA:,{wrong}")], false),
            (vec!["sha-512=:AAAA:".to_owned(), wrong.to_owned()], false),
            (vec!["sha-256=AAAA".to_owned()], false),
        ] {
            let headers = of(
                header::HeaderName::from_static("content-digest"),
                &lines.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            assert_eq!(is_as_digested(&headers, &body), is_right, "{lines:?}");
        }
        let token = |line: &str| token_of(&of(header::AUTHORIZATION, &[line])).map(str::to_owned);
        for line in ["Bearer obt_1", "bearer obt_1", "BEARER  obt_1"] {
            assert_eq!(token(line).as_deref(), Some("obt_1"), "{line}");
        }
        for line in ["Basic obt_1", "Bearer 1", "obt_1", "Bearer", ""] {
            assert_eq!(token(line), None, "{line}");
        }
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
