//! Layers of every response: headers that restrict a browser to displaying it, memory, and
//! compression.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use host::is_this_machine;
use report::html::PageParts;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::yield_now;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

use crate::pages;
use crate::web::answers::answer_parts::HANDED_AT_ONCE;
use crate::web::answers::files::Streamed;
use crate::web::edge::answer::{PROBLEM, Refusal, WebAnswer};
use crate::web::edge::answer_budget::AnswerTurn;
use crate::web::edge::connections::FarmConnection;
use crate::web::state::app::{App, FarmExposure};

/// Content policy of the farm's pages: its style sheet alone, should escaping ever fail.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// Content policy of a report: its styles, and its one script by digest.
pub fn policy_of(parts: &PageParts) -> String {
    let script = parts.script.map(|script| script.source()).unwrap_or_default();
    POLICY.replace("style-src 'self'", &format!("style-src 'self' 'unsafe-inline'; {script}"))
}

/// Limit of a response in bytes: a report of a run with thousands of CPUs.
const LARGEST: usize = 256 << 20;
/// Size in bytes from which compression is worth its cost.
const WORTH_IT: u64 = 1_400;
/// Size in bytes of responses that need no reserved memory: a socket's buffer takes them at once.
const SHORT: usize = 16 << 10;

/// Of a farm that does TLS itself. Browsers remember it for all ports of a name, so that it goes
/// out on the usual port alone.
const ONLY_TLS: &str = "max-age=31536000";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Responses depend on the user: no cache on the way may keep them.
    (header::CACHE_CONTROL, "private, no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The last layer.
pub async fn protect(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    app.requests.fetch_add(1, Ordering::Relaxed);
    let path = request.uri().path().to_owned();
    let is_foreign = app.exposure == FarmExposure::Loopback && !is_own_name(request.headers());
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let is_usual_port = host.is_some_and(|host| !host.contains(':'));
    let hosts = request.headers().get_all(header::HOST).iter().count();
    let response = if hosts > 1 {
        // Who is in front may go by another one (RFC 9112, section 3.2).
        Refusal::bad("the request has several Host headers: send one").into_response()
    } else if hosts == 0 && needs_host(&request) {
        Refusal::bad("the request has no Host header: send one").into_response()
    } else if is_foreign {
        let detail = "this farm answers only to localhost and its loopback address: use one of these";
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, detail).into_response()
    } else if request.uri().path_and_query().is_some_and(|asked| asked.as_str().contains("%00")) {
        // PostgreSQL takes none in a text, and no name here has one.
        Refusal::bad("the address contains a NUL character: remove it").into_response()
    } else {
        next.run(request).await
    };
    let response = shaped(response, &path);
    let mut response = match response.extensions().get::<Streamed>().copied() {
        Some(_) => response,
        None => gathered(&app, response).await.unwrap_or_else(|refusal| {
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

/// True for a request that must name its host: one of HTTP/1.1 that came over a connection.
fn needs_host(request: &Request) -> bool {
    let has_come = request.extensions().get::<Arc<FarmConnection>>().is_some();
    has_come && request.version() == Version::HTTP_11
}

/// Refusal as a page, or as a problem document for programs.
fn shaped(response: Response, path: &str) -> Response {
    let refusal = match response.extensions().get::<Refusal>() {
        Some(refusal) => refusal.clone(),
        // What was refused before anything of the farm's was asked: its form, its size, its method.
        None if response.status().is_client_error() && asked_by_programs(path) && !is_json(&response) => {
            let detail = match response.status() {
                StatusCode::METHOD_NOT_ALLOWED => "this address takes another method: see docs/farm/api.md",
                _ => "invalid form of the request for this address: see docs/farm/api.md",
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

/// True for a path that programs request, such as boards and monitoring systems.
fn asked_by_programs(path: &str) -> bool {
    matches!(path, "/v1" | "/healthz" | "/metrics") || path.starts_with("/v1/")
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "application/json" || kind == PROBLEM)
}

/// True if the request names this machine. DNS rebinding: a foreign page could let its own name
/// resolve to 127.0.0.1 and read the response.
fn is_own_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    is_this_machine(name)
}

/// Compression of responses that are long enough, for clients that accept it.
pub fn compression() -> CompressionLayer<And<SizeAbove, impl Predicate>> {
    let is_text = |_: StatusCode, _: Version, _: &HeaderMap, known: &Extensions| {
        known.get::<Streamed>() != Some(&Streamed::AsItIs)
    };
    let level = CompressionLevel::Precise(5);
    CompressionLayer::new().quality(level).compress_when(SizeAbove::new(WORTH_IT).and(is_text))
}

/// Response with its whole body in memory, reserved from the budget if it is long.
async fn gathered(app: &App, response: Response) -> Result<Response, Refusal> {
    if response.body().size_hint().exact().is_some_and(|length| length <= SHORT as u64) {
        return Ok(response);
    }
    let (mut head, body) = response.into_parts();
    let (mut whole, mut parts) = (Vec::new(), body.into_data_stream());
    while let Some(part) = parts.next().await {
        match part {
            Ok(part) if part.len() <= LARGEST - whole.len() => whole.extend_from_slice(&part),
            _ => return Ok(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        }
        // Compressing a large report would hold up all other requests.
        yield_now().await;
    }
    head.headers.insert(header::CONTENT_LENGTH, whole.len().into());
    let body = match whole.len() {
        0..=SHORT => Body::from(whole),
        length => held(whole.into(), app.budget.whole(length).await?),
    };
    Ok(Response::from_parts(head, body))
}

/// A body that is there, with its place among those that are held. A connection takes it in small
/// parts, for what it was given is held by it, and counted no more; and in copies, for a part of
/// the whole would keep all of it.
fn held(whole: Bytes, place: OwnedSemaphorePermit) -> Body {
    Body::from_stream(unfold((whole, place), |(mut rest, place)| async move {
        let part = rest.split_to(rest.len().min(HANDED_AT_ONCE));
        (!part.is_empty()).then(|| (Ok::<_, Infallible>(Bytes::copy_from_slice(&part)), (rest, place)))
    }))
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
}
