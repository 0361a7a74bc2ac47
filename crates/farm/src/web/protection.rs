//! What holds for every answer: headers that keep a browser from doing more than show it, and
//! compression.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use host::is_this_machine;
use report::html::PageParts;

use super::answer::{PROBLEM, Refusal, WebAnswer};
use super::answer_budget::AnswerTurn;
use super::app::{App, FarmExposure};
use super::files::Streamed;
use super::guarded::PeerConnection;
use super::held_body::{HeldBody, PackedBody};
use super::paced_body::{PACE, PacedBody};
use crate::pages;

/// Nothing but the farm's own style sheet, whatever escaping might have let through.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// What the reports' own pages allow: their styles, and the one script that is named by its digest.
pub fn policy_of(parts: &PageParts) -> String {
    let script = parts.script.map(|script| script.source()).unwrap_or_default();
    POLICY.replace("style-src 'self'", &format!("style-src 'self' 'unsafe-inline'; {script}"))
}

/// No answer is larger: a report of a run with thousands of CPUs.
const LARGEST: usize = 256 << 20;
/// Below this compressing takes more than it saves.
const WORTH_IT: usize = 1_400;
/// Answers that are as short are held without a place: a connection takes them at once.
const SHORT: usize = 16 << 10;
/// What is compressed within a millisecond or two.
const AT_ONCE: usize = 64 << 10;

/// Of a farm that does TLS itself. Browsers remember it for all ports of a name, so that it goes
/// out on the usual port alone.
const ONLY_TLS: &str = "max-age=31536000";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // What one may see another may not: no cache on the way keeps it.
    (header::CACHE_CONTROL, "private, no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The last layer.
pub async fn protect(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    app.requests.fetch_add(1, Ordering::Relaxed);
    let path = request.uri().path().to_owned();
    let zipped = accepts_gzip(request.headers());
    let is_foreign = app.exposure == FarmExposure::Loopback && !is_own_name(request.headers());
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let is_usual_port = host.is_some_and(|host| !host.contains(':'));
    let hosts = request.headers().get_all(header::HOST).iter().count();
    let response = if hosts > 1 {
        // Who is in front may go by another one (RFC 9112, section 3.2).
        Refusal::bad("a request has one Host: leave the others out").into_response()
    } else if hosts == 0 && needs_host(&request) {
        Refusal::bad("a request of HTTP/1.1 names its host: send Host").into_response()
    } else if is_foreign {
        let detail = "this farm answers to localhost and its loopback address alone: ask it by one of these";
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, detail).into_response()
    } else if request.uri().path_and_query().is_some_and(|asked| asked.as_str().contains("%00")) {
        // PostgreSQL takes none in a text, and no name here has one.
        Refusal::bad("an address with a NUL names nothing: leave it out").into_response()
    } else {
        in_time(request, next).await
    };
    let response = shaped(response, &path);
    let mut response = match response.extensions().get::<Streamed>().copied() {
        Some(Streamed::AsItIs) => response,
        Some(Streamed::Text) => packed(response, zipped),
        None => gathered(&app, response, zipped).await.unwrap_or_else(|refusal| {
            // What was made is given up: nothing is held while its client waits.
            shaped(refusal.into_response(), &path)
        }),
    };
    // It is whole, or has its place: another one may be made.
    response.extensions_mut().remove::<AnswerTurn>();
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_usual_port && app.has_certificate() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(ONLY_TLS));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    response
}

/// Whether a request that came on a connection has to name its host, as those of HTTP/1.0 need not.
fn needs_host(request: &Request) -> bool {
    let has_come = request.extensions().get::<ConnectInfo<PeerConnection>>().is_some();
    has_come && request.version() == Version::HTTP_11
}

/// The answer to a request whose content comes at some pace.
async fn in_time(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectInfo<PeerConnection>>();
    let connection = peer.map(|ConnectInfo(peer)| peer.connection.clone());
    let is_late = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| PacedBody::of(body, PACE, is_late.clone(), connection));
    let response = next.run(request).await;
    if !is_late.load(Ordering::Relaxed) {
        return response;
    }
    let detail = "what is sent stopped coming, or comes too slowly: send it again, fewer bytes at once";
    Refusal::new(StatusCode::REQUEST_TIMEOUT, detail).into_response()
}

/// A refusal in the form that fits who asked.
fn shaped(response: Response, path: &str) -> Response {
    let refusal = match response.extensions().get::<Refusal>() {
        Some(refusal) => refusal.clone(),
        // What was refused before anything of the farm's was asked: its form, its size, its method.
        None if response.status().is_client_error() && asked_by_programs(path) && !is_json(&response) => {
            let detail = match response.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    "more bytes than this address takes: send less at once, and pieces of at most 4 MiB"
                }
                StatusCode::METHOD_NOT_ALLOWED => {
                    "this address takes another method: docs/farm/api.md has all requests with theirs"
                }
                _ => "the request has another form than this address takes: see docs/farm/api.md",
            };
            Refusal::new(response.status(), detail)
        }
        None => return response,
    };
    let answer = match asked_by_programs(path) {
        true => WebAnswer::problem(refusal.problem()),
        false => WebAnswer::page(pages::refusal(refusal.status.as_u16(), &refusal.detail)),
    };
    let mut shaped = answer.into_response();
    *shaped.status_mut() = refusal.status;
    // What may be sent again says when.
    if matches!(refusal.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        shaped.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(refusal.wait_s.unwrap_or(30)));
    }
    // Where it is how the content is packed (RFC 9110, 15.5.16).
    if refusal.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        shaped.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    shaped
}

/// Whether programs ask for it, as boards and monitoring systems do: they have no use for a page.
fn asked_by_programs(path: &str) -> bool {
    matches!(path, "/v1" | "/healthz" | "/metrics") || path.starts_with("/v1/")
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "application/json" || kind == PROBLEM)
}

/// Whether it was asked by a name that only this machine has: a page from elsewhere could have a
/// name of its own lead to 127.0.0.1, and read along.
fn is_own_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    is_this_machine(name)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|all| {
        all.to_ascii_lowercase()
            .split(',')
            .any(|one| one.trim() == "gzip" || one.trim().starts_with("gzip;q=1"))
    })
}

/// A text that goes out as it is read.
fn packed(response: Response, zipped: bool) -> Response {
    let mut response = if zipped { response.map(PackedBody::of) } else { response };
    let headers = response.headers_mut();
    if zipped {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    response
}

/// An answer that is whole, with its place among those that are held where it is long.
async fn gathered(app: &App, response: Response, zipped: bool) -> Result<Response, Refusal> {
    let length = response.body().size_hint().exact();
    if !zipped && length.is_some_and(|length| length <= SHORT as u64) {
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let most = if zipped { LARGEST } else { usize::MAX };
    let Ok(bytes) = to_bytes(body, most).await else {
        return Ok(StatusCode::INTERNAL_SERVER_ERROR.into_response());
    };
    let found = if zipped { compressed(&mut parts.headers, bytes).await } else { bytes };
    let body = match found.len() {
        0..=SHORT => Body::from(found),
        length => HeldBody::of(found, app.budget.whole(length).await?),
    };
    Ok(Response::from_parts(parts, body))
}

/// The same packed, where that is worth it.
async fn compressed(headers: &mut HeaderMap, bytes: Bytes) -> Bytes {
    let zipped = match bytes.len() {
        0..WORTH_IT => None,
        WORTH_IT..AT_ONCE => zip(&bytes),
        // A large report would hold up all other requests.
        _ => {
            let bytes = bytes.clone();
            tokio::task::spawn_blocking(move || zip(&bytes)).await.ok().flatten()
        }
    };
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let Some(zipped) = zipped else { return bytes };
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(header::CONTENT_LENGTH);
    zipped.into()
}

fn zip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(5));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(host: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, host.parse().unwrap())])
    }

    #[test]
    fn only_own_names_are_answered() {
        for host in ["localhost", "localhost:8377", "127.0.0.1:8377", "[::1]:8377", "127.0.0.1"] {
            assert!(is_own_name(&named(host)), "{host}");
        }
        for host in ["evil.test", "evil.test:8377", "localhost.evil.test", "10.0.0.1:8377", "127.0.0.1.evil"]
        {
            assert!(!is_own_name(&named(host)), "{host}");
        }
        assert!(is_own_name(&HeaderMap::new()));
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        let takes = |value: &str| {
            accepts_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]))
        };
        assert!(takes("gzip, deflate, br") && takes("br,gzip") && takes("GZIP"));
        assert!(!takes("br") && !takes("gzip;q=0") && !accepts_gzip(&HeaderMap::new()));
    }
}
